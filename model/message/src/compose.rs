//! Composes a message from fields (RFC 5322, MIME) with the mail-builder library.

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
use crate::header::{LINE_BYTES_MAX, parse_fields};

/// Header fields that the service writes itself. A customer's field with such a name is refused, because it could
/// control delivery, forge a trace field or break the structure of the message.
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
/// Prefixes of reserved names.
const RESERVED_PREFIXES: &[&str] = &["arc-", "resent-", "received-", "x-postrider-", "service-"];
/// Longest field name in bytes; a longer one would not fit into a line.
const HEADER_NAME_BYTES_MAX: usize = 76;
/// Longest field value in bytes. RFC 5322 2.1.1 limits lines, not fields.
const HEADER_VALUE_BYTES_MAX: usize = 16 * 1024;

/// A custom header field is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The name is not a field name (RFC 5322 2.2).
    #[error("`{0}` is not a header name: letters, digits and dashes, at most {HEADER_NAME_BYTES_MAX}")]
    Name(String),
    /// The name is reserved for the service.
    #[error("`{0}` is set by the service and cannot be customized")]
    Reserved(String),
    /// The value has a CR, LF or another control character, or is too long.
    #[error("the value of `{0}` has a control character or is longer than {HEADER_VALUE_BYTES_MAX} bytes")]
    Value(String),
    /// A word is longer than a line: fields are folded only at white space (RFC 5322 2.2.3).
    #[error("the value of `{0}` has a word that does not fit into a line of {LINE_BYTES_MAX} bytes; add spaces")]
    Word(String),
}

/// A validated header field from the customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomHeader {
    name: String,
    value: String,
}

impl CustomHeader {
    /// Validates a name and a value.
    pub fn new(name: &str, value: &str) -> Result<Self, HeaderError> {
        let printable = || name.chars().filter(|c| !c.is_control()).take(64).collect::<String>();
        if !(1..=HEADER_NAME_BYTES_MAX).contains(&name.len())
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        {
            return Err(HeaderError::Name(printable()));
        }
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) || RESERVED_PREFIXES.iter().any(|p| lower.starts_with(p)) {
            return Err(HeaderError::Reserved(printable()));
        }
        if value.len() > HEADER_VALUE_BYTES_MAX || value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(HeaderError::Value(printable()));
        }
        // Non-ASCII values are split into encoded words of a valid length.
        let word_bytes_max = LINE_BYTES_MAX - name.len() - ": ".len();
        if value.is_ascii() && value.split([' ', '\t']).any(|word| word.len() > word_bytes_max) {
            return Err(HeaderError::Word(printable()));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn value(&self) -> &str {
        &self.value
    }
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    pub content_type: String,
    pub data: Vec<u8>,
    /// The Content-ID that the HTML refers to. An attachment with a Content-ID is inline.
    pub content_id: Option<String>,
}

/// The fields that a message is composed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    /// Blind recipients: written to no header field, recorded with the email only.
    pub bcc: Vec<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    /// The customer's own header fields.
    pub headers: Vec<CustomHeader>,
    pub attachments: Vec<Attachment>,
}

/// Composes the message. `message_id` has no angle brackets.
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
        // ASCII values are only folded at spaces, because encoded words are not allowed in structured fields (RFC 2047
        // 5). Only non-ASCII values are encoded.
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
        // RFC 2045 6.4: the enclosing part of an 8bit part must be declared 8bit too.
        builder = builder.header("Content-Transfer-Encoding", Raw::new("8bit"));
    }
    for (file, encoded) in files {
        builder.attachments.get_or_insert_default().push(attachment_part(file, encoded));
    }
    if parts.text.is_none() && parts.html.is_none() && parts.attachments.is_empty() {
        builder = builder.body(MimePart::new("text/plain", ""));
    }
    let mut out = Vec::with_capacity(estimated_size(parts));
    // Writing to memory cannot fail.
    let _ = builder.write_to(&mut out);
    out
}

/// Estimated size of a message in bytes, to avoid reallocation: header and boundaries, bodies plus a sixteenth for
/// folding and encoding, attachments in base64.
fn estimated_size(parts: &Composition) -> usize {
    const HEADER: usize = 1_536;
    let bodies = [&parts.text, &parts.html].into_iter().flatten().map(String::len).sum::<usize>();
    let files = parts.attachments.iter().map(|file| 512 + file.data.len() / 9 * 13).sum::<usize>();
    HEADER + bodies + bodies / 16 + files
}

/// Composes one or two bodies, in the form that follows `MIME-Version: 1.0` in a header: fields, an empty line, the
/// content.
pub fn compose_bodies(html: Option<&str>, text: Option<&str>) -> Vec<u8> {
    let mut builder = MessageBuilder::new().message_id("x").date(0_i64);
    if text.is_some() || html.is_none() {
        builder = builder.text_body(normalize_line_ends(text.unwrap_or_default()));
    }
    if let Some(html) = html {
        builder = builder.html_body(normalize_line_ends(html));
    }
    let mut message = Vec::new();
    // Writing to memory cannot fail.
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

/// The value of a `Subject` field. ASCII text that looks like an encoded word is encoded, so that clients display it
/// literally (RFC 2047 2).
fn subject_field(text: &str) -> HeaderType<'_> {
    /// Bytes per encoded word: with the field name it fits into a line of 76 characters (RFC 2047 2).
    const WORD_BYTES: usize = 39;
    if !(text.is_ascii() && text.contains("=?")) {
        return Text::new(text).into();
    }
    let words = text.as_bytes().chunks(WORD_BYTES);
    let words: Vec<String> = words.map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word))).collect();
    Raw::new(words.join(" ")).into()
}

