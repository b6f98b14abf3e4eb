//! Reading a finished message's header, and mending it on submission (RFC 6409 8).
//!
//! The header is walked field by field over the bytes (RFC 5322 2.2); the few fields that matter
//! are decoded by mail-parser. Nothing is rewritten: what is missing (Date, Message-ID, From) is put
//! on top, what must not go out (Bcc, Return-Path, `Service-*`) is cut out, and the rest stays the client's
//! bytes, uncopied.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use bytes::Bytes;
use jiff::Timestamp;
use mail_parser::{HeaderName, Message, MessageParser, MessagePart};
use thiserror::Error;

use crate::address::{Address, DomainName, Mailbox};
use crate::email::HeaderSummary;
use crate::id::EmailId;
use crate::{ascii_header, sender_fields, service};

/// A header longer than this is refused: no honest message has one (Postfix: 102,400).
pub const HEADER_BYTES_MAX: usize = 256 * 1024;
/// RFC 5321 6.3: at least 100 `Received` fields before a message is called a loop.
pub const RECEIVED_MAX: usize = 100;
/// RFC 5322 2.1.1, and with its line end RFC 5321 4.5.3.1.6.
pub const LINE_BYTES_MAX: usize = 998;
/// Fields that may stand in a header once (RFC 5322 3.6, RFC 2045 3). Of two, a signature covers one and a
/// reader may go by the other. (From has an error of its own, and no Bcc goes out.)
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

/// Reads the fields that matter. Made once: its table of fields costs more than a header's reading.
static HEADER_PARSER: LazyLock<MessageParser> = LazyLock::new(|| {
    MessageParser::new().with_mime_headers().with_address_headers().with_message_ids().header_text(HeaderName::Subject)
});

/// Why a message cannot be sent. The texts go to the client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// No author, and no reverse path to take for one.
    #[error("the message has no From field")]
    NoFrom,
    /// RFC 5322 3.6 allows one field; DMARC cannot judge two authors.
    #[error("the message has more than one author; From must name exactly one address")]
    MultipleFrom,
    /// The From field holds no address.
    #[error("the From field holds no valid address")]
    InvalidFrom,
    /// One of [`ONCE`], twice.
    #[error("the message has more than one {0} field; RFC 5322 3.6 and RFC 2045 3 allow one")]
    DuplicateField(&'static str),
    /// A line that no host needs to take, and that one on the way may break, and the signature with it.
    #[error(
        "line {0} of the message is longer than {LINE_BYTES_MAX} bytes (RFC 5322 2.1.1); encode its part in \
         quoted-printable or base 64, or fold the field"
    )]
    LongLine(usize),
    /// Sender, Resent-From and Resent-Sender name more domains than are looked up.
    #[error(
        "the Sender, Resent-From and Resent-Sender fields name more than {} domains; leave out those that \
         do not send",
        sender_fields::DOMAINS_MAX
    )]
    SenderDomains,
    /// Too large a header.
    #[error("the header is longer than {HEADER_BYTES_MAX} bytes")]
    HeaderTooLong,
    /// It has been round too often.
    #[error("the message has passed {RECEIVED_MAX} hosts: a mail loop")]
    Loop,
}

/// One header field: where it lies in the message, its line ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField {
    /// Where it begins.
    pub start: usize,
    /// Where its name ends.
    pub name_end: usize,
    /// Where the next begins.
    pub end: usize,
}

