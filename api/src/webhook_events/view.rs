//! JSON objects of the event stream.

use events::webhooks::endpoints::DispatchedEvent;
use httpd::json_timestamp::JsonTimestamp;
use model::id::EventId;
use serde::Serialize;
use serde_json::{Map, Value};

/// An event, with the fields of a webhook body.
#[derive(Debug, Serialize)]
pub(super) struct WebhookEventView {
    pub(super) id: EventId,
    pub(super) r#type: &'static str,
    pub(super) created_at: JsonTimestamp,
    pub(super) data: Map<String, Value>,
}

impl From<DispatchedEvent> for WebhookEventView {
    fn from(dispatched: DispatchedEvent) -> Self {
        let DispatchedEvent { event, data, .. } = dispatched;
        Self { id: event.id, r#type: event.kind.name(), created_at: JsonTimestamp(event.created_at), data }
    }
}
