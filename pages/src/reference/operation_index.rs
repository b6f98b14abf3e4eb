//! `/docs/operations`: all operations on one page, to search in.

use super::operation::ApiTable;
use super::{text_section, words};
use crate::block::{Block, DocPage, Section, TableRow};

/// Writes the page.
pub fn page(table: &ApiTable) -> DocPage {
    let mut sections: Vec<Section> = Vec::new();
    for (_, resources) in words::groups(table) {
        for resource in resources {
            let operations = table.operations.iter().filter(|operation| operation.top_resource() == resource);
            let rows = operations.map(|operation| TableRow {
                id: None,
                cells: vec![
                    format!("[{}]({})", operation.summary, words::operation_path(operation)),
                    format!("`{} {}`", operation.http_method, operation.path),
                    format!("`{}`", operation.name),
                ],
            });
            let title = words::resource_title(resource);
            let block = Block::Table {
                caption: format!("Operations: {title}"),
                head: vec!["Operation".into(), "HTTP".into(), "SDK".into()],
                rows: rows.collect(),
            };
            sections.push(text_section(&words::resource_slug(resource), &title, vec![block]));
        }
    }
    DocPage {
        slug: "operations".into(),
        title: "All operations".into(),
        lead: format!(
            "The {} operations that an API key can call. The command for each is its SDK name with spaces.",
            table.operations.len()
        ),
        sections,
    }
}
