//! The parsed header of a received message. Its size is bounded, so that rows and webhook payloads stay small for any
//! message (below 20 KB).

use std::borrow::Cow;

use mail_parser::{Addr, HeaderName, HeaderValue, Message, MessageParser};
use serde::{Deserialize, Serialize};

use super::{AttachmentSummary, AutoReplyRefusal};
use crate::address::{Address, Mailbox};

/// Stored bytes of `from`, of a subject, and of each list entry.
const LINE_BYTES_MAX: usize = 1_000;
/// Stored bytes of one list of addresses or message ids.
const LIST_BYTES_MAX: usize = 3_000;
/// Maximum bytes of a message id.
const ID_BYTES_MAX: usize = 998;
/// Stored bytes of all attachment summaries.
const FILES_BYTES_MAX: usize = 5_000;
/// Maximum bytes of a file name.
pub(super) const FILENAME_BYTES_MAX: usize = 255;

#[crate::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceivedHeader {
    /// The author, as displayed: `Ada <ada@example.com>`.
    pub from: String,
    /// The author's address, if valid.
    pub author: Option<Address>,
    /// Recipients in `To`.
    pub to: Vec<String>,
    /// Recipients in `Cc`.
    pub cc: Vec<String>,
    /// Addresses for replies; if empty, replies go to the author.
    pub reply_to: Vec<String>,
    #[serde(default)]
    pub subject: String,
    /// The message id with its angle brackets; empty if missing.
    #[serde(default)]
    pub message_id: String,
    /// Message id of the message to which this one replies.
    pub in_reply_to: Option<String>,
    /// Message ids of the thread, oldest first.
    pub references: Vec<String>,
    /// Reason in the header against an automatic reply.
    pub unanswerable: Option<AutoReplyRefusal>,
    /// Number of all attachments.
    #[serde(default)]
    pub attachment_count: u64,
    /// Summaries of the first attachments, up to `FILES_BYTES_MAX`.
    pub attachments: Vec<AttachmentSummary>,
}

impl ReceivedHeader {
    /// Reads a parsed header; attachments are added by `with_files`.
    pub(super) fn from_message(message: &Message<'_>) -> Self {
        let people =
            |name: HeaderName<'static>| first_within_limit(mailboxes(message, &name).map(|mailbox| mailbox.display));
        let (from, author) = match mailboxes(message, &HeaderName::From).next() {
            Some(first) => (first.display, first.address),
            None => (header_text(message, &HeaderName::From), None),
        };
        Self {
            from: truncate_json(&from, LINE_BYTES_MAX),
            author,
            to: people(HeaderName::To),
            cc: people(HeaderName::Cc),
            reply_to: people(HeaderName::ReplyTo),
            subject: truncate_json(&header_text(message, &HeaderName::Subject), LINE_BYTES_MAX),
            message_id: message_ids(message, &HeaderName::MessageId).next().unwrap_or_default(),
            in_reply_to: message_ids(message, &HeaderName::InReplyTo).next(),
            references: last_within_limit(message_ids(message, &HeaderName::References)),
            unanswerable: None,
            attachment_count: 0,
            attachments: Vec::new(),
        }
    }

    /// Adds the attachments.
    pub(super) fn with_files(mut self, files: impl ExactSizeIterator<Item = AttachmentSummary>) -> Self {
        self.attachment_count = files.len() as u64;
        let mut bytes = 0;
        self.attachments = files
            .take_while(|file| {
                // Quotes, field names and the size take about sixty bytes.
                bytes += json_bytes(&file.filename) + json_bytes(&file.content_type) + 60;
                bytes <= FILES_BYTES_MAX
            })
            .collect();
        self
    }
}

/// The parser for the message's own header.
pub(super) fn header_parser() -> MessageParser {
    MessageParser::new()
        .with_minimal_headers()
        .with_mime_headers()
        .header_address(HeaderName::ReplyTo)
        .header_id(HeaderName::MessageId)
        .header_id(HeaderName::InReplyTo)
        .header_id(HeaderName::References)
        .default_header_ignore()
}

struct HeaderMailbox {
    display: String,
    address: Option<Address>,
}

fn parse_mailbox(addr: &Addr<'_>) -> Option<HeaderMailbox> {
    let (name, text) = (addr.name(), addr.address().map(str::trim));
    // A bare address with a quoted local part: mail-parser returns the quoted string as the name.
    let (name, text) = match (name, text) {
        (Some(name), Some(text)) if text.starts_with('@') => (None, Some(Cow::Owned(format!("{name}{text}")))),
        (name, text) => (name, text.map(Cow::Borrowed)),
    };
    let address =
        text.as_deref().and_then(|text| Address::parse_lenient(text).ok().or_else(|| parse_quoted_local_part(text)));
    let name = name.map(one_line).filter(|name| !name.is_empty());
    let display = match (&address, &name) {
        (Some(address), _) => Mailbox { name, address: address.clone() }.to_string(),
        (None, Some(name)) => match addr.address() {
            Some(address) => format!("{name} <{}>", one_line(address)),
            None => name.clone(),
        },
        (None, None) => one_line(addr.address()?),
    };
    Some(HeaderMailbox { display, address })
}

