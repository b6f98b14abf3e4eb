//! What a file may be called: no name that a recipient's machine takes for a program's.
//!
//! ```text
//! name ─► as it is, its encoded words decoded, its %xx decoded ─► NFKC, in lower case, unseen characters cut ─► extension
//! ```
//!
//! A name is looked at in every way in which some mail client may read it (RFC 2047, RFC 2231).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use crate::service;

/// Extensions of files that run when they are opened (email-api.md "Limits").
pub const EXTENSIONS_BLOCKED: &[&str] = &["exe", "bat", "cmd", "com", "scr", "js", "vbs", "dll"];
/// Enough of a name to know the file by.
const SHOWN_CHARS_MAX: usize = 80;

/// The blocked extension that a file of this name has for some machine that opens it.
#[must_use]
pub fn blocked_extension(name: &str) -> Option<&'static str> {
    let decoded = service::decode_encoded_words(name);
    [decode_percent(name), decode_percent(&decoded), Cow::Borrowed(name), Cow::Borrowed(&decoded)]
        .iter()
        .find_map(|seen| extension_of(seen))
}

/// Whether a name has a character that is not seen, or that turns the direction: `gpj.exe` would show as
/// `exe.jpg`. The selectors behind an emoji are no such thing.
#[must_use]
pub fn has_invisible(name: &str) -> bool {
    name.chars().any(|c| is_invisible(c) && !is_selector(c))
}

/// A name as a text for people shows it: decoded, if it is an extended parameter's value (RFC 2231 4) or in
/// encoded words.
#[must_use]
pub fn display_name(name: &str) -> String {
    let decoded = match extended_value(name) {
        Some(value) => decode_percent(value).into_owned(),
        None => service::decode_encoded_words(name),
    };
    decoded.chars().filter(|c| !c.is_control() && !is_invisible(*c)).take(SHOWN_CHARS_MAX).collect()
}

/// Windows drops dots and spaces at the end and what stands behind a colon; a semicolon ends a parameter in
/// clients that read the header badly, a NUL the name.
fn extension_of(name: &str) -> Option<&'static str> {
    let fold = |c: char| if matches!(c, '\u{3002}') { '.' } else { c };
    let kept = |c: &char| c.is_control() || !(is_invisible(*c) || c.is_whitespace());
    let name: String = name.nfkc().map(fold).flat_map(char::to_lowercase).filter(kept).collect();
    let text: String = name.chars().filter(|c| !c.is_control()).collect();
    let parts = name.split([':', ';', '"', '\'', '\0', '\r', '\n']).chain([text.as_str()]);
    parts.into_iter().find_map(|part| {
        let is_dropped = |c: char| c.is_control() || matches!(c, '.' | '/' | '\\');
        let (_, extension) = part.trim_end_matches(is_dropped).rsplit_once('.')?;
        EXTENSIONS_BLOCKED.iter().find(|blocked| extension == **blocked).copied()
    })
}

/// Characters without a width or a glyph: formats and fillers (Unicode `Default_Ignorable_Code_Point`).
fn is_invisible(c: char) -> bool {
    is_selector(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

/// Selectors of a glyph's form, and tags: they belong to emoji.
fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// What stands behind the charset and the language of an extended parameter's value: `utf-8'en'a%2eexe`.
fn extended_value(value: &str) -> Option<&str> {
    let (charset, rest) = value.split_once('\'')?;
    let (language, rest) = rest.split_once('\'')?;
    let is_token = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    (is_token(charset) && is_token(language)).then_some(rest)
}

/// `%2e` is a dot to a client that takes the name for an extended parameter (RFC 2231 4).
fn decode_percent(name: &str) -> Cow<'_, str> {
    if !name.contains('%') {
        return Cow::Borrowed(name);
    }
    let bytes = name.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match hex.filter(|_| *byte == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_whatever_their_disguise() {
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
