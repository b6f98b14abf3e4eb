//! Search over all pages: sections that contain all words of a query, the best first.

use crate::block::{DocPage, Section};
use crate::inline::plain_text;
use crate::markdown::section_markdown;
use crate::prose::{parse_prose, prose_text};
use crate::reference::page_path;

const WORDS_MAX: usize = 8;
const QUERY_CHARS_MAX: usize = 200;
const RESULTS_MAX: usize = 30;
/// Characters of an excerpt before and after the first word.
const EXCERPT_CHARS: (usize, usize) = (60, 140);

/// The sections of all pages.
#[derive(Debug)]
pub struct SearchIndex {
    entries: Vec<IndexedSection>,
}

#[derive(Debug)]
struct IndexedSection {
    path: String,
    /// `Page: Section`.
    title: String,
    text: String,
    /// The title and the text in lower case (ASCII).
    title_folded: String,
    text_folded: String,
}

/// A section that contains the words.
#[derive(Debug, PartialEq, Eq)]
pub struct SearchResult<'a> {
    pub path: &'a str,
    pub title: &'a str,
    /// The text around the first word.
    pub excerpt: String,
}

impl SearchIndex {
    /// Indexes pages. Of sections that match equally well, those of the first pages are found first.
    pub fn new<'a>(pages: impl Iterator<Item = &'a DocPage>) -> Self {
        Self { entries: pages.flat_map(|page| page.sections.iter().map(|section| entry(page, section))).collect() }
    }

    /// Finds the sections that contain all words of a query, in any case.
    pub fn find(&self, query: &str) -> Vec<SearchResult<'_>> {
        let query: String = query.chars().take(QUERY_CHARS_MAX).collect::<String>().to_ascii_lowercase();
        let words: Vec<&str> = query.split_whitespace().take(WORDS_MAX).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<(usize, &IndexedSection)> =
            self.entries.iter().filter_map(|one| one.score(&words).map(|score| (score, one))).collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.truncate(RESULTS_MAX);
        found
            .into_iter()
            .map(|(_, one)| SearchResult { path: &one.path, title: &one.title, excerpt: one.excerpt(words[0]) })
            .collect()
    }
}

impl IndexedSection {
    /// How well the words match; `None` if one of them is missing.
    fn score(&self, words: &[&str]) -> Option<usize> {
        let mut score = 0;
        for word in words {
            let in_title = self.title_folded.contains(word);
            let in_text = self.text_folded.matches(word).take(4).count();
            if !in_title && in_text == 0 {
                return None;
            }
            score += usize::from(in_title) * 10 + in_text;
        }
        Some(score)
    }

    fn excerpt(&self, word: &str) -> String {
        // Folding ASCII letters keeps the positions of all bytes.
        let position = self.text_folded.find(word).unwrap_or(0);
        let before: Vec<char> = self.text[..position].chars().rev().take(EXCERPT_CHARS.0).collect();
        let after: Vec<char> = self.text[position..].chars().take(EXCERPT_CHARS.1).collect();
        let (from_start, to_end) = (before.len() < EXCERPT_CHARS.0, after.len() < EXCERPT_CHARS.1);
        let text: String = before.into_iter().rev().chain(after).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}{text}{}", if from_start { "" } else { "…" }, if to_end { "" } else { "…" })
    }
}

fn entry(page: &DocPage, section: &Section) -> IndexedSection {
    // Square brackets would end the text of a link.
    let title =
        plain_text(&page.title) + if section.title.is_empty() { "" } else { ": " } + &plain_text(&section.title);
    let title = title.replace('[', "(").replace(']', ")");
    let text = prose_text(&parse_prose(&section_markdown(section)));
    // An excerpt is shown with marks of Markdown; without these it has none.
    let text = text.replace(['`', '*', '['], " ");
    let path = page_path(&page.slug) + if section.title.is_empty() { "" } else { "#" };
    let path = if section.title.is_empty() { path } else { path + &section.id };
    let (title_folded, text_folded) = (title.to_ascii_lowercase(), text.to_ascii_lowercase());
    IndexedSection { path, title, text, title_folded, text_folded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;

    fn page(slug: &str, sections: &[(&str, &str)]) -> DocPage {
        let section = |(title, text): &(&str, &str)| Section {
            id: title.to_lowercase(),
            title: (*title).to_owned(),
            short_title: None,
            prose: vec![Block::Text((*text).to_owned())],
            aside: Vec::new(),
        };
        DocPage {
            slug: slug.into(),
            title: "Page".into(),
            lead: String::new(),
            sections: sections.iter().map(section).collect(),
        }
    }

    #[test]
    fn all_words_must_occur_and_titles_come_first() {
        let pages = [
            page("a", &[("One", "Backup of the **store**"), ("Backup", "The `store`")]),
            page("b", &[("Two", "a store")]),
        ];
        let index = SearchIndex::new(pages.iter());
        let found: Vec<&str> = index.find("BACKUP store").iter().map(|one| one.path).collect();
        assert_eq!(found, ["/docs/a#backup", "/docs/a#one"]);
        assert!(index.find("backup absent").is_empty() && index.find("  ").is_empty());
        assert_eq!(index.find("two")[0].title, "Page: Two");
    }

    #[test]
    fn excerpts_are_short_and_whole_characters() {
        let pages = [page("a", &[("One", &format!("{} needle {}", "é ".repeat(200), "ü ".repeat(200)))])];
        let index = SearchIndex::new(pages.iter());
        let excerpt = &index.find("needle")[0].excerpt;
        assert!(excerpt.starts_with('…') && excerpt.ends_with('…') && excerpt.contains(" needle "), "{excerpt}");
    }

    #[test]
    fn long_queries_are_cut() {
        let pages = [page("a", &[("One", "x")])];
        assert!(SearchIndex::new(pages.iter()).find(&"y ".repeat(100_000)).is_empty());
    }
}
