//! The tags of an HTML document, found without changing a byte of it.
//!
//! ```text
//! text ─► < ─► tag (name, attributes, quotes) | comment | script, style … to their end tag
//! ```
//!
//! A scanner, no parser: it knows where a tag begins and ends as browsers do, so that what looks like a
//! link in a comment (conditional ones for Outlook too), a script or a style sheet is none. It goes
//! forward only, each byte is looked at a bounded number of times, and there is no markup so broken
//! that it stops: what is unfinished at the end is left as it stands.
//!
//! Standard: WHATWG HTML 13.2.5 (tokenization), as far as it tells tags from everything else.

use std::ops::Range;

use memchr::{memchr, memmem};

/// What a tag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    /// `<a …>` or `<area …>`.
    Link,
    /// `</body>`.
    BodyEnd,
    /// `</html>`.
    HtmlEnd,
}

/// A tag of one of the kinds, by where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HtmlTag {
    pub(super) kind: TagKind,
    pub(super) start: usize,
}

/// An attribute, by where its name and the inside of its value stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HtmlAttribute {
    pub(super) name: Range<usize>,
    /// Without quotes; empty when there is none.
    pub(super) value: Range<usize>,
}

/// Elements whose content is text up to their end tag.
const TEXT_ELEMENTS: [&[u8]; 9] =
    [b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes", b"plaintext"];
/// More attributes than any link has; the rest is not looked at.
const ATTRIBUTES_MAX: usize = 64;

/// Goes through the tags of a document.
#[derive(Debug)]
pub(super) struct TagScanner<'a> {
    html: &'a [u8],
    at: usize,
    /// Where the first construct begins that has no end.
    unfinished: Option<usize>,
    /// Of the last link.
    attributes: Vec<HtmlAttribute>,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

impl<'a> TagScanner<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self { html: html.as_bytes(), at: 0, unfinished: None, attributes: Vec::new() }
    }

    /// The attributes of the link that was found last, in their order.
    pub(super) fn attributes(&self) -> &[HtmlAttribute] {
        &self.attributes
    }

    /// When all tags were gone through: where the document's last whole construct ends.
    pub(super) fn end(&self) -> usize {
        self.unfinished.unwrap_or(self.html.len())
    }

    /// The next tag of one of the kinds.
    pub(super) fn next(&mut self) -> Option<HtmlTag> {
        while let Some(start) = self.find(b'<', self.at) {
            let begun = match (self.byte(start + 1), self.byte(start + 2)) {
                (Some(b'!'), _) => self.scan_declaration(start),
                (Some(b'?'), _) => self.past(b'>', start + 2).map(|end| (end, None)),
                (Some(b'/'), Some(b'>')) => Some((start + 3, None)),
                (Some(b'/'), Some(letter)) if letter.is_ascii_alphabetic() => self.scan_tag(start, start + 2),
                (Some(b'/'), None) => None,
                (Some(b'/'), Some(_)) => self.past(b'>', start + 2).map(|end| (end, None)),
                (Some(letter), _) if letter.is_ascii_alphabetic() => self.scan_tag(start, start + 1),
                // A lone `<` is text.
                _ => Some((start + 1, None)),
            };
            let Some((end, kind)) = begun else {
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

    /// A comment, a DOCTYPE, or what browsers take for a comment (`<![if …]>`, CDATA).
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

    /// A tag from its name on; where it ends, and with it its element when that holds text only.
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

    /// Where the tag ends whose attributes begin here.
    fn attributes_end(&mut self, from: usize, keep: bool) -> Option<usize> {
        let mut at = from;
        loop {
            at = self.word_end(at, |byte| !is_space(byte) && byte != b'/')?;
            if self.byte(at) == Some(b'>') {
                return Some(at + 1);
            }
            // An `=` that comes first belongs to the name.
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

    /// Where the end tag begins of an element that holds text only.
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
