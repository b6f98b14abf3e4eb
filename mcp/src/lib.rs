//! The Model Context Protocol (MCP) server: assistants call the operations of the API as tools.
//!
//! ```text
//! HTTP request ─► streamable_http ─┐                       ┌─► Backend ─► an operation of the API
//! stdio line   ─► stdio ───────────┴─► server ─► ToolSet ──┤
//!                                                          └─► ToolResult: bounded, foreign text fenced
//! ```
//!
//! It serves the revision 2026-07-28 of the specification, in which each request stands alone, and the revisions before
//! it, which begin with `initialize`. It keeps no sessions: a request needs nothing of the requests before it.
//!
//! The crate knows no crate of the server. The tools are derived from `sdk/operations.json`, and a [`backend::Backend`]
//! carries out the operations: in the server's process, or over HTTP.

pub mod api_tools;
pub mod arguments;
pub mod backend;
mod call_operation;
pub mod caller_rights;
pub mod catalog;
mod compact_schema;
mod diagnose_domain;
pub mod exact_json;
mod explain_email;
pub mod fake_backend;
mod find_operations;
pub mod foreign_fields;
pub mod foreign_text;
pub mod json_rpc;
pub mod operation_table;
mod own_tools;
mod problem;
pub mod protocol_version;
mod request_meta;
pub mod response_schema;
mod secret_fields;
pub mod server;
mod size_limit;
pub mod stdio;
pub mod streamable_http;
pub mod tool;
mod tool_session;
pub mod toolset;
