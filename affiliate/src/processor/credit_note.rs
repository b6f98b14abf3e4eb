//! A credit note, as `credit_note.created`, `.updated` and `.voided` tell: what was given back of an invoice after it was
//! paid, by other ways than a refund.

use mail::affiliate::money::Currency;

use super::as_of::{ObjectStage, StateVersion};
use super::reading::{FieldProblem, JsonReadError, ProcessorJsonObject, ReadContext};

/// A credit note. State: a void one gives nothing back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditNote {
    /// The processor's id.
    pub id: String,
    /// The invoice.
    pub invoice: String,
    /// The currency.
    pub currency: Currency,
    /// What it gives back besides refunds: to the customer's balance, or outside of the processor. What it refunds is not
    /// in it, since the charge counts that; nor is what it took off before the invoice was paid, since then less was paid.
    pub given_back: i64,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl CreditNote {
    /// Reads a credit note that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        let is_void = reading.as_of.step == ObjectStage::Ended || object.text("status")?.as_deref() == Some("void");
        let given_back = given_back(object)?;
        Ok(Self {
            id: object.required_id("id")?,
            invoice: object.required_id("invoice")?,
            currency: object.required_currency()?,
            given_back: if is_void { 0 } else { given_back },
            as_of: if is_void { reading.as_of.ended() } else { reading.as_of },
        })
    }
}

fn given_back(object: &ProcessorJsonObject<'_>) -> Result<i64, JsonReadError> {
    let outside = object.non_negative_amount("out_of_band_amount")?.unwrap_or(0);
    let after_payment = match object.non_negative_amount("post_payment_amount")? {
        Some(amount) => amount,
        // An older shape: a note is all one or all the other.
        None if object.text("type")?.as_deref() == Some("post_payment") => {
            object.required_non_negative_amount("total")?
        }
        None => outside,
    };
    let refunds = object.objects("refunds")?;
    let refunded = if refunds.is_empty() {
        // The older shape has one refund, without its amount: it is what is not given back outside.
        let is_refunded = object.id("refund")?.is_some();
        if is_refunded { after_payment.saturating_sub(outside) } else { 0 }
    } else {
        let mut sum = 0_i64;
        for refund in refunds.iter() {
            let refund = refund?;
            let amount = refund.non_negative_amount("amount_refunded")?.unwrap_or(0);
            sum = sum
                .checked_add(amount)
                .ok_or_else(|| refund.error_at("amount_refunded", FieldProblem::AmountTooLarge))?;
        }
        sum
    };
    Ok(after_payment.saturating_sub(refunded).max(outside))
}
