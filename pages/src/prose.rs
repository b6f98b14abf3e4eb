//! Markdown of the guides as HTML. Raw HTML in it is left out.

use hypertext::{Buffer, prelude::*};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

use crate::display_text::display_text;
use crate::highlight::CodeLanguage;
use crate::html_code::HtmlCode;

/// CommonMark with tables.
pub const MARKDOWN_OPTIONS: Options = Options::ENABLE_TABLES;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProseNode {
    Text(String),
    InlineCode(String),
    Code { language: String, text: String },
    Element(ProseElement, Vec<ProseNode>),
}

/// A piece that contains others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProseElement {
    Paragraph,
    Heading {
        is_third_level: bool,
    },
    List {
        start: Option<u64>,
    },
    Item,
    Quote,
    Strong,
    Emphasis,
    Link {
        target: String,
    },
    Table,
    TableRow {
        is_head: bool,
    },
    TableCell,
    /// Shows only what is in it.
    Plain,
}

pub fn parse_prose(markdown: &str) -> Vec<ProseNode> {
    let mut open: Vec<(ProseElement, Vec<ProseNode>)> = vec![(ProseElement::Plain, Vec::new())];
    // The language of the code block that is open.
    let mut code: Option<(String, String)> = None;
    for event in Parser::new_ext(markdown, MARKDOWN_OPTIONS) {
        let node = match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language =
                    if let CodeBlockKind::Fenced(language) = kind { language.into_string() } else { String::new() };
                code = Some((language, String::new()));
                continue;
            }
            Event::Start(tag) => {
                open.push((element(tag), Vec::new()));
                continue;
            }
            Event::Text(text) => match &mut code {
                Some((_, all)) => {
                    all.push_str(&text);
                    continue;
                }
                None => ProseNode::Text(text.into_string()),
            },
            Event::End(_) => match code.take() {
                Some((language, text)) => ProseNode::Code { language, text },
                None => match open.pop() {
                    Some((element, nodes)) => ProseNode::Element(element, nodes),
                    None => continue,
                },
            },
            Event::Code(text) => ProseNode::InlineCode(text.into_string()),
            Event::SoftBreak | Event::HardBreak => ProseNode::Text("\n".to_owned()),
            _ => continue,
        };
        if let Some((_, nodes)) = open.last_mut() {
            nodes.push(node);
        }
    }
    open.into_iter().next().map(|(_, nodes)| nodes).unwrap_or_default()
}

fn element(tag: Tag<'_>) -> ProseElement {
    match tag {
        Tag::Paragraph => ProseElement::Paragraph,
        Tag::Heading { level, .. } => ProseElement::Heading { is_third_level: level <= HeadingLevel::H3 },
        Tag::List(start) => ProseElement::List { start },
        Tag::Item => ProseElement::Item,
        Tag::BlockQuote(_) => ProseElement::Quote,
        Tag::Strong => ProseElement::Strong,
        Tag::Emphasis => ProseElement::Emphasis,
        Tag::Link { dest_url, .. } => ProseElement::Link { target: dest_url.into_string() },
        Tag::Table(_) => ProseElement::Table,
        Tag::TableHead => ProseElement::TableRow { is_head: true },
        Tag::TableRow => ProseElement::TableRow { is_head: false },
        Tag::TableCell => ProseElement::TableCell,
        _ => ProseElement::Plain,
    }
}

/// The text of nodes without marks.
pub fn prose_text(nodes: &[ProseNode]) -> String {
    let mut text = String::new();
    write_text(nodes, &mut text);
    text
}

fn write_text(nodes: &[ProseNode], text: &mut String) {
    for node in nodes {
        match node {
            ProseNode::Text(part) | ProseNode::InlineCode(part) | ProseNode::Code { text: part, .. } => {
                text.push_str(part)
            }
            ProseNode::Element(element, nodes) => {
                write_text(nodes, text);
                if !matches!(element, ProseElement::Strong | ProseElement::Emphasis | ProseElement::Link { .. }) {
                    text.push(' ');
                }
            }
        }
    }
}

/// The anchor of a heading, as GitHub and mdBook write it.
pub fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|one| if one == ' ' { '-' } else { one }).collect()
}

/// Renders Markdown. `prefix` precedes paths.
pub fn html_prose(markdown: &str, prefix: &str) -> impl Renderable {
    let nodes = parse_prose(markdown);
    maud! { (ProseNodes { nodes: &nodes, prefix, is_head: false }) }
}

struct ProseNodes<'a> {
    nodes: &'a [ProseNode],
    prefix: &'a str,
    /// The nodes are the cells of a table's head.
    is_head: bool,
}

impl Renderable for ProseNodes<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        for node in self.nodes {
            match node {
                ProseNode::Text(text) => display_text(text).render_to(buffer),
                ProseNode::InlineCode(text) => maud! { code { (display_text(text)) } }.render_to(buffer),
                ProseNode::Code { language, text } => {
                    let (language, title) = CodeLanguage::of_fence(language);
                    HtmlCode { title, language, text: text.trim_end() }.render_to(buffer);
                }
                ProseNode::Element(element, nodes) => self.element(element, nodes, buffer),
            }
        }
    }
}

