//! JSON objects of product events.

use http::StatusCode;
use mail::id::ProductEventId;
use mail::product_event::ProductEvent;
use queue::product_events::IngestedProductEvent;
use serde::Serialize;
use serde_json::{Value, json};

use crate::automations::view::AutomationRunView;
use crate::json_timestamp::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// A product event as stored.
#[derive(Debug, Serialize)]
pub struct ProductEventView {
    id: ProductEventId,
    name: String,
    user_id: Option<String>,
    email: Option<String>,
    #[serde(serialize_with = "mail::raw_number::serialize")]
    data: Value,
    source: String,
    created_at: JsonTimestamp,
}

impl ProductEventView {
    #[must_use]
    pub fn from_event(event: ProductEvent) -> Self {
        let ProductEvent { id, account: _, name, user_id, email, data, source, created_at } = event;
        Self { id, name, user_id, email, data, source, created_at: JsonTimestamp(created_at) }
    }
}

impl ToSchema for ProductEventView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("ProductEvent", |_| {
            let mut name = schema::string("The event name");
            name["examples"] = json!(["user.created"]);
            let mut source = schema::string("The source, like `api`");
            source["examples"] = json!(["api"]);
            schema::object(
                "A product event",
                [
                    ("id", schema::string("`ae_…`")),
                    ("name", name),
                    ("user_id", schema::nullable_string("The person's user id in your product")),
                    ("email", schema::nullable_string("The person's email address")),
                    (
                        "data",
                        json!({"type": "object", "description": "Event data; credentials are stored as `REDACTED`"}),
                    ),
                    ("source", source),
                    ("created_at", schema::time("When it was accepted")),
                ],
            )
        })
    }
}

#[derive(Debug, Serialize)]
pub struct ProductEventList {
    pub events: Vec<ProductEventView>,
    pub has_more: bool,
    /// `None` on the last page.
    pub next_cursor: Option<String>,
}

impl ToSchema for ProductEventList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = ProductEventView::schema(schemas);
        schemas.component("ProductEventList", |_| schema::list_page("events", entry))
    }
}

#[derive(Debug, Serialize)]
pub struct ProductEventResponse {
    pub event: ProductEventView,
}

impl ToSchema for ProductEventResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let event = ProductEventView::schema(schemas);
        schemas.component("OneProductEvent", |_| schema::object("A product event", [("event", event)]))
    }
}

/// The response to `POST /events`.
#[derive(Debug, Serialize)]
pub struct SendEventResponse {
    event: ProductEventView,
    matched_automations: u64,
    resumed_runs: u64,
    cancelled_runs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<AutomationRunView>,
}

impl SendEventResponse {
    /// The response for an ingested event, with its effects on automations.
    #[must_use]
    pub fn from_accepted_event(accepted: &IngestedProductEvent) -> Self {
        Self {
            event: ProductEventView::from_event(accepted.event.clone()),
            matched_automations: accepted.effects.matched,
            resumed_runs: accepted.effects.resumed,
            cancelled_runs: accepted.effects.cancelled,
            run: None,
        }
    }

    /// The response for a dry run, with its run.
    #[must_use]
    pub fn from_dry_run(event: &ProductEvent, run: AutomationRunView) -> Self {
        let event = ProductEventView::from_event(event.redacted());
        Self { event, matched_automations: 1, resumed_runs: 0, cancelled_runs: 0, run: Some(run) }
    }
}

impl ToSchema for SendEventResponse {
    const SUCCESS_STATUS: StatusCode = StatusCode::ACCEPTED;

    fn schema(schemas: &mut Schemas) -> Value {
        let event = ProductEventView::schema(schemas);
        let run = AutomationRunView::schema(schemas);
        schemas.component("AcceptedEvent", |_| {
            schema::object_with(
                "The event was accepted",
                &["event", "matched_automations", "resumed_runs", "cancelled_runs"],
                [
                    ("event", event),
                    ("matched_automations", schema::count("Number of active automations that the event triggered")),
                    ("resumed_runs", schema::count("Number of waiting runs that the event resumed")),
                    ("cancelled_runs", schema::count("Number of runs that the event cancelled")),
                    ("run", run),
                ],
            )
        })
    }
}
