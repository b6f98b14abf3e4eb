//! Accounts: users, credentials, sending domains, suppressions, billing and retention.
//!
//! [`provisioning`] creates accounts, [`users`] manages their users, and [`credential_auth`] checks API keys and SMTP
//! credentials. [`domains`] verifies sending domains, [`suppressions`] and [`suppression_import`] change suppressions, and
//! `retention` deletes what is too old.
//!
//! This crate is the highest of the mail server's four. So [`subsystems`] builds those of `queue`, `events`, `inbound` and
//! its own, and [`background_tasks`] starts them.

pub mod background_tasks;
pub mod billing;
pub mod credential_auth;
pub mod domains;
pub mod provisioning;
mod retention;
pub mod subsystems;
pub mod suppression_import;
pub mod suppressions;
pub mod users;