/// Appends a `Subject` field.
pub fn write_subject(out: &mut Vec<u8>, text: &str) {
    const NAME: &[u8] = b"Subject: ";
    out.extend_from_slice(NAME);
    subject_field(text).write_header(out, NAME.len());
}

/// Appends a `Reply-To` field.
pub fn write_reply_to(out: &mut Vec<u8>, reply_to: &[Mailbox]) {
    const NAME: &[u8] = b"Reply-To: ";
    out.extend_from_slice(NAME);
    address_list(reply_to).write_header(out, NAME.len());
}

/// Normalizes line ends to LF. mail-builder writes each LF as CRLF, but passes a bare CR through, which RFC 5322 2.3
/// forbids.
fn normalize_line_ends(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Content type, transfer encoding and encoded bytes of an attachment.
struct EncodedAttachment<'a> {
    content_type: &'a str,
    encoding: &'static str,
    data: Vec<u8>,
}

impl<'a> EncodedAttachment<'a> {
    /// Encodes an attachment in base64, so that its bytes arrive unchanged whatever its type.
    ///
    /// A `message/…` part must not be encoded (RFC 2046 5.2.1), except for `message/global` (RFC 6532 3.7), so it is
    /// sent as text lines. If it cannot be sent as lines, it is sent as `application/octet-stream` in base64.
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
            // RFC 2046 5.2.2, 5.2.3 and RFC 3464 2.1 allow only 7bit for the other types.
            Some(data) if kind == "message/rfc822" => Self { content_type, encoding: "8bit", data },
            _ => base64("application/octet-stream"),
        }
    }
}

/// Converts line ends to CRLF; `None` if the data has a NUL, a bare CR or a line that is too long.
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

/// Base64 in lines of 76 characters, which encode 57 bytes each (RFC 2045 6.8).
pub(crate) fn wrapped_base64(data: &[u8]) -> String {
    const LINE_BYTES: usize = 57;
    let mut out = String::with_capacity(data.len() / LINE_BYTES * 78 + 80);
    for line in data.chunks(LINE_BYTES) {
        STANDARD.encode_string(line, &mut out);
        out.push_str("\r\n");
    }
    out
}

fn address_list(mailboxes: &[Mailbox]) -> BuilderAddress<'_> {
    let to_builder_address = |m: &Mailbox| BuilderAddress::new_address(m.name.clone(), m.address.to_string());
    match mailboxes {
        [only] => to_builder_address(only),
        many => BuilderAddress::new_list(many.iter().map(to_builder_address).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{SubmittedMessage, parse_header};
    use mail_parser::{MessageParser, MimeHeaders as _};

    #[test]
    fn a_subject_that_looks_encoded_round_trips() {
        for given in ["=?utf-8?Q?not_me?=", "a =?b", &"=?utf-8?B?QQ==?= and more, ".repeat(20), "=?utf-8?Q?\u{e4}?="] {
            let parts = Composition { subject: given.to_owned(), ..sample() };
            let message = compose(&parts, "id@x.example", Timestamp::UNIX_EPOCH);
            assert_eq!(parse_header(&SubmittedMessage::new(message.clone())).unwrap().summary.subject, given);
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
            let parts = Composition { headers, ..sample() };
            let message = compose(&parts, "id@x.example", Timestamp::UNIX_EPOCH);
            assert_eq!(crate::header::check_lines(&message), Ok(()));
        }
        for value in [format!("{word}x"), format!("a {word}x b")] {
            assert!(matches!(CustomHeader::new("X-L", &value), Err(HeaderError::Word(_))));
        }
    }

    fn sample() -> Composition {
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
        let parts = Composition { headers, ..sample() };
        let text = String::from_utf8(compose(&parts, "x@b.example", Timestamp::UNIX_EPOCH)).unwrap();
        assert!(text.contains(&url) && !text.contains("=?"), "{text}");
        let unfolded = text.replace("\r\n\t", " ").replace("\r\n ", " ");
        assert!(unfolded.contains(references.trim()), "{text}");
    }

    #[test]
    fn bare_cr_and_lf_are_normalized_and_files_round_trip() {
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
            ..sample()
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
    fn an_attached_message_is_sent_unencoded() {
        let composed = |content_type: &str, data: &[u8]| {
            let forwarded = Attachment {
                name: "forwarded.eml".into(),
                content_type: content_type.into(),
                data: data.to_vec(),
                content_id: None,
            };
            let parts = Composition { attachments: vec![forwarded], ..sample() };
            let bytes = compose(&parts, "x@b.example", Timestamp::UNIX_EPOCH);
            assert!(crate::header::check_lines(&bytes).is_ok());
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
    fn a_message_round_trips() {
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
        let header = parse_header(&SubmittedMessage::new(bytes.clone())).unwrap();
        assert_eq!(header.summary.subject, "h\u{e4}llo");
        assert_eq!(header.summary.message_id, "x@b.example");
        assert_eq!(header.from.unwrap().name.as_deref(), Some("Ad\u{e4}, L."));
        assert_eq!(header.summary.to.len(), 2);
    }
}
