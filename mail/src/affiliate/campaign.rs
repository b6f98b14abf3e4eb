//! A campaign: what partners earn by a sale, for how long, and when it is theirs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::money::BasisPoints;
use super::word::words;
use crate::id::{AccountId, CampaignId};

/// What one sale earns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionRate {
    /// A share of what was sold.
    Percent(BasisPoints),
    /// A fixed amount, in minor units of the program's currency; not negative.
    Flat(i64),
}

/// From how many paying customers on another rate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateTier {
    /// With this many, the one that is converting now among them.
    pub min_paid_customers: u32,
    /// The rate.
    pub rate: CommissionRate,
    /// As [`Terms::unused`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unused: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A rate of its own for a product or a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductRate {
    /// The processor's id of the product.
    pub product: String,
    /// The processor's id of one price of it; any of them otherwise. A price goes before its product.
    pub price: Option<String>,
    /// The rate; `None` when it earns nothing.
    pub rate: Option<CommissionRate>,
    /// As [`Terms::unused`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unused: i64,
    /// What people call it.
    pub label: Option<String>,
}

/// For how long a customer's sales earn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionDuration {
    /// The first paid invoice alone.
    Once,
    /// Every paid invoice of so many calendar months from the first; of a lifetime when `None`.
    Recurring(Option<u16>),
}

words! {
    /// Who may see it.
    Visibility {
        /// Anybody, in the public list.
        Public = "public",
        /// Those who are put into it.
        Private = "private",
        /// Those who have its address.
        Unlisted = "unlisted",
    }
}

/// What a commission is computed by: the part of a campaign that is copied onto each line, since new rates hold for
/// new commissions only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommissionTerms {
    /// The rate where nothing else holds.
    pub base: CommissionRate,
    /// The other of its two numbers, which was given and does not count while the rate is of this kind: minor units
    /// beside a share, basis points beside a fixed amount; zero for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unused: i64,
    /// Rates from a number of paying customers on: sorted by it, each number once.
    pub tiers: Vec<RateTier>,
    /// Rates of products and prices.
    pub products: Vec<ProductRate>,
    /// For how long.
    pub duration: CommissionDuration,
    /// The most that one sale earns, in minor units of the program's currency.
    pub max_commission: Option<i64>,
    /// The recruiter's share of the same sale.
    pub second_tier: BasisPoints,
    /// What a lead earns, in minor units of the program's currency; zero for nothing.
    pub lead_bounty: i64,
    /// For how many days a visit or a lead binds (1 to 365).
    pub cookie_days: u16,
    /// For how many days a commission waits for refunds (0 to 365).
    pub hold_days: u16,
}

/// A campaign. Which one takes partners who name none, the program says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// Its id.
    pub id: CampaignId,
    /// Whose program it is of.
    pub account: AccountId,
    /// What people call it; unique among the program's campaigns, whatever the case.
    pub name: String,
    /// Who may see it.
    pub visibility: Visibility,
    /// Whether who joins is active at once.
    pub auto_approve: bool,
    /// What it pays.
    pub terms: CommissionTerms,
    /// Since when it takes no new partners; it goes on paying those that it has.
    pub archived_at: Option<Timestamp>,
    /// Grows with each change.
    pub rev: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}
