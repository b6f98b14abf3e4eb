//! A suppression: why, since when, and the reply that caused it.

use super::object::{Suppression, reason_badge, reason_text, source_text};
use super::{LIST, suppression_path};
use crate::dashboard::kit::confirm::{confirm, confirm_field};
use crate::dashboard::prelude::*;

pub(super) const COMPLAINT: &str =
    "The recipient reported an email as spam. Another report would harm your domain's reputation with all recipients.";

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let suppression = Suppression::read(context, context.id()).await?;
    let reply = suppression.detail.as_ref().map(super::object::ServerReply::text).filter(|text| !text.is_empty());
    let email = suppression.email_id.as_ref().map(|id| {
        let path = format!("/dashboard/emails/{}", encode(id));
        maud! { a href=(path) { (id) } }
    });
    let expires_at = suppression.expires_at.as_deref();
    let facts = Facts::new()
        .row("Reason", reason_badge(&suppression.reason))
        .row("Added by", source_text(&suppression.source))
        .row("Added", time_or_dash(Some(&suppression.created_at)))
        .row(
            "Expires",
            maud! {
                @match expires_at {
                    Some(at) => { (time_or_dash(Some(at))) }
                    None => "Never",
                }
            },
        )
        .optional("Email that caused it", email)
        .optional("Note", suppression.note.as_deref());
    let whom = if suppression.is_domain() { "any address of this domain" } else { "this address" };
    let body = maud! {
        section.card {
            p { "Nothing is sent to " (whom) ". " (reason_text(&suppression.reason)) }
            (facts)
        }
        @if let Some(reply) = &reply {
            section {
                h2 { "Reply of the mail host" }
                (Code::new("Reply of the mail host", reply).wrapped())
            }
        }
    };
    let remove = format!("{}/delete", suppression_path(&suppression.id));
    let actions = maud! { @if context.allows("delete_suppression") { a.button href=(remove) { "Remove" } } };
    let page = Page::new(suppression.email.clone(), body).below(LIST, "Suppressions").actions(actions);
    Ok(page.same_as(Call::new("get_suppression").parameter("id_or_email", suppression.id)).into())
}

/// The field that allows to remove what a complaint caused.
pub(super) fn force_field() -> Field {
    Field::new("force", "The recipient has asked to get email again", Control::Checkbox).ignored()
}

pub(super) async fn show_remove(context: &Context<'_>) -> Result<View, Failure> {
    let suppression = Suppression::read(context, context.id()).await?;
    let mut form = Form::new("remove", "Remove the suppression", vec![confirm_field(&suppression.email)]).danger();
    if suppression.is_complaint() {
        form.fields.push(force_field());
    }
    let body = maud_borrow! {
        @if suppression.is_complaint() { (Notice { tone: Tone::Bad, text: COMPLAINT }) }
        div.card {
            p {
                @if suppression.is_domain() { "Mail is sent to addresses in this domain again." } @else { "Mail is sent to this address again." }
                " If it bounces or is reported again, the address is suppressed again."
            }
            @if !suppression.is_complaint() { p.soft { (reason_text(&suppression.reason)) } }
            (form.within(context))
        }
    };
    let path = suppression_path(&suppression.id);
    let call = Call::new("delete_suppression").parameter("id_or_email", &suppression.id);
    let page = Page::new("Remove the suppression", body).below(LIST, "Suppressions");
    Ok(page.below(path, suppression.email).same_as(call).into())
}

/// The call that removes a suppression.
pub(super) fn remove_call(id: &str, is_forced: bool) -> Call {
    let call = Call::new("delete_suppression").parameter("id_or_email", id);
    call.query("force", if is_forced { "true" } else { "" })
}

pub(super) async fn remove(context: &Context<'_>) -> Result<Outcome, Failure> {
    let suppression = Suppression::read(context, context.id()).await?;
    confirm(context, &suppression.email)?;
    let is_forced = context.form().find("force").is_some();
    if suppression.is_complaint() && !is_forced {
        return Err(Failure::field("force", "Without this, the suppression stays because of the spam report"));
    }
    context.act(&remove_call(&suppression.id, is_forced), LIST, "deleted").await
}
