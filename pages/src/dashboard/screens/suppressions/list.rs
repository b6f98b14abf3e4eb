//! The list of suppressions, and its export.

use super::object::{REASONS, SOURCES, Suppression, reason_badge, source_text};
use super::{LIST, suppression_path, tabs};
use crate::dashboard::kit::filter::refused_filter;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::day_start;

fn filters() -> [Filter; 5] {
    [
        Filter::text("email", "Address or domain", "@example.net"),
        Filter::words("reason", "Reason", REASONS),
        Filter::words("source", "Added by", SOURCES),
        Filter::date("after", "From date"),
        Filter::date("before", "To date"),
    ]
}

/// A call with the filters of a query; without a cursor.
fn call(operation: &'static str, query: &Fields) -> Call {
    let email = query.get("email").trim();
    // A domain without its sign is a domain.
    let email = if email.is_empty() || email.contains('@') { email.to_owned() } else { format!("@{email}") };
    let mut call = Call::new(operation).query("email", email).filters(query, &["reason", "source"]);
    call = call.query("created_after", day_start(query.get("after"), 0));
    call.query("created_before", day_start(query.get("before"), 1))
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call = call("list_suppressions", query).query("cursor", query.get("cursor")).query("limit", "50");
    let found = &context.read_filtered::<Suppression>("suppressions", &call).await?;
    let bar = FilterBar { context, filters: &filters() };
    let can_remove = context.allows("delete_suppression");
    let table = table(&found.entries, can_remove);
    let pager = Pager { context, next_cursor: found.next_cursor.as_deref() };
    let empty = found.empty_page(context, empty(context, bar.is_active() || !query.get("cursor").is_empty()));
    let has_entries = !table.is_empty();
    let body = maud! {
        (tabs(context, LIST))
        (bar)
        div data-fragment="list" {
            @if let Some(refused) = &found.refused {
                (refused_filter(refused))
            } @else if !has_entries {
                (empty)
            } @else if can_remove {
                form method="get" action={ (LIST) "/selected" } {
                    (table)
                    div.below-list {
                        button.button type="submit" { "Remove the selected" }
                        (pager)
                    }
                }
            } @else {
                (table)
                (pager)
            }
        }
    };
    let export = query.with("cursor", "").with("done", "").to_query();
    let actions = maud! {
        @if context.allows("check_suppressions") { a.button href={ (LIST) "/check" } { "Check addresses" } }
        @if has_entries && context.allows("export_suppressions") { a.button href={ (LIST) "/export.csv?" (export) } { "Export as CSV" } }
        @if context.allows("list_suppression_imports") { a.button href={ (LIST) "/imports" } { "Earlier imports" } }
        @if context.allows("import_suppressions") { a.button href={ (LIST) "/import" } { "Import" } }
        @if context.allows("create_suppression") { a.button.primary href={ (LIST) "/new" } { "Add" } }
    };
    let page = Page::new("Suppressions", body).actions(actions);
    Ok(page.lead("Nothing is sent to these addresses and domains.").same_as(call).live().into())
}

fn table(suppressions: &[Suppression], can_remove: bool) -> Table {
    let columns: &[&str] = &["Address", "Reason", "Added by", "Expires", "Added", "Select"];
    Table::new("Suppressions", if can_remove { columns } else { &columns[..5] }).rows(suppressions, |suppression| {
        let path = suppression_path(&suppression.id);
        let mut row = Row::new()
            .cell(maud! {
                a href=(path) { (address_cell(&suppression.email)) }
                @if suppression.is_domain() { " " span.tag { "whole domain" } }
                @if let Some(note) = &suppression.note { div.small.soft { (note) } }
            })
            .cell(reason_badge(&suppression.reason))
            .cell(source_text(&suppression.source))
            .cell(maud! {
                @match suppression.expires_at.as_deref() {
                    Some(at) => { (time_or_dash(Some(at))) }
                    None => "Never",
                }
            })
            .cell(time_or_dash(Some(&suppression.created_at)));
        if can_remove {
            let label = format!("Select {}", suppression.email);
            row = row.cell(maud! { input type="checkbox" name="id" value=(suppression.id) aria-label=(label); });
        }
        row
    })
}

/// No suppressions: because there are none, or because the filters exclude them.
fn empty(context: &Context<'_>, is_filtered: bool) -> EmptyState<'static> {
    if is_filtered {
        return EmptyState {
            title: "No suppressions match the filters",
            text: "Enter the complete address, or the name of a whole domain. To see whether mail is sent to an \
                address, check it.",
            action: Some((LIST, "Show all suppressions")),
        };
    }
    EmptyState {
        title: "No suppressions yet",
        text: "Addresses that bounce, complain or unsubscribe are added here automatically, so that nothing more is \
            sent to them. If you are moving from another service, import its list before you send.",
        action: context.allows("import_suppressions").then_some(("/dashboard/suppressions/import", "Import a list")),
    }
}

pub(super) async fn export(context: &Context<'_>) -> Result<View, Failure> {
    let call = call("export_suppressions", context.query());
    let file_name = format!("suppressions-{}.csv", context.now().strftime("%Y-%m-%d"));
    Ok(View::Download { call, file_name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_becomes_the_call() {
        let call =
            call("list_suppressions", &Fields::parse(b"email=+example.net&reason=manual&source=&after=2026-01-31"));
        let expected = [("email", "@example.net"), ("reason", "manual"), ("created_after", "2026-01-31T00:00:00Z")];
        assert_eq!(call.query, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
