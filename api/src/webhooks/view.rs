//! JSON views of webhook endpoints and deliveries.

use http::StatusCode;
use mail::address_pattern::AddressPattern;
use mail::id::{DeliveryId, DomainId, EventId, WebhookId};
use mail::webhook::{DisabledReason, RetryPolicy, Webhook};
use mail::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt, WebhookDeliveryStatus};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json_timestamp::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// An endpoint, without its secret.
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
    failing_since: Option<JsonTimestamp>,
    disabled_reason: Option<DisabledReason>,
    created_at: JsonTimestamp,
    updated_at: JsonTimestamp,
}

impl WebhookView {
    #[must_use]
    pub fn from_webhook(webhook: &Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url.clone(),
            events: webhook.events.clone(),
            enabled: webhook.enabled,
            description: webhook.description.clone(),
            domain_ids: webhook.domains.iter().map(|(id, _)| *id).collect(),
            inbound_addresses: webhook.addresses.clone(),
            retry_policy: webhook.retry,
            failing_since: webhook.failing_since.map(JsonTimestamp),
            disabled_reason: webhook.disabled_reason,
            created_at: JsonTimestamp(webhook.created_at),
            updated_at: JsonTimestamp(webhook.updated_at),
        }
    }
}

impl ToSchema for WebhookView {
    fn schema(schemas: &mut Schemas) -> Value {
        let mut reason = schema::string_enum(DisabledReason::WORDS, "Why the endpoint is disabled");
        schema::allow_null(&mut reason);
        schemas.component("Webhook", |_| {
            schema::object(
                "A webhook endpoint",
                [
                    ("id", schema::string("Id (`whk_…`)")),
                    ("url", schema::string("URL for deliveries")),
                    (
                        "events",
                        schema::list(
                            schema::string("An event name"),
                            "The events that are sent; empty: all except those that must be named",
                        ),
                    ),
                    ("enabled", schema::boolean("Whether events are sent")),
                    ("description", schema::nullable_string("Your description")),
                    (
                        "domain_ids",
                        schema::list(schema::string("A domain id (`dom_…`)"), "Only events of these domains are sent"),
                    ),
                    (
                        "inbound_addresses",
                        schema::list(
                            schema::string("An address, `support+*@example.com` or `*@example.com`"),
                            "Only mail received for these addresses is sent",
                        ),
                    ),
                    ("retry_policy", schema::string_enum(RetryPolicy::WORDS, "Retry schedule")),
                    (
                        "failing_since",
                        schema::nullable_time("Start of the current failures; null if deliveries succeed"),
                    ),
                    ("disabled_reason", reason),
                    ("created_at", schema::time("Time of creation")),
                    ("updated_at", schema::time("Time of the last change")),
                ],
            )
        })
    }
}

#[derive(Debug, Serialize)]
pub struct WebhookResponse {
    webhook: WebhookView,
}

impl WebhookResponse {
    pub(super) fn from_webhook(webhook: &Webhook) -> Self {
        Self { webhook: WebhookView::from_webhook(webhook) }
    }
}

impl ToSchema for WebhookResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let webhook = WebhookView::schema(schemas);
        schemas.component("OneWebhook", |_| schema::object("An endpoint", [("webhook", webhook)]))
    }
}

/// An endpoint with its new secret.
#[derive(Serialize)]
pub struct WebhookWithSecretResponse {
    pub(super) webhook: WebhookView,
    pub(super) secret: String,
}

impl ToSchema for WebhookWithSecretResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let webhook = WebhookView::schema(schemas);
        schemas.component("WebhookWithSecret", |_| {
            let secret = schema::string("Signing secret (`whsec_…`); it is not shown again");
            schema::object("An endpoint and its secret", [("webhook", webhook), ("secret", secret)])
        })
    }
}

#[derive(Debug, Serialize)]
pub struct WebhookList {
    pub(super) webhooks: Vec<WebhookView>,
    pub(super) has_more: bool,
    pub(super) next_cursor: Option<String>,
}

impl ToSchema for WebhookList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = WebhookView::schema(schemas);
        schemas.component("WebhookList", |_| schema::list_page("webhooks", entry))
    }
}

/// A delivery in a list.
#[derive(Debug, Serialize)]
pub struct WebhookDeliveryView {
    id: DeliveryId,
    webhook_id: WebhookId,
    event_id: EventId,
    r#type: String,
    status: WebhookDeliveryStatus,
    attempts_count: u32,
    next_attempt_at: Option<JsonTimestamp>,
    response_status: Option<u16>,
    created_at: JsonTimestamp,
    delivered_at: Option<JsonTimestamp>,
}

