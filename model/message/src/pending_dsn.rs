//! A pending DSN: one recipient's entry, stored until a report ([`crate::dsn`]) includes it.
//!
//! It is written in the commit that settles the recipient and deleted in the commit that creates the report, so each
//! entry is reported once. Entries that are pending at the same time share one report.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::reply::{Enhanced, SmtpReply};

/// Delivery time expired (RFC 3463 3.5).
const EXPIRED: Enhanced = Enhanced::new(5, 4, 7);
/// No answer from host (RFC 3463 3.5).
const NO_ANSWER: Enhanced = Enhanced::new(4, 4, 1);

/// The Action field of a DSN (RFC 3464 2.3.3), the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DsnAction {
    /// Delivery was given up.
    Failed,
    /// Delivery is delayed, and is retried until this time.
    Delayed(Timestamp),
    /// The next host accepted the message, without confirming delivery: this server requests no success DSNs from it.
    Relayed,
}

impl DsnAction {
    pub fn action_field(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Delayed(_) => "delayed",
            Self::Relayed => "relayed",
        }
    }

    /// Subject of a report whose most severe action this is.
    pub fn subject_line(self) -> &'static str {
        match self {
            Self::Failed => "Undelivered mail returned to sender",
            Self::Delayed(_) => "Mail is delayed and will be retried",
            Self::Relayed => "Mail was relayed to the next host",
        }
    }

    /// Introductory text of a report; the recipients follow.
    pub fn intro_text(self) -> &'static str {
        match self {
            Self::Failed => "Your message could not be delivered to",
            Self::Delayed(_) => "You do not need to send your message again. It has not yet been delivered to",
            Self::Relayed => "Your message was relayed to the next mail host on its way to",
        }
    }

    fn status_class(self) -> u8 {
        match self {
            Self::Failed => 5,
            Self::Delayed(_) => 4,
            Self::Relayed => 2,
        }
    }
}

/// One recipient's entry of a DSN.
#[crate::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingDsn {
    /// Index of the recipient in the email.
    pub recipient: u16,
    pub address: Address,
    pub action: DsnAction,
    /// ORCPT, decoded (RFC 3461 4.2).
    pub original_recipient: Option<String>,
    /// Delivery was given up because its time was over, and not because of a permanent failure.
    pub expired: bool,
    /// Last reply of the destination, or a local one in its place.
    pub reply: Option<SmtpReply>,
    /// The host that sent the reply.
    pub remote_host: Option<String>,
    /// Human-readable cause, as a sentence.
    pub explanation: String,
    pub accepted_at: Timestamp,
    pub last_attempt_at: Timestamp,
    /// The sender used SMTPUTF8 and can therefore read reports in UTF-8 (RFC 6533).
    pub smtputf8: bool,
}

impl PendingDsn {
    /// Enhanced status code for the Status field. The action determines its class, even if the last reply had another
    /// class (RFC 3464 2.3.4, RFC 3463 2). The code of a reply without one is unspecific (RFC 3463 3.1).
    pub fn status_code(&self) -> Enhanced {
        let class = self.action.status_class();
        match (&self.reply, self.action) {
            _ if self.expired => EXPIRED,
            (Some(SmtpReply { enhanced: Some(code), .. }), _) => Enhanced { class, ..*code },
            (None, DsnAction::Delayed(_)) => NO_ANSWER,
            _ => Enhanced::new(class, 0, 0),
        }
    }
}
