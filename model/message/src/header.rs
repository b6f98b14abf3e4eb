//! Parsing the header of a submitted message, and completing it (RFC 6409 8).
//!
//! The header is split into fields on the raw bytes (RFC 5322 2.2); mail-parser decodes the few fields that matter.
//! Missing fields (Date, Message-ID, From) are added on top. Fields that must not be sent (Bcc, Return-Path,
//! `Service-*`) are removed. The remaining bytes are the client's, without a copy.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use bytes::Bytes;
use jiff::Timestamp;
use mail_parser::{HeaderName, Message, MessageParser, MessagePart};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::address::{Address, DomainName, Mailbox};
use crate::{ascii_header, sender_fields};

/// Longer headers are rejected; legitimate ones are far shorter (Postfix: 102,400).
pub const HEADER_BYTES_MAX: usize = 256 * 1024;
/// RFC 5321 6.3: a server must allow at least 100 `Received` fields before it reports a mail loop.
pub const RECEIVED_MAX: usize = 100;
/// RFC 5322 2.1.1; with the line end it is the limit of RFC 5321 4.5.3.1.6.
pub const LINE_BYTES_MAX: usize = 998;
/// Name prefix of the fields with send options (docs/SUBMISSION.md), in any case. They are not part of the message.
const SERVICE_PREFIX: &str = "Service-";
/// Fields that may occur once in a header (RFC 5322 3.6, RFC 2045 3). If one occurs twice, a signature may cover one
/// while a reader shows the other. From has its own error, and Bcc is removed.
const SINGLETON_FIELDS: &[&str] = &[
    "Date",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Message-ID",
    "In-Reply-To",
    "References",
    "Subject",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

/// Parses the fields that matter. Static, because building its field table costs more than parsing a header.
static HEADER_PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new().with_mime_headers().with_address_headers().with_message_ids().header_text(HeaderName::Subject)
});

/// Reason why a message is rejected. The client receives the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// No From field, and a null reverse path that cannot replace it.
    #[error("the message has no From field")]
    NoFrom,
    /// RFC 5322 3.6 allows one field; DMARC cannot evaluate two authors.
    #[error("the message has more than one author; From must name exactly one address")]
    MultipleFrom,
    #[error("the From field contains no valid address")]
    InvalidFrom,
    /// One of `SINGLETON_FIELDS` occurs twice.
    #[error("the message has more than one {0} field; RFC 5322 3.6 and RFC 2045 3 allow one")]
    DuplicateField(&'static str),
    /// A line over the length limit: a host may reject it, or fold it and break the signature.
    #[error(
        "line {0} of the message is longer than {LINE_BYTES_MAX} bytes (RFC 5322 2.1.1); encode its part in \
         quoted-printable or base64, or fold the field"
    )]
    LongLine(usize),
    /// Sender, Resent-From and Resent-Sender name more domains than are looked up.
    #[error(
        "the Sender, Resent-From and Resent-Sender fields name more than {} domains; omit those that do not send",
        sender_fields::DOMAINS_MAX
    )]
    SenderDomains,
    #[error("the header is longer than {HEADER_BYTES_MAX} bytes")]
    HeaderTooLong,
    /// [`RECEIVED_MAX`] or more Received fields.
    #[error("the message has passed through {RECEIVED_MAX} hosts: a mail loop")]
    Loop,
}

/// Byte offsets of one header field in its message, line ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField {
    pub start: usize,
    pub name_end: usize,
    /// End of the field, which is the start of the next.
    pub end: usize,
}

