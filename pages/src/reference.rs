//! The API reference.

pub mod error_page;
pub mod languages;
pub mod llms;
pub mod operation;
pub mod operation_index;
pub mod resource_page;
pub mod schema;
pub mod start_page;
pub mod webhook_page;
pub mod words;

use hypertext::Renderable as _;

use self::languages::LANGUAGES;
use self::operation::ApiTable;
use crate::asset::Asset;
use crate::block::{DocPage, Section};
use crate::display_text::display_text;
use crate::document::{Document, DocumentSet, Freshness};
use crate::layout::{DocNavigation, HtmlPage, LanguageChoice};
use crate::markdown::markdown_page;

/// The path of the first page; all others, except [`LLMS_PATH`], are below it.
pub const PATH: &str = "/docs";
/// The list of pages for language models (llmstxt.org).
pub const LLMS_PATH: &str = "/llms.txt";
/// The page for paths below `/docs` that have none.
pub const NOT_FOUND_PATH: &str = "/docs/404";

const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// All pages of the reference.
#[derive(Debug)]
pub struct Reference {
    pub pages: Vec<DocPage>,
    navigation: Vec<DocNavigation>,
}

impl Reference {
    /// Writes the pages for an API at a base URL.
    #[must_use]
    pub fn new(base_url: &str) -> Self {
        let table = ApiTable::load();
        let base_url = display_text(base_url.trim_end_matches('/')).into_owned();
        let mut pages = vec![
            start_page::page(table, &base_url),
            error_page::page(table, &base_url),
            webhook_page::page(table),
            operation_index::page(table),
        ];
        let mut navigation = vec![group("Get started", &pages)];
        for (title, resources) in words::groups(table) {
            let of_group: Vec<DocPage> =
                resources.iter().map(|resource| resource_page::page(table, resource)).collect();
            navigation.push(group(title, &of_group));
            pages.extend(of_group);
        }
        Self { pages, navigation }
    }

    /// Renders all documents with the paths under which they are served.
    #[must_use]
    pub fn render(&self, base_url: &str) -> DocumentSet {
        let prefix = path_prefix(base_url);
        let (style, script) = (Asset::style(), Asset::script());
        let (style_path, script_path) = (asset_path(&style), asset_path(&script));
        let languages = LANGUAGES.each_ref().map(|one| LanguageChoice { key: one.key, label: one.label });
        let html = |page: &DocPage, path: &str, markdown_path: Option<&str>| {
            let frame = HtmlPage {
                page,
                path,
                markdown_path,
                prefix: &prefix,
                base_url,
                navigation: &self.navigation,
                languages: &languages,
                style_path: &style_path,
                script_path: &script_path,
            };
            Document::new(HTML, frame.render().into_inner(), Freshness::Revalidated)
        };
        let mut documents = DocumentSet::default();
        for page in &self.pages {
            let (path, markdown_path) = (page_path(&page.slug), markdown_path(&page.slug));
            documents.insert(path.clone(), html(page, &path, Some(&markdown_path)));
            documents.insert(markdown_path, Document::new(MARKDOWN, markdown_page(page), Freshness::Revalidated));
        }
        documents.insert(NOT_FOUND_PATH.into(), html(&not_found_page(), NOT_FOUND_PATH, None));
        documents.insert(LLMS_PATH.into(), Document::new(TEXT, llms::text(self, base_url), Freshness::Revalidated));
        for (path, asset) in [(style_path, style), (script_path, script)] {
            documents.insert(path, Document::new(asset.media_type, asset.content, Freshness::Immutable));
        }
        documents
    }

    /// The groups of the navigation with their pages.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &DocPage>)> {
        self.navigation.iter().map(|group| {
            let pages = group
                .pages
                .iter()
                .filter_map(|(path, _)| self.pages.iter().find(|page| page_path(&page.slug) == *path));
            (group.title, pages)
        })
    }
}

/// The path of a page.
#[must_use]
pub fn page_path(slug: &str) -> String {
    if slug.is_empty() { PATH.to_owned() } else { format!("{PATH}/{slug}") }
}

/// The path of a page as Markdown.
#[must_use]
pub fn markdown_path(slug: &str) -> String {
    let slug = if slug.is_empty() { "index" } else { slug };
    format!("{PATH}/{slug}.md")
}

fn asset_path(asset: &Asset) -> String {
    format!("{PATH}/assets/{}", asset.name)
}

/// The path of a base URL, which precedes all paths: `/mail` of `https://example.com/mail`.
fn path_prefix(base_url: &str) -> String {
    let after_scheme = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("", |start| &after_scheme[start..]);
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    display_text(path).into_owned()
}

fn group(title: &'static str, pages: &[DocPage]) -> DocNavigation {
    DocNavigation { title, pages: pages.iter().map(|page| (page_path(&page.slug), page.title.clone())).collect() }
}

fn not_found_page() -> DocPage {
    DocPage {
        slug: "404".into(),
        title: "No such page".into(),
        lead: "The reference has no page at this address. [All operations](/docs/operations) lists everything.".into(),
        sections: Vec::new(),
    }
}

/// A section without code.
fn text_section(id: &str, title: &str, prose: Vec<crate::block::Block>) -> Section {
    Section { id: id.into(), title: title.into(), short_title: None, prose, aside: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_base_url_precedes_paths() {
        for (url, prefix) in [
            ("https://mail.example.com", ""),
            ("https://example.com/mail/", "/mail"),
            ("http://127.0.0.1:8025/a/b?c", "/a/b"),
            ("", ""),
        ] {
            assert_eq!(path_prefix(url), prefix, "{url}");
        }
    }
}
