//! Deliveries to a webhook endpoint, and their replay.

use events::webhooks::ReplaySelection;
use httpd::request_value::Time;
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryStatus};

use super::request::{WebhookPath, event_names, events_schema, parse_events};
use super::view::{
    QueuedDeliveriesResponse, QueuedDeliveryResponse, WebhookDeliveryList, WebhookDeliveryResponse, WebhookDeliveryView,
};
use crate::prelude::*;

const DELIVERY_ID: &str = "delivery_id";
/// Most deliveries that one page scans, whatever the filter matches.
const SCANNED_DELIVERIES_MAX: usize = 5_000;

/// Parameters of `GET /webhooks/{id}/deliveries`.
#[derive(Debug)]
pub struct ListDeliveries {
    page: PageParameters,
    statuses: Vec<WebhookDeliveryStatus>,
    kinds: Vec<String>,
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

impl RequestQuery for ListDeliveries {
    fn read_query(query: &mut Query) -> Result<Self> {
        Ok(Self {
            page: query.page()?,
            statuses: query.words_in_text("status", |words| format!("Any of these, separated by commas: {words}"))?,
            kinds: event_name_filter(query)?,
            created_after: query.time("created_after", "Only those created after this time")?,
            created_before: query.time("created_before", "Only those created before this time")?,
        })
    }
}

fn event_name_filter(query: &mut Query) -> Result<Vec<String>> {
    let words = || event_names().join(", ");
    let about = format!("Any of these, separated by commas: {}", words());
    query.describe("type", &about, || json!({"type": "string"}));
    query.given_words("type", words, |word| model::webhook::is_event(word).then(|| word.to_owned()))
}

/// `GET /webhooks/{id}/deliveries`.
pub async fn list(
    state: State,
    tenant: Tenant,
    (WebhookPath(webhook), input): (WebhookPath, ListDeliveries),
) -> Result<WebhookDeliveryList> {
    let account = tenant.account().id;
    state.accounts.webhooks.webhook(account, webhook).await.or_problem(&state)?;
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
        store::webhook_delivery::list(store, account, webhook, before, limit, SCANNED_DELIVERIES_MAX, passes).await?;
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
    fn parameters() -> Vec<Value> {
        let delivery = schema::path_parameter(DELIVERY_ID, "The delivery's id (`whd_…`)");
        [WebhookPath::parameters(), vec![delivery]].concat()
    }

    fn read(call: &Request) -> Result<Self> {
        let WebhookPath(webhook) = WebhookPath::read(call)?;
        let id = call.path_parameter(DELIVERY_ID).parse().map_err(|_| Problem::not_found("delivery"))?;
        Ok(Self { webhook, id })
    }
}

/// `GET /webhooks/{id}/deliveries/{delivery_id}`.
pub async fn get(state: State, tenant: Tenant, input: WebhookDeliveryPath) -> Result<WebhookDeliveryResponse> {
    let (store, account) = (&state.services.store, tenant.account().id);
    state.accounts.webhooks.webhook(account, input.webhook).await.or_problem(&state)?;
    let found = store::webhook_delivery::get(store, account, input.webhook, input.id).await?;
    let delivery = found.ok_or_else(|| Problem::not_found("delivery"))?;
    let attempts = store::webhook_delivery::list_attempts(store, &delivery).await?;
    let body = state.accounts.webhooks.delivery_body(&delivery).await?;
    Ok(WebhookDeliveryResponse::from_delivery(&delivery, body.as_deref(), attempts))
}

/// `POST /webhooks/{id}/deliveries/{delivery_id}/replay`.
///
/// # Errors
/// The delivery does not exist; 400 while it is pending or the endpoint is disabled; the store cannot be written.
pub async fn replay(state: State, tenant: Tenant, input: WebhookDeliveryPath) -> Result<QueuedDeliveryResponse> {
    let delivery = state.accounts.webhooks.replay_delivery(tenant.account().id, input.webhook, input.id).await;
    let delivery = delivery.or_problem(&state)?;
    Ok(QueuedDeliveryResponse { delivery: WebhookDeliveryView::from_delivery(&delivery) })
}

/// The deliveries to replay
#[derive(Debug, RequestObject)]
#[schema(name = "ReplayWebhookDeliveries", body_bytes_max = SMALL_BYTES_MAX, check = check_range)]
pub struct DeliverySelection {
    /// Deliveries created at this time or later
    #[field(reader = Time, examples = ["2026-01-01T00:00:00.000Z"])]
    since: Timestamp,
    /// Deliveries created before this time; default: now
    #[field(reader = Time, examples = ["2100-01-01T00:00:00.000Z"])]
    until: Option<Timestamp>,
    /// Deliveries with this status
    #[field(
        parse = parse_status,
        schema = json!({"type": "string", "enum": STATUSES}),
        absent = WebhookDeliveryStatus::Failed, default = "failed",
    )]
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

fn check_range(selection: &DeliverySelection, _: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    if selection.until.is_some_and(|until| until < selection.since) {
        notes.errors.add("until", "must not be before `since`");
    }
}

/// `POST /webhooks/{id}/replay`.
///
/// # Errors
/// The endpoint does not exist; 400 when it is disabled; the store cannot be written.
pub async fn replay_many(
    state: State,
    tenant: Tenant,
    (WebhookPath(webhook), selection): (WebhookPath, DeliverySelection),
) -> Result<QueuedDeliveriesResponse> {
    let DeliverySelection { since, until, status, events } = selection;
    // Deliveries that are created from now on are not replayed.
    let until = until.unwrap_or_else(|| state.services.clock.now());
    let range = ReplaySelection { since, until, status, events };
    let (queued, next) =
        state.accounts.webhooks.replay_deliveries(tenant.account().id, webhook, &range).await.or_problem(&state)?;
    Ok(QueuedDeliveriesResponse { queued, next_since: next.map(JsonTimestamp) })
}
