//! Tests of the SMTP and HTTP clients: byte-exact scripts where the protocol matters, randomised hosts where only the
//! outcome matters.

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
