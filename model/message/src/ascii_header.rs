//! ASCII form of UTF-8 header fields: subjects, display names and comments become encoded words (RFC 2047), so that the
//! message does not need SMTPUTF8 (RFC 6531). Addresses with non-ASCII local parts have no such form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::header::HeaderField;

/// Fields with addresses: only their phrases and comments are encoded (RFC 2047 5).
const ADDRESS_FIELDS: &[&str] = &[
    "From",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Resent-From",
    "Resent-Sender",
    "Resent-Reply-To",
    "Resent-To",
    "Resent-Cc",
    "Disposition-Notification-To",
];
/// Fields that are not encoded, because their syntax has no place for encoded words or is not parsed here.
const STRUCTURED_FIELDS: &[&str] = &[
    "Message-ID",
    "In-Reply-To",
    "References",
    "Date",
    "Keywords",
    "MIME-Version",
    "Received",
    "Authentication-Results",
];
/// Name prefixes of such fields. `Content-Description` is text nevertheless (RFC 2045 8).
const STRUCTURED_PREFIXES: &[&str] = &["Resent-", "Content-", "List-", "ARC-", "DKIM-", "Autocrypt"];
/// Signature fields. They sign the bytes of other fields, so nothing is encoded if one is present.
const SIGNATURES: &[&str] = &["DKIM-Signature", "ARC-Seal"];
/// UTF-8 bytes per encoded word, which has at most 75 characters (RFC 2047 2).
const WORD_BYTES: usize = 45;
/// Maximum length of a line with an encoded word (RFC 2047 2).
const LINE_CHARS: usize = 76;

/// Returns ASCII replacements for the non-ASCII fields, in order. Returns `None`, which leaves all fields unchanged, if
/// one of them has no ASCII form or if the message is signed.
pub(crate) fn encode_fields<'a>(
    message: &[u8],
    fields: impl Iterator<Item = &'a HeaderField> + Clone,
) -> Option<Vec<(HeaderField, Bytes)>> {
    if fields.clone().any(|field| SIGNATURES.iter().any(|name| field.has_name(message, name))) {
        return None;
    }
    fields
        .filter(|field| message.get(field.start..field.end).is_some_and(|bytes| !bytes.is_ascii()))
        .map(|field| Some((*field, encode_field(message, field)?)))
        .collect()
}

fn encode_field(message: &[u8], field: &HeaderField) -> Option<Bytes> {
    let name = std::str::from_utf8(message.get(field.start..field.name_end)?).ok()?;
    let value = std::str::from_utf8(message.get(field.name_end..field.end)?).ok()?;
    let value = value.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    let (value, line_end) = value.strip_suffix("\r\n").map_or((value, ""), |value| (value, "\r\n"));
    // Existing text of the form `=?…` would be encoded twice, or be decoded although it is literal.
    if value.contains("=?") {
        return None;
    }
    let is_name = |known: &&str| known.eq_ignore_ascii_case(name);
    let begins = |prefix: &&str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let mut out = format!("{name}:");
    if ADDRESS_FIELDS.iter().any(is_name) {
        encode_addresses(&mut out, value)?;
    } else if is_name(&"Content-Description")
        || !(STRUCTURED_FIELDS.iter().any(is_name) || STRUCTURED_PREFIXES.iter().any(begins))
    {
        encode_text(&mut out, value);
    } else {
        return None;
    }
    out.push_str(line_end);
    Some(Bytes::from(out))
}

/// Encodes the text from the first to the last non-ASCII word; the text around them is unchanged.
fn encode_text(out: &mut String, value: &str) {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let (Some(first), Some(last)) = (value.find(|c: char| !c.is_ascii()), value.rfind(|c: char| !c.is_ascii())) else {
        return out.push_str(value);
    };
    let start = value[..first].rfind(is_blank).map_or(0, |blank| blank + 1);
    let end = value[last..].find(is_blank).map_or(value.len(), |blank| last + blank);
    out.push_str(value[..start].trim_end_matches(is_blank));
    push_encoded_words(out, &value[start..end].replace("\r\n", ""));
    out.push_str(&value[end..]);
}

