//! Detects quotes and backslashes that were published by mistake, and shortens values for display.

/// Maximum bytes of a displayed value: a DKIM key of 2,048 bits fits.
const SHOWN_BYTES_MAX: usize = 500;
/// Maximum bytes of a value within a sentence.
const SHORT_BYTES_MAX: usize = 100;

/// A mistake in the published text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFlaw {
    /// The quotation marks were published as part of the value.
    Quoted,
    /// Backslashes of the zone file format were published as part of the value.
    Escaped,
}

impl TextFlaw {
    /// A sentence that describes the mistake at a name.
    pub(super) fn describe(self, name: &str) -> String {
        match self {
            Self::Quoted => format!(
                "The TXT record at {name} was quoted twice: its quotation marks were published as part of the \
                 value, so receivers cannot parse it."
            ),
            Self::Escaped => format!(
                "The TXT record at {name} was published with backslashes, which belong in a zone file \
                 only."
            ),
        }
    }

    /// A sentence that explains how to correct it.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Quoted => "Enter the value without quotation marks.",
            Self::Escaped => "Enter the value without them.",
        }
    }
}

/// Returns the intended text, if this one was quoted twice or contains backslashes.
pub(super) fn repair_text(text: &str) -> Option<(String, TextFlaw)> {
    let is_quote = |c: char| matches!(c, '"' | '“' | '”' | '„' | '\'' | '`');
    let trimmed = text.trim();
    if trimmed.starts_with(is_quote) || trimmed.ends_with(is_quote) {
        // "one" "two": the strings of one value.
        let joined = trimmed.replace("\" \"", "").replace("\"\"", "");
        let bare = joined.trim_matches(is_quote).replace(['"', '\\'], "");
        return Some((bare, TextFlaw::Quoted));
    }
    trimmed.contains('\\').then(|| (trimmed.replace('\\', ""), TextFlaw::Escaped))
}

pub(super) fn display_value(text: &str) -> String {
    truncate(text, SHOWN_BYTES_MAX)
}

/// A value for use within a sentence.
pub(super) fn short_value(text: &str) -> String {
    truncate(text, SHORT_BYTES_MAX)
}

/// Truncates a value and replaces control characters.
fn truncate(text: &str, bytes_max: usize) -> String {
    let mut truncated = String::new();
    for c in text.chars() {
        if truncated.len() + c.len_utf8() > bytes_max {
            truncated.push('…');
            break;
        }
        truncated.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    truncated
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn join_list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_repaired() {
        for (text, repaired) in [
            ("\"v=spf1 -all\"", Some(("v=spf1 -all", TextFlaw::Quoted))),
            ("“v=spf1 -all”", Some(("v=spf1 -all", TextFlaw::Quoted))),
            ("\"k=rsa; p=AB\" \"CD\"", Some(("k=rsa; p=ABCD", TextFlaw::Quoted))),
            ("v=DMARC1\\; p=none", Some(("v=DMARC1; p=none", TextFlaw::Escaped))),
            ("v=spf1 -all", None),
        ] {
            let repaired = repaired.map(|(text, flaw)| (text.to_owned(), flaw));
            assert_eq!(repair_text(text), repaired, "{text}");
        }
    }

    #[test]
    fn displayed_values_are_bounded() {
        assert!(display_value(&"ü".repeat(60_000)).len() <= SHOWN_BYTES_MAX + '…'.len_utf8());
        assert_eq!(display_value("a\r\n\u{1b}b"), "a\u{fffd}\u{fffd}\u{fffd}b");
    }
}
