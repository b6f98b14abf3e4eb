//! Customer, from `customer.created` and `customer.updated`; its subscription, from `customer.subscription.created`,
//! `.updated` and `.deleted`; and the connected account of a partner, from `account.updated` and
//! `GET /v1/accounts/{id}`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::json_reader::{JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject};
use super::metadata::ReferralMetadata;
use super::state_version::{ObjectStage, StateVersion};

/// A customer.
///
/// A hint links the customer once, whichever version arrives first. Email and flag are state: the newest version wins.
/// A flag that the customer was created with also excludes invoices that arrived before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    pub id: String,
    /// Lowercase.
    pub email: Option<String>,
    pub marks: ReferralMetadata,
    pub created_at: Option<Timestamp>,
    pub as_of: StateVersion,
}

impl StripeObject for Customer {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
        Ok(Self {
            id: object.required_id("id")?,
            email: object.email(&["email"])?,
            marks: ReferralMetadata::read(object, &["metadata"], reading),
            created_at: object.time("created")?,
            as_of: reading.as_of,
        })
    }
}

/// A subscription; all fields are state. A flag works like that of a [`Customer`].
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

impl StripeObject for Subscription {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
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

/// A connected account; all fields are state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedAccount {
    /// The processor's id, which is the partner's payout destination.
    pub id: String,
    /// True if it can receive transfers.
    pub takes_transfers: bool,
    pub as_of: StateVersion,
}

impl StripeObject for ConnectedAccount {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
        Ok(Self {
            id: object.required_id("id")?,
            takes_transfers: object.text("capabilities.transfers")?.as_deref() == Some("active"),
            as_of: reading.as_of,
        })
    }
}
