//! Names that the operator gives to what is theirs: smarthosts, pools of source addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest name.
const SLUG_BYTES_MAX: usize = 64;

/// A text is no such name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be 1 to 64 lower-case letters, digits, dots, hyphens and underscores")]
pub struct SlugError;

fn is_slug(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    (1..=SLUG_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// A type for the names of one kind of thing, so that none stands where another is meant.
macro_rules! given_name {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// As text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = SlugError;

            fn from_str(text: &str) -> Result<Self, SlugError> {
                text.to_owned().try_into()
            }
        }

        impl TryFrom<String> for $name {
            type Error = SlugError;

            fn try_from(text: String) -> Result<Self, SlugError> {
                if is_slug(&text) { Ok(Self(text)) } else { Err(SlugError) }
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

given_name! {
    /// A smarthost's name, as the configuration gives it (RFC 5598 4.3.1: a relay of the operator's choice).
    SmarthostName
}

given_name! {
    /// The name of a pool of source addresses, as the configuration gives it.
    PoolName
}

impl Default for PoolName {
    /// The pool of everybody who has no other: the configuration gives no other one this name.
    fn default() -> Self {
        Self("default".to_owned())
    }
}
