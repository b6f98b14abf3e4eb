//! Percent-encoding of text in URLs and header fields (RFC 3986 2.1, RFC 8187 3.2).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All ASCII characters but the unreserved ones (RFC 3986 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// With the dot: a client may resolve a segment `..`.
const RESERVED_IN_SEGMENT: &AsciiSet = &RESERVED.add(b'.');
const INVISIBLE: &AsciiSet = &CONTROLS.add(b' ');

/// Encodes all but unreserved characters: for a value of a query, or of an extended parameter.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Encodes a text so that it stays one segment of a path (RFC 3986 3.3).
pub fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED_IN_SEGMENT).to_string()
}

/// Encodes what is not visible ASCII; the text keeps its escapes.
pub fn encode_invisible(text: &str) -> String {
    utf8_percent_encode(text, INVISIBLE).to_string()
}

/// Decodes a text; `None` if an escape is invalid, or the result is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

/// Decodes a text; invalid escapes stay, and so does the text if the result is not UTF-8.
pub fn decode_lenient(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_characters_differ() {
        assert_eq!(encode("a b&c=d\r\n\u{e9}#-._~"), "a%20b%26c%3Dd%0D%0A%C3%A9%23-._~");
        assert_eq!(encode_segment("aff_01-~"), "aff_01-~");
        assert_eq!(encode_segment("../a?b#c"), "%2E%2E%2Fa%3Fb%23c");
        assert_eq!(encode_invisible("/a b\"%20\u{7f}ü"), "/a%20b\"%20%7F%C3%BC");
    }

    #[test]
    fn invalid_escapes_are_refused_or_stay() {
        for (text, strict, lenient) in [
            ("a%20b%c3%BC", Some("a bü"), "a bü"),
            ("", Some(""), ""),
            ("%", None, "%"),
            ("%4", None, "%4"),
            ("%%41", None, "%A"),
            ("%+f%zz%41", None, "%+f%zzA"),
            ("%ü", None, "%ü"),
            ("%41%ff", None, "%41%ff"),
        ] {
            assert_eq!(decode(text).as_deref(), strict, "{text}");
            assert_eq!(decode_lenient(text), lenient, "{text}");
        }
    }
}
