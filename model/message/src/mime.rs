//! MIME parser with bounds, for untrusted messages.
//!
//! ```text
//! lines ─► header block ─► multipart? ─► its delimiters ─► the next header block …
//!                     └──► a leaf ─► up to the next delimiter ─► [decode] ─► text or file
//! ```
//!
//! The structure is found in one pass over the lines, without recursion; an attached message stays one leaf. So neither
//! nesting nor encoding multiplies the work. A delimiter counts only at the start of a line (RFC 2046 5.1.1).
//! mail-parser parses the header blocks, and the result is its [`Message`]. RFC 8621 4.1.4 determines which parts are
//! the text; images, audio and video are always files. Text is converted to UTF-8; a file keeps its bytes after its
//! transfer encoding is decoded.

mod bodies;
mod decode;

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{
    ContentType, Encoding, Header, HeaderName, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders as _,
    PartType,
};
use memchr::{memchr, memmem};

use self::bodies::{BodyStructure, LeafPart};
pub(crate) use self::decode::LENIENT_BASE64;
use self::decode::TransferEncoding;
use crate::header::HEADER_BYTES_MAX;

/// Maximum number of parts; later ones remain in the raw message only.
pub const PARTS_MAX: usize = 2_000;
/// Maximum nesting of multiparts.
const DEPTH_MAX: usize = 50;
/// Maximum number of header lines, of the message and its parts together.
const HEADER_LINES_MAX: usize = 50_000;

/// A multipart whose end is not reached yet.
struct OpenMultipart {
    id: u32,
    boundary: Vec<u8>,
    parts: Vec<u32>,
}

/// A delimiter line between parts.
struct BoundaryDelimiter {
    /// End of the part before it; the preceding line break belongs to the delimiter.
    part_end: usize,
    /// Offset after the delimiter line.
    next: usize,
    /// Index of its multipart in `open`, outermost first.
    depth: usize,
    closes: bool,
}

struct MimeParser<'p, 'x> {
    parser: &'p MessageParser,
    raw: &'x [u8],
    parts: Vec<MessagePart<'x>>,
    open: Vec<OpenMultipart>,
    bodies: BodyStructure,
    header_lines: usize,
}

/// Parses a message; `None` if it has no header.
pub fn parse<'x>(parser: &MessageParser, raw: &'x [u8]) -> Option<Message<'x>> {
    let mut mime_parser = MimeParser {
        parser,
        raw,
        parts: Vec::new(),
        open: Vec::new(),
        bodies: BodyStructure::default(),
        header_lines: 0,
    };
    let mut at = Some(0);
    while let Some(start) = at.filter(|_| mime_parser.has_room()) {
        at = mime_parser.parse_part(start)?;
    }
    let end = raw.len();
    mime_parser.close_down_to(0, end);
    let MimeParser { mut parts, bodies, .. } = mime_parser;
    if let Some(first) = parts.first_mut() {
        first.offset_end = to_u32(end);
    }
    let BodyStructure { html, text, attachments, .. } = bodies;
    Some(Message { html_body: html, text_body: text, attachments, parts, raw_message: Cow::Borrowed(raw) })
}

fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl<'x> MimeParser<'_, 'x> {
    fn has_room(&self) -> bool {
        self.parts.len() < PARTS_MAX && self.header_lines < HEADER_LINES_MAX
    }

    /// Parses the part at `start`. Returns the offset of the next part, if any; the outer `None` means that the message
    /// has no header.
    fn parse_part(&mut self, start: usize) -> Option<Option<usize>> {
        let rest = self.raw.get(start..).unwrap_or_default();
        let header = header_block(rest);
        self.header_lines += header.iter().filter(|byte| **byte == b'\n').count();
        let body = start + header.len() + empty_line_length(rest.get(header.len()..).unwrap_or_default());
        let headers = self.parse_headers(header, start);
        if headers.is_empty() && self.parts.is_empty() {
            return None;
        }
        let id = to_u32(self.parts.len());
        if let Some(open) = self.open.last_mut() {
            open.parts.push(id);
        }
        let mut part = MessagePart {
            headers,
            is_encoding_problem: false,
            body: PartType::default(),
            encoding: Encoding::None,
            offset_header: to_u32(start),
            offset_body: to_u32(body),
            offset_end: to_u32(self.raw.len()),
        };
        if let Some(boundary) = self.boundary_of(&part)
            && let Some(first) = find_delimiter(self.raw, body, std::slice::from_ref(&boundary))
        {
            let subtype = part.content_type().and_then(ContentType::subtype).unwrap_or_default();
            self.bodies.open(subtype);
            self.parts.push(part);
            self.open.push(OpenMultipart { id, boundary, parts: Vec::new() });
            return Some(if first.closes {
                self.next_part_start(&BoundaryDelimiter { depth: self.open.len() - 1, ..first })
            } else {
                Some(first.next)
            });
        }
        let boundaries: Vec<&[u8]> = self.open.iter().map(|open| open.boundary.as_slice()).collect();
        let found = find_delimiter(self.raw, body, &boundaries);
        let end = found.as_ref().map_or(self.raw.len(), |found| found.part_end.max(body));
        part.offset_end = to_u32(end);
        let bytes = self.raw.get(body..end).unwrap_or_default();
        self.decode_leaf(id, &mut part, bytes);
        self.parts.push(part);
        Some(found.and_then(|found| self.next_part_start(&found)))
    }

    /// Parses a header block and makes its offsets relative to the message. The block is truncated: the parser's time
    /// for split parameters (RFC 2231 3) grows with the square of the block's length.
    fn parse_headers(&self, block: &'x [u8], start: usize) -> Vec<Header<'x>> {
        let block = block.get(..block.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
        let read = self.parser.parse_headers(block);
        let mut headers = read.and_then(|mut read| read.parts.pop()).map(|part| part.headers).unwrap_or_default();
        for header in &mut headers {
            for offset in [&mut header.offset_field, &mut header.offset_start, &mut header.offset_end] {
                *offset = offset.saturating_add(to_u32(start));
            }
        }
        headers
    }

    /// Boundary of a multipart, unless [`DEPTH_MAX`] multiparts are open.
    fn boundary_of(&self, part: &MessagePart<'_>) -> Option<Vec<u8>> {
        let kind = part.content_type().filter(|kind| kind.ctype().eq_ignore_ascii_case("multipart"))?;
        let boundary = kind.attribute("boundary").filter(|boundary| !boundary.is_empty())?;
        (self.open.len() < DEPTH_MAX).then(|| boundary.as_bytes().to_vec())
    }

    /// Closes the multiparts that a delimiter ends, and returns the offset of the next part, if any.
    fn next_part_start(&mut self, found: &BoundaryDelimiter) -> Option<usize> {
        self.close_down_to(found.depth + 1, found.part_end);
        if !found.closes {
            return Some(found.next);
        }
        self.close_down_to(found.depth, found.next);
        let boundaries: Vec<&[u8]> = self.open.iter().map(|open| open.boundary.as_slice()).collect();
        let next = find_delimiter(self.raw, found.next, &boundaries)?;
        // The text up to the next delimiter is an epilogue or preamble and is ignored (RFC 2046 5.1.1). Each round
        // closes at least one multipart, so the recursion is bounded.
        self.next_part_start(&next)
    }

    fn close_down_to(&mut self, left: usize, end: usize) {
        while self.open.len() > left {
            let Some(OpenMultipart { id, parts, .. }) = self.open.pop() else { return };
            self.bodies.close();
            if let Some(part) = self.parts.get_mut(id as usize) {
                (part.body, part.offset_end) = (PartType::Multipart(parts), to_u32(end));
            }
        }
    }

    /// Decodes a leaf: text to UTF-8, and a file to its original bytes, whatever its type.
    fn decode_leaf(&mut self, id: u32, part: &mut MessagePart<'x>, bytes: &'x [u8]) {
        let encoding = part.headers.iter().rev().find(|field| field.name == HeaderName::ContentTransferEncoding);
        let encoding = match encoding.map(|field| &field.value) {
            Some(HeaderValue::Text(text)) => decode::parse_encoding(text),
            _ => TransferEncoding::Identity,
        };
        let (decoded, is_whole) = decode::decode(encoding, bytes);
        part.is_encoding_problem = !is_whole;
        part.encoding = match encoding {
            TransferEncoding::Base64 => Encoding::Base64,
            TransferEncoding::QuotedPrintable => Encoding::QuotedPrintable,
            // mail-parser has no name for uuencode. `None` makes later rewriting leave such a part alone.
            TransferEncoding::Identity | TransferEncoding::Uuencode => Encoding::None,
        };
        let kind = part.content_type();
        let (main, sub) = kind.map_or(("text", "plain"), |kind| match kind.subtype() {
            Some(sub) => (kind.ctype(), sub),
            // RFC 2045 5.2: an unreadable type is treated as plain text.
            None if kind.ctype().eq_ignore_ascii_case("text") => ("text", "plain"),
            None => (kind.ctype(), ""),
        });
        let is = |word: &str, text: &str| text.eq_ignore_ascii_case(word);
        let leaf = LeafPart {
            is_plain: is("text", main) && is("plain", sub),
            is_html: is("text", main) && is("html", sub),
            is_attached: part.content_disposition().is_some_and(ContentType::is_attachment),
            is_named: part.attachment_name().is_some(),
        };
        part.body = if self.bodies.add_leaf(id, &leaf) {
            let charset = kind.and_then(|kind| kind.attribute("charset")).unwrap_or_default().trim();
            let text = decode_text(charset, decoded);
            if leaf.is_html { PartType::Html(text) } else { PartType::Text(text) }
        } else {
            PartType::Binary(decoded)
        };
    }
}

/// The media type of a part, without parameters; `None` if it declares none.
pub fn media_type(part: &MessagePart<'_>) -> Option<String> {
    part.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
        None => kind.ctype().to_owned(),
    })
}

