//! JSON objects of the event stream.

use events::webhooks::endpoints::DispatchedEvent;
use serde_json::Map;

use crate::prelude::*;

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
