//! Creates and edits an endpoint.

use super::object::{OneWebhook, Webhook};
use super::{LIST, event_choices, secret, webhook_path};
use crate::dashboard::prelude::*;

/// The field that says whether all events are sent.
const SUBSCRIPTION: &str = "subscription";

/// The sending domains as choices; those that an endpoint names stay choices if they are gone.
async fn domains(context: &Context<'_>, chosen: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut choices = context.domain_choices().await?;
    for id in chosen {
        if !choices.iter().any(|(known, _)| known == id) {
            choices.push((id.clone(), id.clone()));
        }
    }
    Ok(choices)
}

fn form<'a>(name: &'a str, submit: &'a str, webhook: &Webhook, domains: Vec<(String, String)>) -> Form<'a> {
    let choice = |value: &str, label: String| (value.to_owned(), label);
    let subscription = vec![
        choice("all", format!("All events, except {}", event_choices::named_events())),
        choice("chosen", "The events selected below".to_owned()),
    ];
    let retries = vec![
        choice("default", "For 5 minutes: at once, then after 5 s, 30 s, 2 min and 2 min".to_owned()),
        choice("extended", "For 28 hours: at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h".to_owned()),
    ];
    let mut fields = vec![
        Field::new("url", "URL", Control::Url)
            .required()
            .value(&webhook.url)
            .placeholder("https://example.com/webhooks")
            .help("HTTPS, at a public address. Events are posted to it; it must respond with 2xx within 15 seconds."),
        Field::text("description", "Description")
            .value(webhook.description.as_deref().unwrap_or_default())
            .empty(Empty::Null)
            .help("For you and your team."),
        Field::new(SUBSCRIPTION, "Which events", Control::Radio(subscription))
            .value(if webhook.events.is_empty() { "all" } else { "chosen" })
            .ignored(),
        Field::new("events", "Events", Control::CheckboxGroups(event_choices::groups(&webhook.events)))
            .value(webhook.events.join("\n"))
            .empty(Empty::Kept),
        Field::new("retry_policy", "Retry schedule", Control::Radio(retries))
            .value(if webhook.retry_policy.is_empty() { "default" } else { &webhook.retry_policy }),
        Field::new("inbound_addresses", "Only mail received for these addresses", Control::Lines { rows: 2 })
            .value(webhook.inbound_addresses.join("\n"))
            .placeholder("support@example.com")
            .empty(Empty::Kept)
            .help(
                "One per line: an address, its sub-addresses (support+*@example.com), or a domain (*@example.com). \
                Other events are not affected.",
            ),
    ];
    if domains.len() > 1 || !webhook.domain_ids.is_empty() {
        fields.push(
            Field::new("domain_ids", "Only events for these sending domains", Control::Checkboxes(domains))
                .value(webhook.domain_ids.join("\n"))
                .empty(Empty::Kept)
                .help("Select none for all domains."),
        );
    }
    Form::new(name, submit, fields)
}

/// The body of the operation.
fn read(context: &Context<'_>) -> Result<Value, Failure> {
    let entered = context.form();
    // The form was shown with the domains, if there are several: what was sent decides.
    let domain_ids: Vec<_> = entered.all("domain_ids").map(str::to_owned).collect();
    let shown = Webhook { domain_ids: domain_ids.clone(), ..Webhook::default() };
    let mut body = form("", "", &shown, Vec::new()).read(entered)?;
    body["domain_ids"] = json!(domain_ids);
    if entered.get(SUBSCRIPTION) == "all" {
        body["events"] = json!([]);
    } else if body["events"].as_array().is_none_or(Vec::is_empty) {
        return Err(Failure::field("events", "Select at least one event, or choose all events above"));
    }
    Ok(body)
}

pub(super) async fn show_new(context: &Context<'_>) -> Result<View, Failure> {
    let domains = domains(context, &[]).await?;
    let mut form = form("create", "Add the endpoint", &Webhook::default(), domains);
    form.fields.push(form_key::field(context));
    let body = maud_borrow! { div.card.webhook-form { (form.within(context)) } };
    let page = Page::new("Add an endpoint", body)
        .below(LIST, "Webhooks")
        .lead("The next page shows its signing secret, once, and how to verify deliveries.");
    let example = json!({"url": "https://example.com/webhooks", "events": ["email.delivered", "email.bounced"]});
    Ok(page.same_as(Call::new("create_webhook").json(example)).into())
}

pub(super) async fn create(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("create_webhook").json(read(context)?);
    let create = async {
        let created: OneWebhook = context.read(&call).await?;
        Ok(secret::page("Endpoint created", &created))
    };
    form_key::once(context, (LIST, "Webhooks"), create).await
}

pub(super) async fn show_edit(context: &Context<'_>) -> Result<View, Failure> {
    let webhook = Webhook::read(context).await?;
    let domains = domains(context, &webhook.domain_ids).await?;
    let form = form("edit", "Save", &webhook, domains);
    let body = maud_borrow! { div.card.webhook-form { (form.within(context)) } };
    let example = Call::new("update_webhook").id(&webhook.id).json(json!({"events": webhook.events}));
    let page = Page::new("Edit the endpoint", body).below(LIST, "Webhooks");
    Ok(page.below(webhook_path(&webhook.id), webhook.host()).same_as(example).into())
}

pub(super) async fn edit(context: &Context<'_>) -> Result<Outcome, Failure> {
    context
        .act(&Call::new("update_webhook").id(context.id()).json(read(context)?), webhook_path(context.id()), "changed")
        .await
}
