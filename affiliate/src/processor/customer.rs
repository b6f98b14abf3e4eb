//! A customer, as `customer.created` and `customer.updated` tell.

use jiff::Timestamp;

use super::as_of::StateVersion;
use super::marks::ReferralMetadata;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// A customer.
///
/// A hint links a customer once, whichever account of it comes first; email and flag are state, the newest wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    /// The processor's id.
    pub id: String,
    /// The address, in lower case.
    pub email: Option<String>,
    /// What the metadata say.
    pub marks: ReferralMetadata,
    /// When it was made, where that is said.
    pub created_at: Option<Timestamp>,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl Customer {
    /// Reads a customer that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Ok(Self {
            id: object.required_id("id")?,
            email: object.email(&["email"])?,
            marks: ReferralMetadata::read(object, &["metadata"], reading),
            created_at: object.time("created")?,
            as_of: reading.as_of,
        })
    }
}
