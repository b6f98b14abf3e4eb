//! A dispute of a charge, as `charge.dispute.*` tells.

use mail::affiliate::sale::DisputeState;

use super::as_of::StateVersion;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// A dispute of a charge. State; and that there was one, its end alone tells too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeDispute {
    /// The processor's id.
    pub id: String,
    /// The charge.
    pub charge: Option<String>,
    /// The payment intent.
    pub payment_intent: Option<String>,
    /// How it stands.
    pub status: DisputeState,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl ChargeDispute {
    /// Reads a dispute that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        let status = match object.text("status")?.as_deref() {
            Some("warning_closed") => DisputeState::InquiryClosed,
            Some(status) if status.starts_with("warning_") => DisputeState::Inquiry,
            Some("won") => DisputeState::Won,
            // The money is the customer's: lost before it began, or given back by a refund.
            Some("lost" | "prevented" | "charge_refunded") => DisputeState::Lost,
            _ => DisputeState::Open,
        };
        Ok(Self {
            id: object.required_id("id")?,
            charge: object.id("charge")?,
            payment_intent: object.first_id(&["payment_intent", "charge.payment_intent"])?,
            status,
            as_of: reading.as_of,
        })
    }
}
