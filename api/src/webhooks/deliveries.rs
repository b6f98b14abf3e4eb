//! What was delivered to an endpoint, and once more.

use std::sync::Arc;

use jiff::Timestamp;
use mail::delivery::{Delivery, DeliveryStatus};
use mail::id::{DeliveryId, WebhookId};
use queue::webhooks::Range;
use serde_json::{Value, json};
use store::access::Tenant;

use super::problem;
use super::request::{OfWebhook, event_names, events};
use super::view::{DeliveryList, DeliveryView, OneDelivery, QueuedDeliveries, QueuedDelivery};
use crate::call::{Call, Input, SMALL_BYTES_MAX, Takes};
use crate::emails::view::Moment;
use crate::fields::{self, Names, Notes};
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

const DELIVERY_ID: &str = "delivery_id";
/// Deliveries that one page looks at, whatever it finds.
const LOOK_MAX: usize = 5_000;

fn no_such_delivery() -> Problem {
    Problem::not_found("delivery")
}

/// What `GET /webhooks/{id}/deliveries` takes.
#[derive(Debug)]
pub struct ListDeliveries {
    webhook: WebhookId,
    page: Page,
    statuses: Vec<DeliveryStatus>,
    kinds: Vec<String>,
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

impl Input for ListDeliveries {
    fn describe(_: &mut Schemas) -> Takes {
        let words = |name: &str, words: &[&str]| {
            let text = format!("Only these: {}; several with commas", words.join(", "));
            schema::query_parameter(name, &text, json!({"type": "string"}))
        };
        let mut parameters = vec![OfWebhook::parameter()];
        parameters.extend(Page::parameters());
        parameters.push(words("status", DeliveryStatus::WORDS));
        parameters.push(words("type", &event_names()));
        parameters.push(schema::time_parameter("created_after", "Only those made after this time"));
        parameters.push(schema::time_parameter("created_before", "Only those made before this time"));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let OfWebhook(webhook) = OfWebhook::of(call)?;
        let query = &call.query;
        let parameters = page::parameters(query)?;
        Ok(Self {
            webhook,
            page: Page::read(query)?,
            statuses: page::words(query, "status", DeliveryStatus::WORDS, DeliveryStatus::of_word)?,
            kinds: page::words(query, "type", &event_names(), known_event)?,
            created_after: page::time(&parameters, "created_after")?,
            created_before: page::time(&parameters, "created_before")?,
        })
    }
}

/// An event's name, if there is such an event.
pub(crate) fn known_event(word: &str) -> Option<String> {
    mail::webhook::is_event(word).then(|| word.to_owned())
}

/// `GET /webhooks/{id}/deliveries`.
///
/// # Errors
/// No such endpoint; the cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, input: ListDeliveries) -> Result<DeliveryList, Problem> {
    let account = tenant.account().id;
    let found = room.hall.webhook(account, input.webhook).await;
    found.map_err(|error| problem(error, &room))?;
    let mut before = input.page.before_id(page::KIND_DELIVERY)?.map(DeliveryId::from_bytes);
    if let Some(at) = input.created_before {
        let young = DeliveryId::new(at, 0);
        before = Some(before.map_or(young, |before| before.min(young)));
    }
    let passes = |delivery: &Delivery| {
        (input.statuses.is_empty() || input.statuses.contains(&delivery.status))
            && (input.kinds.is_empty() || input.kinds.contains(&delivery.kind))
            && input.created_after.is_none_or(|after| delivery.created_at > after)
    };
    let (store, of) = (room.hall.store(), (account, input.webhook));
    let listed = store::delivery::list(store, of, before, (input.page.limit, LOOK_MAX), passes).await?;
    // Ids are in the order of time: behind the oldest that may pass there is nothing.
    let old = |id: &DeliveryId| input.created_after.is_some_and(|after| id.born_at() < after);
    let (deliveries, next) = (listed.0, listed.1.filter(|next| !old(next)));
    Ok(DeliveryList {
        deliveries: deliveries.iter().map(DeliveryView::of).collect(),
        has_more: next.is_some(),
        next_cursor: next.map(|id| page::after_id(page::KIND_DELIVERY, id.to_bytes())),
    })
}

/// A delivery, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfDelivery {
    webhook: WebhookId,
    id: DeliveryId,
}

