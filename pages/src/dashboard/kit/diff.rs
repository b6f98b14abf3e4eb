//! Differences of two texts: by lines for versions, by characters for values that must be equal.

use std::borrow::Cow;
use std::time::Duration;

use hypertext::{Buffer, prelude::*};
use similar::{ChangeTag, DiffOp, TextDiff};

/// The most time that a comparison takes; beyond it the difference is coarser.
const TIMEOUT: Duration = Duration::from_millis(50);
/// Unchanged lines that are shown around a change.
const CONTEXT: usize = 3;
/// Below this similarity, common characters are chance, and only what both begin and end with is common.
const SIMILAR: f32 = 0.7;

/// The value that was found against the right one: of a DNS record, for example.
#[derive(Debug, Clone, Copy)]
pub struct CharDiff<'a> {
    pub found: &'a str,
    pub right: &'a str,
}

/// A piece of a text, and whether the other text lacks it.
type DiffPiece<'a> = (bool, &'a str);

impl<'a> CharDiff<'a> {
    fn pieces(&self) -> (Vec<DiffPiece<'a>>, Vec<DiffPiece<'a>>) {
        let diff = TextDiff::configure().timeout(TIMEOUT).diff_chars(self.found, self.right);
        if diff.ratio() < SIMILAR {
            let (prefix, suffix) = common_ends(self.found, self.right);
            return (split_ends(self.found, prefix, suffix), split_ends(self.right, prefix, suffix));
        }
        let (mut found, mut right) = (TextCut::new(self.found), TextCut::new(self.right));
        for change in diff.iter_all_changes() {
            let bytes = change.value().len();
            match change.tag() {
                ChangeTag::Equal => {
                    found.take(bytes, false);
                    right.take(bytes, false);
                }
                ChangeTag::Delete => found.take(bytes, true),
                ChangeTag::Insert => right.take(bytes, true),
            }
        }
        (found.pieces, right.pieces)
    }

    /// Says where the texts differ first.
    fn sentence(&self) -> String {
        let same = self.found.chars().zip(self.right.chars()).take_while(|(found, right)| found == right).count();
        let (found, right) = (self.found.chars().nth(same), self.right.chars().nth(same));
        let at = same + 1;
        match (found, right) {
            (None, None) => "They are identical.".into(),
            (None, Some(_)) => {
                format!("The end is missing: {} must follow after character {same}.", characters(self.right, same))
            }
            (Some(_), None) => {
                format!("There is too much: remove {} after character {same}.", characters(self.found, same))
            }
            (Some(found), Some(right)) => {
                format!("They differ from character {at} on: found {}, expected {}.", name(found), name(right))
            }
        }
    }
}

/// The number of characters after the first ones, in words.
fn characters(text: &str, first: usize) -> String {
    match text.chars().count() - first {
        1 => "1 character".into(),
        count => format!("{count} characters"),
    }
}

/// A character, so that it cannot be taken for another.
fn name(one: char) -> String {
    match one {
        ' ' => "a space".into(),
        '\t' => "a tab".into(),
        '\n' => "a line end".into(),
        '!'..='~' => format!("“{one}”"),
        _ if one.is_control() => format!("U+{:04X}", u32::from(one)),
        _ => format!("“{one}” (U+{:04X})", u32::from(one)),
    }
}

/// The bytes that both texts begin with and end with.
fn common_ends(a: &str, b: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let prefix: usize = a.chars().zip(b.chars()).take_while(same).map(|(a, _)| a.len_utf8()).sum();
    let (a, b) = (a.get(prefix..).unwrap_or_default(), b.get(prefix..).unwrap_or_default());
    let suffix = a.chars().rev().zip(b.chars().rev()).take_while(same).map(|(a, _)| a.len_utf8()).sum();
    (prefix, suffix)
}

fn split_ends(text: &str, prefix: usize, suffix: usize) -> Vec<DiffPiece<'_>> {
    let mut cut = TextCut::new(text);
    cut.take(prefix, false);
    cut.take(text.len() - prefix - suffix, true);
    cut.take(suffix, false);
    cut.pieces
}

/// Cuts a text into pieces from its start.
struct TextCut<'a> {
    text: &'a str,
    /// Start of the last piece, and end of what was taken.
    start: usize,
    end: usize,
    pieces: Vec<DiffPiece<'a>>,
}

impl<'a> TextCut<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, start: 0, end: 0, pieces: Vec::new() }
    }

    /// Takes the next bytes; they join the last piece if they are of its kind.
    fn take(&mut self, bytes: usize, differs: bool) {
        if bytes == 0 {
            return;
        }
        if self.pieces.last().is_some_and(|(last, _)| *last == differs) {
            self.pieces.pop();
        } else {
            self.start = self.end;
        }
        self.end += bytes;
        self.pieces.push((differs, self.text.get(self.start..self.end).unwrap_or_default()));
    }
}

