//! The imports with their progress, and the report of one.

use super::LIST;
use crate::dashboard::kit::progress::Progress;
use crate::dashboard::prelude::*;

#[answer]
struct Import {
    id: String,
    status: String,
    counts: ImportCounts,
    errors: Vec<LineError>,
    created_at: String,
    completed_at: Option<String>,
}

#[answer]
struct ImportCounts {
    total: u64,
    processed: u64,
    created: u64,
    exists: u64,
    invalid: u64,
    refused: u64,
}

#[answer]
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
    let found: &List<Import> = &context.read_list("imports", &call).await?;
    let table = Table::of("Imports", &found.entries)
        .column("Started", |import| {
            maud! {
                a href={ (LIST) "/imports/" (encode(&import.id)) } { (time_or_dash(Some(&import.created_at))) }
            }
        })
        .column("Status", |import| import_badge(&import.status))
        .number("Lines read", |import| {
            format!("{} of {}", grouped(import.counts.processed), grouped(import.counts.total))
        })
        .number("Added", |import| grouped(import.counts.created))
        .number("Already suppressed", |import| grouped(import.counts.exists))
        .number("Left out", |import| grouped(import.counts.invalid.saturating_add(import.counts.refused)));
    let empty = EmptyState {
        title: "No lists imported yet",
        text: "If you move from another service, import its list of bounces and complaints before you send.",
        action: context.allows("import_suppressions").then_some(("/dashboard/suppressions/import", "Import a list")),
    };
    let body = found.fragment(context, &table, empty);
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
    let errors = Table::of("Skipped lines", &import.errors)
        .number("Line", |error| error.line)
        .column("Why", |error| error.message.replace('`', ""));
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
                        p.soft.small { "The first " (import.errors.len()) " of " (grouped(counts.invalid)) " are shown." }
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
