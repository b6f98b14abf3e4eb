//! Imports of nearly every screen of the dashboard and the console: the request, the page, and the kit.

pub use hypertext::prelude::*;
pub use hypertext::{Buffer, maud_borrow};
pub use schema_derive::answer;
pub use serde::Deserialize;
pub use serde_json::{Value, json};

pub use super::backend::{Call, Failure, if_found};
pub use super::context::{Context, List};
pub use super::form::{Control, Empty, Field, Form, choices};
pub use super::kit::badge::{Badge, Tone};
pub use super::kit::code::Code;
pub use super::kit::copy_button::copy_button;
pub use super::kit::date_range::DateRange;
pub use super::kit::empty::EmptyState;
pub use super::kit::facts::Facts;
pub use super::kit::filter::{Filter, FilterBar};
pub use super::kit::money::Money;
pub use super::kit::notice::Notice;
pub use super::kit::pager::Pager;
pub use super::kit::table::{Row, Table, link, link_or_text, or_dash};
pub use super::kit::text::{address_cell, counted, file_size, grouped, sentence_case};
pub use super::kit::time::time_or_dash;
pub use super::page::Fragment;
pub use super::page::Page;
pub use super::request::Fields;
pub use super::screens::encode;
pub(crate) use super::table::page_rows;
pub use super::table::{Outcome, PageRow, View};
pub use super::{form_key, seen_version};
