//! Product events as clients see them: the stored copy.

use http::StatusCode;
use mail::id::ProductEventId;
use mail::product_event::ProductEvent;
use queue::product_events::Taken;
use serde::Serialize;
use serde_json::{Value, json};

use crate::automations::view::RunView;
use crate::emails::view::Moment;
use crate::schema::{self, Describe, Schemas};

/// A product event.
#[derive(Debug, Serialize)]
pub struct ProductEventView {
    id: ProductEventId,
    name: String,
    user_id: Option<String>,
    email: Option<String>,
    #[serde(serialize_with = "mail::number::serialize")]
    data: Value,
    source: String,
    created_at: Moment,
}

impl ProductEventView {
    /// What is shown of an event.
    #[must_use]
    pub fn of(event: ProductEvent) -> Self {
        let ProductEvent { id, account: _, name, user_id, email, data, source, created_at } = event;
        Self { id, name, user_id, email, data, source, created_at: Moment(created_at) }
    }
}

impl Describe for ProductEventView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("ProductEvent", |_| {
            let mut name = schema::string("What happened");
            name["examples"] = json!(["user.created"]);
            let mut source = schema::string("Where it came from: `api`");
            source["examples"] = json!(["api"]);
            schema::object(
                "Something that happened in a product",
                [
                    ("id", schema::string("`ae_…`")),
                    ("name", name),
                    ("user_id", schema::nullable_string("Whom it happened to, by the product's own id")),
                    ("email", schema::nullable_string("Whom it happened to, by address")),
                    (
                        "data",
                        json!({"type": "object", "description": "Particulars; credentials are stored as `REDACTED`"}),
                    ),
                    ("source", source),
                    ("created_at", schema::time("When it was accepted")),
                ],
            )
        })
    }
}

/// A page of events.
#[derive(Debug, Serialize)]
pub struct EventList {
    /// The events, newest first.
    pub events: Vec<ProductEventView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

impl Describe for EventList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = ProductEventView::schema(schemas);
        schemas.named("ProductEventList", |_| schema::page("events", entry))
    }
}

/// An event by itself.
#[derive(Debug, Serialize)]
pub struct OneEvent {
    /// It.
    pub event: ProductEventView,
}

impl Describe for OneEvent {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = ProductEventView::schema(schemas);
        schemas.named("OneProductEvent", |_| schema::object("A product event", [("event", event)]))
    }
}

/// The answer to `POST /events`.
#[derive(Debug, Serialize)]
pub struct Accepted {
    event: ProductEventView,
    matched_automations: u64,
    resumed_runs: u64,
    cancelled_runs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunView>,
}

impl Accepted {
    /// What was taken in, and what automations do because of it.
    #[must_use]
    pub fn of(taken: &Taken) -> Self {
        Self {
            event: ProductEventView::of(taken.event.clone()),
            matched_automations: taken.reaction.matched,
            resumed_runs: taken.reaction.resumed,
            cancelled_runs: taken.reaction.cancelled,
            run: None,
        }
    }

    /// An event that an automation was tried out with, and the run of it.
    #[must_use]
    pub fn rehearsed(event: &ProductEvent, run: RunView) -> Self {
        let event = ProductEventView::of(event.redacted());
        Self { event, matched_automations: 1, resumed_runs: 0, cancelled_runs: 0, run: Some(run) }
    }
}

impl Describe for Accepted {
    const DONE: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        let event = ProductEventView::schema(schemas);
        let run = RunView::schema(schemas);
        schemas.named("AcceptedEvent", |_| {
            schema::object_with(
                "The event was accepted",
                &["event", "matched_automations", "resumed_runs", "cancelled_runs"],
                [
                    ("event", event),
                    ("matched_automations", schema::count("Active automations whose trigger it matched")),
                    ("resumed_runs", schema::count("Runs that waited for it and go on")),
                    ("cancelled_runs", schema::count("Runs that it ended")),
                    ("run", run),
                ],
            )
        })
    }
}
