//! `GET /webhook-events`: the account's stream of events, for who polls it rather than being told
//! (completions-email.md 2.11).
//!
//! Oldest first, a cursor comes with every page, so that who asks again with it misses nothing and sees nothing
//! twice; [`live`] is the same as server-sent events.

mod live;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::ACCEPT;
use mail::credential::ApiKeyScope;
use mail::event::EventKind;
use mail::id::EventId;
use queue::webhooks::desk::DispatchedEvent;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::access::Tenant;
use store::stream::EventLogEntry;

use crate::call::{ExtraResponse, FromRequest, IntoResponse, Request, RequestSpec, Response};
use crate::emails::view::JsonTimestamp;
use crate::operations::{Operation, operation};
use crate::page::{self, KIND_STREAM, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// How long a page waits for what was just done to be told.
const OUTBOX_WAIT_MAX: Duration = Duration::from_secs(2);
/// Entries that one page looks at, whatever it finds.
const SCANNED_ENTRIES_MAX: usize = 20_000;
/// What asks for server-sent events.
const EVENT_STREAM: &str = "text/event-stream";

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    vec![
        operation(Method::GET, "/webhook-events", "list_webhook_events")
            .about("webhooks", "Read the stream of events, as pages or as server-sent events")
            .api_key_or_session(ApiKeyScope::Full, list),
    ]
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortDirection {
    OldestFirst,
    NewestFirst,
}

/// What it takes.
#[derive(Debug)]
pub struct ListWebhookEvents {
    limit: usize,
    cursor: Option<u64>,
    direction: SortDirection,
    kinds: Vec<EventKind>,
    /// As server-sent events.
    live: bool,
}

impl ListWebhookEvents {
    fn matches(&self, entry: &EventLogEntry) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&entry.kind)
    }
}

fn event_kind_words() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.name()).collect()
}

impl FromRequest for ListWebhookEvents {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let mut parameters = PageParameters::parameters();
        let text = format!("Only these: {}; several with commas", event_kind_words().join(", "));
        parameters.push(schema::query_parameter("types", &text, json!({"type": "string"})));
        let order = json!({"type": "string", "enum": ["asc", "desc"], "default": "desc"});
        let text = "`asc`: oldest first, with a cursor on the last page too, to ask again with; `desc`: newest first";
        parameters.push(schema::query_parameter("order", text, order));
        let text = "Of server-sent events: the `id` of the last one that was seen";
        parameters.push(schema::header_parameter("last-event-id", text));
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let parameters = page::parse_query(&call.query)?;
        let page = PageParameters::from_query(&call.query)?;
        let live = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let live = live.is_some_and(|accepted| accepted.to_ascii_lowercase().contains(EVENT_STREAM));
        let direction = match page::single_value(&parameters, "order")? {
            Some("asc") => SortDirection::OldestFirst,
            None | Some("desc") => SortDirection::NewestFirst,
            Some(_) => return Err(Problem::field("order", "must be asc or desc")),
        };
        let mut cursor = page.cursor_number(KIND_STREAM)?;
        if let Some(seen) = call.headers.get("last-event-id").filter(|seen| live && !seen.is_empty()) {
            let seen = seen.to_str().ok().and_then(|seen| page::decode_number(KIND_STREAM, seen));
            cursor = Some(seen.ok_or_else(page::invalid_cursor)?);
        }
        let kinds = page::parse_words(&call.query, "types", &event_kind_words(), EventKind::from_name)?;
        Ok(Self { limit: page.limit, cursor, direction, kinds, live })
    }
}

/// An event as it is told.
#[derive(Debug, Serialize)]
struct WebhookEventView {
    id: EventId,
    r#type: &'static str,
    created_at: JsonTimestamp,
    data: Map<String, Value>,
}

