//! Sale: a paid invoice as the payment processor reports it, in the processor's minor units.
//!
//! A sale is the state in the newest report, not a change. Reading two reports of an invoice in either order gives the
//! same sale.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::money::Currency;

/// A paid invoice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    /// The invoice's id at the payment processor.
    pub invoice: String,
    /// The currency of all amounts.
    pub currency: Currency,
    /// Total after discounts, including tax, in minor units.
    pub total: i64,
    /// `total` without tax, if the processor reports it.
    pub total_excluding_tax: Option<i64>,
    /// Tax in `total`; used if `total_excluding_tax` is missing.
    pub tax: i64,
    /// The amount paid: less than `total` if account credit was used.
    pub amount_paid: i64,
    /// Time of payment by the processor's clock.
    pub paid_at: Timestamp,
    /// Items; empty if the processor does not report them.
    pub lines: Vec<SaleLine>,
}

/// One line of an invoice. If `amount` is negative (a proration credit), the other amounts are negative too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleLine {
    /// Amount before discounts in minor units; negative for a proration credit.
    pub amount: i64,
    pub discount: i64,
    /// Tax that `amount` includes.
    pub inclusive_tax: i64,
    /// Credit before tax, in addition to the discounts.
    pub pretax_credit: i64,
    /// The price's id at the payment processor.
    pub price: Option<String>,
    /// The product's id at the payment processor.
    pub product: Option<String>,
}

/// Refunds and disputes of a sale: absolute values, not changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SaleReturns {
    /// Total of refunds and credit notes in minor units.
    pub refunded: i64,
    /// The last total that was less than everything. A reversed commission retains the amount that it had then. See
    /// [`super::refunds::Refunds`].
    pub refunded_in_part: i64,
    /// If everything was returned: time of the newest report, by the processor's clock, that the total had decreased to
    /// less than everything.
    pub in_part_at: Option<Timestamp>,
    /// Time of the newest report.
    pub told_at: Option<Timestamp>,
    /// All disputes, also closed ones, by the processor's id.
    pub disputes: BTreeMap<String, DisputeState>,
}

impl SaleReturns {
    /// The disputes that reverse commissions.
    pub fn reversing_disputes(&self) -> impl Iterator<Item = (&str, DisputeState)> {
        let reversing = self.disputes.iter().filter(|(_, dispute)| dispute.reverses_commissions());
        reversing.map(|(id, dispute)| (id.as_str(), *dispute))
    }

    /// True if the bank holds the money, temporarily or for good.
    pub fn has_disputed_funds(&self) -> bool {
        self.disputes.values().any(|dispute| dispute.holds_funds())
    }

    /// True if a bank's inquiry is open.
    pub fn has_inquiry(&self) -> bool {
        self.disputes.values().any(|dispute| *dispute == DisputeState::Inquiry)
    }
}

/// State of a dispute of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeState {
    /// The bank made an inquiry (`warning_*`): the commission is frozen, not reversed.
    Inquiry,
    /// The inquiry was closed without a dispute.
    InquiryClosed,
    /// The payment is disputed; the bank holds the money.
    Open,
    /// The dispute was won. Commissions that it reversed remain reversed until the owner reinstates them.
    Won,
    Lost,
}

impl DisputeState {
    /// True if the dispute reverses commissions. A won dispute counts too, because it reversed them while it was open.
    /// The result therefore does not depend on whether the open state was received.
    pub fn reverses_commissions(self) -> bool {
        matches!(self, Self::Open | Self::Won | Self::Lost)
    }

    /// True if the bank holds the money, temporarily or for good.
    pub fn holds_funds(self) -> bool {
        matches!(self, Self::Open | Self::Lost)
    }
}
