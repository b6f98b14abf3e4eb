//! Who is believed about complaints: the operator's list of those that run feedback loops (RFC 6449 3.1).
//!
//! An entry is an address (`staff@hotmail.com`), where a provider reports by one of its own that its users cannot
//! have, or a domain (`senderscore.net`), for all addresses at it and below it. A report counts as theirs when its
//! author is one of them and the author's domain stands behind the message (DKIM or SPF, aligned).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::address::{Address, AddressError, Mailbox, Name};
use crate::arrival::Arrival;
use crate::sending_name::organisation;

use super::parts;

/// Those that are believed where nothing is configured: Yahoo's, Validity's and Microsoft's loops. Who has joined others
/// names them.
pub const USUAL: [&str; 3] = ["arf.mail.yahoo.com", "senderscore.net", "staff@hotmail.com"];

/// Somebody who is believed about complaints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Reporter {
    /// An address.
    Address(Address),
    /// All addresses at a domain, and below it.
    Domain(Name),
}

impl Reporter {
    /// Those of [`USUAL`].
    #[must_use]
    pub fn usual() -> Vec<Self> {
        USUAL.iter().filter_map(|text| text.parse().ok()).collect()
    }

    fn is(&self, author: &Address) -> bool {
        match self {
            Self::Address(one) => {
                one.domain() == author.domain() && one.local().eq_ignore_ascii_case(author.local())
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
pub fn wrote(trusted: &[Reporter], arrival: &Arrival) -> bool {
    let from = parts::field(&arrival.message, "From").and_then(|from| from.parse::<Mailbox>().ok());
    let Some(author) = from.map(|mailbox| mailbox.address) else { return false };
    let aligned = organisation(author.domain());
    let is_seen = || arrival.authenticated.iter().any(|name| organisation(name) == aligned);
    trusted.iter().any(|one| one.is(&author)) && is_seen()
}

impl FromStr for Reporter {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.contains('@') { text.parse().map(Self::Address) } else { text.parse().map(Self::Domain) }
    }
}

impl TryFrom<String> for Reporter {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Reporter> for String {
    fn from(reporter: Reporter) -> Self {
        reporter.to_string()
    }
}

impl fmt::Display for Reporter {
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

    fn arrival(from: &str, authenticated: &[&str]) -> Arrival {
        Arrival {
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
        let usual = Reporter::usual();
        assert_eq!(usual.len(), USUAL.len());
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
            assert_eq!(wrote(&usual, &arrival(from, &authenticated)), is_one, "{from} {authenticated:?}");
        }
    }
}
