//! Campaign: the commission terms for partners: rates, duration, cap and hold period.

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};

use super::money::BasisPoints;
use crate::id::{AccountId, CampaignId};

/// The commission of one sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionRate {
    /// A share of the sale's base.
    Percent(BasisPoints),
    /// A fixed amount in minor units of the program's currency; not negative.
    Flat(i64),
}

/// A rate that applies from a number of paying customers on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateTier {
    /// The minimum number of paying customers, including the one that converts with the sale.
    pub min_paid_customers: u32,
    pub rate: CommissionRate,
    /// As [`CommissionTerms::unused`].
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub unused: i64,
}

/// A rate for one product or one price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductRate {
    /// The product's id at the payment processor.
    pub product: String,
    /// The id of one of its prices; `None` applies to all of them. A rate of a price takes precedence over one of its
    /// product.
    pub price: Option<String>,
    /// `None` excludes the product: it earns nothing.
    pub rate: Option<CommissionRate>,
    /// As [`CommissionTerms::unused`].
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub unused: i64,
    /// Display name.
    pub label: Option<String>,
}

/// How long a customer's sales earn commissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionDuration {
    /// The first paid invoice only.
    Once,
    /// Every paid invoice in this many calendar months after the first; without limit if `None`.
    Recurring(Option<u16>),
}

words! {
    /// Visibility of a campaign: decides who can see and join it.
    Visibility {
        /// Everyone, in the public list of campaigns.
        Public = "public",
        /// Partners whom the owner assigns.
        Private = "private",
        /// Everyone with its link.
        Unlisted = "unlisted",
    }
}

/// The part of a campaign that commissions are computed from. It is copied onto each commission line, because new rates
/// apply to new commissions only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommissionTerms {
    /// The rate if neither a tier nor a product rate applies.
    pub base: CommissionRate,
    /// The value for the other kind of rate, stored so that changing the kind restores it. Minor units beside a percent
    /// rate, basis points beside a flat rate; zero if not set.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub unused: i64,
    /// Tiers in ascending order of `min_paid_customers`, without duplicates.
    pub tiers: Vec<RateTier>,
    pub products: Vec<ProductRate>,
    pub duration: CommissionDuration,
    /// The cap of one sale's commission, in minor units of the program's currency.
    pub max_commission: Option<i64>,
    /// The recruiter's share of a recruited partner's sale.
    pub second_tier: BasisPoints,
    /// The commission of a lead, in minor units of the program's currency; zero for none.
    pub lead_bounty: i64,
    /// Number of days for which a visit or a lead is attributed to the partner (1 to 365).
    pub cookie_days: u16,
    /// Number of days of the refund hold of a commission (0 to 365).
    pub hold_days: u16,
}

/// A campaign. The program names the default campaign, which partners join if they name none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    pub id: CampaignId,
    pub account: AccountId,
    /// Display name; unique among the program's campaigns without regard to case.
    pub name: String,
    pub visibility: Visibility,
    /// True if partners who join are approved at once.
    pub auto_approve: bool,
    pub terms: CommissionTerms,
    /// Since this time no new partner can join. Existing partners still earn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Revision, incremented by every change.
    pub rev: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
