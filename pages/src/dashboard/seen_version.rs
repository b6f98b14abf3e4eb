//! The version of an object that a form shows. If somebody else has changed the object since, the change is refused.
//!
//! ```text
//! read: ETag ─► hidden field ─► If-Match ─► changed meanwhile: nothing is saved, and the form says so
//! ```
//!
//! Where an operation has no `If-Match`, the page reads the object again and compares its `updated_at`: two people whose
//! forms arrive within the same milliseconds are not told apart.
//!
//! The form that is shown again keeps the former version: the person opens it anew, so that nobody overwrites a change
//! without having seen it.

use serde::de::DeserializeOwned;

use super::backend::{Call, Failure, Reply};
use super::context::Context;
use super::form_field::Field;

/// The name of the hidden field.
pub const FIELD: &str = "seen_version";

/// The hidden field with the version that [`Context::read_version`] returned.
pub fn field(version: &str) -> Field {
    Field::hidden(FIELD, version).ignored()
}

/// Says that the object has another version by now.
fn refuse(failure: Failure) -> Failure {
    Failure {
        message: "Someone else has changed this since you opened the form. Nothing was saved. Open the form again to \
            see the change; your input is still below, so that you can copy it."
            .to_owned(),
        ..failure
    }
}

impl Context<'_> {
    /// The version that the form shows: that of the form that was sent, or the current one.
    pub fn shown_version<'v>(&'v self, current: &'v str) -> &'v str {
        self.form().find(FIELD).unwrap_or(current)
    }

    /// Checks that the form was opened with the current version of an object, where its operation does not.
    ///
    /// # Errors
    /// Somebody else has changed it.
    pub fn check_seen(&self, current: &str) -> Result<(), Failure> {
        match self.form().get(FIELD) {
            "" => Ok(()),
            seen if seen == current => Ok(()),
            _ => Err(refuse(Failure::new(409, "conflict", ""))),
        }
    }

    /// Reads an object with its version; the version is empty if the operation has none.
    pub async fn read_version<T: DeserializeOwned>(&self, call: &Call) -> Result<(T, String), Failure> {
        let reply = self.perform(call).await?;
        Ok((reply.read()?, reply.etag.unwrap_or_default()))
    }

    /// Reads one field of an answer with the version of the object, as [`Self::read_version`].
    pub async fn read_field_version<T: DeserializeOwned>(
        &self,
        name: &str,
        call: &Call,
    ) -> Result<(T, String), Failure> {
        let reply = self.perform(call).await?;
        Ok((reply.read_field(name)?, reply.etag.unwrap_or_default()))
    }

    /// Changes an object, if it still has the version that the form showed.
    ///
    /// # Errors
    /// Somebody else has changed it; the operation refused or failed.
    pub async fn change_seen(&self, call: Call) -> Result<Reply, Failure> {
        let call = call.if_match(self.form().get(FIELD));
        self.perform(&call).await.map_err(|failure| match failure.details["reason"].as_str() {
            Some("changed") if call.if_match.is_some() => refuse(failure),
            _ => failure,
        })
    }
}