/// Decodes text from a character set, or from UTF-8 if the character set is unknown.
fn decode_text<'x>(charset: &str, bytes: Cow<'x, [u8]>) -> Cow<'x, str> {
    // Windows' name for its variant of Shift_JIS.
    let charset = if charset.eq_ignore_ascii_case("cp932") { "shift_jis" } else { charset };
    match (charset_decoder(charset.as_bytes()), bytes) {
        (Some(decoder), bytes) => Cow::Owned(decoder(&bytes)),
        (None, Cow::Borrowed(bytes)) => String::from_utf8_lossy(bytes),
        (None, Cow::Owned(bytes)) => {
            let lossy = |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
            Cow::Owned(String::from_utf8(bytes).unwrap_or_else(lossy))
        }
    }
}

/// The lines before the first empty one (RFC 5322 2.1); a line of blanks is not empty.
pub(crate) fn header_block(rest: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if empty_line_length(tail) > 0 {
            break;
        }
        at += memchr(b'\n', tail).map_or(tail.len(), |end| end + 1);
    }
    rest.get(..at).unwrap_or_default()
}

/// Length of the empty line at the start of `tail`; 0 if there is none.
fn empty_line_length(tail: &[u8]) -> usize {
    match tail {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    }
}

/// Finds the first delimiter of one of these boundaries from an offset on.
fn find_delimiter<B: AsRef<[u8]>>(raw: &[u8], from: usize, boundaries: &[B]) -> Option<BoundaryDelimiter> {
    if boundaries.is_empty() {
        return None;
    }
    let mut at = from;
    loop {
        let tail = raw.get(at..)?;
        let begins_line = at == 0 || raw.get(at - 1) == Some(&b'\n');
        if begins_line && tail.starts_with(b"--") {
            let length = memchr(b'\n', tail).map_or(tail.len(), |end| end + 1);
            let line = tail.get(2..length).unwrap_or_default();
            if let Some((depth, closes)) = match_delimiter(line, boundaries) {
                let before = raw.get(..at).unwrap_or_default();
                let broken = before.strip_suffix(b"\n").map_or(before, |line| line.strip_suffix(b"\r").unwrap_or(line));
                return Some(BoundaryDelimiter { part_end: broken.len(), next: at + length, depth, closes });
            }
        }
        // Skips to the next line that begins with two hyphens.
        let tail = raw.get(at..)?;
        at += memmem::find(tail, b"\n--")? + 1;
    }
}

/// Matches the rest of a line after `--` against the boundaries, innermost first. Returns the boundary's index and
/// whether the delimiter is the closing one.
fn match_delimiter<B: AsRef<[u8]>>(line: &[u8], boundaries: &[B]) -> Option<(usize, bool)> {
    let is_blank = |rest: &[u8]| rest.iter().all(u8::is_ascii_whitespace);
    boundaries.iter().enumerate().rev().find_map(|(depth, boundary)| {
        let rest = line.strip_prefix(boundary.as_ref())?;
        if is_blank(rest) {
            return Some((depth, false));
        }
        rest.strip_prefix(b"--").filter(|rest| is_blank(rest)).map(|_| (depth, true))
    })
}

#[cfg(test)]
mod tests;
