//! Trigger events: the events that start or resume automation runs, from product events and email events.

use jiff::Timestamp;
use serde_json::Value;

use crate::id::AccountId;
use crate::product_event::ProductEvent;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerEvent<'a> {
    pub account: AccountId,
    /// Event name: `user.created`, `email.delivered`.
    pub name: &'a str,
    /// The event id (`ae_…`, `evt_…`), 16 bytes: one event starts at most one run of an automation.
    pub id: [u8; 16],
    /// The person's id in the product.
    pub user_id: Option<&'a str>,
    /// The person's email address.
    pub email: Option<&'a str>,
    /// The event's `data` as received: a JSON object.
    pub data: &'a Value,
    pub at: Timestamp,
}

impl<'a> From<&'a ProductEvent> for TriggerEvent<'a> {
    fn from(event: &'a ProductEvent) -> Self {
        Self {
            account: event.account,
            name: &event.name,
            id: event.id.to_bytes(),
            user_id: event.user_id.as_deref(),
            email: event.email.as_deref(),
            data: &event.data,
            at: event.created_at,
        }
    }
}
