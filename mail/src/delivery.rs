//! A delivery: one event on its way to one endpoint, and how each attempt went (completions-email.md 2.11).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Subject;
use crate::id::{AccountId, DeliveryId, EventId, WebhookId};

/// How much of an answer's body is kept.
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024;

/// How far a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookDeliveryStatus {
    /// It is tried, or tried again.
    Pending,
    /// The endpoint took it.
    Delivered,
    /// It was given up.
    Failed,
}

impl WebhookDeliveryStatus {
    /// The words for them.
    pub const WORDS: &[&str] = &["pending", "delivered", "failed"];

    /// By its word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "pending" => Some(Self::Pending),
            "delivered" => Some(Self::Delivered),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// An event on its way to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// Whose it is.
    pub account: AccountId,
    /// Where to.
    pub webhook: WebhookId,
    /// The event: what receivers drop doubles by.
    pub event: EventId,
    /// The event's name.
    pub kind: String,
    /// What the event is about: with its id, where its row lies.
    pub subject: Option<Subject>,
    /// The body, where there is no event: of a test.
    pub body: Option<String>,
    /// How far it is.
    pub status: WebhookDeliveryStatus,
    /// Attempts made.
    pub attempts: u32,
    /// Asked for by hand: one attempt, whatever the ladder.
    pub by_hand: bool,
    /// When it is tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// What the endpoint said last.
    pub response_status: Option<u16>,
    /// When the delivery was made.
    pub created_at: Timestamp,
    /// When the endpoint took it.
    pub delivered_at: Option<Timestamp>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDeliveryAttempt {
    /// Its number, from 1 on.
    pub number: u32,
    /// When it began.
    pub at: Timestamp,
    /// The status answered.
    pub response_status: Option<u16>,
    /// The beginning of what was answered, at most [`RESPONSE_BYTES_MAX`].
    pub response_body: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
    /// Why nothing was answered, or why it was not tried.
    pub error: Option<String>,
}
