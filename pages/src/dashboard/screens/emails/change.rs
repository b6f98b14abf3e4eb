//! Cancel, send at another time, send again.

use super::object::WholeEmail;
use super::{LIST, email_path};
use crate::dashboard::kit::time::{Time, date_and_time};
use crate::dashboard::prelude::*;

/// The email in short.
fn summary(email: &WholeEmail) -> Facts {
    let item = &email.item;
    Facts::new()
        .row("Subject", item.title())
        .row("To", item.recipients())
        .optional("Scheduled for", item.scheduled_at.as_deref().and_then(Time::parse).map(in_utc))
}

/// A time in UTC, which the field of the form takes. It is plain text, so that the script does not replace it.
fn in_utc(time: Time) -> String {
    format!("{} UTC", date_and_time(time.0))
}

fn page(title: &str, email: &WholeEmail, body: impl Renderable) -> Page {
    let content = maud! { div.card { (summary(email)) } (body) };
    Page::new(title, content).below(LIST, "Emails").below(email_path(&email.item.id), email.item.title())
}

/// A page that says why the email cannot be changed or sent again.
fn without_form(title: &str, email: &WholeEmail, text: &str) -> View {
    page(title, email, maud! { (Notice { tone: Tone::Warning, text }) }).into()
}

const SENT_ALREADY: &str = "This email is no longer scheduled: it has been sent or cancelled. Nothing can be changed.";

fn cancel_form() -> Form<'static> {
    Form::new("cancel", "Cancel the email", Vec::new()).danger()
}

pub(super) async fn show_cancel(context: &Context<'_>) -> Result<View, Failure> {
    let email = &WholeEmail::read(context, context.id()).await?;
    if !email.item.is_scheduled() {
        return Ok(without_form("Cancel the email", email, SENT_ALREADY));
    }
    let form = cancel_form();
    let body = maud! {
        p { "It will not be sent to anyone. It stays in the list as cancelled, and you can resend it from there." }
        (form.within(context))
    };
    Ok(page("Cancel the email", email, body).same_as(Call::new("cancel_email").id(context.id())).into())
}

pub(super) async fn cancel(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("cancel_email").id(context.id()), email_path(context.id()), "cancelled").await
}

fn reschedule_form(email: Option<&WholeEmail>) -> Form<'static> {
    let at = email.and_then(|email| email.item.scheduled_at.as_deref()).and_then(|at| at.get(..16)).unwrap_or_default();
    let field = Field::new("scheduled_at", "Send at", Control::DateTime)
        .value(at)
        .required()
        .help("In Coordinated Universal Time (UTC), at most a year from now");
    Form::new("reschedule", "Change the time", vec![field])
}

pub(super) async fn show_reschedule(context: &Context<'_>) -> Result<View, Failure> {
    let email = &WholeEmail::read(context, context.id()).await?;
    if !email.item.is_scheduled() {
        return Ok(without_form("Send at another time", email, SENT_ALREADY));
    }
    let form = reschedule_form(Some(email));
    let example = json!({"scheduled_at": email.item.scheduled_at});
    let call = Call::new("update_email").id(context.id()).json(example);
    Ok(page("Send at another time", email, maud! { (form.within(context)) }).same_as(call).into())
}

pub(super) async fn reschedule(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = reschedule_form(None).read(context.form())?;
    context.act(&Call::new("update_email").id(context.id()).json(body), email_path(context.id()), "changed").await
}

pub(super) async fn show_resend(context: &Context<'_>) -> Result<View, Failure> {
    let email = &WholeEmail::read(context, context.id()).await?;
    if !email.item.is_resendable() {
        let text = if email.item.confidential {
            "This email is confidential: only its recipient may read it, so it cannot be sent again."
        } else {
            "This email has not been sent yet. Reschedule or cancel it instead."
        };
        return Ok(without_form("Send again", email, text));
    }
    let form = Form::new("resend", "Send it again", vec![form_key::field(context)]);
    let count = email.recipients.len();
    let body = maud! {
        p {
            "A new email with the same content goes to "
            @if count == 1 { "the recipient" } @else { "all " (count) " recipients, including those who already have \
                it" }
            ". It has new tracking and unsubscribe links."
        }
        @match email.attachments.len() {
            0 => {}
            1 => { p { "The attached file is sent again." } }
            files => { p { "The " (files) " attached files are sent again." } }
        }
        (form.within(context))
    };
    let call = Call::new("resend_email").id(context.id()).json(json!({"attachments": true}));
    Ok(page("Send again", email, body).same_as(call).into())
}

/// The call that sends an email again with its attached files, once per shown form.
pub(super) fn resend_call(context: &Context<'_>, id: &str) -> Call {
    let idempotency_key = form_key::request_key(context, &[b"resend", id.as_bytes()]);
    Call { idempotency_key, ..Call::new("resend_email").id(id).json(json!({"attachments": true})) }
}

pub(super) async fn resend(context: &Context<'_>) -> Result<Outcome, Failure> {
    let id: String = context.read_field("id", &resend_call(context, context.id())).await?;
    Ok(Outcome::done(email_path(&id), "sent"))
}
