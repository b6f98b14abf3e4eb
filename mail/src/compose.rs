//! Composing a message from fields (RFC 5322, MIME), by mail-builder.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address as BuilderAddress;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::raw::Raw;
use mail_builder::headers::text::Text;
use mail_builder::headers::{Header as _, HeaderType};
use mail_builder::mime::MimePart;
use thiserror::Error;

use crate::address::Mailbox;
use crate::message::{LINE_BYTES_MAX, parse_fields};

/// Fields that the service writes itself; a customer's copy is refused, since it would steer
/// transport, forge a trace or break the structure of the message.
const RESERVED: &[&str] = &[
    "from",
    "to",
    "cc",
    "bcc",
    "sender",
    "subject",
    "date",
    "message-id",
    "reply-to",
    "received",
    "return-path",
    "delivered-to",
    "apparently-to",
    "envelope-to",
    "errors-to",
    "original-recipient",
    "return-receipt-to",
    "dkim-signature",
    "dkim2-signature",
    "message-instance",
    "domainkey-signature",
    "authentication-results",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
    "content-id",
    "auto-submitted-by",
];
/// And families of them.
const RESERVED_PREFIXES: &[&str] = &["arc-", "resent-", "received-", "x-postrider-", "service-"];
/// A name longer than this would not fit a line.
const HEADER_NAME_BYTES_MAX: usize = 76;
/// RFC 5322 2.1.1 limits lines, not fields; this is a bound on nonsense.
const HEADER_VALUE_BYTES_MAX: usize = 16 * 1024;

/// Why a header field of a customer's own is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Not a field name (RFC 5322 2.2).
    #[error("`{0}` is not a header name: letters, digits and dashes, at most {HEADER_NAME_BYTES_MAX}")]
    Name(String),
    /// One that the service writes.
    #[error("`{0}` is set by the service and cannot be given")]
    Reserved(String),
    /// CR, LF or another control character, or too long.
    #[error("the value of `{0}` has a control character or is longer than {HEADER_VALUE_BYTES_MAX} bytes")]
    Value(String),
    /// A field is folded at its blanks only (RFC 5322 2.2.3).
    #[error("the value of `{0}` has a word that does not fit a line of {LINE_BYTES_MAX} bytes; put blanks into it")]
    Word(String),
}

/// A header field of a customer's own, fit to go into a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomHeader {
    name: String,
    value: String,
}

impl CustomHeader {
    /// Checks a name and a value.
    ///
    /// # Errors
    /// [`HeaderError`] says which of them will not do.
    pub fn new(name: &str, value: &str) -> Result<Self, HeaderError> {
        let shown = || name.chars().filter(|c| !c.is_control()).take(64).collect::<String>();
        if !(1..=HEADER_NAME_BYTES_MAX).contains(&name.len())
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        {
            return Err(HeaderError::Name(shown()));
        }
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) || RESERVED_PREFIXES.iter().any(|p| lower.starts_with(p)) {
            return Err(HeaderError::Reserved(shown()));
        }
        if value.len() > HEADER_VALUE_BYTES_MAX || value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(HeaderError::Value(shown()));
        }
        // What is not ASCII is encoded, in words that fit.
        let word_bytes_max = LINE_BYTES_MAX - name.len() - ": ".len();
        if value.is_ascii() && value.split([' ', '\t']).any(|word| word.len() > word_bytes_max) {
            return Err(HeaderError::Word(shown()));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

impl CustomHeader {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its file name.
    pub name: String,
    /// Its MIME type.
    pub content_type: String,
    /// The bytes.
    pub data: Vec<u8>,
    /// The Content-ID by which the HTML shows it; such an attachment is inline.
    pub content_id: Option<String>,
}

/// What a message is composed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    /// The author.
    pub from: Mailbox,
    /// `To`.
    pub to: Vec<Mailbox>,
    /// `Cc`.
    pub cc: Vec<Mailbox>,
    /// Blind recipients: in no field, kept for the books.
    pub bcc: Vec<Mailbox>,
    /// `Reply-To`.
    pub reply_to: Vec<Mailbox>,
    /// `Subject`.
    pub subject: String,
    /// The HTML body.
    pub html: Option<String>,
    /// The plain-text body.
    pub text: Option<String>,
    /// Fields of the customer's own.
    pub headers: Vec<CustomHeader>,
    /// Files.
    pub attachments: Vec<Attachment>,
}

