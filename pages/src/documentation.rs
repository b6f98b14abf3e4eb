//! All pages below `/docs`: the API reference and the guides, and the search over both.

use hypertext::Renderable as _;

use crate::asset::Asset;
use crate::block::{Block, DocPage, Section};
use crate::display_text::display_text;
use crate::document::{Document, DocumentSet, Freshness};
use crate::guides::Guides;
use crate::layout::{DocFrame, DocNavigation, DocPart, HtmlPage, SEARCH_PATH};
use crate::markdown::markdown_page;
use crate::reference::{LLMS_PATH, NOT_FOUND_PATH, PATH, Reference, llms, markdown_path, not_found_page, page_path};
use crate::search::{SearchIndex, SearchResult};

const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Rendered pages, and what a page of search results needs.
#[derive(Debug)]
pub struct Documentation {
    documents: DocumentSet,
    index: SearchIndex,
    frame: DocFrame,
    navigation: Vec<DocNavigation>,
}

impl Documentation {
    /// Renders all documents for an API at a base URL.
    pub fn new(base_url: &str) -> Self {
        let (reference, guides) = (Reference::new(base_url), Guides::new());
        let frame = DocFrame {
            prefix: path_prefix(base_url),
            base_url: base_url.to_owned(),
            style_path: asset_path(&Asset::style()),
            script_path: asset_path(&Asset::script()),
        };
        let render =
            |page: &DocPage, part: DocPart, path: &str, markdown_path: Option<&str>, navigation: &[DocNavigation]| {
                let whole = HtmlPage { frame: &frame, page, part, path, markdown_path, navigation, search_words: "" };
                whole.render().into_inner()
            };
        let navigation = guides.navigation();
        let mut documents = DocumentSet::default();
        let of_reference = reference.pages.iter().map(|page| (page, DocPart::Reference, reference.navigation()));
        let of_guides = guides.pages().map(|page| (page, DocPart::Guides, navigation.as_slice()));
        for (page, part, navigation) in of_reference.chain(of_guides) {
            let (path, markdown_path) = (page_path(&page.slug), markdown_path(&page.slug));
            let html = render(page, part, &path, Some(markdown_path.as_str()), navigation);
            documents.insert(path, Document::new(HTML, html, Freshness::Revalidated));
            documents.insert(markdown_path, Document::new(MARKDOWN, markdown_page(page), Freshness::Revalidated));
        }
        let not_found = render(&not_found_page(), DocPart::Reference, NOT_FOUND_PATH, None, reference.navigation());
        documents.insert(NOT_FOUND_PATH.into(), Document::new(HTML, not_found, Freshness::Revalidated));
        let llms = llms::text(&reference, &guides, base_url);
        documents.insert(LLMS_PATH.into(), Document::new(TEXT, llms, Freshness::Revalidated));
        for asset in [Asset::style(), Asset::script()] {
            let path = asset_path(&asset);
            documents.insert(path, Document::new(asset.media_type, asset.content, Freshness::Immutable));
        }
        let index = SearchIndex::new(guides.pages().skip(1).chain(&reference.pages));
        Self { documents, index, frame, navigation }
    }

    pub fn documents(&self) -> &DocumentSet {
        &self.documents
    }

    /// The page with the sections that contain all words.
    pub fn search(&self, words: &str) -> Document {
        let results = self.index.find(words);
        let page = results_page(&results, words.trim().is_empty());
        let whole = HtmlPage {
            frame: &self.frame,
            page: &page,
            part: DocPart::Guides,
            path: SEARCH_PATH,
            markdown_path: None,
            navigation: &self.navigation,
            search_words: words,
        };
        Document::new(HTML, whole.render().into_inner(), Freshness::Revalidated)
    }
}

/// The words themselves are shown in the field only, where they cannot be markup.
fn results_page(results: &[SearchResult<'_>], is_empty: bool) -> DocPage {
    let lead = match results.len() {
        _ if is_empty => "Type words into the field above the list of pages.".to_owned(),
        0 => "No section contains all of these words. [All guides](/docs/guides) and [all \
             operations](/docs/operations) list everything."
            .to_owned(),
        1 => "1 section contains all of these words.".to_owned(),
        count => format!("{count} sections contain all of these words, best matches first."),
    };
    let entry = |result: &SearchResult<'_>| format!("[{}]({}): {}", result.title, result.path, result.excerpt);
    let section = Section {
        id: "results".into(),
        title: String::new(),
        short_title: None,
        prose: vec![Block::List(results.iter().map(entry).collect())],
        aside: Vec::new(),
    };
    let sections = if results.is_empty() { Vec::new() } else { vec![section] };
    DocPage { slug: "search".into(), title: "Search".into(), lead, sections }
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
