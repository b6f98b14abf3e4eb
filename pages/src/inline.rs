//! Text with inline code, emphasis and links: `` `code` ``, `**strong**`, `[text](/path)`.
//!
//! The same text is valid Markdown. A link leads to a path, to an anchor or to https; other targets stay text, so a
//! description cannot carry a `javascript:` link.

use hypertext::{Buffer, prelude::*};

use crate::display_text::display_text;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline<'a> {
    Text(&'a str),
    Code(&'a str),
    Strong(&'a str),
    /// Its text may have inline code.
    Link {
        text: &'a str,
        target: &'a str,
    },
}

/// Splits a text into its parts. Marks without an end are text.
pub fn parse_inline(text: &str) -> Vec<Inline<'_>> {
    let (mut parts, mut plain_start, mut position) = (Vec::new(), 0, 0);
    while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
        if let Some((part, length)) = parse_mark(rest) {
            if plain_start < position {
                parts.push(Inline::Text(&text[plain_start..position]));
            }
            parts.push(part);
            position += length;
            plain_start = position;
        } else {
            position += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    if plain_start < text.len() {
        parts.push(Inline::Text(&text[plain_start..]));
    }
    parts
}

/// A mark at the start of a text, with the length of all of it.
fn parse_mark(text: &str) -> Option<(Inline<'_>, usize)> {
    if let Some(rest) = text.strip_prefix("``") {
        // Code that contains a backtick (CommonMark 6.1).
        let (code, _) = rest.split_once("``").filter(|(code, _)| !code.is_empty())?;
        return Some((Inline::Code(code.trim_matches(' ')), code.len() + 4));
    }
    if let Some(rest) = text.strip_prefix('`') {
        let (code, _) = rest.split_once('`').filter(|(code, _)| !code.is_empty())?;
        return Some((Inline::Code(code), code.len() + 2));
    }
    if let Some(rest) = text.strip_prefix("**") {
        let (strong, _) = rest.split_once("**").filter(|(strong, _)| !strong.is_empty())?;
        return Some((Inline::Strong(strong), strong.len() + 4));
    }
    let (label, after) = text.strip_prefix('[')?.split_once("](")?;
    let (target, _) = after.split_once(')')?;
    let is_link = !label.is_empty() && !label.contains(['[', ']', '\n']) && is_safe_target(target);
    is_link.then_some((Inline::Link { text: label, target }, label.len() + target.len() + 4))
}

fn is_safe_target(target: &str) -> bool {
    let is_path = target.starts_with('/') && !target.starts_with("//");
    (is_path || target.starts_with('#') || target.starts_with("https://")) && !target.contains(char::is_whitespace)
}

/// The text without its marks.
pub fn plain_text(text: &str) -> String {
    let plain = |part| match part {
        Inline::Text(text) | Inline::Code(text) => text.to_owned(),
        Inline::Strong(text) | Inline::Link { text, .. } => plain_text(text),
    };
    parse_inline(text).into_iter().map(plain).collect()
}

/// Renders a text with its marks. `prefix` precedes paths.
#[derive(Debug, Clone, Copy)]
pub struct RichText<'a> {
    pub text: &'a str,
    pub prefix: &'a str,
}

impl Renderable for RichText<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        for part in parse_inline(self.text) {
            match part {
                Inline::Text(text) => display_text(text).render_to(buffer),
                Inline::Code(code) => maud! { code { (display_text(code)) } }.render_to(buffer),
                Inline::Strong(strong) => maud! { strong { (display_text(strong)) } }.render_to(buffer),
                Inline::Link { text, target } => {
                    let prefix = if target.starts_with('/') { self.prefix } else { "" };
                    let label = RichText { text, prefix: self.prefix };
                    maud! { a href={ (prefix) (target) } { (label) } }.render_to(buffer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_and_the_rest_is_text() {
        assert_eq!(
            parse_inline("a `b` **c** [d `e`](#f) `g"),
            [
                Inline::Text("a "),
                Inline::Code("b"),
                Inline::Text(" "),
                Inline::Strong("c"),
                Inline::Text(" "),
                Inline::Link { text: "d `e`", target: "#f" },
                Inline::Text(" `g"),
            ]
        );
        assert_eq!(parse_inline("`` a`b ``é"), [Inline::Code("a`b"), Inline::Text("é")]);
    }

    #[test]
    fn marks_are_removed() {
        assert_eq!(plain_text("a `b` **c `d`** [e `f`](#g)"), "a b c d e f");
    }

    #[test]
    fn hostile_text_is_escaped() {
        let html = |text: &str| RichText { text, prefix: "/p" }.render().into_inner();
        assert_eq!(html("<script>&`<b>`"), "&lt;script&gt;&amp;<code>&lt;b&gt;</code>");
        for target in ["javascript:alert(1)", "//evil.example", "data:text/html,x", "/a b"] {
            assert!(!html(&format!("[x]({target})")).contains("<a"), "{target}");
        }
        assert!(!html("[x](/a\"onclick=\"b)").contains("\"onclick"));
        assert_eq!(html("[x](/docs)"), "<a href=\"/p/docs\">x</a>");
    }
}
