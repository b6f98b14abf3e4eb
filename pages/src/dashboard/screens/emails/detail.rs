//! One email: where it is, what it is, what was sent, what happened, and each delivery attempt.

use super::attempt::email_attempts;
use super::content::email_content;
use super::history::history;
use super::object::{EmailAttempt, EmailEvent, WholeEmail};
use super::standing::standings;
use super::{LIST, email_path};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let id = context.id();
    let email = &WholeEmail::read(context, id).await?;
    let events_call = Call::new("list_email_events").id(id).query("limit", "100");
    let events: List<EmailEvent> = context.read_list_allowed("events", &events_call).await?;
    let attempts_call = Call::new("list_email_attempts").id(id).query("limit", "10");
    let attempts: List<EmailAttempt> = context.read_list_allowed("attempts", &attempts_call).await?;
    let timeline = history(&events.entries);
    let body = maud! {
        div.columns.wide-first {
            div.sections {
                div.sections data-fragment="standing" {
                    (standings(context, email))
                    section aria-labelledby="attempts" {
                        h2 #attempts { "Attempts" }
                        (email_attempts(&attempts.entries))
                        @if attempts.next_cursor.is_some() { p { a href={ (email_path(id)) "/attempts" } { "All attempts" } } }
                    }
                }
                // Outside the parts that are refreshed: the frame would load again at every event.
                (email_content(context, email))
            }
            div.sections data-fragment="facts" {
                section aria-labelledby="facts" { h2 #facts { "Details" } div.card { (facts(email)) } }
                (similar_emails(email))
                section aria-labelledby="history" {
                    h2 #history { "What happened" }
                    @if timeline.is_empty() { p.soft { "Nothing yet." } } @else { div.card { (timeline) } }
                    @if events.next_cursor.is_some() { p.small.soft { "The newest 100 events are shown." } }
                }
            }
        }
    };
    let lead = format!("From {} to {}", email.item.from, email.item.recipients());
    let page =
        Page::new(email.item.title(), body).below(LIST, "Emails").lead(lead).actions(email_actions(context, email));
    Ok(page.same_as(Call::new("get_email").id(id)).same_as(events_call).same_as(attempts_call).live().into())
}

fn email_actions(context: &Context<'_>, email: &WholeEmail) -> impl Renderable {
    let (item, allows) = (&email.item, move |operation: &str| context.allows(operation));
    let path = email_path(&item.id);
    maud! {
        @if item.is_scheduled() && allows("update_email") {
            a.button href={ (path) "/reschedule" } { "Send at another time" }
        }
        @if item.is_scheduled() && allows("cancel_email") { a.button href={ (path) "/cancel" } { "Cancel" } }
        @if item.is_resendable() && allows("resend_email") { a.button href={ (path) "/resend" } { "Send again" } }
    }
}

fn facts(email: &WholeEmail) -> Facts {
    let item = &email.item;
    let template = email.template.as_ref().map(|template| {
        let name = template.alias.clone().unwrap_or_else(|| template.id.clone());
        maud! { a href={ "/dashboard/templates/" (encode(&template.id)) } { (name) } " version " (template.version) }
    });
    Facts::new()
        .row("Status", Badge::of(&item.status))
        .row("Accepted", time_or_dash(Some(&item.created_at)))
        .optional("Scheduled for", item.scheduled_at.as_deref().map(|at| time_or_dash(Some(at))))
        .optional("First delivered", item.delivered_at.as_deref().map(|at| time_or_dash(Some(at))))
        .row("Category", sentence_case(&email.category))
        .row("Size", file_size(email.size))
        .optional("Template", template)
        .optional("Sent again from", email.resent_from.as_ref().map(|id| maud! { a href=(email_path(id)) { (id) } }))
        .row("Id", maud! { code { (item.id) } })
}

/// Labels with the values of an email, and the query of the list that finds all with the same value.
fn like_this(email: &WholeEmail) -> Vec<(String, String)> {
    let item = &email.item;
    let address = item.from.rsplit_once('<').map_or(item.from.as_str(), |(_, rest)| rest.trim_end_matches('>'));
    let mut links = vec![
        (format!("Subject “{}”", item.title()), format!("q={}", encode(&item.subject))),
        (format!("From {address}"), format!("from={}", encode(address))),
        (format!("Status {}", item.status), format!("status={}", encode(&item.status))),
        (format!("Category {}", email.category), format!("category={}", encode(&email.category))),
    ];
    if item.subject.trim().is_empty() {
        links.remove(0);
    }
    for tag in &item.tags {
        let tag = format!("{}:{}", tag.name, tag.value);
        links.push((format!("Tag {tag}"), format!("tag={}", encode(&tag))));
    }
    if let Some(template) = &email.template {
        let name = template.alias.as_deref().unwrap_or(&template.id);
        links.push((format!("Template {name}"), format!("template={}", encode(&template.id))));
    }
    links
}

/// Links to the list with the filters that this email matches.
fn similar_emails(email: &WholeEmail) -> impl Renderable {
    maud! {
        section aria-labelledby="like-this" {
            h2 #like-this { "All like this" }
            ul.chips { @for (label, query) in like_this(email) { li { a href={ (LIST) "?" (query) } { (label) } } } }
        }
    }
}

/// All attempts of an email, in pages.
pub(super) async fn show_attempts(context: &Context<'_>) -> Result<View, Failure> {
    let id = context.id();
    let call =
        Call::new("list_email_attempts").id(id).query("limit", "50").query("cursor", context.query().get("cursor"));
    let found: List<EmailAttempt> = context.read_list("attempts", &call).await?;
    let body = maud! {
        div data-fragment="list" {
            (email_attempts(&found.entries))
            (Pager { context, next_cursor: found.next_cursor.as_deref() })
        }
    };
    let page = Page::new("Delivery attempts", body).below(LIST, "Emails").below(email_path(id), "Email");
    Ok(page.same_as(call).live().into())
}
