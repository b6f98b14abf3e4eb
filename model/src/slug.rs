//! Names that the operator assigns in the configuration: smarthosts and pools of source addresses.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

const SLUG_BYTES_MAX: usize = 64;

/// The text is not a valid [`SmarthostName`] or [`PoolName`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be 1 to 64 lower-case letters, digits, dots, hyphens and underscores")]
pub struct SlugError;

fn is_slug(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    (1..=SLUG_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// Defines a separate type for each kind of name, so that the compiler keeps them apart.
macro_rules! given_name {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = SlugError;

            fn from_str(text: &str) -> Result<Self, SlugError> {
                if is_slug(text) { Ok(Self(text.to_owned())) } else { Err(SlugError) }
            }
        }

        message::stored_as_text!($name);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

given_name! {
    /// Name of a smarthost in the configuration (RFC 5598 4.3.1: a relay that the operator chooses).
    SmarthostName
}

given_name! {
    /// Name of a pool of source addresses in the configuration.
    PoolName
}

impl Default for PoolName {
    /// The pool of accounts without a pool of their own; the configuration cannot assign this name to another pool.
    fn default() -> Self {
        Self("default".to_owned())
    }
}
