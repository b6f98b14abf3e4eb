//! The domain check against name servers on loopback: every kind of mistake in a record.
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
