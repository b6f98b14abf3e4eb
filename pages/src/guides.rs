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
use self::guide_summary::{SummaryEntry, SummaryPart, parse_summary};
use crate::block::{Block, DocPage, Section};
use crate::inline::plain_text;
use crate::layout::DocNavigation;
use crate::prose::anchor;
use crate::reference::{GUIDES_PATH, PATH, page_path};

/// A part of the list of guides.
#[derive(Debug)]
pub struct GuideGroup {
    pub title: &'static str,
    pub entries: Vec<GuideEntry>,
}

/// A guide in the list.
#[derive(Debug)]
pub struct GuideEntry {
    /// The short title of the list.
    pub title: &'static str,
    /// Lists leave it out, because another page links to it.
    pub is_nested: bool,
    pub page: DocPage,
}

impl GuideGroup {
    fn parse(part: &SummaryPart<'static>) -> Self {
        let entry = |entry: &SummaryEntry<'static>| {
            let page = guide_page::parse(entry.file, entry.title, text_of(entry.file)?);
            Some(GuideEntry { title: entry.title, is_nested: entry.is_nested, page })
        };
        Self { title: part.title, entries: part.entries.iter().filter_map(entry).collect() }
    }

    fn listed(&self) -> impl Iterator<Item = &GuideEntry> {
        self.entries.iter().filter(|entry| !entry.is_nested)
    }

    /// All pages.
    pub fn all_pages(&self) -> impl Iterator<Item = &DocPage> {
        self.entries.iter().map(|entry| &entry.page)
    }
}

#[derive(Debug)]
pub struct Guides {
    pub index: DocPage,
    pub groups: Vec<GuideGroup>,
}

impl Guides {
    /// Parses the embedded files.
    pub fn new() -> Self {
        let groups: Vec<GuideGroup> = parse_summary(SUMMARY).iter().map(GuideGroup::parse).collect();
        Self { index: index_page(&groups), groups }
    }

    /// All pages, the list first.
    pub fn pages(&self) -> impl Iterator<Item = &DocPage> {
        std::iter::once(&self.index).chain(self.groups.iter().flat_map(GuideGroup::all_pages))
    }

    /// The groups of the navigation.
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
            pages: group.listed().map(|entry| (page_path(&entry.page.slug), entry.title.to_owned())).collect(),
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
    let entry = |entry: &GuideEntry| {
        let page = &entry.page;
        format!("[{}]({}): {}", entry.title, page_path(&page.slug), first_sentence(&page.lead))
    };
    let sections = groups.iter().map(|group| Section {
        id: anchor(group.title),
        title: group.title.to_owned(),
        short_title: None,
        prose: vec![Block::List(group.listed().map(entry).collect())],
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
    use std::path::Path;

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
    fn every_document_is_a_guide() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for folder in ["", "user/", "decisions/"] {
            for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
                let file = format!("{folder}{}", entry.unwrap().file_name().to_string_lossy());
                let is_guide = file.ends_with(".md") && file != "SUMMARY.md";
                assert!(!is_guide || text_of(&file).is_some(), "add {file} to docs/SUMMARY.md and guide_files.rs");
            }
        }
    }

    #[test]
    fn every_guide_has_a_lead() {
        let guides = Guides::new();
        let pages =
            guides.groups.iter().flat_map(|group| group.listed().map(|entry| &entry.page)).chain([&guides.index]);
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
