//! Test fixture: all facts about one invoice with defaults, and its ledger as text.
//!
//! By default the partner Ada referred a customer who pays 49.00 USD without tax on 1 March. Her campaign pays 20 %
//! without time limit after a hold of 30 days. The current time is one hour after the payment.

#![allow(clippy::arithmetic_side_effects, reason = "a test that is wrong may panic")]

use jiff::Timestamp;

use super::super::arithmetic::ArithmeticError;
use super::super::arithmetic::rate::RateOffer;
use super::super::campaign::{CommissionDuration, CommissionRate, CommissionTerms, ProductRate, RateTier};
use super::super::commission::{Commission, CommissionState};
use super::super::money::{BasisPoints, Currency};
use super::super::program::AfterPayout;
use super::super::sale::{DisputeState, Sale, SaleLine, SaleReturns};
use super::{
    AccrualStatus, CustomerInput, InvoiceInput, LedgerLine, LineChange, NoCommission, ProgramRules, RecomputeFacts,
    RecomputeOutcome, RecruiterInput, ReferralBar, SellerInput, recompute,
};
use crate::id::{AccountId, CampaignId, CommissionId, PartnerId, PayoutId, ReferralId};

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(super) fn points(points: u16) -> BasisPoints {
    points.try_into().unwrap()
}

pub(super) fn currency(code: &str) -> Currency {
    code.parse().unwrap()
}

pub(super) fn percent(percent: u16) -> CommissionRate {
    CommissionRate::Percent(points(percent * 100))
}

pub(super) fn tier(min_paid_customers: u32, rate: CommissionRate) -> RateTier {
    RateTier { min_paid_customers, rate, unused: 0 }
}

/// A rate of a product (`prod_…`) or of a price (`price_…`).
pub(super) fn product(id: &str, rate: impl Into<Option<CommissionRate>>) -> ProductRate {
    let price = id.starts_with("price_").then(|| id.to_owned());
    ProductRate { product: id.replace("price_", "prod_"), price, rate: rate.into(), unused: 0, label: None }
}

/// An invoice line with product `prod_NAME` and price `price_NAME`.
pub(super) fn sold(name: &str, amount: i64) -> SaleLine {
    let (price, product) = (Some(format!("price_{name}")), Some(format!("prod_{name}")));
    SaleLine { amount, price, product, ..SaleLine::default() }
}

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) sale: Sale,
    pub(super) charge: Option<String>,
    pub(super) returned: SaleReturns,
    pub(super) is_excluded: bool,
    pub(super) nothing: Option<NoCommission>,
    pub(super) counts_from: Timestamp,
    pub(super) converted_at: Option<Timestamp>,
    pub(super) bar: Option<ReferralBar>,
    pub(super) is_under_review: bool,
    pub(super) first_earning: Option<String>,
    pub(super) accrual: AccrualStatus,
    pub(super) terms: CommissionTerms,
    pub(super) commission_override: Option<BasisPoints>,
    pub(super) paying_customers: u32,
    pub(super) recruiter: Option<RecruiterInput>,
    pub(super) currency: Currency,
    pub(super) suspended_accrue: bool,
    pub(super) after_payout: AfterPayout,
    pub(super) lines: Vec<Commission>,
    pub(super) is_locked: bool,
    pub(super) is_orphan: bool,
    /// Sum of the adjustments of each line.
    pub(super) adjusted: [i64; 3],
    pub(super) now: Timestamp,
}

pub(super) const ADA: u128 = 1;
pub(super) const RECRUITER: u128 = 2;

pub(super) fn partner(number: u128) -> PartnerId {
    PartnerId::new(Timestamp::UNIX_EPOCH, number)
}

pub(super) fn payout() -> PayoutId {
    PayoutId::new(Timestamp::UNIX_EPOCH, 7)
}

