//! The question before something is deleted: the person enters its name.

use hypertext::prelude::*;

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

/// A card that says what a deletion does, above its form. `button` is the label of the button, and `name` the name to
/// enter.
pub fn deletion_card(context: &Context<'_>, button: &str, name: &str, effect: impl Renderable) -> impl Renderable {
    let form = Form::new("delete", button, vec![confirm_field(name)]).danger();
    maud! { div.card { p { (effect) } (form.within(context)) } }
}

/// Deletes what has this name, if the person entered it, and goes to the list.
///
/// # Errors
/// Another name was entered; the operation refused or failed.
pub async fn delete_confirmed(context: &Context<'_>, name: &str, call: &Call, list: &str) -> Result<Outcome, Failure> {
    confirm(context, name)?;
    context.act(call, list, "deleted").await
}
