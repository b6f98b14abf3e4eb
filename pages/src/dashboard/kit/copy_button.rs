//! A button that copies a text.

use hypertext::{Buffer, prelude::*};

use super::text::input_value;

/// A button that copies a text. Only the script shows it.
#[derive(Debug, Clone, Copy)]
pub struct CopyButton<'a> {
    pub text: &'a str,
    /// The object, for screen readers: "Copy the value".
    pub label: &'a str,
}

impl Renderable for CopyButton<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            button.button.copy type="button" data-copy=(input_value(self.text)) aria-label={ "Copy " (self.label) } hidden {
                "Copy"
            }
        }
        .render_to(buffer);
    }
}
