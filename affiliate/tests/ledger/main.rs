//! The ledger by what it is told: each row of the table of completions-affiliate.md 2.2, the same events in any order and
//! by several at once, and what happens when the store refuses. After each, an audit.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod brought;
mod by_hand;
mod customers;
mod doors;
mod facts;
mod faults;
mod leads;
mod order;
mod told;
mod visits;
mod world;
