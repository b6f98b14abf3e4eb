//! Address pattern: one address, the sub-addresses of one address, or all addresses of a domain.
//!
//! ```text
//! support@example.com     this address
//! support+*@example.com   its sub-addresses (RFC 5233), with any detail after the `+`
//! *@example.com           every address of the domain
//! ```
//!
//! Local parts are compared without regard to ASCII case, because no domain assigns two mailboxes that differ in case
//! alone. Quotes do not matter either: `"support"` equals `support` (RFC 5321 4.1.2).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::address::{Address, AddressError, DomainName, is_dot_string};

/// The wildcard.
const ANY: &str = "*";
/// Separates the mailbox from the sub-address (RFC 5233 1).
const SEPARATOR: char = '+';

/// A text is not a valid address pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddressPatternError {
    /// The text without its wildcard is not a valid address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A `*` in an unsupported place.
    #[error("`*` is allowed only as the whole local part or after a `+`: `*@example.com`, `support+*@example.com`")]
    Wildcard,
}

/// The local parts that a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LocalPartPattern {
    Any,
    Exact(Box<str>),
    /// Local parts that consist of this one, a `+` and any detail.
    SubAddressesOf(Box<str>),
}

/// A pattern that matches addresses of one domain.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AddressPattern {
    locals: LocalPartPattern,
    domain: DomainName,
}

impl AddressPattern {
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    pub fn matches(&self, address: &Address) -> bool {
        let local = address.unquoted_local_part();
        let is_local_match = match &self.locals {
            LocalPartPattern::Any => true,
            LocalPartPattern::Exact(local_part) => local.eq_ignore_ascii_case(local_part),
            LocalPartPattern::SubAddressesOf(base) => {
                local.split_once(SEPARATOR).is_some_and(|(before, _)| before.eq_ignore_ascii_case(base))
            }
        };
        is_local_match && *address.domain() == self.domain
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

crate::stored_as_text!(AddressPattern);

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = &self.domain;
        match &self.locals {
            LocalPartPattern::Any => write!(f, "{ANY}@{domain}"),
            LocalPartPattern::Exact(local_part) => write!(f, "{}@{domain}", quote_if_needed(local_part)),
            LocalPartPattern::SubAddressesOf(base) => {
                write!(f, "{}{SEPARATOR}{ANY}@{domain}", quote_if_needed(base))
            }
        }
    }
}

/// Adds quotes to a local part that needs them.
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
    fn patterns_match_their_addresses() {
        let means = |pattern: &str, address: &str| {
            pattern.parse::<AddressPattern>().unwrap().matches(&address.parse().unwrap())
        };
        for (pattern, address, is_match) in [
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
            assert_eq!(means(pattern, address), is_match, "{pattern} {address}");
        }
    }

    #[test]
    fn patterns_round_trip_and_invalid_ones_are_refused() {
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
