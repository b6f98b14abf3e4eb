//! The entries of a list with their pager, or why there are none: there are none, the filters exclude them, or the
//! search for them has not come to the end.

use hypertext::{Buffer, prelude::*};

use super::empty::EmptyState;
use super::filter::refused_filter;
use super::pager::Pager;
use super::table::Table;
use super::time::time_or_dash;
use crate::dashboard::backend::Failure;
use crate::dashboard::context::Context;

/// A table of entries.
pub struct ListView<'l> {
    pub context: &'l Context<'l>,
    pub table: &'l Table,
    /// The text without entries.
    pub empty: EmptyState<'l>,
    pub next_cursor: Option<&'l str>,
}

impl Renderable for ListView<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let Self { context, table, empty, next_cursor } = self;
        let (context, next_cursor) = (*context, *next_cursor);
        maud! {
            @if table.is_empty() {
                (EmptyPage { context, empty: empty.clone(), next_cursor, searched_until: None })
            } @else {
                (table)
                (Pager { context, next_cursor })
            }
        }
        .render_to(buffer);
    }
}

/// The part of a page that is replaced when its filters change: the list, or why it was refused.
pub fn list_fragment(refused: Option<&Failure>, list: ListView<'_>) -> impl Renderable {
    maud! {
        div data-fragment="list" { @if let Some(refused) = refused { (refused_filter(refused)) } @else { (list) } }
    }
}

/// A page of a list without entries.
pub struct EmptyPage<'l> {
    pub context: &'l Context<'l>,
    /// The text at the end of the list.
    pub empty: EmptyState<'l>,
    pub next_cursor: Option<&'l str>,
    /// The time of the oldest entry that was looked at, if it is known.
    pub searched_until: Option<&'l str>,
}

impl Renderable for EmptyPage<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (context, pager) = (self.context, Pager { context: self.context, next_cursor: None });
        let Some(cursor) = self.next_cursor else {
            maud! { (self.empty) (pager) }.render_to(buffer);
            return;
        };
        let path = Pager { context, next_cursor: Some(cursor) }.path(cursor);
        maud! {
            div.empty {
                p.empty-title { "Nothing found so far" }
                p {
                    @match self.searched_until {
                        Some(until) => { "The search has reached entries from " (time_or_dash(Some(until))) ". Older \
                            ones have not been searched yet." }
                        None => { "The search is not complete: older entries have not been searched yet." }
                    }
                }
                p { a.button.primary href=(path) rel="next" { "Continue the search" } }
            }
            (pager)
        }
        .render_to(buffer);
    }
}