/// Composes the message. `message_id` comes without angle brackets.
#[must_use]
pub fn compose(parts: &Composition, message_id: &str, now: Timestamp) -> Vec<u8> {
    let mut builder = MessageBuilder::new()
        .message_id(message_id.to_owned())
        .date(now.as_second())
        .from(address_list(std::slice::from_ref(&parts.from)))
        .header("Subject", subject_field(&parts.subject));
    if !parts.to.is_empty() {
        builder = builder.to(address_list(&parts.to));
    }
    if !parts.cc.is_empty() {
        builder = builder.cc(address_list(&parts.cc));
    }
    if !parts.reply_to.is_empty() {
        builder = builder.reply_to(address_list(&parts.reply_to));
    }
    for header in &parts.headers {
        // ASCII is folded at blanks and otherwise left alone: an encoded word would spoil every structured
        // field (RFC 2047 5). Only what ASCII cannot say is encoded.
        let name = Cow::Borrowed(header.name.as_str());
        builder = if header.value.is_ascii() {
            builder.header(name, Raw::new(header.value.as_str()))
        } else {
            builder.header(name, Text::new(header.value.as_str()))
        };
    }
    if let Some(text) = &parts.text {
        builder = builder.text_body(normalize_line_ends(text));
    }
    if let Some(html) = &parts.html {
        builder = builder.html_body(normalize_line_ends(html));
    }
    let files: Vec<_> = parts.attachments.iter().map(|file| (file, EncodedAttachment::encode(file))).collect();
    if files.iter().any(|(_, encoded)| encoded.encoding == "8bit") {
        // RFC 2045 6.4: what holds a part of eight bits says so too.
        builder = builder.header("Content-Transfer-Encoding", Raw::new("8bit"));
    }
    for (file, encoded) in files {
        builder.attachments.get_or_insert_default().push(attachment_part(file, encoded));
    }
    if parts.text.is_none() && parts.html.is_none() && parts.attachments.is_empty() {
        builder = builder.body(MimePart::new("text/plain", ""));
    }
    let mut out = Vec::with_capacity(estimated_size(parts));
    // Writing into memory does not fail.
    let _ = builder.write_to(&mut out);
    out
}

/// Bytes that a message will hardly exceed: header and boundaries, bodies with some of their lines broken or a sixteenth
/// of them encoded, files in Base64. A message that grows is copied each time it does.
fn estimated_size(parts: &Composition) -> usize {
    const HEADER: usize = 1_536;
    let bodies = [&parts.text, &parts.html].into_iter().flatten().map(String::len).sum::<usize>();
    let files = parts.attachments.iter().map(|file| 512 + file.data.len() / 9 * 13).sum::<usize>();
    HEADER + bodies + bodies / 16 + files
}

/// Two bodies, or one, as what follows `MIME-Version: 1.0` in a header: fields, an empty line, the body.
#[must_use]
pub fn compose_bodies(html: Option<&str>, text: Option<&str>) -> Vec<u8> {
    let mut builder = MessageBuilder::new().message_id("x").date(0_i64);
    if text.is_some() || html.is_none() {
        builder = builder.text_body(normalize_line_ends(text.unwrap_or_default()));
    }
    if let Some(html) = html {
        builder = builder.html_body(normalize_line_ends(html));
    }
    let mut message = Vec::new();
    // Writing into memory does not fail.
    let _ = builder.write_to(&mut message);
    let (fields, body) = parse_fields(&message);
    let mut out = Vec::with_capacity(message.len());
    let is_content = |name: &[u8]| name.len() > 8 && name[..8].eq_ignore_ascii_case(b"content-");
    for field in fields.iter().filter(|field| is_content(&message[field.start..field.name_end])) {
        out.extend_from_slice(&message[field.start..field.end]);
    }
    out.extend_from_slice(&message[body..]);
    out
}

