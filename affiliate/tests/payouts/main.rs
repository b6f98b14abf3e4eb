//! Tests of payouts: drafting, approval, cancellation and settlement of runs; refunds in the meantime; interrupted
//! operations; and transfers. Each test ends with an audit. Most run on PostgreSQL as well.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod amounts;
mod compare;
#[path = "../../../store/tests/database/mod.rs"]
mod database;
mod interplay;
mod killed;
mod large;
mod life;
mod methods;
mod postgres;
#[allow(dead_code, reason = "used in full by the ledger's tests")]
#[path = "../ledger/processor_objects.rs"]
mod processor_objects;
mod setting;
mod transfers;
#[allow(dead_code, reason = "used in full by the ledger's tests")]
#[path = "../ledger/world.rs"]
mod world;
