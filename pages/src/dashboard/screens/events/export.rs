//! The filtered list of events as CSV.

use super::object::EventItem;
use crate::dashboard::csv::export_list;
use crate::dashboard::kit::date_range::DateRange;
use crate::dashboard::prelude::*;
use crate::dashboard::request::Fields;

/// The call of the list with the filters of a query.
pub(super) fn call(query: &Fields, range: DateRange) -> Call {
    Call::new("list_events")
        .query("name", query.get("name").trim())
        .query("email", query.get("email").trim())
        .query("user_id", query.get("user_id").trim())
        .query("created_after", range.from.to_string())
        .query("created_before", range.to.to_string())
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let (range, _) = DateRange::read(query, context.now());
    let columns = ["id", "name", "user_id", "email", "source", "created_at", "data"];
    let row = |event: EventItem| {
        let (user, email) = (event.person.user_id.unwrap_or_default(), event.person.email.unwrap_or_default());
        [event.id, event.name, user, email, event.source, event.created_at, event.data.to_string()]
    };
    let rows = |found: List<EventItem>| (found.entries.into_iter().map(row).collect(), found.next_cursor);
    export_list(context, "events", columns, call(query, range), rows).await
}