impl Scenario {
    pub(super) fn new() -> Self {
        let paid_at = at("2026-03-01T00:00:00Z");
        Self {
            sale: Sale {
                invoice: "in_1".to_owned(),
                currency: currency("usd"),
                total: 4_900,
                total_excluding_tax: None,
                tax: 0,
                amount_paid: 4_900,
                paid_at,
                lines: vec![sold("a", 4_900)],
            },
            charge: None,
            returned: SaleReturns::default(),
            is_excluded: false,
            nothing: None,
            counts_from: Timestamp::UNIX_EPOCH,
            converted_at: None,
            bar: None,
            is_under_review: false,
            first_earning: None,
            accrual: AccrualStatus::Active,
            terms: CommissionTerms {
                base: percent(20),
                unused: 0,
                tiers: Vec::new(),
                products: Vec::new(),
                duration: CommissionDuration::Recurring(None),
                max_commission: None,
                second_tier: points(0),
                lead_bounty: 0,
                cookie_days: 60,
                hold_days: 30,
            },
            commission_override: None,
            paying_customers: 1,
            recruiter: None,
            currency: currency("usd"),
            suspended_accrue: true,
            after_payout: AfterPayout::Absorb,
            lines: Vec::new(),
            is_locked: false,
            is_orphan: false,
            adjusted: [0; 3],
            now: at("2026-03-01T01:00:00Z"),
        }
    }

    /// Makes the sale one line with this amount and currency, paid in full without tax.
    pub(super) fn paid(&mut self, amount: i64, code: &str) -> &mut Self {
        self.sale.currency = currency(code);
        (self.sale.total, self.sale.amount_paid) = (amount, amount);
        self.sale.lines = vec![sold("a", amount)];
        self
    }

    /// Makes the sale these products and amounts, paid in full.
    pub(super) fn sold(&mut self, lines: &[(&str, i64)]) -> &mut Self {
        self.sale.lines = lines.iter().map(|(name, amount)| sold(name, *amount)).collect();
        let total = lines.iter().map(|(_, amount)| amount).sum();
        (self.sale.total, self.sale.amount_paid) = (total, total);
        self
    }

    /// Adds a recruiter with a share in basis points.
    pub(super) fn recruited(&mut self, share: u16) -> &mut Self {
        self.terms.second_tier = points(share);
        self.recruiter = Some(RecruiterInput { partner: partner(RECRUITER), is_active: true, is_customer: false });
        self
    }

    pub(super) fn refunded(&mut self, amount: i64) -> &mut Self {
        self.returned.refunded = amount;
        if amount < self.sale.amount_paid {
            self.returned.refunded_in_part = amount;
        }
        self
    }

    pub(super) fn disputed(&mut self, dispute: DisputeState) -> &mut Self {
        self.returned.disputes.insert("dp_1".to_owned(), dispute);
        self
    }

    /// Applies a transition, which must succeed, to each line.
    pub(super) fn each<E: std::fmt::Debug>(
        &mut self,
        mut change: impl FnMut(&mut Commission, Timestamp) -> Result<(), E>,
    ) -> &mut Self {
        let now = self.now;
        self.lines.iter_mut().for_each(|line| change(line, now).unwrap());
        self
    }

    /// The owner reinstates all lines.
    pub(super) fn reinstate(&mut self) -> &mut Self {
        let returned = self.returned.clone();
        self.each(|line, now| line.reinstate(&returned, now))
    }

    /// Moves the time to the end of the hold and earns all lines.
    pub(super) fn earn(&mut self) -> &mut Self {
        self.now = at("2026-04-15T00:00:00Z");
        self.each(Commission::earn)
    }

    /// Adds all lines to a draft payout.
    pub(super) fn draft(&mut self) -> &mut Self {
        self.earn().each(|line, now| line.enter_payout(payout(), now))
    }

    /// Approves the payout.
    pub(super) fn approve(&mut self) -> &mut Self {
        self.draft().is_locked = true;
        self
    }

    /// Pays the payout.
    pub(super) fn pay(&mut self) -> &mut Self {
        self.approve().each(|line, now| line.pay(payout(), now))
    }

