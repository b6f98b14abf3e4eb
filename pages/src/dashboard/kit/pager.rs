//! Links to further pages of a list. Cursors lead forward; the browser's history leads back.

use hypertext::{Buffer, prelude::*};

use crate::dashboard::context::Context;

/// The pager of a list whose page has a `next_cursor`.
#[derive(Clone, Copy)]
pub struct Pager<'c> {
    pub context: &'c Context<'c>,
    pub next_cursor: Option<&'c str>,
}

impl Renderable for Pager<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let request = self.context.request;
        let is_first = request.query.get("cursor").is_empty();
        let link = |cursor: &str| {
            let query = request.query.with("cursor", cursor).with("done", "").to_query();
            if query.is_empty() { request.path.clone() } else { format!("{}?{query}", request.path) }
        };
        if is_first && self.next_cursor.is_none() {
            return;
        }
        maud! {
            nav.pager aria-label="Pages" {
                @if !is_first { a.button href=(link("")) { "First page" } }
                @if let Some(cursor) = self.next_cursor { a.button href=(link(cursor)) rel="next" { "Next page" } }
            }
        }
        .render_to(buffer);
    }
}