impl HeaderField {
    /// Compares the field name, ignoring case.
    pub fn has_name(&self, message: &[u8], name: &str) -> bool {
        message.get(self.start..self.name_end).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Returns the header fields of a message and the offset of its body: the empty line, or, if there is none, the first
/// line that is not a header field.
pub fn parse_fields(message: &[u8]) -> (Vec<HeaderField>, usize) {
    let mut fields: Vec<HeaderField> = Vec::with_capacity(16);
    let mut at = 0;
    // Reads slightly past the limit, so that a header over the limit is recognised.
    while at < message.len() && at <= HEADER_BYTES_MAX {
        let end = memchr::memchr(b'\n', &message[at..]).map_or(message.len(), |n| at + n + 1);
        let line = &message[at..end];
        if matches!(line.first(), Some(b' ' | b'\t')) && !fields.is_empty() {
            if let Some(last) = fields.last_mut() {
                last.end = end;
            }
        } else {
            let name = line.iter().position(|b| !matches!(b, b'!'..=b'9' | b';'..=b'~')).unwrap_or(line.len());
            // Blanks before the colon (`Name :`) are RFC 5322's obsolete syntax (4.5.8).
            let colon = line[name..].iter().position(|b| !matches!(b, b' ' | b'\t')).map(|n| name + n);
            if name == 0 || colon.is_none_or(|n| line.get(n) != Some(&b':')) {
                break;
            }
            fields.push(HeaderField { start: at, name_end: at + name, end });
        }
        at = end;
    }
    (fields, at)
}

/// A submitted message with the positions of its header fields: the header is split once, for all checks.
#[derive(Debug, Clone)]
pub struct SubmittedMessage {
    bytes: Bytes,
    fields: Vec<HeaderField>,
    /// Start of the body, with the empty line.
    body_at: usize,
}

impl SubmittedMessage {
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let (fields, body_at) = parse_fields(&bytes);
        Self { bytes, fields, body_at }
    }

    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    #[must_use]
    pub fn fields(&self) -> &[HeaderField] {
        &self.fields
    }

    /// The body, with the empty line before it.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.body_at..).unwrap_or_default()
    }

    /// Checks the length of the header.
    ///
    /// # Errors
    /// [`MessageError::HeaderTooLong`].
    pub fn check_header_length(&self) -> Result<(), MessageError> {
        if self.body_at > HEADER_BYTES_MAX { Err(MessageError::HeaderTooLong) } else { Ok(()) }
    }
}

pub fn is_service_field(message: &[u8], field: &HeaderField) -> bool {
    let name = message.get(field.start..field.name_end).unwrap_or_default();
    name.get(..SERVICE_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(SERVICE_PREFIX.as_bytes()))
}

/// Checks that no line exceeds [`LINE_BYTES_MAX`].
///
/// Other hosts would fold such a line (Postfix), which breaks the signature, or reject it (Exim). The search jumps from
/// each line start to the last line end within the limit, so it skips short lines.
pub fn check_lines(message: &[u8]) -> Result<(), MessageError> {
    let mut start = 0;
    while message.len() - start > LINE_BYTES_MAX {
        let reach = message.len().min(start + LINE_BYTES_MAX + 2);
        match memchr::memrchr(b'\n', &message[start..reach]) {
            Some(end) => start += end + 1,
            // The last line may lack its line end.
            None if reach == message.len() && reach - start <= LINE_BYTES_MAX => break,
            None => {
                return Err(MessageError::LongLine(memchr::memchr_iter(b'\n', &message[..start]).count() + 1));
            }
        }
    }
    Ok(())
}

/// Header fields that are stored for lists and events; empty where the message has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeaderSummary {
    pub to: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Mailbox>,
    /// Blind recipients, if the listener has parsed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply_to: Vec<Mailbox>,
    /// `Subject`, decoded.
    pub subject: String,
    /// `Message-ID` without angle brackets.
    pub message_id: String,
}

/// Parsed header of a message, with the edits that it needs.
#[derive(Debug)]
pub struct ParsedHeader {
    pub from: Option<Mailbox>,
    pub summary: HeaderSummary,
    /// The domains in Sender, Resent-From and Resent-Sender.
    pub sender_domains: BTreeSet<DomainName>,
    pub has_date: bool,
    pub has_message_id: bool,
    /// The header as sent is ASCII, so it needs no SMTPUTF8 (RFC 6532).
    pub is_ascii: bool,
    /// Fields that are replaced, with their replacement. Bcc, Return-Path and `Service-*` fields are removed (empty
    /// replacement). Blanks before a field's colon are removed: they are obsolete syntax (RFC 5322 4.5) that some
    /// signature verifiers cannot parse. Non-ASCII fields become encoded words ([`ascii_header`]). Whole fields are
    /// replaced, so that no field is split between two chunks.
    edits: Vec<(HeaderField, Bytes)>,
    /// An empty line follows the header fields, or the message ends with them.
    has_separator: bool,
}

