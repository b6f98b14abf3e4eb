//! Lenient decoding of Content-Transfer-Encoding (RFC 2045 6): invalid characters are skipped, valid data is preserved.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferEncoding {
    /// `7bit`, `8bit`, `binary`, a missing field, and unknown encodings.
    Identity,
    Base64,
    QuotedPrintable,
    /// `x-uuencode`, older than MIME.
    Uuencode,
}

/// Base64 as lenient as mail clients: any padding, any trailing bits.
pub(crate) const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Parses the field's value, ignoring comments and trailing text.
pub(super) fn parse_encoding(field: &str) -> TransferEncoding {
    let mut plain = String::with_capacity(field.len());
    let mut depth = 0_usize;
    for character in field.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    let word = plain.trim().split([';', ' ', '\t']).next().unwrap_or_default().trim_matches('"');
    match word.to_ascii_lowercase().as_str() {
        "base64" => TransferEncoding::Base64,
        "quoted-printable" => TransferEncoding::QuotedPrintable,
        "x-uuencode" | "x-uu" | "x-uue" | "uuencode" => TransferEncoding::Uuencode,
        _ => TransferEncoding::Identity,
    }
}

/// Decodes bytes, and returns whether the encoding was well-formed.
pub(super) fn decode(encoding: TransferEncoding, bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
    match encoding {
        TransferEncoding::Identity => (Cow::Borrowed(bytes), true),
        TransferEncoding::Base64 => decode_base64(bytes),
        TransferEncoding::QuotedPrintable => decode_quoted_printable(bytes),
        TransferEncoding::Uuencode => decode_uuencoded(bytes),
    }
}

/// POSIX `uuencode`: between `begin 644 name` and `end`, the first character of each line encodes its length in bytes.
/// Bytes without a `begin` line stay encoded. Some encoders write a blank for the digit 0, and some hosts cut trailing
/// blanks: missing digits count as 0.
fn decode_uuencoded(bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    if !lines.by_ref().any(|line| line.starts_with(b"begin ")) {
        return (Cow::Borrowed(bytes), false);
    }
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3);
    for line in lines {
        if line == b"end" {
            return (Cow::Owned(decoded), true);
        }
        let Some((count, digits)) = line.split_first() else { continue };
        let count = usize::from(count.wrapping_sub(b' ') & 0x3f);
        let digit = |at: usize| digits.get(at).map_or(0, |digit| u32::from(digit.wrapping_sub(b' ') & 0x3f));
        let groups = (0..count.div_ceil(3)).flat_map(|group| {
            let bits = (0..4).fold(0, |bits, at| bits << 6 | digit(group * 4 + at));
            bits.to_be_bytes().into_iter().skip(1)
        });
        decoded.extend(groups.take(count));
    }
    (Cow::Owned(decoded), false)
}

/// RFC 2045 6.8: ignores characters outside the alphabet; the padding ends the data.
fn decode_base64(bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
    let mut digits = Vec::with_capacity(bytes.len());
    let (mut is_whole, mut is_padded) = (true, false);
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if !is_padded => digits.push(*byte),
            b'=' => is_padded = true,
            b'\r' | b'\n' | b' ' | b'\t' => {}
            _ => is_whole = false,
        }
    }
    is_whole &= is_padded || digits.len() % 4 == 0;
    if digits.len() % 4 == 1 {
        // Six bits are not a byte.
        digits.pop();
        is_whole = false;
    }
    match LENIENT_BASE64.decode(&digits) {
        Ok(decoded) => (Cow::Owned(decoded), is_whole),
        Err(_) => (Cow::Borrowed(bytes), false),
    }
}

/// RFC 2045 6.7: malformed sequences stay as they are.
fn decode_quoted_printable(bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
    let mut decoded = Vec::with_capacity(bytes.len());
    let (mut rest, mut is_whole) = (bytes, true);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'=' {
            decoded.push(*byte);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if let (Some(high), Some(low)) = (digit(0), digit(1)) {
            decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            rest = after.get(2..).unwrap_or_default();
            continue;
        }
        // A soft line break, optionally with blanks that a host added.
        let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match after.get(blanks..).unwrap_or_default() {
            [b'\r', b'\n', tail @ ..] | [b'\n', tail @ ..] => rest = tail,
            [] => rest = &[],
            _ => {
                decoded.push(b'=');
                is_whole = false;
            }
        }
    }
    (Cow::Owned(decoded), is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_base64_is_decoded() {
        let read = |text: &str| {
            let (decoded, is_whole) = decode_base64(text.as_bytes());
            (String::from_utf8_lossy(&decoded).into_owned(), is_whole)
        };
        let whole = |text: &str| (text.to_owned(), true);
        let repaired = |text: &str| (text.to_owned(), false);
        assert_eq!(read("dGhlIGZp\r\nbGU=\r\n"), whole("the file"));
        assert_eq!(read("dGhlIGZpbGU"), repaired("the file"), "no padding");
        assert_eq!(read("dGhl*IGZp!bGU="), repaired("the file"), "foreign characters");
        assert_eq!(read("dGhlIGZpbGU=\r\n-- \r\nA list's footer"), repaired("the file"));
        assert_eq!(read("dGhlIGZpbGUu\r\nA"), repaired("the file."));
        assert_eq!(read(""), whole(""));
    }

    #[test]
    fn malformed_quoted_printable_is_decoded() {
        let read = |text: &str| String::from_utf8(decode_quoted_printable(text.as_bytes()).0.into_owned()).unwrap();
        assert_eq!(read("Gr=C3=BC=c3=9fe 1 = 1\r\nand so =\r\non= \t\r\n."), "Grüße 1 = 1\r\nand so on.");
        assert_eq!(read("=3D=ZZ=4"), "==ZZ=4");
        assert_eq!(read("end="), "end");
    }

    #[test]
    fn malformed_uuencode_is_decoded() {
        let read = |text: &str| {
            let (decoded, is_whole) = decode_uuencoded(text.as_bytes());
            (String::from_utf8(decoded.into_owned()).unwrap(), is_whole)
        };
        let cat = "begin 644 cat.txt\r\n#0V%T\r\n`\r\nend\r\n";
        assert_eq!(read(cat), ("Cat".to_owned(), true));
        assert_eq!(read(&format!("a word before\r\n{cat}and behind\r\n")), ("Cat".to_owned(), true));
        assert_eq!(read("begin 644 x\n\"86%\n \nend"), ("aa".to_owned(), true), "a last group of two bytes");
        assert_eq!(read("begin 644 x\n#0V%T\n"), ("Cat".to_owned(), false), "cut off");
        assert_eq!(read("begin 644 x\n#\nend\n"), ("\0\0\0".to_owned(), true), "blanks cut off");
        assert_eq!(read("plain"), ("plain".to_owned(), false), "no frame");
    }

    #[test]
    fn encoding_names_are_parsed() {
        for (field, wanted) in [
            ("BASE64", TransferEncoding::Base64),
            ("(c) base64", TransferEncoding::Base64),
            ("base64;", TransferEncoding::Base64),
            ("\"base64\"", TransferEncoding::Base64),
            ("Quoted-Printable (x(y)z)", TransferEncoding::QuotedPrintable),
            ("X-UUencode", TransferEncoding::Uuencode),
            ("8bit", TransferEncoding::Identity),
            ("", TransferEncoding::Identity),
        ] {
            assert_eq!(parse_encoding(field), wanted, "{field}");
        }
    }
}
