//! Crash tests: the server is killed while it works and must lose no message that it acknowledged.
//!
//! ```text
//! clients (load.rs) ─► postrider serve (installation.rs) ─► mail host (sink.rs)
//!      │ started, dot sent, acknowledged      │ SIGKILL        │ arrived
//!      └───────────────► ledger.rs ◄──────────┴────────────────┘
//!                           │ compared, message by message, with the emails in the API (api_emails.rs)
//! ```
//!
//! A signal is sent at a counted event: at the nth acknowledgement, or at the nth arrival before its reply is written.
//! Runs with the same seed therefore kill at the same points of the SMTP dialog. [`ledger`] states the invariants.
//! `CRASH_KILLS=200` sets the number of kills, `CRASH_SEED` the seed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod api_emails;
mod approvals;
mod directory;
mod installation;
mod ledger;
mod load;
mod seeded_random;
mod sink;
mod stories;
