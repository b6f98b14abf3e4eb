//! Dispute of a charge, from `charge.dispute.*`.

use mail::affiliate::sale::DisputeState;

use super::json_reader::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::state_version::StateVersion;

/// A dispute; all fields are state. Its last event alone also shows that there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeDispute {
    pub id: String,
    pub charge: Option<String>,
    pub payment_intent: Option<String>,
    pub status: DisputeState,
    pub as_of: StateVersion,
}

impl ChargeDispute {
    /// Parses a fetched dispute.
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
            Some("warning_closed") => DisputeState::InquiryClosed,
            Some(status) if status.starts_with("warning_") => DisputeState::Inquiry,
            Some("won") => DisputeState::Won,
            // The customer has the money: the dispute was lost, prevented by a refund, or closed by one.
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
