//! A product event: what a customer's product says that happened in it (email-api.md, "Event endpoint").
//!
//! ```text
//! as it came ─► automations
//!     └ redaction ─► stored, shown ─► standing ─► counted · person (marks, source) ─► funnels
//!                                         └ context ─► conversion, once
//! ```
//!
//! It is stored without the credentials that it may carry ([`redaction`]); automations see it as it came.

pub mod context;
pub mod conversion;
pub mod funnel;
pub mod person;
pub mod redaction;
pub mod standing;
pub mod visit;

use jiff::Timestamp;
use serde_json::Value;

use crate::id::{AccountId, ProductEventId};

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// The longest user id, in bytes.
pub const USER_ID_BYTES_MAX: usize = 255;
/// The largest `data`, in bytes as it comes.
pub const DATA_BYTES_MAX: usize = 64 << 10;
/// Levels of lists and objects in `data`, itself included.
pub const DATA_LEVELS_MAX: usize = 32;

/// What happened in a customer's product.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductEvent {
    /// Its id.
    pub id: ProductEventId,
    /// Whose it is.
    pub account: AccountId,
    /// What happened, as the customer calls it: `user.created`.
    pub name: String,
    /// Whom it happened to, by the product's own id.
    pub user_id: Option<String>,
    /// Whom it happened to, by address.
    pub email: Option<String>,
    /// Particulars: a JSON object.
    pub data: Value,
    /// Where it came from: `api`.
    pub source: String,
    /// When it was accepted.
    pub created_at: Timestamp,
}

impl ProductEvent {
    /// The copy that is stored and shown: without credentials.
    #[must_use]
    pub fn redacted(&self) -> Self {
        Self { data: redaction::redact(&self.name, &self.data), ..self.clone() }
    }
}

/// What is wrong with a text as the name of an event.
///
/// # Errors
/// What.
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
