//! Names with values: the properties of one object.

use hypertext::{Buffer, prelude::*};

use crate::fragment::{raw, render};

/// A list of properties. Values are rendered markup.
#[derive(Debug, Clone, Default)]
pub struct Facts(Vec<(&'static str, String)>);

impl Facts {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn row(mut self, name: &'static str, value: impl Renderable) -> Self {
        self.0.push((name, render(value)));
        self
    }

    /// Adds a row if there is a value.
    pub fn optional(self, name: &'static str, value: Option<impl Renderable>) -> Self {
        match value {
            Some(value) => self.row(name, value),
            None => self,
        }
    }
}

impl Renderable for Facts {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            dl.facts { @for (name, value) in &self.0 { div { dt { (name) } dd { (raw(value)) } } } }
        }
        .render_to(buffer);
    }
}
