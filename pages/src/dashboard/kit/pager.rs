//! Links to further pages of a list. Cursors lead forward; the browser's history leads back.

use hypertext::{Buffer, prelude::*};

use crate::dashboard::context::Context;

/// The pager of a list whose page has a `next_cursor`.
#[derive(Clone, Copy)]
pub struct Pager<'c> {
    pub context: &'c Context<'c>,
    pub next_cursor: Option<&'c str>,
}

impl Pager<'_> {
    /// The path of the page that begins at a cursor; an empty one is the first page.
    pub fn path(&self, cursor: &str) -> String {
        self.context.request.target_with("cursor", cursor)
    }
}

impl Renderable for Pager<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let is_first = self.context.query().get("cursor").is_empty();
        if is_first && self.next_cursor.is_none() {
            return;
        }
        maud! {
            nav.pager aria-label="Pages" {
                @if !is_first { a.button href=(self.path("")) { "First page" } }
                @if let Some(cursor) = self.next_cursor { a.button href=(self.path(cursor)) rel="next" { "Next page" } }
            }
        }
        .render_to(buffer);
    }
}
