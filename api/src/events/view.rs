//! JSON objects of product events.

use events::product_events::IngestedProductEvent;
use model::product_event::ProductEvent;

use crate::automations::view::AutomationRunView;
use crate::prelude::*;

/// A product event
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ProductEvent")]
pub struct ProductEventView {
    /// `ae_…`
    id: ProductEventId,
    /// The event name
    #[schema(examples = ["user.created"])]
    name: String,
    /// The person's user id in your product
    user_id: Option<String>,
    /// The person's email address
    email: Option<String>,
    /// Event data; credentials are stored as `REDACTED`
    #[serde(serialize_with = "model::raw_number::serialize")]
    #[schema(type = "object")]
    data: Value,
    /// The source, like `api`
    #[schema(examples = ["api"])]
    source: String,
    /// When it was accepted
    created_at: JsonTimestamp,
}

impl ProductEventView {
    pub fn from_event(event: ProductEvent) -> Self {
        let ProductEvent { id, account: _, name, user_id, email, data, source, created_at } = event;
        Self { id, name, user_id, email, data, source, created_at: JsonTimestamp(created_at) }
    }
}

list_response! { pub ProductEventList { events: ProductEventView } as "ProductEventList" }

object_response! { "A product event", pub ProductEventResponse { event: ProductEventView } as "OneProductEvent" }

object_view! {
    /// The event was accepted
    #[schema(name = "AcceptedEvent", status = ACCEPTED)]
    pub struct SendEventResponse,
    /// The response for an ingested event, with its effects on automations.
    pub fn from_accepted_event(accepted: &IngestedProductEvent) {
        event: ProductEventView = ProductEventView::from_event(accepted.event.clone()),
        /// Number of active automations that the event triggered
        matched_automations: u64 = accepted.effects.matched,
        /// Number of waiting runs that the event resumed
        resumed_runs: u64 = accepted.effects.resumed,
        /// Number of runs that the event cancelled
        cancelled_runs: u64 = accepted.effects.cancelled,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<AutomationRunView> = None,
    }
}

impl SendEventResponse {
    /// The response for a dry run, with its run.
    pub fn from_dry_run(event: &ProductEvent, run: AutomationRunView) -> Self {
        let event = ProductEventView::from_event(event.redacted());
        Self { event, matched_automations: 1, resumed_runs: 0, cancelled_runs: 0, run: Some(run) }
    }
}
