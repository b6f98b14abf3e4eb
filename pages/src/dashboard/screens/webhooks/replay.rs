//! Sends the deliveries of a range of time again.

use jiff::{SignedDuration, Timestamp};

use super::object::Webhook;
use super::{LIST, event_choices, webhook_path};
use crate::dashboard::prelude::*;

/// Most calls of one form. Each queues a limited number of deliveries.
const CALLS_MAX: usize = 20;

#[answer]
struct QueuedDeliveries {
    queued: u64,
    next_since: Option<String>,
}

/// A time as `datetime-local` controls have it, in UTC.
fn local(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M").to_string()
}

fn form(webhook: &Webhook, since: String) -> Form<'static> {
    let status = [("failed", "Failed deliveries"), ("delivered", "Successful deliveries")];
    let status = choices(&status);
    let fields = vec![
        Field::new("since", "From (UTC)", Control::DateTime).required().value(since),
        Field::new("until", "To (UTC)", Control::DateTime).help("Empty means now."),
        Field::new("status", "Which", Control::Radio(status)).value("failed"),
        Field::new("events", "Only these events", Control::CheckboxGroups(event_choices::groups(&webhook.events)))
            .help("Select none for all."),
    ];
    Form::new("replay", "Replay", fields)
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let webhook = Webhook::read(context).await?;
    let (now, query) = (context.now(), context.query());
    let next = query.get("next").parse::<Timestamp>().ok();
    let since = next.or_else(|| now.checked_sub(SignedDuration::from_hours(24)).ok()).map(local).unwrap_or_default();
    let form = form(&webhook, since);
    let result = query.get("queued").parse::<u64>().ok().map(|queued| match (queued, next) {
        (0, None) => (Tone::Neutral, "No deliveries match: nothing is sent.".to_owned()),
        (queued, None) => (Tone::Good, format!("{} are sent again.", deliveries(queued))),
        (queued, Some(_)) => (
            Tone::Warning,
            format!("{} are sent again. There are more: submit the form again to continue.", deliveries(queued)),
        ),
    });
    let body = maud_borrow! {
        @if let Some((tone, text)) = &result {
            (Notice { tone: *tone, text })
            p { a.button href={ (webhook_path(&webhook.id)) "?status=pending" } { "Show pending deliveries" } }
        }
        div.card.webhook-form {
            p { "Each delivery is attempted once more, as the same event: receivers that remember \
                " code { "webhook-id" } " process it only once." }
            (form.within(context))
        }
    };
    let example = json!({"since": now.checked_sub(SignedDuration::from_hours(24)).unwrap_or(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), "status": "failed"});
    let page = Page::new("Replay deliveries", body).below(LIST, "Webhooks");
    let page = page.below(webhook_path(&webhook.id), webhook.host());
    Ok(page.same_as(Call::new("replay_webhook_deliveries").id(&webhook.id).json(example)).into())
}

fn deliveries(count: u64) -> String {
    if count == 1 { "1 delivery".to_owned() } else { format!("{} deliveries", grouped(count)) }
}

pub(super) async fn replay(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut body = form(&Webhook::default(), String::new()).read(context.form())?;
    // A later part must not have a later end: deliveries that failed again would be sent again and again.
    if body.get("until").is_none() {
        body["until"] = json!(context.now().to_string());
    }
    let (mut queued, mut next) = (0, None);
    for _ in 0..CALLS_MAX {
        let call = Call::new("replay_webhook_deliveries").id(context.id()).json(body.clone());
        let part: QueuedDeliveries = context.read(&call).await?;
        queued += part.queued;
        next = part.next_since;
        match &next {
            Some(since) => body["since"] = json!(since),
            None => break,
        }
    }
    let next = next.map_or_else(String::new, |since| format!("&next={}", crate::dashboard::screens::encode(&since)));
    Ok(Outcome::SeeOther(format!("{}/replay?queued={queued}{next}", webhook_path(context.id()))))
}
