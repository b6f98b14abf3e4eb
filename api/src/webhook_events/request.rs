//! Parameters of the event stream.

use http::header::ACCEPT;
use httpd::paging::{self, KIND_STREAM, PageParameters};
use httpd::problem::Problem;
use httpd::request::{FromRequest, Request, RequestSpec};
use model::event::EventKind;
use schema::Schemas;
use serde_json::json;
use store::event_log::EventLogEntry;

/// The media type of server-sent events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortDirection {
    OldestFirst,
    NewestFirst,
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

pub(super) fn event_kind_words() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.name()).collect()
}

impl FromRequest for ListWebhookEvents {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        let text = format!("Any of these, separated by commas: {}", event_kind_words().join(", "));
        parameters.push(schema::query_parameter("types", &text, json!({"type": "string"})));
        let order = json!({"type": "string", "enum": ["asc", "desc"], "default": "desc"});
        let text = "`asc`: oldest first, and the last page has a cursor too, for polling; `desc`: newest first";
        parameters.push(schema::query_parameter("order", text, order));
        let text = "For server-sent events: the `id` of the last event received";
        parameters.push(schema::header_parameter("last-event-id", text));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = paging::parse_query(&call.query)?;
        let page = PageParameters::from_query(&call.query)?;
        let is_live = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let is_live = is_live.is_some_and(|accepted| accepted.to_ascii_lowercase().contains(EVENT_STREAM));
        let direction = match paging::single_value(&parameters, "order")? {
            Some("asc") => SortDirection::OldestFirst,
            None | Some("desc") => SortDirection::NewestFirst,
            Some(_) => return Err(Problem::field("order", "must be `asc` or `desc`")),
        };
        let mut cursor = page.cursor_number(KIND_STREAM)?;
        if let Some(last_event_id) =
            call.headers.get("last-event-id").filter(|last_event_id| is_live && !last_event_id.is_empty())
        {
            let last_event_id =
                last_event_id.to_str().ok().and_then(|last_event_id| paging::decode_number(KIND_STREAM, last_event_id));
            cursor = Some(last_event_id.ok_or_else(paging::invalid_cursor)?);
        }
        let kinds = paging::parse_words(&call.query, "types", &event_kind_words(), EventKind::from_name)?;
        Ok(Self { limit: page.limit, cursor, direction, kinds, is_live })
    }
}