/// The words of a possible display name so far. A phrase with an `@` is an address, not a name.
#[derive(Default)]
struct Phrase {
    text: String,
    has_at: bool,
}

impl Phrase {
    fn push(&mut self, word: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(word);
    }
}

/// Encodes display names, group names and comments. Returns `None` if an address is not ASCII or the syntax is not
/// supported.
fn encode_addresses(out: &mut String, value: &str) -> Option<()> {
    let mut phrase = Phrase::default();
    // Start of the text that is not copied to `out` yet.
    let mut start = 0;
    let mut at = 0;
    while let Some(c) = value[at..].chars().next() {
        let rest = &value[at..];
        let length = match c {
            '"' => {
                let (text, length) = parse_quoted_string(rest)?;
                phrase.push(&text);
                length
            }
            '(' => {
                let length = rest.find(')')? + 1;
                let comment = rest.get(1..length - 1)?;
                if comment.contains(['(', '\\']) || !phrase.text.is_ascii() {
                    return None;
                }
                if !comment.is_ascii() {
                    out.push_str(&value[start..=at]);
                    push_encoded_words(out, &comment.replace("\r\n", ""));
                    out.push(')');
                    start = at + length;
                }
                length
            }
            '<' | ':' => {
                if !phrase.text.is_ascii() {
                    if phrase.has_at {
                        return None;
                    }
                    push_encoded_words(out, &phrase.text);
                    out.push(' ');
                    start = at;
                }
                phrase = Phrase::default();
                let length = if c == '<' { rest.find('>')? + 1 } else { 1 };
                if !rest[..length].is_ascii() {
                    return None;
                }
                length
            }
            ',' | ';' => {
                if !phrase.text.is_ascii() {
                    return None;
                }
                out.push_str(&value[start..=at]);
                start = at + 1;
                phrase = Phrase::default();
                1
            }
            ' ' | '\t' | '\r' | '\n' => 1,
            _ => {
                let length = rest.find(['"', '(', '<', ':', ',', ';', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                phrase.has_at |= rest[..length].contains('@');
                phrase.push(&rest[..length]);
                length
            }
        };
        at += length;
    }
    if !phrase.text.is_ascii() {
        return None;
    }
    out.push_str(&value[start..]);
    Some(())
}

/// Returns the unescaped content of a quoted string (RFC 5322 3.2.4), and its length with the quotes.
fn parse_quoted_string(text: &str) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((content, at + 1)),
            '\\' => content.push(chars.next()?.1),
            '\r' | '\n' => {}
            c => content.push(c),
        }
    }
    None
}

