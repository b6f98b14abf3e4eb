//! The courier against hosts that are told what to say: to the byte where the words matter, at
//! random where only the outcome does.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod certificates;
mod chaos;
mod dialling;
mod faults;
mod posting;
mod script;
mod sts;
mod transactions;
#[path = "../../../tests/world/zone.rs"]
mod zone;
