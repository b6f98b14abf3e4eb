//! The kit: the parts of which pages are made.

pub mod code;
pub mod confirm;
pub mod copy_button;
pub mod date_range;
pub mod diff;
pub mod filter;
pub mod list_view;
pub mod mail_frame;
pub mod money;
pub mod notice;
pub mod pager;
pub mod progress;
pub mod qr_code;
pub mod row_button;
pub mod same_as;
pub mod secret;
pub mod snippet;
pub mod timeline;

pub use html::{badge, chart, empty, facts, table, text, time};
