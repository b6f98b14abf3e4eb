//! A secret text: API tokens, keys, passwords of customers.
//!
//! It is used for requests to the provider and is sealed in the store if the customer opts in. Its `Debug` output is
//! redacted, and it has no `Display`. Messages of providers are redacted too ([`SecretText::redact`]).

use std::fmt;

/// A prefix of this many bytes counts as the secret, since providers truncate the values that they quote.
const MATCH_BYTES_MIN: usize = 8;
const REDACTED: &str = "***";

#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The plain text, for use in requests.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns `text` with every occurrence of the secret, or of a long enough prefix of it, replaced.
    pub fn redact(&self, text: &str) -> String {
        let secret = self.0.as_bytes();
        let begin = &secret[..secret.len().min(MATCH_BYTES_MIN)];
        if begin.is_empty() {
            return text.to_owned();
        }
        let mut covered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = memchr::memmem::find(rest.as_bytes(), begin) {
            let same = rest.as_bytes().iter().skip(at).zip(secret).take_while(|(a, b)| a == b).count();
            covered.push_str(rest.get(..at).unwrap_or_default());
            covered.push_str(REDACTED);
            // Both are valid UTF-8, so the end of the match is a char boundary, unless two characters share their first
            // bytes. Then the whole character is replaced too.
            rest = rest.get(rest.ceil_char_boundary(at + same)..).unwrap_or_default();
        }
        covered.push_str(rest);
        covered
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted_everywhere() {
        let secret = SecretText::new("tok-0123456789");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(secret.redact("a tok-0123456789 b tok-0123456789"), "a *** b ***");
        assert_eq!(secret.redact("cut short: tok-012345"), "cut short: ***");
        assert_eq!(secret.redact("tok-01 is no more than its beginning"), "tok-01 is no more than its beginning");
        assert_eq!(SecretText::new("").redact("as it was"), "as it was");
        assert_eq!(SecretText::new("abc").redact("xabcx"), "x***x");
        assert_eq!(SecretText::new("12345678é9").redact("12345678è"), "***");
    }
}
