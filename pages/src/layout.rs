//! The frame of a page: head, navigation, languages of the examples.

use html::document::{Head, PageStyle};
use hypertext::{Buffer, prelude::*};

use crate::block::DocPage;
use crate::display_text::display_text;
use crate::html::html_section;
use crate::inline::{RichText, plain_text};
use crate::reference::languages::LANGUAGES;

pub(crate) const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%234f46e5'/%3E%3Cpath d='M7 11h18v11H7zm0 0l9 7 9-7' fill='none' stroke='white' stroke-width='2'/%3E%3C/svg%3E";

pub const SEARCH_PATH: &str = "/docs/search";

/// A group of the navigation.
#[derive(Debug, Clone)]
pub struct DocNavigation {
    pub title: &'static str,
    /// Path and title of the pages.
    pub pages: Vec<(String, String)>,
}

/// The part of the documentation that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocPart {
    Reference,
    Guides,
}

impl DocPart {
    const fn name(self) -> &'static str {
        match self {
            Self::Reference => "API reference",
            Self::Guides => "Guides",
        }
    }

    const fn title_end(self) -> &'static str {
        match self {
            Self::Reference => "postrider API",
            Self::Guides => "postrider",
        }
    }
}

/// The paths and the base URL that all pages of a server share.
#[derive(Debug)]
pub struct DocFrame {
    /// The path that precedes all paths, if the server is published below one.
    pub prefix: String,
    pub base_url: String,
    pub style_path: String,
    pub script_path: String,
}

/// A page in its frame.
#[derive(Debug, Clone, Copy)]
pub struct HtmlPage<'a> {
    pub frame: &'a DocFrame,
    pub page: &'a DocPage,
    pub part: DocPart,
    /// The path of the page, without the prefix.
    pub path: &'a str,
    /// The path of the same page as Markdown.
    pub markdown_path: Option<&'a str>,
    pub navigation: &'a [DocNavigation],
    /// The words in the search field.
    pub search_words: &'a str,
}

impl Renderable for HtmlPage<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let Self { page, frame, .. } = *self;
        let prefix = frame.prefix.as_str();
        let title = format!("{} · {}", plain_text(&page.title), self.part.title_end());
        let description = plain_text(&page.lead);
        let style = format!("{prefix}{}", frame.style_path);
        maud! {
            !DOCTYPE
            html lang="en" {
                head {
                    (Head { title: &title, style: PageStyle::File(&style), icon: Some(ICON), is_indexed: self.markdown_path.is_some() })
                    meta name="description" content=(description);
                    @if let Some(path) = self.markdown_path {
                        link rel="alternate" type="text/markdown" href={ (prefix) (path) };
                    }
                }
                body data-page=(page.slug) {
                    a.skip href="#content" { "Skip to content" }
                    header.top {
                        input #menu type="checkbox" aria-label="Show the navigation";
                        a.brand href={ (prefix) "/docs" } { span.mark aria-hidden="true" {} "postrider" span.brand-part { (self.part.name()) } }
                        span.base { span.hidden { "Base URL: " } code { (display_text(&frame.base_url)) } }
                        label.menu for="menu" aria-hidden="true" { "Menu" }
                    }
                    (html_navigation(*self))
                    main #content tabindex="-1" {
                        @if has_examples(page) { (html_languages(frame)) }
                        div.title {
                            h1 { (RichText { text: &page.title, prefix }) }
                            p.lead { (RichText { text: &page.lead, prefix }) }
                            @if let Some(path) = self.markdown_path {
                                p.formats { a href={ (prefix) (path) } { "This page as Markdown" } }
                            }
                        }
                        @for section in &page.sections { (html_section(section, prefix)) }
                    }
                    @if !has_examples(page) { script src={ (prefix) (frame.script_path) } {} }
                }
            }
        }
        .render_to(buffer);
    }
}

fn has_examples(page: &DocPage) -> bool {
    use crate::block::Block;
    page.sections.iter().any(|section| section.aside.iter().any(|block| matches!(block, Block::Examples { .. })))
}

/// All pages, and the sections of the current one.
fn html_navigation(whole: HtmlPage<'_>) -> impl Renderable {
    let HtmlPage { page, path: current, navigation, .. } = whole;
    let prefix = whole.frame.prefix.as_str();
    maud! {
        nav aria-label=(whole.part.name()) {
            form.search role="search" action={ (prefix) (SEARCH_PATH) } {
                label.hidden for="search" { "Search guides and API reference" }
                input #search type="search" name="q" maxlength="200" placeholder="Search" value=(whole.search_words);
            }
            @for group in navigation {
                p.group { (group.title) }
                ul {
                    @for (path, title) in &group.pages {
                        li {
                            a href={ (prefix) (path) } aria-current=[(path == current).then_some("page")] { (title) }
                            @if path == current && page.sections.len() > 1 {
                                ul.sections {
                                    @for section in page.sections.iter().filter(|one| !one.title.is_empty()) {
                                        li { a href={ "#" (section.id) } {
                                            (section.short_title.as_deref().unwrap_or(&section.title))
                                        } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The choice of a language. The style sheet shows the examples of the checked one, so it needs no script. The script
/// follows at once: it restores the last choice before the examples are laid out.
fn html_languages(frame: &DocFrame) -> impl Renderable {
    maud! {
        fieldset.languages {
            legend.hidden { "Language of the examples" }
            @for (position, language) in LANGUAGES.iter().enumerate() {
                input id={ "language-" (language.key) } type="radio" name="language" value=(language.key)
                    checked[position == 0];
                label for={ "language-" (language.key) } { (language.label) }
            }
        }
        script src={ (frame.prefix) (frame.script_path) } {}
    }
}
