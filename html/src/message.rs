//! A page that is one card and one file: for people who follow a link of an email. It loads nothing.

use std::sync::LazyLock;

use hypertext::{Buffer, prelude::*};

use crate::document::{Document, PageStyle, RenderedPage};
use crate::policy;
use crate::style::{self, BASE, CONTROLS, MESSAGE};

static STYLE: LazyLock<String> = LazyLock::new(|| style::join(&[BASE, CONTROLS, MESSAGE]));

/// The Content-Security-Policy of these pages: their style sheet, and forms of the same origin.
pub fn content_security_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| policy::self_contained(&STYLE));
    &POLICY
}

/// A page with a heading and a few sentences or a form.
#[derive(Debug, Clone, Copy)]
pub struct MessagePage<'a, C> {
    pub title: &'a str,
    /// The page is of this server itself, not of one of its customers.
    pub is_branded: bool,
    pub content: C,
}

impl<C: Renderable> MessagePage<'_, C> {
    pub fn render(&self) -> RenderedPage {
        let body = maud! {
            main.card {
                @if self.is_branded { p.brand { span.mark aria-hidden="true" {} "postrider" } }
                h1 { (self.title) }
                (self.content)
            }
        };
        Document { title: self.title, style: PageStyle::Inline(&STYLE), class: "message", body }.render()
    }
}

/// One sentence.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'a>(pub &'a str);

impl Renderable for Sentence<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! { p { (self.0) } }.render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page and its style sheet fit in the first round trip of a connection (RFC 6928: ten segments).
    const BYTES_MAX: usize = 10 << 10;

    #[test]
    fn a_page_is_small_and_has_no_inline_code() {
        let page = MessagePage { title: "A <b>", is_branded: true, content: Sentence("x") }.render();
        let text = page.as_str();
        assert!(text.contains("<h1>A &lt;b&gt;</h1>") && text.contains("<p>x</p>"), "{text}");
        assert!(!text.contains("<script") && !text.contains("style=") && !text.contains("href="), "{text}");
        assert!(text.len() < BYTES_MAX, "{} bytes", text.len());
        assert!(content_security_policy().contains("style-src 'sha256-"));
    }
}
