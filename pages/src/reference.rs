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

use self::operation::ApiTable;
use crate::block::{DocPage, Section};
use crate::display_text::display_text;
use crate::layout::DocNavigation;

/// The path of the first page; all others, except [`LLMS_PATH`], are below it.
pub const PATH: &str = "/docs";
/// The path of the list of guides; the guides are below it.
pub const GUIDES_PATH: &str = "/docs/guides";
/// The list of pages for language models (llmstxt.org).
pub const LLMS_PATH: &str = "/llms.txt";
/// The page for paths below `/docs` that have none.
pub const NOT_FOUND_PATH: &str = "/docs/404";

#[derive(Debug)]
pub struct Reference {
    pub pages: Vec<DocPage>,
    navigation: Vec<DocNavigation>,
}

impl Reference {
    /// Writes the pages for an API at a base URL.
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
        if let Some(first) = navigation.first_mut() {
            first.pages.push((GUIDES_PATH.to_owned(), "Guides".to_owned()));
        }
        for (title, resources) in words::groups(table) {
            let of_group: Vec<DocPage> =
                resources.iter().map(|resource| resource_page::page(table, resource)).collect();
            navigation.push(group(title, &of_group));
            pages.extend(of_group);
        }
        Self { pages, navigation }
    }

    /// The groups of the navigation.
    pub fn navigation(&self) -> &[DocNavigation] {
        &self.navigation
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

pub fn page_path(slug: &str) -> String {
    if slug.is_empty() { PATH.to_owned() } else { format!("{PATH}/{slug}") }
}

pub fn markdown_path(slug: &str) -> String {
    let slug = if slug.is_empty() { "index" } else { slug };
    format!("{PATH}/{slug}.md")
}

fn group(title: &'static str, pages: &[DocPage]) -> DocNavigation {
    DocNavigation { title, pages: pages.iter().map(|page| (page_path(&page.slug), page.title.clone())).collect() }
}

/// The page for paths that have none.
pub(crate) fn not_found_page() -> DocPage {
    DocPage {
        slug: "404".into(),
        title: "No such page".into(),
        lead: "There is no page at this address. [All operations](/docs/operations) and [all guides](/docs/guides) list everything.".into(),
        sections: Vec::new(),
    }
}

/// A section without code.
fn text_section(id: &str, title: &str, prose: Vec<crate::block::Block>) -> Section {
    Section { id: id.into(), title: title.into(), short_title: None, prose, aside: Vec::new() }
}
