//! An outcome: what one attempt at one recipient came to. A value, not an error.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::reply::SmtpReply;

/// How far an attempt got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPhase {
    /// Finding the hosts.
    Dns,
    /// TCP connection.
    Connect,
    /// The greeting.
    Greeting,
    /// EHLO or HELO.
    Ehlo,
    /// STARTTLS and the handshake.
    Tls,
    /// AUTH (smarthost).
    Auth,
    /// MAIL FROM.
    Mail,
    /// RCPT TO.
    Rcpt,
    /// DATA or BDAT, until the content is sent.
    Data,
    /// After the final dot.
    Final,
}

/// What one attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The destination took responsibility.
    Delivered(SmtpReply),
    /// Not now: the destination said so.
    Deferred(SmtpReply),
    /// Not now: nobody answered; the text says what went wrong.
    Unreachable(String),
    /// The connection broke between our final dot and the reply: it may have arrived.
    Unconfirmed(String),
    /// Not ever: the destination said so.
    Failed(SmtpReply),
    /// Not now, and it was we who found out: the host does not offer the TLS that is asked for.
    Withheld(SmtpReply),
    /// Not ever, and it was we who found out: no such domain, null MX, too large, SMTPUTF8 not offered.
    Undeliverable(SmtpReply),
}

impl Outcome {
    /// What the destination said.
    #[must_use]
    pub fn reply(&self) -> Option<&SmtpReply> {
        match self {
            Self::Delivered(reply) | Self::Deferred(reply) | Self::Failed(reply) => Some(reply),
            Self::Unreachable(_) | Self::Unconfirmed(_) | Self::Withheld(_) | Self::Undeliverable(_) => None,
        }
    }

    /// What we say ourselves, with the code that a report to the sender has (RFC 3464 2.3.4). No host said it.
    #[must_use]
    pub fn verdict(&self) -> Option<&SmtpReply> {
        match self {
            Self::Withheld(verdict) | Self::Undeliverable(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// What went wrong, where no host said so.
    #[must_use]
    pub fn error(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unreachable(why) | Self::Unconfirmed(why) => Some(why.as_str().into()),
            Self::Withheld(verdict) | Self::Undeliverable(verdict) => Some(verdict.text()),
            Self::Delivered(_) | Self::Deferred(_) | Self::Failed(_) => None,
        }
    }
}
