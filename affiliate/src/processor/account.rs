//! Connected account of a partner, from `account.updated` and `GET /v1/accounts/{id}`.

use super::json_reader::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::state_version::StateVersion;

/// A connected account; all fields are state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedAccount {
    /// The processor's id, which is the partner's payout destination.
    pub id: String,
    /// True if it can receive transfers.
    pub takes_transfers: bool,
    pub as_of: StateVersion,
}

impl ConnectedAccount {
    /// Parses a fetched account.
    ///
    /// # Errors
    /// A needed field is missing or invalid.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::from_json(&ProcessorJsonObject::parse(json, "")?, reading)
    }

    pub(super) fn from_json(
        object: &ProcessorJsonObject<'_>,
        reading: &ReadContext<'_>,
    ) -> Result<Self, JsonReadError> {
        Ok(Self {
            id: object.required_id("id")?,
            takes_transfers: object.text("capabilities.transfers")?.as_deref() == Some("active"),
            as_of: reading.as_of,
        })
    }
}
