//! One invoice, and the lines of the ledger that it must have: a pure function of everything known.
//!
//! ```text
//! sale, what was returned ─┐
//! program, referral        ├─► recompute ─► worth of the sale (the referral converts, its revenue)
//! seller, recruiter        │                lines: new and changed ones, with the steps that each took
//! lines that stand ────────┘                adjustments of what is paid already
//! ```
//!
//! It looks at states, never at changes: whoever calls it a second time with what it said gets nothing. In whatever order
//! and however often the facts about an invoice arrive, newest ones winning, the lines are the same in the end.
//!
//! # What is taken at the first write, and frozen
//!
//! A line is written once, by what is known then, and from then on depends on its own snapshot and on what became of the
//! money alone. Frozen are:
//!
//! - the sale itself: base, amount paid, tax, currency, and what was sold (a paid invoice does not change);
//! - the terms: campaign, rates, the partner's own rate, cap, hold; the number of paying customers, and so the tier;
//! - that it earns at all: the exclusion flag, `once` (which invoice was first), the month in which the customer converted,
//!   that the partner accrues;
//! - the recruiter and its share: a second line is written together with the first one, or never.
//!
//! Not frozen are refunds, the dispute, the charge's id, and what bars the referral. So the order of arrival matters for
//! facts that span invoices or referrals, and for nothing else.
//!
//! That it earns nothing is frozen as well, where the terms of that time or the partner's standing say so
//! ([`Nothing::is_for_good`]): new terms are for new sales, whatever is heard of an old one later. What the referral or the
//! flag bars is as those are by now, and what is no sale yet may become one.
//!
//! # Lines that are out of reach
//!
//! A line in an approved payout, or paid, stays as it is. With [`AfterPayout::Offset`] what came back is owed by an
//! adjustment instead, and that is a state too: the adjustments of a line come to what it is too much. A line that its
//! payout set free again (it failed) takes the change itself, and its adjustments are undone. A line in a draft leaves it
//! with the first change of its amount.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

mod bounty;
// A table: one line a case.
#[cfg(test)]
#[rustfmt::skip]
mod cases;
mod first;
mod nouns;
#[cfg(test)]
mod properties;
mod settle;
#[cfg(test)]
mod world;

pub use self::bounty::{LeadInput, bounty_line};
pub use self::first::NoCommission;
pub use self::settle::update_bounty;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::arithmetic::{ArithmeticError, base, rate::RateOffer, refund};
use super::commission::{Commission, CommissionLevel, CommissionState, ReversalReason};
use super::money::Currency;
use super::program::AfterPayout;
use super::sale::{Sale, SaleReturns};
use crate::id::{AccountId, CampaignId, CommissionId, PartnerId, PayoutId, ReferralId};

/// The program's settings that matter here.
#[derive(Debug, Clone, Copy)]
pub struct ProgramRules {
    /// Whose program it is.
    pub account: AccountId,
    /// The currency of fixed amounts and of caps.
    pub currency: Currency,
    /// Whether a suspended partner's customers go on earning.
    pub suspended_accrue: bool,
    /// What becomes of lines whose sale came back too late.
    pub after_payout: AfterPayout,
}

/// What is known of the invoice.
#[derive(Debug, Clone, Copy)]
pub struct InvoiceInput<'a> {
    /// The paid invoice.
    pub sale: &'a Sale,
    /// The processor's id of its charge, once it is known.
    pub charge: Option<&'a str>,
    /// What became of the money.
    pub returned: &'a SaleReturns,
    /// Whether the customer, the subscription, the invoice, the session or the charge carries the flag that excludes it.
    pub is_excluded: bool,
    /// Why it earns nothing, if that was said before and is for good.
    pub no_commission: Option<NoCommission>,
}

/// Why a referral earns nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferralBar {
    /// It is blocked: the partner's own self, or a customer who was there before. It still converts.
    Blocked,
    /// The owner rejected it.
    Rejected,
    /// It lapsed before anything was bought.
    Lapsed,
}

