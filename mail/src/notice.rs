//! A notice: what a sender is to be told of one recipient, kept until a report ([`crate::dsn`]) tells it.
//!
//! It is written in the commit that settles the recipient, and taken away in the one that makes the report:
//! so everything is told once, and what is settled together is told together.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::reply::SmtpReply;

/// What became of it (RFC 3464 2.3.3), the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DsnAction {
    /// It was given up.
    Failed,
    /// It is late, and will be tried until then.
    Delayed(Timestamp),
    /// The next host has it. That is all that is known: reports of success are not asked of it.
    Relayed,
}

impl DsnAction {
    /// The word for it in a report.
    #[must_use]
    pub fn action_field(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Delayed(_) => "delayed",
            Self::Relayed => "relayed",
        }
    }

    /// The subject of a report whose gravest news it is.
    #[must_use]
    pub fn subject_line(self) -> &'static str {
        match self {
            Self::Failed => "Undelivered mail returned to sender",
            Self::Delayed(_) => "Mail is delayed, and will be tried again",
            Self::Relayed => "Mail was handed to the next host",
        }
    }

    /// How a report begins to tell it; the recipients follow.
    #[must_use]
    pub fn intro_text(self) -> &'static str {
        match self {
            Self::Failed => "Your message could not be delivered to",
            Self::Delayed(_) => "You need not send your message again. It has not yet been delivered to",
            Self::Relayed => "Your message was handed to the next mail host on its way to",
        }
    }

    /// The enhanced status code: its class follows from the action, also when the last word was of another
    /// one (RFC 3464 2.3.4, RFC 3463 2).
    #[must_use]
    pub fn status_code(self, reply: Option<&SmtpReply>) -> String {
        let (class, otherwise) = match self {
            Self::Failed => (5, "5.4.7"),
            Self::Delayed(_) => (4, "4.4.1"),
            Self::Relayed => (2, "2.0.0"),
        };
        let said = reply.and_then(|reply| reply.enhanced);
        said.map_or_else(|| otherwise.to_owned(), |e| format!("{class}.{}.{}", e.subject, e.detail))
    }
}

/// What is to be told of one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDsn {
    /// The recipient's place in the email.
    pub recipient: u16,
    /// The recipient.
    pub address: Address,
    /// What became of it.
    pub action: DsnAction,
    /// ORCPT as it was given, decoded (RFC 3461 4.2).
    pub original_recipient: Option<String>,
    /// What the destination (or we in its stead) said last.
    pub reply: Option<SmtpReply>,
    /// The host that said it.
    pub remote_host: Option<String>,
    /// How that came, in a sentence.
    pub explanation: String,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it was last tried.
    pub last_attempt_at: Timestamp,
    /// The sender used SMTPUTF8, and with it reads reports in UTF-8 (RFC 6533).
    pub smtputf8: bool,
}
