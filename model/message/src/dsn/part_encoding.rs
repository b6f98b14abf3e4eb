//! Text formats of a DSN: typed addresses (RFC 3464 2.3.1, RFC 6533 3) and transfer encodings of its parts.

use std::fmt::Write as _;

use mail_builder::encoders::QuotedPrintableEncoder;

use crate::address::Address;

/// Maximum number of characters of an untrusted text in a field.
const TEXT_CHARS_MAX: usize = 240;

/// Makes an untrusted text a single line of limited length, so that it cannot add header fields.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_CHARS_MAX).collect()
}

/// Like [`one_line`], with `?` for non-ASCII characters unless `utf8` is set.
pub(super) fn field_text(text: &str, utf8: bool) -> String {
    let line = one_line(text);
    if utf8 { line } else { line.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect() }
}

/// An address with its type. A non-ASCII address has the type `utf-8`, written as UTF-8 if `utf8` is set and as
/// `utf-8-addr-xtext` otherwise (RFC 6533 3).
pub(super) fn typed_address(address: &Address, utf8: bool) -> String {
    let text = address.to_string();
    match (text.is_ascii(), utf8) {
        (true, _) => format!("rfc822; {text}"),
        (false, true) => format!("utf-8; {text}"),
        (false, false) => format!("utf-8; {}", utf8_addr_xtext(&text)),
    }
}

/// The decoded ORCPT for a field. Non-ASCII characters are encoded again unless `utf8` is set.
pub(super) fn original_recipient(recipient: &str, utf8: bool) -> String {
    let recipient = one_line(recipient);
    if recipient.is_ascii() || utf8 {
        return recipient;
    }
    match recipient.split_once(';') {
        Some((kind, address)) if kind.eq_ignore_ascii_case("utf-8") => {
            format!("{kind};{}", utf8_addr_xtext(address))
        }
        Some((kind, address)) => format!("{kind};{}", xtext(address)),
        None => xtext(&recipient),
    }
}

/// Encodes as `utf-8-addr-xtext` (RFC 6533 3): `\x{…}` for non-ASCII characters and the ASCII characters that need
/// encoding.
fn utf8_addr_xtext(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if matches!(c, '!'..='~') && !matches!(c, '+' | '=' | '\\') {
            out.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{{{:02X}}}", u32::from(c));
        }
    }
    out
}

/// Encodes as xtext (RFC 3461 4).
fn xtext(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if matches!(byte, b'!'..=b'~') && !matches!(byte, b'+' | b'=') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "+{byte:02X}");
        }
    }
    out
}

/// Transfer encoding of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartEncoding {
    /// 7bit: ASCII content, written unchanged.
    SevenBit,
    /// 8bit: non-ASCII content, written unchanged.
    EightBit,
    QuotedPrintable,
}

impl PartEncoding {
    /// Chooses the encoding of a part. `eight` allows 8bit: the recipient's address needs SMTPUTF8, or MIME forbids
    /// another encoding.
    pub(super) fn choose(content: &[u8], eight: bool) -> Self {
        match (content.is_ascii(), eight) {
            (true, _) => Self::SevenBit,
            (false, true) => Self::EightBit,
            (false, false) => Self::QuotedPrintable,
        }
    }

    /// The `Content-Transfer-Encoding` field; empty for 7bit, which is the default.
    fn header_field(self) -> &'static str {
        match self {
            Self::SevenBit => "",
            Self::EightBit => "Content-Transfer-Encoding: 8bit\r\n",
            Self::QuotedPrintable => "Content-Transfer-Encoding: quoted-printable\r\n",
        }
    }
}

/// Appends a MIME part with its type and encoding.
pub(super) fn write_part(out: &mut Vec<u8>, boundary: &str, kind: &str, transfer: PartEncoding, content: &[u8]) {
    let head = format!("\r\n--{boundary}\r\nContent-Type: {kind}\r\n{}\r\n", transfer.header_field());
    out.extend_from_slice(head.as_bytes());
    match transfer {
        PartEncoding::SevenBit | PartEncoding::EightBit => out.extend_from_slice(content),
        PartEncoding::QuotedPrintable => out.extend_from_slice(&quoted_printable(content)),
    }
}

fn quoted_printable(content: &[u8]) -> Vec<u8> {
    // Encoding to memory cannot fail.
    QuotedPrintableEncoder::new().preserve_line_breaks().encode(content).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes `utf-8-addr-xtext` (RFC 6533 3).
    fn read_back(text: &str) -> Option<String> {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, tail)) = rest.split_once("\\x{") {
            let (hex, after) = tail.split_once('}')?;
            out.push_str(before);
            out.push(char::from_u32(u32::from_str_radix(hex, 16).ok()?)?);
            rest = after;
        }
        Some(out + rest)
    }

    proptest! {
        #[test]
        fn utf8_addr_xtext_round_trips(text in "\\PC{1,40}") {
            let coded = utf8_addr_xtext(&text);
            prop_assert!(coded.bytes().all(|b| matches!(b, b'!'..=b'~') && b != b'+' && b != b'='));
            prop_assert_eq!(read_back(&coded).unwrap(), text);
        }

        #[test]
        fn quoted_printable_round_trips_in_short_lines(text in "(\\PC{0,90}(\r\n)?){0,5}") {
            let quoted = quoted_printable(text.as_bytes());
            prop_assert!(quoted.is_ascii());
            prop_assert!(quoted.split(|b| *b == b'\n').all(|line| line.len() <= 77));
            let back = mail_parser::decoders::quoted_printable::quoted_printable_decode(&quoted);
            prop_assert_eq!(back.unwrap(), text.into_bytes());
        }

        #[test]
        fn fields_are_ascii_without_utf8(text in "\\PC{0,40}") {
            prop_assert!(field_text(&text, false).is_ascii());
            for kind in ["utf-8", "rfc822"] {
                let given = format!("{kind};{text}");
                prop_assert!(original_recipient(&given, false).is_ascii());
            }
        }
    }
}
