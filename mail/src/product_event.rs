//! A product event: what a customer's product says that happened in it (email-api.md, "Event endpoint").
//!
//! It is stored without the credentials that it may carry; automations see it as it came.

use jiff::Timestamp;
use serde_json::Value;

use crate::id::{AccountId, ProductEventId};

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
