//! The list of received mail, and its export.

use super::object::{ReceivedItem, ReceivedList, proof_badge};
use super::{LIST, mail_path};
use crate::dashboard::csv::{ROWS_MAX, export_list};
use crate::dashboard::kit::filter::{or_refused, refused_filter};
use crate::dashboard::kit::list_view::EmptyPage;
use crate::dashboard::kit::text::address_cell;
use crate::dashboard::prelude::*;
use crate::dashboard::request::Fields;
use crate::dashboard::screens::emails::{day_start, domain_filter};

async fn filters(context: &Context<'_>) -> Result<[Filter; 6], Failure> {
    Ok([
        Filter::text("from", "Sender", "grace@example.net"),
        Filter::text("to", "Recipient", "support@example.com"),
        Filter::words("spam_status", "Spam", &["not_spam", "spam", "not_checked"]),
        Filter::date("after", "From date"),
        Filter::date("before", "To date"),
        domain_filter(context, "Receiving domain").await?,
    ])
}

fn call(query: &Fields) -> Call {
    let mut call = Call::new("list_received_emails");
    for name in ["from", "to", "spam_status", "domain_id"] {
        call = call.query(name, query.get(name).trim());
    }
    call = call.query("received_after", day_start(query.get("after"), 0));
    call.query("received_before", day_start(query.get("before"), 1))
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters = filters(context).await?;
    let query = context.query();
    let call = call(query).query("cursor", query.get("cursor")).query("limit", "50");
    let (found, refused) =
        or_refused(context.read_page(&call, |page: &ReceivedList| (page.received_emails.len(), page.older())).await)?;
    let bar = FilterBar { context, filters: &filters };
    let table = &table(&found.received_emails);
    let body = maud! {
        (bar)
        div data-fragment="list" {
            @if let Some(refused) = &refused {
                (refused_filter(refused))
            } @else if table.is_empty() {
                (EmptyPage { context, empty: empty(context, &bar), next_cursor: found.older(), searched_until: None })
            } @else {
                (table)
                div.below-list {
                    p.small.soft { "The export has the newest " (grouped(ROWS_MAX as u64)) " that match." }
                    (Pager { context, next_cursor: found.next_cursor.as_deref() })
                }
            }
        }
    };
    let export = query.with("cursor", "").with("done", "").to_query();
    let actions = maud! {
        @if !table.is_empty() { a.button href={ (LIST) "/export.csv?" (export) } { "Export as CSV" } }
    };
    Ok(Page::new("Received mail", body).actions(actions).same_as(call).live().into())
}

fn table(mails: &[ReceivedItem]) -> Table {
    let mut table =
        Table::new("Received mail", &["Subject", "From", "To", "DMARC", "Files", "Received"]).numbers(&["Files"]);
    for mail in mails {
        let (path, badge) = (mail_path(&mail.email_id), mail.spam_badge());
        table.push(
            Row::new()
                .cell(maud! {
                    a.clamp href=(path) { (mail.title()) }
                    @if let Some(badge) = &badge { " " (badge) }
                })
                .cell(address_cell(&mail.from))
                .cell(address_cell(&mail.rcpt_to))
                .cell(proof_badge(&mail.auth.dmarc))
                .cell(maud! { @if mail.attachment_count == 0 { span.dash { "–" } } @else { (mail.attachment_count) } })
                .cell(time_or_dash(Some(&mail.received_at))),
        );
    }
    table
}

fn empty<'a>(context: &Context<'_>, bar: &FilterBar<'_>) -> EmptyState<'a> {
    if bar.is_active() || !context.query().get("cursor").is_empty() {
        return EmptyState {
            title: "No emails match the filters",
            text: "All filters must match. Remove one, or widen the date range.",
            action: Some((LIST, "Show all mail")),
        };
    }
    EmptyState {
        title: "No email has been received yet",
        text: "Mail to your domains arrives here, is checked, and is passed on to your webhooks. Turn on receiving \
            for a domain, then publish its MX record.",
        action: context.allows("update_domain").then_some(("/dashboard/domains", "Go to your domains")),
    }
}

pub(super) async fn export(context: &Context<'_>) -> Result<View, Failure> {
    let columns = [
        "id",
        "received_at",
        "from",
        "rcpt_to",
        "to",
        "cc",
        "subject",
        "spam_status",
        "spf",
        "dkim",
        "dmarc",
        "attachments",
    ];
    let row = |mail: ReceivedItem| {
        [
            mail.email_id,
            mail.received_at,
            mail.from,
            mail.rcpt_to,
            mail.to.join(", "),
            mail.cc.join(", "),
            mail.subject,
            mail.spam_status,
            mail.auth.spf,
            mail.auth.dkim,
            mail.auth.dmarc,
            mail.attachment_count.to_string(),
        ]
    };
    let rows = |found: ReceivedList| (found.received_emails.into_iter().map(row).collect(), found.next_cursor);
    export_list(context, "received", columns, call(context.query()), rows).await
}
