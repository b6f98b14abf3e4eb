//! The nouns of the house and the rules that need nothing but their arguments.
//!
//! No I/O, no async, no clock: time and randomness come in as values. Everything else in
//! postrider knows this room; it knows none of them.

pub mod account;
pub mod address;
pub mod arrival;
pub mod attached;
pub mod attempt;
pub mod automation;
pub mod catalog;
pub mod claim;
pub mod classify;
pub mod compose;
pub mod contents;
pub mod credential;
pub mod csv;
pub mod dmarc;
pub mod domain;
pub mod draft;
pub mod dsn;
pub mod egress;
pub mod email;
pub mod event;
pub mod fingerprint;
pub mod id;
pub mod idempotency;
pub mod import;
pub mod link;
pub mod message;
pub mod metric;
pub mod moment;
pub mod network;
pub mod notice;
pub mod outcome;
pub mod payload;
pub mod plan;
pub mod product_event;
pub mod recipient;
pub mod reply;
pub mod request_log;
pub mod returned;
pub mod rewrite;
pub mod schedule;
pub mod sending_name;
pub mod service;
pub mod setup;
pub mod signal;
pub mod suppression;
pub mod tags;
pub mod task;
pub mod template;
pub mod tracking;
pub mod unsubscribe;
pub mod usage;
pub mod user;
pub mod verp;
