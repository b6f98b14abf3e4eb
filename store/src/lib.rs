//! The room `store`: remembering.
//!
//! `engine` is an ordered key-value surface (`get_many`, `scan`, `commit` of a batch with checks) and
//! the engines behind it; `key` makes keys whose byte order is the order of what they say. Each other
//! file is one noun: its rows, its keys, its reads and its writes, on top of that surface alone.

pub mod access;
pub mod account;
pub mod affiliate;
pub mod attempt;
pub mod automation;
pub mod billing;
pub mod catalog;
pub mod claim;
pub mod conversion;
pub mod conversion_export;
pub mod credential;
pub mod deadline;
pub mod delivery;
pub mod destination;
pub mod dmarc;
pub mod dns_credential;
pub mod domain;
pub mod due;
pub mod email;
pub mod engine;
pub mod event;
#[cfg(test)]
mod golden_rows;
pub mod idempotency;
pub mod import;
pub mod key;
pub mod last_used;
pub mod lease;
pub mod metric;
pub mod notice;
pub mod opt_out;
mod outage_log;
pub mod outbox;
pub mod owner_notice;
pub mod person;
pub mod pool;
pub mod product_event;
pub mod product_event_count;
pub mod queue_counts;
pub mod queue_hold;
pub mod queue_order;
pub mod quota;
pub mod received;
pub mod request_log;
mod row;
pub mod run;
pub mod schedule;
pub mod session;
pub mod setting;
pub mod setup;
pub mod sign_in_link;
pub mod stream;
pub mod sts_policy;
pub mod suppression;
pub mod task;
pub mod template;
pub mod tls_day;
pub mod tls_heard;
pub mod tracking;
pub mod uncounted;
pub mod usage;
pub mod user;
pub mod webhook;
