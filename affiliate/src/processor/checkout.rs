//! A checkout session, as `checkout.session.completed` and `.async_payment_succeeded` tell: where a person who came by a
//! partner becomes a customer.

use jiff::Timestamp;
use mail::affiliate::money::Currency;
use mail::affiliate::sale::{Sale, SaleLine};

use super::as_of::StateVersion;
use super::marks::{ReferralHint, ReferralMetadata};
use super::reading::{JsonReadError, ProcessorJsonObject, ReadContext};

/// A checkout session that was completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The processor's id of the session.
    pub id: String,
    /// The customer; none for guests.
    pub customer: Option<String>,
    /// Their address, in lower case.
    pub email: Option<String>,
    /// Whom they came by: the `client_reference_id`, then the metadata; and whether it is to earn nothing.
    pub marks: ReferralMetadata,
    /// The invoice, where there is one. With the payment intent it tells which payment paid it.
    pub invoice: Option<String>,
    /// The subscription, where one was begun.
    pub subscription: Option<String>,
    /// The payment, where one was made here.
    pub payment_intent: Option<String>,
    /// Whether it is paid by now; methods that take days complete first and pay later.
    pub is_paid: bool,
    /// What was to be paid.
    pub total: Option<i64>,
    /// The tax in it.
    pub tax: i64,
    /// The currency of both.
    pub currency: Option<Currency>,
    /// When the session was begun.
    pub created_at: Option<Timestamp>,
    /// As of when this holds.
    pub as_of: StateVersion,
}

impl Checkout {
    /// Reads a session that was asked for.
    ///
    /// # Errors
    /// A field that matters cannot be read.
    pub fn read(json: &str, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        Self::of(&ProcessorJsonObject::of(json, "")?, reading)
    }

    pub(super) fn of(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self, JsonReadError> {
        let named = object.text("client_reference_id")?.and_then(|text| ReferralHint::read(&text));
        Ok(Self {
            id: object.required_id("id")?,
            customer: object.id("customer")?,
            email: object.email(&["customer_details.email", "customer_email", "customer.email"])?,
            marks: ReferralMetadata::read(object, &["metadata"], reading).with_first_hint(named),
            invoice: object.id("invoice")?,
            subscription: object.id("subscription")?,
            payment_intent: object.id("payment_intent")?,
            is_paid: object.text("payment_status")?.as_deref() == Some("paid"),
            total: object.amount("amount_total")?,
            tax: object.non_negative_amount("total_details.amount_tax")?.unwrap_or(0),
            currency: object.currency("currency")?,
            created_at: object.time("created")?,
            as_of: reading.as_of,
        })
    }

    /// The sale that it is by itself: paid, and by no invoice. It goes by the payment intent's id.
    ///
    /// Whether such sales count, the program says. Sessions do not tell their products: it is one line of none.
    #[must_use]
    pub fn sale(&self) -> Option<Sale> {
        if !self.is_paid || self.invoice.is_some() {
            return None;
        }
        let total = self.total?;
        Some(Sale {
            invoice: self.payment_intent.clone()?,
            currency: self.currency?,
            total,
            total_excluding_tax: None,
            tax: self.tax,
            amount_paid: total,
            paid_at: self.as_of.at,
            lines: vec![SaleLine { amount: total, inclusive_tax: self.tax, ..SaleLine::default() }],
        })
    }
}
