//! The command line for people who call a postrider server.
//!
//! ```text
//! postrider NOUN [NOUN] VERB [ID] [flags] ─► operation table ─► flags ─► request ─► client ─► answer ─► output
//! postrider login, whoami, …               ─► commands
//! ```
//!
//! Every operation that accepts an API key is a command; `sdk/operations.json` names it and its fields. The commands
//! written by hand are in [`commands`]. Exit statuses: 0 done, 1 refused, 2 usage, 3 try again, 4 unconfirmed, 5 changes
//! to make (`plan`), 6 approval required.

mod account;
pub mod api_key;
pub mod arguments;
pub mod base_url;
mod browser;
pub mod client;
mod clock;
pub mod commands;
mod connection;
mod cursor_trail;
mod duration;
pub mod error;
pub mod event_stream;
mod example;
pub mod field;
pub mod file_value;
pub mod message_content;
mod nouns;
mod oauth;
pub mod operation;
pub mod operation_command;
pub mod output;
pub mod profile;
mod program;
mod progress;
mod proxy;
mod random;
mod retry_after;
mod secret_file;
mod short_flag;
pub mod sign_in;
mod tree;
pub mod webhook_signature;

pub use program::{arguments, has_command, refuse, run};
