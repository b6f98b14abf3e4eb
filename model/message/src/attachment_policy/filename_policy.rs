//! Attachment names: detects names that a recipient's computer would execute.
//!
//! ```text
//! name ─► as is, encoded words decoded, %xx decoded ─► NFKC, lower case, invisible characters removed ─► extension
//! ```
//!
//! Every interpretation of the name by some mail client is checked (RFC 2047, RFC 2231).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization as _;

use crate::encoded_word::decode_encoded_words;

/// Extensions of files that are executed when opened.
pub const EXTENSIONS_BLOCKED: &[&str] = &["exe", "bat", "cmd", "com", "scr", "js", "vbs", "dll"];
/// Maximum number of characters of a name in a message text.
const SHOWN_CHARS_MAX: usize = 80;

/// The blocked extension that some system would see in this name.
pub fn blocked_extension(name: &str) -> Option<&'static str> {
    let decoded = decode_encoded_words(name);
    [decode_percent(name), decode_percent(&decoded), Cow::Borrowed(name), Cow::Borrowed(&decoded)]
        .iter()
        .find_map(|candidate| extension_of(candidate))
}

/// True if the name has an invisible character or one that changes the text direction: `gpj.exe` would be displayed as
/// `exe.jpg`. Variation selectors after emoji are allowed.
pub fn has_invisible(name: &str) -> bool {
    name.chars().any(|c| is_invisible(c) && !is_selector(c))
}

/// The name for display: an extended parameter value (RFC 2231 4) or encoded words are decoded.
pub fn display_name(name: &str) -> String {
    let decoded = match extended_value(name) {
        Some(value) => decode_percent(value).into_owned(),
        None => decode_encoded_words(name),
    };
    decoded.chars().filter(|c| !c.is_control() && !is_invisible(*c)).take(SHOWN_CHARS_MAX).collect()
}

/// The blocked extension of a decoded name. Windows drops trailing dots and spaces and anything after a colon. Some
/// clients end a name at a semicolon or a NUL.
fn extension_of(name: &str) -> Option<&'static str> {
    let fold = |c: char| if matches!(c, '\u{3002}') { '.' } else { c };
    let is_significant = |c: &char| c.is_control() || !(is_invisible(*c) || c.is_whitespace());
    let name: String = name.nfkc().map(fold).flat_map(char::to_lowercase).filter(is_significant).collect();
    let text: String = name.chars().filter(|c| !c.is_control()).collect();
    let parts = name.split([':', ';', '"', '\'', '\0', '\r', '\n']).chain([text.as_str()]);
    parts.into_iter().find_map(|part| {
        let is_dropped = |c: char| c.is_control() || matches!(c, '.' | '/' | '\\');
        let (_, extension) = part.trim_end_matches(is_dropped).rsplit_once('.')?;
        EXTENSIONS_BLOCKED.iter().find(|blocked| extension == **blocked).copied()
    })
}

/// True for characters without width or glyph (Unicode `Default_Ignorable_Code_Point`).
fn is_invisible(c: char) -> bool {
    is_selector(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

/// True for variation selectors and tag characters, which occur in emoji.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// The value after charset and language of an extended parameter: `utf-8'en'a%2eexe` gives `a%2eexe`.
fn extended_value(value: &str) -> Option<&str> {
    let (charset, rest) = value.split_once('\'')?;
    let (language, rest) = rest.split_once('\'')?;
    let is_token = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    (is_token(charset) && is_token(language)).then_some(rest)
}

/// Decodes `%2e` to a dot, as a client does that takes the name for an extended parameter (RFC 2231 4).
fn decode_percent(name: &str) -> Cow<'_, str> {
    percent_decode_str(name).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_extensions_are_found_in_disguise() {
        for bad in [
            "a.exe",
            "A.EXE",
            "a.exe.",
            "a.exe. . ",
            "a.js ",
            "a.exe::$DATA",
            "a%2Eexe",
            "utf-8''a%2eexe",
            "a.e%78e",
            "a.exe;",
            "a.exe;.pdf",
            "a.exe\"; x=\".pdf",
            "=?utf-8?Q?a=2Eexe?=",
            "=?utf-8?B?YS5leGU=?=",
            "=?utf-8?Q?a.e?= =?utf-8?Q?xe?=",
            "a\u{202e}gpj.exe",
            "a.e\u{200b}xe",
            ".js",
            "a.e xe",
            "a.exe\u{180e}",
            "a.exe\u{3164}",
            "a.exe\u{fe0f}",
            "a.exe\u{34f}",
            "a\u{3002}exe",
            "a.\u{ff45}\u{ff58}\u{ff45}",
            "a.\u{217d}om",
            "a.\u{1d41e}\u{1d431}\u{1d41e}",
            "a\u{2024}exe",
            "a.\u{17f}cr",
            "a.exe\0.pdf",
            "\0a\0.\0e\0x\0e",
            "a.exe/",
            "dir\\a.com",
        ] {
            assert!(blocked_extension(bad).is_some(), "{bad:?}");
        }
        for good in ["a.pdf", "Rechnung 10:30.pdf", "100%.pdf", "\u{fc}ber.txt", "exe", "a.json", "a.exe.pdf", ""] {
            assert_eq!(blocked_extension(good), None, "{good:?}");
        }
        assert!(has_invisible("a.exe\u{180e}") && !has_invisible("\u{2764}\u{fe0f}.pdf"));
    }
}
