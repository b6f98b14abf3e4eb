//! A text that is not shown: tokens, keys, passwords of others.
//!
//! It goes from the request to where it is used and, on the customer's wish, sealed into the store. Its `Debug`
//! says nothing of it and it has no `Display`; what a stranger answers is cleared of it ([`Secret::cover`])
//! before it is told on.

use std::fmt;

/// So many bytes of a secret in a row give it away: providers cut the texts that they send back.
const MATCH_BYTES_MIN: usize = 8;
const REDACTED: &str = "***";

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Takes a text into keeping.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every piece that begins as the secret does, and runs on as it does, covered.
    #[must_use]
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
            // The secret is text and so is what stands here: where they part is not within a letter of `rest`
            // unless they share its first bytes, and then that letter is covered too.
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
    fn it_is_covered_wherever_it_stands() {
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
