//! The content of a page, before its frame.

pub use html::fragment::{Fragment, render};
use hypertext::Renderable;

use super::backend::Call;

/// A page.
#[must_use]
#[derive(Debug, Default)]
pub struct Page {
    pub title: String,
    /// Path and title of the pages above it.
    pub trail: Vec<(String, String)>,
    /// A sentence below the title.
    pub lead: Option<String>,
    /// Rendered links and buttons beside the title.
    pub actions: String,
    /// The rendered content.
    pub body: String,
    /// The calls that show the same in other languages.
    pub same_as: Vec<Call>,
    /// Reload the content when an event arrives.
    pub live: bool,
    /// The address of the object that a form made: a reload shows it instead of sending the form again.
    pub location: Option<String>,
    /// Another origin to which the answer of a form may lead, as a source expression of the content security policy.
    pub form_target: Option<String>,
}

impl Page {
    pub fn new(title: impl Into<String>, body: impl Renderable) -> Self {
        Self { title: title.into(), body: render(body), ..Self::default() }
    }

    /// Adds a page above this one.
    pub fn below(mut self, path: impl Into<String>, title: impl Into<String>) -> Self {
        self.trail.push((path.into(), title.into()));
        self
    }

    pub fn lead(mut self, lead: impl Into<String>) -> Self {
        self.lead = Some(lead.into());
        self
    }

    pub fn actions(mut self, actions: impl Renderable) -> Self {
        self.actions = render(actions);
        self
    }

    /// Sets the address that a reload shows.
    pub fn location(mut self, path: impl Into<String>) -> Self {
        self.location = Some(path.into());
        self
    }

    pub fn same_as(mut self, call: Call) -> Self {
        self.same_as.push(call);
        self
    }

    /// Lets the answer of a form lead to another origin.
    pub fn form_target(mut self, origin: impl Into<String>) -> Self {
        self.form_target = Some(origin.into());
        self
    }

    /// Reloads the content when an event arrives.
    pub fn live(mut self) -> Self {
        self.live = true;
        self
    }
}