    /// Recomputes without applying the result.
    pub(super) fn ask(&self) -> Result<RecomputeOutcome, ArithmeticError> {
        let ledger_lines: Vec<_> = self
            .lines
            .iter()
            .zip(self.adjusted)
            .map(|(line, adjusted)| LedgerLine { line, is_locked: self.is_locked, adjusted, is_orphan: self.is_orphan })
            .collect();
        recompute(&RecomputeFacts {
            rules: ProgramRules {
                account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
                currency: self.currency,
                suspended_accrue: self.suspended_accrue,
                after_payout: self.after_payout,
            },
            invoice: InvoiceInput {
                sale: &self.sale,
                charge: self.charge.as_deref(),
                returned: &self.returned,
                is_excluded: self.is_excluded,
                no_commission: self.nothing,
            },
            customer: self.customer(),
            seller: SellerInput {
                partner: partner(ADA),
                accrual: self.accrual,
                campaign: CampaignId::new(Timestamp::UNIX_EPOCH, 1),
                campaign_rev: 3,
                offer: RateOffer {
                    terms: &self.terms,
                    commission_override: self.commission_override,
                    paying_customers: self.paying_customers,
                },
            },
            recruiter: self.recruiter,
            lines: &ledger_lines,
            ids: [1, 2, 3].map(|number| CommissionId::new(Timestamp::UNIX_EPOCH, number)),
            now: self.now,
        })
    }

    pub(super) fn customer(&self) -> CustomerInput<'_> {
        CustomerInput {
            referral: ReferralId::new(Timestamp::UNIX_EPOCH, 1),
            counts_from: self.counts_from,
            converted_at: self.converted_at,
            bar: self.bar,
            is_under_review: self.is_under_review,
            first_earning: self.first_earning.as_deref(),
        }
    }

    /// Applies the result of a recomputation, and checks that a second one changes nothing. Returns the changes of all
    /// lines.
    pub(super) fn run(&mut self) -> Vec<LineChange> {
        let outcome = self.ask().unwrap();
        self.nothing = outcome.no_commission.filter(|nothing| nothing.is_permanent());
        let steps = outcome.updates.iter().flat_map(|written| written.changes.clone()).collect();
        for written in outcome.updates {
            assert!(!written.changes.is_empty());
            match self.lines.iter_mut().find(|line| line.id == written.line.id) {
                Some(line) => {
                    assert!(line.rev < written.line.rev, "a change increments rev");
                    *line = written.line;
                }
                None => self.lines.push(written.line),
            }
        }
        for adjustment in outcome.adjustments {
            let index = self.lines.iter().position(|line| line.id == adjustment.line).unwrap();
            self.adjusted[index] += adjustment.amount;
        }
        let again = self.ask().unwrap();
        assert!(
            again.updates.is_empty() && again.adjustments.is_empty(),
            "a second recomputation changes something: {again:?}"
        );
        steps
    }

    /// Applies a recomputation and allows further changes to be chained.
    pub(super) fn then(&mut self) -> &mut Self {
        self.run();
        self
    }

    /// The ledger as text: `1: 980 usd of 4900, pending | …`, or the reason why it is empty.
    pub(super) fn ledger(&self) -> String {
        let lines = self.lines.iter().zip(self.adjusted).map(|(line, adjusted)| {
            let Commission { amount, currency, status, .. } = line;
            let state = match status {
                CommissionState::Reversed { reason, .. } => format!("reversed {}", reason.word()),
                CommissionState::InPayout { .. } => "in payout".to_owned(),
                status if status.frozen().is_frozen() => format!("{} frozen", status.word()),
                status => status.word().to_owned(),
            };
            let owed = if adjusted == 0 { String::new() } else { format!(" {adjusted:+}") };
            let (level, sale) = (line.level().number(), line.sale_amount());
            format!("{level}: {amount} {currency} of {sale}, {state}{owed}")
        });
        let lines: Vec<_> = lines.collect();
        if lines.is_empty() {
            return match self.ask() {
                Ok(outcome) => format!("{:?}", outcome.no_commission.unwrap()),
                Err(error) => error.to_string(),
            };
        }
        lines.join(" | ")
    }
}
