//! What callers are shown of webhook endpoints and deliveries.

use http::StatusCode;
use mail::address_pattern::AddressPattern;
use mail::delivery::{Delivery, DeliveryAttempt, DeliveryStatus};
use mail::id::{DeliveryId, DomainId, EventId, WebhookId};
use mail::webhook::{DisabledReason, RetryPolicy, Webhook};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::emails::view::Moment;
use crate::schema::{self, Describe, Schemas};

/// An endpoint. Its secret is not shown.
#[derive(Debug, Serialize)]
pub struct WebhookView {
    id: WebhookId,
    url: String,
    events: Vec<String>,
    enabled: bool,
    description: Option<String>,
    domain_ids: Vec<DomainId>,
    inbound_addresses: Vec<AddressPattern>,
    retry_policy: RetryPolicy,
    failing_since: Option<Moment>,
    disabled_reason: Option<DisabledReason>,
    created_at: Moment,
    updated_at: Moment,
}

impl WebhookView {
    /// What is shown of an endpoint.
    #[must_use]
    pub fn of(webhook: &Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url.clone(),
            events: webhook.events.clone(),
            enabled: webhook.enabled,
            description: webhook.description.clone(),
            domain_ids: webhook.domains.iter().map(|(id, _)| *id).collect(),
            inbound_addresses: webhook.addresses.clone(),
            retry_policy: webhook.retry,
            failing_since: webhook.failing_since.map(Moment),
            disabled_reason: webhook.disabled_reason,
            created_at: Moment(webhook.created_at),
            updated_at: Moment(webhook.updated_at),
        }
    }
}

impl Describe for WebhookView {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut reason = schema::words(DisabledReason::WORDS, "Why it is sent nothing");
        schema::or_null(&mut reason);
        schemas.named("Webhook", |_| {
            schema::object(
                "A webhook endpoint",
                [
                    ("id", schema::string("`whk_…`")),
                    ("url", schema::string("Where deliveries are posted")),
                    (
                        "events",
                        schema::list(
                            schema::string("A name"),
                            "The events that it is sent; none: all that need not be named",
                        ),
                    ),
                    ("enabled", schema::boolean("Whether it is sent anything")),
                    ("description", schema::nullable_string("What its owner says of it")),
                    (
                        "domain_ids",
                        schema::list(schema::string("`dom_…`"), "The domains whose events alone it is sent"),
                    ),
                    (
                        "inbound_addresses",
                        schema::list(
                            schema::string("An address, `support+*@example.com` or `*@example.com`"),
                            "The addresses whose received mail alone it is sent",
                        ),
                    ),
                    ("retry_policy", schema::words(RetryPolicy::WORDS, "How deliveries are tried again")),
                    ("failing_since", schema::nullable_time("Since when nothing has arrived")),
                    ("disabled_reason", reason),
                    ("created_at", schema::time("When it was made")),
                    ("updated_at", schema::time("When it was changed")),
                ],
            )
        })
    }
}

/// An endpoint by itself.
#[derive(Debug, Serialize)]
pub struct OneWebhook {
    webhook: WebhookView,
}

impl OneWebhook {
    pub(super) fn of(webhook: &Webhook) -> Self {
        Self { webhook: WebhookView::of(webhook) }
    }
}

impl Describe for OneWebhook {
    fn schema(schemas: &mut Schemas) -> Value {
        let webhook = WebhookView::schema(schemas);
        schemas.named("OneWebhook", |_| schema::object("An endpoint", [("webhook", webhook)]))
    }
}

/// An endpoint and its new secret.
#[derive(Serialize)]
pub struct WithSecret {
    pub(super) webhook: WebhookView,
    pub(super) secret: String,
}

impl Describe for WithSecret {
    fn schema(schemas: &mut Schemas) -> Value {
        let webhook = WebhookView::schema(schemas);
        schemas.named("WebhookWithSecret", |_| {
            let secret = schema::string("`whsec_…`: verifies deliveries; it is not shown again");
            schema::object("An endpoint and its secret", [("webhook", webhook), ("secret", secret)])
        })
    }
}

/// A page of endpoints.
#[derive(Debug, Serialize)]
pub struct WebhookList {
    pub(super) webhooks: Vec<WebhookView>,
    pub(super) has_more: bool,
    pub(super) next_cursor: Option<String>,
}

impl Describe for WebhookList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = WebhookView::schema(schemas);
        schemas.named("WebhookList", |_| schema::page("webhooks", entry))
    }
}

/// A delivery.
#[derive(Debug, Serialize)]
pub struct DeliveryView {
    id: DeliveryId,
    webhook_id: WebhookId,
    event_id: EventId,
    r#type: String,
    status: DeliveryStatus,
    attempts_count: u32,
    next_attempt_at: Option<Moment>,
    response_status: Option<u16>,
    created_at: Moment,
    delivered_at: Option<Moment>,
}

