//! Parsed body of a sent message: texts, custom header fields and attachments.
//!
//! The API shows a sent message by parsing its stored bytes, so that no field is stored twice.

use std::collections::BTreeSet;

use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders as _, PartType};
use message::compose::CustomHeader;
use message::mime;

use crate::unsubscribe;

/// Maximum number of attachments that are listed.
const PARTS_MAX: usize = 1_000;

/// An attachment without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedAttachment {
    pub name: Option<String>,
    pub content_type: String,
    /// Decoded size in bytes.
    pub size_bytes: u64,
    /// The Content-ID that the HTML refers to.
    pub content_id: Option<String>,
}

/// The parsed content of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedBody {
    pub html: Option<String>,
    pub text: Option<String>,
    /// Header fields that a customer can set, in order, unfolded.
    pub headers: Vec<(String, String)>,
    pub files: Vec<ParsedAttachment>,
}

impl ParsedBody {
    /// Parses a message. Parts that cannot be parsed are omitted.
    pub fn parse(message: &[u8]) -> Self {
        let Some(parsed) = mime::parse(&MessageParser::default(), message) else { return Self::default() };
        let part = |id: &u32| parsed.parts.get(usize::try_from(*id).ok()?);
        let is_text = |id: &&u32| !is_inline_file(&parsed, **id);
        let html = parsed.html_body.iter().filter(is_text).filter_map(part).find_map(|part| match &part.body {
            PartType::Html(text) => Some(without_crlf(text)),
            _ => None,
        });
        let text = parsed.text_body.iter().filter(is_text).filter_map(part).find_map(|part| match &part.body {
            PartType::Text(text) => Some(without_crlf(text)),
            _ => None,
        });
        let headers = parsed
            .headers_raw()
            .filter_map(|(name, value)| {
                let value = unfold(value);
                CustomHeader::new(name, &value).ok().map(|_| (name.to_owned(), value))
            })
            .collect();
        let files = files_of(&parsed).map(ParsedAttachment::from_part);
        Self { html, text, headers, files: files.collect() }
    }
}

/// Returns whether a part that the parser lists among the bodies is a file: inline files with a text type are listed there
/// (RFC 8621 4.1.4). Such parts have a file name.
fn is_inline_file(parsed: &Message<'_>, id: u32) -> bool {
    let part = usize::try_from(id).ok().and_then(|id| parsed.parts.get(id));
    id > 0 && part.is_some_and(|part| part.attachment_name().is_some())
}

/// The attachments in the order of the message.
fn files_of<'m>(parsed: &'m Message<'m>) -> impl Iterator<Item = &'m MessagePart<'m>> {
    let bodies = parsed.text_body.iter().chain(&parsed.html_body);
    let inline = bodies.filter(|id| is_inline_file(parsed, **id));
    let files: BTreeSet<u32> = parsed.attachments.iter().chain(inline).copied().collect();
    files.into_iter().take(PARTS_MAX).filter_map(|id| parsed.parts.get(usize::try_from(id).ok()?))
}

impl ParsedAttachment {
    fn from_part(part: &MessagePart<'_>) -> Self {
        Self {
            name: part.attachment_name().map(str::to_owned),
            content_type: mime::media_type(part).unwrap_or_else(|| "application/octet-stream".to_owned()),
            size_bytes: part.len() as u64,
            content_id: part.content_id().map(str::to_owned),
        }
    }
}

/// Parses the attachments of a message with their decoded bytes, in the order of [`ParsedBody::files`].
pub fn parse_attachments(message: &[u8]) -> Vec<(ParsedAttachment, Vec<u8>)> {
    let Some(parsed) = mime::parse(&MessageParser::default(), message) else { return Vec::new() };
    files_of(&parsed).map(|part| (ParsedAttachment::from_part(part), part.contents().to_vec())).collect()
}

/// Parses one attachment, by its position in [`ParsedBody::files`].
pub fn parse_attachment(message: &[u8], index: usize) -> Option<(ParsedAttachment, Vec<u8>)> {
    let parsed = mime::parse(&MessageParser::default(), message)?;
    let part = files_of(&parsed).nth(index)?;
    Some((ParsedAttachment::from_part(part), part.contents().to_vec()))
}

impl ParsedBody {
    /// Removes the header fields of managed unsubscribe, and replaces the link in the bodies by its placeholder.
    /// Returns the link. The link is valid: every holder can unsubscribe the recipient.
    pub fn take_managed_unsubscribe(&mut self) -> Option<String> {
        let header = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("list-unsubscribe"));
        let link = header.and_then(|(_, value)| unsubscribe::link_from_header(value)).map(str::to_owned);
        self.headers.retain(|(name, _)| !unsubscribe::is_unsubscribe_header(name));
        if let Some(link) = &link {
            for text in self.html.iter_mut().chain(&mut self.text) {
                *text = unsubscribe::restore_placeholder(text, link);
            }
        }
        link
    }
}

