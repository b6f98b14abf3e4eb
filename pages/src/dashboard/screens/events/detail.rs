//! One product event.

use mcp::exact_json::ExactJson;

use super::object::EventItem;
use super::{LIST, send};
use crate::dashboard::prelude::*;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_event").id(context.id());
    let event: &EventItem = &context.read_field("event", &call).await?;
    let facts = Facts::new()
        .row("Event", &event.name)
        .row("Received", time_or_dash(Some(&event.created_at)))
        .row("Person", &event.person)
        .optional("User id", event.person.user_id.as_ref())
        .optional("Email address", event.person.email.as_ref())
        .row("Source", &event.source)
        .row("Id", maud! { code { (event.id) } });
    let data = serde_json::to_string_pretty(&ExactJson(&event.data)).unwrap_or_default();
    let same_name = format!("{LIST}?name={}", encode(&event.name));
    let body = maud! {
        @if let Some(effect) = effect(context) { div.notice.good role="status" { p { (effect) } } }
        div.card { (facts) }
        section {
            h2 { "Data" }
            @if event.json_data().is_some() {
                (Code::new("Event data", &data))
                p.soft.small { "Passwords, tokens and codes are stored as REDACTED; automations received the values \
                    as you sent them." }
            } @else {
                p.soft { "The event has no data." }
            }
        }
        p { a href=(same_name) { "All " (event.name) " events" } }
    };
    let actions = maud! {
        @if context.allows("send_event") { a.button href=(again(event)) { "Send a similar event" } }
    };
    let title = event.name.clone();
    Ok(Page::new(title, body).below(LIST, "Events").actions(actions).same_as(call).into())
}

/// The form, filled with an event's values.
fn again(event: &EventItem) -> String {
    let data = event.json_data().unwrap_or_default();
    let fields = event.person.fields().with("name", &event.name);
    // A longer address would be refused.
    let fields = if data.len() <= 2_000 { fields.with("data", data) } else { fields };
    format!("{}?{}", send::PATH, fields.to_query())
}

/// The effect of an event that was just sent.
fn effect(context: &Context<'_>) -> Option<String> {
    let number = |name: &str| context.query().get(name).parse::<u32>().ok();
    let (started, resumed, ended) = (number("started")?, number("resumed")?, number("ended")?);
    if started + resumed + ended == 0 {
        return Some("The event was recorded. No active automation is waiting for it.".to_owned());
    }
    let times = |count: u32, one: &str, many: &str| {
        (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
    };
    let parts = [
        times(started, "automation started", "automations started"),
        times(resumed, "waiting run went on", "waiting runs went on"),
        times(ended, "run was cancelled", "runs were cancelled"),
    ];
    Some(format!("The event was recorded: {}.", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}
