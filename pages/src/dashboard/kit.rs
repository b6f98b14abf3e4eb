//! The kit: the parts of which pages are made.

pub mod badge;
pub mod empty;
pub mod facts;
pub mod filter;
pub mod money;
pub mod notice;
pub mod pager;
pub mod progress;
pub mod same_as;
pub mod snippet;
pub mod table;
pub mod text;
pub mod time;
