//! Which rate holds for what of a sale.
//!
//! Precedence: the partner's own rate before the product's (a price before its product) before the highest tier that
//! the partner's number of paying customers reaches before the campaign's base rate. A partner's own rate is fixed:
//! neither tiers nor products move it. (What is excluded altogether does not come here at all.)

use serde::{Deserialize, Serialize};

use super::split::split_by_weights;
use super::{ArithmeticError, minus, plus};
use crate::affiliate::campaign::{CommissionRate, CommissionTerms, ProductRate};
use crate::affiliate::money::BasisPoints;
use crate::affiliate::sale::{Sale, SaleLine};

/// Where a rate comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// The partner has one of its own.
    Override,
    /// The campaign has one for a product, or for one price of it.
    Product {
        /// The processor's id of the product.
        product: String,
        /// The processor's id of the price, where the rate is of that.
        price: Option<String>,
        /// What people call it.
        label: Option<String>,
    },
    /// The campaign has one from a number of paying customers on.
    Tier {
        /// Which of the campaign's tiers, from 0.
        index: u16,
        /// From how many on.
        min_paid_customers: u32,
    },
    /// The campaign's.
    Base,
    /// The campaign's for the recruiter.
    SecondTier,
}

/// What a group of lines earns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateShare {
    /// A share of what was paid for it.
    Percent(BasisPoints),
    /// A fixed amount, once.
    Flat(i64),
    /// A fixed amount that was left out, as was done once: it is in another currency than the commission. It has a line of
    /// its own now.
    OtherCurrency(i64),
    /// Nothing.
    Excluded,
}

/// Lines of a sale that have one rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateGroup {
    /// Where the rate comes from.
    pub rule: RateSource,
    /// What it earns.
    pub share: RateShare,
    /// Its part of the base.
    pub base: i64,
}

/// What a partner is offered at the time of a sale.
#[derive(Debug, Clone, Copy)]
pub struct RateOffer<'a> {
    /// The campaign's terms.
    pub terms: &'a CommissionTerms,
    /// The partner's own rate.
    pub commission_override: Option<BasisPoints>,
    /// How many paying customers the partner brought, the one that is converting now among them.
    pub paying_customers: u32,
}

/// The groups of a sale with their rates and their parts of `base`, in the order of the invoice's lines. The parts come
/// to exactly `base`. Groups that came to nothing or less (what is given back by proration) are left out.
///
/// # Errors
/// A negative fixed amount; figures that are too large.
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
        // Nothing is known of what was sold, but it was paid for.
        found.push((None, 1));
    }
    let weights: Vec<i128> = found.iter().map(|(_, net)| *net).collect();
    let parts = split_by_weights(base, &weights)?;
    found.into_iter().zip(parts).map(|((rate, _), base)| rate_group(rate, base, offer)).collect()
}

/// What was paid for a line: after discounts, without tax.
fn net_amount(line: &SaleLine) -> Result<i128, ArithmeticError> {
    minus(minus(minus(line.amount, line.discount)?, line.inclusive_tax)?, line.pretax_credit)
}

/// The rate of a line's price, or else of its product.
fn product_rate<'a>(line: &SaleLine, rates: &'a [ProductRate]) -> Option<&'a ProductRate> {
    let of_price = rates.iter().find(|rate| rate.price.is_some() && rate.price == line.price);
    let of_product = || {
        let product = line.product.as_deref()?;
        rates.iter().find(|rate| rate.price.is_none() && rate.product == product)
    };
    of_price.or_else(of_product)
}

/// Whether two lines matched the same rate of the list (or none of it).
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

/// The rate of what no product's rate is about.
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
