//! Reading a received message: its heading, its texts, its files.
//!
//! The caller runs it apart and under `catch_unwind`: what is read was written by anybody. What cannot be
//! made out is left out; the raw message is kept whole.

use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders as _, PartType};

use super::bounds::{HEADER_BYTES_MAX, prefix, unhidden};
use super::heading::{self, FILENAME_BYTES_MAX, Heading, cut, header_parser, one_line};
use super::{File, strip_quote};

/// Bytes of one field that is shown in `headers`.
const VALUE_BYTES_MAX: usize = 16 << 10;
/// Fields that are shown.
const FIELDS_MAX: usize = 500;
/// What a file is when it does not say.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// A file of a received email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Name, type and size.
    pub file: File,
    /// Its Content-ID, without brackets, by which HTML shows it.
    pub content_id: Option<String>,
    /// `attachment` or `inline`.
    pub disposition: &'static str,
    /// Its bytes, decoded.
    pub data: Vec<u8>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// What the header says.
    pub heading: Heading,
    /// The plain text.
    pub text: Option<String>,
    /// The HTML.
    pub html: Option<String>,
    /// The plain text without what it answers and without a signature.
    pub stripped_text: Option<String>,
    /// The fields of the header, in their order, unfolded, as they were written.
    pub headers: Vec<(String, String)>,
    /// The files.
    pub attachments: Vec<Attachment>,
}

impl Reading {
    /// Reads a message whole.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let read = prefix(message);
        let parsed = body_parser().parse(read.as_ref());
        let heading = heading_of(message, parsed.as_ref());
        let Some(parsed) = parsed else { return Self { heading, ..Self::default() } };
        let (text, html) = (text(&parsed), html(&parsed));
        let stripped_text = text.as_deref().map(strip_quote);
        let attachments = parsed.attachments().enumerate().map(|(place, part)| attachment(place, part)).collect();
        Self { heading, text, html, stripped_text, headers: headers(message), attachments }
    }

    /// Reads what is kept of a message when it comes in.
    #[must_use]
    pub fn heading(message: &[u8]) -> Heading {
        let read = prefix(message);
        heading_of(message, body_parser().parse(read.as_ref()).as_ref())
    }

    /// Reads one file.
    #[must_use]
    pub fn attachment(message: &[u8], place: usize) -> Option<Attachment> {
        let read = prefix(message);
        let parsed = body_parser().parse(read.as_ref())?;
        let at = u32::try_from(place).ok()?;
        parsed.attachment(at).map(|part| attachment(place, part))
    }
}

/// Of the parts only their MIME fields are read: addresses within messages within are nobody's concern.
fn body_parser() -> MessageParser {
    MessageParser::new().with_mime_headers().default_header_ignore()
}

fn heading_of(message: &[u8], parsed: Option<&Message<'_>>) -> Heading {
    let top = message.get(..message.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
    let header = header_parser().parse_headers(top);
    let heading = header.as_ref().map(Heading::of).unwrap_or_default();
    let places = parsed.map(|parsed| parsed.attachments.as_slice()).unwrap_or_default();
    let part = |(place, id): (usize, &u32)| match parsed.and_then(|parsed| parsed.part(*id)) {
        Some(part) => file(place, part),
        None => File { filename: named(place, UNKNOWN_TYPE), content_type: UNKNOWN_TYPE.to_owned(), size_bytes: 0 },
    };
    heading.with_files(places.iter().enumerate().map(part))
}

fn text(parsed: &Message<'_>) -> Option<String> {
    let texts: Vec<&str> = parsed
        .text_bodies()
        .filter_map(|part| match &part.body {
            PartType::Text(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| lines(&texts.join("\n")))
}

fn html(parsed: &Message<'_>) -> Option<String> {
    let texts: Vec<&str> = parsed
        .html_bodies()
        .filter_map(|part| match &part.body {
            PartType::Html(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| lines(&texts.join("\n")))
}

/// Without the line ends of the wire.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn content_type(part: &MessagePart<'_>) -> String {
    let read = part.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
        None => kind.ctype().to_owned(),
    });
    let read = read.map(|text| one_line(&text).to_lowercase()).filter(|text| text.contains('/'));
    cut(&unhidden(&read.unwrap_or_else(|| UNKNOWN_TYPE.to_owned())), 127)
}

fn file(place: usize, part: &MessagePart<'_>) -> File {
    let content_type = content_type(part);
    // A name is shown, and perhaps stored: no directories, no control characters.
    let name = part.attachment_name().map(one_line).map(|name| {
        let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
        cut(last.trim(), FILENAME_BYTES_MAX)
    });
    let name = name.filter(|name| !name.is_empty() && name != "." && name != "..");
    File {
        filename: name.unwrap_or_else(|| named(place, &content_type)),
        content_type,
        size_bytes: bytes(part).len() as u64,
    }
}

/// A name for what has none.
fn named(place: usize, content_type: &str) -> String {
    let extension = match content_type {
        "message/rfc822" => "eml",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/calendar" => "ics",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "application/pdf" => "pdf",
        _ => "bin",
    };
    format!("attachment-{}.{extension}", place + 1)
}

fn bytes<'a>(part: &'a MessagePart<'_>) -> &'a [u8] {
    match &part.body {
        PartType::Message(message) => message.raw_message(),
        _ => part.contents(),
    }
}

fn attachment(place: usize, part: &MessagePart<'_>) -> Attachment {
    let is_inline = part.content_disposition().is_some_and(mail_parser::ContentType::is_inline)
        || (part.content_disposition().is_none() && part.content_id().is_some());
    Attachment {
        file: file(place, part),
        content_id: part.content_id().map(|id| cut(&one_line(id), FILENAME_BYTES_MAX)),
        disposition: if is_inline { "inline" } else { "attachment" },
        data: bytes(part).to_vec(),
    }
}

fn headers(message: &[u8]) -> Vec<(String, String)> {
    heading::fields(message)
        .take(FIELDS_MAX)
        .filter_map(|field| {
            let at = memchr::memchr(b':', field)?;
            let (name, value) = field.split_at_checked(at)?;
            let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
            let value = String::from_utf8_lossy(value.get(1..)?);
            let unfolded: String = value.split(['\r', '\n']).collect();
            (!name.is_empty()).then(|| (name, cut(unfolded.trim(), VALUE_BYTES_MAX)))
        })
        .collect()
}
