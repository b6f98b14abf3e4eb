//! Composing a message from fields (RFC 5322, MIME), by mail-builder.

use std::borrow::Cow;

use jiff::Timestamp;
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address as BuilderAddress;
use mail_builder::headers::text::Text;
use mail_builder::mime::MimePart;
use thiserror::Error;

use crate::address::Mailbox;

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
    "dkim-signature",
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
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
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
        .from(addresses(std::slice::from_ref(&parts.from)))
        .subject(parts.subject.as_str());
    if !parts.to.is_empty() {
        builder = builder.to(addresses(&parts.to));
    }
    if !parts.cc.is_empty() {
        builder = builder.cc(addresses(&parts.cc));
    }
    if !parts.reply_to.is_empty() {
        builder = builder.reply_to(addresses(&parts.reply_to));
    }
    for header in &parts.headers {
        builder = builder.header(Cow::Borrowed(header.name.as_str()), Text::new(header.value.as_str()));
    }
    if let Some(text) = &parts.text {
        builder = builder.text_body(text.as_str());
    }
    if let Some(html) = &parts.html {
        builder = builder.html_body(html.as_str());
    }
    for file in &parts.attachments {
        let kind = file.content_type.as_str();
        builder = match &file.content_id {
            Some(cid) => builder.inline(kind, cid.as_str(), file.data.as_slice()),
            None => builder.attachment(kind, file.name.as_str(), file.data.as_slice()),
        };
    }
    if parts.text.is_none() && parts.html.is_none() && parts.attachments.is_empty() {
        builder = builder.body(MimePart::new("text/plain", ""));
    }
    let mut out = Vec::with_capacity(1024 + parts.html.as_ref().map_or(0, String::len));
    // Writing into memory does not fail.
    let _ = builder.write_to(&mut out);
    out
}

fn addresses(mailboxes: &[Mailbox]) -> BuilderAddress<'_> {
    let one = |m: &Mailbox| BuilderAddress::new_address(m.name.clone(), m.address.to_string());
    match mailboxes {
        [only] => one(only),
        many => BuilderAddress::new_list(many.iter().map(one).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangerous_headers_are_refused() {
        assert!(CustomHeader::new("X-Order", "12").is_ok());
        assert!(CustomHeader::new("In-Reply-To", "<a@b>").is_ok());
        for name in ["Bcc", "RECEIVED", "DKIM-Signature", "Return-Path", "ARC-Seal", "Content-Type"] {
            assert!(matches!(CustomHeader::new(name, "x"), Err(HeaderError::Reserved(_))), "{name}");
        }
        for name in ["", "X Y", "X:Y", "X\r\nBcc"] {
            assert!(matches!(CustomHeader::new(name, "x"), Err(HeaderError::Name(_))), "{name}");
        }
        assert!(matches!(CustomHeader::new("X-A", "a\r\nBcc: x"), Err(HeaderError::Value(_))));
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
        let header = crate::message::read(&bytes).unwrap();
        assert_eq!(header.facts.subject, "h\u{e4}llo");
        assert_eq!(header.facts.message_id, "x@b.example");
        assert_eq!(header.from.unwrap().name.as_deref(), Some("Ad\u{e4}, L."));
        assert_eq!(header.facts.to.len(), 2);
    }
}
