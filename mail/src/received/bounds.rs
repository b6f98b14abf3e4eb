//! How much of a message is taken apart.
//!
//! What a parser builds grows with lines of headers and with parts, not with bytes: 25 MB of `a:` lines
//! would become half a gigabyte. So a message is read up to the first of these bounds, in one walk over
//! its lines, and what is behind it is in the raw message only. A nested message in base 64, which RFC 2046
//! 5.2.1 forbids, is read as a file, so that nothing is taken apart that was not walked over.

use std::borrow::Cow;

use memchr::memchr;

/// Lines that are read. 25 MB of base 64 have fewer than half as many.
pub const LINES_MAX: usize = 1_000_000;
/// Lines that may be a boundary between parts.
pub const PARTS_MAX: usize = 2_000;
/// Lines of header, of the message and of its parts together.
const HEADER_LINES_MAX: usize = 50_000;
/// One block of header lines, in bytes: the parser's time for a parameter cut into pieces (RFC 2231 3) grows
/// with the square of it.
pub const HEADER_BYTES_MAX: usize = 256 << 10;
/// Messages within messages.
const NESTED_MAX: usize = 50;
/// Boundaries that are told apart; with more, every line that begins with two hyphens may be one.
const BOUNDARIES_MAX: usize = 64;

const MESSAGE: &[u8] = b"message/";
const BOUNDARY: &[u8] = b"boundary";
/// A type that no parser looks into.
const HIDDEN: &[u8] = b"hidden--";

/// The part of a message that is taken apart.
#[must_use]
pub fn prefix(message: &[u8]) -> Cow<'_, [u8]> {
    let mut walk = Walk { in_header: true, ..Walk::default() };
    let mut at = 0;
    while let Some(rest) = message.get(at..).filter(|rest| !rest.is_empty()) {
        let length = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = rest.get(..length).unwrap_or_default();
        if !walk.takes(line, at) {
            break;
        }
        at += length;
    }
    walk.end_of_header();
    let read = message.get(..at).unwrap_or_default();
    if walk.hidden.is_empty() {
        return Cow::Borrowed(read);
    }
    let mut masked = read.to_vec();
    for place in walk.hidden {
        if let Some(word) = masked.get_mut(place..place + HIDDEN.len()) {
            word.copy_from_slice(HIDDEN);
        }
    }
    Cow::Owned(masked)
}

/// A type as it was, before it was hidden.
pub(super) fn unhidden(content_type: &str) -> String {
    match content_type.strip_prefix("hidden--") {
        Some(subtype) => format!("message/{subtype}"),
        None => content_type.to_owned(),
    }
}

#[derive(Default)]
struct Walk {
    in_header: bool,
    lines: usize,
    parts: usize,
    nested: usize,
    header_lines: usize,
    header_bytes: usize,
    /// Where `message/` stands in the header block under way.
    message_types: Vec<usize>,
    is_encoded: bool,
    hidden: Vec<usize>,
    /// What header fields say that lines between parts begin with.
    boundaries: Vec<Vec<u8>>,
    /// A field said it in a way that we do not read: any line with two hyphens may be a boundary.
    any_boundary: bool,
}

impl Walk {
    /// Takes the next line; false when it is one too many.
    fn takes(&mut self, line: &[u8], at: usize) -> bool {
        self.lines += 1;
        if self.is_boundary(line) {
            self.parts += 1;
            self.end_of_header();
            self.in_header = true;
        } else if self.in_header {
            if line.trim_ascii().is_empty() {
                // The header of a message within follows that of its part.
                let is_message = !self.message_types.is_empty() && !self.is_encoded;
                self.nested += usize::from(is_message);
                self.end_of_header();
                self.in_header = is_message;
            } else {
                self.header_line(line, at);
            }
        }
        self.lines <= LINES_MAX
            && self.parts <= PARTS_MAX
            && self.nested <= NESTED_MAX
            && self.header_lines <= HEADER_LINES_MAX
            && self.header_bytes <= HEADER_BYTES_MAX
    }

    /// Whether a parser may take a line for one between parts. Signatures, logs and comments begin with two
    /// hyphens too.
    fn is_boundary(&self, line: &[u8]) -> bool {
        let Some(rest) = line.strip_prefix(b"--") else { return false };
        self.any_boundary || self.boundaries.iter().any(|boundary| rest.starts_with(boundary))
    }

