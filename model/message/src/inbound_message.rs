//! Inbound message: a message that the MX listener received, for one local recipient.

use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;

use crate::address::{Address, DomainName};

/// A received message for one local recipient.
#[derive(Debug, Clone)]
pub struct InboundMessage {
    /// When the content was complete.
    pub received_at: Timestamp,
    /// IP address of the SMTP client.
    pub peer: IpAddr,
    /// The client's HELO or EHLO name.
    pub helo: String,
    /// MAIL FROM; `None` for the null reverse-path (RFC 5321 4.5.5).
    pub reverse_path: Option<Address>,
    /// The one recipient of the envelope that this message is for.
    pub recipient: Address,
    /// The message as received, without added trace fields.
    pub message: Bytes,
    /// Authenticated domains: those with a valid DKIM signature, and that of the reverse-path if SPF passes. A key for
    /// TLS reports only (RFC 8460 3) counts in mail to their address. Empty for a message with several authors.
    pub authenticated: Vec<DomainName>,
}
