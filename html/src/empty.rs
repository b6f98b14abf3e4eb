//! The state of a list without entries: what it is for and what to do first.

use hypertext::{Buffer, prelude::*};

/// An empty list.
#[derive(Debug, Clone)]
pub struct EmptyState<'a> {
    pub title: &'a str,
    pub text: &'a str,
    /// Path and label of the first step, if the role allows it.
    pub action: Option<(&'a str, &'a str)>,
}

impl Renderable for EmptyState<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            div.empty {
                p.empty-title { (self.title) }
                p { (self.text) }
                @if let Some((path, label)) = self.action { p { a.button.primary href=(path) { (label) } } }
            }
        }
        .render_to(buffer);
    }
}
