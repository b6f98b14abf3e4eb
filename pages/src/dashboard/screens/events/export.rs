//! The filtered list of events as CSV.

use super::object::EventItem;
use crate::dashboard::csv::{CsvColumn, export_list, text};
use crate::dashboard::prelude::*;

/// The call of the list with the filters of a query.
pub(super) fn call(query: &Fields, range: DateRange) -> Call {
    Call::new("list_events")
        .filters(query, &["name", "email", "user_id"])
        .query("created_after", range.from.to_string())
        .query("created_before", range.to.to_string())
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, _) = DateRange::read(query, context.now());
    let columns: &[CsvColumn<EventItem>] = &[
        ("id", |event| event.id.clone()),
        ("name", |event| event.name.clone()),
        ("user_id", |event| text(&event.person.user_id)),
        ("email", |event| text(&event.person.email)),
        ("source", |event| event.source.clone()),
        ("created_at", |event| event.created_at.clone()),
        ("data", |event| event.data.get().to_owned()),
    ];
    export_list(context, "events", "events", call(query, range), columns).await
}