pub fn parse_header(submitted: &SubmittedMessage) -> Result<ParsedHeader, MessageError> {
    submitted.check_header_length()?;
    let SubmittedMessage { bytes: message, fields, body_at } = submitted;
    let count = |name: &str| fields.iter().filter(|f| f.has_name(message, name)).count();
    if count("Received") >= RECEIVED_MAX {
        return Err(MessageError::Loop);
    }
    if count("From") > 1 {
        return Err(MessageError::MultipleFrom);
    }
    if let Some(name) = SINGLETON_FIELDS.iter().find(|name| count(name) > 1) {
        return Err(MessageError::DuplicateField(name));
    }
    // The parser receives the header only: all its known bugs are in MIME bodies. A parsed message without parts (no
    // field at all) panics on access, so a default part is added.
    let parsed = HEADER_PARSER
        .parse_headers(&message[..*body_at])
        .filter(|parsed| !parsed.parts.is_empty())
        .unwrap_or_else(|| Message { parts: vec![MessagePart::default()], ..Message::default() });
    let from = match parsed.from().map(parse_mailboxes) {
        None if count("From") == 0 => None,
        Some((addresses, 1)) if addresses.len() == 1 => addresses.into_iter().next(),
        Some((_, 2..)) => return Err(MessageError::MultipleFrom),
        // The parser drops the quotes of a quoted local part, so a single mailbox is parsed here.
        _ => match fields.iter().find(|f| f.has_name(message, "From")).and_then(|f| single_mailbox(message, f)) {
            Some(from) => Some(from),
            None => return Err(MessageError::InvalidFrom),
        },
    };
    let list = |address: Option<&mail_parser::Address<'_>>| address.map(|a| parse_mailboxes(a).0).unwrap_or_default();
    let (edits, is_ascii) = header_edits(message, fields);
    Ok(ParsedHeader {
        from,
        summary: HeaderSummary {
            to: list(parsed.to()),
            cc: list(parsed.cc()),
            bcc: list(parsed.bcc()),
            reply_to: list(parsed.reply_to()),
            subject: parsed.subject().unwrap_or_default().chars().filter(|c| !c.is_control()).collect(),
            message_id: parsed.message_id().unwrap_or_default().to_owned(),
        },
        sender_domains: sender_fields::sender_domains(message, fields)?,
        has_date: count("Date") > 0,
        has_message_id: count("Message-ID") > 0,
        edits,
        is_ascii,
        has_separator: submitted.body().is_empty() || submitted.body().starts_with(b"\r\n"),
    })
}

/// Parses a field that holds exactly one mailbox, in ASCII and without comments.
fn single_mailbox(message: &[u8], field: &HeaderField) -> Option<Mailbox> {
    let value = std::str::from_utf8(message.get(field.name_end..field.end)?).ok()?;
    let value = value.trim_start().strip_prefix(':')?.replace("\r\n", "");
    if value.is_ascii() { value.trim().parse().ok() } else { None }
}

/// Returns the replacements of fields in header order, and whether the header as sent is ASCII.
fn header_edits(message: &[u8], fields: &[HeaderField]) -> (Vec<(HeaderField, Bytes)>, bool) {
    let mut edits: Vec<_> = fields.iter().filter_map(|field| Some((*field, field_edit(message, field)?))).collect();
    let is_cut = |field: &HeaderField| edits.iter().any(|(cut, instead)| cut == field && instead.is_empty());
    let remaining = || fields.iter().filter(|field| !is_cut(field));
    if remaining().all(|field| message[field.start..field.end].is_ascii()) {
        return (edits, true);
    }
    let Some(encoded) = ascii_header::encode_fields(message, remaining()) else { return (edits, false) };
    edits.retain(|(field, _)| !encoded.iter().any(|(encoded, _)| encoded == field));
    edits.extend(encoded);
    edits.sort_unstable_by_key(|(field, _)| field.start);
    (edits, true)
}

