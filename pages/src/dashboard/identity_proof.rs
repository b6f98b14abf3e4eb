//! The proof of identity that operations on secrets and money need.

use super::backend::Failure;
use super::form_field::{Control, Field};

/// The operation, and the form of every page, by which a user proves their identity again before secrets and money.
pub const REAUTHENTICATE: &str = "reauthenticate";
/// The code of operations that need it.
pub const REAUTHENTICATION_REQUIRED: &str = "reauthentication_required";
/// The field of a refused form that has the password or the one-time password.
pub const PROOF: &str = "proof";

/// The field that a refused form gets if its operation needs a proof of identity.
pub fn proof_field(failure: &Failure) -> Option<Field> {
    (failure.code == REAUTHENTICATION_REQUIRED).then(proof)
}

pub fn proof() -> Field {
    Field::new(PROOF, "Your password, or a one-time password", Control::Password)
        .required()
        .ignored()
        .autocomplete("current-password")
        .help(
            "Required once every 15 minutes for secrets and money. If you have no password, sign in again with an \
            emailed link.",
        )
}
