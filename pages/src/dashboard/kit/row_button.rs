//! A button that posts a form without visible fields.

use hypertext::prelude::*;

use super::text::input_value;
use crate::dashboard::context::Context;

/// A button in a row of a table. Its failure is shown at the top of the page. `form` is the form's name in the page
/// table, and `field` a hidden field with its value.
pub fn row_button(context: &Context<'_>, form: &str, label: &str, field: (&str, &str)) -> impl Renderable {
    let (name, value) = field;
    maud! {
        form.inline method="post" action=(context.request.target()) {
            input type="hidden" name="csrf" value=(context.csrf());
            input type="hidden" name="form" value=(form);
            input type="hidden" name=(name) value=(input_value(value));
            button.button type="submit" { (label) }
        }
    }
}