impl DeliveryView {
    /// What is shown of a delivery.
    #[must_use]
    pub fn of(delivery: &Delivery) -> Self {
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook,
            event_id: delivery.event,
            r#type: delivery.kind.clone(),
            status: delivery.status,
            attempts_count: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(Moment),
            response_status: delivery.response_status,
            created_at: Moment(delivery.created_at),
            delivered_at: delivery.delivered_at.map(Moment),
        }
    }

    fn fields() -> Vec<(&'static str, Value)> {
        vec![
            ("id", schema::string("`whd_…`")),
            ("webhook_id", schema::string("The endpoint (`whk_…`)")),
            ("event_id", schema::string("The event (`evt_…`): `webhook-id` of what is posted")),
            ("type", schema::string("The event's name")),
            ("status", schema::words(DeliveryStatus::WORDS, "How far it is")),
            ("attempts_count", schema::count("Attempts made")),
            ("next_attempt_at", schema::nullable_time("When it is tried next")),
            ("response_status", schema::nullable_count("What the endpoint answered last")),
            ("created_at", schema::time("When it was made")),
            ("delivered_at", schema::nullable_time("When the endpoint took it")),
        ]
    }
}

impl Describe for DeliveryView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("WebhookDelivery", |_| {
            schema::object("An event on its way to an endpoint", Self::fields())
        })
    }
}

/// A page of deliveries.
#[derive(Debug, Serialize)]
pub struct DeliveryList {
    pub(super) deliveries: Vec<DeliveryView>,
    pub(super) has_more: bool,
    pub(super) next_cursor: Option<String>,
}

impl Describe for DeliveryList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = DeliveryView::schema(schemas);
        schemas.named("WebhookDeliveryList", |_| schema::page("deliveries", entry))
    }
}

/// An attempt.
#[derive(Debug, Serialize)]
struct AttemptView {
    n: u32,
    at: Moment,
    response_status: Option<u16>,
    response_body: String,
    duration_ms: u32,
    error: Option<String>,
}

/// A delivery with all that is known of it.
#[derive(Debug, Serialize)]
struct WholeDelivery {
    #[serde(flatten)]
    delivery: DeliveryView,
    payload: Option<Box<RawValue>>,
    attempts: Vec<AttemptView>,
}

/// A delivery by itself, whole.
#[derive(Debug, Serialize)]
pub struct OneDelivery {
    delivery: WholeDelivery,
}

impl OneDelivery {
    pub(super) fn of(delivery: &Delivery, body: Option<&[u8]>, attempts: Vec<DeliveryAttempt>) -> Self {
        let body = body.and_then(|body| std::str::from_utf8(body).ok());
        let payload = body.and_then(|body| RawValue::from_string(body.to_owned()).ok());
        let attempts = attempts.into_iter().map(|attempt| AttemptView {
            n: attempt.number,
            at: Moment(attempt.at),
            response_status: attempt.response_status,
            response_body: attempt.response_body,
            duration_ms: attempt.duration_ms,
            error: attempt.error,
        });
        let delivery = DeliveryView::of(delivery);
        Self { delivery: WholeDelivery { delivery, payload, attempts: attempts.collect() } }
    }
}

impl Describe for OneDelivery {
    fn schema(schemas: &mut Schemas) -> Value {
        let whole = schemas.named("WholeWebhookDelivery", |_| {
            let attempt = schema::object(
                "An attempt",
                [
                    ("n", schema::count("Its number, from 1 on")),
                    ("at", schema::time("When it began")),
                    ("response_status", schema::nullable_count("What was answered")),
                    ("response_body", schema::string("What was answered, at most 4 KB of it")),
                    ("duration_ms", schema::count("How long it took, in milliseconds")),
                    ("error", schema::nullable_string("Why nothing was answered")),
                ],
            );
            let mut fields = DeliveryView::fields();
            fields.push((
                "payload",
                json!({"type": ["object", "null"],
                       "description": "What is posted; null when the event is not kept any more"}),
            ));
            fields.push(("attempts", schema::list(attempt, "The attempts, oldest first")));
            schema::object("A delivery with what is posted and each attempt", fields)
        });
        schemas.named("OneWebhookDelivery", |_| schema::object("A delivery", [("delivery", whole)]))
    }
}

/// A delivery that was queued.
#[derive(Debug, Serialize)]
pub struct QueuedDelivery {
    pub(super) delivery: DeliveryView,
}

impl Describe for QueuedDelivery {
    const DONE: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        let delivery = DeliveryView::schema(schemas);
        schemas.named("QueuedWebhookDelivery", |_| {
            schema::object("A delivery that is on its way", [("delivery", delivery)])
        })
    }
}

/// How many deliveries were queued.
#[derive(Debug, Serialize)]
pub struct QueuedDeliveries {
    pub(super) queued: u64,
    pub(super) next_since: Option<Moment>,
}

impl Describe for QueuedDeliveries {
    const DONE: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("QueuedWebhookDeliveries", |_| {
            schema::object(
                "Deliveries that are on their way",
                [
                    ("queued", schema::count("How many")),
                    (
                        "next_since",
                        schema::nullable_time(
                            "Where there were too many for one request: `since` of the next",
                        ),
                    ),
                ],
            )
        })
    }
}
