//! The filtered list of events as CSV.

use super::object::ProductEventList;
use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::csv::CsvText;
use crate::dashboard::kit::date_range::DateRange;
use crate::dashboard::request::Fields;
use crate::dashboard::table::View;

/// Most calls of an export, of 100 events each.
const CALLS_MAX: usize = 100;

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
    let base = call(query, range).query("limit", "100");
    let mut csv = CsvText::new(&["id", "name", "user_id", "email", "source", "created_at", "data"]);
    let mut cursor = String::new();
    for _ in 0..CALLS_MAX {
        let found: ProductEventList = context.read(&base.clone().query("cursor", &cursor)).await?;
        for event in found.events {
            let data = event.data.to_string();
            let (user, email) = (event.person.user_id.unwrap_or_default(), event.person.email.unwrap_or_default());
            csv.push(&[event.id, event.name, user, email, event.source, event.created_at, data]);
        }
        cursor = found.next_cursor.unwrap_or_default();
        if cursor.is_empty() || csv.is_full() {
            break;
        }
    }
    let part = if cursor.is_empty() { "" } else { "-newest-part" };
    let file_name = format!("events-{}{part}.csv", context.now().strftime("%Y-%m-%d"));
    Ok(View::File { media_type: "text/csv; charset=utf-8", file_name, content: csv.finish() })
}