/// Returns the replacement of a field, if it must be removed or loses blanks before its colon.
fn field_edit(message: &[u8], field: &HeaderField) -> Option<Bytes> {
    // RFC 5321 4.4: only the host that makes final delivery adds Return-Path.
    let is_cut = ["Bcc", "Resent-Bcc", "Return-Path"].iter().any(|name| field.has_name(message, name));
    if is_cut || is_service_field(message, field) {
        return Some(Bytes::new());
    }
    let (name, value) = message[field.start..field.end].split_at(field.name_end - field.start);
    let blanks = value.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    (blanks > 0).then(|| Bytes::from([name, &value[blanks..]].concat()))
}

/// The valid mailboxes of an address field, and the number of all mailboxes in it.
fn parse_mailboxes(field: &mail_parser::Address<'_>) -> (Vec<Mailbox>, usize) {
    let mut named = 0;
    let valid = field
        .iter()
        .inspect(|_| named += 1)
        .filter_map(|mailbox| {
            let address: Address = mailbox.address.as_deref()?.parse().ok()?;
            let name = mailbox.name.as_deref().map(|n| n.chars().filter(|c| !c.is_control()).collect::<String>());
            Some(Mailbox { name: name.filter(|n| !n.is_empty()), address })
        })
        .collect();
    (valid, named)
}

/// Arguments of [`complete_message`].
#[derive(Debug)]
pub struct CompletionContext<'a> {
    /// Left part of a Message-ID that is generated if it is missing (RFC 5322 3.6.4).
    pub id_left: &'a str,
    /// Reverse path: the author if From is missing.
    pub reverse_path: Option<&'a Address>,
    /// The `Received` field to add on top.
    pub received: &'a str,
    /// Current time, for a missing Date.
    pub now: Timestamp,
}

/// A message ready to be signed: the added fields and the client's bytes.
#[derive(Debug)]
pub struct CompletedMessage {
    pub from: Mailbox,
    pub summary: HeaderSummary,
    /// Fields added on top.
    pub top: Vec<u8>,
    /// The client's bytes after the header edits.
    pub rest: Vec<Bytes>,
}

/// Completes a submitted message (RFC 6409 8): adds missing Date, Message-ID and From, and applies the header edits of
/// `header`.
pub fn complete_message(
    submitted: &SubmittedMessage,
    header: ParsedHeader,
    with: &CompletionContext<'_>,
) -> Result<CompletedMessage, MessageError> {
    let mut top = String::with_capacity(256);
    top.push_str(with.received);
    let from = match header.from {
        Some(from) => from,
        None => {
            let author = with.reverse_path.ok_or(MessageError::NoFrom)?;
            let _ = write!(top, "From: <{author}>\r\n");
            author.clone().into()
        }
    };
    let mut summary = header.summary;
    if !header.has_date {
        let _ = write!(top, "Date: {}\r\n", format_date(with.now));
    }
    if !header.has_message_id {
        summary.message_id = generate_message_id(with.id_left, &from.address);
        let _ = write!(top, "Message-ID: <{}>\r\n", summary.message_id);
    }
    let message = &submitted.bytes;
    let mut rest = Vec::with_capacity(2 * header.edits.len() + 1);
    let mut at = 0;
    for (field, instead) in header.edits {
        rest.push(message.slice(at..field.start));
        rest.push(instead);
        at = field.end;
    }
    if !header.has_separator {
        rest.push(message.slice(at..submitted.body_at));
        rest.push(Bytes::from_static(b"\r\n"));
        at = submitted.body_at;
    }
    rest.push(message.slice(at..));
    rest.retain(|chunk| !chunk.is_empty());
    Ok(CompletedMessage { from, summary, top: top.into_bytes(), rest })
}

/// Generates the Message-ID of a message that has none, without angle brackets.
pub fn generate_message_id(id_left: &str, author: &Address) -> String {
    format!("{id_left}@{}", author.domain())
}

