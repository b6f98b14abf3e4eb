//! Template markup: the supported subset of Handlebars, and the bounds that make parsing safe.
//!
//! ```text
//! source ─► scan (tags, depth, unsupported syntax) ─► pieces ─► handlebars' grammar ─► VariableUsage (names, blocks)
//! ```
//!
//! Supported: `{{a.b}}` (escaped in HTML), `{{{a.b}}}` and `{{&a.b}}` (raw), `{{#if}}`, `{{#unless}}`, `{{#each}}`,
//! `{{#with}}`, each with `{{else}}` and `{{else if x}}`, `@index`, `@key`, `@first`, `@last`, `@root`, `../`,
//! `as |item|`, comments, `~`, and `\{{` for two braces.
//!
//! Rejected with an error and its position: partials, decorators, raw blocks, subexpressions, helpers. So tags compute
//! nothing: every output is a given value, and only paths are looked up.
//!
//! The scan precedes the grammar, which is recursive. It handles strings, comments and escapes as the grammar does, so
//! the depth that it counts is the depth of the recursion. It also cuts the source into pieces, between blocks and
//! within words: the grammar counts all characters before every tag, which would take seconds for a large template.

use std::ops::Range;

use handlebars::Template as Parsed;
use thiserror::Error;

/// Maximum number of tags in one part of a template.
pub const TAGS_MAX: usize = 2_000;
/// Minimum size of a piece, in bytes.
const PIECE_BYTES: usize = 2 << 10;
/// Maximum sum over all pieces of tags times bytes, the cost of the grammar's counting. A block is never cut: a hundred
/// tags in a block of 512 KB are accepted, as are six hundred in one of 100 KB.
const COUNTING_MAX: usize = 64 << 20;
/// Maximum nesting of blocks; every `{{else if}}` counts as one more.
pub const DEPTH_MAX: usize = 24;

/// A syntax error in a part of a template, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct MarkupError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    pub message: String,
}

