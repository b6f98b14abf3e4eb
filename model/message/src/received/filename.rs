//! File names of attachments, in every form that mail clients write.
//!
//! `filename*` has priority over the ASCII fallback `filename` (RFC 6266 4.3). Continuations are joined before
//! decoding, because they can split characters (RFC 2231 3, 4.1). Encoded words in quoted strings are decoded, although
//! RFC 2047 5 forbids them.

use mail_parser::decoders::charsets::map::charset_decoder;
use percent_encoding::percent_decode_str;

use super::header::{fields, is_named};
use crate::attachment_policy::{mime_parameter, unfold_value};
use crate::encoded_word;

/// Longer fields are ignored.
const FIELD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of continuations of one name.
const PIECES_MAX: usize = 64;

/// Parses the file name in the header of a part.
pub(super) fn parse_filename(header: &[u8]) -> Option<String> {
    let value = |name: &str| {
        let field = fields(header).find(|field| is_named(field, name))?;
        let colon = memchr::memchr(b':', field)?;
        let value = field.get(colon..)?;
        // A field that is not UTF-8 is left to mail-parser, which guesses the character set.
        std::str::from_utf8(value).ok().filter(|value| value.len() <= FIELD_BYTES_MAX)?;
        Some(unfold_value(value))
    };
    let named = |field: &str, name: &str| value(field).and_then(|value| find_parameter(&value, name));
    named("Content-Disposition", "filename").or_else(|| named("Content-Type", "name"))
}

fn find_parameter(field: &str, wanted: &str) -> Option<String> {
    let mut plain = None;
    let mut whole = None;
    let mut pieces: Vec<(u32, bool, String)> = Vec::new();
    for (key, value) in mime_parameter::parameters(field, true) {
        let (name, section) = key.split_once('*').map_or((key.as_str(), None), |(name, rest)| (name, Some(rest)));
        if name.trim() != wanted {
            continue;
        }
        match section.map(str::trim) {
            None => plain = plain.or(Some(value)),
            Some("") => whole = whole.or(Some(value)),
            Some(section) => {
                let number = section.trim_end_matches('*').parse();
                if let (Ok(number), true) = (number, pieces.len() < PIECES_MAX) {
                    pieces.push((number, section.ends_with('*'), value));
                }
            }
        }
    }
    pieces.sort_by_key(|(number, ..)| *number);
    pieces.dedup_by_key(|(number, ..)| *number);
    let whole = whole.map(|value| vec![(0, true, value)]);
    let extended = whole.or((!pieces.is_empty()).then_some(pieces));
    extended
        .and_then(|pieces| join_continuations(&pieces))
        .or_else(|| plain.map(|plain| encoded_word::decode_text(&plain)))
}

/// RFC 2231 4: `charset'language'text` at the beginning, `%XX` in the marked pieces.
fn join_continuations(pieces: &[(u32, bool, String)]) -> Option<String> {
    let (_, is_encoded, first) = pieces.first()?;
    let mut head = first.splitn(3, '\'');
    let (charset, first) = match (is_encoded, head.next(), head.next(), head.next()) {
        (true, Some(charset), Some(_), Some(text)) => (charset, text),
        _ => ("", first.as_str()),
    };
    let texts = pieces
        .iter()
        .enumerate()
        .map(|(index, (_, is_encoded, text))| (*is_encoded, if index == 0 { first } else { text.as_str() }));
    let mut bytes = Vec::new();
    for (is_encoded, text) in texts {
        match is_encoded {
            true => bytes.extend(percent_decode_str(text)),
            false => bytes.extend_from_slice(text.as_bytes()),
        }
    }
    let text = match charset_decoder(charset.as_bytes()).filter(|_| !charset.is_empty()) {
        Some(decode) => decode(&bytes),
        None => String::from_utf8_lossy(&bytes).into_owned(),
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filenames_are_decoded_in_every_encoding() {
        for (field, name) in [
            ("attachment; filename=a.pdf", "a.pdf"),
            ("attachment; filename=\"a b.pdf\"", "a b.pdf"),
            ("attachment; filename=\"=?utf-8?Q?=C3=A4?= =?utf-8?Q?=C3=B6.pdf?=\"", "äö.pdf"),
            ("attachment; filename=\"=?utf-8?Q?=C3?=\r\n =?utf-8?Q?=A4.pdf?=\"", "ä.pdf"),
            ("attachment; filename=\"=?utf-8?B?w6Q?= =?utf-8?B?w7Y=?=.pdf\"", "äö.pdf"),
            ("attachment; filename*0*=utf-8''%C3; filename*1*=%A4.pdf", "ä.pdf"),
            ("attachment; filename*1=\".pdf\"; filename*0=\"a%20b\"", "a%20b.pdf"),
            ("attachment; filename=\"_.pdf\"; filename*=utf-8''%C3%BC.pdf", "ü.pdf"),
            ("attachment; filename*=utf-8''%C3%BC.pdf; filename=\"_.pdf\"", "ü.pdf"),
            ("attachment; filename*=iso-8859-1'de'%FC.pdf", "ü.pdf"),
            ("attachment; filename*=%zz%4", "%zz%4"),
        ] {
            let header = format!("Content-Type: text/plain\r\nContent-Disposition: {field}\r\n");
            assert_eq!(parse_filename(header.as_bytes()).as_deref(), Some(name), "{field}");
        }
        assert_eq!(parse_filename(b"Content-Type: a/b; name=c.pdf\r\n").as_deref(), Some("c.pdf"));
        for none in ["", "Content-Disposition: attachment\r\n", "Content-Disposition: attachment; size=1\r\n"] {
            assert_eq!(parse_filename(none.as_bytes()), None, "{none}");
        }
        assert_eq!(parse_filename(b"Content-Disposition: attachment; filename=\xe4.pdf\r\n"), None);
    }
}
