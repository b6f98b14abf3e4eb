//! A button that copies a text.

use hypertext::prelude::*;

use super::text::input_value;

/// A button that copies a text. Only the script shows it. `label` names the text for screen readers: "Copy the value".
pub fn copy_button(text: &str, label: &str) -> impl Renderable {
    maud! {
        button.button.copy type="button" data-copy=(input_value(text)) aria-label={ "Copy " (label) } hidden {
            "Copy"
        }
    }
}
