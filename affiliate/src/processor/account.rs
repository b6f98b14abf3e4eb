//! A partner's account at the processor, as `account.updated` tells and `GET /v1/accounts/{id}` answers.

use super::as_of::StateVersion;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// A connected account. All of it is state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedAccount {
    /// The processor's id: a partner's destination.
    pub id: String,
    /// Whether money can be transferred to it.
    pub takes_transfers: bool,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl ConnectedAccount {
    /// Reads an account that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Ok(Self {
            id: object.required_id("id")?,
            takes_transfers: object.text("capabilities.transfers")?.as_deref() == Some("active"),
            as_of: reading.as_of,
        })
    }
}
