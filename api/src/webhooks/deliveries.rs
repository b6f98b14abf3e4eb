//! Deliveries to a webhook endpoint, and their replay.

use events::webhooks::ReplaySelection;
use httpd::fields;
use httpd::request_object::read_checked_body;
use httpd::request_value::Time;
use jiff::Timestamp;
use model::id::{DeliveryId, WebhookId};
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryStatus};
use serde_json::value::RawValue;

use super::error::webhook_error_problem;
use super::request::{WebhookPath, event_names, events_schema, parse_events};
use super::view::{
    QueuedDeliveriesResponse, QueuedDeliveryResponse, WebhookDeliveryList, WebhookDeliveryResponse, WebhookDeliveryView,
};
use crate::prelude::*;

const DELIVERY_ID: &str = "delivery_id";
/// Most deliveries that one page scans, whatever the filter matches.
const SCANNED_DELIVERIES_MAX: usize = 5_000;

fn delivery_not_found() -> Problem {
    Problem::not_found("delivery")
}

/// Parameters of `GET /webhooks/{id}/deliveries`.
#[derive(Debug)]
pub struct ListDeliveries {
    webhook: WebhookId,
    page: PageParameters,
    statuses: Vec<WebhookDeliveryStatus>,
    kinds: Vec<String>,
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

impl FromRequest for ListDeliveries {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let words = |name: &str, words: &[&str]| {
            let text = format!("Any of these, separated by commas: {}", words.join(", "));
            schema::query_parameter(name, &text, json!({"type": "string"}))
        };
        let mut parameters = vec![WebhookPath::parameter()];
        parameters.extend(PageParameters::parameters());
        parameters.push(words("status", WebhookDeliveryStatus::WORDS));
        parameters.push(words("type", &event_names()));
        parameters.push(schema::time_parameter("created_after", "Only those created after this time"));
        parameters.push(schema::time_parameter("created_before", "Only those created before this time"));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let WebhookPath(webhook) = WebhookPath::from_request(call)?;
        let query = &call.query;
        let parameters = paging::parse_query(query)?;
        Ok(Self {
            webhook,
            page: PageParameters::from_query(query)?,
            statuses: paging::parse_words(
                query,
                "status",
                WebhookDeliveryStatus::WORDS,
                WebhookDeliveryStatus::from_word,
            )?,
            kinds: paging::parse_words(query, "type", &event_names(), parse_event_name)?,
            created_after: paging::parse_time(&parameters, "created_after")?,
            created_before: paging::parse_time(&parameters, "created_before")?,
        })
    }
}

pub(crate) fn parse_event_name(word: &str) -> Option<String> {
    model::webhook::is_event(word).then(|| word.to_owned())
}

/// `GET /webhooks/{id}/deliveries`.
pub async fn list(state: Arc<AppState>, tenant: Tenant, input: ListDeliveries) -> Result<WebhookDeliveryList, Problem> {
    let account = tenant.account().id;
    let found = state.accounts.webhooks.webhook(account, input.webhook).await;
    found.map_err(|error| webhook_error_problem(error, &state))?;
    let mut before = input.page.before_id(paging::KIND_DELIVERY)?.map(DeliveryId::from_bytes);
    if let Some(at) = input.created_before {
        let first_excluded = DeliveryId::new(at, 0);
        before = Some(before.map_or(first_excluded, |before| before.min(first_excluded)));
    }
    let passes = |delivery: &WebhookDelivery| {
        (input.statuses.is_empty() || input.statuses.contains(&delivery.status))
            && (input.kinds.is_empty() || input.kinds.contains(&delivery.kind))
            && input.created_after.is_none_or(|after| delivery.created_at > after)
    };
    let (store, limit) = (&state.services.store, input.page.limit);
    let listed =
        store::webhook_delivery::list(store, account, input.webhook, before, limit, SCANNED_DELIVERIES_MAX, passes)
            .await?;
    // Ids are ordered by time, so nothing older than `created_after` needs to be scanned.
    let old = |id: &DeliveryId| input.created_after.is_some_and(|after| id.born_at() < after);
    let (deliveries, next) = (listed.0, listed.1.filter(|next| !old(next)));
    Ok(WebhookDeliveryList::new(
        deliveries.iter().map(WebhookDeliveryView::from_delivery).collect(),
        next.map(|id| paging::after_id(paging::KIND_DELIVERY, id.to_bytes())),
    ))
}

#[derive(Debug, Clone, Copy)]
pub struct WebhookDeliveryPath {
    webhook: WebhookId,
    id: DeliveryId,
}

impl FromRequest for WebhookDeliveryPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let delivery = schema::path_parameter(DELIVERY_ID, "The delivery's id (`whd_…`)");
        RequestSpec { parameters: vec![WebhookPath::parameter(), delivery], ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let WebhookPath(webhook) = WebhookPath::from_request(call)?;
        let id = call.path_parameter(DELIVERY_ID).parse().map_err(|_| delivery_not_found())?;
        Ok(Self { webhook, id })
    }
}

