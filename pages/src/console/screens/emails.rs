//! All emails, also those that are no longer in the queue.

use serde_json::Map;

use crate::console::PATH;
use crate::dashboard::kit::filter::{or_refused, refused_filter};
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/emails" => show, reads ["email_list"];
};

const PAGE_SIZE: u64 = 50;
const STATES: &[&str] = &["scheduled", "queued", "deferred", "delivered", "bounced", "failed", "cancelled"];

#[answer]
struct FoundEmails {
    emails: Vec<ListedEmail>,
    has_more: bool,
    next_cursor: Option<String>,
    accounts_searched: u64,
    emails_read: u64,
    searched_back_to: Option<String>,
    /// The index is complete up to this time.
    as_of: Option<String>,
}

#[answer]
struct ListedEmail {
    id: String,
    account: String,
    from: String,
    recipients: Vec<String>,
    subject: Option<String>,
    status: String,
    created_at: Option<String>,
}

impl ListedEmail {
    fn to(&self) -> String {
        let first = self.recipients.first().map_or("–", String::as_str);
        match self.recipients.len() {
            0 | 1 => first.to_owned(),
            count => format!("{first} and {} more", count - 1),
        }
    }
}

fn filters() -> Vec<Filter> {
    vec![
        Filter::text("recipient", "Recipient", "ann@example.com"),
        Filter::text("sender", "Sender", "ada@example.com"),
        Filter::words("status", "State", STATES),
        Filter::text("account", "Account", "acct_… or owner"),
        Filter::date("since", "Accepted since"),
        Filter::text("message_id", "Message-ID", "<id@example.com>"),
    ]
}

fn call(query: &Fields) -> Call {
    let mut filter = Map::new();
    for name in ["recipient", "sender", "status", "account", "message_id"] {
        let value = query.get(name).trim();
        if !value.is_empty() {
            filter.insert(name.to_owned(), value.into());
        }
    }
    let since = query.get("since").trim();
    if !since.is_empty() {
        filter.insert("since".to_owned(), format!("{since}T00:00:00Z").into());
    }
    let cursor = Some(query.get("cursor")).filter(|cursor| !cursor.is_empty());
    Call::new("email_list")
        .json(json!({"filter": Value::Object(filter), "page": {"limit": PAGE_SIZE, "cursor": cursor}}))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = call(context.query());
    let (list, refused): (FoundEmails, _) = or_refused(context.read(&call).await)?;
    let table = Table::of("Emails", &list.emails)
        .column("To", |email| link(format!("{PATH}/emails/{}", encode(&email.id)), email.to()))
        .column("From", |email| address_cell(&email.from))
        .column("Subject", |email| email.subject.as_deref().filter(|subject| !subject.is_empty()).unwrap_or("–"))
        .column("State", |email| Badge::of(&email.status))
        .column("Accepted", |email| time_or_dash(email.created_at.as_deref()))
        .column("Account", |email| link(format!("{PATH}/accounts/{}", encode(&email.account)), &email.account));
    let bar = FilterBar { context, filters: &filters() };
    let body = maud_borrow! {
        (bar)
        div data-fragment="list" {
            @if let Some(refused) = &refused { (refused_filter(refused)) }
            @if let Some(as_of) = &list.as_of {
                div.notice.warning role="status" { p { "The email index lags behind: it is complete up to \
                    " (time_or_dash(Some(as_of))) "." } }
            }
            @if refused.is_none() {
                @if table.is_empty() {
                    (EmptyState {
                        title: if bar.is_active() { "No emails match" } else { "No emails yet" },
                        text: "You can find every accepted email here by recipient, sender, state or Message-ID.",
                        action: None,
                    })
                } @else {
                    (table)
                }
                @if list.has_more {
                    p.help {
                        "Searched: " (counted(list.accounts_searched, "account")) " and " (counted(list.emails_read, "email")) ", back to "
                        (time_or_dash(list.searched_back_to.as_deref())) "."
                    }
                }
                (Pager { context, next_cursor: list.next_cursor.as_deref() })
            }
        }
    };
    Ok(Page::new("All emails", body).same_as(call).into())
}
