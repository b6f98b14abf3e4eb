//! Removes several suppressions. The page before it shows which.

use super::detail::{COMPLAINT, force_field, remove_call};
use super::object::{Suppression, reason_badge};
use super::{LIST, suppression_path};
use crate::dashboard::prelude::*;
use crate::dashboard::request::marked_ids;

/// The suppressions of ids, each once; those that are gone are left out.
async fn read_all<'i>(context: &Context<'_>, ids: impl Iterator<Item = &'i str>) -> Result<Vec<Suppression>, Failure> {
    let mut found = Vec::new();
    for id in marked_ids(ids) {
        found.extend(if_found(Suppression::read(context, id).await)?);
    }
    Ok(found)
}

fn in_words(count: usize) -> String {
    if count == 1 { "1 suppression".to_owned() } else { format!("{count} suppressions") }
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let found = read_all(context, context.query().all("id")).await?;
    let has_complaints = found.iter().any(Suppression::is_complaint);
    let ids: Vec<_> = found.iter().map(|suppression| suppression.id.as_str()).collect();
    let label = format!("Remove {}", in_words(found.len()));
    let mut form = Form::new("remove", &label, vec![Field::hidden("ids", ids.join(" ")).ignored()]).danger();
    if has_complaints {
        form.fields.push(force_field().help("Without this, suppressions caused by spam reports stay."));
    }
    let table = Table::of("Suppressions that are removed", &found)
        .column("Address", |suppression| link(suppression_path(&suppression.id), &suppression.email))
        .column("Reason", |suppression| reason_badge(&suppression.reason))
        .column("Added", |suppression| time_or_dash(Some(&suppression.created_at)));
    let empty = EmptyState {
        title: "No suppressions selected",
        text: "Select suppressions in the list, then come back here.",
        action: Some((LIST, "Go to the list")),
    };
    let body = maud_borrow! {
        @if found.is_empty() {
            (empty)
        } @else {
            p { "Mail is sent to these again. An address that bounces or complains again is suppressed again." }
            (table)
            @if has_complaints { (Notice { tone: Tone::Bad, text: COMPLAINT }) }
            (form.within(context))
        }
    };
    Ok(Page::new("Remove suppressions", body).below(LIST, "Suppressions").into())
}

pub(super) async fn remove(context: &Context<'_>) -> Result<Outcome, Failure> {
    let is_forced = context.form().find("force").is_some();
    let found = read_all(context, context.form().get("ids").split_whitespace()).await?;
    let mut table = Table::new("Results", &["Address", "Result", "Why"]);
    let mut kept = 0;
    for suppression in &found {
        let reason = if suppression.is_complaint() && !is_forced {
            Some("The recipient reported an email as spam".to_owned())
        } else {
            match context.perform(&remove_call(&suppression.id, is_forced)).await {
                Ok(_) => None,
                Err(failure) if failure.status == 404 => None,
                Err(failure) if failure.code == "unauthorized" => return Err(failure),
                Err(failure) => Some(failure.message),
            }
        };
        let row = match &reason {
            Some(_) => {
                kept += 1;
                Row::new().link(suppression_path(&suppression.id), &suppression.email)
            }
            None => Row::new().cell(&suppression.email),
        };
        let badge =
            if reason.is_some() { Badge::new("Kept", Tone::Warning) } else { Badge::new("Removed", Tone::Good) };
        table.push(row.cell(badge).cell(reason.unwrap_or_default()));
    }
    if kept == 0 {
        return Ok(Outcome::done(LIST, "deleted"));
    }
    let body = maud! {
        p { (in_words(kept)) " of " (found.len()) " stayed." }
        (table)
        p { a.button href=(LIST) { "Go to the list" } }
    };
    Ok(Outcome::once(Page::new("Remove suppressions", body).below(LIST, "Suppressions")))
}
