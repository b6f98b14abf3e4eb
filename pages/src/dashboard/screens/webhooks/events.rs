//! The events of the account, as they happen.

use super::{LIST, event_choices, webhook_path};
use crate::dashboard::kit::filter::refused_filter;
use crate::dashboard::prelude::*;

#[answer]
struct StreamEvent {
    id: String,
    r#type: String,
    created_at: String,
    data: Value,
}

impl StreamEvent {
    fn tone(&self) -> Tone {
        Tone::of(self.r#type.split('.').nth(1).unwrap_or_default())
    }

    /// The first text that says what the event is about.
    fn subject(&self) -> &str {
        let names = ["rcpt_to", "to", "email", "domain", "name", "automation_name", "url", "from", "subject"];
        let mut texts = names.iter().filter_map(|name| match &self.data[*name] {
            Value::Array(entries) => entries.first().and_then(Value::as_str),
            value => value.as_str(),
        });
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// The pages of the objects that an event names: path and label.
pub(super) fn object_links(data: &Value) -> Vec<(String, &'static str)> {
    let id = |name: &str| data[name].as_str().filter(|id| !id.is_empty());
    let page = |place: &str, id: &str| format!("/dashboard/{place}/{}", encode(id));
    let mut links = Vec::new();
    match id("email_id") {
        Some(email) if email.starts_with("inb_") => links.push((page("received", email), "The received email")),
        Some(email) => links.push((page("emails", email), "The email")),
        None => {}
    }
    if let Some(suppression) = id("suppression_id") {
        links.push((page("suppressions", suppression), "The suppression"));
    }
    if let Some(domain) = id("domain_id") {
        links.push((page("domains", domain), "The domain"));
    }
    if let Some(automation) = id("automation_id") {
        links.push((page("automations", automation), "The automation"));
    }
    if let Some(webhook) = id("webhook_id") {
        links.push((webhook_path(webhook), "The endpoint"));
    }
    links
}

/// Links to the pages of the objects that an event names.
pub(super) fn links(data: &Value) -> impl Renderable + use<> {
    let links = object_links(data);
    maud! { @for (n, (path, label)) in links.iter().enumerate() { @if n > 0 { " · " } a href=(path) { (label) } } }
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call = Call::new("list_webhook_events").filters(query, &["types", "cursor"]);
    let found: &List<StreamEvent> = &context.read_filtered("events", &call).await?;
    let filters = [event_choices::filter("types")];
    let bar = FilterBar { context, filters: &filters };
    let is_filtered = bar.is_active() || !query.get("cursor").is_empty();
    let empty = if is_filtered {
        EmptyState { title: "No matching events", text: "No stored events have this type.", action: None }
    } else {
        EmptyState {
            title: "No events yet",
            text: "Send an email: what happens to it appears here within a second.",
            action: context.allows("send_email").then_some(("/dashboard/emails/new", "Write an email")),
        }
    };
    let body = maud! {
        (bar)
        div data-fragment="list" {
            @if let Some(refused) = &found.refused {
                (refused_filter(refused))
            } @else if found.entries.is_empty() {
                (found.empty_page(context, empty.clone()))
            } @else {
                div.stream { @for event in &found.entries { (event_view(event)) } }
                (Pager { context, next_cursor: found.next_cursor.as_deref() })
            }
        }
    };
    let page = Page::new("Events", body)
        .below(LIST, "Webhooks")
        .lead("What happens in the account, newest first. The page updates itself; without JavaScript, reload it.");
    Ok(page.same_as(call).live().into())
}

fn event_view(event: &StreamEvent) -> impl Renderable + use<'_> {
    let json = format!("{:#}", event.data);
    maud! {
        details.event id=(event.id) {
            summary {
                span.event-type { (Badge::new(event.r#type.clone(), event.tone())) }
                span.event-subject { (event.subject()) }
                span.small.soft { (time_or_dash(Some(&event.created_at))) }
            }
            p.links.small { code { (event.id) } @if !object_links(&event.data).is_empty() { " · \
                " (links(&event.data)) } }
            (Code::new("Event data", &json).wrapped())
        }
    }
}
