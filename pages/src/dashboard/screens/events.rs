//! Product events: the list with counts over time, one event, and sending a test event.

mod counts;
mod detail;
mod export;
mod list;
mod object;
mod send;
#[cfg(test)]
mod tests;

use crate::dashboard::table::{FormRow, PageAccess, PageRow};

pub(super) use self::counts::{EventCounts, top_names};
pub(super) use self::object::{EventItem, OneEvent, PersonKey, ProductEventList, event_path};

const LIST: &str = "/dashboard/events";

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/events",
        access: PageAccess::SignedIn,
        reads: &["list_events", "count_events"],
        show: |context| Box::pin(list::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/events/export.csv",
        access: PageAccess::SignedIn,
        reads: &["list_events"],
        show: |context| Box::pin(export::show(context)),
        forms: &[],
    },
    PageRow {
        path: "/events/new",
        access: PageAccess::SignedIn,
        reads: &["send_event"],
        show: |context| Box::pin(async move { Ok(send::show(context)) }),
        forms: &[FormRow { name: "send", operation: "send_event", submit: |context| Box::pin(send::send(context)) }],
    },
    PageRow {
        path: "/events/{id}",
        access: PageAccess::SignedIn,
        reads: &["get_event"],
        show: |context| Box::pin(detail::show(context)),
        forms: &[],
    },
];
