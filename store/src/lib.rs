//! The crate `store`: all persistent state.
//!
//! `engine` is an ordered key-value surface (`get_many`, `scan`, `commit` of a batch with checks) and the engines
//! behind it. `key` builds keys whose byte order is the order of their parts. Every other file is one noun, with its
//! rows, keys, reads and writes, on top of that surface only.

pub mod access;
pub mod account;
pub mod affiliate;
pub mod approval;
pub mod attempt;
pub mod automation;
pub mod automation_run;
pub mod backlog;
pub mod billing;
pub mod client_sends;
mod codec;
pub mod conversion;
pub mod conversion_export;
pub mod credential;
pub mod deadline;
pub mod destination;
pub mod dmarc;
pub mod dns_credential;
pub mod domain;
pub mod domain_claim;
pub mod domain_setup;
pub mod email;
pub mod email_index;
pub mod engine;
pub mod event;
pub mod event_log;
#[cfg(test)]
mod golden_rows;
pub mod idempotency;
pub mod key;
pub mod last_used;
pub mod lease;
pub mod metric;
pub mod oauth;
pub mod opt_out;
mod outage_log;
pub mod outbox;
pub mod owner_alert;
pub mod pending_analytics;
pub mod pending_dsn;
pub mod person;
pub mod pool;
pub mod product_event;
pub mod product_event_count;
pub mod queue_command;
pub mod queue_counts;
pub mod queue_hold;
pub mod queue_walk;
pub mod quota;
pub mod received_email;
pub mod request_log;
mod retry;
mod rows;
pub mod schedule;
pub mod session;
pub mod setting;
pub mod sign_in_link;
pub mod sts_policy;
pub mod suppression;
pub mod suppression_import;
pub mod task;
pub mod template;
pub mod tls_daily_stats;
pub mod tls_report_received;
pub mod tracking;
pub mod usage;
pub mod user;
pub mod webhook;
pub mod webhook_delivery;

pub use retry::{RetriesExhausted, retry_on_conflict};
