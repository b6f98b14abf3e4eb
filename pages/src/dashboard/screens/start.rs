//! The start page: the first steps with their state, what needs attention, the last emails, and usage.

mod attention;
mod readings;
mod steps;
#[cfg(test)]
mod tests;

use self::attention::{AttentionItem, items};
use self::readings::{AccountUsage, StartReadings};
use self::steps::{start_steps, steps};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::{EmailHistory, EmailItem, sent_time};

pub const PAGES: &[PageRow] = page_rows! {
    "" => show;
};

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let readings = StartReadings::read(context).await?;
    let (steps, items) = (steps(context, &readings), items(context, &readings));
    let emails = readings.emails.as_deref();
    let body = maud_borrow! {
        (start_steps(&steps))
        div data-fragment="list" {
            (attention_list(&items))
            div.columns.wide-first {
                @if let Some(emails) = emails { (last_emails(emails, &readings.past, context.allows("send_email"))) }
                @if let Some(account) = &readings.account { (usage_card(account)) }
            }
        }
    };
    let page = Page::new("Start", body).same_as(Call::new("list_emails").query("limit", "5"));
    Ok(page.same_as(Call::new("get_account")).live().into())
}

/// The list of what needs the person.
fn attention_list(items: &[AttentionItem]) -> impl Renderable {
    maud! {
        section {
            h2 { "Needs your attention" }
            @if items.is_empty() {
                p.card.calm { "Nothing at the moment." }
            } @else {
                ul.attention {
                    @for item in items {
                        li {
                            (Badge::new(item.label, item.tone))
                            div {
                                p { a href=(item.path) { (item.title) } }
                                @if !item.text.is_empty() { p.help { (item.text) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn last_emails(emails: &[EmailItem], past: &EmailHistory, may_send: bool) -> impl Renderable {
    let none_retained = past.none_retained();
    let table = Table::of("Latest emails", emails)
        .column("To", |email| {
            let to = email.to.first().unwrap_or(&email.from);
            maud! { a href={ "/dashboard/emails/" (encode(&email.id)) } { (address_cell(to)) } }
        })
        .column("Subject", |email| maud! { span.clamp { (email.subject) } })
        .column("Status", |email| Badge::of(&email.status))
        .column("Sent", |email| sent_time(email.sent_at.as_deref(), email.scheduled_at.as_deref(), &email.status));
    maud! {
        section {
            div.section-head { h2 { "Latest emails" } @if !table.is_empty() { a href="/dashboard/emails" { "All emails" } } }
            @if table.is_empty() {
                div.card {
                    @if let Some(none_retained) = &none_retained { p.soft { (none_retained) "." } }
                    p.soft { "Every email that you send appears here, with what happened to it." }
                    @if may_send {
                        p {
                            a.button href="/dashboard/emails/new" {
                                @if none_retained.is_some() { "Write an email" } @else { "Send the first one" }
                            }
                        }
                    }
                }
            } @else {
                (table)
            }
        }
    }
}

/// Emails and domains against the limits of the plan.
fn usage_card(account: &AccountUsage) -> impl Renderable {
    let (usage, limits) = (&account.usage, &account.limits);
    let rows = [
        ("Emails this month", usage.emails_month, limits.emails_per_month),
        ("Emails today", usage.emails_day, limits.emails_per_day),
        ("Domains", usage.domains, limits.domains),
    ];
    maud! {
        section {
            div.section-head { h2 { "Usage" } span.small.soft { "Plan: " (sentence_case(&account.account.plan)) } }
            div.card.usage {
                @for (title, used, limit) in rows {
                    div {
                        p { (title) span.number { (grouped(used)) @if let Some(limit) = limit { " of " (grouped(limit)) } } }
                        @if let Some(limit) = limit { progress aria-label=(title) value=(used.min(limit)) max=(limit.max(1)) {} }
                    }
                }
                p.small.soft { "The month ends " (time_or_dash(usage.period_end.as_deref())) "." }
            }
        }
    }
}
