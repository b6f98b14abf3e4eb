//! Payouts: runs are drafted, approved, cancelled, paid; what happens to sales meanwhile; what is cut off half-way; and
//! the processor's transfers. After each, an audit. All of it on PostgreSQL as well.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

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
mod setting;
#[allow(dead_code, reason = "the ledger's tests have more to tell")]
#[path = "../ledger/told.rs"]
mod told;
mod transfers;
#[allow(dead_code, reason = "the ledger's tests ask for more")]
#[path = "../ledger/world.rs"]
mod world;
