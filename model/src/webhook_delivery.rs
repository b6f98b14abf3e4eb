//! Webhook delivery: one event for one endpoint, and its attempts.

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};

use crate::event::Subject;
use crate::id::{AccountId, DeliveryId, EventId, WebhookId};

/// Stored bytes of a response body; the rest is dropped.
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024;

words! {
    WebhookDeliveryStatus {
        /// Waiting for its first attempt or a retry.
        Pending = "pending",
        /// Acknowledged by the endpoint.
        Delivered = "delivered",
        /// Given up after the last attempt.
        Failed = "failed",
    }
}

/// The delivery of one event to one endpoint.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    pub id: DeliveryId,
    pub account: AccountId,
    /// The endpoint.
    pub webhook: WebhookId,
    /// The event's id, by which receivers deduplicate.
    pub event: EventId,
    pub kind: String,
    /// The subject of the event; with the event id it is the key of the event's row.
    pub subject: Option<Subject>,
    /// The body of a test delivery, which has no stored event.
    pub body: Option<String>,
    pub status: WebhookDeliveryStatus,
    /// Number of attempts made.
    pub attempts: u32,
    /// True for a manual delivery: one attempt without retries.
    pub by_hand: bool,
    pub next_attempt_at: Option<Timestamp>,
    /// HTTP status of the last response.
    pub response_status: Option<u16>,
    pub created_at: Timestamp,
    /// When the endpoint acknowledged it.
    pub delivered_at: Option<Timestamp>,
}

impl WebhookDelivery {
    /// A delivery without subject and body, whose first attempt is due at once.
    pub fn new(
        id: DeliveryId,
        account: AccountId,
        webhook: WebhookId,
        event: EventId,
        kind: &str,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            account,
            webhook,
            event,
            kind: kind.to_owned(),
            subject: None,
            body: None,
            status: WebhookDeliveryStatus::Pending,
            attempts: 0,
            by_hand: false,
            next_attempt_at: Some(now),
            response_status: None,
            created_at: now,
            delivered_at: None,
        }
    }
}

/// One HTTP request of a delivery.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDeliveryAttempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// When it began.
    pub at: Timestamp,
    /// HTTP status of the response.
    pub response_status: Option<u16>,
    /// Beginning of the response body, at most [`RESPONSE_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub response_body: String,
    pub duration_ms: u32,
    /// Why there was no response, or no request.
    pub error: Option<String>,
}