impl From<DispatchedEvent> for WebhookEventView {
    fn from(told: DispatchedEvent) -> Self {
        let DispatchedEvent { event, data, .. } = told;
        Self { id: event.id, r#type: event.kind.name(), created_at: JsonTimestamp(event.created_at), data }
    }
}

/// A page of events.
#[derive(Debug, Serialize)]
struct WebhookEventPage {
    events: Vec<WebhookEventView>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// A page, or the stream as it grows.
#[derive(Debug)]
pub struct WebhookEventsResponse(WebhookEventsBody);

#[derive(Debug)]
enum WebhookEventsBody {
    Page(WebhookEventPage),
    Live(crate::call::BodyStream),
}

impl IntoResponse for WebhookEventsResponse {
    const EXTRA_RESPONSES: &'static [ExtraResponse] = &[ExtraResponse {
        status: 200,
        media_type: Some(EVENT_STREAM),
        about: "The stream as it grows, where `accept` asks for it: `id` is a cursor, `event` the type, `data` an \
                entry as pages have it",
    }];

    fn describe(schemas: &mut Schemas) -> Value {
        let entry = schemas.component("StreamEvent", |_| {
            schema::object(
                "An event, as webhooks tell it",
                [
                    ("id", schema::string("`evt_…`")),
                    ("type", schema::string_enum(&event_kind_words(), "What happened")),
                    ("created_at", schema::time("When")),
                    ("data", json!({"type": "object", "description": "What a webhook has as its `data`"})),
                ],
            )
        });
        schemas.component("StreamEventList", |_| {
            schema::object(
                "A page of the stream",
                [
                    ("events", schema::list(entry, "The events, in the order asked for")),
                    ("has_more", schema::boolean("Whether there are more now")),
                    (
                        "next_cursor",
                        schema::nullable_string("Where to go on; oldest first, also where there is nothing more yet"),
                    ),
                ],
            )
        })
    }

    fn into_body(self) -> Result<Bytes, Problem> {
        match self.0 {
            WebhookEventsBody::Page(page) => serde_json::to_vec(&page).map(Bytes::from).map_err(Problem::internal),
            WebhookEventsBody::Live(_) => Ok(live::BEGINNING),
        }
    }

    fn into_response(self) -> Result<Response, Problem> {
        let (body, media_type, more) = match self.0 {
            WebhookEventsBody::Live(more) => (live::BEGINNING, EVENT_STREAM, Some(more)),
            page @ WebhookEventsBody::Page(_) => (Self(page).into_body()?, Self::MEDIA_TYPE, None),
        };
        let media_type = http::HeaderValue::from_static(media_type);
        Ok(Response { status: Self::STATUS, media_type, headers: Vec::new(), body, stream: more })
    }
}

/// `GET /webhook-events`.
///
/// # Errors
/// The cursor is none of this list's; too many follow already; the store cannot be read.
pub async fn list(
    room: Arc<AppState>,
    tenant: Tenant,
    input: ListWebhookEvents,
) -> Result<WebhookEventsResponse, Problem> {
    if input.live {
        return live::start(&room, &tenant, input)
            .await
            .map(|more| WebhookEventsResponse(WebhookEventsBody::Live(more)));
    }
    room.intake.dispatch_outbox_within(OUTBOX_WAIT_MAX).await;
    let (store, account) = (room.intake.store(), tenant.account().id);
    let first = match input.direction {
        SortDirection::OldestFirst => 0,
        SortDirection::NewestFirst => u64::MAX,
    };
    let mut seen = input.cursor.unwrap_or(first);
    let (mut chosen, mut looked, mut has_more) = (Vec::new(), 0, true);
    'looking: while has_more && looked < SCANNED_ENTRIES_MAX {
        let entries = match input.direction {
            SortDirection::OldestFirst => store::stream::list_after(store, account, seen).await?,
            SortDirection::NewestFirst => store::stream::list_before(store, account, seen).await?,
        };
        has_more = !entries.is_empty();
        for entry in entries {
            if chosen.len() == input.limit && input.matches(&entry) {
                break 'looking;
            }
            (seen, looked) = (entry.number, looked + 1);
            if input.matches(&entry) {
                chosen.push(entry);
            }
        }
    }
    let events = room.intake.dispatched_events(account, &chosen).await?;
    let goes_on = has_more || input.direction == SortDirection::OldestFirst;
    Ok(WebhookEventsResponse(WebhookEventsBody::Page(WebhookEventPage {
        events: events.into_iter().map(WebhookEventView::from).collect(),
        has_more,
        next_cursor: goes_on.then(|| page::after_number(KIND_STREAM, seen)),
    })))
}