impl ReferralBar {
    /// Why its open lines are taken back.
    #[must_use]
    pub fn reason(self) -> ReversalReason {
        match self {
            Self::Blocked => ReversalReason::Blocked,
            Self::Rejected => ReversalReason::Fraud,
            Self::Lapsed => ReversalReason::Expired,
        }
    }
}

/// What is known of the referral that the invoice's customer is.
#[derive(Debug, Clone, Copy)]
pub struct CustomerInput<'a> {
    /// The referral.
    pub referral: ReferralId,
    /// From when on its invoices count: those paid before are none of the partner's.
    pub counts_from: Timestamp,
    /// When its first invoice was paid, if one was heard of.
    pub converted_at: Option<Timestamp>,
    /// Why it earns nothing.
    pub barred: Option<ReferralBar>,
    /// Whether the owner is to look at it first.
    pub is_under_review: bool,
    /// The first of its invoices that wrote a line, whatever became of that: with `once`, no other does.
    pub first_earning: Option<&'a str>,
}

/// Whether new sales earn a partner anything; a [`super::partner::PartnerStatus`] is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccrualStatus {
    /// They do.
    Active,
    /// They do if the program says so.
    Suspended,
    /// They do not: it is not a partner yet, or not any more (deleted).
    Outside,
}

/// The partner who brought the customer.
#[derive(Debug, Clone, Copy)]
pub struct SellerInput<'a> {
    /// The partner.
    pub partner: PartnerId,
    /// Whether it earns.
    pub standing: AccrualStatus,
    /// Its campaign.
    pub campaign: CampaignId,
    /// The campaign's `rev`.
    pub campaign_rev: u64,
    /// What it is offered: the campaign's terms, its own rate, and its paying customers. These are the distinct referrals
    /// that ever converted and are neither blocked, rejected nor refunded, and the one that converts by this invoice.
    pub offer: RateOffer<'a>,
}

/// The partner who recruited the seller.
#[derive(Debug, Clone, Copy)]
pub struct RecruiterInput {
    /// The partner.
    pub partner: PartnerId,
    /// Whether it is active.
    pub is_active: bool,
    /// Whether it is the customer itself: [`super::arithmetic::person::is_same_person`] for any of its addresses.
    pub is_customer: bool,
}

/// A line that stands in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct LedgerLine<'a> {
    /// The line.
    pub line: &'a Commission,
    /// Whether the payout that it is in, if it is in one, is approved: nothing takes it out of that.
    pub is_locked: bool,
    /// What its adjustments come to; not positive.
    pub adjusted: i64,
    /// Whether its partner was deleted: it is not opened again.
    pub is_orphan: bool,
}

/// Everything known about one invoice.
#[derive(Debug, Clone, Copy)]
pub struct RecomputeFacts<'a> {
    /// The program's settings.
    pub rules: ProgramRules,
    /// The invoice.
    pub invoice: InvoiceInput<'a>,
    /// The customer.
    pub customer: CustomerInput<'a>,
    /// The partner who brought it.
    pub seller: SellerInput<'a>,
    /// Who recruited that one.
    pub recruiter: Option<RecruiterInput>,
    /// The invoice's lines as they stand.
    pub lines: &'a [LedgerLine<'a>],
    /// Ids for new lines: the partner's, its recruiter's, and the partner's fixed amounts in another currency.
    pub ids: [CommissionId; 3],
    /// The time, for what is written.
    pub now: Timestamp,
}

/// What a paid invoice means for its referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleWorth {
    /// The commissionable base: it converts the referral, if nothing did before.
    pub base: i64,
    /// What is left of it after refunds: the referral's revenue.
    pub remaining: i64,
    /// Whether all of it is gone, by refunds or a dispute.
    pub is_gone: bool,
}

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// It was written.
    Created,
    /// Its hold ended.
    Earned,
    /// It was taken back.
    Reversed(ReversalReason),
    /// It was taken back for a refund, and now it is for a dispute.
    ReasonChanged(ReversalReason),
    /// The refund that it was taken back for failed: it waits again.
    Reopened,
    /// Its amount, or that of its sale, changed.
    Amount {
        /// What it was.
        from: i64,
        /// What it is.
        to: i64,
    },
    /// It may not earn for now, or for fewer or other reasons.
    Frozen,
    /// Nothing keeps it from earning any more.
    Thawed,
    /// It left the draft of a payout, which is to be summed up anew.
    LeftPayout(PayoutId),
    /// The id of its charge became known.
    Charge,
}

