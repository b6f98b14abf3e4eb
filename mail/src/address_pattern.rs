//! A pattern of addresses: one address, the sub-addresses of one, or all of a domain.
//!
//! ```text
//! support@example.com     this address
//! support+*@example.com   its sub-addresses (RFC 5233), whatever stands behind the `+`
//! *@example.com           every address of the domain
//! ```
//!
//! Local parts are compared without regard to the case of ASCII letters: those who own a domain's addresses tell
//! them by how they are read, and nobody has two that differ in case alone. Nor by their quotes: `"support"` is
//! `support` (RFC 5321 4.1.2).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::address::{Address, AddressError, DomainName, is_dot_string};

/// What stands for everything.
const ANY: &str = "*";
/// What stands before a sub-address (RFC 5233 1).
const SEPARATOR: char = '+';

/// Why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddressPatternError {
    /// It is no address either.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A `*` where it stands for nothing that we know.
    #[error("`*` stands alone before the @, or behind a `+`: `*@example.com`, `support+*@example.com`")]
    Wildcard,
}

/// Which local parts are meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LocalPartPattern {
    /// Every one.
    Any,
    /// This one.
    Exact(Box<str>),
    /// Those that are this one, a `+` and more.
    SubAddressesOf(Box<str>),
}

/// A pattern of addresses.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct AddressPattern {
    locals: LocalPartPattern,
    domain: DomainName,
}

impl AddressPattern {
    /// The domain that its addresses are at.
    #[must_use]
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// Whether it means this address.
    #[must_use]
    pub fn matches(&self, address: &Address) -> bool {
        let local = address.unquoted_local_part();
        let is_meant = match &self.locals {
            LocalPartPattern::Any => true,
            LocalPartPattern::Exact(one) => local.eq_ignore_ascii_case(one),
            LocalPartPattern::SubAddressesOf(base) => {
                local.split_once(SEPARATOR).is_some_and(|(before, _)| before.eq_ignore_ascii_case(base))
            }
        };
        is_meant && *address.domain() == self.domain
    }
}

impl FromStr for AddressPattern {
    type Err = AddressPatternError;

    fn from_str(text: &str) -> Result<Self, AddressPatternError> {
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::Form)?;
        if local == ANY {
            return Ok(Self { locals: LocalPartPattern::Any, domain: domain.parse()? });
        }
        let base = local.strip_suffix(ANY).and_then(|rest| rest.strip_suffix(SEPARATOR));
        let address: Address = format!("{}@{domain}", base.unwrap_or(local)).parse()?;
        let plain = address.unquoted_local_part();
        if plain.contains(ANY) || base.is_some() && plain.contains(SEPARATOR) {
            return Err(AddressPatternError::Wildcard);
        }
        let local = plain.to_ascii_lowercase().into_boxed_str();
        let locals =
            if base.is_some() { LocalPartPattern::SubAddressesOf(local) } else { LocalPartPattern::Exact(local) };
        Ok(Self { locals, domain: address.domain().clone() })
    }
}

impl TryFrom<String> for AddressPattern {
    type Error = AddressPatternError;

    fn try_from(text: String) -> Result<Self, AddressPatternError> {
        text.parse()
    }
}

impl From<AddressPattern> for String {
    fn from(pattern: AddressPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = &self.domain;
        match &self.locals {
            LocalPartPattern::Any => write!(f, "{ANY}@{domain}"),
            LocalPartPattern::Exact(one) => write!(f, "{}@{domain}", quote_if_needed(one)),
            LocalPartPattern::SubAddressesOf(base) => {
                write!(f, "{}{SEPARATOR}{ANY}@{domain}", quote_if_needed(base))
            }
        }
    }
}

/// A local part with the quotes that it needs.
fn quote_if_needed(plain: &str) -> Cow<'_, str> {
    if is_dot_string(plain) {
        return Cow::Borrowed(plain);
    }
    Cow::Owned(format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\"")))
}

impl fmt::Debug for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_means_what_it_says() {
        let means = |pattern: &str, address: &str| {
            pattern.parse::<AddressPattern>().unwrap().matches(&address.parse().unwrap())
        };
        for (pattern, address, is_meant) in [
            ("support@example.com", "Support@Example.com", true),
            ("support@example.com", "support+42@example.com", false),
            ("support@example.com", "support@mail.example.com", false),
            ("support+42@example.com", "support+42@example.com", true),
            ("support+*@example.com", "SUPPORT+42@example.com", true),
            ("support+*@example.com", "support+@example.com", true),
            ("support+*@example.com", "support+a+b@example.com", true),
            ("support+*@example.com", "support@example.com", false),
            ("support+*@example.com", "supporter+1@example.com", false),
            ("*@example.com", "anybody@example.com", true),
            ("*@example.com", "anybody@example.org", false),
            ("a.b@example.com", "\"a.b\"@example.com", true),
            ("\"a.b\"@example.com", "A.B@example.com", true),
            ("a.b@example.com", "\"a\\.\\b\"@example.com", true),
            ("support+*@example.com", "\"support+4 2\"@example.com", true),
            ("\"a b\"@example.com", "\"a\\ B\"@example.com", true),
            ("*@exämple.com", "anybody@xn--exmple-cua.com", true),
        ] {
            assert_eq!(means(pattern, address), is_meant, "{pattern} {address}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for (text, written) in [
            ("Support@Example.COM", "support@example.com"),
            ("Support+*@example.com", "support+*@example.com"),
            ("*@Example.com", "*@example.com"),
            ("\"a.b\"@example.com", "a.b@example.com"),
            (r#""a \"b\\"@example.com"#, r#""a \"b\\"@example.com"#),
        ] {
            assert_eq!(text.parse::<AddressPattern>().unwrap().to_string(), written);
        }
        for wrong in [
            "",
            "support",
            "@example.com",
            "+*@example.com",
            "**@example.com",
            "su*@example.com",
            "*",
            "a+b+*@example.com",
            "*+*@example.com",
            "support+*@",
            "support @example.com",
            "*@*.example.com",
        ] {
            assert!(wrong.parse::<AddressPattern>().is_err(), "{wrong}");
        }
    }
}
