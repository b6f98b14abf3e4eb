//! The list of product events, with their counts over time.

use super::counts::EventCounts;
use super::object::{EventItem, PersonKey, event_path};
use super::{LIST, export};
use crate::dashboard::prelude::*;

fn filters() -> Vec<Filter> {
    let mut filters = vec![
        Filter::text("name", "Event", "user.created"),
        Filter::text("email", "Email address", "grace@example.net"),
    ];
    filters.extend(DateRange::filters());
    filters.push(Filter::text("user_id", "User id", "u_42"));
    filters
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, wrong) = DateRange::read(query, context.now());
    let call = export::call(query, range).query("cursor", query.get("cursor"));
    let found = &context.read_list::<EventItem>("events", &call).await?;
    // Counts are not stored by person.
    let is_counted = PersonKey::read(query).is_unknown() && query.get("cursor").is_empty();
    let count_call = EventCounts::call(range, query.get("name").trim());
    let counts: EventCounts = if is_counted { context.read(&count_call).await? } else { EventCounts::default() };
    let bar = FilterBar { context, filters: &filters() };
    let table = Table::of("Events", &found.entries)
        .column("Event", |event| maud! { span.address { a href=(event_path(&event.id)) { (event.name) } } })
        .column("Person", |event| &event.person)
        .column("Data", |event| {
            maud! {
                @let data = event.short_data();
                @if data.is_empty() { span.dash { "–" } } @else { code { (data) } }
            }
        })
        .column("Source", |event| &event.source)
        .column("Received", |event| time_or_dash(Some(&event.created_at)));
    let with_name = |name: &str| format!("{LIST}?{}", query.with("name", name).with("done", "").to_query());
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if let Some(wrong) = wrong { (Notice { tone: Tone::Bad, text: wrong }) }
            @if !counts.totals.is_empty() {
                div.columns.wide-first { (counts.chart(range)) (counts.names(with_name)) }
            }
            (found.view(context, &table, empty(context, &bar)))
        }
    };
    let exported = query.with("cursor", "").with("done", "").to_query();
    let actions = maud! {
        @if !found.entries.is_empty() { a.button href={ (LIST) "/export.csv?" (exported) } { "Export as CSV" } }
        @if context.allows("send_event") { a.button.primary href={ (LIST) "/new" } { "Send a test event" } }
    };
    let page = Page::new("Events", body).lead("What people do in your product. Events start automations.");
    let page = page.actions(actions).same_as(call).live();
    Ok(if is_counted { page.same_as(count_call) } else { page }.into())
}

fn empty<'a>(context: &Context<'_>, bar: &FilterBar<'_>) -> EmptyState<'a> {
    if bar.is_active() || !context.query().get("cursor").is_empty() {
        return EmptyState {
            title: "No events match the filters",
            text: "All filters must match. Remove one, or choose a longer range.",
            action: Some((LIST, "Show the last 30 days")),
        };
    }
    EmptyState {
        title: "No events in the last 30 days",
        text: "Send what happens in your product, such as user.created or subscription.started. Events start \
            automations, fill funnels, and show what a person has done.",
        action: context.allows("send_event").then_some(("/dashboard/events/new", "Send a test event")),
    }
}
