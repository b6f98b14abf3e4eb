//! The list of emails.

use super::object::{EmailItem, sent_time};
use super::past::EmailHistory;
use super::{LIST, email_path, listed};
use crate::dashboard::csv::ROWS_MAX;
use crate::dashboard::kit::filter::refused_filter;
use crate::dashboard::kit::text::input_value;
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters = listed::filters(context).await?;
    let query = context.query();
    let call = listed::call(query).query("cursor", query.get("cursor")).query("limit", "50");
    let found = &context.read_filtered("emails", &call).await?;
    let bar = FilterBar { context, filters: &filters };
    let can_change = context.allows("resend_email") && context.allows("cancel_email");
    let table = table(&found.entries, can_change);
    let pager = Pager { context, next_cursor: found.next_cursor.as_deref() };
    let is_filtered = bar.is_active() || !query.get("cursor").is_empty();
    let has_none = table.is_empty() && !is_filtered && found.refused.is_none();
    let none_retained = if has_none { EmailHistory::read(context).await.none_retained() } else { None };
    let list = maud! {
        @if !table.is_empty() && can_change {
            form method="get" action={ (LIST) "/selected" } {
                // The page of the marked emails reads this list again.
                @for (name, value) in query.iter().filter(|(name, _)| !matches!(*name, "id" | "done")) {
                    input type="hidden" name=(name) value=(input_value(value));
                }
                (table)
                div.below-list {
                    button.button type="submit" { "Cancel or resend the selected" }
                    (export_bound())
                    (pager)
                }
            }
        } @else if !table.is_empty() {
            (table)
            div.below-list { (export_bound()) (pager) }
        } @else if let Some(refused) = &found.refused {
            (refused_filter(refused))
        } @else {
            (found.empty_page(context, empty(context, is_filtered, none_retained.as_deref())))
        }
    };
    let body = maud! {
        (bar)
        div data-fragment="list" { (list) }
    };
    let export = query.with("cursor", "").with("done", "").to_query();
    let actions = maud! {
        @if !found.entries.is_empty() { a.button href={ (LIST) "/export.csv?" (export) } { "Export as CSV" } }
        @if context.allows("send_email") { a.button.primary href={ (LIST) "/new" } { "Write an email" } }
    };
    Ok(Page::new("Emails", body).actions(actions).same_as(call).live().into())
}

/// The bound of the export, in words.
fn export_bound() -> impl Renderable {
    let rows = grouped(ROWS_MAX as u64);
    maud! { p.small.soft { "The export has the newest " (rows) " that match." } }
}

fn table(emails: &[EmailItem], can_change: bool) -> Table {
    let columns: &[&str] = &["Subject", "To", "Status", "Sent", "Select"];
    Table::new("Emails", if can_change { columns } else { &columns[..4] }).rows(emails, |email| {
        let path = email_path(&email.id);
        let mut row = Row::new()
            .cell(maud! {
                a.clamp href=(path) { (email.title()) }
                @for tag in email.tags.iter().take(3) { " " span.tag { (tag.name) ": " (tag.value) } }
            })
            .cell(address_cell(&email.recipients()))
            .cell(Badge::of(&email.status))
            .cell(sent_time(email.sent_at.as_deref(), email.scheduled_at.as_deref(), &email.status));
        if can_change {
            let label = format!("Select “{}” to {}", email.title(), email.recipients());
            row = row.cell(maud! { input type="checkbox" name="id" value=(email.id) aria-label=(label); });
        }
        row
    })
}

/// No emails: because there are none, because those that were sent are no longer retained, or because the filters exclude
/// them.
fn empty<'a>(context: &Context<'_>, is_filtered: bool, none_retained: Option<&'a str>) -> EmptyState<'a> {
    if is_filtered {
        return EmptyState {
            title: "No emails match the filters",
            text: "All filters must match. Remove one, or widen the date range.",
            action: Some((LIST, "Show all emails")),
        };
    }
    let write = if none_retained.is_some() { "Write an email" } else { "Write the first one" };
    EmptyState {
        title: none_retained.unwrap_or("No emails yet"),
        text: "Every email that you send is listed here, with what happened for each recipient.",
        action: context.allows("send_email").then_some(("/dashboard/emails/new", write)),
    }
}