impl ProseNodes<'_> {
    fn element(&self, element: &ProseElement, nodes: &[ProseNode], buffer: &mut Buffer) {
        let is_head = matches!(element, ProseElement::TableRow { is_head: true });
        let inner = ProseNodes { nodes, prefix: self.prefix, is_head };
        match element {
            ProseElement::Paragraph => maud! { p { (inner) } }.render_to(buffer),
            ProseElement::Heading { is_third_level } => {
                let id = anchor(&prose_text(nodes));
                if *is_third_level {
                    maud! { h3 id=(id) { (inner) } }.render_to(buffer);
                } else {
                    maud! { h4 id=(id) { (inner) } }.render_to(buffer);
                }
            }
            ProseElement::List { start: None } => maud! { ul { (inner) } }.render_to(buffer),
            ProseElement::List { start: Some(start) } => {
                let start = (*start != 1).then(|| start.to_string());
                maud! { ol start=[start.as_deref()] { (inner) } }.render_to(buffer);
            }
            ProseElement::Item => maud! { li { (inner) } }.render_to(buffer),
            ProseElement::Quote => maud! { blockquote { (inner) } }.render_to(buffer),
            ProseElement::Strong => maud! { strong { (inner) } }.render_to(buffer),
            ProseElement::Emphasis => maud! { em { (inner) } }.render_to(buffer),
            ProseElement::Link { target } => match safe_target(target) {
                Some(is_path) => {
                    let prefix = if is_path { self.prefix } else { "" };
                    maud! { a href={ (prefix) (target) } { (inner) } }.render_to(buffer);
                }
                None => inner.render_to(buffer),
            },
            ProseElement::Table => table(nodes, self.prefix, buffer),
            ProseElement::TableRow { .. } => maud! { tr { (inner) } }.render_to(buffer),
            // A header without text is no header for readers of the page.
            ProseElement::TableCell if self.is_head && !nodes.is_empty() => {
                maud! { th scope="col" { (inner) } }.render_to(buffer);
            }
            ProseElement::TableCell => maud! { td { (inner) } }.render_to(buffer),
            ProseElement::Plain => inner.render_to(buffer),
        }
    }
}

fn table(rows: &[ProseNode], prefix: &str, buffer: &mut Buffer) {
    let is_head = |node: &ProseNode| matches!(node, ProseNode::Element(ProseElement::TableRow { is_head: true }, _));
    let (head, body): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(is_head);
    maud! {
        div.table role="group" tabindex="0" aria-label="Table" {
            table {
                thead { (ProseNodes { nodes: &head, prefix, is_head: false }) }
                tbody { (ProseNodes { nodes: &body, prefix, is_head: false }) }
            }
        }
    }
    .render_to(buffer);
}

/// Whether a target is a path of this server; `None` if it is no target of a guide.
fn safe_target(target: &str) -> Option<bool> {
    let is_path = target.starts_with('/') && !target.starts_with("//");
    (is_path || target.starts_with('#') || target.starts_with("https://")).then_some(is_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str) -> String {
        html_prose(markdown, "/p").render().into_inner()
    }

    #[test]
    fn blocks_become_elements() {
        assert_eq!(
            html("A *b* **c** `d`\n\n1. x\n2. y"),
            "<p>A <em>b</em> <strong>c</strong> <code>d</code></p><ol><li>x</li><li>y</li></ol>"
        );
        assert_eq!(html("### A `b`"), "<h3 id=\"a-b\">A <code>b</code></h3>");
        let table = html("| a | b |\n|---|---|\n| c | `d|e` |");
        assert!(table.contains("<thead><tr><th scope=\"col\">a</th>"), "{table}");
        assert!(table.contains("<tbody><tr><td>c</td>"), "{table}");
        assert!(html("| | b |\n|---|---|\n| c | d |").contains("<tr><td></td><th scope=\"col\">b</th></tr>"));
        let code = html("```sh\necho a\n```");
        assert!(code.contains("<figcaption>Shell</figcaption>") && code.contains("echo a"), "{code}");
    }

    #[test]
    fn hostile_markdown_stays_text() {
        let page =
            html("<script>alert(1)</script>\n\nA <b>c</b> [x](javascript:alert(1)) [y](//evil.example) &lt;i&gt;");
        assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("<a "), "{page}");
        assert!(page.contains("&lt;i&gt;"), "{page}");
        assert_eq!(html("[z](/docs#a)"), "<p><a href=\"/p/docs#a\">z</a></p>");
    }

    #[test]
    fn text_is_without_marks() {
        assert_eq!(
            prose_text(&parse_prose("# A\n\n- `b` [c](#d)\n")).split_whitespace().collect::<Vec<_>>(),
            ["A", "b", "c"]
        );
    }

    #[test]
    fn anchors_are_those_of_the_repository() {
        assert_eq!(anchor("Source addresses and pools"), "source-addresses-and-pools");
        assert_eq!(anchor("Options in the header: Service-* fields"), "options-in-the-header-service--fields");
    }
}
