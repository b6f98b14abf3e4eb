//! Blocks as HTML.

use hypertext::{Buffer, prelude::*};

use crate::block::{Block, DocField, FieldGroup, Section, TableRow};
use crate::display_text::display_text;
use crate::html_code::HtmlCode;
use crate::inline::RichText;
use crate::prose::html_prose;

/// Renders blocks. `prefix` precedes paths.
#[derive(Debug, Clone, Copy)]
pub struct HtmlBlocks<'a> {
    pub blocks: &'a [Block],
    pub prefix: &'a str,
}

impl Renderable for HtmlBlocks<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        for block in self.blocks {
            self.block(block, buffer);
        }
    }
}

impl<'a> HtmlBlocks<'a> {
    fn rich(&self, text: &'a str) -> RichText<'a> {
        RichText { text, prefix: self.prefix }
    }

    fn block(&self, block: &'a Block, buffer: &mut Buffer) {
        match block {
            Block::Text(text) => maud! { p { (self.rich(text)) } }.render_to(buffer),
            Block::Heading(text) => maud! { h3 { (self.rich(text)) } }.render_to(buffer),
            Block::List(entries) => maud! { ul { @for entry in entries { li { (self.rich(entry)) } } } }.render_to(buffer),
            Block::Endpoint { method, path } => maud! {
                p.endpoint {
                    span class={ "method m-" (method.to_lowercase()) } { (method) }
                    code { @for piece in path_pieces(path) { (piece) wbr; } }
                }
            }
            .render_to(buffer),
            Block::Facts(facts) => maud! {
                dl.facts { @for (name, text) in facts { div { dt { (self.rich(name)) } dd { (self.rich(text)) } } } }
            }
            .render_to(buffer),
            Block::Fields { title, groups } => {
                maud! { h3 { (self.rich(title)) } }.render_to(buffer);
                self.groups(groups, buffer);
            }
            Block::Code(code) => {
                HtmlCode { title: &code.title, language: code.language, text: &code.text }.render_to(buffer);
            }
            Block::Examples { title, panels } => maud! {
                @for panel in panels {
                    div class={ "example x-" (panel.key) } {
                        (HtmlCode { title: &format!("{title} · {}", panel.label), language: panel.language, text: &panel.text })
                    }
                }
            }
            .render_to(buffer),
            Block::Table { caption, head, rows } => self.table(caption, head, rows, buffer),
            Block::Markdown(markdown) => html_prose(markdown, self.prefix).render_to(buffer),
        }
    }

    fn table(&self, caption: &str, head: &'a [String], rows: &'a [TableRow], buffer: &mut Buffer) {
        maud! {
            div.table role="group" tabindex="0" aria-label=(caption) {
                table {
                    caption.hidden { (caption) }
                    thead { tr { @for title in head { th scope="col" { (self.rich(title)) } } } }
                    tbody {
                        @for row in rows {
                            tr id=[row.id.as_deref()] {
                                @for (column, cell) in row.cells.iter().enumerate() {
                                    @if column == 0 {
                                        th scope="row" { (self.rich(cell)) }
                                    } @else {
                                        td { (self.rich(cell)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        .render_to(buffer);
    }

    fn groups(&self, groups: &'a [FieldGroup], buffer: &mut Buffer) {
        for group in groups {
            if let Some(label) = &group.label {
                maud! { p.variant { (self.rich(label)) } }.render_to(buffer);
            }
            if !group.fields.is_empty() {
                maud! { ul.fields { @for field in &group.fields { (html_field(self, field)) } } }.render_to(buffer);
            }
        }
    }
}

/// A field and those within it.
fn html_field(blocks: &HtmlBlocks<'_>, field: &DocField) -> impl Renderable {
    let count: usize = field.groups.iter().map(|group| group.fields.len()).sum();
    maud! {
        li {
            p.name {
                code { (display_text(&field.name)) } " "
                span.kind { (blocks.rich(&field.kind)) }
                @if field.required { " " span.required { "required" } }
            }
            @if !field.description.is_empty() { p { (blocks.rich(&field.description)) } }
            @if !field.limits.is_empty() {
                p.limits {
                    @for (position, limit) in field.limits.iter().enumerate() {
                        @if position > 0 { " · " }
                        (blocks.rich(limit))
                    }
                }
            }
            @if count > 0 {
                details {
                    summary {
                        (count) @if count == 1 { " field" } @else { " fields" }
                        span.hidden { " of " (display_text(&field.name)) }
                    }
                    (HtmlGroups { blocks, groups: &field.groups })
                }
            }
        }
    }
}

struct HtmlGroups<'f, 'a> {
    blocks: &'f HtmlBlocks<'a>,
    groups: &'a [FieldGroup],
}

impl Renderable for HtmlGroups<'_, '_> {
    fn render_to(&self, buffer: &mut Buffer) {
        self.blocks.groups(self.groups, buffer);
    }
}

/// Renders a section: its text, and its code beside it.
pub fn html_section(section: &Section, prefix: &str) -> impl Renderable {
    let title_id = (!section.title.is_empty()).then(|| format!("{}-title", section.id));
    maud! {
        section id=(section.id) class=[section.aside.is_empty().then_some("wide")] aria-labelledby=[title_id.as_deref()] {
            div.prose {
                @if let Some(title_id) = &title_id {
                    h2 id=(title_id) {
                        (RichText { text: &section.title, prefix })
                        " " a.anchor href={ "#" (section.id) } { span.hidden { "Link to " (section.title) } }
                    }
                }
                (HtmlBlocks { blocks: &section.prose, prefix })
            }
            @if !section.aside.is_empty() {
                div.aside { (HtmlBlocks { blocks: &section.aside, prefix }) }
            }
        }
    }
}

/// The pieces of a path after which a line may break.
fn path_pieces(path: &str) -> impl Iterator<Item = &str> {
    path.split_inclusive('/')
}
