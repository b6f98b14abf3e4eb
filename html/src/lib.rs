//! The parts that all HTML pages of a postrider server share: the dashboard and the API reference (crate `pages`), and
//! the partner portal, unsubscribe and sign-in pages (crate `api`).
//!
//! ```text
//! maud! ─► Renderable ─┬─► Fragment (a part of a page) ─┐
//!                      └─► badge, notice, table, chart … ┴─► Document ─► text without deceptive characters
//! ```
//!
//! Markup is written with `maud!` of hypertext alone: it escapes every text. [`style`] has one palette for all pages.
//! [`policy`] has the Content-Security-Policies: no page of this server allows inline scripts.
//!
//! The crate depends on none of the server's crates, so it builds alone in seconds.

pub mod badge;
pub mod chart;
pub mod display_text;
pub mod document;
pub mod empty;
pub mod facts;
pub mod fragment;
pub mod message;
pub mod notice;
pub mod policy;
pub mod style;
pub mod table;
pub mod text;
pub mod time;
