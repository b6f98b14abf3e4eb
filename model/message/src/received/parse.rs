//! Parser of a received message: header, texts and attachments.
//!
//! The input is untrusted, so the caller parses in a separate task under `catch_unwind`. Unreadable parts are skipped;
//! the raw message is stored unchanged.

use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders as _, PartType};

use super::header::{self, FILENAME_BYTES_MAX, ReceivedHeader, header_parser, one_line, truncate_json};
use super::{AttachmentSummary, auto_reply, filename, strip_quote};
use crate::header::HEADER_BYTES_MAX;
use crate::{encoded_word, mime};

/// Bytes of one field in `headers`.
const VALUE_BYTES_MAX: usize = 16 << 10;
/// Number of fields in `headers`.
const FIELDS_MAX: usize = 500;
/// Type of attachments that state none.
const UNKNOWN_TYPE: &str = "application/octet-stream";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedAttachment {
    /// Name, type and size.
    pub file: AttachmentSummary,
    /// Content-ID without angle brackets, by which HTML refers to the attachment.
    pub content_id: Option<String>,
    /// Character set that the part declares; `data` is not converted.
    pub charset: Option<String>,
    /// `attachment` or `inline`.
    pub disposition: &'static str,
    /// Decoded bytes.
    pub data: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedReceivedEmail {
    pub heading: ReceivedHeader,
    pub text: Option<String>,
    pub html: Option<String>,
    /// The plain text without quotes and signature.
    pub stripped_text: Option<String>,
    /// The header fields in order, unfolded but not decoded.
    pub headers: Vec<(String, String)>,
    pub attachments: Vec<ReceivedAttachment>,
}

impl ParsedReceivedEmail {
    /// Parses a whole message.
    pub fn parse(message: &[u8]) -> Self {
        let parsed = mime::parse(&body_parser(), message);
        let heading = header_with_attachments(message, parsed.as_ref());
        let Some(parsed) = parsed else { return Self { heading, ..Self::default() } };
        let (text, html) = (plain_text(&parsed), html_text(&parsed));
        let stripped_text = text.as_deref().map(strip_quote);
        let attachments =
            parsed.attachments().enumerate().map(|(index, part)| attachment(index, part, message)).collect();
        Self { heading, text, html, stripped_text, headers: headers(message), attachments }
    }

    /// Parses the header and the attachment summaries, which are stored on receipt.
    pub fn parse_header(message: &[u8]) -> ReceivedHeader {
        header_with_attachments(message, mime::parse(&body_parser(), message).as_ref())
    }

    /// Parses one attachment, by its index.
    pub fn parse_attachment(message: &[u8], index: usize) -> Option<ReceivedAttachment> {
        let parsed = mime::parse(&body_parser(), message)?;
        let at = u32::try_from(index).ok()?;
        parsed.attachment(at).map(|part| attachment(index, part, message))
    }
}

/// The parser for parts: it reads MIME fields only.
fn body_parser() -> MessageParser {
    MessageParser::new().with_mime_headers().default_header_ignore()
}

fn header_with_attachments(message: &[u8], parsed: Option<&Message<'_>>) -> ReceivedHeader {
    let top = message.get(..message.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
    let whole = encoded_word::join_adjacent_words(mime::header_block(top));
    let header = header_parser().parse_headers(&whole);
    let heading = header.as_ref().map(ReceivedHeader::from_message).unwrap_or_default();
    let heading = ReceivedHeader { unanswerable: auto_reply::header_refusal(top), ..heading };
    let part_ids = parsed.map(|parsed| parsed.attachments.as_slice()).unwrap_or_default();
    let part = |(index, id): (usize, &u32)| match parsed.and_then(|parsed| parsed.part(*id)) {
        Some(part) => attachment_summary(index, part, message),
        None => AttachmentSummary {
            filename: default_filename(index, UNKNOWN_TYPE),
            content_type: UNKNOWN_TYPE.to_owned(),
            size_bytes: 0,
        },
    };
    heading.with_files(part_ids.iter().enumerate().map(part))
}

fn plain_text(parsed: &Message<'_>) -> Option<String> {
    let texts: Vec<&str> = parsed
        .text_bodies()
        .filter_map(|part| match &part.body {
            PartType::Text(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| without_crlf(&texts.join("\n")))
}

fn html_text(parsed: &Message<'_>) -> Option<String> {
    let texts: Vec<&str> = parsed
        .html_bodies()
        .filter_map(|part| match &part.body {
            PartType::Html(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| without_crlf(&texts.join("\n")))
}

/// Converts CRLF to LF.
fn without_crlf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn content_type(part: &MessagePart<'_>) -> String {
    let read = mime::media_type(part).map(|text| one_line(&text).to_lowercase()).filter(|text| text.contains('/'));
    truncate_json(&read.unwrap_or_else(|| UNKNOWN_TYPE.to_owned()), 127)
}

fn attachment_summary(index: usize, part: &MessagePart<'_>, message: &[u8]) -> AttachmentSummary {
    let content_type = content_type(part);
    // The name is displayed and may become a file name, so directories and control characters are removed.
    let name =
        filename::parse_filename(part_header(part, message)).or_else(|| part.attachment_name().map(str::to_owned));
    let name = name.as_deref().map(one_line).map(|name| {
        let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
        truncate_json(last.trim(), FILENAME_BYTES_MAX)
    });
    let name = name.filter(|name| !name.is_empty() && name != "." && name != "..");
    AttachmentSummary {
        filename: name.unwrap_or_else(|| default_filename(index, &content_type)),
        content_type,
        size_bytes: part.contents().len() as u64,
    }
}

/// Generates a name for an attachment without one.
fn default_filename(index: usize, content_type: &str) -> String {
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
    format!("attachment-{}.{extension}", index + 1)
}

/// The raw header of a part.
fn part_header<'m>(part: &MessagePart<'_>, message: &'m [u8]) -> &'m [u8] {
    let at = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
    message.get(at(part.offset_header)..at(part.offset_body)).unwrap_or_default()
}

fn attachment(index: usize, part: &MessagePart<'_>, message: &[u8]) -> ReceivedAttachment {
    let is_inline = part.content_disposition().is_some_and(mail_parser::ContentType::is_inline)
        || (part.content_disposition().is_none() && part.content_id().is_some());
    ReceivedAttachment {
        file: attachment_summary(index, part, message),
        content_id: part.content_id().map(|id| truncate_json(&one_line(id), FILENAME_BYTES_MAX)),
        charset: part
            .content_type()
            .and_then(|kind| kind.attribute("charset"))
            .map(|charset| truncate_json(&one_line(charset), 127))
            .filter(|charset| !charset.is_empty()),
        disposition: if is_inline { "inline" } else { "attachment" },
        data: part.contents().to_vec(),
    }
}

fn headers(message: &[u8]) -> Vec<(String, String)> {
    header::fields(message)
        .take(FIELDS_MAX)
        .filter_map(|field| {
            let at = memchr::memchr(b':', field)?;
            let (name, value) = field.split_at_checked(at)?;
            let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
            let value = String::from_utf8_lossy(value.get(1..)?);
            let unfolded: String = value.split(['\r', '\n']).collect();
            (!name.is_empty()).then(|| (name, truncate_json(unfolded.trim(), VALUE_BYTES_MAX)))
        })
        .collect()
}

#[cfg(test)]
mod files;

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats a parsed message for comparison.
    fn describe(message: &str) -> String {
        let reading = ParsedReceivedEmail::parse(message.replace('\n', "\r\n").as_bytes());
        let heading = &reading.heading;
        let files: Vec<String> = reading
            .attachments
            .iter()
            .map(|attachment| {
                let AttachmentSummary { filename, content_type, size_bytes } = &attachment.file;
                format!("{filename} {content_type} {size_bytes} {} {:?}", attachment.disposition, attachment.content_id)
            })
            .collect();
        format!(
            "from={} to={:?} subject={} id={} text={:?} html={:?} files={files:?}",
            heading.from, heading.to, heading.subject, heading.message_id, reading.text, reading.html
        )
    }

    #[test]
    fn an_ordinary_message_is_parsed() {
        let message = "From: \"Ada L.\" <ada@a.example>\nTo: b@b.example, Grace <g@b.example>\n\
                       Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nMessage-ID: <1@a.example>\n\
                       References: <a@b> <c@d>\nIn-Reply-To: <c@d>\nReply-To: r@a.example\n\
                       Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: multipart/alternative; boundary=y\n\n\
                       --y\n\nHello\n--y\nContent-Type: text/html\n\n<p>Hello</p>\n--y--\n--x\n\
                       Content-Type: application/pdf; name=\"a b.pdf\"\nContent-Transfer-Encoding: base64\n\
                       Content-Disposition: attachment\n\neHl6\n--x--\n";
        assert_eq!(
            describe(message),
            "from=\"Ada L.\" <ada@a.example> to=[\"b@b.example\", \"Grace <g@b.example>\"] subject=Grüße \
             id=<1@a.example> text=Some(\"Hello\") html=Some(\"<p>Hello</p>\") \
             files=[\"a b.pdf application/pdf 3 attachment None\"]"
        );
        let heading = ParsedReceivedEmail::parse_header(message.replace('\n', "\r\n").as_bytes());
        assert_eq!(heading.references, ["<a@b>", "<c@d>"]);
        assert_eq!((heading.in_reply_to.as_deref(), heading.attachment_count), (Some("<c@d>"), 1));
        assert_eq!(heading.reply_to, ["r@a.example"]);
        assert_eq!(heading.author.unwrap().to_string(), "ada@a.example");
    }

    #[test]
    fn charsets_and_encoded_words_are_decoded() {
        for (message, wanted) in [
            ("Subject: =?iso-8859-1?Q?J=F6rg?= =?iso-8859-1?Q?_x?=\n\n", "subject=Jörg x"),
            ("Subject: =?windows-1251?B?z/Do4uXy?=\n\n", "subject=Привет"),
            ("Subject: =?x-unknown?Q?abc?=\n\n", "subject="),
            ("Subject: =?utf-8?B?////?=\n\n", "subject="),
            ("Content-Type: text/plain; charset=iso-2022-jp\n\n\u{1b}$B$3$s\u{1b}(B\n", "text=Some(\"こん\\n\")"),
            ("Content-Type: text/plain; charset=\"\"\n\nabc\n", "text=Some(\"abc\\n\")"),
            ("From: =?utf-8?q?a=0D=0ABcc:_x?= <a@b.example>\n\n", "from=\"a  Bcc: x\" <a@b.example>"),
            ("From: nobody at all\n\n", "from="),
            ("Content-Type: text/html\n\n<b>x</b>\n", "text=None html=Some(\"<b>x</b>\\n\")"),
        ] {
            assert!(describe(message).contains(wanted), "{message}: {}", describe(message));
        }
    }

    #[test]
    fn filenames_contain_no_path() {
        for (name, wanted) in [
            ("name=\"../../etc/passwd\"", "passwd"),
            ("name=\"C:\\\\x\\\\run.exe\"", "run.exe"),
            ("name=\"..\"", "attachment-1.bin"),
            ("name*0*=utf-8''%C3%A4; name*1=b.txt", "äb.txt"),
            ("x=y", "attachment-1.bin"),
        ] {
            let message = format!(
                "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: application/octet-stream; {name}\n\n1\n--x--\n"
            );
            let read = ParsedReceivedEmail::parse(message.replace('\n', "\r\n").as_bytes());
            assert_eq!(read.attachments[0].file.filename, wanted, "{name}");
        }
    }

    #[test]
    fn broken_and_hostile_messages_are_parsed() {
        let nested: String =
            (0..500).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n")).collect();
        let unclosed: String = (0..3_000).map(|n| format!("--b{}\nContent-Type: text/plain\n\nx\n", n % 7)).collect();
        let addresses = format!("To: {}\n\n", vec!["a@b.example"; 20_000].join(","));
        for message in [
            String::new(),
            "\n".to_owned(),
            "x".to_owned(),
            ":\n\n".to_owned(),
            "Content-Type: multipart/mixed\n\n--\n".to_owned(),
            "Content-Type: multipart/mixed; boundary=\"\"\n\n--\n--\n".to_owned(),
            "Content-Type: message/rfc822\n\n".repeat(200),
            format!("{nested}hello"),
            format!("Content-Type: multipart/mixed; boundary=b0\n\n{unclosed}"),
            addresses,
            format!("Subject: {}\n\nx", "=?utf-8?q?a?= ".repeat(10_000)),
            format!("References: {}\n\nx", "<a@b> ".repeat(20_000)),
            "Content-Transfer-Encoding: base64\nContent-Type: text/plain\n\n!!!!".to_owned(),
            // Each of these characters takes two bytes in JSON.
            format!(
                "From: =?utf-8?b?{quotes}?= <a@b.example>\nTo: {people}\nCc: {people}\nReply-To: {people}\n\
                 Subject: =?utf-8?b?{quotes}?=\nMessage-ID: <{ids}>\nIn-Reply-To: <{ids}>\nReferences: <{ids}> <{ids}>\n\
                 Content-Type: multipart/mixed; boundary=x\n\n{files}",
                quotes = "IiIi".repeat(1_000),
                people = format!("=?utf-8?b?{}?= <a@b.example>,", "IiIi".repeat(200)).repeat(20),
                ids = "\\\"".repeat(400),
                files = "--x\nContent-Type: application/pdf; name=\"=?utf-8?b?IiIiIiIiIiIiIiIiIiIiIiIi?=\"\n\nx\n"
                    .repeat(500),
            ),
        ] {
            let heading = ParsedReceivedEmail::parse_header(message.as_bytes());
            assert_eq!(heading, ParsedReceivedEmail::parse(message.as_bytes()).heading);
            assert!(serde_json::to_vec(&heading).unwrap().len() < 20_000);
        }
    }

    #[test]
    fn the_last_references_of_a_thread_are_returned() {
        let ids: String = (0..1_000).map(|n| format!("<{n}@a.example> ")).collect();
        let heading = ParsedReceivedEmail::parse_header(format!("References: {ids}\r\n\r\n").as_bytes());
        assert_eq!(heading.references.last().map(String::as_str), Some("<999@a.example>"));
        assert!(heading.references.len() < 300);
    }
}
