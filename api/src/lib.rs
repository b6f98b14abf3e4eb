//! The HTTP JSON API for customers' programs and the dashboard.
//!
//! ```text
//! listener → connection → dispatch → { route, authenticate, read the body } → handler → response
//! ```
//!
//! Each layer imports only from layers to its left:
//!
//! ```text
//! httpd → sdk, state → handler, operation → one folder for each resource → operations, openapi → server → dispatch → serve
//! ```
//!
//! One table, [`operations`], lists all operations; the router, the OpenAPI document and the scope tests are derived
//! from it. A handler is a free async function: its tenant is an argument that only authentication can create, and its
//! input and output types parse, render and describe themselves. The crate `httpd` has what knows no noun: connections,
//! bodies, requests, responses and problems. The contract is the email API; open decisions are documented at the code that makes them.

pub mod access;
pub mod account;
mod account_permits;
pub mod affiliate;
pub(crate) mod approval_change;
mod approval_executor;
mod approval_signals;
pub mod approval_tasks;
mod approvals;
pub mod attachment_download;
mod audit_log;
pub mod auth;
pub mod automations;
mod background_work;
pub mod billing;
pub mod credentials;
pub mod dispatch;
pub mod domains;
pub mod emails;
pub mod events;
pub mod handler;
pub mod health;
mod id_path;
pub mod idempotency;
mod idempotent_operation;
pub mod in_process;
mod into_problem;
mod list_response;
pub mod logs;
pub mod mounted_service;
pub mod mta_sts;
pub mod oauth;
mod object_response;
mod object_view;
pub mod openapi;
pub mod operation;
pub mod operations;
pub mod operator;
pub mod opt_outs;
pub mod portal;
mod prelude;
pub mod received_emails;
mod request_field;
mod request_fingerprint;
pub mod request_log;
mod request_log_page;
pub mod sdk;
pub mod serve;
pub mod server;
pub mod session_pages;
mod set_given;
pub mod state;
mod submit_problem;
pub mod suppressions;
pub mod templates;
pub mod time_range;
pub mod tracking;
pub mod unsubscribe;
pub mod users;
pub mod version;
pub mod visits;
pub mod webhook_events;
pub mod webhooks;