/// A subject as the value of its field. Text that looks like an encoded word is encoded, so that readers see it as it was
/// given (RFC 2047 2).
fn subject_field(text: &str) -> HeaderType<'_> {
    /// Bytes in one encoded word: behind the field's name it fits into the 76 characters of a line (RFC 2047 2).
    const WORD_BYTES: usize = 39;
    if !(text.is_ascii() && text.contains("=?")) {
        return Text::new(text).into();
    }
    let words = text.as_bytes().chunks(WORD_BYTES);
    let words: Vec<String> = words.map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word))).collect();
    Raw::new(words.join(" ")).into()
}

/// Writes a `Subject` field.
pub fn write_subject(out: &mut Vec<u8>, text: &str) {
    const NAME: &[u8] = b"Subject: ";
    out.extend_from_slice(NAME);
    subject_field(text).write_header(out, NAME.len());
}

/// Writes a `Reply-To` field.
pub fn write_reply_to(out: &mut Vec<u8>, reply_to: &[Mailbox]) {
    const NAME: &[u8] = b"Reply-To: ";
    out.extend_from_slice(NAME);
    address_list(reply_to).write_header(out, NAME.len());
}

/// The builder takes every line feed for a line end and lets a lone CR through, which no message may
/// hold (RFC 5322 2.3).
fn normalize_line_ends(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A file as it goes into its part.
struct EncodedAttachment<'a> {
    content_type: &'a str,
    encoding: &'static str,
    data: Vec<u8>,
}

impl<'a> EncodedAttachment<'a> {
    /// In base 64, so that it arrives as the same bytes, whatever its type. But not a message: it may not
    /// be encoded (RFC 2046 5.2.1; RFC 6532 3.7 lets `message/global` be), so it goes as the lines that it
    /// is. One that no line of text can carry goes as a file of no known kind, and arrives whole.
    fn encode(file: &'a Attachment) -> Self {
        let content_type = file.content_type.as_str();
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_message = kind.starts_with("message/") && !kind.starts_with("message/global");
        let base64 =
            |content_type| Self { content_type, encoding: "base64", data: wrapped_base64(&file.data).into_bytes() };
        if !is_message {
            return base64(content_type);
        }
        match crlf_lines(&file.data) {
            Some(data) if data.is_ascii() => Self { content_type, encoding: "7bit", data },
            // RFC 2046 5.2.2, 5.2.3 and RFC 3464 2.1 leave the others seven bits.
            Some(data) if kind == "message/rfc822" => Self { content_type, encoding: "8bit", data },
            _ => base64("application/octet-stream"),
        }
    }
}

/// Text with each line ended by CRLF; none when it is no text, or has a line that is too long.
fn crlf_lines(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len() + data.len() / 32);
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").map_or(line, |text| text.strip_suffix(b"\r").unwrap_or(text));
        if text.len() > LINE_BYTES_MAX || text.iter().any(|byte| matches!(byte, 0 | b'\r')) {
            return None;
        }
        out.extend_from_slice(text);
        if line.ends_with(b"\n") {
            out.extend_from_slice(b"\r\n");
        }
    }
    Some(out)
}

/// A file as a part.
fn attachment_part<'a>(file: &'a Attachment, encoded: EncodedAttachment<'a>) -> MimePart<'a> {
    let disposition = if file.content_id.is_some() { "inline" } else { "attachment" };
    let disposition = ContentType::new(disposition).attribute("filename", file.name.as_str());
    let mut part = MimePart::new(encoded.content_type, encoded.data)
        .transfer_encoding(encoded.encoding)
        .header("Content-Disposition", disposition);
    if let Some(cid) = &file.content_id {
        part = part.cid(cid.as_str());
    }
    part
}

/// RFC 2045 6.8: lines of 76 characters, 57 bytes each.
fn wrapped_base64(data: &[u8]) -> String {
    const LINE_BYTES: usize = 57;
    let mut out = String::with_capacity(data.len() / LINE_BYTES * 78 + 80);
    for line in data.chunks(LINE_BYTES) {
        STANDARD.encode_string(line, &mut out);
        out.push_str("\r\n");
    }
    out
}

