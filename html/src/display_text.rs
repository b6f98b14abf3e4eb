//! Text from outside, made safe to look at.

use std::borrow::Cow;

/// Replaces control characters and direction overrides by U+FFFD. Line ends and tabs stay: a parser reads a carriage
/// return as a line feed (HTML, "preprocessing the input stream").
///
/// Such characters do not break HTML, but let a text look like another one.
pub fn display_text(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_deceptive) {
        Cow::Owned(text.chars().map(|one| if is_deceptive(one) { '\u{fffd}' } else { one }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Control characters (Unicode category Cc), and the formatting characters of UAX #9 (bidirectional text) and zero-width
/// spaces. Joiners (U+200C, U+200D) stay: words of Persian and Hindi, and many emoji, need them.
pub(crate) fn is_deceptive(one: char) -> bool {
    (one.is_control() && !matches!(one, '\n' | '\r' | '\t'))
        || matches!(one, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_overrides_are_replaced() {
        assert_eq!(display_text("a\r\nb\tc"), "a\r\nb\tc");
        assert_eq!(display_text("moc.\u{202e}evil\u{0}"), "moc.\u{fffd}evil\u{fffd}");
        assert!(matches!(display_text("plain"), Cow::Borrowed(_)));
    }
}
