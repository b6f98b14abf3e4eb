//! A charge, as `charge.refunded`, `.succeeded` and `.updated` tell and `GET /v1/charges` answers.

use mail::affiliate::money::Currency;

use super::as_of::StateVersion;
use super::dispute::ChargeDispute;
use super::marks::ReferralMetadata;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::refund::{ChargeFigure, Refund};

/// A charge. All of it is state: `amount_refunded` is what was refunded so far.
///
/// Of two accounts of one second, the one that tells more refunded is the newer ([`Charge::figure`] orders them).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The processor's id.
    pub id: String,
    /// The payment intent, by which an invoice of the later shape is found.
    pub payment_intent: Option<String>,
    /// The invoice, in the earlier shape.
    pub invoice: Option<String>,
    /// Whose it is.
    pub customer: Option<String>,
    /// What was charged: all of it is refunded when `amount_refunded` comes to it.
    pub amount: i64,
    /// What was refunded so far.
    pub amount_refunded: i64,
    /// The currency of both; it may be another than the invoice's.
    pub currency: Currency,
    /// Whether there ever was a dispute. Its status only a [`ChargeDispute`] tells.
    pub is_disputed: bool,
    /// What the metadata say.
    pub marks: ReferralMetadata,
    /// Those of its refunds that stand in it.
    pub refunds: Vec<Refund>,
    /// Its dispute, where that stands in it.
    pub dispute: Option<ChargeDispute>,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl Charge {
    /// Reads a charge that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
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
            refunds: refunds.iter().map(|refund| Refund::of(&refund?, reading)).collect::<Result<_, _>>()?,
            dispute: dispute.map(|dispute| ChargeDispute::of(&dispute, reading)).transpose()?,
            as_of: reading.as_of,
        })
    }

    /// Whether nothing follows from it: nothing went back, nobody disputes it, and no flag excludes it.
    #[must_use]
    pub fn has_no_effect(&self) -> bool {
        self.amount_refunded == 0 && !self.is_disputed && !self.marks.excluded && self.refunds.is_empty()
    }

    /// What is kept of it to know what was refunded.
    #[must_use]
    pub fn figure(&self) -> ChargeFigure {
        ChargeFigure { as_of: self.as_of, refunded: self.amount_refunded }
    }
}
