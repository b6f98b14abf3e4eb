//! Reply, forward, delete.

use super::object::WholeReceived;
use super::{LIST, mail_path};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::email_path;

fn page(title: &str, mail: &WholeReceived, body: impl Renderable) -> Page {
    Page::new(title, body).below(LIST, "Received mail").below(mail_path(&mail.item.email_id), mail.item.title())
}

fn reply_form(context: &Context<'_>) -> Form<'static> {
    let fields = vec![
        form_key::field(context),
        Field::new("text", "Text", Control::Area { rows: 10 }).help("Either text or HTML is required"),
        Field::new("html", "HTML", Control::Code { rows: 6 }),
    ];
    Form::new("reply", "Send the reply", fields)
}

pub(super) async fn show_reply(context: &Context<'_>) -> Result<View, Failure> {
    let mail = WholeReceived::read(context).await?;
    let form = reply_form(context);
    let reply_to = mail.headers.iter().find(|line| line.name.eq_ignore_ascii_case("reply-to"));
    let to = reply_to.map_or(mail.item.from.as_str(), |line| line.value.as_str());
    let text = mail.stripped_text.as_deref().or(mail.text.as_deref()).unwrap_or("(no text)");
    let facts = Facts::new().row("To", to).row("From", mail.item.rcpt_to.as_str()).row("Subject", mail.item.title());
    let body = maud! {
        div.columns {
            div.card { (facts) (form.within(context)) }
            section aria-labelledby="their-mail" {
                h2 #their-mail { "Original email" }
                (Code::new("Original email", text).wrapped())
            }
        }
    };
    let call =
        Call::new("reply_to_received_email").id(context.id()).json(json!({"text": "Thank you, we will look into it."}));
    Ok(page("Reply", &mail, body).same_as(call).into())
}

pub(super) async fn reply(context: &Context<'_>) -> Result<Outcome, Failure> {
    send(context, "reply_to_received_email", &reply_form(context)).await
}

fn forward_form(context: &Context<'_>) -> Form<'static> {
    let fields = vec![
        form_key::field(context),
        Field::new("to", "To", Control::Lines { rows: 2 })
            .required()
            .help("One address per line, or separated by commas"),
        Field::new("text", "Your message", Control::Area { rows: 5 }).help("It comes before the forwarded email"),
    ];
    Form::new("forward", "Forward", fields)
}

pub(super) async fn show_forward(context: &Context<'_>) -> Result<View, Failure> {
    let mail = WholeReceived::read(context).await?;
    let form = forward_form(context);
    let body = maud! {
        p { "The email is attached as it arrived, with its header and attachments." }
        div.card { (form.within(context)) }
    };
    let call = Call::new("forward_received_email").id(context.id()).json(json!({"to": ["team@example.org"]}));
    Ok(page("Forward", &mail, body).same_as(call).into())
}

pub(super) async fn forward(context: &Context<'_>) -> Result<Outcome, Failure> {
    send(context, "forward_received_email", &forward_form(context)).await
}

/// Sends what a form says, once per shown form.
async fn send(context: &Context<'_>, operation: &'static str, form: &Form<'_>) -> Result<Outcome, Failure> {
    let body = form.read(context.form())?;
    let content = body.to_string();
    let idempotency_key =
        form_key::request_key(context, &[operation.as_bytes(), context.id().as_bytes(), content.as_bytes()]);
    let call = Call { idempotency_key, ..Call::new(operation).id(context.id()).json(body) };
    let id: String = context.read_field("id", &call).await?;
    Ok(Outcome::done(email_path(&id), "sent"))
}

pub(super) async fn show_delete(context: &Context<'_>) -> Result<View, Failure> {
    let mail = WholeReceived::read(context).await?;
    let form = Form::new("delete", "Delete the mail", Vec::new()).danger();
    let facts = Facts::new().row("Subject", mail.item.title()).row("From", mail.item.from.as_str());
    let body = maud! {
        div.card { (facts) }
        p { "The email and its attachments are deleted permanently. Copies that your webhooks have stored are not \
            affected." }
        (form.within(context))
    };
    Ok(page("Delete the mail", &mail, body).same_as(Call::new("delete_received_email").id(context.id())).into())
}

pub(super) async fn delete(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&Call::new("delete_received_email").id(context.id()), LIST, "deleted").await
}
