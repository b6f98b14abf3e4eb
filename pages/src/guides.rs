//! The guides: the files of `docs/` as pages at `/docs/guides`, in the order of `docs/SUMMARY.md`.
//!
//! ```text
//! docs/SUMMARY.md ─► groups of the navigation
//! docs/**/*.md    ─► links rewritten, comments removed ─► DocPage (sections of Markdown) ─► html, markdown
//! ```

pub mod guide_files;
pub mod guide_links;
pub mod guide_page;
pub mod guide_summary;

use self::guide_files::{INDEX_FILE, SUMMARY, guide_path, text_of};
use self::guide_summary::{SummaryPart, parse_summary};
use crate::block::{Block, DocPage, Section};
use crate::inline::plain_text;
use crate::layout::DocNavigation;
use crate::prose::anchor;
use crate::reference::{GUIDES_PATH, PATH, page_path};

/// A part of the list of guides.
#[derive(Debug)]
pub struct GuideGroup {
    pub title: &'static str,
    pub pages: Vec<DocPage>,
    /// Pages that lists leave out, because one of `pages` links to them.
    pub nested_pages: Vec<DocPage>,
}

impl GuideGroup {
    fn parse(part: &SummaryPart<'static>) -> Self {
        let pages = |is_nested: bool| {
            let entries = part.entries.iter().filter(move |entry| entry.is_nested == is_nested);
            entries
                .filter_map(|entry| text_of(entry.file).map(|text| guide_page::parse(entry.file, entry.title, text)))
                .collect()
        };
        Self { title: part.title, pages: pages(false), nested_pages: pages(true) }
    }

    /// All pages.
    pub fn all_pages(&self) -> impl Iterator<Item = &DocPage> {
        self.pages.iter().chain(&self.nested_pages)
    }
}

/// All guides.
#[derive(Debug)]
pub struct Guides {
    pub index: DocPage,
    pub groups: Vec<GuideGroup>,
}

impl Guides {
    /// Parses the embedded files.
    #[must_use]
    pub fn new() -> Self {
        let groups: Vec<GuideGroup> = parse_summary(SUMMARY).iter().map(GuideGroup::parse).collect();
        Self { index: index_page(&groups), groups }
    }

    /// All pages, the list first.
    pub fn pages(&self) -> impl Iterator<Item = &DocPage> {
        std::iter::once(&self.index).chain(self.groups.iter().flat_map(GuideGroup::all_pages))
    }

    /// The groups of the navigation.
    #[must_use]
    pub fn navigation(&self) -> Vec<DocNavigation> {
        let documentation = DocNavigation {
            title: "Documentation",
            pages: vec![
                (GUIDES_PATH.to_owned(), "All guides".to_owned()),
                (PATH.to_owned(), "API reference".to_owned()),
            ],
        };
        let of_group = |group: &GuideGroup| DocNavigation {
            title: group.title,
            pages: group.pages.iter().map(|page| (page_path(&page.slug), plain_text(&page.title))).collect(),
        };
        std::iter::once(documentation).chain(self.groups.iter().map(of_group)).collect()
    }
}

impl Default for Guides {
    fn default() -> Self {
        Self::new()
    }
}

/// The list of all guides with their first sentences.
fn index_page(groups: &[GuideGroup]) -> DocPage {
    let lead = text_of(INDEX_FILE).map(|text| guide_page::parse(INDEX_FILE, "Guides", text).lead).unwrap_or_default();
    let entry = |page: &DocPage| {
        let title = plain_text(&page.title);
        let lead = first_sentence(&page.lead);
        format!("[{title}]({}){}{lead}", page_path(&page.slug), if lead.is_empty() { "" } else { ": " })
    };
    let sections = groups.iter().map(|group| Section {
        id: anchor(group.title),
        title: group.title.to_owned(),
        short_title: None,
        prose: vec![Block::List(group.pages.iter().map(entry).collect())],
        aside: Vec::new(),
    });
    DocPage { slug: guide_path(INDEX_FILE), title: "Guides".into(), lead, sections: sections.collect() }
}

/// The text up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> String {
    let end = text.match_indices(". ").map(|(position, _)| position + 1).next().unwrap_or(text.len());
    plain_text(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_summary_is_a_page_and_every_file_is_in_it() {
        let listed: BTreeSet<&str> =
            parse_summary(SUMMARY).iter().flat_map(|part| part.entries.iter().map(|entry| entry.file)).collect();
        let embedded: BTreeSet<&str> =
            guide_files::FILES.iter().map(|(file, _)| *file).filter(|file| *file != INDEX_FILE).collect();
        assert_eq!(listed, embedded);
        let slugs: BTreeSet<String> = embedded.iter().map(|file| guide_path(file)).collect();
        assert_eq!(slugs.len(), embedded.len(), "two files have the same path");
    }

    #[test]
    fn every_guide_has_a_lead() {
        let guides = Guides::new();
        let pages = guides.groups.iter().flat_map(|group| &group.pages).chain([&guides.index]);
        let without: Vec<&str> =
            pages.filter(|page| !page.lead.ends_with('.')).map(|page| page.slug.as_str()).collect();
        assert!(without.is_empty(), "begin these with a sentence: {without:?}");
    }

    #[test]
    fn a_sentence_ends_at_a_full_stop_and_a_space() {
        assert_eq!(first_sentence("Set `a.b` up. Then go."), "Set a.b up.");
        assert_eq!(first_sentence("One."), "One.");
    }
}
