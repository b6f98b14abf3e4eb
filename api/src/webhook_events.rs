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
use mail::credential::Scope;
use mail::event::EventKind;
use mail::id::EventId;
use queue::webhooks::desk::ToldEvent;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::access::Tenant;
use store::stream::Entry;

use crate::call::{Also, Answer, Call, Input, Reply, Takes};
use crate::emails::view::Moment;
use crate::operations::{Operation, operation};
use crate::page::{self, KIND_STREAM, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// How long a page waits for what was just done to be told.
const TELL_MAX: Duration = Duration::from_secs(2);
/// Entries that one page looks at, whatever it finds.
const LOOK_MAX: usize = 20_000;
/// What asks for server-sent events.
const EVENT_STREAM: &str = "text/event-stream";

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    vec![
        operation(Method::GET, "/webhook-events", "list_webhook_events")
            .about("webhooks", "Read the stream of events, as pages or as server-sent events")
            .either(Scope::Full, list),
    ]
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    OldestFirst,
    NewestFirst,
}

/// What it takes.
#[derive(Debug)]
pub struct ListEvents {
    limit: usize,
    cursor: Option<u64>,
    direction: Direction,
    kinds: Vec<EventKind>,
    /// As server-sent events.
    live: bool,
}

impl ListEvents {
    fn takes(&self, entry: &Entry) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&entry.kind)
    }
}

fn words() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.name()).collect()
}

impl Input for ListEvents {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        let text = format!("Only these: {}; several with commas", words().join(", "));
        parameters.push(schema::query_parameter("types", &text, json!({"type": "string"})));
        let order = json!({"type": "string", "enum": ["asc", "desc"], "default": "desc"});
        let text = "`asc`: oldest first, with a cursor on the last page too, to ask again with; `desc`: newest first";
        parameters.push(schema::query_parameter("order", text, order));
        let text = "Of server-sent events: the `id` of the last one that was seen";
        parameters.push(schema::header_parameter("last-event-id", text));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let parameters = page::parameters(&call.query)?;
        let page = Page::read(&call.query)?;
        let live = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let live = live.is_some_and(|accepted| accepted.to_ascii_lowercase().contains(EVENT_STREAM));
        let direction = match page::one(&parameters, "order")? {
            Some("asc") => Direction::OldestFirst,
            None | Some("desc") => Direction::NewestFirst,
            Some(_) => return Err(Problem::field("order", "must be asc or desc")),
        };
        let mut cursor = page.number(KIND_STREAM)?;
        if let Some(seen) = call.headers.get("last-event-id").filter(|seen| live && !seen.is_empty()) {
            let seen = seen.to_str().ok().and_then(|seen| page::number_of(KIND_STREAM, seen));
            cursor = Some(seen.ok_or_else(page::invalid)?);
        }
        let kinds = page::words(&call.query, "types", &words(), EventKind::of_name)?;
        Ok(Self { limit: page.limit, cursor, direction, kinds, live })
    }
}

/// An event as it is told.
#[derive(Debug, Serialize)]
struct EventView {
    id: EventId,
    r#type: &'static str,
    created_at: Moment,
    data: Map<String, Value>,
}

impl From<ToldEvent> for EventView {
    fn from(told: ToldEvent) -> Self {
        let ToldEvent { event, data, .. } = told;
        Self { id: event.id, r#type: event.kind.name(), created_at: Moment(event.created_at), data }
    }
}

/// A page of events.
#[derive(Debug, Serialize)]
struct EventPage {
    events: Vec<EventView>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// A page, or the stream as it grows.
#[derive(Debug)]
pub struct Listed(Form);

#[derive(Debug)]
enum Form {
    Page(EventPage),
    Live(crate::call::Pieces),
}

impl Reply for Listed {
    const ALSO: &'static [Also] = &[Also {
        status: 200,
        media_type: Some(EVENT_STREAM),
        about: "The stream as it grows, where `accept` asks for it: `id` is a cursor, `event` the type, `data` an \
                entry as pages have it",
    }];

    fn describe(schemas: &mut Schemas) -> Value {
        let entry = schemas.named("StreamEvent", |_| {
            schema::object(
                "An event, as webhooks tell it",
                [
                    ("id", schema::string("`evt_…`")),
                    ("type", schema::words(&words(), "What happened")),
                    ("created_at", schema::time("When")),
                    ("data", json!({"type": "object", "description": "What a webhook has as its `data`"})),
                ],
            )
        });
        schemas.named("StreamEventList", |_| {
            schema::object(
                "A page of the stream",
                [
                    ("events", schema::list(entry, "The events, in the order asked for")),
                    ("has_more", schema::boolean("Whether there are more now")),
                    (
                        "next_cursor",
                        schema::nullable_string(
                            "Where to go on; oldest first, also where there is nothing more yet",
                        ),
                    ),
                ],
            )
        })
    }

    fn write(self) -> Result<Bytes, Problem> {
        match self.0 {
            Form::Page(page) => serde_json::to_vec(&page).map(Bytes::from).map_err(Problem::internal),
            Form::Live(_) => Ok(live::BEGINNING),
        }
    }

    fn answer(self) -> Result<Answer, Problem> {
        let (body, media_type, more) = match self.0 {
            Form::Live(more) => (live::BEGINNING, EVENT_STREAM, Some(more)),
            page @ Form::Page(_) => (Self(page).write()?, Self::MEDIA_TYPE, None),
        };
        let media_type = http::HeaderValue::from_static(media_type);
        Ok(Answer { status: Self::STATUS, media_type, headers: Vec::new(), body, more })
    }
}

/// `GET /webhook-events`.
///
/// # Errors
/// The cursor is none of this list's; too many follow already; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, input: ListEvents) -> Result<Listed, Problem> {
    if input.live {
        return live::begin(&room, &tenant, input).await.map(|more| Listed(Form::Live(more)));
    }
    room.hall.tell_within(TELL_MAX).await;
    let (store, account) = (room.hall.store(), tenant.account().id);
    let first = match input.direction {
        Direction::OldestFirst => 0,
        Direction::NewestFirst => u64::MAX,
    };
    let mut seen = input.cursor.unwrap_or(first);
    let (mut chosen, mut looked, mut has_more) = (Vec::new(), 0, true);
    'looking: while has_more && looked < LOOK_MAX {
        let entries = match input.direction {
            Direction::OldestFirst => store::stream::after(store, account, seen).await?,
            Direction::NewestFirst => store::stream::before(store, account, seen).await?,
        };
        has_more = !entries.is_empty();
        for entry in entries {
            if chosen.len() == input.limit && input.takes(&entry) {
                break 'looking;
            }
            (seen, looked) = (entry.number, looked + 1);
            if input.takes(&entry) {
                chosen.push(entry);
            }
        }
    }
    let events = room.hall.told_events(account, &chosen).await?;
    let goes_on = has_more || input.direction == Direction::OldestFirst;
    Ok(Listed(Form::Page(EventPage {
        events: events.into_iter().map(EventView::from).collect(),
        has_more,
        next_cursor: goes_on.then(|| page::after_number(KIND_STREAM, seen)),
    })))
}
