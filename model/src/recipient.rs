//! A recipient: one address of an email with its own state.
//!
//! `[scheduled → held* →] queued → deferred* → delivered | bounced | failed`, or `suppressed` from the start.
//!
//! Each recipient reaches exactly one terminal state, at the latest when its delivery period ends. One later transition
//! is possible: a late DSN can change delivered to bounced. The state of the email is derived from its recipients
//! (see [`crate::email`]) and not stored.

use jiff::Timestamp;
use message::address::Address;
use message::reply::SmtpReply;
use serde::{Deserialize, Serialize};

use crate::event::EventKind;

/// The header field that names the recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientKind {
    To,
    Cc,
    /// In the envelope only.
    Bcc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientState {
    /// Waiting for its scheduled time.
    Scheduled,
    /// Past its scheduled time, and held.
    Held,
    /// Waiting for the first attempt.
    Queued,
    /// Waiting for a retry.
    Deferred,
    /// The destination accepted the message.
    Delivered,
    /// Rejected by the recipient's server, or undeliverable there.
    Bounced,
    /// Given up for a reason that is not the recipient's.
    Failed,
    /// Not sent: the address is suppressed or opted out.
    Suppressed,
    /// Removed from the queue by the operator or the customer.
    Cancelled,
}

impl RecipientState {
    /// Returns whether delivery is finished. A late DSN can still turn delivered into bounced.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Held | Self::Queued | Self::Deferred)
    }
}

/// DSN options that a client requested for a recipient (RFC 3461 4.1, 4.2).
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DsnOptions {
    /// NOTIFY=NEVER.
    pub never: bool,
    /// NOTIFY names SUCCESS.
    pub success: bool,
    /// NOTIFY is present without FAILURE.
    pub not_failure: bool,
    /// NOTIFY names DELAY.
    pub delay: bool,
    /// ORCPT: address type, `;`, address, decoded from xtext (RFC 3461 4.2).
    pub original_recipient: Option<String>,
}

impl DsnOptions {
    /// Returns whether no option was given, so that the row can omit them.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a failure DSN is sent: yes unless NOTIFY excludes it (RFC 3461 4.1).
    pub fn wants_failure(&self) -> bool {
        !self.never && !self.not_failure
    }
}

/// One address of an email.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Index in the email, from 0.
    pub index: u16,
    /// The envelope address.
    pub address: Address,
    pub kind: RecipientKind,
    pub state: RecipientState,
    /// Number of delivery attempts.
    pub attempts: u32,
    /// The destination's last reply.
    pub last_response: Option<SmtpReply>,
    /// Cause of the last failure without a remote reply: no response, or a local decision.
    pub error: Option<String>,
    /// The host that sent the last reply.
    pub mx_host: Option<String>,
    /// The last event about this recipient, and its time.
    pub last_event: (EventKind, Timestamp),
    pub delivered_at: Option<Timestamp>,
    pub bounced_at: Option<Timestamp>,
    /// Time of the recipient's spam complaint.
    pub complained_at: Option<Timestamp>,
    pub next_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub notify: DsnOptions,
}
