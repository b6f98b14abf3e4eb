//! Credit note, from `credit_note.created`, `.updated` and `.voided`: amounts of a paid invoice returned other than by
//! refund.

use model::affiliate::money::Currency;

use super::json_reader::{FieldProblem, JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject};
use super::state_version::{ObjectStage, StateVersion};

/// A credit note; all fields are state, and a void one returns nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditNote {
    pub id: String,
    pub invoice: String,
    pub currency: Currency,
    /// Amount in minor units credited to the customer's balance or returned outside of the processor. Refunds are not
    /// included, because the charge counts them. Credits before payment are not included, because the invoice's paid
    /// amount is already lower.
    pub given_back: i64,
    pub as_of: StateVersion,
}

impl StripeObject for CreditNote {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
        let is_void = reading.as_of.step == ObjectStage::Ended || object.text("status")?.as_deref() == Some("void");
        let given_back = returned_amount(object)?;
        Ok(Self {
            id: object.required_id("id")?,
            invoice: object.required_id("invoice")?,
            currency: object.required_currency()?,
            given_back: if is_void { 0 } else { given_back },
            as_of: if is_void { reading.as_of.ended() } else { reading.as_of },
        })
    }
}

fn returned_amount(object: &ProcessorJsonObject<'_>) -> Result<i64> {
    let out_of_band = object.non_negative_amount("out_of_band_amount")?.unwrap_or(0);
    let after_payment = match object.non_negative_amount("post_payment_amount")? {
        Some(amount) => amount,
        // API versions before `post_payment_amount`: a note is entirely before or after payment.
        None if object.text("type")?.as_deref() == Some("post_payment") => {
            object.required_non_negative_amount("total")?
        }
        None => out_of_band,
    };
    let refunds = object.objects("refunds")?;
    let refunded = if refunds.is_empty() {
        // API versions before `refunds`: one refund without an amount, which is all that is not out of band.
        let is_refunded = object.id("refund")?.is_some();
        if is_refunded { after_payment.saturating_sub(out_of_band) } else { 0 }
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
    Ok(after_payment.saturating_sub(refunded).max(out_of_band))
}
