//! Input of the SMTP client: one message for one recipient.
//!
//! Each recipient has its own envelope sender (VERP), so a transaction has exactly one RCPT. The body is a list of
//! [`Bytes`]: header fields added by this server (trace, signatures), then the content, which many messages share.
//! Lines end in CRLF; nothing is dot-stuffed.

use bytes::Bytes;
use message::address::Address;
use model::email::Priority;
use tokio::time::Instant;

#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// The reverse path; `None` is the null path `<>` (RFC 5321 4.5.5).
    pub sender: Option<Address>,
    /// The forward path.
    pub recipient: Address,
    /// The message in order. A missing final CRLF is added.
    pub body: Vec<Bytes>,
    /// True if the body contains bytes above 127 (RFC 6152).
    pub eight_bit: bool,
    /// True if the header needs SMTPUTF8 (RFC 6531). Addresses are checked separately.
    pub smtputf8: bool,
    /// True if the sender requested REQUIRETLS (RFC 8689).
    pub require_tls: bool,
    /// DSN parameters (RFC 3461), sent to a host that offers DSN.
    pub dsn: Option<DsnParameters>,
    /// Deliver-by time, sent to a host that offers DELIVERBY.
    pub deliver_by: Option<DeliverByParameter>,
    /// Priority, sent to a host that offers MT-PRIORITY (RFC 6710).
    pub priority: Option<Priority>,
}

/// The time left to deliver a message (RFC 2852 4.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliverByParameter {
    /// Seconds left at `since`; negative when it is late.
    pub seconds: i64,
    /// Reference time: dialling may take long before MAIL is sent.
    pub since: Instant,
    /// By-mode `R`: a late message is returned. Otherwise `N`: the sender is notified.
    pub return_if_late: bool,
}

impl DeliverByParameter {
    /// Seconds left now.
    pub(super) fn remaining_s(self) -> i64 {
        self.seconds.saturating_sub(i64::try_from(self.since.elapsed().as_secs()).unwrap_or(i64::MAX))
    }
}

impl OutgoingMessage {
    /// Returns whether the host must offer SMTPUTF8.
    pub fn needs_smtputf8(&self) -> bool {
        self.smtputf8 || self.recipient.needs_smtputf8() || self.sender.as_ref().is_some_and(Address::needs_smtputf8)
    }
}

/// Parameters of RFC 3461, decoded; the command writer encodes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DsnParameters {
    /// RET: how much of the message a DSN includes (RFC 3461 4.3).
    pub ret: Option<DsnReturn>,
    /// ENVID: the sender's envelope id (RFC 3461 4.4).
    pub envid: Option<String>,
    /// NOTIFY: when to send a DSN (RFC 3461 4.1).
    pub notify: Option<DsnNotify>,
    /// ORCPT: the original recipient (RFC 3461 4.2).
    pub original_recipient: Option<OriginalRecipient>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DsnReturn {
    Full,
    Headers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DsnNotify {
    Never,
    On { success: bool, failure: bool, delay: bool },
}

/// ORCPT: address type and address, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalRecipient {
    /// Address type: `rfc822` or `utf-8` (RFC 6533 3).
    pub kind: String,
    pub address: String,
}
