//! A signal: what automations hear of. A product event is one, and so is an event about an email.

use jiff::Timestamp;
use serde_json::Value;

use crate::id::AccountId;
use crate::product_event::ProductEvent;

/// Something that happened, as automations see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriggerEvent<'a> {
    /// Whose it is.
    pub account: AccountId,
    /// What happened: `user.created`, `email.delivered`.
    pub name: &'a str,
    /// The id of the event (`ae_…`, `evt_…`), 16 bytes: one event starts one run of an automation.
    pub id: [u8; 16],
    /// Whom it happened to, by the product's own id.
    pub user_id: Option<&'a str>,
    /// Whom it happened to, by address.
    pub email: Option<&'a str>,
    /// Particulars, as they came: a JSON object.
    pub data: &'a Value,
    /// When it happened.
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
