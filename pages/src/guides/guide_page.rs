//! A file of `docs/` as a page: its title, its first paragraph, and a section for each heading of the second level.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::guide_files::{guide_path, with_includes};
use super::guide_links::{LinkTarget, resolve_link};
use crate::block::{Block, DocPage, Section};
use crate::inline::plain_text;
use crate::prose::{MARKDOWN_OPTIONS, anchor};

/// Parses a file. `title` is used if it has no heading of the first level.
pub fn parse(file: &str, title: &str, text: &str) -> DocPage {
    let text = rewrite(file, &with_includes(text));
    let outline = Outline::of(&text);
    let lead = outline.lead.clone().map_or("", |range| text[range].trim());
    let mut sections = Vec::new();
    let first = outline.sections.first().map_or(text.len(), |heading| heading.range.start);
    sections.extend(section("", &text[outline.body_start..first]));
    for (position, heading) in outline.sections.iter().enumerate() {
        let end = outline.sections.get(position + 1).map_or(text.len(), |next| next.range.start);
        let short_title = plain_text(&heading.title);
        sections.push(Section {
            id: anchor(&short_title),
            short_title: (short_title != heading.title).then_some(short_title),
            ..section(&heading.title, &text[heading.range.end..end]).unwrap_or_else(|| empty_section(&heading.title))
        });
    }
    DocPage {
        slug: guide_path(file),
        title: outline.title.clone().unwrap_or_else(|| title.to_owned()),
        lead: lead.replace('\n', " "),
        sections,
    }
}

/// The text before the first section has no heading.
fn section(title: &str, markdown: &str) -> Option<Section> {
    let markdown = markdown.trim();
    let section = Section { prose: vec![Block::Markdown(markdown.to_owned())], ..empty_section(title) };
    (!markdown.is_empty()).then_some(section)
}

fn empty_section(title: &str) -> Section {
    let id = if title.is_empty() { "introduction" } else { title };
    Section { id: id.to_owned(), title: title.to_owned(), short_title: None, prose: Vec::new(), aside: Vec::new() }
}

#[derive(Debug)]
struct GuideHeading {
    range: Range<usize>,
    title: String,
}

/// The places of the headings of a file.
#[derive(Debug, Default)]
struct Outline {
    title: Option<String>,
    lead: Option<Range<usize>>,
    body_start: usize,
    sections: Vec<GuideHeading>,
}

impl Outline {
    fn of(text: &str) -> Self {
        let mut outline = Self::default();
        let mut depth = 0_usize;
        for (event, range) in Parser::new_ext(text, MARKDOWN_OPTIONS).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    if depth == 0 {
                        outline.add(&tag, range, text);
                    }
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        outline
    }

    fn add(&mut self, tag: &Tag<'_>, range: Range<usize>, text: &str) {
        let heading = || text[range.clone()].trim().trim_start_matches('#').trim().to_owned();
        match tag {
            Tag::Heading { level: HeadingLevel::H1, .. } if self.title.is_none() => {
                self.title = Some(heading());
                self.body_start = range.end;
            }
            Tag::Heading { level: HeadingLevel::H2, .. } => {
                self.sections.push(GuideHeading { title: heading(), range });
            }
            // The first paragraph, directly below the title.
            Tag::Paragraph
                if self.lead.is_none()
                    && self.sections.is_empty()
                    && text[self.body_start..range.start].trim().is_empty() =>
            {
                self.body_start = range.end;
                self.lead = Some(range);
            }
            _ => {}
        }
    }
}

/// Removes comments, and replaces the targets of links by those of the pages. Code is not changed.
fn rewrite(file: &str, text: &str) -> String {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut links: Vec<(Range<usize>, String)> = Vec::new();
    for (event, range) in Parser::new_ext(text, MARKDOWN_OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) => edits.push((range, String::new())),
            Event::Start(Tag::Link { dest_url, .. }) => links.push((range, dest_url.into_string())),
            Event::End(TagEnd::Link) => {
                if let Some((range, destination)) = links.pop() {
                    edits.extend(rewritten_link(file, text, range, &destination));
                }
            }
            _ => {}
        }
    }
    let (mut rewritten, mut position) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in edits {
        if range.start >= position {
            rewritten.push_str(&text[position..range.start]);
            rewritten.push_str(&replacement);
            position = range.end;
        }
    }
    rewritten.push_str(&text[position..]);
    rewritten
}

/// The new text of an inline link; `None` for `<https://…>` and other forms.
fn rewritten_link(file: &str, text: &str, range: Range<usize>, destination: &str) -> Option<(Range<usize>, String)> {
    let source = &text[range.clone()];
    let label = source.strip_suffix(&format!("]({destination})"))?.strip_prefix('[')?;
    let replacement = match resolve_link(file, destination) {
        LinkTarget::Address(address) => format!("[{label}]({address})"),
        LinkTarget::Missing => label.to_owned(),
    };
    Some((range, replacement))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A `title`\n\nThe lead\nof [it](WEBHOOKS.md).\n\nMore.\n\n<!-- run first:\nx\n-->\n```sh\n\
                        # [x](EVENTS.md) <!-- y -->\n## z\n```\n\n## One `b`\n\n- [c](../README.md)\n\n## Two\n";

    #[test]
    fn a_file_becomes_a_page_with_sections() {
        let page = parse("BOUNCES.md", "", TEXT);
        assert_eq!((page.slug.as_str(), page.title.as_str()), ("guides/bounces", "A `title`"));
        assert_eq!(page.lead, "The lead of [it](/docs/guides/webhooks).");
        let sections: Vec<_> = page.sections.iter().map(|one| (one.id.as_str(), one.title.as_str())).collect();
        assert_eq!(sections, [("introduction", ""), ("one-b", "One `b`"), ("two", "Two")]);
        let Some([Block::Markdown(first)]) = page.sections.first().map(|one| one.prose.as_slice()) else {
            panic!("{page:?}")
        };
        assert_eq!(first, "More.\n\n```sh\n# [x](EVENTS.md) <!-- y -->\n## z\n```");
        assert!(matches!(page.sections[1].prose.as_slice(), [Block::Markdown(text)] if text == "- c"));
        assert!(page.sections[2].prose.is_empty());
    }

    #[test]
    fn a_file_without_headings_keeps_its_text() {
        let page = parse("BOUNCES.md", "Title", "Only this.\n");
        assert_eq!((page.title.as_str(), page.lead.as_str(), page.sections.len()), ("Title", "Only this.", 0));
    }
}
