//! An event: a fact in the past tense, recorded in the commit that made it true.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::id::{AccountId, EmailId, EventId};

/// What happened. The names are the contract's (email-api.md, "Webhook events").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// Accepted for delivery: it is on disk.
    #[serde(rename = "email.sent")]
    Sent,
    /// Accepted, to be sent at a time.
    #[serde(rename = "email.scheduled")]
    Scheduled,
    /// Not sent: a recipient is suppressed or opted out.
    #[serde(rename = "email.suppressed")]
    Suppressed,
    /// A destination took it.
    #[serde(rename = "email.delivered")]
    Delivered,
    /// Put off: a destination said "not now", or could not be reached.
    #[serde(rename = "email.delivery_delayed")]
    DeliveryDelayed,
    /// Refused by, or undeliverable at, the recipient's server.
    #[serde(rename = "email.bounced")]
    Bounced,
    /// Given up for a reason that is not the recipient's.
    #[serde(rename = "email.failed")]
    Failed,
    /// Taken out of the queue.
    #[serde(rename = "email.cancelled")]
    Cancelled,
    /// A recipient completed a managed unsubscribe.
    #[serde(rename = "contact.unsubscribed")]
    Unsubscribed,
    /// The pixel was fetched.
    #[serde(rename = "email.opened")]
    Opened,
    /// A tracked link was followed.
    #[serde(rename = "email.clicked")]
    Clicked,
}

impl EventKind {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "email.sent",
            Self::Scheduled => "email.scheduled",
            Self::Suppressed => "email.suppressed",
            Self::Delivered => "email.delivered",
            Self::DeliveryDelayed => "email.delivery_delayed",
            Self::Bounced => "email.bounced",
            Self::Failed => "email.failed",
            Self::Cancelled => "email.cancelled",
            Self::Unsubscribed => "contact.unsubscribed",
            Self::Opened => "email.opened",
            Self::Clicked => "email.clicked",
        }
    }
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id: the key by which receivers drop what they have seen.
    pub id: EventId,
    /// Whose it is.
    pub account: AccountId,
    /// The email that it is about.
    pub email: EmailId,
    /// What happened.
    pub kind: EventKind,
    /// The recipient that it is about; none when it is about all of them.
    pub recipient: Option<Address>,
    /// When it happened.
    pub created_at: Timestamp,
    /// Particulars by kind: a JSON object (completions-email.md 2.10).
    pub detail: serde_json::Value,
}
