//! An attempt: one try at one recipient, kept with host, address, TLS, timing and transcript.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::outcome::AttemptPhase;
use crate::reply::SmtpReply;

/// What TLS an attempt ran over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptTls {
    /// `TLSv1.3`.
    pub version: String,
    /// The cipher suite, by its IANA name.
    pub cipher: String,
    /// Whether the certificate was checked and held.
    pub verified: bool,
    /// Whose word it was checked by.
    #[serde(default)]
    pub policy: TlsPolicy,
}

/// What said how an attempt was to be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsPolicy {
    /// Nobody: what the host offers is used (RFC 7435).
    #[default]
    Opportunistic,
    /// The domain's policy (RFC 8461).
    MtaSts,
    /// The host's own TLSA records (RFC 7672).
    Dane,
}

/// One try at one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The recipient's place in the email.
    pub recipient: u16,
    /// 1 for the first.
    pub number: u32,
    /// When it began.
    pub created_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How far it got.
    pub phase: AttemptPhase,
    /// The host, when one was chosen.
    pub mx_host: Option<String>,
    /// Its address.
    pub ip: Option<IpAddr>,
    /// The address of ours that it came from.
    pub source: Option<IpAddr>,
    /// The TLS it ran over; none for plain text.
    pub tls: Option<AttemptTls>,
    /// What the host said.
    pub reply: Option<SmtpReply>,
    /// What went wrong, where no host said so.
    pub error: Option<String>,
    /// The dialog, one line a command or reply, secrets masked.
    pub transcript: String,
    /// When the next one is due; none after the last.
    pub next_attempt_at: Option<Timestamp>,
}