impl MarkupError {
    /// Creates an error at a byte offset of a source.
    pub fn at_byte(source: &str, byte: usize, message: impl Into<String>) -> Self {
        let before = source.get(..byte).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A tag of a part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkupTag {
    /// Byte offsets in the source, with the braces.
    pub range: Range<usize>,
    pub kind: MarkupTagKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkupTagKind {
    /// `{{name}}`
    Value,
    /// `{{! … }}`
    Comment,
    /// `{{#if name}}`
    Open,
    /// `{{else}}`, `{{^}}`
    Else,
    /// `{{/if}}`
    Close,
}

/// Finds the tags of one part of a template, in their order.
pub fn find_tags(source: &str) -> Result<Vec<MarkupTag>, MarkupError> {
    let mut scan = MarkupScanner::new(source);
    scan.scan()?;
    Ok(scan.found)
}

/// A parsed piece of one part of a template.
#[derive(Debug)]
pub(crate) struct MarkupPiece {
    pub(crate) parsed: Parsed,
    /// Position of its start.
    line: usize,
    column: usize,
}

impl MarkupPiece {
    /// Creates an error at a line and column of the piece.
    pub(crate) fn error(&self, position: (usize, usize), message: String) -> MarkupError {
        shifted_error((self.line, self.column), position, message)
    }
}

fn shifted_error(begin: (usize, usize), (line, column): (usize, usize), message: String) -> MarkupError {
    let column = if line == 1 { begin.1 + column - 1 } else { column };
    MarkupError { line: begin.0 + line - 1, column, message }
}

/// Parses one part of a template into pieces.
pub(crate) fn parse(source: &str) -> Result<Vec<MarkupPiece>, MarkupError> {
    let mut scan = MarkupScanner::new(source);
    scan.scan()?;
    let ends = scan.cuts.iter().skip(1).copied().chain([source.len()]);
    let mut begin = (1, 1);
    let mut pieces = Vec::with_capacity(scan.cuts.len());
    for (start, end) in scan.cuts.iter().zip(ends) {
        let text = source.get(*start..end).unwrap_or_default();
        let parsed = compile(text, begin)?;
        pieces.push(MarkupPiece { parsed, line: begin.0, column: begin.1 });
        begin = match text.rsplit_once('\n') {
            Some((before, last)) => (begin.0 + before.matches('\n').count() + 1, last.chars().count() + 1),
            None => (begin.0, begin.1 + text.chars().count()),
        };
    }
    Ok(pieces)
}

fn compile(text: &str, begin: (usize, usize)) -> Result<Parsed, MarkupError> {
    Parsed::compile(text).map_err(|error| {
        // The grammar's own messages name its internal rules, which do not help the template's author.
        let message = match error.reason() {
            handlebars::TemplateErrorReason::MismatchingClosedHelper(opened, closed) => {
                format!("`{{{{#{opened}}}}}` is closed by `{{{{/{closed}}}}}`")
            }
            _ => "this tag cannot be read, or its block is not closed".to_owned(),
        };
        shifted_error(begin, error.pos().unwrap_or((1, 1)), message)
    })
}

struct MarkupScanner<'a> {
    source: &'a str,
    tags: usize,
    depth: usize,
    /// Nesting depth outside each open block.
    open: Vec<usize>,
    /// Start offsets of the pieces.
    cuts: Vec<usize>,
    /// Number of tags before the current piece, and their counting cost.
    counted: (usize, usize),
    found: Vec<MarkupTag>,
    /// Offset of the last `--}}`; behind it no comment is searched for its end.
    last_comment_end: Option<usize>,
}

impl<'a> MarkupScanner<'a> {
    fn new(source: &'a str) -> Self {
        let (found, last_comment_end) = (Vec::new(), source.rfind("--}}"));
        Self { source, tags: 0, depth: 0, open: Vec::new(), cuts: vec![0], counted: (0, 0), found, last_comment_end }
    }

    fn scan(&mut self) -> Result<(), MarkupError> {
        let mut at = 0;
        while let Some(found) = self.rest(at).find("{{") {
            let start = at + found;
            let slashes = self.rest(at).as_bytes()[..found].iter().rev().take_while(|b| **b == b'\\').count();
            if slashes == 1 {
                at = start + if self.rest(start).starts_with("{{{{") { 4 } else { 2 };
                continue;
            }
            if self.open.is_empty() {
                self.cut_piece(at, start);
            }
            self.tags += 1;
            if self.tags > TAGS_MAX {
                return Err(self.refusal(start, format!("has more than {TAGS_MAX} tags")));
            }
            if self.cost(start) > COUNTING_MAX {
                return Err(self.refusal(start, "the block is too large for so many tags: split it"));
            }
            let kind;
            (at, kind) = self.scan_tag(start)?;
            self.found.push(MarkupTag { range: start..at, kind });
        }
        match self.open.is_empty() {
            true => Ok(()),
            false => Err(self.refusal(self.source.len(), "a block is not closed: `{{/…}}` is missing")),
        }
    }

    /// Counting cost up to an offset.
    fn cost(&self, at: usize) -> usize {
        let begin = self.cuts.last().copied().unwrap_or_default();
        let (tags, cost) = self.counted;
        cost.saturating_add((self.tags - tags).saturating_mul(at - begin))
    }

    /// Starts a new piece in the text before the next tag, if the current one is large enough. The cut is within a
    /// word: the removal of standalone tag lines, and `~`, never look across it.
    fn cut_piece(&mut self, from: usize, next: usize) {
        if next - self.cuts.last().copied().unwrap_or_default() < PIECE_BYTES {
            return;
        }
        let in_word = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'{' | b'}' | b'\\');
        let text = self.source.as_bytes().get(from..next).unwrap_or_default();
        if let Some(at) = text.windows(2).rposition(|two| two.iter().all(in_word)) {
            self.counted = (self.tags, self.cost(from + at + 1));
            self.cuts.push(from + at + 1);
        }
    }

    fn rest(&self, at: usize) -> &str {
        self.source.get(at..).unwrap_or_default()
    }

    fn refusal(&self, at: usize, message: impl Into<String>) -> MarkupError {
        MarkupError::at_byte(self.source, at, message)
    }

    /// Scans one tag and returns the offset after it, and its kind.
    fn scan_tag(&mut self, start: usize) -> Result<(usize, MarkupTagKind), MarkupError> {
        if self.rest(start).starts_with("{{{{") {
            return Err(self.refusal(start, "raw blocks (`{{{{`) are not supported"));
        }
        let inner = start + 2;
        if let Some(comment) = self.rest(inner).strip_prefix('!') {
            let opening = inner + 1 + (comment.len() - comment.trim_start().len());
            if self.rest(opening).starts_with("--")
                && self.last_comment_end.is_some_and(|last| opening + 2 <= last)
                && let Some(end) = self.rest(opening + 2).find("--}}")
            {
                return Ok((opening + 2 + end + 4, MarkupTagKind::Comment));
            }
            let end = self.rest(inner).find("}}").map(|n| (inner + n + 2, MarkupTagKind::Comment));
            return end.ok_or_else(|| self.refusal(start, "the comment is not closed"));
        }
        let content = self.rest(inner).trim_start_matches(|c: char| c == '~' || c.is_ascii_whitespace());
        let content_at = self.source.len() - content.len();
        let triple = content.starts_with('{');
        let end = self.tag_end(start, content_at + usize::from(triple), triple)?;
        let kind = self.open_tag(start, content_at)?;
        Ok((end, kind))
    }

    /// Offset after the tag whose content begins at `at`.
    fn tag_end(&self, start: usize, mut at: usize, triple: bool) -> Result<usize, MarkupError> {
        let bytes = self.source.as_bytes();
        let byte = |at: usize| bytes.get(at).copied();
        while let Some(found) = byte(at) {
            at += match found {
                b'}' if byte(at + 1) == Some(b'}') => {
                    let braces = if triple && byte(at + 2) == Some(b'}') { 3 } else { 2 };
                    return Ok(at + braces);
                }
                quote @ (b'"' | b'\'') => self.string_length(start, at, quote)?,
                b'[' => {
                    // After a dot it is a name, `user.[first name]`; elsewhere a list.
                    if !matches!(byte(at.wrapping_sub(1)), Some(b'.' | b'/')) {
                        return Err(self.refusal(start, "lists are not supported in a tag"));
                    }
                    let close = self.rest(at).find(']');
                    close.ok_or_else(|| self.refusal(start, "`[` is not closed"))? + 1
                }
                b'(' => {
                    return Err(self.refusal(start, "subexpressions, `(…)`, are not supported"));
                }
                b'{' => return Err(self.refusal(start, "there is a `{` in the tag: is it closed?")),
                _ => 1,
            };
        }
        Err(self.refusal(start, "the tag is not closed: `}}` is missing"))
    }

    /// Length of the string that begins at `at`.
    fn string_length(&self, start: usize, at: usize, quote: u8) -> Result<usize, MarkupError> {
        let mut escaped = false;
        for (n, byte) in self.rest(at).bytes().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                byte if byte == quote => return Ok(n + 1),
                _ => {}
            }
        }
        Err(self.refusal(start, "a string in the tag is not closed"))
    }

    /// Updates the depth and rejects unsupported tags.
    fn open_tag(&mut self, start: usize, content_at: usize) -> Result<MarkupTagKind, MarkupError> {
        let content = self.rest(content_at);
        let name_follows = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_-$:".contains(c));
        let (deeper, kind) = match content.chars().next() {
            Some('>') => return Err(self.refusal(start, "partials (`{{>`) are not supported")),
            Some('*') => return Err(self.refusal(start, "decorators (`{{*`) are not supported")),
            Some('#') => {
                match content.get(1..).unwrap_or_default().trim_start().chars().next() {
                    Some('>' | '*') => {
                        return Err(self.refusal(start, "partials and decorators are not supported"));
                    }
                    _ => self.open.push(self.depth),
                }
                (true, MarkupTagKind::Open)
            }
            Some('/') => {
                match self.open.pop() {
                    Some(depth) => self.depth = depth,
                    None => return Err(self.refusal(start, "closes a block that was not opened")),
                }
                (false, MarkupTagKind::Close)
            }
            Some('^') => (true, MarkupTagKind::Else),
            _ => match content.strip_prefix("else") {
                Some(rest) if name_follows(rest) => {
                    return Err(self.refusal(start, "a variable's name cannot begin with `else`"));
                }
                // `{{else if x}}` nests a block.
                Some(rest) => {
                    (!rest.trim_start_matches(['~', ' ', '\t', '\r', '\n']).starts_with('}'), MarkupTagKind::Else)
                }
                None => (false, MarkupTagKind::Value),
            },
        };
        self.depth += usize::from(deeper);
        if self.depth > DEPTH_MAX {
            return Err(self.refusal(start, format!("blocks are more than {DEPTH_MAX} deep")));
        }
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_markup_is_accepted() {
        for source in [
            "",
            "plain } text { with } braces }}",
            "{{a}} {{{a}}} {{&a}} {{ a.b.c }} {{~a~}} {{{~a~}}} {{~{a}~}} {{ {a} }}",
            "{{#if a}}x{{else if b}}y{{else}}z{{/if}} {{#if a}}{{^}}{{/if}}",
            "{{#each a as |item index|}}{{item}}{{index}}{{@index}}{{this}}{{else}}none{{/each}}",
            "{{#with user}}{{name}} {{../x}} {{@root.y}}{{/with}}",
            "{{! a comment {{#if }} {{!-- another {{#if a}} }} --}} \\{{not a tag}} {{user.[first name]}}",
            "{{#if \"a }} string\"}}x{{/if}} {{#unless a}}b{{/unless}} {{#if n includeZero=true}}{{/if}}",
        ] {
            assert!(parse(source).is_ok(), "{source}: {:?}", parse(source));
        }
    }

    #[test]
    fn markup_errors_have_a_position() {
        for (source, line, column) in [
            ("Hi {{name", 1, 4),
            ("a\nb {{#if x}}c", 2, 13),
            ("\u{e4}\u{f6} {{> header}}", 1, 4),
            ("{{#if x}}\n{{/each}}", 2, 1),
            ("x\r\n  {{/if}}", 2, 3),
            ("{{*inline}}", 1, 1),
            ("{{#> layout}}{{/layout}}", 1, 1),
            ("{{{{raw}}}} {{{{/raw}}}}", 1, 1),
            ("{{upper (lower a)}}", 1, 1),
            ("{{a [1]}}", 1, 1),
            ("{{#if {\"a\": 1}}}{{/if}}", 1, 1),
            ("{{a \"x}}", 1, 1),
            ("{{a {{b}}", 1, 1),
            ("{{elsewhere}}", 1, 1),
            ("{{!-- never", 1, 1),
            ("{{}}", 1, 3),
        ] {
            let error = parse(source).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{source}: {error}");
        }
    }

    #[test]
    fn tags_are_found_with_their_kinds() {
        let source = "a {{x}} {{{y}}}{{#if \"}}\"}} \\{{no}} {{~else if z~}}{{^}}{{!-- {{c}} --}}{{/if}}";
        let found = find_tags(source).unwrap();
        let texts: Vec<_> = found.iter().map(|tag| (&source[tag.range.clone()], tag.kind)).collect();
        let expected = [
            ("{{x}}", MarkupTagKind::Value),
            ("{{{y}}}", MarkupTagKind::Value),
            ("{{#if \"}}\"}}", MarkupTagKind::Open),
            ("{{~else if z~}}", MarkupTagKind::Else),
            ("{{^}}", MarkupTagKind::Else),
            ("{{!-- {{c}} --}}", MarkupTagKind::Comment),
            ("{{/if}}", MarkupTagKind::Close),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let nested = |n: usize| "{{#if a}}".repeat(n) + &"{{/if}}".repeat(n);
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        assert!(parse(&nested(DEPTH_MAX + 1)).is_err());
        assert!(parse(&nested(100_000)).is_err());
        let chain = |n: usize| format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if b}}".repeat(n));
        assert!(parse(&chain(DEPTH_MAX - 1)).is_ok());
        assert!(parse(&chain(DEPTH_MAX)).is_err());
        // A closing tag hidden from the scan would let the grammar recurse deeper than counted.
        for hidden in ["{{!-- {{/if}} --}}", "\\{{/if}}", "{{#if \"{{/if}}\"}}{{/if}}", "{{! {{/if}}"] {
            assert!(parse(&format!("{{{{#if a}}}}{hidden}").repeat(DEPTH_MAX + 1)).is_err(), "{hidden}");
        }
        assert!(parse(&"{{a}}".repeat(TAGS_MAX)).is_ok());
        assert!(parse(&"{{a}}".repeat(TAGS_MAX + 1)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_checked_without_a_panic(source in "([{}#/~!&>*^@\\\\\"'.\\[\\]| a-c\n-]|\\{\\{|\\}\\}|else|if|each|this|\\{\\{#if a\\}\\}|\\{\\{/if\\}\\}){0,40}") {
            if let Ok(pieces) = parse(&source) {
                pieces.iter().for_each(|piece| drop(super::super::usage::VariableUsage::collect(piece)));
            }
        }
    }

    #[test]
    fn pieces_and_errors_have_positions() {
        let paragraph = "<p>words and words</p>\n  {{#if a}}\n  {{x}}\n  {{/if}}\n{{~y~}} \\{{z}} \u{e4}\n";
        let source = paragraph.repeat(200);
        let pieces = parse(&source).unwrap();
        assert!(pieces.len() > 5);
        let position = |n: usize| (pieces[n].line, pieces[n].column);
        assert_eq!((position(0), position(1).0 > 20), ((1, 1), true));
        let broken = parse(&format!("{source}\n\u{e4}\u{f6} {{{{/if}}}}")).unwrap_err();
        assert_eq!((broken.line, broken.column), (source.matches('\n').count() + 2, 4));
        let broken = parse(&format!("{source}\n\u{e4}\u{f6} {{{{a.}}}}")).unwrap_err();
        assert_eq!(broken.line, source.matches('\n').count() + 2, "{broken}");
    }

    #[test]
    fn counting_is_bounded() {
        let filler = "some words ".repeat(90);
        let tags = format!("{{{{a}}}}{filler}").repeat(500);
        assert!(parse(&tags).is_ok());
        assert!(parse(&format!("{{{{#if a}}}}{tags}{{{{/if}}}}")).unwrap_err().message.contains("too large"));
    }
}
