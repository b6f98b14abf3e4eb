//! Terms snapshot and calculation of a commission, stored with each line.
//!
//! New rates apply to new commissions only, and refunds are computed by the terms of the line. The calculation explains
//! the amount to the partner ([`Commission::formula`]).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Commission, CommissionOrigin, SoldInvoice};
use crate::affiliate::arithmetic::amount::{self, Payable};
use crate::affiliate::arithmetic::rate::{RateGroup, RateShare, RateSource};
use crate::affiliate::arithmetic::split::split_by_weights;
use crate::affiliate::arithmetic::{ArithmeticError, refund};
use crate::affiliate::money::{BasisPoints, Currency};
use crate::id::CampaignId;

/// The terms that a commission was written by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsSnapshot {
    /// The campaign of the referring partner, also for the recruiter's share.
    pub campaign: CampaignId,
    /// The campaign's `rev` at that time.
    pub campaign_rev: u64,
    /// Refund hold in days.
    pub hold_days: u16,
}

/// The inputs of a commission's computation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommissionCalculation {
    pub currency: Currency,
    /// The commissionable base before refunds, in minor units.
    pub base: i64,
    /// The amount that was paid, in minor units.
    pub paid: i64,
    /// The tax that the invoice's total includes, in minor units.
    pub tax: i64,
    /// The partner's number of paying customers, including this one.
    pub paying_customers: u32,
    /// Lines of the invoice by rate; their bases add up to `base`.
    pub groups: Vec<RateGroup>,
    /// The campaign's cap per sale, if it has one.
    pub cap: Option<CommissionCap>,
}

/// The maximum commission of one sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommissionCap {
    /// Maximum in minor units of `currency`.
    pub most: i64,
    /// The program's currency.
    pub currency: Currency,
    pub effect: CapEffect,
}

/// The effect of a cap when the commission was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapEffect {
    /// The commission did not exceed the cap.
    Unreached,
    /// The commission was lowered to the cap.
    Hit,
    /// Not applied: the cap and the commission have different currencies, and amounts are not converted.
    OtherCurrency,
}

impl CommissionCalculation {
    /// Splits the remaining base among the rate groups.
    ///
    /// # Errors
    /// [`ArithmeticError`] on overflow or for stored values that are negative or all zero.
    pub fn parts(&self, remaining: i64) -> Result<Vec<i64>, ArithmeticError> {
        if remaining == self.base {
            return Ok(self.groups.iter().map(|group| group.base).collect());
        }
        let weights: Vec<i128> = self.groups.iter().map(|group| i128::from(group.base)).collect();
        split_by_weights(remaining, &weights)
    }

    /// Computes the commission in `currency` for the remaining base. Flat amounts do not shrink.
    ///
    /// # Errors
    /// [`ArithmeticError`] on overflow or for stored values that are negative or all zero.
    pub fn payable(&self, remaining: i64, currency: Currency) -> Result<Payable, ArithmeticError> {
        let raw = amount::sum_of_groups(self.groups.iter().zip(self.parts(remaining)?))?;
        let max = self.cap.filter(|cap| cap.effect != CapEffect::OtherCurrency).map(|cap| cap.most);
        amount::payable(raw, max, currency)
    }

    /// Returns the base that remains after refunds of `refunded` minor units.
    ///
    /// # Errors
    /// [`ArithmeticError`] on overflow, for a negative refund, or if nothing was paid.
    pub fn remaining(&self, refunded: i64) -> Result<i64, ArithmeticError> {
        refund::remaining_base(self.base, self.paid, refunded)
    }
}

/// Explains the amount of a commission in one line.
pub(super) fn formula(
    line: &Commission,
    format_money: fn(i64, Currency) -> String,
    format_currency: fn(Currency) -> String,
) -> String {
    let total = format_money(line.amount, line.currency);
    let share_text = |group: &RateGroup, base: i64, calculation: &CommissionCalculation| {
        let base = format_money(base, calculation.currency);
        match group.share {
            RateShare::Percent(points) => format!("{} of {base}", percent_text(points)),
            RateShare::Flat(amount) => format!("{} for a sale of {base}", format_money(amount, line.currency)),
            RateShare::OtherCurrency(_) => {
                let currency = format_currency(line.currency);
                format!("a fixed amount in another currency, not paid in {currency}, for a sale of {base}")
            }
            RateShare::Excluded => format!("no commission on {base}"),
        }
    };
    let CommissionOrigin::Sale(sold) = &line.origin else { return format!("{total} for a lead") };
    let SoldInvoice { amount, calculation, .. } = &**sold;
    let mut text = String::new();
    let parts = calculation.parts(*amount).unwrap_or_default();
    match (calculation.groups.as_slice(), parts.as_slice()) {
        ([only], [base]) => {
            let (share, rule) = (share_text(only, *base, calculation), rate_source_text(&only.rule));
            let _ = write!(text, "{share} = {total} ({rule})");
        }
        (groups, parts) => {
            for (group, base) in groups.iter().zip(parts) {
                let (plus, share) = (if text.is_empty() { "" } else { " + " }, share_text(group, *base, calculation));
                let _ = write!(text, "{plus}{share} ({})", rate_source_text(&group.rule));
            }
            let _ = write!(text, " = {total}");
        }
    }
    if let Some(cap) = calculation.cap {
        let max_text = format_money(cap.most, cap.currency);
        let cap_text = match cap.effect {
            CapEffect::Unreached => String::new(),
            CapEffect::Hit => format!("; capped at {max_text} per sale"),
            CapEffect::OtherCurrency => {
                format!("; the cap of {max_text} does not apply in {}", format_currency(line.currency))
            }
        };
        text.push_str(&cap_text);
    }
    if *amount != calculation.base {
        let before = format_money(calculation.base, calculation.currency);
        let _ = write!(text, "; the base was {before} before refunds");
    }
    text
}

/// The source of a rate for display.
fn rate_source_text(rule: &RateSource) -> String {
    match rule {
        RateSource::Override => "the partner's own rate".to_owned(),
        RateSource::Product { label: Some(label), .. } => format!("rate of {label}"),
        RateSource::Product { price: Some(price), .. } => format!("rate of price {price}"),
        RateSource::Product { product, .. } => format!("rate of product {product}"),
        RateSource::Tier { min_paid_customers: 1, .. } => "tier from 1 customer".to_owned(),
        RateSource::Tier { min_paid_customers, .. } => format!("tier from {min_paid_customers} customers"),
        RateSource::Base => "the campaign's rate".to_owned(),
        RateSource::SecondTier => "the recruiter's share".to_owned(),
    }
}

pub(super) fn money_text(amount: i64, currency: Currency) -> String {
    format!("{} {currency}", currency.format_amount(amount))
}

/// Basis points as a percentage: `20 %`, `12.5 %`.
fn percent_text(points: BasisPoints) -> String {
    let text = format!("{}.{:02}", points.get() / 100, points.get() % 100);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_formatted_as_percentages() {
        let table = [(2_000, "20 %"), (1_250, "12.5 %"), (1, "0.01 %"), (0, "0 %"), (10_000, "100 %"), (505, "5.05 %")];
        for (points, text) in table {
            assert_eq!(percent_text(points.try_into().unwrap()), text);
        }
    }
}
