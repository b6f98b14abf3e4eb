//! The filtered list as CSV (RFC 4180).

use super::listed;
use super::object::EmailItem;
use crate::dashboard::csv::{CsvColumn, export_list, text};
use crate::dashboard::prelude::*;

const COLUMNS: &[CsvColumn<EmailItem>] = &[
    ("id", |email| email.id.clone()),
    ("status", |email| email.status.clone()),
    ("from", |email| email.from.clone()),
    ("to", |email| email.to.join(", ")),
    ("cc", |email| email.cc.join(", ")),
    ("bcc", |email| email.bcc.join(", ")),
    ("subject", |email| email.subject.clone()),
    ("tags", |email| email.tags.iter().map(|tag| format!("{}:{}", tag.name, tag.value)).collect::<Vec<_>>().join(", ")),
    ("created_at", |email| email.created_at.clone()),
    ("scheduled_at", |email| text(&email.scheduled_at)),
    ("delivered_at", |email| text(&email.delivered_at)),
    ("bounce_reason", |email| text(&email.bounce_reason)),
];

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    export_list(context, "emails", "emails", listed::call(context.query()), COLUMNS).await
}