impl Input for OfDelivery {
    fn describe(_: &mut Schemas) -> Takes {
        let delivery = schema::path_parameter(DELIVERY_ID, "The delivery's id (`whd_…`)");
        Takes { parameters: vec![OfWebhook::parameter(), delivery], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let OfWebhook(webhook) = OfWebhook::of(call)?;
        let id = call.path_parameter(DELIVERY_ID).parse().map_err(|_| no_such_delivery())?;
        Ok(Self { webhook, id })
    }
}

/// `GET /webhooks/{id}/deliveries/{delivery_id}`.
///
/// # Errors
/// No such delivery; the store cannot be read.
pub async fn get(room: Arc<Room>, tenant: Tenant, input: OfDelivery) -> Result<OneDelivery, Problem> {
    let (store, of) = (room.hall.store(), (tenant.account().id, input.webhook));
    room.hall.webhook(of.0, of.1).await.map_err(|error| problem(error, &room))?;
    let found = store::delivery::get(store, of, input.id).await?;
    let delivery = found.ok_or_else(no_such_delivery)?;
    let attempts = store::delivery::attempts(store, &delivery).await?;
    let body = room.hall.delivery_body(&delivery).await?;
    Ok(OneDelivery::of(&delivery, body.as_deref(), attempts))
}

/// `POST /webhooks/{id}/deliveries/{delivery_id}/replay`.
///
/// # Errors
/// No such delivery; 409 while it is tried, or the endpoint is disabled; the store cannot be written.
pub async fn replay(room: Arc<Room>, tenant: Tenant, input: OfDelivery) -> Result<QueuedDelivery, Problem> {
    let replayed = room.hall.replay(tenant.account().id, input.webhook, input.id).await;
    let delivery = replayed.map_err(|error| problem(error, &room))?;
    Ok(QueuedDelivery { delivery: DeliveryView::of(&delivery) })
}

/// What `POST /webhooks/{id}/replay` takes.
#[derive(Debug)]
pub struct ReplayRange {
    webhook: WebhookId,
    since: Timestamp,
    until: Option<Timestamp>,
    status: DeliveryStatus,
    events: Vec<String>,
}

/// What may be replayed: what is tried needs it not.
const STATUSES: &[&str] = &["failed", "delivered"];

impl Input for ReplayRange {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("ReplayWebhookDeliveries", |_| {
            let mut since = schema::time("Those made at this time or later");
            since["examples"] = json!(["2026-01-01T00:00:00.000Z"]);
            let mut until = schema::time("… and before this time; now");
            until["examples"] = json!(["2100-01-01T00:00:00.000Z"]);
            let mut status = schema::words(STATUSES, "Those in this state");
            status["default"] = json!("failed");
            let events: Value =
                schema::list(schema::words(&event_names(), "A name"), "Those of these events; all");
            schema::object_with(
                "Which deliveries are sent once more",
                &["since"],
                [("since", since), ("until", until), ("status", status), ("events", events)],
            )
        });
        let parameters = vec![OfWebhook::parameter()];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        const NAMES: Names = Names {
            known: &[("since", "since"), ("until", "until"), ("status", "status"), ("events", "events")],
            foreign: &[],
        };
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let mut time = |name: &str| {
            let text = given.value(name).map(fields::text)?;
            let read = text.and_then(|text| mail::moment::read(&text).map_err(str::to_owned));
            read.map_err(|text| notes.errors.add(name, text)).ok()
        };
        let (since, until) = (time("since"), time("until"));
        if !given.is_meant("since") {
            notes.errors.add("since", "is required");
        }
        if let (Some(since), Some(until)) = (since, until)
            && until < since
        {
            notes.errors.add("until", "must not be before `since`");
        }
        let status = match given.value("status").map(fields::text) {
            None => Some(DeliveryStatus::Failed),
            Some(text) => text
                .ok()
                .filter(|text| STATUSES.contains(&&**text))
                .and_then(|text| DeliveryStatus::of_word(&text)),
        };
        if status.is_none() {
            notes.errors.add("status", format!("must be one of {}", STATUSES.join(", ")));
        }
        let events = given.value("events").map(events).transpose();
        let events = events.map_err(|text| notes.errors.add("events", text)).ok().flatten();
        let OfWebhook(webhook) = OfWebhook::of(call)?;
        match (since, status) {
            (Some(since), Some(status)) if notes.errors.is_empty() => {
                Ok(Self { webhook, since, until, status, events: events.unwrap_or_default() })
            }
            _ => Err(notes.errors.into()),
        }
    }
}

/// `POST /webhooks/{id}/replay`.
///
/// # Errors
/// No such endpoint; 409 when it is disabled; the store cannot be written.
pub async fn replay_range(
    room: Arc<Room>,
    tenant: Tenant,
    input: ReplayRange,
) -> Result<QueuedDeliveries, Problem> {
    let ReplayRange { webhook, since, until, status, events } = input;
    // What is made from now on is not meant.
    let until = until.unwrap_or_else(|| room.hall.clock().now());
    let range = Range { since, until, status, events };
    let replayed = room.hall.replay_range(tenant.account().id, webhook, &range).await;
    let (queued, next) = replayed.map_err(|error| problem(error, &room))?;
    Ok(QueuedDeliveries { queued, next_since: next.map(Moment) })
}