impl Renderable for CharDiff<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (found, right) = self.pieces();
        maud! {
            div.char-diff {
                dl {
                    div {
                        dt { "Found" }
                        dd { code { @for (differs, text) in &found { @if *differs { del { (text) } } @else { (text) } } } }
                    }
                    div {
                        dt { "Right" }
                        dd { code { @for (differs, text) in &right { @if *differs { ins { (text) } } @else { (text) } } } }
                    }
                }
                p.help { (self.sentence()) }
            }
        }
        .render_to(buffer);
    }
}

/// Two versions of a text, line by line. Unchanged lines far from a change are left out.
#[derive(Debug, Clone, Copy)]
pub struct LineDiff<'a> {
    /// Describes the difference to screen readers.
    pub caption: &'a str,
    pub before: &'a str,
    pub after: &'a str,
}

/// A missing line end at the end of a text is no difference.
fn with_line_end(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') { text.into() } else { format!("{text}\n").into() }
}

impl Renderable for LineDiff<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (before, after) = (with_line_end(self.before), with_line_end(self.after));
        let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(before.as_ref(), after.as_ref());
        let groups = diff.grouped_ops(CONTEXT);
        if groups.is_empty() {
            maud! { p.soft { "There are no differences." } }.render_to(buffer);
            return;
        }
        maud! {
            div.line-diff tabindex="0" role="group" aria-label=(self.caption) {
                table {
                    caption.hidden { (self.caption) }
                    thead.hidden { tr { th scope="col" { "Before" } th scope="col" { "After" } th scope="col" { "Line" } } }
                    @for (n, group) in groups.iter().enumerate() {
                        tbody {
                            @if n > 0 { tr.gap { td colspan="3" { "…" } } }
                            @for op in group { (LineChanges { diff: &diff, op }) }
                        }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}

/// The lines of one operation of a difference.
struct LineChanges<'d, 'a> {
    diff: &'d TextDiff<'a, 'a, str>,
    op: &'d DiffOp,
}

impl Renderable for LineChanges<'_, '_> {
    fn render_to(&self, buffer: &mut Buffer) {
        for change in self.diff.iter_inline_changes(self.op) {
            let (class, mark) = match change.tag() {
                ChangeTag::Equal => ("", " "),
                ChangeTag::Delete => ("removed", "−"),
                ChangeTag::Insert => ("added", "+"),
            };
            let is_removed = change.tag() == ChangeTag::Delete;
            let line = |index: Option<usize>| index.map(|index| index + 1);
            maud! {
                tr class=(class) {
                    td.line { @if let Some(line) = line(change.old_index()) { (line) } }
                    td.line { @if let Some(line) = line(change.new_index()) { (line) } }
                    td {
                        span.mark-of-line { (mark) }
                        @for (differs, text) in change.values() {
                            @let text = text.trim_end_matches(['\r', '\n']);
                            @if !*differs { (text) } @else if is_removed { del { (text) } } @else { ins { (text) } }
                        }
                    }
                }
            }
            .render_to(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn characters_that_differ_are_marked() {
        let html = render(CharDiff {
            found: "v=spf1 include:spf.exmple.com -all",
            right: "v=spf1 include:spf.example.com ~all",
        });
        assert!(html.contains("spf.ex<ins>a</ins>mple.com <ins>~</ins>all"), "{html}");
        assert!(html.contains("<del>-</del>all"), "{html}");
        assert!(html.contains("from character 22 on: found “m”, expected “a”"), "{html}");
    }

    #[test]
    fn texts_without_much_in_common_share_their_ends_only() {
        let diff = CharDiff { found: "v=DKIM1; p=AAAABBBBCCCCDDDD", right: "v=DKIM1; p=xyzuvwxyzuvwxyzuvwx" };
        let (found, right) = diff.pieces();
        assert_eq!(found, [(false, "v=DKIM1; p="), (true, "AAAABBBBCCCCDDDD")]);
        assert_eq!(right, [(false, "v=DKIM1; p="), (true, "xyzuvwxyzuvwxyzuvwx")]);
    }

    #[test]
    fn lookalikes_and_ends_are_named() {
        let sentence = |found, right| CharDiff { found, right }.sentence();
        assert_eq!(sentence("rp.а", "rp.a"), "They differ from character 4 on: found “а” (U+0430), expected “a”.");
        assert_eq!(sentence("ab", "abc"), "The end is missing: 1 character must follow after character 2.");
        assert_eq!(sentence("abc ", "abc"), "There is too much: remove 1 character after character 3.");
    }

    #[test]
    fn lines_are_compared() {
        let before: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 10\n", "line ten <b>\n");
        let html = render(LineDiff { caption: "Versions", before: &before, after: &after });
        assert!(html.contains("class=\"removed\"") && html.contains("class=\"added\"") && html.contains("&lt;b&gt;"));
        assert!(!html.contains("line 2\n") && !html.contains("line 20"), "{html}");
        let same = render(LineDiff { caption: "Versions", before: &before, after: &before });
        assert!(same.contains("no difference"));
        let longer = render(LineDiff { caption: "Versions", before: "a", after: "a\nb" });
        assert!(!longer.contains("removed"), "{longer}");
    }
}
