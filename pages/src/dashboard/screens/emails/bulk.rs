//! Several emails at once: cancel those that are scheduled, send the others again. The page before it shows which.

use std::collections::BTreeMap;

use super::change::resend_call;
use super::object::{EmailItem, WholeEmail};
use super::{LIST, email_path, listed};
use crate::dashboard::prelude::*;
use crate::dashboard::request::marked_ids;

/// The marked emails. The form of the list sends the list's own address, so one call reads those that are still on that
/// page; the others are read one by one.
async fn read(context: &Context<'_>) -> Result<Vec<EmailItem>, Failure> {
    let query = context.query();
    let call = listed::call(query).query("cursor", query.get("cursor")).query("limit", "50");
    let page: List<EmailItem> = context.read_filtered("emails", &call).await?;
    let mut listed: BTreeMap<_, _> = page.entries.into_iter().map(|email| (email.id.clone(), email)).collect();
    let mut emails = Vec::new();
    for id in marked_ids(query.all("id")) {
        if let Some(email) = listed.remove(id) {
            emails.push(email);
            continue;
        }
        // An email that is gone by now is left out.
        emails.extend(if_found(WholeEmail::read(context, id).await)?.map(|email| email.item));
    }
    Ok(emails)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let emails = read(context).await?;
    let scheduled: Vec<_> = emails.iter().filter(|email| email.is_scheduled()).collect();
    let resendable: Vec<_> = emails.iter().filter(|email| email.is_resendable()).collect();
    let is_empty = emails.is_empty();
    let confidential = emails.iter().filter(|email| email.confidential && !email.is_scheduled()).count();
    let rest = emails.len() - scheduled.len() - resendable.len() - confidential;
    let empty = EmptyState {
        title: "No emails selected",
        text: "Select emails in the list, then come back here.",
        action: Some((LIST, "Go to the list")),
    };
    let cancel_label = format!("Cancel {}", emails_in_words(scheduled.len()));
    let resend_label = format!("Resend {}", emails_in_words(resendable.len()));
    let cancel = form("cancel", &cancel_label, context).danger();
    let resend = form("resend", &resend_label, context);
    let (cancel, resend) = (with_ids(cancel, &scheduled), with_ids(resend, &resendable));
    let body = maud! {
        @if is_empty { (empty) }
        @if !scheduled.is_empty() && context.allows("cancel_email") {
            section {
                h2 { "Cancel" }
                p { "These are scheduled. They will not be sent to anyone." }
                (table("Emails that are cancelled", &scheduled))
                (cancel.within(context))
            }
        }
        @if !resendable.is_empty() && context.allows("resend_email") {
            section {
                h2 { "Send again" }
                p { "A new email goes to all recipients of each, including those who already have it. Attached files \
                    are sent again." }
                (table("Emails that are sent again", &resendable))
                (resend.within(context))
            }
        }
        @if confidential > 0 {
            p.soft { "Confidential, so cannot be sent again: " (emails_in_words(confidential)) "." }
        }
        @if rest > 0 { p.soft { "Being sent, so cannot be changed: " (emails_in_words(rest)) "." } }
    };
    Ok(Page::new("Selected emails", body).below(LIST, "Emails").into())
}

fn form<'f>(name: &'f str, submit: &'f str, context: &Context<'_>) -> Form<'f> {
    Form::new(name, submit, vec![form_key::field(context)])
}

fn with_ids<'f>(mut form: Form<'f>, emails: &[&EmailItem]) -> Form<'f> {
    let ids: Vec<_> = emails.iter().map(|email| email.id.as_str()).collect();
    form.fields.push(Field::hidden("ids", ids.join(" ")).ignored());
    form
}

fn emails_in_words(count: usize) -> String {
    if count == 1 { "1 email".into() } else { format!("{count} emails") }
}

fn table(caption: &str, emails: &[&EmailItem]) -> Table {
    Table::of(caption, emails)
        .column("Subject", |email| link(email_path(&email.id), email.title()))
        .column("To", |email| email.recipients())
        .column("Status", |email| Badge::of(&email.status))
        .into()
}

pub(super) async fn cancel(context: &Context<'_>) -> Result<Outcome, Failure> {
    each(context, "Cancelled", |id| Call::new("cancel_email").id(id)).await
}

pub(super) async fn resend(context: &Context<'_>) -> Result<Outcome, Failure> {
    each(context, "Sent again", |id| resend_call(context, id)).await
}

/// Calls an operation for each email; the page says what came of each.
async fn each(context: &Context<'_>, done: &str, call: impl Fn(&str) -> Call) -> Result<Outcome, Failure> {
    let mut table = Table::new("Results", &["Email", "Result", "Why"]);
    let ids = marked_ids(context.form().get("ids").split_whitespace());
    let mut failed = 0;
    for id in &ids {
        let (badge, reason) = match context.perform(&call(id)).await {
            Ok(_) => (Badge::new(done, Tone::Good), String::new()),
            Err(failure) if failure.code == "unauthorized" => return Err(failure),
            Err(failure) => {
                failed += 1;
                (Badge::new("Not done", Tone::Bad), failure.message)
            }
        };
        table.push(Row::new().link(email_path(id), id).cell(badge).cell(reason));
    }
    if failed == 0 {
        let notice = if done == "Cancelled" { "cancelled" } else { "sent" };
        return Ok(Outcome::done(LIST, notice));
    }
    let body = maud! {
        p { (failed) " of " (emails_in_words(ids.len())) " could not be changed." }
        (table)
        p { a.button href=(LIST) { "Go to the list" } }
    };
    Ok(Outcome::once(Page::new("Selected emails", body).below(LIST, "Emails")))
}
