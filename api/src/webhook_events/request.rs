//! Parameters of the event stream.

use http::header::ACCEPT;
use httpd::paging::KIND_STREAM;
use model::event::EventKind;
use store::event_log::EventLogEntry;

use crate::prelude::*;
use crate::webhooks::request::event_names;

/// The media type of server-sent events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortDirection {
    OldestFirst,
    NewestFirst,
}

/// The query of `GET /webhook-events`.
#[derive(Debug)]
struct EventStreamQuery {
    page: PageParameters,
    kinds: Vec<EventKind>,
    direction: SortDirection,
}

impl RequestQuery for EventStreamQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let words = || event_names().join(", ");
        let about = format!("Any of these, separated by commas: {}", words());
        query.describe("types", &about, || json!({"type": "string"}));
        let kinds = query.given_words("types", words, EventKind::from_name)?;
        let order = query.parameter(
            "order",
            "`asc`: oldest first, and the last page has a cursor too, for polling; `desc`: newest first",
            || json!({"type": "string", "enum": ["asc", "desc"], "default": "desc"}),
        )?;
        let direction = match order {
            Some("asc") => SortDirection::OldestFirst,
            None | Some("desc") => SortDirection::NewestFirst,
            Some(_) => return Err(Problem::field("order", "must be `asc` or `desc`")),
        };
        Ok(Self { page, kinds, direction })
    }
}

/// Parameters of `GET /webhook-events`.
#[derive(Debug)]
pub struct ListWebhookEvents {
    pub(super) limit: usize,
    pub(super) cursor: Option<u64>,
    pub(super) direction: SortDirection,
    pub(super) kinds: Vec<EventKind>,
    /// True for server-sent events.
    pub(super) is_live: bool,
}

impl ListWebhookEvents {
    pub(super) fn matches(&self, entry: &EventLogEntry) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&entry.kind)
    }
}

impl FromRequest for ListWebhookEvents {
    fn parameters() -> Vec<Value> {
        let text = "For server-sent events: the `id` of the last event received";
        [EventStreamQuery::parameters(), vec![schema::header_parameter("last-event-id", text)]].concat()
    }

    fn read(call: &Request) -> Result<Self> {
        let EventStreamQuery { page, kinds, direction } = EventStreamQuery::read(call)?;
        let accepted = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let is_live = accepted.is_some_and(|accepted| accepted.to_ascii_lowercase().contains(EVENT_STREAM));
        let mut cursor = page.cursor_number(KIND_STREAM)?;
        if let Some(last) = call.headers.get("last-event-id").filter(|last| is_live && !last.is_empty()) {
            let last = last.to_str().ok().and_then(|last| paging::decode_number(KIND_STREAM, last));
            cursor = Some(last.ok_or_else(paging::invalid_cursor)?);
        }
        Ok(Self { limit: page.limit, cursor, direction, kinds, is_live })
    }
}
