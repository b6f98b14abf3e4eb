//! The content of a page, apart from its form. HTML and Markdown are made from the same blocks.
//!
//! Texts may have the marks of [`inline`](crate::inline).

use crate::highlight::CodeLanguage;

/// A page.
#[derive(Debug, Clone)]
pub struct DocPage {
    /// The last part of the path: `emails` in `/docs/emails`; empty for the first page.
    pub slug: String,
    pub title: String,
    /// A sentence below the title.
    pub lead: String,
    pub sections: Vec<Section>,
}

/// A part of a page with a heading.
#[derive(Debug, Clone)]
pub struct Section {
    /// The anchor.
    pub id: String,
    /// Empty for the text of a guide before its first heading.
    pub title: String,
    /// The name in the navigation, if it differs from the title.
    pub short_title: Option<String>,
    /// The running text.
    pub prose: Vec<Block>,
    /// Code beside the text.
    pub aside: Vec<Block>,
}

/// A piece of content.
#[derive(Debug, Clone)]
pub enum Block {
    Text(String),
    List(Vec<String>),
    /// A heading within a section.
    Heading(String),
    Endpoint {
        method: String,
        path: String,
    },
    Facts(Vec<(String, String)>),
    Fields {
        title: String,
        groups: Vec<FieldGroup>,
    },
    Code(CodeBlock),
    /// The same in each language; one of them is visible.
    Examples {
        title: String,
        panels: Vec<ExamplePanel>,
    },
    Table {
        caption: String,
        head: Vec<String>,
        rows: Vec<TableRow>,
    },
    /// Markdown of a guide (CommonMark with tables), whose links are those of the pages.
    Markdown(String),
}

/// Code with a title.
#[derive(Debug, Clone)]
pub struct CodeBlock {
    pub title: String,
    pub language: CodeLanguage,
    pub text: String,
}

/// An example in one language.
#[derive(Debug, Clone)]
pub struct ExamplePanel {
    /// `node`: the name in `sdk/snippets.json`.
    pub key: &'static str,
    pub label: &'static str,
    pub language: CodeLanguage,
    pub text: String,
}

#[derive(Debug, Clone)]
pub struct TableRow {
    /// An anchor, if others link to the row.
    pub id: Option<String>,
    pub cells: Vec<String>,
}

/// Fields of an object; of one of its variants, if it has a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldGroup {
    pub label: Option<String>,
    pub fields: Vec<DocField>,
}

/// A field of a request, an answer or an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocField {
    pub name: String,
    /// `string`, `array of [Email](#email-object)`.
    pub kind: String,
    pub required: bool,
    /// `at most 255 characters`.
    pub limits: Vec<String>,
    pub description: String,
    pub groups: Vec<FieldGroup>,
}
