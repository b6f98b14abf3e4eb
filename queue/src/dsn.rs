//! Delivery status notifications (RFC 3464): requested with outcomes, gathered by email, built and submitted.

pub(crate) mod dsn_builder;
pub mod dsn_request;
pub mod pending_dsns;
