//! A whole page: `head` and `body`.

use hypertext::{Buffer, prelude::*};

use crate::display_text::display_text;
use crate::fragment::{raw, render};

/// An empty icon: without one, browsers ask for `/favicon.ico`.
const NO_ICON: &str = "data:,";

/// The style sheet of a page.
#[derive(Debug, Clone, Copy)]
pub enum PageStyle<'a> {
    /// The address of a file.
    File(&'a str),
    /// The style sheet itself, which the policy allows by its hash. It must not contain `</style`.
    Inline(&'a str),
}

/// The part of `head` that every page has. A page writes its own links after it.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub title: &'a str,
    pub style: PageStyle<'a>,
    /// The address of the icon, if the policy allows one.
    pub icon: Option<&'a str>,
    /// Search engines may show the page.
    pub is_indexed: bool,
}

impl Renderable for Head<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            @if !self.is_indexed { meta name="robots" content="noindex"; }
            title { (self.title) }
            @if let Some(icon) = self.icon { link rel="icon" href=(icon); }
            @match self.style {
                PageStyle::File(path) => { link rel="stylesheet" href=(path); }
                PageStyle::Inline(sheet) => { style { (raw(sheet)) } }
            }
        }
        .render_to(buffer);
    }
}

/// A page without scripts that search engines do not show.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a, B> {
    pub title: &'a str,
    pub style: PageStyle<'a>,
    /// The class of `body`.
    pub class: &'a str,
    pub body: B,
}

impl<B: Renderable> Document<'_, B> {
    /// Renders the page. Characters that make a text look like another one are replaced.
    pub fn render(&self) -> RenderedPage {
        // The policy of a page that is one file allows no images, and browsers ask for no icon then.
        let icon = matches!(self.style, PageStyle::File(_)).then_some(NO_ICON);
        let head = Head { title: self.title, style: self.style, icon, is_indexed: false };
        let html = render(maud! {
            !DOCTYPE
            html lang="en" {
                head { (head) }
                body class=(self.class) { (self.body) }
            }
        });
        RenderedPage(display_text(&html).into_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPage(String);

impl RenderedPage {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_ask_for_no_icon() {
        let page = |style| Document { title: "T", style, class: "x", body: "" }.render().into_string();
        assert!(page(PageStyle::File("style.css")).contains(r#"<link rel="icon" href="data:,">"#));
        assert!(!page(PageStyle::Inline("p { color: red; }")).contains("rel=\"icon\""));
    }

    #[test]
    fn deceptive_characters_are_replaced_everywhere() {
        let name = "moc.\u{202e}evil</title>\u{0}";
        let body = maud! { p title=(name) { (name) } };
        let page =
            Document { title: name, style: PageStyle::Inline("p > b { color: red; }"), class: "x", body }.render();
        let text = page.as_str();
        assert_eq!(text.matches("moc.\u{fffd}evil&lt;/title&gt;\u{fffd}").count(), 3, "{text}");
        assert!(text.contains("<style>p > b { color: red; }</style>") && text.contains("<body class=\"x\">"), "{text}");
    }
}
