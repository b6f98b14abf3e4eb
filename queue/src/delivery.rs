//! Delivery: attempts over the connections of ready queues, and what follows from each.
//!
//! ```text
//! ready queue ─► attempt ─► client ─► mail host ─► reply_policy ─► outcome ─► outcome_writer ─►[ outcome ]
//! ```

pub(crate) mod attempt;
pub(crate) mod attempt_log;
pub mod client;
pub(crate) mod commit_retries;
pub mod delivery_metrics;
pub mod delivery_policy;
pub mod dkim2;
pub mod keys;
pub mod last_hour;
pub mod outcome;
pub(crate) mod outcome_writer;
pub mod reply_policy;
pub mod retry_schedule;
pub mod tls_reporter;
pub(crate) mod tls_session_stats;
