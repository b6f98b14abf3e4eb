//! Product events: the list with counts over time, one event, and sending a test event.
use crate::dashboard::prelude::*;

mod counts;
mod detail;
mod export;
mod list;
mod object;
mod send;
#[cfg(test)]
mod tests;

pub(super) use self::counts::{EventCounts, top_names};
pub(super) use self::object::{EventItem, PersonKey, event_path};

const LIST: &str = "/dashboard/events";

pub const PAGES: &[PageRow] = page_rows! {
    "/events" => list::show, reads ["list_events", "count_events"];
    "/events/export.csv" => export::show, reads ["list_events"];
    "/events/new" => send::show, reads ["send_event"], forms {
        "send" => send::send, calls "send_event";
    };
    "/events/{id}" => detail::show, reads ["get_event"];
};
