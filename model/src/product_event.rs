//! A product event, reported by a customer's product.
//!
//! ```text
//! original ─► automations
//!    └ redaction ─► stored, shown ─► counting status ─► counted · person (first times, source) ─► funnels
//!                                           └ sign-up context ─► conversion, once
//! ```
//!
//! The stored copy has no credentials ([`redaction`]); automations receive the original.

pub mod conversion;
pub mod counting_status;
pub mod funnel;
pub mod person;
pub mod redaction;
pub mod signup_context;
pub mod site_visit;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AccountId, ProductEventId};

/// Maximum length of a name, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Maximum length of a user id, in bytes.
pub const USER_ID_BYTES_MAX: usize = 255;
/// Maximum size of `data` as received, in bytes.
pub const DATA_BYTES_MAX: usize = 64 << 10;
/// Maximum nesting of lists and objects in `data`, itself included.
pub const DATA_LEVELS_MAX: usize = 32;

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProductEvent {
    pub id: ProductEventId,
    pub account: AccountId,
    /// Name chosen by the customer, e.g. `user.created`.
    pub name: String,
    /// The person's id in the product.
    pub user_id: Option<String>,
    /// The person's email address.
    pub email: Option<String>,
    /// Custom fields: a JSON object.
    pub data: Value,
    /// Origin of the event: `api`.
    pub source: String,
    /// Time of acceptance.
    pub created_at: Timestamp,
}

impl ProductEvent {
    /// Returns the copy to store and show, without credentials.
    pub fn redacted(&self) -> Self {
        Self { data: redaction::redact(&self.name, &self.data), ..self.clone() }
    }
}

/// Validates an event name.
///
/// # Errors
/// Returns the reason, to be appended to the field's name.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("is longer than {NAME_BYTES_MAX} bytes"));
    }
    if name.chars().any(char::is_control) || name.trim() != name {
        return Err("must not begin or end with a space or hold control characters".to_owned());
    }
    Ok(())
}
