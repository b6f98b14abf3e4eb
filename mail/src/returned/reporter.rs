//! Who is believed about complaints: the operator's list of those that run feedback loops (RFC 6449 3.1).
//!
//! An entry is an address (`staff@hotmail.com`), where a provider reports by one of its own that its users cannot
//! have, or a domain (`senderscore.net`), for all addresses at it and below it. A report counts as theirs when its
//! author is one of them and the author's domain stands behind the message (DKIM or SPF, aligned).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::address::{Address, AddressError, DomainName, Mailbox};
use crate::arrival::InboundMessage;
use crate::sending_name::organizational_domain;

use super::parts;

/// Those that are believed where nothing is configured: Yahoo's, Validity's and Microsoft's loops. Who has joined others
/// names them.
pub const DEFAULT_REPORTERS: [&str; 3] = ["arf.mail.yahoo.com", "senderscore.net", "staff@hotmail.com"];

/// Somebody who is believed about complaints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum FeedbackReporter {
    /// An address.
    Address(Address),
    /// All addresses at a domain, and below it.
    Domain(DomainName),
}

impl FeedbackReporter {
    /// Those of [`USUAL`].
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        DEFAULT_REPORTERS.iter().filter_map(|text| text.parse().ok()).collect()
    }

    fn matches(&self, author: &Address) -> bool {
        match self {
            Self::Address(one) => {
                one.domain() == author.domain() && one.local_part().eq_ignore_ascii_case(author.local_part())
            }
            Self::Domain(name) => {
                let below = author.domain().as_str().strip_suffix(name.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
        }
    }
}

/// Whether one of these wrote what arrived, and can be seen to have.
#[must_use]
pub fn is_trusted_author(trusted: &[FeedbackReporter], arrival: &InboundMessage) -> bool {
    let from = parts::header_field(&arrival.message, "From").and_then(|from| from.parse::<Mailbox>().ok());
    let Some(author) = from.map(|mailbox| mailbox.address) else { return false };
    let aligned = organizational_domain(author.domain());
    let is_seen = || arrival.authenticated.iter().any(|name| organizational_domain(name) == aligned);
    trusted.iter().any(|one| one.matches(&author)) && is_seen()
}

impl FromStr for FeedbackReporter {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.contains('@') { text.parse().map(Self::Address) } else { text.parse().map(Self::Domain) }
    }
}

impl TryFrom<String> for FeedbackReporter {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<FeedbackReporter> for String {
    fn from(reporter: FeedbackReporter) -> Self {
        reporter.to_string()
    }
}

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
    fn only_who_is_listed_and_seen() {
        let usual = FeedbackReporter::defaults();
        assert_eq!(usual.len(), DEFAULT_REPORTERS.len());
        for (from, authenticated, is_one) in [
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
            assert_eq!(is_trusted_author(&usual, &arrival(from, &authenticated)), is_one, "{from} {authenticated:?}");
        }
    }
}
