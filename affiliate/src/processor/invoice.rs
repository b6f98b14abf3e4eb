//! Invoice, from `invoice.paid` and `invoice.payment_succeeded`, with the payments that paid it.

mod line;
mod payment;

use jiff::Timestamp;
use mail::affiliate::sale::{Sale, SaleLine};

pub use self::payment::{InvoicePayment, Payment};
use super::charge::Charge;
use super::json_reader::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::metadata::ReferralMetadata;
use super::state_version::{ObjectStage, StateVersion};

/// Maximum characters of a description.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// An invoice; all fields are state. Most fields of a paid invoice never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    pub sale: Sale,
    /// True if paid. Lists contain unpaid invoices as well, and a partial payment also causes an event.
    pub is_paid: bool,
    pub customer: Option<String>,
    /// Lowercase.
    pub email: Option<String>,
    pub subscription: Option<String>,
    /// From the metadata of the subscription and of the invoice.
    pub marks: ReferralMetadata,
    /// The payments that paid the invoice, as far as it lists them.
    pub payments: Vec<Payment>,
    /// Charges that are expanded in the payments.
    pub charges: Vec<Charge>,
    /// The merchant's description.
    pub description: Option<String>,
    /// True if the invoice contains all its lines. A long invoice contains the first ten; the rest is fetched by `GET
    /// /v1/invoices/{id}/lines`. Without all lines `sale.lines` is empty, and the commission is computed from the
    /// total.
    pub has_all_lines: bool,
    pub as_of: StateVersion,
}

impl Invoice {
    /// Parses a fetched invoice.
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
        let is_event = reading.as_of.step != ObjectStage::Fetched;
        let is_paid = match object.text("status")?.as_deref() {
            Some(status) => status == "paid",
            None => object.flag("paid")?.unwrap_or(is_event),
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

/// Parses a fetched invoice line; `nth` is its index among all lines, for error messages.
///
/// # Errors
/// A needed field is missing or invalid.
pub fn invoice_line(json: &str, nth: usize) -> Result<SaleLine, JsonReadError> {
    line::read(&ProcessorJsonObject::parse(json, &format!("data.object.lines.data[{nth}]"))?)
}

/// Returns the tax included in `total`. An empty list is ignored: processors send it along with a `tax` that is not
/// zero.
fn tax(object: &ProcessorJsonObject<'_>) -> Result<i64, JsonReadError> {
    for list in ["total_taxes", "total_tax_amounts"] {
        if let Some(tax) = object.sum(list, |_| true)? {
            return Ok(tax);
        }
    }
    Ok(object.amount("tax")?.unwrap_or(0))
}

/// Returns the time of payment. A fetched invoice without that field was paid at an unknown time before, so its
/// creation is used.
fn paid_at(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Timestamp, JsonReadError> {
    if let Some(paid_at) = object.time("status_transitions.paid_at")? {
        return Ok(paid_at);
    }
    let created = if reading.as_of.step == ObjectStage::Fetched { object.time("created")? } else { None };
    Ok(created.unwrap_or(reading.as_of.at))
}

/// Returns the charges that are expanded in the invoice.
fn charges(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Vec<Charge>, JsonReadError> {
    let mut charges = Vec::new();
    let mut add = |container: &ProcessorJsonObject<'_>, paths: [&str; 2]| {
        for path in paths {
            if let Some(charge) = container.expanded(path)? {
                charges.push(Charge::from_json(&charge, reading)?);
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