/// Formats a date as RFC 5322 3.3 requires, in UTC.
pub fn format_date(now: Timestamp) -> String {
    jiff::fmt::rfc2822::to_string(&now.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
}

/// Replaces the Date of a message: scheduled mail is dated when it is sent (RFC 5322 3.6.1). Only the field is
/// allocated; the rest is shared.
pub fn replace_date(message: &Bytes, now: Timestamp) -> Vec<Bytes> {
    let field = Bytes::from(format!("Date: {}\r\n", format_date(now)));
    let Some(old) = date_field(message) else { return vec![field, message.clone()] };
    vec![message.slice(..old.start), field, message.slice(old.end..)]
}

/// Byte range of the first Date field, line ends included.
fn date_field(message: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut found: Option<usize> = None;
    let mut at = 0;
    while let Some(line) = message.get(at..).filter(|rest| !rest.is_empty()) {
        let folded = matches!(line.first(), Some(b' ' | b'\t'));
        match found {
            Some(start) if !folded => return Some(start..at),
            // End of the header.
            None if line.starts_with(b"\r\n") => return None,
            None if line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"date:")) => found = Some(at),
            _ => {}
        }
        at += memchr::memchr(b'\n', line).map_or(line.len(), |end| end + 1);
    }
    found.map(|start| start..message.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_replaced() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let new = format!("Date: {}\r\n", format_date(now));
        for (old, dated) in [
            ("Subject: a\r\nDATE: x\r\n y\r\nTo: b\r\n\r\nDate: z", format!("Subject: a\r\n{new}To: b\r\n\r\nDate: z")),
            ("Date: x\r\n\r\n", format!("{new}\r\n")),
            ("Date: x", new.clone()),
            ("To: b\r\n\r\nDate: z\r\n", format!("{new}To: b\r\n\r\nDate: z\r\n")),
            ("", new.clone()),
        ] {
            let chunks = replace_date(&Bytes::from_static(old.as_bytes()), now);
            assert_eq!(String::from_utf8(chunks.concat()).unwrap(), dated);
        }
    }

    fn parse(message: impl Into<Bytes>) -> Result<ParsedHeader, MessageError> {
        parse_header(&SubmittedMessage::new(message))
    }

    fn completed(message: &'static str) -> Result<String, MessageError> {
        let submitted = SubmittedMessage::new(message);
        let reverse_path: Address = "sender@example.com".parse().unwrap();
        let with = CompletionContext {
            id_left: "00000000000000000000000001",
            reverse_path: Some(&reverse_path),
            received: "Received: by x\r\n",
            now: Timestamp::UNIX_EPOCH,
        };
        let completed = complete_message(&submitted, parse_header(&submitted)?, &with)?;
        Ok(String::from_utf8([completed.top, completed.rest.concat()].concat()).unwrap())
    }

    #[test]
    fn a_complete_message_is_unchanged() {
        let message = "From: a@b.example\r\nDate: Thu, 1 Jan 1970 00:00:00 +0000\r\nMessage-ID: <x@y>\r\n\r\nhi\r\n";
        assert_eq!(completed(message).unwrap(), format!("Received: by x\r\n{message}"));
    }

    #[test]
    fn missing_fields_are_added_and_bcc_is_removed() {
        let text =
            completed("To: c@d.example\r\nBCC: e@f.example,\r\n g@h.example\r\nSubject: x\r\n\r\nhi\r\n").unwrap();
        assert!(text.contains("From: <sender@example.com>\r\n"), "{text}");
        assert!(text.contains("Date: Thu, 1 Jan 1970 00:00:00 +0000\r\n"), "{text}");
        assert!(text.contains("Message-ID: <0000000000"), "{text}");
        assert!(text.ends_with("To: c@d.example\r\nSubject: x\r\n\r\nhi\r\n"), "{text}");
    }

    #[test]
    fn return_path_fields_are_removed() {
        let text =
            completed("Return-Path: <x@y.example>\r\nFrom: a@b.example\r\nreturn-path: <>\r\nSubject: x\r\n\r\nhi\r\n")
                .unwrap();
        assert!(!text.to_lowercase().contains("return-path"), "{text}");
        assert!(text.ends_with("From: a@b.example\r\nSubject: x\r\n\r\nhi\r\n"), "{text}");
    }

    #[test]
    fn utf8_in_the_header_is_encoded_unless_an_address_needs_it() {
        let message =
            "From: J\u{fc}rgen <a@b.example>\r\nBcc: \u{fc} <x@y.example>\r\nSubject : Gr\u{fc}\u{df}e\r\n\r\nhi\r\n";
        assert!(parse(message).unwrap().is_ascii);
        let text = completed(message).unwrap();
        assert!(text.is_ascii() && text.ends_with("Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n\r\nhi\r\n"), "{text}");
        assert_eq!(parse(text).unwrap().summary.subject, "Gr\u{fc}\u{df}e");
        // An address outside ASCII needs SMTPUTF8, so nothing is changed.
        let message = "From: a@b.example\r\nTo: \u{fc}@c.example\r\nSubject: \u{fc}\r\n\r\nhi\r\n";
        assert!(!parse(message).unwrap().is_ascii);
        assert!(completed(message).unwrap().contains("Subject: \u{fc}\r\n"));
    }

    #[test]
    fn unusual_valid_headers_are_accepted() {
        let text = completed("From : a@b.example\r\nSubject\t: x\r\n\r\nhi\r\n").unwrap();
        assert!(text.contains("From: a@b.example\r\nSubject: x\r\n"), "{text}");
        let header = parse("From: \"a b\"@b.example\r\n\r\n").unwrap();
        assert_eq!(header.from.unwrap().address.to_string(), "\"a b\"@b.example");
    }

    #[test]
    fn a_body_without_a_header_gets_one() {
        assert!(completed("hello\r\nworld\r\n").unwrap().ends_with("\r\n\r\nhello\r\nworld\r\n"));
        assert!(completed("").unwrap().contains("From: <sender@example.com>"));
        assert!(completed("From: a@b.example\r\nhello\r\n").unwrap().contains("example\r\n\r\nhello"));
    }

    #[test]
    fn several_authors_or_none_are_refused() {
        assert_eq!(
            completed("From: a@b.example\r\nFrom: c@d.example\r\n\r\n").unwrap_err(),
            MessageError::MultipleFrom
        );
        assert_eq!(completed("From: a@b.example, c@d.example\r\n\r\n").unwrap_err(), MessageError::MultipleFrom);
        assert_eq!(completed("From: nobody\r\n\r\n").unwrap_err(), MessageError::InvalidFrom);
    }

    #[test]
    fn repeated_single_fields_are_refused() {
        for name in ["Date", "subject", "TO", "Message-Id", "Reply-To"] {
            let text = format!("From: a@b.example\r\n{name}: x\r\nX: y\r\n{name} : z\r\n\r\n");
            assert!(matches!(parse(text), Err(MessageError::DuplicateField(_))), "{name}");
        }
        assert!(parse("From: a@b.example\r\nBcc: x\r\nBcc: y\r\nX: 1\r\nX: 2\r\n\r\nTo: x\r\nTo: y\r\n").is_ok());
        let text = MessageError::DuplicateField("Subject").to_string();
        assert!(text.contains("Subject"), "{text}");
    }

    #[test]
    fn the_error_names_an_overlong_line() {
        let line = |bytes: usize| "a".repeat(bytes);
        for good in [
            String::new(),
            line(998),
            format!("{}\r\n", line(998)),
            format!("x\r\n{}\r\n{}\r\n{}", line(998), line(998), line(998)),
            "x\r\n".repeat(5_000),
        ] {
            assert_eq!(check_lines(good.as_bytes()), Ok(()));
        }
        for (bad, number) in [
            (line(999), 1),
            (format!("{}\r\n", line(999)), 1),
            (format!("a\r\nb\r\n{}\r\nc\r\n", line(999)), 3),
            (format!("{}{}", "x\r\n".repeat(700), line(100_000)), 701),
            (format!("{}\r\n{}", line(998), line(999)), 2),
        ] {
            assert_eq!(check_lines(bad.as_bytes()), Err(MessageError::LongLine(number)));
        }
    }

    #[test]
    fn names_are_decoded() {
        let header = parse("From: =?utf-8?q?Ad=C3=A4?= <a@b.example>\r\nSubject: =?utf-8?b?aMOk?=\r\n\r\n").unwrap();
        assert_eq!(header.from.unwrap().name.as_deref(), Some("Ad\u{e4}"));
        assert_eq!(header.summary.subject, "h\u{e4}");
    }
}