/// A line as it must stand, new or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineUpdate {
    /// The line.
    pub line: Commission,
    /// What happened to it, in that order: at least one thing.
    pub changes: Vec<LineChange>,
}

/// A correction of what a partner is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdjustmentDue {
    /// The line that it is for.
    pub line: CommissionId,
    /// Whose it is.
    pub partner: PartnerId,
    /// By so much: negative when money came back, positive when that is undone.
    pub amount: i64,
    /// In this currency.
    pub currency: Currency,
}

/// What must be written for an invoice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecomputeOutcome {
    /// What it means for its referral; `None` when nothing was paid, or before its time.
    pub worth: Option<SaleWorth>,
    /// Lines to write.
    pub updates: Vec<LineUpdate>,
    /// Corrections to write.
    pub adjustments: Vec<AdjustmentDue>,
    /// Why the invoice has no line.
    pub no_commission: Option<NoCommission>,
}

/// What must stand for one invoice.
///
/// # Errors
/// Figures from outside that nothing can be computed from: nothing is to be written then.
pub fn recompute(known: &RecomputeFacts<'_>) -> Result<RecomputeOutcome, ArithmeticError> {
    let mut outcome = RecomputeOutcome { worth: sale_worth(known)?, ..RecomputeOutcome::default() };
    if known.lines.is_empty() && known.invoice.no_commission.is_some() {
        outcome.no_commission = known.invoice.no_commission;
        return Ok(outcome);
    }
    if known.lines.is_empty() {
        match first::initial_lines(known, outcome.worth)? {
            Ok(lines) => {
                // Like any other line it follows what is known by now: the refund may have come before the invoice.
                let booked: Vec<_> = lines.iter().map(LedgerLine::new).collect();
                for line in &booked {
                    outcome.updates.push(first::write_line(known, &booked, line)?);
                }
            }
            Err(nothing) => outcome.no_commission = Some(nothing),
        }
        return Ok(outcome);
    }
    for booked in known.lines {
        let settled = settle::update_line(known, known.lines, booked)?;
        outcome.updates.extend(settled.written);
        outcome.adjustments.extend(settled.adjustment);
    }
    Ok(outcome)
}

impl<'a> LedgerLine<'a> {
    /// A line that nothing else is to be said of.
    #[must_use]
    pub fn new(line: &'a Commission) -> Self {
        Self { line, is_locked: false, adjusted: 0, is_orphan: false }
    }

    /// Whether it stays as it is, whatever happens to its sale.
    fn is_out_of_reach(&self) -> bool {
        match self.line.status {
            CommissionState::Paid { .. } => true,
            CommissionState::InPayout { .. } => self.is_locked,
            CommissionState::Pending { .. } | CommissionState::Earned { .. } | CommissionState::Reversed { .. } => {
                false
            }
        }
    }
}

/// What the invoice means for its referral.
fn sale_worth(known: &RecomputeFacts<'_>) -> Result<Option<SaleWorth>, ArithmeticError> {
    let InvoiceInput { sale, returned, .. } = known.invoice;
    if sale.paid_at < known.customer.counts_from {
        return Ok(None);
    }
    let Some(base) = base::commissionable_base(sale)? else { return Ok(None) };
    let remaining = refund::remaining_base(base, sale.amount_paid, returned.refunded)?;
    let is_gone = returned.refunded >= sale.amount_paid || returned.has_disputed_funds();
    Ok(Some(SaleWorth { base, remaining, is_gone }))
}

/// The line of the partner who sold, among an invoice's lines.
fn sellers_line<'l, 'a>(lines: &'l [LedgerLine<'a>]) -> Option<&'l LedgerLine<'a>> {
    lines.iter().find(|booked| booked.line.level() == CommissionLevel::One)
}
