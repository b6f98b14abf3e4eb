//! A subscription, as `customer.subscription.created`, `.updated` and `.deleted` tell.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::as_of::{ObjectStage, StateVersion};
use super::marks::ReferralMetadata;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// A subscription. All of it is state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The processor's id.
    pub id: String,
    /// Whose it is.
    pub customer: Option<String>,
    /// How it stands.
    pub status: SubscriptionStatus,
    /// When it was made.
    pub begun_at: Option<Timestamp>,
    /// When it was over, of one that is; where it does not say that, as of when it is told.
    pub over_at: Option<Timestamp>,
    /// What the metadata say.
    pub marks: ReferralMetadata,
    /// As of when this holds.
    pub as_of: StateVersion,
}

/// How a subscription stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    /// In its trial: who has one tries, and does not pay yet.
    Trialing,
    /// Neither: active, past due, paused, incomplete. It changes nothing, for only money converts.
    Live,
    /// Canceled, unpaid or incomplete for too long; or deleted.
    Over,
}

impl Subscription {
    /// Reads a subscription that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
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
