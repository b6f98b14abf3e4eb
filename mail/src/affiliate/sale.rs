//! A sale: a paid invoice as the payment processor tells of it, in the processor's own minor units.
//!
//! It is what the newest of the processor's accounts says, not a change: who reads two accounts of one invoice in either
//! order comes to the same sale.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::money::Currency;

/// A paid invoice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    /// The processor's id of the invoice.
    pub invoice: String,
    /// The currency of all its amounts.
    pub currency: Currency,
    /// What it came to: after discounts, with tax.
    pub total: i64,
    /// `total` without tax, where the processor says so.
    pub total_excluding_tax: Option<i64>,
    /// The tax in `total`, where `total_excluding_tax` is not said.
    pub tax: i64,
    /// What was really paid: less than `total` when credit was used.
    pub amount_paid: i64,
    /// When it was paid, by the processor's clock.
    pub paid_at: Timestamp,
    /// What was sold; empty where the processor does not say.
    pub lines: Vec<SaleLine>,
}

/// One line of an invoice. Where `amount` is negative, so are the parts of it: what is taken off what is given back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleLine {
    /// Its amount before discounts; negative for what is given back (proration).
    pub amount: i64,
    /// Discounts on it.
    pub discount: i64,
    /// Tax that `amount` includes.
    pub inclusive_tax: i64,
    /// Credit granted before tax, besides the discounts.
    pub pretax_credit: i64,
    /// The processor's id of the price.
    pub price: Option<String>,
    /// The processor's id of the product.
    pub product: Option<String>,
}

/// What became of the money since: absolute figures, not changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SaleReturns {
    /// What was given back in all, by refunds and credit notes.
    pub refunded: i64,
    /// What had been given back when last it was not all: a commission that is taken back keeps the amount that it had
    /// then. See [`super::refunds::Refunds`].
    pub refunded_in_part: i64,
    /// When the processor told last that it was not all, by its clock; where all was given back.
    pub in_part_at: Option<Timestamp>,
    /// As of when the newest is known that was told of it.
    pub told_at: Option<Timestamp>,
    /// The disputes that there ever were, by the processor's ids.
    pub disputes: BTreeMap<String, DisputeState>,
}

impl SaleReturns {
    /// The disputes that take commissions back.
    pub fn reversing_disputes(&self) -> impl Iterator<Item = (&str, DisputeState)> {
        let takes_back = self.disputes.iter().filter(|(_, dispute)| dispute.reverses_commissions());
        takes_back.map(|(id, dispute)| (id.as_str(), *dispute))
    }

    /// Whether the money is with the bank, for now or for good.
    #[must_use]
    pub fn has_disputed_funds(&self) -> bool {
        self.disputes.values().any(|dispute| dispute.holds_funds())
    }

    /// Whether the bank asks.
    #[must_use]
    pub fn has_inquiry(&self) -> bool {
        self.disputes.values().any(|dispute| *dispute == DisputeState::Inquiry)
    }
}

/// A dispute of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeState {
    /// The bank asks (`warning_*`): nothing is taken back yet, and nothing may earn.
    Inquiry,
    /// The inquiry ended without a dispute.
    InquiryClosed,
    /// The money is contested, or was lost.
    Open,
    /// It was won: lines that were reversed for it stay so until the owner reinstates them.
    Won,
    /// It was lost.
    Lost,
}

impl DisputeState {
    /// Whether it takes commissions back. Sticky: a dispute that was won did so while it was open, whether or not we heard
    /// of that.
    #[must_use]
    pub fn reverses_commissions(self) -> bool {
        matches!(self, Self::Open | Self::Won | Self::Lost)
    }

    /// Whether the money is with the bank, for now or for good.
    #[must_use]
    pub fn holds_funds(self) -> bool {
        matches!(self, Self::Open | Self::Lost)
    }
}
