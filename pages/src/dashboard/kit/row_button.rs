//! A button that posts a form without visible fields.

use hypertext::{Buffer, prelude::*};

use super::text::input_value;
use crate::dashboard::context::Context;

/// A button in a row of a table. Its failure is shown at the top of the page.
#[derive(Clone, Copy)]
pub struct RowButton<'c> {
    pub context: &'c Context<'c>,
    /// The form's name in the page table.
    pub form: &'c str,
    pub label: &'c str,
    /// A hidden field with its value.
    pub field: (&'c str, &'c str),
}

impl Renderable for RowButton<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let (name, value) = self.field;
        maud! {
            form.inline method="post" action=(self.context.request.target()) {
                input type="hidden" name="csrf" value=(self.context.csrf());
                input type="hidden" name="form" value=(self.form);
                input type="hidden" name=(name) value=(input_value(value));
                button.button type="submit" { (self.label) }
            }
        }
        .render_to(buffer);
    }
}
