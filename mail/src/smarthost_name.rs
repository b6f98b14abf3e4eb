//! The name of a smarthost: what the operator calls a relay that takes mail in the recipients' hosts' stead.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest name.
const NAME_BYTES_MAX: usize = 64;

/// A smarthost's name, as the configuration gives it (RFC 5598 4.3.1: a relay of the operator's choice).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SmarthostName(String);

/// A text is no name of a smarthost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be 1 to 64 lower-case letters, digits, dots, hyphens and underscores")]
pub struct NotAName;

impl SmarthostName {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SmarthostName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits);
        if is_name { Ok(Self(text.to_owned())) } else { Err(NotAName) }
    }
}

impl TryFrom<String> for SmarthostName {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        text.parse()
    }
}

impl From<SmarthostName> for String {
    fn from(name: SmarthostName) -> Self {
        name.0
    }
}

impl fmt::Display for SmarthostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
