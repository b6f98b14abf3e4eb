//! An invoice, as `invoice.paid` and `invoice.payment_succeeded` tell, and which payments paid it.

mod line;
mod payment;

use jiff::Timestamp;
use mail::affiliate::sale::{Sale, SaleLine};

pub use self::payment::{InvoicePayment, Payment};
use super::as_of::{ObjectStage, StateVersion};
use super::charge::Charge;
use super::marks::ReferralMetadata;
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// A description is cut to so many characters.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// An invoice. All of it is state, and most of a paid one never changes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    /// What the arithmetic needs of it.
    pub sale: Sale,
    /// Whether it is paid. Who asks for invoices gets others too, and an attempt that pays a part only is told of as well.
    pub is_paid: bool,
    /// Whose it is.
    pub customer: Option<String>,
    /// Their address, in lower case.
    pub email: Option<String>,
    /// The subscription that it is of.
    pub subscription: Option<String>,
    /// What the subscription's metadata and its own say.
    pub marks: ReferralMetadata,
    /// The payments that paid it, as far as it says.
    pub payments: Vec<Payment>,
    /// Those of the payments' charges that stand in it in full.
    pub charges: Vec<Charge>,
    /// What it is for, in the merchant's words.
    pub description: Option<String>,
    /// Whether all of its lines stand in it. Of a long invoice only the first ten do, and the rest are asked for by
    /// `GET /v1/invoices/{id}/lines`. A part of them says nothing of the whole: then `sale.lines` are none, and what it
    /// earns goes by its total.
    pub has_all_lines: bool,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl Invoice {
    /// Reads an invoice that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        let is_told = reading.as_of.step != ObjectStage::Fetched;
        let is_paid = match object.text("status")?.as_deref() {
            Some(status) => status == "paid",
            None => object.flag("paid")?.unwrap_or(is_told),
        };
        let has_all_lines = !object.is_set("lines.has_more")?;
        let lines: Vec<SaleLine> =
            object.objects("lines")?.iter().map(|line| line::read(&line?)).collect::<Result<_, _>>()?;
        let metadata = ["subscription_details.metadata", "parent.subscription_details.metadata", "metadata"];
        Ok(Self {
            is_paid,
            customer: object.id("customer")?,
            email: object.email(&["customer_email", "customer.email"])?,
            subscription: object.first_id(&["subscription", "parent.subscription_details.subscription"])?,
            marks: ReferralMetadata::read(object, &metadata, reading),
            payments: payment::payments_of_invoice(object)?,
            charges: charges(object, reading)?,
            description: description(object)?,
            has_all_lines,
            as_of: reading.as_of,
            sale: Sale {
                invoice: object.required_id("id")?,
                currency: object.required_currency()?,
                total: object.required_amount("total")?,
                total_excluding_tax: object.amount("total_excluding_tax")?,
                tax: tax(object)?,
                amount_paid: object.required_amount("amount_paid")?,
                paid_at: paid_at(object, reading)?,
                lines: if has_all_lines { lines } else { Vec::new() },
            },
        })
    }
}

/// Reads a line of an invoice that was asked for, by its place among all of them.
///
/// # Errors
/// A field that matters cannot be read.
pub fn invoice_line(json: &str, nth: usize) -> Result<SaleLine, JsonReadError> {
    line::read(&ProcessorJsonObject::of(json, &format!("data.object.lines.data[{nth}]"))?)
}

/// The tax in `total`. An empty list says nothing: processors send it beside a `tax` that is not zero.
fn tax(object: &ProcessorJsonObject<'_>) -> Result<i64, JsonReadError> {
    for list in ["total_taxes", "total_tax_amounts"] {
        if let Some(tax) = object.sum(list, |_| true)? {
            return Ok(tax);
        }
    }
    Ok(object.amount("tax")?.unwrap_or(0))
}

/// When it was paid, by the processor's clock: an answer that does not say so was made at some time after.
fn paid_at(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Timestamp, JsonReadError> {
    if let Some(paid_at) = object.time("status_transitions.paid_at")? {
        return Ok(paid_at);
    }
    let created = if reading.as_of.step == ObjectStage::Fetched { object.time("created")? } else { None };
    Ok(created.unwrap_or(reading.as_of.at))
}

/// The charges that stand in it in full.
fn charges(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Vec<Charge>, JsonReadError> {
    let mut charges = Vec::new();
    let mut add = |holder: &ProcessorJsonObject<'_>, places: [&str; 2]| {
        for place in places {
            if let Some(charge) = holder.expanded(place)? {
                charges.push(Charge::of(&charge, reading)?);
            }
        }
        Ok(())
    };
    add(object, ["charge", "payment_intent.latest_charge"])?;
    for payment in object.objects("payments")?.iter() {
        add(&payment?, ["payment.charge", "payment.payment_intent.latest_charge"])?;
    }
    Ok(charges)
}

fn description(object: &ProcessorJsonObject<'_>) -> Result<Option<String>, JsonReadError> {
    let mut description = object.text("description")?;
    if let Some(line) = object.objects("lines")?.iter().next() {
        description = description.or(line?.text("description")?);
    }
    let cut = |text: &str| text.trim().chars().take(DESCRIPTION_CHARS_MAX).collect::<String>();
    Ok(description.map(|text| cut(&text)).filter(|text| !text.is_empty()))
}
