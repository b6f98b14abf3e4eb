//! Checkout session, from `checkout.session.completed` and `.async_payment_succeeded`: links a person referred by a
//! partner to a customer.

use jiff::Timestamp;
use model::affiliate::money::Currency;
use model::affiliate::sale::{Sale, SaleLine};

use super::json_reader::{JsonResult as Result, ProcessorJsonObject, ReadContext, StripeObject};
use super::metadata::{ReferralHint, ReferralMetadata};
use super::state_version::StateVersion;

/// A completed checkout session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    pub id: String,
    /// `None` for a guest checkout.
    pub customer: Option<String>,
    /// Lowercase.
    pub email: Option<String>,
    /// Hints in the order of `client_reference_id`, then metadata; and the exclusion flag.
    pub marks: ReferralMetadata,
    /// The invoice, if one was created. Together with the payment intent it shows which payment paid it.
    pub invoice: Option<String>,
    /// The subscription, if one was started.
    pub subscription: Option<String>,
    /// The payment intent, if a payment was made in the session.
    pub payment_intent: Option<String>,
    /// True if paid. Delayed payment methods complete first and pay later.
    pub is_paid: bool,
    /// In minor units.
    pub total: Option<i64>,
    /// Tax included in `total`, in minor units.
    pub tax: i64,
    pub currency: Option<Currency>,
    pub created_at: Option<Timestamp>,
    pub as_of: StateVersion,
}

impl StripeObject for Checkout {
    fn from_json(object: &ProcessorJsonObject<'_>, reading: &ReadContext<'_>) -> Result<Self> {
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
}

impl Checkout {
    /// Returns the session as a sale of its own, if it is paid and has no invoice. The sale's id is the payment
    /// intent's.
    ///
    /// The program's settings decide whether such sales count. Sessions do not list products, so the sale has one line
    /// without a product.
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
