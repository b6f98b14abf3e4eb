//! A campaign's commission in words.

use std::collections::BTreeMap;

use schema_derive::answer;

use super::days_text;
use crate::dashboard::kit::money::{Money, percent_text};

/// A campaign of the API.
#[answer]
pub struct Campaign {
    pub id: String,
    pub name: String,
    pub is_default: bool,
    pub visibility: String,
    pub auto_approve: bool,
    pub commission_type: String,
    pub commission_bps: i64,
    pub commission_flat_cents: i64,
    pub commission_duration: String,
    pub recurring_months: Option<i64>,
    pub max_commission_cents: Option<i64>,
    pub tiers: Vec<CampaignTier>,
    pub product_rates: Vec<ProductRate>,
    pub second_tier_bps: i64,
    pub lead_bounty_cents: i64,
    pub cookie_days: i64,
    pub hold_days: i64,
    pub archived_at: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    /// Only in lists.
    pub affiliate_count: Option<u64>,
}

/// A rate from a number of paying customers on.
#[answer]
pub struct CampaignTier {
    pub min_paid_customers: i64,
    pub commission_bps: i64,
    pub commission_flat_cents: i64,
}

/// A rate of one product or price.
#[answer]
pub struct ProductRate {
    pub product_id: String,
    pub price_id: Option<String>,
    pub commission_type: String,
    pub commission_bps: i64,
    pub commission_flat_cents: i64,
    pub label: Option<String>,
}

/// The default campaign and all others, by id.
pub type CampaignsById = BTreeMap<String, Campaign>;

impl Campaign {
    /// The terms that a form for a new campaign begins with.
    pub fn initial() -> Self {
        Self {
            commission_type: "percent".into(),
            commission_bps: 2_000,
            commission_duration: "recurring".into(),
            recurring_months: Some(12),
            hold_days: 30,
            cookie_days: 60,
            ..Self::default()
        }
    }

    /// The rate in a few words: `20 % of every payment for 12 months`.
    pub fn short_terms(&self, currency: &str) -> String {
        let rate = rate_text(&self.commission_type, self.commission_bps, self.commission_flat_cents, currency);
        let of = if self.commission_type == "flat" { "for" } else { "of" };
        match (self.commission_duration.as_str(), self.recurring_months) {
            ("once", _) => format!("{rate} {of} the first payment"),
            (_, None) => format!("{rate} {of} every payment"),
            (_, Some(1)) => format!("{rate} {of} every payment for 1 month"),
            (_, Some(months)) => format!("{rate} {of} every payment for {months} months"),
        }
    }

    /// All terms, one sentence each.
    pub fn sentences(&self, currency: &str) -> Vec<String> {
        let money = |amount| Money { amount, currency }.text();
        let rate = |kind: &str, bps, flat| rate_text(kind, bps, flat, currency);
        let mut sentences = vec![self.main_sentence(currency)];
        for tier in &self.tiers {
            let text = rate(&self.commission_type, tier.commission_bps, tier.commission_flat_cents);
            sentences.push(match tier.min_paid_customers {
                1 => format!("From the first paying customer: {text}."),
                count => format!("From {count} paying customers: {text}."),
            });
        }
        for product in &self.product_rates {
            let text = rate(&product.commission_type, product.commission_bps, product.commission_flat_cents);
            sentences.push(format!("{}: {text}.", product.name()));
        }
        if let Some(max) = self.max_commission_cents {
            sentences.push(format!("At most {} for one sale.", money(max)));
        }
        if self.second_tier_bps > 0 {
            let share = percent_text(self.second_tier_bps);
            sentences.push(format!("The partner's recruiter earns an additional {share} of the same sale."));
        }
        if self.lead_bounty_cents > 0 {
            sentences
                .push(format!("Each new lead earns {}, whether or not it pays later.", money(self.lead_bounty_cents)));
        }
        sentences.push(match self.hold_days {
            0 => "Nothing is held: a commission is earned at once.".into(),
            days => format!("A commission is held for {} in case of a refund, then it is earned.", days_text(days)),
        });
        sentences.push(format!("A visit is credited to the partner for {}.", days_text(self.cookie_days)));
        sentences
    }

    /// The main rate: `A partner earns 20 % of each payment, without tax, for 12 months after the first one.`
    fn main_sentence(&self, currency: &str) -> String {
        let flat = self.commission_type == "flat";
        let rate = rate_text(&self.commission_type, self.commission_bps, self.commission_flat_cents, currency);
        let of = if flat { "for" } else { "of" };
        let tax = if flat { "" } else { ", without tax" };
        match (self.commission_duration.as_str(), self.recurring_months) {
            ("once", _) => format!("A partner earns {rate} {of} a customer's first payment{tax}."),
            (_, None) => format!("A partner earns {rate} {of} every payment of a customer{tax}, with no time limit."),
            (_, Some(months)) => {
                let plural = if months == 1 { "" } else { "s" };
                format!(
                    "A partner earns {rate} {of} every payment of a customer{tax}, for {months} month{plural} after the \
                     first one."
                )
            }
        }
    }
}

impl ProductRate {
    /// The label, or else the ids.
    pub fn name(&self) -> String {
        match (&self.label, &self.price_id) {
            (Some(label), _) if !label.is_empty() => label.clone(),
            (_, Some(price)) => format!("Price {price} of product {}", self.product_id),
            _ => format!("Product {}", self.product_id),
        }
    }
}

/// A rate in words.
pub fn rate_text(kind: &str, basis_points: i64, flat: i64, currency: &str) -> String {
    match kind {
        "flat" => Money { amount: flat, currency }.text(),
        "none" => "no commission".into(),
        _ => percent_text(basis_points),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_written_in_words() {
        let campaign = Campaign {
            commission_type: "percent".into(),
            commission_bps: 2_000,
            commission_duration: "recurring".into(),
            recurring_months: Some(12),
            max_commission_cents: Some(50_000),
            tiers: vec![CampaignTier { min_paid_customers: 21, commission_bps: 2_500, commission_flat_cents: 0 }],
            product_rates: vec![ProductRate {
                product_id: "prod_1".into(),
                commission_type: "none".into(),
                ..ProductRate::default()
            }],
            second_tier_bps: 500,
            lead_bounty_cents: 250,
            hold_days: 30,
            cookie_days: 60,
            ..Campaign::default()
        };
        let expected = [
            "A partner earns 20 % of every payment of a customer, without tax, for 12 months after the first one.",
            "From 21 paying customers: 25 %.",
            "Product prod_1: no commission.",
            "At most 500.00 USD for one sale.",
            "The partner's recruiter earns an additional 5 % of the same sale.",
            "Each new lead earns 2.50 USD, whether or not it pays later.",
            "A commission is held for 30 days in case of a refund, then it is earned.",
            "A visit is credited to the partner for 60 days.",
        ];
        let plain = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(campaign.sentences("usd").into_iter().map(plain).collect::<Vec<_>>(), expected);
        assert_eq!(plain(campaign.short_terms("usd")), "20 % of every payment for 12 months");
    }
}
