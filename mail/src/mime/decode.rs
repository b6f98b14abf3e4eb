//! Content-Transfer-Encoding (RFC 2045 6), read as it is found: what does not belong is passed over, nothing is lost.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mail_parser::Encoding;

/// Base 64 without its padding, whatever the last bits are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The encoding that a field names, comments and what follows left aside.
pub(super) fn encoding(field: &str) -> Encoding {
    let mut plain = String::with_capacity(field.len());
    let mut depth = 0_usize;
    for letter in field.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let word = plain.trim().split([';', ' ', '\t']).next().unwrap_or_default().trim_matches('"');
    if word.eq_ignore_ascii_case("base64") {
        Encoding::Base64
    } else if word.eq_ignore_ascii_case("quoted-printable") {
        Encoding::QuotedPrintable
    } else {
        Encoding::None
    }
}

/// What bytes were before they were encoded, and whether they were encoded as they must be.
pub(super) fn decode(encoding: Encoding, bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
    match encoding {
        Encoding::None => (Cow::Borrowed(bytes), true),
        Encoding::Base64 => base64(bytes),
        Encoding::QuotedPrintable => quoted_printable(bytes),
    }
}

/// RFC 2045 6.8: other characters are ignored, and the padding ends it.
fn base64(bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
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
        // Six bits are no byte.
        digits.pop();
        is_whole = false;
    }
    match BASE64.decode(&digits) {
        Ok(decoded) => (Cow::Owned(decoded), is_whole),
        Err(_) => (Cow::Borrowed(bytes), false),
    }
}

/// RFC 2045 6.7: what is no encoding stays as it is.
fn quoted_printable(bytes: &[u8]) -> (Cow<'_, [u8]>, bool) {
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
        // A soft line break, with blanks that were added on the way.
        let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match after.get(blanks..).unwrap_or_default() {
            [b'\r', b'\n', more @ ..] | [b'\n', more @ ..] => rest = more,
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
    fn base64_as_it_is_found() {
        let read = |text: &str| {
            let (decoded, is_whole) = base64(text.as_bytes());
            (String::from_utf8_lossy(&decoded).into_owned(), is_whole)
        };
        let whole = |text: &str| (text.to_owned(), true);
        let mended = |text: &str| (text.to_owned(), false);
        assert_eq!(read("dGhlIGZp\r\nbGU=\r\n"), whole("the file"));
        assert_eq!(read("dGhlIGZpbGU"), mended("the file"), "no padding");
        assert_eq!(read("dGhl*IGZp!bGU="), mended("the file"), "foreign characters");
        assert_eq!(read("dGhlIGZpbGU=\r\n-- \r\nA list's footer"), mended("the file"));
        assert_eq!(read("dGhlIGZpbGUu\r\nA"), mended("the file."));
        assert_eq!(read(""), whole(""));
    }

    #[test]
    fn quoted_printable_as_it_is_found() {
        let read = |text: &str| String::from_utf8(quoted_printable(text.as_bytes()).0.into_owned()).unwrap();
        assert_eq!(read("Gr=C3=BC=c3=9fe 1 = 1\r\nand so =\r\non= \t\r\n."), "Grüße 1 = 1\r\nand so on.");
        assert_eq!(read("=3D=ZZ=4"), "==ZZ=4");
        assert_eq!(read("end="), "end");
    }

    #[test]
    fn names_of_encodings() {
        for (field, wanted) in [
            ("BASE64", Encoding::Base64),
            ("(c) base64", Encoding::Base64),
            ("base64;", Encoding::Base64),
            ("\"base64\"", Encoding::Base64),
            ("Quoted-Printable (x(y)z)", Encoding::QuotedPrintable),
            ("8bit", Encoding::None),
            ("", Encoding::None),
        ] {
            assert_eq!(encoding(field), wanted, "{field}");
        }
    }
}
