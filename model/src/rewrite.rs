//! Rewrites a finished message: inserts an unsubscribe link, or replaces its bodies. All other bytes stay the client's.
//!
//! A part is changed within its own transfer encoding. Its header, its character set, the surrounding structure and all
//! other parts are unchanged.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_builder::encoders::QuotedPrintableEncoder;
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding, Message, MessageParser, MessagePart, MimeHeaders as _, PartType};
use message::address::Mailbox;
use message::encoded_word::decode_value;
use message::header::{HeaderField, is_service_field, parse_fields};
use message::{compose, hexadecimal, mime};
use sha2::{Digest as _, Sha256};

use crate::template::RenderedTemplate;
use crate::unsubscribe;

/// RFC 2045 6.8: lines of 76 characters.
const BASE64_LINE_BYTES: usize = 76;

/// Inserts an unsubscribe link in place of `{{unsubscribe_url}}` in the subject and the texts, and replaces the
/// client's List-Unsubscribe fields (RFC 8058).
pub fn insert_unsubscribe_link(message: &[u8], url: &str) -> Vec<u8> {
    let (fields, body) = parse_fields(message);
    let mut out = Vec::with_capacity(message.len() + 1024);
    for (name, value) in unsubscribe::headers(url) {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    for field in &fields {
        if field.has_name(message, "List-Unsubscribe") || field.has_name(message, "List-Unsubscribe-Post") {
            continue;
        }
        match field.has_name(message, "Subject").then(|| link_in_subject(message, field, url)).flatten() {
            Some(subject) => compose::write_subject(&mut out, &subject),
            None => out.extend_from_slice(&message[field.start..field.end]),
        }
    }
    let mut at = body;
    for (range, bytes) in link_in_parts(message, url) {
        // Parts whose offsets conflict with the parsed header are left unchanged.
        let Some(before) = message.get(at..range.start) else { continue };
        out.extend_from_slice(before);
        out.extend_from_slice(&bytes);
        at = range.end;
    }
    out.extend_from_slice(message.get(at..).unwrap_or_default());
    out
}

fn link_in_subject(message: &[u8], field: &HeaderField, url: &str) -> Option<String> {
    let subject = decode_value(message, field).ok()?;
    match unsubscribe::insert_link(&subject, url) {
        Cow::Owned(linked) => Some(linked),
        Cow::Borrowed(_) => None,
    }
}

/// Finds the text parts with the placeholder: their byte ranges and their new bytes.
fn link_in_parts(message: &[u8], url: &str) -> Vec<(Range<usize>, Vec<u8>)> {
    let Some(parsed) = mime::parse(&MessageParser::default(), message) else { return Vec::new() };
    let mut ids: Vec<u32> = parsed.html_body.iter().chain(&parsed.text_body).copied().collect();
    ids.sort_unstable();
    ids.dedup();
    let linked = |id: u32| {
        let part = parsed.parts.get(usize::try_from(id).ok()?)?;
        if !matches!(part.body, PartType::Text(_) | PartType::Html(_)) || part.is_encoding_problem {
            return None;
        }
        let range = range_of(part.offset_body, part.offset_end);
        Some((range.clone(), link_in_part(message.get(range)?, part.encoding, url)?))
    };
    ids.into_iter().filter_map(linked).collect()
}

fn range_of(start: u32, end: u32) -> Range<usize> {
    usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
}

/// The bytes of a part with the link, in its transfer encoding.
fn link_in_part(bytes: &[u8], encoding: Encoding, url: &str) -> Option<Vec<u8>> {
    match encoding {
        Encoding::None => link_in_text(bytes, url),
        Encoding::QuotedPrintable => {
            let linked = link_in_text(&quoted_printable_decode(bytes)?, url)?;
            QuotedPrintableEncoder::new().preserve_line_breaks().encode(&linked).ok()
        }
        Encoding::Base64 => {
            let encoded = STANDARD.encode(link_in_text(&base64_decode(bytes)?, url)?);
            let lines: Vec<&[u8]> = encoded.as_bytes().chunks(BASE64_LINE_BYTES).collect();
            let mut out = lines.join(&b"\r\n"[..]);
            if bytes.ends_with(b"\n") {
                out.extend_from_slice(b"\r\n");
            }
            Some(out)
        }
    }
}

/// Inserts the link in a text; `None` if there is no placeholder. Placeholder and link are ASCII, so all other bytes
/// stay unchanged in any character set.
fn link_in_text(bytes: &[u8], url: &str) -> Option<Vec<u8>> {
    memchr::memmem::find(bytes, b"unsubscribe_url")?;
    if let Ok(text) = std::str::from_utf8(bytes) {
        return match unsubscribe::insert_link(text, url) {
            Cow::Owned(linked) => Some(linked.into_bytes()),
            Cow::Borrowed(_) => None,
        };
    }
    // Maps each byte to a character, and back.
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    match unsubscribe::insert_link(&text, url) {
        Cow::Owned(linked) => linked.chars().map(|c| u8::try_from(c).ok()).collect(),
        Cow::Borrowed(_) => None,
    }
}

/// Replaces the bodies of a message by those of a template. Other header fields and attachments stay; the template's
/// subject and Reply-To are used if the message has none.
pub fn replace_bodies(message: &[u8], rendered: &RenderedTemplate, reply_to: &[Mailbox]) -> Vec<u8> {
    let (fields, _) = parse_fields(message);
    let parsed = mime::parse(&MessageParser::default(), message);
    let mut out = Vec::with_capacity(message.len() + 1024);
    let subject = if has_subject(message) { None } else { rendered.subject.as_deref() };
    for field in &fields {
        let is_mime = is_content(message, field) || field.has_name(message, "MIME-Version");
        let is_replaced = subject.is_some() && field.has_name(message, "Subject");
        if !is_mime && !is_replaced && !is_service_field(message, field) {
            out.extend_from_slice(&message[field.start..field.end]);
        }
    }
    if !out.is_empty() && !out.ends_with(b"\n") {
        // The input was a line without a line end.
        out.extend_from_slice(b"\r\n");
    }
    if let Some(subject) = subject {
        compose::write_subject(&mut out, subject);
    }
    if !reply_to.is_empty() && !fields.iter().any(|field| field.has_name(message, "Reply-To")) {
        compose::write_reply_to(&mut out, reply_to);
    }
    out.extend_from_slice(b"MIME-Version: 1.0\r\n");
    let bodies = compose::compose_bodies(rendered.html.as_deref(), rendered.text.as_deref());
    let files = parsed.as_ref().map(|parsed| raw_attachment_parts(message, parsed)).unwrap_or_default();
    if files.is_empty() {
        out.extend_from_slice(&bodies);
        return out;
    }
    let boundary = unique_boundary(message);
    out.extend_from_slice(format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\r\n").as_bytes());
    if !files.iter().all(|file| file.is_ascii()) {
        // RFC 2045 6.4: a multipart with an 8bit part must declare 8bit.
        out.extend_from_slice(b"Content-Transfer-Encoding: 8bit\r\n");
    }
    for part in std::iter::once(&bodies).chain(&files) {
        out.extend_from_slice(format!("\r\n--{boundary}\r\n").as_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    out
}

/// Returns whether a message has a non-empty subject.
pub fn has_subject(message: &[u8]) -> bool {
    let (fields, _) = parse_fields(message);
    let subject = fields.iter().find(|field| field.has_name(message, "Subject"));
    subject.is_some_and(|field| decode_value(message, field).is_ok_and(|text| !text.is_empty()))
}

pub fn has_attachments(message: &[u8]) -> bool {
    let parsed = mime::parse(&MessageParser::default(), message);
    parsed.is_some_and(|parsed| attachment_parts(&parsed).next().is_some())
}

/// The attachments of a message: all parts that are not text, except alternatives of the text.
fn attachment_parts<'a, 'x>(parsed: &'a Message<'x>) -> impl Iterator<Item = &'a MessagePart<'x>> {
    let is_choice = |part: &MessagePart<'_>| {
        part.content_type().and_then(|kind| kind.subtype()).is_some_and(|kind| kind == "alternative")
    };
    let choices: Vec<u32> = parsed
        .parts
        .iter()
        .filter(|part| is_choice(part))
        .filter_map(|part| match &part.body {
            PartType::Multipart(parts) => Some(parts.iter().copied()),
            _ => None,
        })
        .flatten()
        .collect();
    let ids = parsed.attachments.iter().filter(move |id| !choices.contains(id));
    ids.filter_map(|id| parsed.parts.get(usize::try_from(*id).ok()?))
}

/// The attachments of a message, each with its original `Content-*` fields.
fn raw_attachment_parts(message: &[u8], parsed: &Message<'_>) -> Vec<Vec<u8>> {
    let raw = |part: &MessagePart<'_>| {
        let header = message.get(range_of(part.offset_header, part.offset_body))?;
        let body = message.get(range_of(part.offset_body, part.offset_end))?;
        let mut out = Vec::with_capacity(header.len() + body.len() + 2);
        for field in parse_fields(header).0.iter().filter(|field| is_content(header, field)) {
            out.extend_from_slice(&header[field.start..field.end]);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        Some(out)
    };
    attachment_parts(parsed).filter_map(raw).collect()
}

fn is_content(message: &[u8], field: &HeaderField) -> bool {
    const PREFIX: &[u8] = b"Content-";
    let name = message.get(field.start..field.name_end).unwrap_or_default();
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Creates a boundary that no part contains, derived from the message's hash: a collision requires a text that contains
/// its own hash.
fn unique_boundary(message: &[u8]) -> String {
    format!("=_{}", hexadecimal::encode(&Sha256::digest(message)[..16]))
}

#[cfg(test)]
mod tests;
