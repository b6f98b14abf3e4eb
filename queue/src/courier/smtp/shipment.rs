//! What the courier is handed: one message for one recipient.
//!
//! Each recipient has an envelope sender of its own (VERP), so a shipment has exactly one
//! recipient, and a transaction exactly one RCPT. The body is a row of [`Bytes`]: the headers that
//! were put before it (trace, signatures) and the content, which many shipments share. It is as it
//! shall arrive: lines end in CRLF, nothing is dot-stuffed.

use bytes::Bytes;
use mail::address::Address;
use mail::email::Priority;
use tokio::time::Instant;

/// One message for one recipient.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// The reverse path; `None` is the null one, `<>` (RFC 5321 4.5.5).
    pub sender: Option<Address>,
    /// The forward path.
    pub recipient: Address,
    /// The message, in order. A missing final CRLF is added.
    pub body: Vec<Bytes>,
    /// Whether the body has bytes above 127 (RFC 6152).
    pub eight_bit: bool,
    /// Whether the headers need SMTPUTF8 (RFC 6531). Addresses that do are seen without being told.
    pub smtputf8: bool,
    /// Whether the sender asked for REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// What the sender asked to be told (RFC 3461), passed on to a host that offers DSN.
    pub dsn: Option<DsnParameters>,
    /// Within which time it is to be delivered, passed on to a host that offers DELIVERBY.
    pub deliver_by: Option<DeliverByParameter>,
    /// How pressing it is, passed on to a host that offers MT-PRIORITY (RFC 6710).
    pub priority: Option<Priority>,
}

/// The time that is left to deliver a message in (RFC 2852 4.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliverByParameter {
    /// So many seconds; less than none when it is late already.
    pub seconds: i64,
    /// From then on: until MAIL is said it may be dialled for long.
    pub since: Instant,
    /// What is late is to be returned; else the sender is told.
    pub return_if_late: bool,
}

impl DeliverByParameter {
    /// The seconds that are left now.
    pub(super) fn remaining_s(self) -> i64 {
        self.seconds.saturating_sub(i64::try_from(self.since.elapsed().as_secs()).unwrap_or(i64::MAX))
    }
}

impl OutgoingMessage {
    /// Whether the host must offer SMTPUTF8 for it.
    #[must_use]
    pub fn needs_smtputf8(&self) -> bool {
        self.smtputf8 || self.recipient.needs_smtputf8() || self.sender.as_ref().is_some_and(Address::needs_smtputf8)
    }
}

/// The parameters of RFC 3461, decoded; the command writer encodes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DsnParameters {
    /// How much of the message a report shall carry (RFC 3461 4.3).
    pub ret: Option<DsnReturn>,
    /// The sender's own mark on the envelope (RFC 3461 4.4).
    pub envid: Option<String>,
    /// When to report (RFC 3461 4.1).
    pub notify: Option<DsnNotify>,
    /// To whom the message was first sent (RFC 3461 4.2).
    pub original_recipient: Option<OriginalRecipient>,
}

/// How much of the message a report carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DsnReturn {
    /// All of it.
    Full,
    /// The headers.
    Headers,
}

/// When the sender wants a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DsnNotify {
    /// Not at all.
    Never,
    /// On these occasions.
    On {
        /// When it was delivered.
        success: bool,
        /// When it cannot be delivered.
        failure: bool,
        /// When it takes long.
        delay: bool,
    },
}

/// ORCPT: the kind of address and the address, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalRecipient {
    /// `rfc822` or `utf-8` (RFC 6533 3).
    pub kind: String,
    /// The address.
    pub address: String,
}