impl HeaderField {
    /// Whether it has this name, in any case.
    #[must_use]
    pub fn has_name(&self, message: &[u8], name: &str) -> bool {
        message.get(self.start..self.name_end).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// The fields of a message and where its body begins. `body` is where the empty line starts, or,
/// when there is none, where the first line that is no field starts.
#[must_use]
pub fn parse_fields(message: &[u8]) -> (Vec<HeaderField>, usize) {
    let mut fields: Vec<HeaderField> = Vec::with_capacity(16);
    let mut at = 0;
    // A little further than a header may be long: enough to see that it is too long.
    while at < message.len() && at <= HEADER_BYTES_MAX {
        let end = memchr::memchr(b'\n', &message[at..]).map_or(message.len(), |n| at + n + 1);
        let line = &message[at..end];
        if matches!(line.first(), Some(b' ' | b'\t')) && !fields.is_empty() {
            if let Some(last) = fields.last_mut() {
                last.end = end;
            }
        } else {
            let name = line.iter().position(|b| !matches!(b, b'!'..=b'9' | b';'..=b'~')).unwrap_or(line.len());
            // `Name :` with blanks before the colon is RFC 5322's obsolete syntax (4.5.8).
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

/// Finds no line that is too long.
///
/// Other hosts would fold it (Postfix), which breaks the signature, or refuse it (Exim): so it does not
/// come in. From the start of each line the last line end within reach is looked for; short lines in
/// between are not looked at.
///
/// # Errors
/// [`MessageError::LongLine`].
pub fn check_lines(message: &[u8]) -> Result<(), MessageError> {
    let mut start = 0;
    while message.len() - start > LINE_BYTES_MAX {
        let reach = message.len().min(start + LINE_BYTES_MAX + 2);
        match memchr::memrchr(b'\n', &message[start..reach]) {
            Some(end) => start += end + 1,
            // The last line may lack its end.
            None if reach == message.len() && reach - start <= LINE_BYTES_MAX => break,
            None => {
                return Err(MessageError::LongLine(memchr::memchr_iter(b'\n', &message[..start]).count() + 1));
            }
        }
    }
    Ok(())
}

/// What a message's header says, and where.
#[derive(Debug)]
pub struct ParsedHeader {
    /// The author.
    pub from: Option<Mailbox>,
    /// What lists and events show.
    pub facts: HeaderSummary,
    /// The domains that Sender, Resent-From and Resent-Sender name.
    pub sender_domains: BTreeSet<DomainName>,
    /// There is a Date.
    pub has_date: bool,
    /// There is a Message-ID.
    pub has_message_id: bool,
    /// No byte above 127 is in what goes out of it: it needs no SMTPUTF8 (RFC 6532).
    pub is_ascii: bool,
    /// Fields that do not go out as they came, and what goes instead: nothing for Bcc, Return-Path and
    /// what was meant for the service; the field without
    /// the blanks before its colon, which are obsolete syntax (RFC 5322 4.5) that verifiers of signatures
    /// stumble over; what is not ASCII in encoded words ([`ascii_header`]). Whole fields, since none may be cut by the
    /// end of a chunk.
    edits: Vec<(HeaderField, Bytes)>,
    /// The message has header fields and an empty line behind them (or nothing at all).
    has_separator: bool,
}

/// Reads the header of a message.
///
/// # Errors
/// [`MessageError`] says what cannot be sent.
pub fn parse_header(message: &[u8]) -> Result<ParsedHeader, MessageError> {
    let (fields, body) = parse_fields(message);
    if body > HEADER_BYTES_MAX {
        return Err(MessageError::HeaderTooLong);
    }
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
    // Only the header is given to the parser: its known troubles are all with MIME bodies. A parsed
    // message without parts (no field at all) panics when it is asked for one.
    let parsed = HEADER_PARSER
        .parse_headers(&message[..body])
        .filter(|parsed| !parsed.parts.is_empty())
        .unwrap_or_else(|| Message { parts: vec![MessagePart::default()], ..Message::default() });
    let from = match parsed.from().map(parse_mailboxes) {
        None if count("From") == 0 => None,
        Some((one, 1)) if one.len() == 1 => one.into_iter().next(),
        Some((_, 2..)) => return Err(MessageError::MultipleFrom),
        // The parser does not keep a quoted local part; a lone address or mailbox we read ourselves.
        _ => match fields.iter().find(|f| f.has_name(message, "From")).and_then(|f| lone_mailbox(message, f)) {
            Some(from) => Some(from),
            None => return Err(MessageError::InvalidFrom),
        },
    };
    let list = |address: Option<&mail_parser::Address<'_>>| address.map(|a| parse_mailboxes(a).0).unwrap_or_default();
    let (edits, is_ascii) = header_edits(message, &fields);
    Ok(ParsedHeader {
        from,
        facts: HeaderSummary {
            to: list(parsed.to()),
            cc: list(parsed.cc()),
            bcc: list(parsed.bcc()),
            reply_to: list(parsed.reply_to()),
            subject: parsed.subject().unwrap_or_default().chars().filter(|c| !c.is_control()).collect(),
            message_id: parsed.message_id().unwrap_or_default().to_owned(),
        },
        sender_domains: sender_fields::sender_domains(message, &fields)?,
        has_date: count("Date") > 0,
        has_message_id: count("Message-ID") > 0,
        edits,
        is_ascii,
        has_separator: message.len() == body || message[body..].starts_with(b"\r\n"),
    })
}

/// The one mailbox that a field holds, in ASCII and as plainly as can be.
fn lone_mailbox(message: &[u8], field: &HeaderField) -> Option<Mailbox> {
    let value = std::str::from_utf8(message.get(field.name_end..field.end)?).ok()?;
    let value = value.trim_start().strip_prefix(':')?.replace("\r\n", "");
    if value.is_ascii() { value.trim().parse().ok() } else { None }
}

/// What goes instead of fields, in their order, and whether all that goes out is ASCII.
fn header_edits(message: &[u8], fields: &[HeaderField]) -> (Vec<(HeaderField, Bytes)>, bool) {
    let mut edits: Vec<_> = fields.iter().filter_map(|field| Some((*field, field_edit(message, field)?))).collect();
    let is_cut = |field: &HeaderField| edits.iter().any(|(cut, instead)| cut == field && instead.is_empty());
    let kept = || fields.iter().filter(|field| !is_cut(field));
    if kept().all(|field| message[field.start..field.end].is_ascii()) {
        return (edits, true);
    }
    let Some(encoded) = ascii_header::encode_fields(message, kept()) else { return (edits, false) };
    edits.retain(|(field, _)| !encoded.iter().any(|(encoded, _)| encoded == field));
    edits.extend(encoded);
    edits.sort_unstable_by_key(|(field, _)| field.start);
    (edits, true)
}

/// What goes instead of a field, when it does not go as it came.
fn field_edit(message: &[u8], field: &HeaderField) -> Option<Bytes> {
    // RFC 5321 4.4: Return-Path is for the host that makes the final delivery to add.
    let is_cut = ["Bcc", "Resent-Bcc", "Return-Path"].iter().any(|name| field.has_name(message, name));
    if is_cut || service::is_service_field(message, field) {
        return Some(Bytes::new());
    }
    let (name, value) = message[field.start..field.end].split_at(field.name_end - field.start);
    let blanks = value.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    (blanks > 0).then(|| Bytes::from([name, &value[blanks..]].concat()))
}

/// The mailboxes of an address field that are valid, and how many it names in all.
fn parse_mailboxes(field: &mail_parser::Address<'_>) -> (Vec<Mailbox>, usize) {
    let mut named = 0;
    let valid = field
        .iter()
        .inspect(|_| named += 1)
        .filter_map(|one| {
            let address: Address = one.address.as_deref()?.parse().ok()?;
            let name = one.name.as_deref().map(|n| n.chars().filter(|c| !c.is_control()).collect::<String>());
            Some(Mailbox { name: name.filter(|n| !n.is_empty()), address })
        })
        .collect();
    (valid, named)
}

/// What mending needs to know.
#[derive(Debug)]
pub struct CompletionContext<'a> {
    /// The email's id: makes the Message-ID.
    pub id: EmailId,
    /// The reverse path: the author when From is missing.
    pub reverse_path: Option<&'a Address>,
    /// The `Received` field to put on top.
    pub received: &'a str,
    /// Now: makes the Date.
    pub now: Timestamp,
}

/// A message ready to be signed: what we put on top, and the client's bytes.
#[derive(Debug)]
pub struct CompletedMessage {
    /// The author.
    pub from: Mailbox,
    /// What lists and events show.
    pub facts: HeaderSummary,
    /// The fields that go on top.
    pub top: Vec<u8>,
    /// The client's bytes, Bcc, Return-Path and `Service-*` cut out.
    pub rest: Vec<Bytes>,
}

/// Mends a message on submission (RFC 6409 8): Date, Message-ID and From where they are missing, no Bcc
/// and no Return-Path, nothing that was meant for the service.
///
/// # Errors
/// [`MessageError`] says what cannot be mended.
pub fn complete_message(
    message: &Bytes,
    header: ParsedHeader,
    with: &CompletionContext<'_>,
) -> Result<CompletedMessage, MessageError> {
    let mut top = String::with_capacity(256);
    top.push_str(with.received);
    let from = match header.from {
        Some(from) => from,
        None => {
            let author = with.reverse_path.ok_or(MessageError::NoFrom)?;
            // Writing to a String does not fail.
            let _ = write!(top, "From: <{author}>\r\n");
            author.clone().into()
        }
    };
    let mut facts = header.facts;
    if !header.has_date {
        let _ = write!(top, "Date: {}\r\n", format_date(with.now));
    }
    if !header.has_message_id {
        facts.message_id = generate_message_id(with.id, &from.address);
        let _ = write!(top, "Message-ID: <{}>\r\n", facts.message_id);
    }
    let mut rest = Vec::with_capacity(2 * header.edits.len() + 1);
    let mut at = 0;
    for (field, instead) in header.edits {
        rest.push(message.slice(at..field.start));
        rest.push(instead);
        at = field.end;
    }
    if !header.has_separator {
        rest.push(message.slice(at..parse_fields(message).1));
        rest.push(Bytes::from_static(b"\r\n"));
        at = parse_fields(message).1;
    }
    rest.push(message.slice(at..));
    rest.retain(|chunk| !chunk.is_empty());
    Ok(CompletedMessage { from, facts, top: top.into_bytes(), rest })
}

/// The Message-ID of an email that came without one, without angle brackets.
#[must_use]
pub fn generate_message_id(id: EmailId, author: &Address) -> String {
    format!("{}@{}", id.to_string().trim_start_matches(EmailId::PREFIX).to_ascii_lowercase(), author.domain())
}

/// A date as RFC 5322 3.3 writes it, in UTC.
#[must_use]
pub fn format_date(now: Timestamp) -> String {
    jiff::fmt::rfc2822::to_string(&now.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
}

/// A message with another date: what is sent later is dated when it goes (RFC 5322 3.6.1). Nothing is copied
/// but the field.
#[must_use]
pub fn replace_date(message: &Bytes, now: Timestamp) -> Vec<Bytes> {
    let field = Bytes::from(format!("Date: {}\r\n", format_date(now)));
    let Some(old) = date_field(message) else { return vec![field, message.clone()] };
    vec![message.slice(..old.start), field, message.slice(old.end..)]
}

/// Where the first Date field stands, its line ends included.
fn date_field(message: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut found: Option<usize> = None;
    let mut at = 0;
    while let Some(line) = message.get(at..).filter(|rest| !rest.is_empty()) {
        let folded = matches!(line.first(), Some(b' ' | b'\t'));
        match found {
            Some(start) if !folded => return Some(start..at),
            // The header is over.
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
    fn a_message_is_dated_anew() {
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

    fn mended(message: &'static str) -> Result<String, MessageError> {
        let bytes = Bytes::from_static(message.as_bytes());
        let reverse_path: Address = "sender@example.com".parse().unwrap();
        let with = CompletionContext {
            id: EmailId::new(Timestamp::UNIX_EPOCH, 1),
            reverse_path: Some(&reverse_path),
            received: "Received: by x\r\n",
            now: Timestamp::UNIX_EPOCH,
        };
        let mended = complete_message(&bytes, parse_header(&bytes)?, &with)?;
        Ok(String::from_utf8([mended.top, mended.rest.concat()].concat()).unwrap())
    }

    #[test]
    fn a_whole_message_keeps_its_bytes() {
        let message = "From: a@b.example\r\nDate: Thu, 1 Jan 1970 00:00:00 +0000\r\nMessage-ID: <x@y>\r\n\r\nhi\r\n";
        assert_eq!(mended(message).unwrap(), format!("Received: by x\r\n{message}"));
    }

    #[test]
    fn what_is_missing_is_added_and_bcc_is_cut() {
        let text = mended("To: c@d.example\r\nBCC: e@f.example,\r\n g@h.example\r\nSubject: x\r\n\r\nhi\r\n").unwrap();
        assert!(text.contains("From: <sender@example.com>\r\n"), "{text}");
        assert!(text.contains("Date: Thu, 1 Jan 1970 00:00:00 +0000\r\n"), "{text}");
        assert!(text.contains("Message-ID: <0000000000"), "{text}");
        assert!(text.ends_with("To: c@d.example\r\nSubject: x\r\n\r\nhi\r\n"), "{text}");
    }

    #[test]
    fn a_return_path_is_cut() {
        let text =
            mended("Return-Path: <x@y.example>\r\nFrom: a@b.example\r\nreturn-path: <>\r\nSubject: x\r\n\r\nhi\r\n")
                .unwrap();
        assert!(!text.to_lowercase().contains("return-path"), "{text}");
        assert!(text.ends_with("From: a@b.example\r\nSubject: x\r\n\r\nhi\r\n"), "{text}");
    }

    #[test]
    fn utf8_in_the_header_is_encoded_where_no_address_needs_it() {
        let message =
            "From: J\u{fc}rgen <a@b.example>\r\nBcc: \u{fc} <x@y.example>\r\nSubject : Gr\u{fc}\u{df}e\r\n\r\nhi\r\n";
        assert!(parse_header(message.as_bytes()).unwrap().is_ascii);
        let text = mended(message).unwrap();
        assert!(text.is_ascii() && text.ends_with("Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n\r\nhi\r\n"), "{text}");
        assert_eq!(parse_header(text.as_bytes()).unwrap().facts.subject, "Gr\u{fc}\u{df}e");
        // An address outside ASCII needs the extension, and then nothing is changed.
        let message = "From: a@b.example\r\nTo: \u{fc}@c.example\r\nSubject: \u{fc}\r\n\r\nhi\r\n";
        assert!(!parse_header(message.as_bytes()).unwrap().is_ascii);
        assert!(mended(message).unwrap().contains("Subject: \u{fc}\r\n"));
    }

    #[test]
    fn odd_but_honest_headers_are_understood() {
        let text = mended("From : a@b.example\r\nSubject\t: x\r\n\r\nhi\r\n").unwrap();
        assert!(text.contains("From: a@b.example\r\nSubject: x\r\n"), "{text}");
        let header = parse_header(b"From: \"a b\"@b.example\r\n\r\n").unwrap();
        assert_eq!(header.from.unwrap().address.to_string(), "\"a b\"@b.example");
    }

    #[test]
    fn a_body_without_header_gets_one() {
        assert!(mended("hello\r\nworld\r\n").unwrap().ends_with("\r\n\r\nhello\r\nworld\r\n"));
        assert!(mended("").unwrap().contains("From: <sender@example.com>"));
        assert!(mended("From: a@b.example\r\nhello\r\n").unwrap().contains("example\r\n\r\nhello"));
    }

    #[test]
    fn one_author_or_none_at_all() {
        assert_eq!(mended("From: a@b.example\r\nFrom: c@d.example\r\n\r\n").unwrap_err(), MessageError::MultipleFrom);
        assert_eq!(mended("From: a@b.example, c@d.example\r\n\r\n").unwrap_err(), MessageError::MultipleFrom);
        assert_eq!(mended("From: nobody\r\n\r\n").unwrap_err(), MessageError::InvalidFrom);
    }

    #[test]
    fn a_field_that_may_stand_once_does() {
        for name in ["Date", "subject", "TO", "Message-Id", "Reply-To"] {
            let text = format!("From: a@b.example\r\n{name}: x\r\nX: y\r\n{name} : z\r\n\r\n");
            assert!(matches!(parse_header(text.as_bytes()), Err(MessageError::DuplicateField(_))), "{name}");
        }
        assert!(
            parse_header(b"From: a@b.example\r\nBcc: x\r\nBcc: y\r\nX: 1\r\nX: 2\r\n\r\nTo: x\r\nTo: y\r\n").is_ok()
        );
        let text = MessageError::DuplicateField("Subject").to_string();
        assert!(text.contains("Subject"), "{text}");
    }

    #[test]
    fn a_line_that_is_too_long_is_named() {
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
        let header =
            parse_header(b"From: =?utf-8?q?Ad=C3=A4?= <a@b.example>\r\nSubject: =?utf-8?b?aMOk?=\r\n\r\n").unwrap();
        assert_eq!(header.from.unwrap().name.as_deref(), Some("Ad\u{e4}"));
        assert_eq!(header.facts.subject, "h\u{e4}");
    }
}
