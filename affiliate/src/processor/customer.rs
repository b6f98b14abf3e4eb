//! Customer, from `customer.created` and `customer.updated`.

use jiff::Timestamp;

use super::json_reader::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::metadata::ReferralMetadata;
use super::state_version::StateVersion;

/// A customer.
///
/// A hint links the customer once, whichever version arrives first. Email and flag are state: the newest version wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    pub id: String,
    /// Lowercase.
    pub email: Option<String>,
    pub marks: ReferralMetadata,
    pub created_at: Option<Timestamp>,
    pub as_of: StateVersion,
}

impl Customer {
    /// Parses a fetched customer.
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
            email: object.email(&["email"])?,
            marks: ReferralMetadata::read(object, &["metadata"], reading),
            created_at: object.time("created")?,
            as_of: reading.as_of,
        })
    }
}
