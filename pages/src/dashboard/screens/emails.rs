//! Emails: the list with its filters.

use hypertext::prelude::*;
use serde::Deserialize;

use super::encode;
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::kit::badge::Badge;
use crate::dashboard::kit::empty::EmptyState;
use crate::dashboard::kit::filter::{Filter, FilterBar};
use crate::dashboard::kit::pager::Pager;
use crate::dashboard::kit::table::{Row, Table};
use crate::dashboard::kit::time::time_or_dash;
use crate::dashboard::page::Page;
use crate::dashboard::table::{PageAccess, PageRow, View};

pub const PAGES: &[PageRow] = &[PageRow {
    path: "/emails",
    access: PageAccess::SignedIn,
    reads: &["list_emails"],
    show: |context| Box::pin(list(context)),
    forms: &[],
}];

#[derive(Debug, Deserialize)]
struct EmailList {
    emails: Vec<EmailItem>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct EmailItem {
    id: String,
    from: String,
    to: Vec<String>,
    #[serde(default)]
    subject: String,
    status: String,
    created_at: String,
}

async fn list(context: &Context<'_>) -> Result<View, Failure> {
    let filters = [Filter::text("to", "Recipient", "grace@example.net")];
    let query = context.query();
    let call = Call::new("list_emails").query("to", query.get("to")).query("cursor", query.get("cursor"));
    let found: EmailList = context.read(&call).await?;
    let bar = FilterBar { context, filters: &filters };
    let mut table = Table::new("Emails", &["To", "Subject", "Status", "Sent"]);
    for email in &found.emails {
        let to = email.to.first().map_or(email.from.as_str(), String::as_str);
        table.push(
            Row::new()
                .link(format!("/dashboard/emails/{}", encode(&email.id)), to)
                .cell(&email.subject)
                .cell(Badge::of(&email.status))
                .cell(time_or_dash(Some(&email.created_at))),
        );
    }
    let empty = EmptyState {
        title: "No emails yet",
        text: "Every email that you send is listed here with what happened to it.",
        action: context.allows("send_email").then_some(("/dashboard/emails/new", "Send the first one")),
    };
    let body = maud! {
        (bar)
        div data-fragment="list" {
            @if table.is_empty() { (empty) } @else { (table) (Pager { context, next_cursor: found.next_cursor.as_deref() }) }
        }
    };
    Ok(Page::new("Emails", body).same_as(call).live().into())
}
