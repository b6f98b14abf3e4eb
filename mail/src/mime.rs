//! Taking a message apart: its parts, in bounds, whoever wrote it.
//!
//! ```text
//! lines ─► header block ─► multipart? ─► its delimiters ─► the next header block …
//!                     └──► a leaf ─► up to the next delimiter ─► [decode] ─► text or file
//! ```
//!
//! The structure is found here, in one walk over the lines, and without recursion: of what is nested in whatever way, a
//! message within a message stays one file. So neither depth nor encoding multiplies anything, and what stands in the
//! middle of a line is no delimiter (RFC 2046 5.1.1). Header blocks are read by mail-parser, and what comes out is its
//! [`Message`]. RFC 8621 4.1.4 says which parts are the text, but for pictures, sounds and films, which are always files.
//! Text to read is converted to UTF-8; a file keeps its bytes: only its transfer encoding is taken off.

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
use self::decode::TransferEncoding;
use crate::message::HEADER_BYTES_MAX;

/// Parts that are taken apart; what is behind the last of them stays in the raw message.
pub const PARTS_MAX: usize = 2_000;
/// Multiparts within each other.
const DEPTH_MAX: usize = 50;
/// Lines of header, of the message and of its parts together.
const HEADER_LINES_MAX: usize = 50_000;

/// A multipart whose parts are being read.
struct OpenMultipart {
    id: u32,
    boundary: Vec<u8>,
    parts: Vec<u32>,
}

/// A line that stands between parts.
struct BoundaryDelimiter {
    /// Where the part before it ends: the line break before it is its own.
    part_end: usize,
    /// Where what follows begins.
    next: usize,
    /// Of which open multipart it is, the outermost being the first.
    of: usize,
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

/// Takes a message apart; none when it has no header at all.
#[must_use]
pub fn parse<'x>(parser: &MessageParser, raw: &'x [u8]) -> Option<Message<'x>> {
    let mut walk = MimeParser {
        parser,
        raw,
        parts: Vec::new(),
        open: Vec::new(),
        bodies: BodyStructure::default(),
        header_lines: 0,
    };
    let mut at = Some(0);
    while let Some(start) = at.filter(|_| walk.has_room()) {
        at = walk.parse_part(start)?;
    }
    let end = raw.len();
    walk.close_down_to(0, end);
    let MimeParser { mut parts, bodies, .. } = walk;
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

    /// Reads the part that begins here. Where the next one begins, if there is one; none of it all when the message has no
    /// header.
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
                self.next_part_start(&BoundaryDelimiter { of: self.open.len() - 1, ..first })
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

    /// The fields of a header block, with their places in the message. The parser's time for a parameter that is cut into
    /// pieces (RFC 2231 3) grows with the square of the block's length.
    fn parse_headers(&self, block: &'x [u8], start: usize) -> Vec<Header<'x>> {
        let block = block.get(..block.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
        let read = self.parser.parse_headers(block);
        let mut headers = read.and_then(|mut read| read.parts.pop()).map(|part| part.headers).unwrap_or_default();
        for header in &mut headers {
            for place in [&mut header.offset_field, &mut header.offset_start, &mut header.offset_end] {
                *place = place.saturating_add(to_u32(start));
            }
        }
        headers
    }

    /// The boundary of a part that is a multipart, as long as there are not too many within each other.
    fn boundary_of(&self, part: &MessagePart<'_>) -> Option<Vec<u8>> {
        let kind = part.content_type().filter(|kind| kind.ctype().eq_ignore_ascii_case("multipart"))?;
        let boundary = kind.attribute("boundary").filter(|boundary| !boundary.is_empty())?;
        (self.open.len() < DEPTH_MAX).then(|| boundary.as_bytes().to_vec())
    }

    /// What follows a delimiter: the next part's place, if there is a next one.
    fn next_part_start(&mut self, found: &BoundaryDelimiter) -> Option<usize> {
        self.close_down_to(found.of + 1, found.part_end);
        if !found.closes {
            return Some(found.next);
        }
        self.close_down_to(found.of, found.next);
        let boundaries: Vec<&[u8]> = self.open.iter().map(|open| open.boundary.as_slice()).collect();
        let next = find_delimiter(self.raw, found.next, &boundaries)?;
        // What stands between is nobody's (RFC 2046 5.1.1). Each round closes one at least.
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

    /// Decodes a leaf: text to read into UTF-8, a file into the bytes that were attached, whatever its type says.
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
            // The parser knows no name for it. Who writes parts anew finds nothing to replace in its digits.
            TransferEncoding::Identity | TransferEncoding::Uuencode => Encoding::None,
        };
        let kind = part.content_type();
        let (main, sub) = kind.map_or(("text", "plain"), |kind| match kind.subtype() {
            Some(sub) => (kind.ctype(), sub),
            // RFC 2045 5.2: what cannot be read is plain text.
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

/// Bytes as text, in a character set or, if that is not known, in UTF-8.
fn decode_text<'x>(charset: &str, bytes: Cow<'x, [u8]>) -> Cow<'x, str> {
    // Windows' name for its own form of Shift_JIS.
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

/// The lines before the first empty one (RFC 5322 2.1); a line of blanks is no empty one.
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

/// How long the empty line is with which this begins; 0 when there is none.
fn empty_line_length(tail: &[u8]) -> usize {
    match tail {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    }
}

/// The first line from here on that is a delimiter of one of these boundaries.
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
            if let Some((of, closes)) = match_delimiter(line, boundaries) {
                let before = raw.get(..at).unwrap_or_default();
                let broken = before.strip_suffix(b"\n").map_or(before, |line| line.strip_suffix(b"\r").unwrap_or(line));
                return Some(BoundaryDelimiter { part_end: broken.len(), next: at + length, of, closes });
            }
        }
        // At the next line that may be one.
        let tail = raw.get(at..)?;
        at += memmem::find(tail, b"\n--")? + 1;
    }
}

/// Of which boundary a line is that began with two hyphens, the innermost first; and whether it is the last one.
fn match_delimiter<B: AsRef<[u8]>>(line: &[u8], boundaries: &[B]) -> Option<(usize, bool)> {
    let is_blank = |rest: &[u8]| rest.iter().all(u8::is_ascii_whitespace);
    boundaries.iter().enumerate().rev().find_map(|(of, boundary)| {
        let rest = line.strip_prefix(boundary.as_ref())?;
        if is_blank(rest) {
            return Some((of, false));
        }
        rest.strip_prefix(b"--").filter(|rest| is_blank(rest)).map(|_| (of, true))
    })
}

#[cfg(test)]
mod tests;
