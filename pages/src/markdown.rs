//! Blocks as Markdown, for language models and terminals.

use std::fmt::Write as _;

use crate::block::{Block, DocPage, FieldGroup, Section};

/// A page as Markdown (CommonMark, with tables).
pub fn markdown_page(page: &DocPage) -> String {
    let mut text = format!("# {}\n\n{}\n", page.title, page.lead);
    for section in &page.sections {
        write_section(&mut text, section);
    }
    text
}

pub fn section_markdown(section: &Section) -> String {
    let mut text = String::new();
    write_section(&mut text, section);
    text
}

fn write_section(text: &mut String, section: &Section) {
    // Writing to a `String` does not fail, here and below.
    if !section.title.is_empty() {
        let _ = write!(text, "\n## {}\n", section.title);
    }
    for block in section.prose.iter().chain(&section.aside) {
        write_block(text, block);
    }
}

fn write_block(text: &mut String, block: &Block) {
    text.push('\n');
    match block {
        Block::Text(paragraph) => {
            let _ = writeln!(text, "{paragraph}");
        }
        Block::Heading(heading) => {
            let _ = writeln!(text, "### {heading}");
        }
        Block::List(entries) => entries.iter().for_each(|entry| {
            let _ = writeln!(text, "- {entry}");
        }),
        Block::Endpoint { method, path } => {
            let _ = writeln!(text, "`{method} {path}`");
        }
        Block::Facts(facts) => facts.iter().for_each(|(name, fact)| {
            let _ = writeln!(text, "- {name}: {fact}");
        }),
        Block::Fields { title, groups } => {
            let _ = writeln!(text, "### {title}\n");
            write_groups(text, groups, 0);
        }
        Block::Code(code) => {
            let _ = writeln!(text, "{}:", code.title);
            write_fenced(text, code.language.name(), &code.text);
        }
        Block::Examples { title, panels } => {
            for (position, panel) in panels.iter().enumerate() {
                if position > 0 {
                    text.push('\n');
                }
                let _ = writeln!(text, "{title}, {}:", panel.label);
                write_fenced(text, panel.language.name(), &panel.text);
            }
        }
        Block::Table { head, rows, .. } => {
            let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
            text.push_str(&line(head));
            text.push_str(&line(&vec!["---".to_owned(); head.len()]));
            rows.iter().for_each(|row| text.push_str(&line(&row.cells)));
        }
        Block::Markdown(markdown) => {
            let _ = writeln!(text, "{markdown}");
        }
    }
}

/// Code in a fence that is longer than each row of backticks in it (CommonMark 4.5).
fn write_fenced(text: &mut String, language: &str, code: &str) {
    let longest = code.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let _ = writeln!(text, "\n{fence}{language}\n{}\n{fence}", code.trim_end());
}

fn write_groups(text: &mut String, groups: &[FieldGroup], depth: usize) {
    let indent = "  ".repeat(depth);
    for group in groups {
        if let Some(label) = &group.label {
            let _ = writeln!(text, "{indent}- {label}");
        }
        for field in &group.fields {
            let _ = write!(text, "{indent}- `{}` ({}", field.name, field.kind);
            if field.required {
                text.push_str(", required");
            }
            for limit in &field.limits {
                let _ = write!(text, ", {limit}");
            }
            text.push(')');
            if !field.description.is_empty() {
                let _ = write!(text, ": {}", field.description);
            }
            text.push('\n');
            write_groups(text, &field.groups, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_the_code_needs() {
        let mut text = String::new();
        write_fenced(&mut text, "sh", "a ```` b");
        assert_eq!(text, "\n`````sh\na ```` b\n`````\n");
    }
}
