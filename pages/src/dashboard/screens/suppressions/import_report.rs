//! The imports with their progress, and the report of one.

use super::LIST;
use crate::dashboard::kit::progress::Progress;
use crate::dashboard::prelude::*;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Import {
    id: String,
    status: String,
    counts: ImportCounts,
    errors: Vec<LineError>,
    created_at: String,
    completed_at: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ImportCounts {
    total: u64,
    processed: u64,
    created: u64,
    exists: u64,
    invalid: u64,
    refused: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LineError {
    line: u64,
    message: String,
}

impl Import {
    fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed")
    }

    fn standing(&self) -> &'static str {
        match self.status.as_str() {
            "queued" => "The list is waiting to be read.",
            "completed" => "The whole list has been read.",
            "failed" => "The import was stopped by a server error. What it added stays; import the list again.",
            _ => "The list is being read.",
        }
    }
}

/// The imports, newest first.
pub(super) async fn show_list(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("list_suppression_imports").query("cursor", context.query().get("cursor"));
    let found: List<Import> = context.read(&call).await?;
    let columns = ["Started", "Status", "Lines read", "Added", "Already suppressed", "Left out"];
    let mut table = Table::new("Imports", &columns).numbers(&columns[2..]);
    for import in &found.entries {
        let counts = &import.counts;
        let read = format!("{} of {}", grouped(counts.processed), grouped(counts.total));
        let path = format!("{LIST}/imports/{}", encode(&import.id));
        table.push(
            Row::new()
                .cell(maud! { a href=(path) { (time_or_dash(Some(&import.created_at))) } })
                .cell(import_badge(&import.status))
                .cell(read)
                .cell(grouped(counts.created))
                .cell(grouped(counts.exists))
                .cell(grouped(counts.invalid.saturating_add(counts.refused))),
        );
    }
    let empty = EmptyState {
        title: "No lists imported yet",
        text: "If you move from another service, import its list of bounces and complaints before you send.",
        action: context.allows("import_suppressions").then_some(("/dashboard/suppressions/import", "Import a list")),
    };
    let pager = Pager { context, next_cursor: found.next_cursor.as_deref() };
    let body = maud_borrow! {
        div data-fragment="list" {
            @if table.is_empty() { (empty) } @else { (table) }
            (pager)
        }
    };
    let page = Page::new("Imports of suppressions", body).below(LIST, "Suppressions");
    Ok(page.lead("The newest 100 imports are kept.").same_as(call).live().into())
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_suppression_import").id(context.id());
    let import: Import = context.read_field("import", &call).await?;
    let counts = &import.counts;
    let facts = Facts::new()
        .row("Added", grouped(counts.created))
        .row("Already suppressed", grouped(counts.exists))
        .row("Skipped: invalid", grouped(counts.invalid))
        .optional("Skipped: plan limit reached", (counts.refused > 0).then(|| grouped(counts.refused)))
        .row("Started", time_or_dash(Some(&import.created_at)))
        .row("Ended", time_or_dash(import.completed_at.as_deref()));
    let mut errors = Table::new("Skipped lines", &["Line", "Why"]).numbers(&["Line"]);
    for error in &import.errors {
        errors.push(Row::new().cell(error.line).cell(error.message.replace('`', "")));
    }
    let progress =
        Progress { label: "Lines read", done: counts.processed, total: Some(counts.total), is_ended: import.is_over() };
    let path = format!("{LIST}/imports/{}", encode(&import.id));
    let body = maud_borrow! {
        div data-fragment="import" {
            section.card {
                p { (import_badge(&import.status)) " " (import.standing()) }
                (progress)
                (facts)
                div.buttons {
                    @if !import.is_over() { a.button href=(path) { "Refresh" } }
                    a.button href={ (LIST) "?source=import" } { "Show imported suppressions" }
                }
            }
            @if !errors.is_empty() {
                section {
                    h2 { "Skipped lines" }
                    (errors)
                    @if counts.invalid > import.errors.len() as u64 {
                        p.soft.small { "The first " (import.errors.len()) " of " (grouped(counts.invalid)) " are \
                            shown." }
                    }
                }
            }
        }
    };
    let mut page = Page::new("Import of suppressions", body)
        .below(LIST, "Suppressions")
        .below(format!("{LIST}/imports"), "Imports")
        .same_as(call);
    page.live = !import.is_over();
    Ok(page.into())
}

fn import_badge(status: &str) -> Badge {
    match status {
        "completed" => Badge::new("Done", Tone::Good),
        "failed" => Badge::new("Failed", Tone::Bad),
        "queued" => Badge::new("Waiting", Tone::Active),
        _ => Badge::new("Running", Tone::Active),
    }
}