    /// Notes the boundaries that a line of header names (RFC 2046 5.1.1).
    fn note_boundaries(&mut self, line: &[u8]) {
        let mut from = 0;
        while let Some(found) = find(line, from, BOUNDARY) {
            from = found + BOUNDARY.len();
            match boundary_after(line.get(from..).unwrap_or_default()) {
                Some(boundary) if self.boundaries.len() < BOUNDARIES_MAX => {
                    if !self.boundaries.contains(&boundary) {
                        self.boundaries.push(boundary);
                    }
                }
                _ => self.any_boundary = true,
            }
        }
    }

    fn header_line(&mut self, line: &[u8], at: usize) {
        self.header_lines += 1;
        self.header_bytes += line.len();
        self.note_boundaries(line);
        // Wherever it stands: folded, in a comment, in another field. One too many is hidden, none too few.
        let mut from = 0;
        while let Some(found) = find(line, from, MESSAGE) {
            self.message_types.push(at + found);
            from = found + MESSAGE.len();
        }
        self.is_encoded |= find(line, 0, b"base64").is_some() || find(line, 0, b"quoted").is_some();
    }

    fn end_of_header(&mut self) {
        if self.is_encoded {
            self.hidden.append(&mut self.message_types);
        }
        self.message_types.clear();
        (self.header_bytes, self.is_encoded) = (0, false);
    }
}

/// The value that stands behind the word `boundary`; none when it is not plainly there (folded, in pieces, with
/// a comment or an escape).
fn boundary_after(rest: &[u8]) -> Option<Vec<u8>> {
    let value = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
    let boundary = match value.strip_prefix(b"\"") {
        Some(quoted) => quoted.get(..memchr(b'"', quoted)?)?,
        None => value.split(|byte| byte.is_ascii_whitespace() || matches!(byte, b';' | b'(')).next()?,
    };
    let plain = !boundary.is_empty() && !boundary.contains(&b'\\');
    plain.then(|| boundary.trim_ascii_end().to_vec())
}

fn find(line: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    let rest = line.get(from..)?;
    rest.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word)).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_messages_are_read_whole() {
        let text =
            b"From: a@b\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nhi\r\n--x--\r\n";
        assert_eq!(prefix(text).as_ref(), text);
        assert!(matches!(prefix(text), Cow::Borrowed(_)));
        assert_eq!(prefix(b"").as_ref(), b"");
        let indented = format!("A: b\r\n\r\n{}", " indented text\r\n".repeat(100_000));
        assert_eq!(prefix(indented.as_bytes()).len(), indented.len());
    }

    #[test]
    fn hyphens_are_no_boundaries() {
        let log = "-- a comment\r\n".repeat(100_000);
        let text =
            format!("Content-Type: multipart/mixed; boundary=\"b1\"\r\n\r\n--b1\r\n\r\n{log}\r\n--b1--\r\n");
        assert_eq!(prefix(text.as_bytes()).len(), text.len());
        let signed = format!("A: b\r\n\r\n--\r\n{}", "x".repeat(2 * HEADER_BYTES_MAX));
        assert_eq!(prefix(signed.as_bytes()).len(), signed.len());
    }

    #[test]
    fn bombs_are_cut() {
        for named in ["boundary=x", "boundary=\"x\"", "boundary*0=x", "boundary (c) = x", "boundary=\r\n x"] {
            let parts = format!("Content-Type: a/b; {named}\r\n\r\n{}", "--x\r\n\r\n".repeat(100_000));
            assert!(prefix(parts.as_bytes()).len() < 10 * PARTS_MAX, "{named}");
        }
        let header = "a:\r\n".repeat(1_000_000);
        assert!(prefix(header.as_bytes()).len() <= HEADER_BYTES_MAX + 4);
        let pieces = format!("A: b; boundary=x\r\n\r\n--x\r\nC: d;\r\n{}", " n*0=a;\r\n".repeat(1_000_000));
        assert!(prefix(pieces.as_bytes()).len() <= HEADER_BYTES_MAX + 100);
        let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
        assert!(prefix(nested.as_bytes()).len() < 100 * NESTED_MAX);
        let lines = format!("A: b\r\n\r\n{}", "\n".repeat(3_000_000));
        assert!(prefix(lines.as_bytes()).len() <= LINES_MAX + 10);
    }

    #[test]
    fn encoded_messages_within_are_hidden() {
        let text = b"Content-Type: Message/rfc822\r\nContent-Transfer-Encoding: BASE64\r\n\r\nYTpi\r\n";
        let read = prefix(text);
        assert_eq!(read.len(), text.len());
        assert!(!read.to_ascii_lowercase().windows(MESSAGE.len()).any(|window| window == MESSAGE));
        assert_eq!(unhidden("hidden--rfc822"), "message/rfc822");
    }
}
