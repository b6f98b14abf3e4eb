//! Publishing a domain's records at providers with interfaces of their own, each played on loopback.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod cases;
#[path = "../world/domain.rs"]
mod domain;
mod players;
mod script;
mod set_players;
