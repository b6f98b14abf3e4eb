//! The signing secret: shown once after the creation and after a rotation, with how to verify deliveries.

use super::object::{OneWebhook, Webhook};
use super::{LIST, webhook_path};
use crate::dashboard::kit::secret::{SecretUse, shown_secret};
use crate::dashboard::prelude::*;
use crate::reference::languages::LANGUAGES;

/// How deliveries are verified, in two languages.
fn uses() -> Vec<SecretUse> {
    let wanted = [("node", "Verify a delivery in Node"), ("python", "Verify a delivery in Python")];
    let found = wanted.into_iter().filter_map(|(key, title)| {
        let language = LANGUAGES.iter().find(|language| language.key == key)?;
        Some(SecretUse { title, code: language.verification.to_owned() })
    });
    found.collect()
}

/// The page that shows a secret once.
pub(super) fn page(title: &str, created: &OneWebhook) -> Page {
    let path = webhook_path(&created.webhook.id);
    let uses = uses();
    let body = maud_borrow! {
        (shown_secret("Signing secret", &created.secret, &uses, (&path, "To the endpoint")))
        p.soft { "The programs read the secret from the environment, as " code { "WEBHOOK_SECRET" } ". Other languages: " a href="/docs/webhooks" { "the documentation of webhooks" } "." }
    };
    let url = created.webhook.url.as_str();
    let page = Page::new(title, body).below(LIST, "Webhooks").location(&path);
    page.lead(format!("Deliveries to {url} are signed with it."))
}

fn form(context: &Context<'_>) -> Form<'static> {
    let hours = [("0", "Not at all"), ("1", "1 hour"), ("24", "24 hours"), ("72", "3 days"), ("168", "7 days")];
    let hours = choices(&hours);
    let grace = Field::new("grace_hours", "The old secret still signs for", Control::Select(hours))
        .value("24")
        .help("During this time, each delivery has two signatures, so receivers with either secret accept it.")
        .ignored();
    Form::new("rotate", "Create a new secret", vec![grace, form_key::field(context)])
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let webhook = Webhook::read(context).await?;
    let form = form(context);
    let body = maud_borrow! {
        div.card {
            p { "A new secret is created and shown once. Give it to your receiver before the old one expires." }
            (form.within(context))
        }
    };
    let call = Call::new("rotate_webhook_secret").id(&webhook.id).json(serde_json::json!({"grace_hours": 24}));
    let page = Page::new("Replace the secret", body).below(LIST, "Webhooks");
    Ok(page.below(webhook_path(&webhook.id), webhook.host()).same_as(call).into())
}

pub(super) async fn rotate(context: &Context<'_>) -> Result<Outcome, Failure> {
    let entered = context.form().get("grace_hours");
    let hours: u16 = entered.parse().map_err(|_| Failure::field("grace_hours", "Choose one of the periods"))?;
    let call = Call::new("rotate_webhook_secret").id(context.id()).json(serde_json::json!({"grace_hours": hours}));
    let rotate = async {
        let rotated: OneWebhook = context.read(&call).await?;
        Ok(page("The secret has been rotated", &rotated))
    };
    form_key::once(context, (LIST, "Webhooks"), rotate).await
}
