//! The inspection of domains against name servers on loopback: every way to publish a record wrong.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../tests/world/zone.rs"]
mod zone;

mod aliases;
mod anything;
mod dkim;
mod servers;
mod spf;
mod texts;
mod world;
