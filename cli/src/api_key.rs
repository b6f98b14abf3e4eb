//! `ApiKey`: a key that is never printed.

use std::borrow::Cow;
use std::fmt;

use http::HeaderValue;

use crate::error::CliError;

/// An API key of printable ASCII.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Checks a key.
    ///
    /// # Errors
    /// It is empty or has characters that no key has. The error does not show it.
    pub fn parse(text: &str) -> Result<Self, CliError> {
        let key = text.trim();
        if key.is_empty() {
            return Err(CliError::usage(
                "no API key: set POSTRIDER_API_KEY, or run `postrider login`, which stores one",
            ));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CliError::usage("the API key contains invalid characters; copy it again, on one line"));
        }
        Ok(Self(key.to_owned()))
    }

    /// The key itself, to store it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The `Authorization` field.
    pub fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// A foreign text without the key: servers and proxies may repeat requests in their errors.
    pub fn hidden_in<'a>(&self, text: &'a [u8]) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(text);
        if text.contains(&self.0) { Cow::Owned(text.replace(&self.0, &self.hint())) } else { text }
    }

    /// The first and the last four characters.
    pub fn hint(&self) -> String {
        match (self.0.get(..4), self.0.len().checked_sub(4).and_then(|at| self.0.get(at..))) {
            (Some(start), Some(end)) if self.0.len() > 12 => format!("{start}…{end}"),
            _ => "…".to_owned(),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_in_foreign_texts() {
        let key = ApiKey::parse("rnl_0123456789abcdef").unwrap();
        assert_eq!(key.hidden_in(b"Bearer rnl_0123456789abcdef."), "Bearer rnl_\u{2026}cdef.");
        assert_eq!(key.hidden_in(b"\xffx"), "\u{fffd}x");
    }
}
