//! Invoice, from `invoice.paid` and `invoice.payment_succeeded`, with its lines and the payments that paid it.
//! Payments lead from refunds and disputes to the invoice.

use jiff::Timestamp;
use model::affiliate::sale::{Sale, SaleLine};

use super::charge::Charge;
use super::json_reader::{JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject};
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

impl StripeObject for Invoice {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
        let is_event = reading.as_of.step != ObjectStage::Fetched;
        let is_paid = match object.text("status")?.as_deref() {
            Some(status) => status == "paid",
            None => object.flag("paid")?.unwrap_or(is_event),
        };
        let has_all_lines = !object.is_set("lines.has_more")?;
        let lines: Vec<SaleLine> =
            object.objects("lines")?.iter().map(|line| read_line(&line?)).collect::<Result<_, _>>()?;
        let metadata = ["subscription_details.metadata", "parent.subscription_details.metadata", "metadata"];
        Ok(Self {
            is_paid,
            customer: object.id("customer")?,
            email: object.email(&["customer_email", "customer.email"])?,
            subscription: object.first_id(&["subscription", "parent.subscription_details.subscription"])?,
            marks: ReferralMetadata::read(object, &metadata, reading),
            payments: payments_of_invoice(object)?,
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
pub fn invoice_line(json: &str, nth: usize) -> Result<SaleLine> {
    read_line(&ProcessorJsonObject::parse(json, &format!("data.object.lines.data[{nth}]"))?)
}

/// Returns the tax included in `total`. An empty list is ignored: processors send it along with a `tax` that is not
/// zero.
fn tax(object: &ProcessorJsonObject<'_>) -> Result<i64> {
    for list in ["total_taxes", "total_tax_amounts"] {
        if let Some(tax) = object.sum(list, |_| true)? {
            return Ok(tax);
        }
    }
    Ok(object.amount("tax")?.unwrap_or(0))
}

/// Returns the time of payment. A fetched invoice without that field was paid at an unknown time before, so its
/// creation is used.
fn paid_at(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Timestamp> {
    if let Some(paid_at) = object.time("status_transitions.paid_at")? {
        return Ok(paid_at);
    }
    let created = if reading.as_of.step == ObjectStage::Fetched { object.time("created")? } else { None };
    Ok(created.unwrap_or(reading.as_of.at))
}

/// Returns the charges that are expanded in the invoice.
fn charges(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Vec<Charge>> {
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

fn description(object: &ProcessorJsonObject<'_>) -> Result<Option<String>> {
    let mut description = object.text("description")?;
    if let Some(line) = object.objects("lines")?.iter().next() {
        description = description.or(line?.text("description")?);
    }
    let cut = |text: &str| text.trim().chars().take(DESCRIPTION_CHARS_MAX).collect::<String>();
    Ok(description.map(|text| cut(&text)).filter(|text| !text.is_empty()))
}

/// A payment, by its known ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    pub charge: Option<String>,
    /// The payment intent; API versions since Basil use it instead of the charge.
    pub payment_intent: Option<String>,
}

/// Records that a payment paid an invoice, wholly or in part (`invoice_payment.paid`). Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoicePayment {
    pub id: String,
    pub invoice: String,
    pub payment: Payment,
    pub as_of: StateVersion,
}

impl StripeObject for InvoicePayment {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
        Ok(Self {
            id: object.required_id("id")?,
            invoice: object.required_id("invoice")?,
            payment: payment_of_entry(object)?,
            as_of: reading.as_of,
        })
    }
}

/// Returns the payments that an invoice names: its own charge and payment intent, and its list.
fn payments_of_invoice(object: &ProcessorJsonObject<'_>) -> Result<Vec<Payment>> {
    let own_payment = Payment {
        charge: object.first_id(&["charge", "payment_intent.latest_charge"])?,
        payment_intent: object.first_id(&["payment_intent", "charge.payment_intent"])?,
    };
    let mut payments = Vec::new();
    add_payment(&mut payments, own_payment);
    for entry in object.objects("payments")?.iter() {
        let entry = entry?;
        // The list also contains attempts that did not pay.
        if entry.text("status")?.is_none_or(|status| status == "paid") {
            add_payment(&mut payments, payment_of_entry(&entry)?);
        }
    }
    Ok(payments)
}

fn payment_of_entry(entry: &ProcessorJsonObject<'_>) -> Result<Payment> {
    Ok(Payment {
        charge: entry.first_id(&["payment.charge", "payment.payment_intent.latest_charge"])?,
        payment_intent: entry.first_id(&["payment.payment_intent", "payment.charge.payment_intent"])?,
    })
}

/// Adds a payment, or completes one that is already in the list.
fn add_payment(payments: &mut Vec<Payment>, payment: Payment) {
    let is_same = |left: &Option<String>, right: &Option<String>| left.is_some() && left == right;
    let existing = payments.iter_mut().find(|existing| {
        is_same(&existing.charge, &payment.charge) || is_same(&existing.payment_intent, &payment.payment_intent)
    });
    match existing {
        Some(existing) => {
            existing.charge = existing.charge.take().or(payment.charge);
            existing.payment_intent = existing.payment_intent.take().or(payment.payment_intent);
        }
        None if payment.charge.is_some() || payment.payment_intent.is_some() => payments.push(payment),
        None => {}
    }
}

/// Parses a line. A proration credit has only negative amounts.
fn read_line(line: &ProcessorJsonObject<'_>) -> Result<SaleLine> {
    let discount = line.sum("discount_amounts", |_| true)?;
    Ok(SaleLine {
        amount: line.required_amount("amount")?,
        discount: discount.unwrap_or(0),
        inclusive_tax: inclusive_tax(line)?,
        pretax_credit: line
            .sum("pretax_credit_amounts", |credit| is_separate_from_discount(credit, discount))?
            .unwrap_or(0),
        price: line.first_id(&["price", "pricing.price_details.price", "plan"])?,
        product: line.first_id(&["price.product", "plan.product", "pricing.price_details.product"])?,
    })
}

/// Returns the tax included in the line's amount: from `taxes` (Basil), else `tax_amounts`.
fn inclusive_tax(line: &ProcessorJsonObject<'_>) -> Result<i64> {
    let taxes = line.sum("taxes", |tax| tax.has_text("tax_behavior", "inclusive"))?;
    let tax = match taxes {
        Some(tax) => Some(tax),
        None => line.sum("tax_amounts", |tax| tax.find("inclusive") == Some("true"))?,
    };
    Ok(tax.unwrap_or(0))
}

/// True if a credit is not one of the discounts already counted: the list of credits contains those as well.
fn is_separate_from_discount(credit: &ProcessorJsonObject<'_>, discount: Option<i64>) -> bool {
    discount.is_none() || !credit.has_text("type", "discount")
}
