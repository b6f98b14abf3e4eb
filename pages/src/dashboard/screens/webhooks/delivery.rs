//! A delivery: where it stands, its tries, its payload.

use super::object::{Attempt, Delivery, Webhook};
use super::{LIST, delivery_path, events, webhook_path};
use crate::dashboard::prelude::*;

fn call(operation: &'static str, context: &Context<'_>) -> Call {
    Call::new(operation).id(context.id()).parameter("delivery_id", context.parameter("delivery"))
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let webhook = Webhook::read(context).await?;
    let call = call("get_webhook_delivery", context);
    let delivery: Delivery = context.read_field("delivery", &call).await?;
    let is_pending = delivery.status == "pending";
    let standing = delivery.standing(context.now());
    let payload = delivery.payload.as_ref().map(|payload| format!("{payload:#}"));
    let links = delivery.payload.as_ref().map(|payload| events::links(&payload["data"]));
    let again = Form::new("replay", "Send it again", Vec::new());
    let can_replay = !is_pending && webhook.enabled && context.allows("replay_webhook_delivery");
    let facts = facts(&delivery, context);
    let body = maud_borrow! {
        div data-fragment="delivery" {
            section.card {
                p { (standing) }
                (facts)
                @if is_pending {
                    p { a.button href=(delivery_path(&webhook.id, &delivery.id)) { "Refresh" } }
                }
                @if can_replay {
                    (again.within(context))
                } @else if !webhook.enabled && !is_pending {
                    p.soft.small { "The endpoint is disabled. Enable it to send this again." }
                }
            }
            section {
                h2 { "Attempts" }
                @if delivery.attempts.is_empty() { p.soft { "None yet." } }
                @for (n, attempt) in delivery.attempts.iter().rev().enumerate() { (attempt_view(attempt, n == 0)) }
            }
        }
        section {
            div.section-head { h2 { "Payload" } @if let Some(links) = &links { p.links { (links) } } }
            @match &payload {
                Some(payload) => { (Code::new("Payload", payload).wrapped()) }
                None => { p.soft { "The event is no longer stored." } }
            }
        }
    };
    let page = Page::new(delivery.r#type.clone(), body).below(LIST, "Webhooks");
    Ok(page.below(webhook_path(&webhook.id), webhook.host()).same_as(call).live().into())
}

fn facts(delivery: &Delivery, context: &Context<'_>) -> Facts {
    Facts::new()
        .row("Status", delivery.badge())
        .row("Next attempt", delivery.next_try(context.now()))
        .row("Created", time_or_dash(Some(&delivery.created_at)))
        .optional("Delivered", delivery.delivered_at.as_deref().map(|at| time_or_dash(Some(at))))
        .row("Event", maud! { code { (delivery.event_id) } })
}

/// A try: the answers of all but the last one are folded up.
fn attempt_view(attempt: &Attempt, is_last: bool) -> impl Renderable + use<'_> {
    let badge = match attempt.response_status {
        Some(status @ 200..300) => Badge::new(status.to_string(), Tone::Good),
        Some(status) => Badge::new(status.to_string(), Tone::Bad),
        None => Badge::new("No response", Tone::Bad),
    };
    maud! {
        details.card.attempt id={ "try-" (attempt.n) } open[is_last] {
            summary {
                span.attempt-who { "Try " (attempt.n) }
                (badge)
                span.small.soft { (duration(attempt.duration_ms)) }
                span.small.soft { (time_or_dash(Some(&attempt.at))) }
            }
            @if let Some(error) = &attempt.error { p { (error) } }
            @if !attempt.response_body.is_empty() {
                (Code::new("Answer", &attempt.response_body).wrapped())
            } @else if attempt.error.is_none() {
                p.soft.small { "The response had no content." }
            }
        }
    }
}

/// A time in milliseconds or seconds.
fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1e3),
    }
}

pub(super) async fn replay(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = call("replay_webhook_delivery", context);
    context.act(&call, delivery_path(context.id(), context.parameter("delivery")), "replayed").await
}
