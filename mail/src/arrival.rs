//! An arrival: a message that came in by the MX door for one recipient of ours, on its way to where it
//! belongs.

use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;

use crate::address::{Address, DomainName};

/// A message that came in, for one recipient.
#[derive(Debug, Clone)]
pub struct InboundMessage {
    /// When its content was whole.
    pub received_at: Timestamp,
    /// Who handed it in.
    pub peer: IpAddr,
    /// What that host calls itself (HELO, EHLO).
    pub helo: String,
    /// The envelope's sender; none is the null reverse path (RFC 5321 4.5.5).
    pub reverse_path: Option<Address>,
    /// The envelope's recipient that this is about.
    pub recipient: Address,
    /// The message as it came, without what we put on top of it.
    pub message: Bytes,
    /// Domains that stand behind it: those whose DKIM signature holds, and that of the reverse path where
    /// SPF passes. Nobody stands behind a message of several authors.
    pub authenticated: Vec<DomainName>,
}
