//! A dispute of a charge, as `charge.dispute.*` tells.

use mail::affiliate::sale::Dispute;

use super::as_of::AsOf;
use super::reading::{Object, Reading, Unreadable};

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
    pub status: Dispute,
    /// As of when this holds.
    pub as_of: AsOf,
}

impl ChargeDispute {
    /// Reads a dispute that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        Self::of(&Object::of(json, "")?, reading)
    }

    pub(super) fn of(object: &Object<'_>, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        let status = match object.text("status")?.as_deref() {
            Some("warning_closed") => Dispute::InquiryClosed,
            Some(status) if status.starts_with("warning_") => Dispute::Inquiry,
            Some("won") => Dispute::Won,
            // The money is the customer's: lost before it began, or given back by a refund.
            Some("lost" | "prevented" | "charge_refunded") => Dispute::Lost,
            _ => Dispute::Open,
        };
        Ok(Self {
            id: object.needed_id("id")?,
            charge: object.id("charge")?,
            payment_intent: object.first_id(&["payment_intent", "charge.payment_intent"])?,
            status,
            as_of: reading.as_of,
        })
    }
}
