//! The HTTP door: JSON in, JSON out, for the customers' programs.
//!
//! ```text
//! listener → connection → dispatch → { route, authenticate, read the body } → handler → answer
//! ```
//!
//! One table, [`operations`], says what exists; the router, the OpenAPI document and the scope
//! tests are derived from it. A handler is a free async function: its tenant is an argument that
//! only authentication can make, its input and output are types that know how to read, write and
//! describe themselves. Errors become wire in one place, [`problem`]. The contract is the email API
//! specification; what it leaves open is written beside the code that decides it.

pub mod access;
pub mod account;
pub mod affiliate;
pub mod auth;
pub mod automations;
pub mod billing;
pub mod call;
pub mod credentials;
pub mod dispatch;
pub mod domains;
pub mod done;
pub mod emails;
pub mod events;
pub mod fields;
pub mod health;
pub mod held;
pub mod idempotency;
pub mod journal;
pub mod logs;
pub mod mta_sts;
pub mod openapi;
pub mod operations;
pub mod operator;
pub mod opt_outs;
mod own;
pub mod page;
pub mod period;
pub mod portal;
pub mod problem;
pub mod received_emails;
pub mod room;
pub mod schema;
pub mod serve;
pub mod suppressions;
pub mod templates;
pub mod tracking;
pub mod unparsed;
pub mod unsubscribe;
pub mod users;
pub mod version;
pub mod visits;
pub mod webhook_events;
pub mod webhooks;
