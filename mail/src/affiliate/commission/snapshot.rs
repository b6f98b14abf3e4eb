//! By which terms a commission was written, and how it was computed: kept on each line, since new rates are for new
//! commissions only, refunds are reckoned by the line's own terms, and its partner may ask why.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Commission, Origin, Sold};
use crate::affiliate::arithmetic::amount::{self, Payable};
use crate::affiliate::arithmetic::rate::{Group, Rule, Share};
use crate::affiliate::arithmetic::split::split;
use crate::affiliate::arithmetic::{ArithmeticError, refund};
use crate::affiliate::money::{BasisPoints, Currency};
use crate::id::CampaignId;

/// By which terms a commission was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The campaign: that of the partner who brought the customer, also for the recruiter's share.
    pub campaign: CampaignId,
    /// Its `rev` then.
    pub campaign_rev: u64,
    /// For how many days the commission waits for refunds.
    pub hold_days: u16,
}

/// How a share of a sale was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calculation {
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
    pub groups: Vec<Group>,
    /// The most that one sale earns, where the campaign says so.
    pub cap: Option<Cap>,
}

/// The most that one sale earns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
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

impl Calculation {
    /// What the groups have of what is left of the base.
    ///
    /// # Errors
    /// Figures that are too large, or that nobody writes.
    pub fn parts(&self, remaining: i64) -> Result<Vec<i64>, ArithmeticError> {
        if remaining == self.base {
            return Ok(self.groups.iter().map(|group| group.base).collect());
        }
        let weights: Vec<i128> = self.groups.iter().map(|group| i128::from(group.base)).collect();
        split(remaining, &weights)
    }

    /// What the commission comes to, in `currency`, when so much of the base is left. Fixed amounts do not shrink.
    ///
    /// # Errors
    /// Figures that are too large, or that nobody writes.
    pub fn payable(&self, remaining: i64, currency: Currency) -> Result<Payable, ArithmeticError> {
        let raw = amount::earned(self.groups.iter().zip(self.parts(remaining)?))?;
        let most = self.cap.filter(|cap| cap.effect != CapEffect::OtherCurrency).map(|cap| cap.most);
        amount::payable(raw, most, currency)
    }

    /// What is left of the base when so much was given back.
    ///
    /// # Errors
    /// Figures that are too large, or that nobody writes.
    pub fn remaining(&self, refunded: i64) -> Result<i64, ArithmeticError> {
        refund::remaining(self.base, self.paid, refunded)
    }
}

/// Why a commission is as large as it is, in one line.
pub(super) fn formula(line: &Commission) -> String {
    let total = money(line.amount, line.currency);
    let Origin::Sale(sold) = &line.origin else { return format!("{total} for a lead") };
    let Sold { amount, calculation, .. } = &**sold;
    let mut text = String::new();
    let parts = calculation.parts(*amount).unwrap_or_default();
    match (calculation.groups.as_slice(), parts.as_slice()) {
        ([only], [base]) => {
            let (share, rule) = (share(only, *base, calculation, line.currency), rule(&only.rule));
            let _ = write!(text, "{share} = {total} ({rule})");
        }
        (groups, parts) => {
            for (group, base) in groups.iter().zip(parts) {
                let (plus, share) = (
                    if text.is_empty() { "" } else { " + " },
                    share(group, *base, calculation, line.currency),
                );
                let _ = write!(text, "{plus}{share} ({})", rule(&group.rule));
            }
            let _ = write!(text, " = {total}");
        }
    }
    if let Some(cap) = calculation.cap {
        let most = money(cap.most, cap.currency);
        let said = match cap.effect {
            CapEffect::Unreached => String::new(),
            CapEffect::Hit => format!("; a sale earns at most {most}"),
            CapEffect::OtherCurrency => format!("; the cap of {most} does not hold in {}", line.currency),
        };
        text.push_str(&said);
    }
    if *amount != calculation.base {
        let before = money(calculation.base, calculation.currency);
        let _ = write!(text, "; of {before} the rest was given back");
    }
    text
}

/// What a group of lines earns: `20 % of 49.00 usd`.
fn share(group: &Group, base: i64, calculation: &Calculation, currency: Currency) -> String {
    let base = money(base, calculation.currency);
    match group.share {
        Share::Percent(points) => format!("{} of {base}", percent(points)),
        Share::Flat(amount) => format!("{} for a sale of {base}", money(amount, currency)),
        Share::OtherCurrency(_) => format!("a fixed amount, left out in {currency}, for a sale of {base}"),
        Share::Excluded => format!("nothing of {base}"),
    }
}

/// Where a rate comes from.
fn rule(rule: &Rule) -> String {
    match rule {
        Rule::Override => "the partner's own rate".to_owned(),
        Rule::Product { label: Some(label), .. } => format!("rate of {label}"),
        Rule::Product { price: Some(price), .. } => format!("rate of price {price}"),
        Rule::Product { product, .. } => format!("rate of product {product}"),
        Rule::Tier { min_paid_customers: 1, .. } => "tier from 1 customer".to_owned(),
        Rule::Tier { min_paid_customers, .. } => format!("tier from {min_paid_customers} customers"),
        Rule::Base => "the campaign's rate".to_owned(),
        Rule::SecondTier => "the recruiter's share".to_owned(),
    }
}

fn money(amount: i64, currency: Currency) -> String {
    format!("{} {currency}", currency.written(amount))
}

/// Basis points as people read them: `20 %`, `12.5 %`.
fn percent(points: BasisPoints) -> String {
    let text = format!("{}.{:02}", points.get() / 100, points.get() % 100);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_as_people_read_them() {
        let table = [
            (2_000, "20 %"),
            (1_250, "12.5 %"),
            (1, "0.01 %"),
            (0, "0 %"),
            (10_000, "100 %"),
            (505, "5.05 %"),
        ];
        for (points, text) in table {
            assert_eq!(percent(points.try_into().unwrap()), text);
        }
    }
}
