//! The dashboard: pages for the people of an account, below `/dashboard`.
//!
//! ```text
//! request ─► router ─► page table ─┬─ GET ──► show ─► Page ─► frame ─► HTML
//!                                  └─ POST ─► form ─► operation ─┬─ done ───► 303 to a page, or a secret shown once
//!                                                                └─ refused ► show again, errors beside the fields
//! ```
//!
//! Pages read and write by calling the API's operations in this process ([`backend::Backend`]), so the rules of the API
//! hold here too. Every page works without JavaScript.

pub mod answer;
pub mod backend;
pub mod context;
pub mod csv;
#[cfg(test)]
mod fake_backend;
pub mod form;
pub mod form_field;
pub mod form_key;
pub mod frame;
pub mod identity_proof;
pub mod kit;
pub mod page;
pub mod prelude;
pub mod request;
pub mod router;
pub mod screens;
pub mod seen_version;
pub mod table;
pub mod viewer;

/// The path of the start page; all others are below it.
pub const PATH: &str = "/dashboard";
