//! The question before something is deleted: the person enters its name.

use crate::dashboard::backend::Failure;
use crate::dashboard::context::Context;
use crate::dashboard::form::{Control, Field};

const FIELD: &str = "confirm";

/// The field for the name.
#[must_use]
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
    Err(Failure::field(FIELD, format!("This is not the name; it is “{name}”")))
}
