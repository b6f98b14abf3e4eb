//! The outcome of one delivery attempt for one recipient. It is a value, not an error.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::reply::SmtpReply;

/// The last phase that an attempt reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPhase {
    /// MX and address lookup.
    Dns,
    Connect,
    Greeting,
    /// EHLO or HELO.
    Ehlo,
    /// STARTTLS and the handshake.
    Tls,
    /// AUTH with a smarthost.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The destination accepted responsibility for the message.
    Delivered(SmtpReply),
    /// Temporary failure reply of the destination.
    Deferred(SmtpReply),
    /// Temporary failure without a reply; the text is the cause.
    Unreachable(String),
    /// The connection broke between the final dot and the reply, so the message may have arrived.
    Unconfirmed(String),
    /// Permanent failure reply of the destination.
    Failed(SmtpReply),
    /// Temporary failure found locally: the host does not offer the required TLS.
    Withheld(SmtpReply),
    /// Permanent failure found locally: no such domain, null MX, message too large, SMTPUTF8 not offered.
    Undeliverable(SmtpReply),
}

impl Outcome {
    /// The destination's reply, if there was one.
    pub fn reply(&self) -> Option<&SmtpReply> {
        match self {
            Self::Delivered(reply) | Self::Deferred(reply) | Self::Failed(reply) => Some(reply),
            Self::Unreachable(_) | Self::Unconfirmed(_) | Self::Withheld(_) | Self::Undeliverable(_) => None,
        }
    }

    /// The locally generated reply, with the status code for a DSN (RFC 3464 2.3.4).
    pub fn verdict(&self) -> Option<&SmtpReply> {
        match self {
            Self::Withheld(verdict) | Self::Undeliverable(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// The cause of a failure without a remote reply.
    pub fn error(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unreachable(why) | Self::Unconfirmed(why) => Some(why.as_str().into()),
            Self::Withheld(verdict) | Self::Undeliverable(verdict) => Some(verdict.text()),
            Self::Delivered(_) | Self::Deferred(_) | Self::Failed(_) => None,
        }
    }
}
