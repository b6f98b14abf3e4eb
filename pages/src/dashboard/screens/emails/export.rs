//! The filtered list as CSV (RFC 4180).

use super::listed;
use super::object::{EmailItem, EmailList};
use crate::dashboard::backend::Failure;
use crate::dashboard::context::Context;
use crate::dashboard::csv::CsvText;
use crate::dashboard::table::View;

/// Most rows of an export.
pub(super) const ROWS_MAX: usize = 10_000;
/// Most calls of an export: with filters, a page can have no entries though there are more.
const CALLS_MAX: usize = 200;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let base = listed::call(context.query()).query("limit", "100");
    let mut csv = CsvText::new(&[
        "id",
        "status",
        "from",
        "to",
        "cc",
        "bcc",
        "subject",
        "tags",
        "created_at",
        "scheduled_at",
        "delivered_at",
        "bounce_reason",
    ]);
    let mut cursor = String::new();
    let mut is_complete = false;
    for _ in 0..CALLS_MAX {
        let found: EmailList = context.read(&base.clone().query("cursor", &cursor)).await?;
        for email in found.emails.iter().take(ROWS_MAX - csv.rows()) {
            push(&mut csv, email);
        }
        cursor = found.next_cursor.unwrap_or_default();
        is_complete = cursor.is_empty();
        if is_complete || csv.rows() >= ROWS_MAX || csv.is_full() {
            break;
        }
    }
    let part = if is_complete { "" } else { "-newest-part" };
    let day = context.now().strftime("%Y-%m-%d");
    let file_name = format!("emails-{day}{part}.csv");
    Ok(View::File { media_type: "text/csv; charset=utf-8", file_name, content: csv.finish() })
}

fn push(csv: &mut CsvText, email: &EmailItem) {
    let tags: Vec<_> = email.tags.iter().map(|tag| format!("{}:{}", tag.name, tag.value)).collect();
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    csv.push(&[
        email.id.clone(),
        email.status.clone(),
        email.from.clone(),
        email.to.join(", "),
        email.cc.join(", "),
        email.bcc.join(", "),
        email.subject.clone(),
        tags.join(", "),
        email.created_at.clone(),
        or_empty(&email.scheduled_at),
        or_empty(&email.delivered_at),
        or_empty(&email.bounce_reason),
    ]);
}