/// The text with LF line ends, as submitted.
fn without_crlf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Unfolds a header field (RFC 5322 2.2.3).
fn unfold(value: &str) -> String {
    value.split(['\r', '\n']).filter(|part| !part.is_empty()).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use message::compose::{Attachment, Composition, compose};

    fn composition() -> Composition {
        Composition {
            from: "Ada <ada@example.com>".parse().unwrap(),
            to: vec!["b@example.net".parse().unwrap()],
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: Vec::new(),
            subject: "Grüße".to_owned(),
            html: Some("<p>Zeile 1\nZeile ä 2</p>".to_owned()),
            text: Some("Zeile 1\nZeile ä 2".to_owned()),
            headers: vec![CustomHeader::new("X-Order", "7").unwrap()],
            attachments: vec![Attachment {
                name: "a b.pdf".to_owned(),
                content_type: "application/pdf".to_owned(),
                data: vec![7; 1000],
                content_id: None,
            }],
        }
    }

    #[test]
    fn a_composed_message_is_parsed() {
        let composed = composition();
        let message = compose(&composed, "id@example.com", Timestamp::UNIX_EPOCH);
        let read = ParsedBody::parse(&message);
        assert_eq!(read.html.as_deref().map(str::trim_end), composed.html.as_deref());
        assert_eq!(read.text.as_deref().map(str::trim_end), composed.text.as_deref());
        assert_eq!(read.headers, [("X-Order".to_owned(), "7".to_owned())]);
        let file = ParsedAttachment {
            name: Some("a b.pdf".to_owned()),
            content_type: "application/pdf".to_owned(),
            size_bytes: 1000,
            content_id: None,
        };
        assert_eq!(read.files, [file]);
    }

    #[test]
    fn managed_unsubscribe_is_removed() {
        let url = "https://api.example/u/t0-_";
        let mut composed = composition();
        composed.html = Some(format!("<a href=\"{url}\">leave</a>"));
        composed.text = Some(format!("Leave: {url}"));
        composed
            .headers
            .extend(unsubscribe::headers(url).map(|(name, value)| CustomHeader::new(name, &value).unwrap()));
        let mut read = ParsedBody::parse(&compose(&composed, "id@example.com", Timestamp::UNIX_EPOCH));
        assert_eq!(read.take_managed_unsubscribe().as_deref(), Some(url));
        assert_eq!(read.headers, [("X-Order".to_owned(), "7".to_owned())]);
        let bodies = (read.html.as_deref().map(str::trim_end), read.text.as_deref().map(str::trim_end));
        assert_eq!(bodies, (Some("<a href=\"{{unsubscribe_url}}\">leave</a>"), Some("Leave: {{unsubscribe_url}}")));
        assert_eq!(read.take_managed_unsubscribe(), None);
    }

    #[test]
    fn an_inline_text_file_is_not_a_body() {
        for (name, content_type) in [("a.txt", "text/plain"), ("a.html", "text/html")] {
            let file = Attachment {
                name: name.to_owned(),
                content_type: content_type.to_owned(),
                data: b"hi".to_vec(),
                content_id: Some("c1".to_owned()),
            };
            let composed = Composition { html: None, attachments: vec![file], ..composition() };
            let read = ParsedBody::parse(&compose(&composed, "id@example.com", Timestamp::UNIX_EPOCH));
            assert_eq!((read.text.as_deref().map(str::trim_end), read.html), (composed.text.as_deref(), None));
            let [file] = read.files.as_slice() else { panic!("{:?}", read.files) };
            assert_eq!((file.name.as_deref(), file.content_type.as_str()), (Some(name), content_type));
            assert_eq!((file.size_bytes, file.content_id.as_deref()), (2, Some("c1")));
        }
    }

    #[test]
    fn a_single_body_is_not_used_for_both() {
        let html = compose(
            &Composition { text: None, attachments: Vec::new(), ..composition() },
            "i@e",
            Timestamp::UNIX_EPOCH,
        );
        let read = ParsedBody::parse(&html);
        assert!(read.html.is_some() && read.text.is_none(), "{read:?}");
        let text = compose(
            &Composition { html: None, attachments: Vec::new(), ..composition() },
            "i@e",
            Timestamp::UNIX_EPOCH,
        );
        let read = ParsedBody::parse(&text);
        assert!(read.html.is_none() && read.text.is_some(), "{read:?}");
        assert_eq!(ParsedBody::parse(b""), ParsedBody::default());
    }
}
