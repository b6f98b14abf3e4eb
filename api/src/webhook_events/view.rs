//! JSON objects of the event stream.

use events::webhooks::endpoints::DispatchedEvent;
use serde_json::Map;

use crate::prelude::*;
use crate::webhooks::request::event_names;

/// An event, as in a webhook body
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "StreamEvent")]
pub(super) struct WebhookEventView {
    /// Id (`evt_…`)
    pub(super) id: EventId,
    /// Type
    #[schema(with = event_name_schema)]
    pub(super) r#type: &'static str,
    /// Time of the event
    pub(super) created_at: JsonTimestamp,
    /// The `data` of the webhook body
    #[schema(as = String, type = "object")]
    pub(super) data: Map<String, Value>,
}

fn event_name_schema(_: &mut Schemas) -> Value {
    json!({"type": "string", "enum": event_names()})
}

impl From<DispatchedEvent> for WebhookEventView {
    fn from(dispatched: DispatchedEvent) -> Self {
        let DispatchedEvent { event, data, .. } = dispatched;
        Self { id: event.id, r#type: event.kind.name(), created_at: JsonTimestamp(event.created_at), data }
    }
}
