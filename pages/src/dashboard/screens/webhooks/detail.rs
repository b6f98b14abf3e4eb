//! An endpoint: what it gets, a test, and its deliveries.

use super::object::{Delivery, Webhook};
use super::{LIST, deliveries, delivery_path, event_choices, webhook_path};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let webhook = Webhook::read(context).await?;
    let found = deliveries::Deliveries::read(context, &webhook.id).await?;
    let path = webhook_path(&webhook.id);
    let trouble = webhook.trouble();
    let (facts, test) = (facts(&webhook), test_form(&webhook));
    let enable = Form::new("enable", "Enable the endpoint", Vec::new());
    let disable = Form::new("disable", "Disable the endpoint", Vec::new()).secondary();
    let body = maud_borrow! {
        @if let Some(text) = &trouble { (Notice { tone: if webhook.enabled { Tone::Bad } else { Tone::Warning }, text }) }
        div.columns.wide-first {
            section.card {
                h2 { "Endpoint" }
                (facts)
            }
            @if context.allows("update_webhook") || context.allows("test_webhook") {
                div.stack {
                    @if webhook.enabled && context.allows("test_webhook") {
                        section.card {
                            h2 { "Send a test" }
                            p.small.soft { "An example of the event, sent once. Its data has " code { "\"test\": \
                                true" } "." }
                            (test.within(context))
                        }
                    }
                    @if context.allows("update_webhook") {
                        section.card {
                            @if webhook.enabled {
                                p.small.soft { "Nothing is sent to a disabled endpoint, not even later." }
                                (disable.within(context))
                            } @else {
                                h2 { "Disabled" }
                                p.small.soft { "Events are sent from the moment you enable it." }
                                (enable.within(context))
                            }
                        }
                    }
                }
            }
        }
        (found.section(context, &webhook))
    };
    let actions = maud! {
        @if context.allows("update_webhook") { a.button href={ (path) "/edit" } { "Edit" } }
        @if context.allows("rotate_webhook_secret") { a.button href={ (path) "/secret" } { "Replace the secret" } }
        @if context.allows("delete_webhook") { a.button href={ (path) "/delete" } { "Delete" } }
    };
    let mut page = Page::new(webhook.host(), body).below(LIST, "Webhooks").actions(actions);
    page.lead = webhook.description.clone();
    Ok(page.same_as(Call::new("get_webhook").id(&webhook.id)).same_as(found.call).live().into())
}

fn facts(webhook: &Webhook) -> Facts {
    let retries = match webhook.retry_policy.as_str() {
        "extended" => "8 attempts within 28 hours",
        _ => "5 attempts within 5 minutes",
    };
    let list = |entries: &[String]| (!entries.is_empty()).then(|| entries.join(", "));
    Facts::new()
        .row("State", webhook.badge())
        .row("URL", maud! { code { (webhook.url) } })
        .row(
            "Events",
            maud! {
                @if webhook.events.is_empty() {
                    "All events, except " (event_choices::named_events())
                } @else {
                    @for event in &webhook.events { span.tag { (event) } " " }
                }
            },
        )
        .optional("Only these sending domains", list(&webhook.domain_ids))
        .optional("Only mail received for", list(&webhook.inbound_addresses))
        .row("Retries", retries)
        .row("Created", time_or_dash(Some(&webhook.created_at)))
}

fn test_form(webhook: &Webhook) -> Form<'static> {
    let first = webhook.events.first().map_or("email.delivered", String::as_str);
    let event = Field::new("event", "Event", Control::Select(event_choices::names())).value(first);
    Form::new("test", "Send the test", vec![event]).secondary()
}

pub(super) async fn test(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = test_form(&Webhook::default()).read(context.form())?;
    let delivery: Delivery =
        context.read_field("delivery", &Call::new("test_webhook").id(context.id()).json(body)).await?;
    Ok(Outcome::done(delivery_path(context.id(), &delivery.id), "tested"))
}

pub(super) async fn set_enabled(context: &Context<'_>, enabled: bool) -> Result<Outcome, Failure> {
    let call = Call::new("update_webhook").id(context.id()).json(json!({"enabled": enabled}));
    context.act(&call, webhook_path(context.id()), "changed").await
}
