//! Tests of the ledger through events: each row of the table in completions-affiliate.md 2.2, events in any order and
//! from several nodes, and store failures. Each test ends with an audit.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod brought;
mod by_hand;
mod customers;
mod entry_points;
mod facts;
mod faults;
mod leads;
mod order;
mod told;
mod visits;
mod world;