fn address_list(mailboxes: &[Mailbox]) -> BuilderAddress<'_> {
    let one = |m: &Mailbox| BuilderAddress::new_address(m.name.clone(), m.address.to_string());
    match mailboxes {
        [only] => one(only),
        many => BuilderAddress::new_list(many.iter().map(one).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_parser::{MessageParser, MimeHeaders as _};

    #[test]
    fn a_subject_that_looks_encoded_is_shown_as_it_was_given() {
        for given in ["=?utf-8?Q?not_me?=", "a =?b", &"=?utf-8?B?QQ==?= and more, ".repeat(20), "=?utf-8?Q?\u{e4}?="] {
            let parts = Composition { subject: given.to_owned(), ..letter() };
            let message = compose(&parts, "id@x.example", Timestamp::UNIX_EPOCH);
            assert_eq!(crate::message::parse_header(&message).unwrap().facts.subject, given);
            assert!(message.split(|byte| *byte == b'\n').take(6).all(|line| line.len() <= 77));
            let mut field = Vec::new();
            write_subject(&mut field, given);
            assert!(memchr::memmem::find(&message, &field).is_some());
        }
    }

    #[test]
    fn header_values_fit_their_lines() {
        let word = "x".repeat(998 - "X-L: ".len());
        for value in [word.clone(), format!("{} {word} a {word}", "a".repeat(70)), "\u{e9}".repeat(2_000)] {
            let headers = vec![CustomHeader::new("X-L", &value).unwrap()];
            let parts = Composition { headers, ..letter() };
            let message = compose(&parts, "id@x.example", Timestamp::UNIX_EPOCH);
            assert_eq!(crate::message::check_lines(&message), Ok(()));
        }
        for value in [format!("{word}x"), format!("a {word}x b")] {
            assert!(matches!(CustomHeader::new("X-L", &value), Err(HeaderError::Word(_))));
        }
    }

    fn letter() -> Composition {
        Composition {
            from: "a@b.example".parse().unwrap(),
            to: vec!["c@d.example".parse().unwrap()],
            cc: vec![],
            bcc: vec![],
            reply_to: vec![],
            subject: "x".into(),
            html: None,
            text: Some("x".into()),
            headers: vec![],
            attachments: vec![],
        }
    }

    #[test]
    fn dangerous_headers_are_refused() {
        assert!(CustomHeader::new("X-Order", "12").is_ok());
        assert!(CustomHeader::new("In-Reply-To", "<a@b>").is_ok());
        for name in ["Bcc", "RECEIVED", "DKIM-Signature", "Return-Path", "ARC-Seal", "Content-Type"]
            .into_iter()
            .chain(["Message-Instance", "DKIM2-Signature"])
            .chain(["Apparently-To", "Envelope-To", "errors-to", "Original-Recipient", "Return-Receipt-To"])
        {
            assert!(matches!(CustomHeader::new(name, "x"), Err(HeaderError::Reserved(_))), "{name}");
        }
        for name in ["", "X Y", "X:Y", "X\r\nBcc"] {
            assert!(matches!(CustomHeader::new(name, "x"), Err(HeaderError::Name(_))), "{name}");
        }
        assert!(matches!(CustomHeader::new("X-A", "a\r\nBcc: x"), Err(HeaderError::Value(_))));
    }

    #[test]
    fn structured_headers_are_not_encoded() {
        let url = format!("<https://example.com/unsubscribe?token={}>", "u".repeat(80));
        let references = "<40a@x.example> ".repeat(8);
        let headers = vec![
            CustomHeader::new("List-Unsubscribe", &url).unwrap(),
            CustomHeader::new("References", references.trim()).unwrap(),
        ];
        let parts = Composition { headers, ..letter() };
        let text = String::from_utf8(compose(&parts, "x@b.example", Timestamp::UNIX_EPOCH)).unwrap();
        assert!(text.contains(&url) && !text.contains("=?"), "{text}");
        let unfolded = text.replace("\r\n\t", " ").replace("\r\n ", " ");
        assert!(unfolded.contains(references.trim()), "{text}");
    }

    #[test]
    fn no_lone_cr_or_lf_gets_in_and_files_arrive_whole() {
        let data = b"a\rb\nc\x00.\r\n.\r\n".repeat(20);
        let file = |content_id: Option<&str>| Attachment {
            name: "a \"b\".txt".into(),
            content_type: "text/plain; charset=utf-8".into(),
            data: data.clone(),
            content_id: content_id.map(Into::into),
        };
        let parts = Composition {
            html: Some("a\rb\r\nc\nd".into()),
            text: Some("\r".into()),
            attachments: vec![file(None), file(Some("logo"))],
            ..letter()
        };
        let bytes = compose(&parts, "x@b.example", Timestamp::UNIX_EPOCH);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.replace("\r\n", "").contains(['\r', '\n', '\0']), "{text:?}");
        let parsed = MessageParser::default().parse(&bytes).unwrap();
        let files: Vec<_> = parsed.parts.iter().filter(|part| part.attachment_name().is_some()).collect();
        assert_eq!(files.len(), 2, "{text}");
        for file in files {
            assert_eq!(file.contents(), data, "{text}");
            assert_eq!(file.attachment_name(), Some("a \"b\".txt"));
        }
    }

    #[test]
    fn a_message_goes_as_its_lines() {
        let composed = |content_type: &str, data: &[u8]| {
            let forwarded = Attachment {
                name: "forwarded.eml".into(),
                content_type: content_type.into(),
                data: data.to_vec(),
                content_id: None,
            };
            let parts = Composition { attachments: vec![forwarded], ..letter() };
            let bytes = compose(&parts, "x@b.example", Timestamp::UNIX_EPOCH);
            assert!(crate::message::check_lines(&bytes).is_ok());
            String::from_utf8(bytes).unwrap()
        };
        let text = composed("message/rfc822", b"Subject: inner\n\nhello\r\n");
        assert!(text.contains("Content-Transfer-Encoding: 7bit\r\n"), "{text}");
        assert!(text.contains("\r\n\r\nSubject: inner\r\n\r\nhello\r\n"), "{text}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text:?}");
        let text = composed("Message/RFC822", "Subject: inner\r\n\r\ngr\u{fc}n\r\n".as_bytes());
        assert_eq!(text.matches("Content-Transfer-Encoding: 8bit\r\n").count(), 2, "{text}");
        let parsed = MessageParser::default().parse(text.as_bytes()).unwrap();
        let inner = parsed.parts.iter().find_map(|part| part.message()).unwrap();
        assert_eq!(inner.subject(), Some("inner"));
        for (kind, data) in [
            ("message/rfc822", &b"Subject: x\r\n\r\n\0"[..]),
            ("message/rfc822", &[b'a'; 999]),
            ("message/rfc822", b"a\rb"),
            ("message/partial", "\u{fc}".as_bytes()),
        ] {
            let text = composed(kind, data);
            assert!(text.contains("Content-Type: application/octet-stream\r\n"), "{text}");
            assert!(text.contains("Content-Transfer-Encoding: base64\r\n"), "{text}");
        }
        assert!(composed("message/global", b"x").contains("message/global\r\nContent-Transfer-Encoding: base64"));
    }

    #[test]
    fn a_message_reads_back() {
        let parts = Composition {
            from: "\"Ad\u{e4}, L.\" <a@b.example>".parse().unwrap(),
            to: vec!["c@d.example".parse().unwrap(), "e@f.example".parse().unwrap()],
            cc: vec![],
            bcc: vec!["secret@x.example".parse().unwrap()],
            reply_to: vec![],
            subject: "h\u{e4}llo".into(),
            html: Some("<p>hi</p>".into()),
            text: Some("hi".into()),
            headers: vec![CustomHeader::new("X-Order", "12 \u{fc}").unwrap()],
            attachments: vec![Attachment {
                name: "a.txt".into(),
                content_type: "text/plain".into(),
                data: b"file".to_vec(),
                content_id: None,
            }],
        };
        let bytes = compose(&parts, "x@b.example", Timestamp::from_second(1_700_000_000).unwrap());
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains("secret@x.example"), "{text}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "bare CR or LF");
        let header = crate::message::parse_header(&bytes).unwrap();
        assert_eq!(header.facts.subject, "h\u{e4}llo");
        assert_eq!(header.facts.message_id, "x@b.example");
        assert_eq!(header.from.unwrap().name.as_deref(), Some("Ad\u{e4}, L."));
        assert_eq!(header.facts.to.len(), 2);
    }
}
