//! The list of conversions.

use super::LIST;
use super::object::Conversion;
use crate::dashboard::csv::{CsvColumn, export_list, text};
use crate::dashboard::kit::filter::refused_filter;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::day_start;

/// The call with the filters of the page.
fn list_call(context: &Context<'_>) -> Call {
    let query = context.query();
    let call = Call::new("list_conversions")
        .query("created_after", day_start(query.get("after"), 0))
        .query("created_before", day_start(query.get("before"), 1));
    call.filters(query, &["kind", "source", "email"])
}

fn filters() -> [Filter; 5] {
    let kinds = [("", "All"), ("sign_up", "Sign-ups"), ("subscription", "Subscriptions")];
    [
        Filter::select("kind", "What", choices(&kinds)),
        Filter::text("source", "Source", "google.com"),
        Filter::text("email", "Person", "grace@example.net"),
        Filter::date("after", "From date"),
        Filter::date("before", "To date"),
    ]
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let call = list_call(context).query("cursor", context.query().get("cursor"));
    let filters = filters();
    let bar = FilterBar { context, filters: &filters };
    let found = &context.read_filtered::<Conversion>("conversions", &call).await?;
    let columns = ["Person", "What", "Source", "Came from", "Value", "When", "Emails before"];
    let table = Table::new("Conversions", &columns).numbers(&["Value"]).rows(&found.entries, |one| {
        let tone = if one.kind == "subscription" { Tone::Good } else { Tone::Active };
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
        let money = one.money();
        Row::new()
            .cell(&one.person)
            .cell(Badge::new(one.title(), tone))
            .cell(maud! { (address_cell(&text(&one.source))) })
            .cell(text(&one.came_from))
            .cell(maud! { span.nowrap { @if money.is_empty() { "–" } @else { (money) } } })
            .cell(time_or_dash(Some(&one.occurred_at)))
            .link(format!("{LIST}/{}", encode(&one.event_id)), "Show")
    });
    let none = EmptyState {
        title: "No matching conversions",
        text: "No sign-ups or subscriptions match the filters, or older ones are on the next page.",
        action: Some((LIST, "Show all")),
    };
    let empty = EmptyState {
        title: "No conversions yet",
        text: "Send user.created when someone signs up and subscription.started when someone pays, with data.id. Each \
            counts once, with the source of the person's first visit.",
        action: context.allows("send_event").then_some(("/dashboard/events/new", "Send a test event")),
    };
    let body = maud! {
        (bar)
        div.flow data-fragment="list" {
            @if let Some(refused) = &found.refused { (refused_filter(refused)) }
            @else if !table.is_empty() { (table) }
            @else if bar.is_active() { (none) } @else { (empty) }
            (Pager { context, next_cursor: found.next_cursor.as_deref() })
        }
    };
    let export = context.query().with("cursor", "").with("done", "").to_query();
    let actions = maud! {
        @if !found.entries.is_empty() { a.button href={ (LIST) "/export.csv?" (export) } { "Export as CSV" } }
    };
    let page = Page::new("Conversions", body)
        .lead("Sign-ups and subscriptions, each counted once, with where they came from.");
    Ok(page.actions(actions).same_as(call).live().into())
}

pub(super) async fn export(context: &Context<'_>) -> Result<View, Failure> {
    let columns: &[CsvColumn<Conversion>] = &[
        ("event_id", |one| one.event_id.clone()),
        ("kind", |one| one.kind.clone()),
        ("subject_id", |one| one.subject_id.clone()),
        ("user_id", |one| text(&one.person.user_id)),
        ("email", |one| text(&one.person.email)),
        ("source", |one| text(&one.source)),
        ("came_from", |one| text(&one.came_from)),
        ("signup_method", |one| text(&one.signup_method)),
        ("gclid", |one| text(&one.gclid)),
        ("value", |one| one.value.map(|value| value.to_string()).unwrap_or_default()),
        ("currency", |one| text(&one.currency)),
        ("occurred_at", |one| one.occurred_at.clone()),
    ];
    export_list(context, "conversions", "conversions", list_call(context), columns).await
}
