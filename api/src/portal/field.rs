//! Fields of the portal's forms, with their labels and help.

use html::text::input_value;
use hypertext::{Buffer, prelude::*};

/// Longest names and notes, in characters.
const TEXT_CHARS_MAX: u32 = 200;

/// A field of one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextField<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) label: &'a str,
    pub(super) value: &'a str,
    /// `type` of the control: `text`, `email`, `url`.
    pub(super) kind: &'a str,
    pub(super) help: Option<&'a str>,
    pub(super) placeholder: Option<&'a str>,
    /// `autocomplete` (HTML, "autofill").
    pub(super) autocomplete: Option<&'a str>,
    pub(super) chars_max: u32,
    pub(super) is_required: bool,
    /// The partner may read the field but not change it.
    pub(super) is_read_only: bool,
    /// The name of a link: letters, digits, dashes and underscores.
    pub(super) is_token: bool,
}

impl<'a> TextField<'a> {
    /// An optional text.
    pub(super) fn new(id: &'a str, name: &'a str, label: &'a str, value: &'a str) -> Self {
        Self {
            id,
            name,
            label,
            value,
            kind: "text",
            help: None,
            placeholder: None,
            autocomplete: None,
            chars_max: TEXT_CHARS_MAX,
            is_required: false,
            is_read_only: false,
            is_token: false,
        }
    }

    /// The email address of a person without a session.
    pub(super) fn email(value: &'a str) -> Self {
        Self {
            kind: "email",
            autocomplete: Some("email"),
            chars_max: 254,
            is_required: true,
            ..Self::new("email", "email", "Email", value)
        }
    }
}

impl Renderable for TextField<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let help_id = self.help.map(|_| format!("{}-help", self.id));
        let help_id = help_id.as_deref();
        maud! {
            div.field {
                label for=(self.id) {
                    (self.label)
                    @if !self.is_required && !self.is_read_only { span.optional { " optional" } }
                }
                input id=(self.id) type=(self.kind) name=(self.name) value=(input_value(self.value))
                    required[self.is_required] readonly[self.is_read_only] maxlength=(self.chars_max)
                    minlength=[self.is_token.then_some("2")] pattern=[self.is_token.then_some("[A-Za-z0-9_\\-]+")]
                    autocapitalize=[self.is_token.then_some("none")] spellcheck=[self.is_token.then_some("false")]
                    placeholder=[self.placeholder] autocomplete=[self.autocomplete] aria-describedby=[help_id];
                @if let Some(help) = self.help { p.help id=[help_id] { (help) } }
            }
        }
        .render_to(buffer);
    }
}

/// An address to share, in a field from which it is easily copied.
pub(super) fn shared_address(id: &str, address: &str) -> impl Renderable {
    maud! {
        div.field {
            label for=(id) { "Share this link" }
            input.address id=(id) type="text" readonly value=(input_value(address));
        }
    }
}

/// A checkbox; its value is `on`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckField<'a, L> {
    /// The id and the name.
    pub(super) name: &'a str,
    pub(super) label: L,
    pub(super) help: Option<&'a str>,
    pub(super) is_checked: bool,
    pub(super) is_required: bool,
    pub(super) is_disabled: bool,
}

impl<L: Renderable> Renderable for CheckField<'_, L> {
    fn render_to(&self, buffer: &mut Buffer) {
        let help_id = self.help.map(|_| format!("{}-help", self.name));
        let help_id = help_id.as_deref();
        maud! {
            div.field.check {
                input id=(self.name) type="checkbox" name=(self.name) value="on" checked[self.is_checked]
                    required[self.is_required] disabled[self.is_disabled] aria-describedby=[help_id];
                label for=(self.name) { (self.label) }
                @if let Some(help) = self.help { p.help id=[help_id] { (help) } }
            }
        }
        .render_to(buffer);
    }
}
