//! By which terms a commission was written, and how it was computed: kept on each line, since new rates are for new
//! commissions only, refunds are reckoned by the line's own terms, and its partner may ask why.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Commission, CommissionOrigin, SoldInvoice};
use crate::affiliate::arithmetic::amount::{self, Payable};
use crate::affiliate::arithmetic::rate::{RateGroup, RateShare, RateSource};
use crate::affiliate::arithmetic::split::split_by_weights;
use crate::affiliate::arithmetic::{ArithmeticError, refund};
use crate::affiliate::money::{BasisPoints, Currency};
use crate::id::CampaignId;

/// By which terms a commission was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsSnapshot {
    /// The campaign: that of the partner who brought the customer, also for the recruiter's share.
    pub campaign: CampaignId,
    /// Its `rev` then.
    pub campaign_rev: u64,
    /// For how many days the commission waits for refunds.
    pub hold_days: u16,
}

/// How a share of a sale was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommissionCalculation {
    /// The currency of the sale.
    pub currency: Currency,
    /// The commissionable base, before anything was given back.
    pub base: i64,
    /// What was paid.
    pub paid: i64,
    /// The tax in the invoice's total.
    pub tax: i64,
    /// How many paying customers the partner had, this one among them.
    pub paying_customers: u32,
    /// What earned at which rate; the parts come to the base.
    pub groups: Vec<RateGroup>,
    /// The most that one sale earns, where the campaign says so.
    pub cap: Option<CommissionCap>,
}

/// The most that one sale earns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommissionCap {
    /// So much, in minor units of `currency`.
    pub most: i64,
    /// The program's currency.
    pub currency: Currency,
    /// What it did.
    pub effect: CapEffect,
}

/// What a cap did when the commission was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapEffect {
    /// Nothing: the commission came to no more.
    Unreached,
    /// It made the commission less.
    Hit,
    /// Nothing: it is in another currency than the commission, and nothing is exchanged.
    OtherCurrency,
}

impl CommissionCalculation {
    /// What the groups have of what is left of the base.
    ///
    /// # Errors
    /// Figures that are too large, or that nobody writes.
    pub fn parts(&self, remaining: i64) -> Result<Vec<i64>, ArithmeticError> {
        if remaining == self.base {
            return Ok(self.groups.iter().map(|group| group.base).collect());
        }
        let weights: Vec<i128> = self.groups.iter().map(|group| i128::from(group.base)).collect();
        split_by_weights(remaining, &weights)
    }

    /// What the commission comes to, in `currency`, when so much of the base is left. Fixed amounts do not shrink.
    ///
    /// # Errors
    /// Figures that are too large, or that nobody writes.
    pub fn payable(&self, remaining: i64, currency: Currency) -> Result<Payable, ArithmeticError> {
        let raw = amount::sum_of_groups(self.groups.iter().zip(self.parts(remaining)?))?;
        let most = self.cap.filter(|cap| cap.effect != CapEffect::OtherCurrency).map(|cap| cap.most);
        amount::payable(raw, most, currency)
    }

    /// What is left of the base when so much was given back.
    ///
    /// # Errors
    /// Figures that are too large, or that nobody writes.
    pub fn remaining(&self, refunded: i64) -> Result<i64, ArithmeticError> {
        refund::remaining_base(self.base, self.paid, refunded)
    }
}

/// Why a commission is as large as it is, in one line.
pub(super) fn formula(line: &Commission) -> String {
    let total = money_text(line.amount, line.currency);
    let CommissionOrigin::Sale(sold) = &line.origin else { return format!("{total} for a lead") };
    let SoldInvoice { amount, calculation, .. } = &**sold;
    let mut text = String::new();
    let parts = calculation.parts(*amount).unwrap_or_default();
    match (calculation.groups.as_slice(), parts.as_slice()) {
        ([only], [base]) => {
            let (share, rule) = (share_text(only, *base, calculation, line.currency), rate_source_text(&only.rule));
            let _ = write!(text, "{share} = {total} ({rule})");
        }
        (groups, parts) => {
            for (group, base) in groups.iter().zip(parts) {
                let (plus, share) =
                    (if text.is_empty() { "" } else { " + " }, share_text(group, *base, calculation, line.currency));
                let _ = write!(text, "{plus}{share} ({})", rate_source_text(&group.rule));
            }
            let _ = write!(text, " = {total}");
        }
    }
    if let Some(cap) = calculation.cap {
        let most = money_text(cap.most, cap.currency);
        let said = match cap.effect {
            CapEffect::Unreached => String::new(),
            CapEffect::Hit => format!("; a sale earns at most {most}"),
            CapEffect::OtherCurrency => format!("; the cap of {most} does not hold in {}", line.currency),
        };
        text.push_str(&said);
    }
    if *amount != calculation.base {
        let before = money_text(calculation.base, calculation.currency);
        let _ = write!(text, "; of {before} the rest was given back");
    }
    text
}

/// What a group of lines earns: `20 % of 49.00 usd`.
fn share_text(group: &RateGroup, base: i64, calculation: &CommissionCalculation, currency: Currency) -> String {
    let base = money_text(base, calculation.currency);
    match group.share {
        RateShare::Percent(points) => format!("{} of {base}", percent_text(points)),
        RateShare::Flat(amount) => format!("{} for a sale of {base}", money_text(amount, currency)),
        RateShare::OtherCurrency(_) => {
            format!("a fixed amount, left out in {currency}, for a sale of {base}")
        }
        RateShare::Excluded => format!("nothing of {base}"),
    }
}

/// Where a rate comes from.
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

fn money_text(amount: i64, currency: Currency) -> String {
    format!("{} {currency}", currency.format_amount(amount))
}

/// Basis points as people read them: `20 %`, `12.5 %`.
fn percent_text(points: BasisPoints) -> String {
    let text = format!("{}.{:02}", points.get() / 100, points.get() % 100);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_as_people_read_them() {
        let table = [(2_000, "20 %"), (1_250, "12.5 %"), (1, "0.01 %"), (0, "0 %"), (10_000, "100 %"), (505, "5.05 %")];
        for (points, text) in table {
            assert_eq!(percent_text(points.try_into().unwrap()), text);
        }
    }
}