impl WebhookDeliveryView {
    #[must_use]
    pub fn from_delivery(delivery: &WebhookDelivery) -> Self {
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook,
            event_id: delivery.event,
            r#type: delivery.kind.clone(),
            status: delivery.status,
            attempts_count: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(JsonTimestamp),
            response_status: delivery.response_status,
            created_at: JsonTimestamp(delivery.created_at),
            delivered_at: delivery.delivered_at.map(JsonTimestamp),
        }
    }

    fn fields() -> Vec<(&'static str, Value)> {
        vec![
            ("id", schema::string("Id (`whd_…`)")),
            ("webhook_id", schema::string("The endpoint (`whk_…`)")),
            ("event_id", schema::string("The event (`evt_…`), sent as `webhook-id`")),
            ("type", schema::string("Event name")),
            ("status", schema::string_enum(WebhookDeliveryStatus::WORDS, "Status")),
            ("attempts_count", schema::count("Number of attempts")),
            ("next_attempt_at", schema::nullable_time("Time of the next attempt")),
            ("response_status", schema::nullable_count("Last HTTP status of the endpoint")),
            ("created_at", schema::time("Time of creation")),
            ("delivered_at", schema::nullable_time("Time of delivery")),
        ]
    }
}

impl ToSchema for WebhookDeliveryView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas
            .component("WebhookDelivery", |_| schema::object("The delivery of an event to an endpoint", Self::fields()))
    }
}

#[derive(Debug, Serialize)]
pub struct WebhookDeliveryList {
    pub(super) deliveries: Vec<WebhookDeliveryView>,
    pub(super) has_more: bool,
    pub(super) next_cursor: Option<String>,
}

impl ToSchema for WebhookDeliveryList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = WebhookDeliveryView::schema(schemas);
        schemas.component("WebhookDeliveryList", |_| schema::list_page("deliveries", entry))
    }
}

/// One HTTP request of a delivery.
#[derive(Debug, Serialize)]
struct WebhookAttemptView {
    n: u32,
    at: JsonTimestamp,
    response_status: Option<u16>,
    response_body: String,
    duration_ms: u32,
    error: Option<String>,
}

/// A delivery with its body and attempts.
#[derive(Debug, Serialize)]
struct WebhookDeliveryDetail {
    #[serde(flatten)]
    delivery: WebhookDeliveryView,
    payload: Option<Box<RawValue>>,
    attempts: Vec<WebhookAttemptView>,
}

/// The response of `GET /webhooks/{id}/deliveries/{delivery_id}`.
#[derive(Debug, Serialize)]
pub struct WebhookDeliveryResponse {
    delivery: WebhookDeliveryDetail,
}

impl WebhookDeliveryResponse {
    pub(super) fn from_delivery(
        delivery: &WebhookDelivery,
        body: Option<&[u8]>,
        attempts: Vec<WebhookDeliveryAttempt>,
    ) -> Self {
        let body = body.and_then(|body| std::str::from_utf8(body).ok());
        let payload = body.and_then(|body| RawValue::from_string(body.to_owned()).ok());
        let attempts = attempts.into_iter().map(|attempt| WebhookAttemptView {
            n: attempt.number,
            at: JsonTimestamp(attempt.at),
            response_status: attempt.response_status,
            response_body: attempt.response_body,
            duration_ms: attempt.duration_ms,
            error: attempt.error,
        });
        let delivery = WebhookDeliveryView::from_delivery(delivery);
        Self { delivery: WebhookDeliveryDetail { delivery, payload, attempts: attempts.collect() } }
    }
}

impl ToSchema for WebhookDeliveryResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let detail = schemas.component("WholeWebhookDelivery", |_| {
            let attempt = schema::object(
                "An attempt",
                [
                    ("n", schema::count("Attempt number, from 1")),
                    ("at", schema::time("Start time")),
                    ("response_status", schema::nullable_count("HTTP status")),
                    ("response_body", schema::string("First 4 KB of the response body")),
                    ("duration_ms", schema::count("Duration in milliseconds")),
                    ("error", schema::nullable_string("Why there was no response")),
                ],
            );
            let mut fields = WebhookDeliveryView::fields();
            fields.push((
                "payload",
                json!({"type": ["object", "null"],
                       "description": "The body; null when the event is no longer stored"}),
            ));
            fields.push(("attempts", schema::list(attempt, "The attempts, oldest first")));
            schema::object("A delivery with its body and attempts", fields)
        });
        schemas.component("OneWebhookDelivery", |_| schema::object("A delivery", [("delivery", detail)]))
    }
}

#[derive(Debug, Serialize)]
pub struct QueuedDeliveryResponse {
    pub(super) delivery: WebhookDeliveryView,
}

impl ToSchema for QueuedDeliveryResponse {
    const SUCCESS_STATUS: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        let delivery = WebhookDeliveryView::schema(schemas);
        schemas.component("QueuedWebhookDelivery", |_| schema::object("A queued delivery", [("delivery", delivery)]))
    }
}

/// The response of a replay of a time range.
#[derive(Debug, Serialize)]
pub struct QueuedDeliveriesResponse {
    pub(super) queued: u64,
    pub(super) next_since: Option<JsonTimestamp>,
}

impl ToSchema for QueuedDeliveriesResponse {
    const SUCCESS_STATUS: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("QueuedWebhookDeliveries", |_| {
            schema::object(
                "The queued deliveries",
                [
                    ("queued", schema::count("Number of queued deliveries")),
                    (
                        "next_since",
                        schema::nullable_time("`since` of the next request, if there were too many deliveries for one"),
                    ),
                ],
            )
        })
    }
}