/// `GET /webhooks/{id}/deliveries/{delivery_id}`.
pub async fn get(
    state: Arc<AppState>,
    tenant: Tenant,
    input: WebhookDeliveryPath,
) -> Result<WebhookDeliveryResponse, Problem> {
    let (store, account) = (&state.services.store, tenant.account().id);
    state
        .accounts
        .webhooks
        .webhook(account, input.webhook)
        .await
        .map_err(|error| webhook_error_problem(error, &state))?;
    let found = store::webhook_delivery::get(store, account, input.webhook, input.id).await?;
    let delivery = found.ok_or_else(delivery_not_found)?;
    let attempts = store::webhook_delivery::list_attempts(store, &delivery).await?;
    let body = state.accounts.webhooks.delivery_body(&delivery).await?;
    Ok(WebhookDeliveryResponse::from_delivery(&delivery, body.as_deref(), attempts))
}

/// `POST /webhooks/{id}/deliveries/{delivery_id}/replay`.
///
/// # Errors
/// The delivery does not exist; 409 while it is pending or the endpoint is disabled; the store cannot be written.
pub async fn replay(
    state: Arc<AppState>,
    tenant: Tenant,
    input: WebhookDeliveryPath,
) -> Result<QueuedDeliveryResponse, Problem> {
    let replayed = state.accounts.webhooks.replay_delivery(tenant.account().id, input.webhook, input.id).await;
    let delivery = replayed.map_err(|error| webhook_error_problem(error, &state))?;
    Ok(QueuedDeliveryResponse { delivery: WebhookDeliveryView::from_delivery(&delivery) })
}

/// Path and body of `POST /webhooks/{id}/replay`.
#[derive(Debug)]
pub struct ReplayDeliveries {
    webhook: WebhookId,
    selection: DeliverySelection,
}

/// The deliveries to replay
#[derive(Debug, RequestObject)]
#[schema(name = "ReplayWebhookDeliveries")]
struct DeliverySelection {
    /// Deliveries created at this time or later
    #[field(reader = Time, examples = ["2026-01-01T00:00:00.000Z"])]
    since: Timestamp,
    /// Deliveries created before this time; default: now
    #[field(reader = Time, examples = ["2100-01-01T00:00:00.000Z"])]
    until: Option<Timestamp>,
    /// Deliveries with this status
    #[field(parse = parse_status, schema = status_schema, absent = WebhookDeliveryStatus::Failed, default = "failed")]
    status: WebhookDeliveryStatus,
    /// Deliveries of these events; default: all
    #[field(parse = parse_events, schema = events_schema, absent = Vec::new())]
    events: Vec<String>,
}

/// The statuses that can be replayed; a pending delivery is tried anyway.
const STATUSES: &[&str] = &["failed", "delivered"];

fn parse_status(value: &RawValue) -> Result<WebhookDeliveryStatus, String> {
    let text = fields::parse_text(value).ok().filter(|text| STATUSES.contains(&&**text));
    let status = text.and_then(|text| WebhookDeliveryStatus::from_word(&text));
    status.ok_or_else(|| format!("must be one of {}", STATUSES.join(", ")))
}

fn status_schema(_: &mut Schemas) -> Value {
    json!({"type": "string", "enum": STATUSES})
}

impl FromRequest for ReplayDeliveries {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        body_spec::<DeliverySelection>(schemas, vec![WebhookPath::parameter()], Self::BODY_BYTES_MAX)
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let selection = read_checked_body(call, |selection: &DeliverySelection, _, notes| {
            if selection.until.is_some_and(|until| until < selection.since) {
                notes.errors.add("until", "must not be before `since`");
            }
        })?;
        let WebhookPath(webhook) = WebhookPath::from_request(call)?;
        Ok(Self { webhook, selection })
    }
}

/// `POST /webhooks/{id}/replay`.
///
/// # Errors
/// The endpoint does not exist; 409 when it is disabled; the store cannot be written.
pub async fn replay_many(
    state: Arc<AppState>,
    tenant: Tenant,
    input: ReplayDeliveries,
) -> Result<QueuedDeliveriesResponse, Problem> {
    let ReplayDeliveries { webhook, selection: DeliverySelection { since, until, status, events } } = input;
    // Deliveries that are created from now on are not replayed.
    let until = until.unwrap_or_else(|| state.services.clock.now());
    let range = ReplaySelection { since, until, status, events };
    let replayed = state.accounts.webhooks.replay_deliveries(tenant.account().id, webhook, &range).await;
    let (queued, next) = replayed.map_err(|error| webhook_error_problem(error, &state))?;
    Ok(QueuedDeliveriesResponse { queued, next_since: next.map(JsonTimestamp) })
}
