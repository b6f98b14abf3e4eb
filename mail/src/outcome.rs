//! An outcome: what one attempt at one recipient came to. A value, not an error.

use serde::{Deserialize, Serialize};

use crate::reply::Reply;

/// How far an attempt got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
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
    Delivered(Reply),
    /// Not now: the destination said so.
    Deferred(Reply),
    /// Not now: nobody answered; the text says what went wrong.
    Unreachable(String),
    /// The connection broke between our final dot and the reply: it may have arrived.
    Unconfirmed(String),
    /// Not ever: the destination said so.
    Failed(Reply),
    /// Not ever, and it was we who found out: no such domain, null MX, too large, SMTPUTF8 not offered.
    Undeliverable(Reply),
}

impl Outcome {
    /// What the destination (or we in its stead) said.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Self::Delivered(reply)
            | Self::Deferred(reply)
            | Self::Failed(reply)
            | Self::Undeliverable(reply) => Some(reply),
            Self::Unreachable(_) | Self::Unconfirmed(_) => None,
        }
    }
}
