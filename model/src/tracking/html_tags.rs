//! Scanner for the tags of an HTML document; it changes nothing.
//!
//! ```text
//! text ─► < ─► tag (name, attributes, quotes) | comment | script, style … to their end tag
//! ```
//!
//! This is a scanner and no parser: it finds the start and end of tags as browsers do, so that a link in a comment
//! (including conditional ones for Outlook), a script or a style sheet is ignored. It only moves forward, and reads
//! each byte a bounded number of times. Malformed HTML never stops it; an unfinished construct at the end is left
//! unchanged.
//!
//! Standard: WHATWG HTML 13.2.5 (tokenization), as far as needed to find tags.

use std::ops::Range;

use memchr::{memchr, memmem};

/// The kinds of tags that the scanner returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    /// `<a …>` or `<area …>`.
    Link,
    /// `</body>`.
    BodyEnd,
    /// `</html>`.
    HtmlEnd,
}

/// A tag and the offset of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HtmlTag {
    pub(super) kind: TagKind,
    pub(super) start: usize,
}

/// An attribute: the ranges of its name and of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HtmlAttribute {
    pub(super) name: Range<usize>,
    /// Without quotes; empty if the attribute has no value.
    pub(super) value: Range<usize>,
}

/// Elements whose content is text up to their end tag.
const TEXT_ELEMENTS: [&[u8]; 9] =
    [b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes", b"plaintext"];
/// Maximum number of attributes that are stored per link.
const ATTRIBUTES_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct TagScanner<'a> {
    html: &'a [u8],
    at: usize,
    /// Start of the first construct without an end.
    unfinished: Option<usize>,
    /// Attributes of the last link.
    attributes: Vec<HtmlAttribute>,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

impl<'a> TagScanner<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self { html: html.as_bytes(), at: 0, unfinished: None, attributes: Vec::new() }
    }

    /// The attributes of the last link, in order.
    pub(super) fn attributes(&self) -> &[HtmlAttribute] {
        &self.attributes
    }

    /// After the scan: the end of the document's last complete construct.
    pub(super) fn end(&self) -> usize {
        self.unfinished.unwrap_or(self.html.len())
    }

    /// The next tag of one of the kinds.
    pub(super) fn next(&mut self) -> Option<HtmlTag> {
        while let Some(start) = self.find(b'<', self.at) {
            let tag = match (self.byte(start + 1), self.byte(start + 2)) {
                (Some(b'!'), _) => self.scan_declaration(start),
                (Some(b'?'), _) => self.past(b'>', start + 2).map(|end| (end, None)),
                (Some(b'/'), Some(b'>')) => Some((start + 3, None)),
                (Some(b'/'), Some(initial)) if initial.is_ascii_alphabetic() => self.scan_tag(start, start + 2),
                (Some(b'/'), None) => None,
                (Some(b'/'), Some(_)) => self.past(b'>', start + 2).map(|end| (end, None)),
                (Some(initial), _) if initial.is_ascii_alphabetic() => self.scan_tag(start, start + 1),
                // A lone `<` is text.
                _ => Some((start + 1, None)),
            };
            let Some((end, kind)) = tag else {
                self.unfinished.get_or_insert(start);
                self.at = self.html.len();
                return None;
            };
            self.at = end;
            if let Some(kind) = kind {
                return Some(HtmlTag { kind, start });
            }
        }
        None
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.html.get(at).copied()
    }

    fn rest(&self, from: usize) -> &'a [u8] {
        self.html.get(from..).unwrap_or_default()
    }

    fn find(&self, byte: u8, from: usize) -> Option<usize> {
        memchr(byte, self.rest(from)).map(|n| from + n)
    }

    fn past(&self, byte: u8, from: usize) -> Option<usize> {
        self.find(byte, from).map(|at| at + 1)
    }

    /// Scans a comment, a DOCTYPE, or a construct that browsers treat as a comment (`<![if …]>`, CDATA).
    fn scan_declaration(&self, start: usize) -> Option<(usize, Option<TagKind>)> {
        let inside = start + 4;
        let end = if !self.rest(start).starts_with(b"<!--") {
            self.past(b'>', start + 2)
        } else if self.rest(inside).starts_with(b">") {
            Some(inside + 1)
        } else if self.rest(inside).starts_with(b"->") {
            Some(inside + 2)
        } else {
            self.comment_end(inside)
        };
        end.map(|end| (end, None))
    }

    fn comment_end(&self, inside: usize) -> Option<usize> {
        let mut from = inside;
        while let Some(dashes) = memmem::find(self.rest(from), b"--").map(|n| from + n) {
            match (self.byte(dashes + 2), self.byte(dashes + 3)) {
                (Some(b'>'), _) => return Some(dashes + 3),
                (Some(b'!'), Some(b'>')) => return Some(dashes + 4),
                _ => from = dashes + 1,
            }
        }
        None
    }

    /// Scans a tag from its name on. Returns its end, or the end of the text for elements that hold only text.
    fn scan_tag(&mut self, start: usize, name_at: usize) -> Option<(usize, Option<TagKind>)> {
        let name_end = self.word_end(name_at, |byte| is_space(byte) || matches!(byte, b'/' | b'>'))?;
        let name = self.html.get(name_at..name_end).unwrap_or_default();
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        let closing = name_at == start + 2;
        let kind = match closing {
            false if is(b"a") || is(b"area") => Some(TagKind::Link),
            true if is(b"body") => Some(TagKind::BodyEnd),
            true if is(b"html") => Some(TagKind::HtmlEnd),
            _ => None,
        };
        if kind == Some(TagKind::Link) {
            self.attributes.clear();
        }
        let end = self.attributes_end(name_end, kind == Some(TagKind::Link))?;
        let holds_text = !closing && TEXT_ELEMENTS.iter().any(|word| is(word));
        if holds_text {
            return self.text_end(end, name).map(|end| (end, None));
        }
        Some((end, kind))
    }

    fn word_end(&self, from: usize, ends: impl Fn(u8) -> bool) -> Option<usize> {
        self.rest(from).iter().position(|byte| ends(*byte)).map(|n| from + n)
    }

    /// End of the tag whose attributes begin at `from`.
    fn attributes_end(&mut self, from: usize, keep: bool) -> Option<usize> {
        let mut at = from;
        loop {
            at = self.word_end(at, |byte| !is_space(byte) && byte != b'/')?;
            if self.byte(at) == Some(b'>') {
                return Some(at + 1);
            }
            // A leading `=` belongs to the name.
            let name_end = self.word_end(at + 1, |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'='))?;
            let name = at..name_end;
            at = self.word_end(name_end, |byte| !is_space(byte))?;
            let mut value = name_end..name_end;
            if self.byte(at) == Some(b'=') {
                at = self.word_end(at + 1, |byte| !is_space(byte))?;
                (value, at) = match self.byte(at) {
                    Some(quote @ (b'"' | b'\'')) => {
                        let end = self.find(quote, at + 1)?;
                        (at + 1..end, end + 1)
                    }
                    _ => {
                        let end = self.word_end(at, |byte| is_space(byte) || byte == b'>')?;
                        (at..end, end)
                    }
                };
            }
            if keep && self.attributes.len() < ATTRIBUTES_MAX {
                self.attributes.push(HtmlAttribute { name, value });
            }
        }
    }

    /// Start of the end tag of an element that holds only text.
    fn text_end(&self, from: usize, name: &[u8]) -> Option<usize> {
        if name.eq_ignore_ascii_case(b"plaintext") {
            return None;
        }
        let mut at = from;
        while let Some(open) = memmem::find(self.rest(at), b"</").map(|n| at + n) {
            let after = self.rest(open + 2);
            let (word, rest) = after.split_at_checked(name.len())?;
            let ends = rest.first().is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'));
            if word.eq_ignore_ascii_case(name) && ends {
                return Some(open);
            }
            at = open + 2;
        }
        None
    }
}
