//! Crashes: the real program, killed in the middle of its work, loses nothing that it acknowledged.
//!
//! ```text
//! clients (load.rs) ─► postrider serve (installation.rs) ─► mail host (sink.rs)
//!      │ begun, dotted, acknowledged          │ SIGKILL        │ arrived
//!      └───────────────► ledger.rs ◄──────────┴────────────────┘
//!                           │ compared, message by message, with the API's books (books.rs)
//! ```
//!
//! A signal falls at a counted moment: at the n-th acknowledgement, or at the n-th arrival before its
//! reply is written, so that runs of one seed kill in the same places of the dialog. What must hold is
//! said in [`ledger`]; `CRASH_KILLS=200` kills more often, `CRASH_SEED` at other moments.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on ends")]

mod books;
mod dice;
mod directory;
mod installation;
mod ledger;
mod load;
mod sink;
mod stories;
