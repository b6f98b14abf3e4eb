//! The entries of a list with their pager, or why there are none: there are none, the filters exclude them, or the
//! search for them has not come to the end.

use hypertext::prelude::*;

use super::empty::EmptyState;
use super::filter::refused_filter;
use super::pager::Pager;
use super::table::Table;
use super::time::time_or_dash;
use crate::dashboard::context::{Context, List};

impl<T> List<T> {
    /// The table of the entries; `empty` is the text without entries.
    pub fn view<'l>(&'l self, context: &'l Context<'l>, table: &'l Table, empty: EmptyState<'l>) -> impl Renderable {
        let next_cursor = self.next_cursor.as_deref();
        maud! {
            @if table.is_empty() {
                (self.empty_page(context, empty.clone()))
            } @else {
                (table)
                (Pager { context, next_cursor })
            }
        }
    }

    /// The part of a page that is replaced when its filters change: the list, or why it was refused.
    pub fn fragment<'l>(
        &'l self,
        context: &'l Context<'l>,
        table: &'l Table,
        empty: EmptyState<'l>,
    ) -> impl Renderable {
        maud! {
            div data-fragment="list" {
                @if let Some(refused) = &self.refused { (refused_filter(refused)) }
                @else { (self.view(context, table, empty.clone())) }
            }
        }
    }

    /// The page of a list without entries; `empty` is the text at its end.
    pub fn empty_page<'l>(&'l self, context: &'l Context<'l>, empty: EmptyState<'l>) -> impl Renderable {
        let pager = Pager { context, next_cursor: None };
        maud! {
            @match self.next_cursor.as_deref() {
                None => { (empty) }
                Some(cursor) => {
                    div.empty {
                        p.empty-title { "Nothing found so far" }
                        p {
                            @match self.searched_until.as_deref() {
                                Some(until) => { "The search has reached entries from " (time_or_dash(Some(until))) ". Older ones have not been searched yet." }
                                None => { "The search is not complete: older entries have not been searched yet." }
                            }
                        }
                        p { a.button.primary href=(pager.path(cursor)) rel="next" { "Continue the search" } }
                    }
                }
            }
            (pager)
        }
    }
}
