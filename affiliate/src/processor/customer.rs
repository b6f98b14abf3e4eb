//! A customer, as `customer.created` and `customer.updated` tell.

use jiff::Timestamp;

use super::as_of::AsOf;
use super::marks::Marks;
use super::reading::{Object, Reading, Unreadable};

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
    pub marks: Marks,
    /// When it was made, where that is said.
    pub created_at: Option<Timestamp>,
    /// As of when this holds.
    pub as_of: AsOf,
}

impl Customer {
    /// Reads a customer that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        Self::of(&Object::of(json, "")?, reading)
    }

    pub(super) fn of(object: &Object<'_>, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            id: object.needed_id("id")?,
            email: object.email(&["email"])?,
            marks: Marks::read(object, &["metadata"], reading),
            created_at: object.time("created")?,
            as_of: reading.as_of,
        })
    }
}
