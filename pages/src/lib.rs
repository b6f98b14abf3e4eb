//! HTML pages of a postrider server: the page kit, and the API reference and the guides at `/docs`.
//!
//! ```text
//! sdk/operations.json ─┐
//! sdk/snippets.json   ─┼─► reference ─► Page (sections of blocks) ─┬─► html ──────► /docs/emails
//! sdk/answers.json    ─┘                      ▲                    ├─► markdown ──► /docs/emails.md
//! docs/**/*.md ────────────► guides ──────────┘                    └─► search ────► /docs/search
//! ```
//!
//! Crate `html` has what these pages share with the pages of crate `api`. Both depend on none of the server's crates, so
//! they build alone in seconds.

pub mod asset;
pub mod block;
pub mod console;
pub mod dashboard;
pub mod document;
pub mod documentation;
pub mod guides;
pub mod highlight;
pub mod html;
pub mod html_code;
pub mod inline;
pub mod layout;
pub mod markdown;
pub mod prose;
pub mod reference;
pub mod search;

pub use ::html::display_text;
