//! The question before something is deleted: the person enters its name.

use hypertext::{Buffer, prelude::*};

use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::form::{Control, Field, Form};
use crate::dashboard::table::Outcome;

const FIELD: &str = "confirm";

pub fn confirm_field(name: &str) -> Field {
    Field::new(FIELD, format!("Type “{name}” to confirm"), Control::Text).required().ignored()
}

/// Compares the name that was entered.
///
/// # Errors
/// It is another name.
pub fn confirm(context: &Context<'_>, name: &str) -> Result<(), Failure> {
    if context.form().get(FIELD).trim() == name.trim() {
        return Ok(());
    }
    Err(Failure::field(FIELD, format!("This is not the name; enter “{name}”")))
}

/// A card that says what a deletion does, above its form.
pub struct DeletionCard<'d, E> {
    pub context: &'d Context<'d>,
    /// The label of the button.
    pub button: &'static str,
    /// The name to enter.
    pub name: &'d str,
    pub effect: E,
}

impl<E: Renderable> Renderable for DeletionCard<'_, E> {
    fn render_to(&self, buffer: &mut Buffer) {
        let form = Form::new("delete", self.button, vec![confirm_field(self.name)]).danger();
        maud! { div.card { p { (self.effect) } (form.within(self.context)) } }.render_to(buffer);
    }
}

/// Deletes what has this name, if the person entered it, and goes to the list.
///
/// # Errors
/// Another name was entered; the operation refused or failed.
pub async fn delete_confirmed(context: &Context<'_>, name: &str, call: &Call, list: &str) -> Result<Outcome, Failure> {
    confirm(context, name)?;
    context.act(call, list, "deleted").await
}
