//! JSON views of webhook endpoints and deliveries.

use message::address_pattern::AddressPattern;
use model::webhook::{DisabledReason, RetryPolicy, Webhook};
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt, WebhookDeliveryStatus};

use crate::prelude::*;

/// A webhook endpoint
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Webhook")]
pub struct WebhookView {
    /// Id (`whk_…`)
    id: WebhookId,
    /// URL for deliveries
    url: String,
    /// The events that are sent; empty: all except those that must be named
    #[schema(items = {"type": "string", "description": "An event name"})]
    events: Vec<String>,
    /// Whether events are sent
    enabled: bool,
    /// Your description
    description: Option<String>,
    /// Only events of these domains are sent
    #[schema(items = {"type": "string", "description": "A domain id (`dom_…`)"})]
    domain_ids: Vec<DomainId>,
    /// Only mail received for these addresses is sent
    #[schema(items = {"type": "string", "description": "An address, `support+*@example.com` or `*@example.com`"})]
    inbound_addresses: Vec<AddressPattern>,
    /// Retry schedule
    retry_policy: RetryPolicy,
    /// Start of the current failures; null if deliveries succeed
    failing_since: Option<JsonTimestamp>,
    /// Why the endpoint is disabled
    disabled_reason: Option<DisabledReason>,
    /// Time of creation
    created_at: JsonTimestamp,
    /// Time of the last change
    updated_at: JsonTimestamp,
}

impl WebhookView {
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

object_response! { "An endpoint", pub WebhookResponse { webhook: WebhookView } as "OneWebhook" }

impl WebhookResponse {
    pub(super) fn from_webhook(webhook: &Webhook) -> Self {
        Self { webhook: WebhookView::from_webhook(webhook) }
    }
}

/// An endpoint and its secret
#[derive(Serialize, ToSchema)]
#[schema(name = "WebhookWithSecret")]
pub struct WebhookWithSecretResponse {
    pub(super) webhook: WebhookView,
    /// Signing secret (`whsec_…`); it is not shown again
    pub(super) secret: String,
}

list_response! { pub WebhookList { webhooks: WebhookView } as "WebhookList" }

/// The delivery of an event to an endpoint
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "WebhookDelivery")]
pub struct WebhookDeliveryView {
    /// Id (`whd_…`)
    id: DeliveryId,
    /// The endpoint (`whk_…`)
    webhook_id: WebhookId,
    /// The event (`evt_…`), sent as `webhook-id`
    event_id: EventId,
    /// Event name
    r#type: String,
    /// Status
    status: WebhookDeliveryStatus,
    /// Number of attempts
    attempts_count: u32,
    /// Time of the next attempt
    next_attempt_at: Option<JsonTimestamp>,
    /// Last HTTP status of the endpoint
    response_status: Option<u16>,
    /// Time of creation
    created_at: JsonTimestamp,
    /// Time of delivery
    delivered_at: Option<JsonTimestamp>,
}

impl WebhookDeliveryView {
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
}

list_response! { pub WebhookDeliveryList { deliveries: WebhookDeliveryView } as "WebhookDeliveryList" }

/// An attempt
#[derive(Debug, Serialize, ToSchema)]
struct WebhookAttemptView {
    /// Attempt number, from 1
    n: u32,
    /// Start time
    at: JsonTimestamp,
    /// HTTP status
    response_status: Option<u16>,
    /// First 4 KB of the response body
    response_body: String,
    /// Duration in milliseconds
    duration_ms: u32,
    /// Why there was no response
    error: Option<String>,
}

/// A delivery with its body and attempts
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "WholeWebhookDelivery")]
pub struct WebhookDeliveryDetail {
    #[serde(flatten)]
    delivery: WebhookDeliveryView,
    /// The body; null when the event is no longer stored
    #[schema(as = String, type = ["object", "null"])]
    payload: Option<Box<RawValue>>,
    /// The attempts, oldest first
    attempts: Vec<WebhookAttemptView>,
}

object_response! { "A delivery", pub WebhookDeliveryResponse { delivery: WebhookDeliveryDetail } as "OneWebhookDelivery" }

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

/// A queued delivery
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "QueuedWebhookDelivery", status = ACCEPTED)]
pub struct QueuedDeliveryResponse {
    pub(super) delivery: WebhookDeliveryView,
}

/// The queued deliveries
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "QueuedWebhookDeliveries", status = ACCEPTED)]
pub struct QueuedDeliveriesResponse {
    /// Number of queued deliveries
    pub(super) queued: u64,
    /// `since` of the next request, if there were too many deliveries for one
    pub(super) next_since: Option<JsonTimestamp>,
}