/// Appends text as encoded words, each after a space, and folds the line where the next word does not fit.
fn push_encoded_words(out: &mut String, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let (word, tail) = rest.split_at(rest.floor_char_boundary(WORD_BYTES));
        let word = format!("=?utf-8?B?{}?=", STANDARD.encode(word));
        let line_chars = out.len() - out.rfind('\n').map_or(0, |end| end + 1);
        out.push_str(if line_chars + 1 + word.len() > LINE_CHARS { "\r\n " } else { " " });
        out.push_str(&word);
        rest = tail;
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::header::parse_fields;

    fn encoded(header: &str) -> Option<String> {
        let message = format!("{header}\r\n\r\n");
        let (fields, _) = parse_fields(message.as_bytes());
        let mut out = String::new();
        for (_, bytes) in encode_fields(message.as_bytes(), fields.iter())? {
            out.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        Some(out)
    }

    /// The encoded header as parsed by a mail client library.
    fn read_back(header: &str) -> mail_parser::Message<'static> {
        let message = encoded(header).unwrap();
        assert!(message.is_ascii(), "{message}");
        for line in message.lines() {
            assert!(line.len() <= 100, "{line}");
        }
        mail_parser::MessageParser::new().parse(&format!("{message}\r\n")).unwrap().into_owned()
    }

    #[test]
    fn encoded_text_round_trips() {
        for text in [
            "Gr\u{fc}\u{df}e",
            "An invoice for J\u{fc}rgen, and one more",
            "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{4ef6}\u{540d} ".repeat(12).trim_end(),
            &"\u{1f600}".repeat(60),
        ] {
            assert_eq!(read_back(&format!("Subject: {text}")).subject(), Some(text));
        }
        assert_eq!(
            encoded("X-Note: a long\r\n b\u{fc} c\r\n d").unwrap(),
            "X-Note: a long =?utf-8?B?YsO8?= c\r\n d\r\n"
        );
        assert_eq!(encoded("Subject :\u{fc}").unwrap(), "Subject: =?utf-8?B?w7w=?=\r\n");
    }

    #[test]
    fn display_names_are_encoded_and_addresses_are_not() {
        let message = read_back(
            "To: \"M\u{fc}ller, \\\"J\\\"\" <m@a.example>, Zo\u{eb} van  Dam <z@b.example>,\r\n c@d.example, \u{c9}quipe: e@f.example;",
        );
        let to = message.to().unwrap();
        let all: Vec<_> = to.iter().map(|a| (a.name().map(str::to_owned), a.address().unwrap().to_owned())).collect();
        let named = |name: &str, address: &str| (Some(name.to_owned()), address.to_owned());
        assert_eq!(all[0], named("M\u{fc}ller, \"J\"", "m@a.example"));
        assert_eq!(all[1], named("Zo\u{eb} van Dam", "z@b.example"));
        assert_eq!(all[2], (None, "c@d.example".to_owned()));
        assert_eq!(all[3].1, "e@f.example");
        assert_eq!(
            encoded("From: a@b.example (J\u{fc}rgen)").unwrap(),
            "From: a@b.example ( =?utf-8?B?SsO8cmdlbg==?=)\r\n"
        );
        // ASCII fields are not replaced.
        assert_eq!(encoded("To: \"A, B\" <a@b.example>\r\nSubject: \u{fc}").unwrap(), "Subject: =?utf-8?B?w7w=?=\r\n");
    }

    #[test]
    fn fields_without_an_ascii_form_are_unchanged() {
        for header in [
            "To: J\u{fc}rgen <j\u{fc}rgen@a.example>",
            "To: j\u{fc}rgen@a.example",
            "To: \"x\u{fc}\" j@a.example",
            "To: \"unclosed \u{fc} <a@b.example>",
            "To: \u{fc}, a@b.example",
            "Message-ID: <\u{fc}@a.example>",
            "Content-Type: text/plain; name=\u{fc}",
            "Subject: =?utf-8?q?a?= \u{fc}",
            "DKIM-Signature: v=1\r\nSubject: \u{fc}",
            "Subject: \u{fc}\r\nTo: j\u{fc}rgen@a.example",
        ] {
            assert_eq!(encoded(header), None, "{header}");
        }
        let (fields, _) = parse_fields(b"Subject: gr\xfc\xdfe\r\n\r\n");
        assert_eq!(encode_fields(b"Subject: gr\xfc\xdfe\r\n\r\n", fields.iter()), None);
    }

    proptest::proptest! {
        #[test]
        fn output_is_always_ascii(value in "[ -~\u{e9}\u{4e00}\"<>(),:;@\\\\]{0,80}", address in proptest::bool::ANY) {
            let name = if address { "To" } else { "Subject" };
            if let Some(out) = encoded(&format!("{name}: {value}")) {
                proptest::prop_assert!(out.is_ascii());
                proptest::prop_assert_eq!(crate::header::parse_fields(out.as_bytes()).0.len(), usize::from(!out.is_empty()));
            }
        }
    }
}
