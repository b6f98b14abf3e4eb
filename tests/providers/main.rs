//! Publishing a domain's DNS records through the APIs of simulated providers on loopback.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod cases;
#[path = "../world/domain.rs"]
mod domain;
mod players;
mod script;
mod set_players;
