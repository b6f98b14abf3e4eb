//! The filtered list as CSV (RFC 4180).

use super::listed;
use super::object::{EmailItem, EmailList};
use crate::dashboard::csv::export_list;
use crate::dashboard::prelude::*;

const COLUMNS: [&str; 12] = [
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
];

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let rows = |found: EmailList| (found.emails.into_iter().map(row).collect(), found.next_cursor);
    export_list(context, "emails", COLUMNS, listed::call(context.query()), rows).await
}

fn row(email: EmailItem) -> [String; COLUMNS.len()] {
    let tags: Vec<_> = email.tags.iter().map(|tag| format!("{}:{}", tag.name, tag.value)).collect();
    [
        email.id,
        email.status,
        email.from,
        email.to.join(", "),
        email.cc.join(", "),
        email.bcc.join(", "),
        email.subject,
        tags.join(", "),
        email.created_at,
        email.scheduled_at.unwrap_or_default(),
        email.delivered_at.unwrap_or_default(),
        email.bounce_reason.unwrap_or_default(),
    ]
}
