//! UTF-8 in header fields, written in ASCII: a subject or a display name becomes encoded words (RFC 2047), so that the
//! message needs no SMTPUTF8 (RFC 6531) on its way. An address outside ASCII has no such form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::message::HeaderField;

/// Fields that hold addresses: only their phrases and comments are encoded (RFC 2047 5).
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
/// Fields whose syntax has no place for encoded words, or one that is not worth looking for.
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
/// As above, by how their names begin; but `Content-Description` is text (RFC 2045 8).
const STRUCTURED_PREFIXES: &[&str] = &["Resent-", "Content-", "List-", "ARC-", "DKIM-", "Autocrypt"];
/// Whoever signed the fields signed their bytes.
const SIGNATURES: &[&str] = &["DKIM-Signature", "ARC-Seal"];
/// UTF-8 bytes in one encoded word, which may have 75 characters (RFC 2047 2).
const WORD_BYTES: usize = 45;
/// Characters in a line that holds an encoded word (RFC 2047 2).
const LINE_CHARS: usize = 76;

/// Replacements for the fields that are not ASCII, in their order. None when one of them cannot be written in ASCII, or when
/// the message is signed: then all fields go unchanged.
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
    // Text that looks like an encoded word would be encoded twice, or decoded although it was meant literally.
    if value.contains("=?") {
        return None;
    }
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    let begins = |prefix: &&str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let mut out = format!("{name}:");
    if ADDRESS_FIELDS.iter().any(is) {
        encode_addresses(&mut out, value)?;
    } else if is(&"Content-Description")
        || !(STRUCTURED_FIELDS.iter().any(is) || STRUCTURED_PREFIXES.iter().any(begins))
    {
        encode_text(&mut out, value);
    } else {
        return None;
    }
    out.push_str(line_end);
    Some(Bytes::from(out))
}

/// Encodes from the first word that is not ASCII to the last one; what stands around them stays as it is.
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

/// The words of a phrase so far, and whether it can be one.
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

/// Encodes display names, names of groups, and comments. None: an address is not ASCII, or the syntax is not understood.
fn encode_addresses(out: &mut String, value: &str) -> Option<()> {
    let mut phrase = Phrase::default();
    // Where what is not written yet begins.
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

/// The unescaped content of a quoted string (RFC 5322 3.2.4), and its length with the quotes.
fn parse_quoted_string(text: &str) -> Option<(String, usize)> {
    let mut said = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((said, at + 1)),
            '\\' => said.push(chars.next()?.1),
            '\r' | '\n' => {}
            c => said.push(c),
        }
    }
    None
}

/// Adds text as encoded words, each behind a blank, on a line of its own where this one has no room.
fn push_encoded_words(out: &mut String, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let (word, more) = rest.split_at(rest.floor_char_boundary(WORD_BYTES));
        let word = format!("=?utf-8?B?{}?=", STANDARD.encode(word));
        let line_chars = out.len() - out.rfind('\n').map_or(0, |end| end + 1);
        out.push_str(if line_chars + 1 + word.len() > LINE_CHARS { "\r\n " } else { " " });
        out.push_str(&word);
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::parse_fields;

    fn encoded(header: &str) -> Option<String> {
        let message = format!("{header}\r\n\r\n");
        let (fields, _) = parse_fields(message.as_bytes());
        let mut out = String::new();
        for (_, bytes) in encode_fields(message.as_bytes(), fields.iter())? {
            out.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        Some(out)
    }

    /// The encoded header as a mail reader parses it.
    fn read_back(header: &str) -> mail_parser::Message<'static> {
        let message = encoded(header).unwrap();
        assert!(message.is_ascii(), "{message}");
        for line in message.lines() {
            assert!(line.len() <= 100, "{line}");
        }
        mail_parser::MessageParser::new().parse(&format!("{message}\r\n")).unwrap().into_owned()
    }

    #[test]
    fn text_is_encoded_and_read_as_it_was() {
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
    fn display_names_are_encoded_and_addresses_stay() {
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
        // Only what is not ASCII is touched.
        assert_eq!(encoded("To: \"A, B\" <a@b.example>\r\nSubject: \u{fc}").unwrap(), "Subject: =?utf-8?B?w7w=?=\r\n");
    }

    #[test]
    fn what_has_no_form_in_ascii_goes_as_it_came() {
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
        fn whatever_comes_out_is_ascii(value in "[ -~\u{e9}\u{4e00}\"<>(),:;@\\\\]{0,80}", address in proptest::bool::ANY) {
            let name = if address { "To" } else { "Subject" };
            if let Some(out) = encoded(&format!("{name}: {value}")) {
                proptest::prop_assert!(out.is_ascii());
                proptest::prop_assert_eq!(crate::message::parse_fields(out.as_bytes()).0.len(), usize::from(!out.is_empty()));
            }
        }
    }
}
