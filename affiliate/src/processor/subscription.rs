//! Subscription, from `customer.subscription.created`, `.updated` and `.deleted`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::json_reader::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::metadata::ReferralMetadata;
use super::state_version::{ObjectStage, StateVersion};

/// A subscription; all fields are state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub id: String,
    pub customer: Option<String>,
    pub status: SubscriptionStatus,
    pub begun_at: Option<Timestamp>,
    /// End of the subscription; the version's time if the object has none. `None` while it is not over.
    pub over_at: Option<Timestamp>,
    pub marks: ReferralMetadata,
    pub as_of: StateVersion,
}

/// Status of a subscription, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    /// In its trial: the customer does not pay yet.
    Trialing,
    /// Active, past due, paused or incomplete. Has no effect by itself, because only payments convert.
    Live,
    /// Canceled, unpaid, expired incomplete, or deleted.
    Over,
}

impl Subscription {
    /// Parses a fetched subscription.
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
        let status = match object.text("status")?.as_deref() {
            _ if reading.as_of.step == ObjectStage::Ended => SubscriptionStatus::Over,
            Some("canceled" | "unpaid" | "incomplete_expired") => SubscriptionStatus::Over,
            Some("trialing") => SubscriptionStatus::Trialing,
            _ => SubscriptionStatus::Live,
        };
        let ended_at = object.time("ended_at")?.unwrap_or(reading.as_of.at);
        Ok(Self {
            id: object.required_id("id")?,
            customer: object.id("customer")?,
            status,
            begun_at: object.time("created")?,
            over_at: (status == SubscriptionStatus::Over).then_some(ended_at),
            marks: ReferralMetadata::read(object, &["metadata"], reading),
            as_of: reading.as_of,
        })
    }
}
