//! JSON views of webhook endpoints and deliveries.

use message::address_pattern::AddressPattern;
use model::webhook::{DisabledReason, RetryPolicy, Webhook};
use model::webhook_delivery::{WebhookDelivery, WebhookDeliveryAttempt, WebhookDeliveryStatus};

use crate::prelude::*;

object_view! {
    /// A webhook endpoint
    #[schema(name = "Webhook")]
    pub struct WebhookView, pub fn from_webhook(webhook: &Webhook) {
        /// Id (`whk_…`)
        id: WebhookId = webhook.id,
        /// URL for deliveries
        url: String = webhook.url.clone(),
        /// The events that are sent; empty: all except those that must be named
        #[schema(items = {"type": "string", "description": "An event name"})]
        events: Vec<String> = webhook.events.clone(),
        /// Whether events are sent
        enabled: bool = webhook.enabled,
        /// Your description
        description: Option<String> = webhook.description.clone(),
        /// Only events of these domains are sent
        #[schema(items = {"type": "string", "description": "A domain id (`dom_…`)"})]
        domain_ids: Vec<DomainId> = webhook.domains.iter().map(|(id, _)| *id).collect(),
        /// Only mail received for these addresses is sent
        #[schema(items = {"type": "string", "description": "An address, `support+*@example.com` or `*@example.com`"})]
        inbound_addresses: Vec<AddressPattern> = webhook.addresses.clone(),
        /// Retry schedule
        retry_policy: RetryPolicy = webhook.retry,
        /// Start of the current failures; null if deliveries succeed
        failing_since: Option<JsonTimestamp> = webhook.failing_since.map(JsonTimestamp),
        /// Why the endpoint is disabled
        disabled_reason: Option<DisabledReason> = webhook.disabled_reason,
        /// Time of creation
        created_at: JsonTimestamp = JsonTimestamp(webhook.created_at),
        /// Time of the last change
        updated_at: JsonTimestamp = JsonTimestamp(webhook.updated_at),
    }
}

object_response! { "An endpoint", pub WebhookResponse { webhook: WebhookView } as "OneWebhook" }

/// An endpoint and its secret
#[derive(Serialize, ToSchema)]
#[schema(name = "WebhookWithSecret")]
pub struct WebhookWithSecretResponse {
    pub(super) webhook: WebhookView,
    /// Signing secret (`whsec_…`); it is not shown again
    pub(super) secret: String,
}

list_response! { pub WebhookList { webhooks: WebhookView } as "WebhookList" }

object_view! {
    /// The delivery of an event to an endpoint
    #[schema(name = "WebhookDelivery")]
    pub struct WebhookDeliveryView, pub fn from_delivery(delivery: &WebhookDelivery) {
        /// Id (`whd_…`)
        id: DeliveryId = delivery.id,
        /// The endpoint (`whk_…`)
        webhook_id: WebhookId = delivery.webhook,
        /// The event (`evt_…`), sent as `webhook-id`
        event_id: EventId = delivery.event,
        /// Event name
        r#type: String = delivery.kind.clone(),
        /// Status
        status: WebhookDeliveryStatus = delivery.status,
        /// Number of attempts
        attempts_count: u32 = delivery.attempts,
        /// Time of the next attempt
        next_attempt_at: Option<JsonTimestamp> = delivery.next_attempt_at.map(JsonTimestamp),
        /// Last HTTP status of the endpoint
        response_status: Option<u16> = delivery.response_status,
        /// Time of creation
        created_at: JsonTimestamp = JsonTimestamp(delivery.created_at),
        /// Time of delivery
        delivered_at: Option<JsonTimestamp> = delivery.delivered_at.map(JsonTimestamp),
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
