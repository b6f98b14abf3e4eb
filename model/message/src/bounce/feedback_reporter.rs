//! Trusted reporters of complaints: the operator's list of feedback loops (RFC 6449 3.1).
//!
//! An entry is an address (`staff@hotmail.com`), for a provider whose users cannot have it, or a domain
//! (`senderscore.net`), for all addresses in it and its subdomains. A report is trusted if its author matches an entry
//! and the author's domain is authenticated (DKIM or SPF, aligned).

use std::fmt;
use std::str::FromStr;

use crate::address::{Address, AddressError, DomainName, Mailbox};
use crate::domain_name::organizational_domain;
use crate::inbound_message::InboundMessage;

use super::report_parts;

/// Default entries: the feedback loops of Yahoo, Validity and Microsoft. The operator adds others after joining them.
pub const DEFAULT_REPORTERS: [&str; 3] = ["arf.mail.yahoo.com", "senderscore.net", "staff@hotmail.com"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedbackReporter {
    Address(Address),
    /// All addresses in a domain and its subdomains.
    Domain(DomainName),
}

impl FeedbackReporter {
    /// The entries of [`DEFAULT_REPORTERS`].
    pub fn defaults() -> Vec<Self> {
        DEFAULT_REPORTERS.iter().filter_map(|text| text.parse().ok()).collect()
    }

    fn matches(&self, author: &Address) -> bool {
        match self {
            Self::Address(address) => {
                address.domain() == author.domain() && address.local_part().eq_ignore_ascii_case(author.local_part())
            }
            Self::Domain(name) => author.domain().is_within(name),
        }
    }
}

/// Returns whether the author of a message is trusted and authenticated.
pub fn is_trusted_author(trusted: &[FeedbackReporter], arrival: &InboundMessage) -> bool {
    let from = report_parts::header_field(&arrival.message, "From").and_then(|from| from.parse::<Mailbox>().ok());
    let Some(author) = from.map(|mailbox| mailbox.address) else { return false };
    let aligned = organizational_domain(author.domain());
    let is_authenticated = || arrival.authenticated.iter().any(|name| organizational_domain(name) == aligned);
    trusted.iter().any(|reporter| reporter.matches(&author)) && is_authenticated()
}

/// A text that is neither an address nor a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address or a domain (examples: \"staff@example.net\", \"example.net\")")]
pub struct FeedbackReporterError;

impl FromStr for FeedbackReporter {
    type Err = FeedbackReporterError;

    fn from_str(text: &str) -> Result<Self, FeedbackReporterError> {
        let parsed = if text.contains('@') { text.parse().map(Self::Address) } else { text.parse().map(Self::Domain) };
        parsed.map_err(|_: AddressError| FeedbackReporterError)
    }
}

crate::stored_as_text!(FeedbackReporter);

impl fmt::Display for FeedbackReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Domain(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(from: &str, authenticated: &[&str]) -> InboundMessage {
        InboundMessage {
            received_at: jiff::Timestamp::UNIX_EPOCH,
            peer: "192.0.2.9".parse().unwrap(),
            helo: "mx.example".to_owned(),
            reverse_path: None,
            recipient: "fbl@rp.example.com".parse().unwrap(),
            message: bytes::Bytes::from(format!("From: {from}\r\n\r\nx")),
            authenticated: authenticated.iter().map(|name| name.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn only_listed_and_authenticated_reporters_are_trusted() {
        let usual = FeedbackReporter::defaults();
        assert_eq!(usual.len(), DEFAULT_REPORTERS.len());
        for (from, authenticated, is_trusted) in [
            ("Yahoo <feedback@arf.mail.yahoo.com>", vec!["arf.mail.yahoo.com"], true),
            ("Yahoo <feedback@arf.mail.yahoo.com>", vec!["yahoo.com"], true),
            ("Yahoo <feedback@arf.mail.yahoo.com>", vec![], false),
            ("Yahoo <feedback@arf.mail.yahoo.com>", vec!["evil.example"], false),
            ("eve@yahoo.com", vec!["yahoo.com"], false),
            ("STAFF@hotmail.com", vec!["hotmail.com"], true),
            ("eve@hotmail.com", vec!["hotmail.com"], false),
            ("feedbackloop@comcastfbl.senderscore.net", vec!["senderscore.net"], true),
            ("eve@notsenderscore.net", vec!["notsenderscore.net"], false),
            ("", vec!["senderscore.net"], false),
        ] {
            assert_eq!(
                is_trusted_author(&usual, &arrival(from, &authenticated)),
                is_trusted,
                "{from} {authenticated:?}"
            );
        }
    }
}