/// Parses an address with a quoted local part (RFC 5322 3.4.1), which mail-parser returns without its quotes.
fn parse_quoted_local_part(text: &str) -> Option<Address> {
    let (local, domain) = text.rsplit_once('@').filter(|(local, _)| !local.is_empty())?;
    let mut escaped = String::with_capacity(local.len() + 2);
    for c in local.chars() {
        if matches!(c, '"' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    Address::new(&format!("\"{escaped}\""), domain.parse().ok()?).ok()
}

fn mailboxes<'a>(message: &'a Message<'_>, name: &HeaderName<'static>) -> impl Iterator<Item = HeaderMailbox> + 'a {
    let name = name.clone();
    let fields = message.headers().iter().filter(move |header| header.name == name);
    fields.filter_map(|header| header.value.as_address()).flat_map(|address| address.iter()).filter_map(parse_mailbox)
}

fn header_text(message: &Message<'_>, name: &HeaderName<'static>) -> String {
    let field = message.headers().iter().find(|header| header.name == *name);
    field.and_then(|header| header.value.as_text()).map(one_line).unwrap_or_default()
}

fn message_ids<'a>(message: &'a Message<'_>, name: &HeaderName<'static>) -> impl Iterator<Item = String> + 'a {
    let field = message.headers().iter().find(|header| header.name == *name);
    let texts: Vec<&str> = match field.map(|header| &header.value) {
        Some(HeaderValue::Text(text)) => vec![text.as_ref()],
        Some(HeaderValue::TextList(texts)) => texts.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    texts
        .into_iter()
        .map(one_line)
        .filter(|id| !id.is_empty() && json_bytes(id) <= ID_BYTES_MAX)
        .map(|id| if id.starts_with('<') { id } else { format!("<{id}>") })
}

/// The first texts of a list within [`LIST_BYTES_MAX`].
fn first_within_limit(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut bytes = 0;
    texts
        .map(|text| truncate_json(&text, LINE_BYTES_MAX))
        .take_while(|text| {
            bytes += json_bytes(text) + 3;
            bytes <= LIST_BYTES_MAX
        })
        .collect()
}

/// The last texts of a list within [`LIST_BYTES_MAX`]: in a long thread the nearest messages matter.
fn last_within_limit(texts: impl Iterator<Item = String>) -> Vec<String> {
    let all: Vec<String> = texts.collect();
    let mut last = first_within_limit(all.into_iter().rev());
    last.reverse();
    last
}

/// Replaces control characters by blanks and trims.
pub(super) fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.trim().to_owned()
}

/// Bytes of a character in JSON (RFC 8259 7); control characters are already removed.
fn json_char_bytes(c: char) -> usize {
    if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() }
}

fn json_bytes(text: &str) -> usize {
    text.chars().map(json_char_bytes).sum()
}

pub(super) fn truncate_json(text: &str, bytes_max: usize) -> String {
    let mut bytes = 0;
    let fits = |c: &char| {
        bytes += json_char_bytes(*c);
        bytes <= bytes_max
    };
    text.chars().take_while(fits).collect()
}

/// Number of header fields with this name.
pub fn field_count(message: &[u8], name: &str) -> usize {
    fields(message).filter(|field| is_named(field, name)).count()
}

/// Iterates over the header fields, each with its folded lines.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let mut end = 0;
        loop {
            let tail = rest.get(end..)?;
            let line_end = memchr::memchr(b'\n', tail).map_or(tail.len(), |at| at + 1);
            let line = tail.get(..line_end)?;
            // RFC 5322 2.1: an empty line ends the header; a line of blanks does not.
            if end == 0 && matches!(line, b"" | b"\n" | b"\r\n") {
                return None;
            }
            end += line_end;
            if !matches!(rest.get(end), Some(b' ' | b'\t')) {
                break;
            }
        }
        let (field, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(field)
    })
}

/// Compares the name of a field; blanks before the colon are accepted (RFC 5322 4.5.8).
pub(super) fn is_named(field: &[u8], name: &str) -> bool {
    let colon = memchr::memchr(b':', field);
    colon.is_some_and(|at| field.get(..at).unwrap_or_default().trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_are_parsed() {
        let message = b"From: a\r\n b\r\nfrom : c\r\nX: from: d\r\n\r\nFrom: e\r\n";
        assert_eq!(fields(message).count(), 3);
        assert_eq!(field_count(message, "From"), 2);
        assert_eq!(field_count(b"", "From"), 0);
        assert_eq!(field_count(b"\r\nFrom: x", "From"), 0);
    }

    #[test]
    fn quoted_local_parts_are_parsed() {
        for (field, author) in [
            ("\"john doe\"@b.example", Some("\"john doe\"@b.example")),
            ("John <\"john doe\"@b.example>", Some("\"john doe\"@b.example")),
            ("john@b.example", Some("john@b.example")),
            ("john doe", None),
            ("@b.example", None),
        ] {
            let message = format!("From: {field}\r\n\r\n");
            let parsed = header_parser().header_address(HeaderName::From).parse(message.as_bytes()).unwrap();
            let found = mailboxes(&parsed, &HeaderName::From).next().and_then(|person| person.address);
            assert_eq!(found.map(|address| address.to_string()).as_deref(), author, "{field}");
        }
    }

    #[test]
    fn texts_are_truncated_between_characters() {
        assert_eq!(truncate_json("aä", 2), "a");
        assert_eq!(truncate_json("aä", 3), "aä");
        assert_eq!(one_line("a\r\n\tb\0"), "a   b");
    }
}
