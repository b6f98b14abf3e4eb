//! The entries of a list with their pager, or why there are none: there are none, the filters exclude them, or the
//! search for them has not come to the end.

use hypertext::{Buffer, prelude::*};

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
    pub fn empty_page<'l>(&'l self, context: &'l Context<'l>, empty: EmptyState<'l>) -> EmptyPage<'l> {
        let (next_cursor, searched_until) = (self.next_cursor.as_deref(), self.searched_until.as_deref());
        EmptyPage { context, empty, next_cursor, searched_until }
    }
}

/// A page of a list without entries.
pub struct EmptyPage<'l> {
    context: &'l Context<'l>,
    empty: EmptyState<'l>,
    next_cursor: Option<&'l str>,
    searched_until: Option<&'l str>,
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
                        Some(until) => { "The search has reached entries from " (time_or_dash(Some(until))) ". Older ones have not been searched yet." }
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
