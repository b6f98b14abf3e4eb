//! Invoice payments: which payment paid which invoice, so that refunds and disputes can be matched.

use super::super::json_reader::{JsonReadError, ProcessorJsonObject, ReadContext};
use super::super::state_version::StateVersion;

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

impl InvoicePayment {
    /// Parses a fetched invoice payment (`GET /v1/invoice_payments`).
    ///
    /// # Errors
    /// A needed field is missing or invalid.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::from_json(&ProcessorJsonObject::parse(json, "")?, reading)
    }

    pub(in super::super) fn from_json(
        object: &ProcessorJsonObject<'_>,
        reading: &ReadContext<'_>,
    ) -> Result<Self, JsonReadError> {
        Ok(Self {
            id: object.required_id("id")?,
            invoice: object.required_id("invoice")?,
            payment: payment_of_entry(object)?,
            as_of: reading.as_of,
        })
    }
}

/// Returns the payments that an invoice names: its own charge and payment intent, and its list.
pub(super) fn payments_of_invoice(object: &ProcessorJsonObject<'_>) -> Result<Vec<Payment>, JsonReadError> {
    let own_payment = Payment {
        charge: object.first_id(&["charge", "payment_intent.latest_charge"])?,
        payment_intent: object.first_id(&["payment_intent", "charge.payment_intent"])?,
    };
    let mut payments = Vec::new();
    add(&mut payments, own_payment);
    for entry in object.objects("payments")?.iter() {
        let entry = entry?;
        // The list also contains attempts that did not pay.
        if entry.text("status")?.is_none_or(|status| status == "paid") {
            add(&mut payments, payment_of_entry(&entry)?);
        }
    }
    Ok(payments)
}

fn payment_of_entry(entry: &ProcessorJsonObject<'_>) -> Result<Payment, JsonReadError> {
    Ok(Payment {
        charge: entry.first_id(&["payment.charge", "payment.payment_intent.latest_charge"])?,
        payment_intent: entry.first_id(&["payment.payment_intent", "payment.charge.payment_intent"])?,
    })
}

/// Adds a payment, or completes one that is already in the list.
fn add(payments: &mut Vec<Payment>, payment: Payment) {
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
