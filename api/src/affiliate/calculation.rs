//! How the amount of a commission was calculated: its base, its rates, and the rule that each rate comes from.

use ::affiliate::api_objects::CommissionObject;
use model::affiliate::arithmetic::rate::{RateGroup, RateShare, RateSource};
use model::affiliate::commission::{CapEffect, Commission, CommissionCalculation};
use model::affiliate::money::Currency;
use schema::ToSchema;
use serde::Serialize;

use crate::object_view::object_view;

const RULES: &[&str] = &["override", "product", "tier", "base", "second_tier"];
const CAP_EFFECTS: &[&str] = &["unreached", "hit", "other_currency"];

/// Lines of the sale that have the same rate
#[derive(Debug, Serialize, ToSchema)]
struct RateView {
    /// The part of the sale that the rate applies to, after refunds, in minor units
    base_cents: i64,
    /// The rate in basis points; null for a fixed amount
    commission_bps: Option<u16>,
    /// The fixed amount in minor units; null for a share
    commission_flat_cents: Option<i64>,
    /// `override`: the partner's own rate; `product`: the campaign's rate of the product or price; `tier`: the campaign's
    /// rate from a number of paying customers on; `base`: the campaign's rate; `second_tier`: the recruiter's share
    #[schema(enum = RULES)]
    rule: &'static str,
    /// The product's id at the payment processor
    product: Option<String>,
    /// The number of paying customers from which the tier applies
    min_paid_customers: Option<u32>,
}

impl RateView {
    /// `None` for lines of the sale that earn nothing here.
    fn from_group(group: &RateGroup, base: i64) -> Option<Self> {
        let (commission_bps, commission_flat_cents) = match group.share {
            RateShare::Percent(rate) => (Some(rate.get()), None),
            RateShare::Flat(amount) => (None, Some(amount)),
            RateShare::OtherCurrency(_) | RateShare::Excluded => return None,
        };
        let (rule, product, min_paid_customers) = match &group.rule {
            RateSource::Override => ("override", None, None),
            RateSource::Product { product, .. } => ("product", Some(product.clone()), None),
            RateSource::Tier { min_paid_customers, .. } => ("tier", None, Some(*min_paid_customers)),
            RateSource::Base => ("base", None, None),
            RateSource::SecondTier => ("second_tier", None, None),
        };
        Some(Self { base_cents: base, commission_bps, commission_flat_cents, rule, product, min_paid_customers })
    }
}

/// The maximum commission of a sale
#[derive(Debug, Serialize, ToSchema)]
struct CapView {
    /// The maximum in minor units
    max_commission_cents: i64,
    /// Its currency
    currency: Currency,
    /// `hit`: the commission was lowered to it; `other_currency`: not applied, because amounts are not converted
    #[schema(enum = CAP_EFFECTS)]
    effect: &'static str,
}

object_view! {
    /// The calculation of a commission on a sale
    struct CalculationView, fn new(
        calculation: &CommissionCalculation, remaining: i64;
        let parts = calculation.parts(remaining).unwrap_or_default();
        let groups = calculation.groups.iter().zip(parts);
        let cap = calculation.cap.map(|cap| CapView {
            max_commission_cents: cap.most,
            currency: cap.currency,
            effect: match cap.effect {
                CapEffect::Unreached => "unreached",
                CapEffect::Hit => "hit",
                CapEffect::OtherCurrency => "other_currency",
            },
        })
    ) {
        /// The currency of the sale
        currency: Currency = calculation.currency,
        /// The amount that the customer paid, in minor units
        paid_cents: i64 = calculation.paid,
        /// The tax included in it
        tax_cents: i64 = calculation.tax,
        /// The amount that the commission is calculated on: paid, without tax, before refunds
        base_cents: i64 = calculation.base,
        /// Remainder of the base after refunds
        remaining_base_cents: i64 = remaining,
        /// The partner's number of paying customers at that time, including this one
        paying_customers: u32 = calculation.paying_customers,
        /// The rates, by lines of the sale
        rates: Vec<RateView> = groups.filter_map(|(group, base)| RateView::from_group(group, base)).collect(),
        cap: Option<CapView> = cap,
    }
}

/// A commission with its calculation
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "AffiliateCommissionDetail")]
pub struct CommissionDetail {
    commission: CommissionObject,
    /// The calculation in one line: `20 % of 49.00 usd = 9.80 usd (campaign rate)`
    formula: String,
    /// Null for a bounty
    calculation: Option<CalculationView>,
}

impl CommissionDetail {
    /// The commission with its calculation.
    pub fn from_line(line: &Commission) -> Self {
        let calculation = line.sold_invoice().map(|sold| CalculationView::new(&sold.calculation, sold.amount));
        Self { commission: CommissionObject::from(line), formula: line.formula(), calculation }
    }
}
