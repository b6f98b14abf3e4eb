//! Commission rates: which rate applies to which lines of a sale.
//!
//! Precedence, highest first:
//!
//! 1. the partner's own rate (override);
//! 2. the rate of the line's price, then of its product;
//! 3. the highest tier that the partner's number of paying customers reaches;
//! 4. the campaign's base rate.
//!
//! An override is fixed: tiers and product rates do not change it. Excluded partners and customers are filtered out by
//! the caller.

use serde::{Deserialize, Serialize};

use super::split::split_by_weights;
use super::{ArithmeticError, minus, plus};
use crate::affiliate::campaign::{CommissionRate, CommissionTerms, ProductRate};
use crate::affiliate::money::BasisPoints;
use crate::affiliate::sale::{Sale, SaleLine};

/// The rule that a rate comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// The partner's own rate.
    Override,
    /// The campaign's rate for a product or for one of its prices.
    Product {
        /// The product's id at the payment processor.
        product: String,
        /// The price's id at the payment processor, if the rate is limited to one price.
        price: Option<String>,
        /// Display name.
        label: Option<String>,
    },
    /// A campaign tier that applies from a number of paying customers on.
    Tier {
        /// Index in the campaign's list of tiers, from 0.
        index: u16,
        min_paid_customers: u32,
    },
    /// The campaign's base rate.
    Base,
    /// The campaign's second-tier rate for the recruiter.
    SecondTier,
}

/// The commission of a rate group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateShare {
    /// A share of the group's base.
    Percent(BasisPoints),
    /// A fixed amount in minor units, once per group.
    Flat(i64),
    /// A fixed amount in another currency than the commission, left out of it. Occurs in old stored lines only: such an
    /// amount has a line of its own today.
    OtherCurrency(i64),
    Excluded,
}

/// The lines of a sale that have the same rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateGroup {
    pub rule: RateSource,
    pub share: RateShare,
    /// This group's part of the sale's base, in minor units.
    pub base: i64,
}

/// The rates of a partner at the time of a sale.
#[derive(Debug, Clone, Copy)]
pub struct RateOffer<'a> {
    pub terms: &'a CommissionTerms,
    /// The partner's own rate, which replaces the terms' rates.
    pub commission_override: Option<BasisPoints>,
    /// The number of paying customers of the partner, including the one that converts with this sale.
    pub paying_customers: u32,
}

/// Groups a sale's lines by rate and splits `base` among the groups, in the order of the invoice's lines. The parts add
/// up to exactly `base`. Groups with a net amount of zero or less (proration credits) are left out.
///
/// # Errors
/// [`ArithmeticError::Negative`] for a negative flat amount; [`ArithmeticError::TooLarge`] on overflow.
pub fn rate_groups(sale: &Sale, base: i64, offer: &RateOffer<'_>) -> Result<Vec<RateGroup>, ArithmeticError> {
    if let Some(own) = offer.commission_override {
        return Ok(vec![RateGroup { rule: RateSource::Override, share: RateShare::Percent(own), base }]);
    }
    let mut found: Vec<(Option<&ProductRate>, i128)> = Vec::new();
    for line in &sale.lines {
        let rate = product_rate(line, &offer.terms.products);
        let net = net_amount(line)?;
        match found.iter_mut().find(|(known, _)| is_same_rate(*known, rate)) {
            Some((_, sum)) => *sum = plus(*sum, net)?,
            None => found.push((rate, net)),
        }
    }
    found.retain(|(_, net)| *net > 0);
    if found.is_empty() {
        // The invoice has no usable lines but was paid: the general rate applies to the whole base.
        found.push((None, 1));
    }
    let weights: Vec<i128> = found.iter().map(|(_, net)| *net).collect();
    let parts = split_by_weights(base, &weights)?;
    found.into_iter().zip(parts).map(|((rate, _), base)| rate_group(rate, base, offer)).collect()
}

/// The net amount of a line: after discounts and pre-tax credit, without inclusive tax.
fn net_amount(line: &SaleLine) -> Result<i128, ArithmeticError> {
    minus(minus(minus(line.amount, line.discount)?, line.inclusive_tax)?, line.pretax_credit)
}

/// Finds the rate of a line's price, or else of its product.
fn product_rate<'a>(line: &SaleLine, rates: &'a [ProductRate]) -> Option<&'a ProductRate> {
    let of_price = rates.iter().find(|rate| rate.price.is_some() && rate.price == line.price);
    let of_product = || {
        let product = line.product.as_deref()?;
        rates.iter().find(|rate| rate.price.is_none() && rate.product == product)
    };
    of_price.or_else(of_product)
}

/// True if two lines matched the same entry of the rate list, or both matched none.
fn is_same_rate(a: Option<&ProductRate>, b: Option<&ProductRate>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn rate_group(rate: Option<&ProductRate>, base: i64, offer: &RateOffer<'_>) -> Result<RateGroup, ArithmeticError> {
    let (rule, rate) = match rate {
        Some(ProductRate { product, price, rate, label, .. }) => {
            let rule = RateSource::Product { product: product.clone(), price: price.clone(), label: label.clone() };
            (rule, *rate)
        }
        None => {
            let (rule, rate) = tier_or_base(offer);
            (rule, Some(rate))
        }
    };
    let share = match rate {
        None => RateShare::Excluded,
        Some(CommissionRate::Percent(points)) => RateShare::Percent(points),
        Some(CommissionRate::Flat(amount)) if amount < 0 => {
            return Err(ArithmeticError::Negative("a flat commission"));
        }
        Some(CommissionRate::Flat(amount)) => RateShare::Flat(amount),
    };
    Ok(RateGroup { rule, share, base })
}

/// The rate of lines without a product rate.
fn tier_or_base(offer: &RateOffer<'_>) -> (RateSource, CommissionRate) {
    let reached = offer.terms.tiers.iter().zip(0_u16..);
    let highest = reached
        .filter(|(tier, _)| tier.min_paid_customers <= offer.paying_customers)
        .max_by_key(|(tier, _)| tier.min_paid_customers);
    match highest {
        Some((tier, index)) => (RateSource::Tier { index, min_paid_customers: tier.min_paid_customers }, tier.rate),
        None => (RateSource::Base, offer.terms.base),
    }
}
