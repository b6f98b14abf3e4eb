//! Tests of the ledger through events: each kind of event, events in any order and
//! from several nodes, and store failures. Each test ends with an audit.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod audits;
mod customers;
mod entry_points;
mod facts;
mod faults;
mod leads;
mod manual_actions;
mod order;
mod processor_objects;
mod referral_counts;
mod visits;
mod world;
