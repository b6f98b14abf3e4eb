//! Charge, from `charge.refunded`, `charge.succeeded`, `charge.updated` and `GET /v1/charges`; and its dispute, from
//! `charge.dispute.*`.

use model::affiliate::money::Currency;
use model::affiliate::sale::DisputeState;

use super::json_reader::{JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject};
use super::metadata::ReferralMetadata;
use super::refund::{ChargeFigure, Refund};
use super::state_version::StateVersion;

/// A charge; all fields are state, and `amount_refunded` is the total refunded so far.
///
/// If two versions are from the same second, the one with the higher refunded total is newer (see
/// [`Charge::figure`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub id: String,
    /// The payment intent, which leads to the invoice in API versions since Basil.
    pub payment_intent: Option<String>,
    /// The invoice, in API versions before Basil.
    pub invoice: Option<String>,
    pub customer: Option<String>,
    /// Charged amount in minor units; the charge is fully refunded when `amount_refunded` reaches it.
    pub amount: i64,
    /// Total refunded so far, in minor units.
    pub amount_refunded: i64,
    /// Currency of both amounts; may differ from the invoice's.
    pub currency: Currency,
    /// True if the charge was ever disputed. The status is only in [`ChargeDispute`].
    pub is_disputed: bool,
    pub marks: ReferralMetadata,
    /// Embedded refunds; may be incomplete.
    pub refunds: Vec<Refund>,
    /// The embedded dispute, if expanded.
    pub dispute: Option<ChargeDispute>,
    pub as_of: StateVersion,
}

impl StripeObject for Charge {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
        let refunds = object.objects("refunds")?;
        let dispute = object.expanded("dispute")?;
        Ok(Self {
            id: object.required_id("id")?,
            payment_intent: object.id("payment_intent")?,
            invoice: object.first_id(&["invoice", "payment_intent.invoice"])?,
            customer: object.id("customer")?,
            amount: object.required_non_negative_amount("amount")?,
            amount_refunded: object.required_non_negative_amount("amount_refunded")?,
            currency: object.required_currency()?,
            is_disputed: object.is_set("disputed")? || object.id("dispute")?.is_some(),
            marks: ReferralMetadata::read(object, &["metadata"], reading),
            refunds: refunds.iter().map(|refund| Refund::from_json(&refund?, reading)).collect::<Result<_, _>>()?,
            dispute: dispute.map(|dispute| ChargeDispute::from_json(&dispute, reading)).transpose()?,
            as_of: reading.as_of,
        })
    }
}

impl Charge {
    /// True if the charge has no refund, no dispute and no exclusion flag.
    pub fn has_no_effect(&self) -> bool {
        self.amount_refunded == 0 && !self.is_disputed && !self.marks.excluded && self.refunds.is_empty()
    }

    /// Returns the refunded total with its version, for the stored state.
    pub fn figure(&self) -> ChargeFigure {
        ChargeFigure { as_of: self.as_of, refunded: self.amount_refunded }
    }
}

/// A dispute; all fields are state. Its last event alone also shows that there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeDispute {
    pub id: String,
    pub charge: Option<String>,
    pub payment_intent: Option<String>,
    pub status: DisputeState,
    pub as_of: StateVersion,
}

impl StripeObject for ChargeDispute {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
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
