//! A draft: what a door makes of what it was handed, before the hall has looked at it.
//!
//! Both doors make one. The SMTP door has a finished message and an envelope; the API door has
//! fields that are still to be composed. What they share is who it is for and what it is for.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use crate::address::{Address, Mailbox};
use crate::compose::Composition;
use crate::email::{Category, Ingress, Priority, SourceTemplate, Tag};
use crate::id::{AutomationId, EmailId, RunId};
use crate::recipient::{DsnOptions, RecipientKind};
use crate::suppression::OPTIONAL_CATEGORIES;

/// A recipient as the door was told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftRecipient {
    /// The envelope address.
    pub address: Address,
    /// In which header field it stands. SMTP does not say: the hall reads the header.
    pub kind: RecipientKind,
    /// What the client asked to be told (SMTP only).
    pub notify: DsnOptions,
}

/// The message, finished or to be made.
#[derive(Debug)]
pub enum DraftContent {
    /// A message of RFC 5322 as an SMTP client sent it: dot-unstuffed, CRLF line ends, at most
    /// fixed up (RFC 6409 8).
    Raw {
        /// The bytes.
        message: Bytes,
        /// The `Received` field (RFC 5321 4.4) that the door puts on top, CRLF included.
        received: String,
    },
    /// Fields to compose a message from.
    Parts(Box<Composition>),
}

/// The part of an SMTP envelope that an API send has not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubmissionEnvelope {
    /// MAIL FROM; none for `<>`.
    pub reverse_path: Option<Address>,
    /// ENVID, decoded from xtext (RFC 3461 4.4).
    pub envelope_id: Option<String>,
    /// RET=FULL.
    pub return_full: bool,
    /// REQUIRETLS (RFC 8689): go by verified TLS or not at all.
    pub require_tls: bool,
    /// `TLS-Required: No` (RFC 8689 5): whatever is asked of TLS on its way, it is to arrive.
    pub tls_optional: bool,
    /// SMTPUTF8 was given (RFC 6531).
    pub smtputf8: bool,
    /// HOLDFOR or HOLDUNTIL (RFC 4865): not to be sent before.
    pub release: Option<FutureRelease>,
    /// BY (RFC 2852).
    pub deliver_by: Option<DeliverBy>,
    /// MT-PRIORITY (RFC 6710).
    pub priority: Option<Priority>,
}

/// When a message is to be released (RFC 4865).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutureRelease {
    /// After so long.
    After(Duration),
    /// Then.
    At(Timestamp),
}

/// What becomes of a message that is not delivered in time (RFC 2852).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverBy {
    /// It is given up after so long.
    Return(Duration),
    /// The sender is told that it is late: after so many seconds, which may be over.
    Notify(i64),
}

impl SubmissionEnvelope {
    /// After how many seconds its sender wants to be told that it is late.
    #[must_use]
    pub fn late_in_s(&self) -> Option<i64> {
        match self.deliver_by? {
            DeliverBy::Notify(within_s) => Some(within_s),
            DeliverBy::Return(_) => None,
        }
    }

    /// What it asks beyond what the message itself asks, which counts first.
    #[must_use]
    pub fn send_options(&self, wishes: SendOptions, now: Timestamp) -> SendOptions {
        // What was still to come when MAIL was said may be there at the final dot: then it goes at once.
        let released_at = self.release.and_then(|release| match release {
            FutureRelease::After(wait) => Some(now.checked_add(wait).unwrap_or(Timestamp::MAX)),
            FutureRelease::At(at) => Some(at).filter(|at| *at > now),
        });
        let given_up_after = match self.deliver_by {
            Some(DeliverBy::Return(within)) => Some(within),
            Some(DeliverBy::Notify(_)) | None => None,
        };
        SendOptions {
            scheduled_at: wishes.scheduled_at.or(released_at),
            expires_in: wishes.expires_in.or(given_up_after),
            priority: wishes.priority.or(self.priority),
            ..wishes
        }
    }
}

/// What becomes of an email when some of its recipients are suppressed or have opted out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnSuppressed {
    /// Nobody gets it.
    #[default]
    Fail,
    /// The others get it.
    Skip,
}

/// What may be asked of a send; the default asks nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendOptions {
    /// To be sent then, and not now.
    pub scheduled_at: Option<Timestamp>,
    /// Worthless after so long: it goes first, and is given up then.
    pub expires_in: Option<Duration>,
    /// How pressing it is beside other mail; where nothing is said, the category decides.
    pub priority: Option<Priority>,
    /// What becomes of it when some recipients are suppressed.
    pub on_suppressed: OnSuppressed,
    /// Managed unsubscribe; where nothing is said, the category decides.
    pub unsubscribe: Option<bool>,
    /// The email that it is sent again of.
    pub resent_from: Option<EmailId>,
    /// The template that it was made from.
    pub template: Option<SourceTemplate>,
    /// The run of an automation that sends it.
    pub run: Option<(AutomationId, RunId)>,
    /// It uses up the account's plan although the service writes it: it is about the account's own affairs.
    pub metered: bool,
}

/// What a door hands to the hall.
#[derive(Debug)]
pub struct Draft {
    /// By which door it came.
    pub ingress: Ingress,
    /// The author, when the door knows it (the API does; for SMTP the hall reads `From`).
    pub from: Option<Mailbox>,
    /// SMTP's envelope; the default for the API.
    pub envelope: SubmissionEnvelope,
    /// Everybody who is to get it, without duplicates, at least one.
    pub recipients: Vec<DraftRecipient>,
    /// The message.
    pub content: DraftContent,
    /// What the customer hung on it.
    pub tags: Vec<Tag>,
    /// What it is for.
    pub category: Category,
    /// What is asked beyond that.
    pub options: SendOptions,
}

impl Draft {
    /// Whether it uses up the account's plan: what the service writes for itself does not.
    #[must_use]
    pub fn is_metered(&self) -> bool {
        self.ingress != Ingress::System || self.options.metered
    }

    /// Whether managed unsubscribe is on: where nothing is said, the category decides.
    #[must_use]
    pub fn manages_unsubscribe(&self) -> bool {
        self.options.unsubscribe.unwrap_or(OPTIONAL_CATEGORIES.contains(&self.category))
    }
}
