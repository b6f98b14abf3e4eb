//! The list of received mail, and its export.

use super::object::{ReceivedItem, proof_badge};
use super::{LIST, mail_path};
use crate::dashboard::csv::{CsvColumn, ROWS_MAX, export_list};
use crate::dashboard::kit::filter::refused_filter;
use crate::dashboard::prelude::*;
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
    let mut call = Call::new("list_received_emails").filters(query, &["from", "to", "spam_status", "domain_id"]);
    call = call.query("received_after", day_start(query.get("after"), 0));
    call.query("received_before", day_start(query.get("before"), 1))
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let filters = filters(context).await?;
    let query = context.query();
    let call = call(query).query("cursor", query.get("cursor")).query("limit", "50");
    let found = &context.read_filtered("received_emails", &call).await?;
    let bar = FilterBar { context, filters: &filters };
    let table = &table(&found.entries);
    let body = maud! {
        (bar)
        div data-fragment="list" {
            @if let Some(refused) = &found.refused {
                (refused_filter(refused))
            } @else if table.is_empty() {
                (found.empty_page(context, empty(context, &bar)))
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
    Table::new("Received mail", &["Subject", "From", "To", "DMARC", "Files", "Received"]).numbers(&["Files"]).rows(
        mails,
        |mail| {
            let (path, badge) = (mail_path(&mail.email_id), mail.spam_badge());
            Row::new()
                .cell(maud! {
                    a.clamp href=(path) { (mail.title()) }
                    @if let Some(badge) = &badge { " " (badge) }
                })
                .cell(address_cell(&mail.from))
                .cell(address_cell(&mail.rcpt_to))
                .cell(proof_badge(&mail.auth.dmarc))
                .cell(maud! { @if mail.attachment_count == 0 { span.dash { "–" } } @else { (mail.attachment_count) } })
                .cell(time_or_dash(Some(&mail.received_at)))
        },
    )
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
    let columns: &[CsvColumn<ReceivedItem>] = &[
        ("id", |mail| mail.email_id.clone()),
        ("received_at", |mail| mail.received_at.clone()),
        ("from", |mail| mail.from.clone()),
        ("rcpt_to", |mail| mail.rcpt_to.clone()),
        ("to", |mail| mail.to.join(", ")),
        ("cc", |mail| mail.cc.join(", ")),
        ("subject", |mail| mail.subject.clone()),
        ("spam_status", |mail| mail.spam_status.clone()),
        ("spf", |mail| mail.auth.spf.clone()),
        ("dkim", |mail| mail.auth.dkim.clone()),
        ("dmarc", |mail| mail.auth.dmarc.clone()),
        ("attachments", |mail| mail.attachment_count.to_string()),
    ];
    export_list(context, "received", "received_emails", call(context.query()), columns).await
}
