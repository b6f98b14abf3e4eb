//! Draft: a message as a listener passes it to intake, before any check.
//!
//! The SMTP listener passes a complete message with an envelope, the HTTP API passes fields from which intake composes
//! a message. Both name the recipients, the category and the send options.

use std::time::Duration;

use jiff::Timestamp;
use message::address::{Address, Mailbox};
use message::compose::Composition;
use message::header::SubmittedMessage;

use crate::email::{Category, Ingress, Priority, Tag};
pub use crate::email::{OnSuppressed, SendOptions};
use crate::recipient::{DsnOptions, RecipientKind};
use crate::suppression::OPTIONAL_CATEGORIES;

/// A recipient as the listener received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftRecipient {
    pub address: Address,
    /// The header field that names the recipient. SMTP does not transmit it: intake reads the header.
    pub kind: RecipientKind,
    /// DSN options of RCPT (SMTP only).
    pub notify: DsnOptions,
}

/// A complete message, or the fields to compose one from.
#[derive(Debug)]
pub enum DraftContent {
    /// An RFC 5322 message from an SMTP client: dot-unstuffed, with CRLF line ends, at most fixed up (RFC 6409 8).
    Raw {
        message: SubmittedMessage,
        /// The `Received` field (RFC 5321 4.4) that the listener prepends, including CRLF.
        received: String,
    },
    /// Fields to compose a message from.
    Parts(Box<Composition>),
}

/// The parameters of an SMTP envelope. An API request has the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubmissionEnvelope {
    /// MAIL FROM; `None` for `<>`.
    pub reverse_path: Option<Address>,
    /// ENVID, decoded from xtext (RFC 3461 4.4).
    pub envelope_id: Option<String>,
    /// RET=FULL.
    pub return_full: bool,
    /// REQUIRETLS (RFC 8689): deliver over verified TLS only.
    pub require_tls: bool,
    /// `TLS-Required: No` (RFC 8689 5): deliver even if TLS requirements cannot be met.
    pub tls_optional: bool,
    /// SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// HOLDFOR or HOLDUNTIL (RFC 4865): not sent before this time.
    pub release: Option<FutureRelease>,
    /// BY (RFC 2852).
    pub deliver_by: Option<DeliverBy>,
    /// MT-PRIORITY (RFC 6710).
    pub priority: Option<Priority>,
}

/// The release time of a message (RFC 4865).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutureRelease {
    /// HOLDFOR.
    After(Duration),
    /// HOLDUNTIL.
    At(Timestamp),
}

/// The deliver-by mode of a message (RFC 2852).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverBy {
    /// Mode R: the message is returned if it is not delivered within this time.
    Return(Duration),
    /// Mode N: the sender gets a DSN if the message is not delivered within this many seconds; negative if the time has
    /// passed.
    Notify(i64),
}

impl SubmissionEnvelope {
    /// Seconds until the sender gets a DSN about a delay; `None` unless the mode is N.
    pub fn late_in_s(&self) -> Option<i64> {
        match self.deliver_by? {
            DeliverBy::Notify(within_s) => Some(within_s),
            DeliverBy::Return(_) => None,
        }
    }

    /// Merges the envelope's parameters into options from the message itself, which take precedence.
    pub fn send_options(&self, options: SendOptions, now: Timestamp) -> SendOptions {
        // A time that was in the future at MAIL may have passed at the final dot: then the message is sent at once.
        let released_at = self.release.and_then(|release| match release {
            FutureRelease::After(wait) => Some(now.checked_add(wait).unwrap_or(Timestamp::MAX)),
            FutureRelease::At(at) => Some(at).filter(|at| *at > now),
        });
        let given_up_after = match self.deliver_by {
            Some(DeliverBy::Return(within)) => Some(within),
            Some(DeliverBy::Notify(_)) | None => None,
        };
        SendOptions {
            scheduled_at: options.scheduled_at.or(released_at),
            expires_in: options.expires_in.or(given_up_after),
            priority: options.priority.or(self.priority),
            ..options
        }
    }
}

/// A message as a listener passes it to intake.
#[derive(Debug)]
pub struct Draft {
    pub ingress: Ingress,
    /// From, if the listener has parsed it: the API has; for SMTP, intake reads the header.
    pub from: Option<Mailbox>,
    /// The SMTP envelope; default for the API.
    pub envelope: SubmissionEnvelope,
    /// All recipients without duplicates; at least one.
    pub recipients: Vec<DraftRecipient>,
    pub content: DraftContent,
    pub tags: Vec<Tag>,
    pub category: Category,
    pub options: SendOptions,
}

impl Draft {
    /// True if the email counts against the account's plan. The service's own email does not, unless it is marked as
    /// metered.
    pub fn is_metered(&self) -> bool {
        self.ingress != Ingress::System || self.options.metered
    }

    /// Bytes of subject and bodies, or of the complete message; without attachments.
    pub fn text_bytes(&self) -> usize {
        match &self.content {
            DraftContent::Raw { message, .. } => message.bytes().len(),
            DraftContent::Parts(parts) => {
                let bodies = parts.html.iter().chain(&parts.text).map(String::len);
                parts.subject.len() + bodies.sum::<usize>()
            }
        }
    }

    /// True if managed unsubscribe is enabled, by the option or by the category.
    pub fn manages_unsubscribe(&self) -> bool {
        self.options.unsubscribe.unwrap_or(OPTIONAL_CATEGORIES.contains(&self.category))
    }
}
