//! The audit log: what keys, apps and users did.

#[cfg(test)]
mod tests;

use crate::dashboard::prelude::*;
use crate::dashboard::screens::approvals::operation_title;
use crate::dashboard::screens::emails::day_start;
use crate::dashboard::screens::logs::ActorNames;

const LIST: &str = "/dashboard/audit-log";

pub const PAGES: &[PageRow] = page_rows! {
    "/audit-log" => show, reads ["list_audit_log"];
};

#[answer]
struct AuditEntry {
    operation: String,
    object_id: Option<String>,
    path: String,
    status: u16,
    error_code: Option<String>,
    surface: String,
    api_key_id: Option<String>,
    grant_id: Option<String>,
    user_id: Option<String>,
    approval_id: Option<String>,
    approved_by: Option<String>,
    ip: Option<String>,
    created_at: String,
}

impl AuditEntry {
    fn result(&self) -> Badge {
        match (self.status, &self.error_code) {
            (200..=399, _) => Badge::new(if self.status == 202 { "Accepted" } else { "Done" }, Tone::Good),
            (_, Some(code)) => Badge::new(sentence_case(code), Tone::Bad),
            (status, None) => Badge::new(status.to_string(), Tone::Bad),
        }
    }

    fn surface(&self) -> &str {
        match self.surface.as_str() {
            "api" => "API",
            "dashboard" => "Dashboard",
            "mcp" => "Assistant",
            "approval" => "Approved request",
            other => other,
        }
    }
}

/// The address with one filter: "all like this".
fn filtered(name: &str, value: &str) -> String {
    format!("{LIST}?{name}={}", encode(value))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call = Call::new("list_audit_log")
        .query("limit", "50")
        .filters(query, &["operation", "object_id", "api_key_id", "grant_id", "user_id", "cursor"])
        .query("created_after", day_start(query.get("after"), 0))
        .query("created_before", day_start(query.get("before"), 1));
    let found = &context.read_filtered::<AuditEntry>("entries", &call).await?;
    let names = ActorNames::load(context).await;
    let filters = [
        Filter::text("operation", "Operation", "delete_domain"),
        Filter::text("object_id", "Object", "dom_…"),
        Filter::text("api_key_id", "API key", "key_…"),
        Filter::text("grant_id", "App", "grant_…"),
        Filter::text("user_id", "User", "user_…"),
        Filter::date("after", "From date"),
        Filter::date("before", "To date"),
    ];
    let bar = FilterBar { context, filters: &filters };
    let empty = EmptyState {
        title: if bar.is_active() { "Nothing matches the filters" } else { "Nothing has been changed yet" },
        text: "Each change to the account is listed here for 90 days, with the key or person that made it. Emails \
            sent with an ordinary key are in the list of emails.",
        action: None,
    };
    let table = Table::new("Changes", &["What", "Object", "Who", "Result", "From", "When"])
        .rows(&found.entries, |entry| row(entry, &names));
    let body = bar.with_list(found, &table, empty);
    let page = Page::new("Audit log", body).lead("What API keys, apps and people did in the last 90 days.");
    Ok(page.same_as(call).into())
}

fn row(entry: &AuditEntry, names: &ActorNames) -> Row {
    let what = operation_title(&entry.operation);
    let who = [("api_key_id", &entry.api_key_id), ("grant_id", &entry.grant_id), ("user_id", &entry.user_id)];
    let who = who.into_iter().find_map(|(name, id)| id.as_ref().map(|id| (filtered(name, id), id)));
    Row::new()
        .cell(maud! {
            a href=(filtered("operation", &entry.operation)) { (what) }
            div.small.soft { code { (entry.path) } }
        })
        .cell(maud! {
            @match &entry.object_id {
                Some(id) => { a href=(filtered("object_id", id)) { code { (id) } } }
                None => { span.dash { "–" } }
            }
        })
        .cell(maud! {
            @match &who {
                Some((path, id)) => { a href=(path) { (names.label(id)) } }
                None => "The operator",
            }
            div.small.soft { (entry.surface()) }
        })
        .cell(maud! {
            (entry.result())
            @if let Some(id) = &entry.approval_id {
                div.small.soft {
                    a href=(format!("/dashboard/approvals/{}", encode(id))) { "Approval" }
                    @if let Some(user) = &entry.approved_by { " by " a href=(filtered("user_id", user)) { (names.label(user)) } }
                }
            }
        })
        .cell(or_dash(entry.ip.as_ref().map(|ip| maud! { span.nowrap { (ip) } })))
        .cell(time_or_dash(Some(&entry.created_at)))
}
