//! Delivery attempt: one try to deliver to one recipient, with host, IP address, TLS, timing and transcript.

use std::net::IpAddr;

use jiff::Timestamp;
use message::outcome::AttemptPhase;
use message::reply::SmtpReply;
use serde::{Deserialize, Serialize};

/// TLS session of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptTls {
    /// The protocol version, such as `TLSv1.3`.
    pub version: String,
    /// IANA name of the cipher suite.
    pub cipher: String,
    /// True if the certificate was verified.
    pub verified: bool,
    /// The policy that the certificate was verified by.
    #[serde(default)]
    pub policy: TlsPolicy,
}

/// The policy that decided how an attempt was protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsPolicy {
    /// No policy: TLS is used if the host offers it (RFC 7435).
    #[default]
    Opportunistic,
    /// The domain's MTA-STS policy (RFC 8461).
    MtaSts,
    /// The host's TLSA records (RFC 7672).
    Dane,
}

/// One try to deliver to one recipient.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The recipient's index in the email.
    pub recipient: u16,
    /// Number of the attempt, from 1.
    pub number: u32,
    pub created_at: Timestamp,
    pub duration_ms: u64,
    pub phase: AttemptPhase,
    /// The remote host; `None` if none was chosen.
    pub mx_host: Option<String>,
    /// The remote host's IP address.
    pub ip: Option<IpAddr>,
    /// The local source address of the connection.
    pub source: Option<IpAddr>,
    /// The TLS session; `None` for plain text.
    pub tls: Option<AttemptTls>,
    /// The SMTP reply that decided the attempt.
    pub reply: Option<SmtpReply>,
    /// The error, if no SMTP reply explains the outcome.
    pub error: Option<String>,
    /// The SMTP dialog, one line per command or reply, with secrets masked.
    pub transcript: String,
    /// `None` if no retry follows.
    pub next_attempt_at: Option<Timestamp>,
}
