//! A recipient: one address of an email, with a state of its own.
//!
//! `[scheduled → held* →] queued → deferred* → delivered | bounced | failed`, or `suppressed` from the start; each recipient reaches exactly one terminal
//! state, at the latest when its time is up. One step is left after that: what was delivered may bounce, when a
//! report of it comes back late. What an email as a whole has come to is derived from
//! its recipients (see [`crate::email`]) and stored nowhere.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::event::EventKind;
use crate::reply::SmtpReply;

/// In which header field the recipient stands (or, for `Bcc`, does not).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientKind {
    /// `To`.
    To,
    /// `Cc`.
    Cc,
    /// In the envelope only.
    Bcc,
}

/// What has become of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientState {
    /// To be sent later.
    Scheduled,
    /// Due, and not to be sent yet.
    Held,
    /// Not tried yet.
    Queued,
    /// Tried, put off.
    Deferred,
    /// The destination took it.
    Delivered,
    /// Refused by, or undeliverable at, the recipient's server.
    Bounced,
    /// Given up for a reason that is not the recipient's.
    Failed,
    /// Not sent to: the address is suppressed, or has opted out.
    Suppressed,
    /// Taken out of the queue by the operator or the customer.
    Cancelled,
}

impl RecipientState {
    /// Whether nothing more will happen to the recipient by itself.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Held | Self::Queued | Self::Deferred)
    }
}

/// What a client asked to be told about a recipient (RFC 3461 4.1, 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DsnOptions {
    /// NOTIFY=NEVER was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
    /// NOTIFY named SUCCESS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub success: bool,
    /// NOTIFY was given and did not name FAILURE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_failure: bool,
    /// NOTIFY named DELAY.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delay: bool,
    /// ORCPT: address type, `;`, the address, decoded from xtext (RFC 3461 4.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_recipient: Option<String>,
}

impl DsnOptions {
    /// Whether nothing was asked: the row need not say so.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the sender is to be told when delivery fails: yes, unless another wish was given (RFC 3461 4.1).
    #[must_use]
    pub fn wants_failure(&self) -> bool {
        !self.never && !self.not_failure
    }
}

/// One address of an email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// Its place in the email, from 0.
    pub index: u16,
    /// The envelope address.
    pub address: Address,
    /// In which header field it stands.
    pub kind: RecipientKind,
    /// What has become of it.
    pub state: RecipientState,
    /// How often delivery was tried.
    pub attempts: u32,
    /// What the destination said last.
    pub last_response: Option<SmtpReply>,
    /// Why the last attempt failed, where no host said so: nobody answered, or we refused it ourselves.
    pub error: Option<String>,
    /// The host that said it.
    pub mx_host: Option<String>,
    /// The last event about this recipient, and when.
    pub last_event: (EventKind, Timestamp),
    /// When the destination took it.
    pub delivered_at: Option<Timestamp>,
    /// When it bounced.
    pub bounced_at: Option<Timestamp>,
    /// When the recipient called it spam.
    pub complained_at: Option<Timestamp>,
    /// When it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// What whoever handed it in asked to be told.
    pub notify: DsnOptions,
}
