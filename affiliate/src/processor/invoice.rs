//! An invoice, as `invoice.paid` and `invoice.payment_succeeded` tell, and which payments paid it.

mod line;
mod payment;

use jiff::Timestamp;
use mail::affiliate::sale::{Sale, SaleLine};
use serde_json::Value;

pub use self::payment::{InvoicePayment, Payment};
use super::as_of::{AsOf, Step};
use super::charge::Charge;
use super::marks::Marks;
use super::reading::{Object, Reading, Unreadable};

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
    pub marks: Marks,
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
    pub as_of: AsOf,
}

impl Invoice {
    /// Reads an invoice that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(value: &Value, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        Self::of(&Object::of(value, "")?, reading)
    }

    pub(super) fn of(object: &Object<'_>, reading: &Reading<'_>) -> Result<Self, Unreadable> {
        let is_told = reading.as_of.step != Step::Fetched;
        let is_paid = match object.text("status")? {
            Some(status) => status == "paid",
            None => object.flag("paid")?.unwrap_or(is_told),
        };
        let has_all_lines = !object.is("lines.has_more")?;
        let lines: Vec<SaleLine> =
            object.objects("lines")?.iter().map(line::read).collect::<Result<_, _>>()?;
        let metadata = ["subscription_details.metadata", "parent.subscription_details.metadata", "metadata"];
        Ok(Self {
            is_paid,
            customer: object.id("customer")?,
            email: object.email(&["customer_email", "customer.email"])?,
            subscription: object.first_id(&["subscription", "parent.subscription_details.subscription"])?,
            marks: Marks::read(object, &metadata, reading),
            payments: payment::of_invoice(object)?,
            charges: charges(object, reading)?,
            description: description(object)?,
            has_all_lines,
            as_of: reading.as_of,
            sale: Sale {
                invoice: object.needed_id("id")?,
                currency: object.needed_currency()?,
                total: object.needed_amount("total")?,
                total_excluding_tax: object.amount("total_excluding_tax")?,
                tax: tax(object)?,
                amount_paid: object.needed_amount("amount_paid")?,
                paid_at: paid_at(object, reading)?,
                lines: if has_all_lines { lines } else { Vec::new() },
            },
        })
    }
}

/// The tax in `total`. An empty list says nothing: processors send it beside a `tax` that is not zero.
fn tax(object: &Object<'_>) -> Result<i64, Unreadable> {
    for list in ["total_taxes", "total_tax_amounts"] {
        if let Some(tax) = object.sum(list, |_| true)? {
            return Ok(tax);
        }
    }
    Ok(object.amount("tax")?.unwrap_or(0))
}

/// When it was paid, by the processor's clock: an answer that does not say so was made at some time after.
fn paid_at(object: &Object<'_>, reading: &Reading<'_>) -> Result<Timestamp, Unreadable> {
    if let Some(paid_at) = object.time("status_transitions.paid_at")? {
        return Ok(paid_at);
    }
    let created = if reading.as_of.step == Step::Fetched { object.time("created")? } else { None };
    Ok(created.unwrap_or(reading.as_of.at))
}

/// The charges that stand in it in full.
fn charges(object: &Object<'_>, reading: &Reading<'_>) -> Result<Vec<Charge>, Unreadable> {
    let payments = object.objects("payments")?;
    let theirs = payments
        .iter()
        .flat_map(|p| [p.expanded("payment.charge"), p.expanded("payment.payment_intent.latest_charge")]);
    let own = [object.expanded("charge"), object.expanded("payment_intent.latest_charge")];
    own.into_iter().chain(theirs).flatten().map(|charge| Charge::of(&charge, reading)).collect()
}

fn description(object: &Object<'_>) -> Result<Option<String>, Unreadable> {
    let mut description = object.text("description")?;
    for line in object.objects("lines")?.iter().take(1) {
        description = description.or(line.text("description")?);
    }
    let cut = |text: &str| text.chars().take(DESCRIPTION_CHARS_MAX).collect();
    Ok(description.map(str::trim).filter(|text| !text.is_empty()).map(cut))
}
