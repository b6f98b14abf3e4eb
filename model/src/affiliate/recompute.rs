//! Recomputes the ledger lines of one invoice: a pure function of all facts about it.
//!
//! ```text
//! sale, refunds, disputes ─┐
//! program, referral        ├─► recompute ─► worth of the sale (conversion and revenue of the referral)
//! seller, recruiter        │                lines: new and changed ones, each with its changes
//! stored lines ────────────┘                adjustments of lines that are already paid
//! ```
//!
//! The function compares states, not events, and is idempotent: a second call with the applied result returns no
//! updates. Facts about an invoice may arrive in any order and repeatedly; if the newest of each is retained, the final
//! lines are the same.
//!
//! # Facts that are frozen at the first write
//!
//! A line is written once from the facts known at that time. Afterwards it depends only on its own snapshot and on
//! refunds, disputes and the exclusion flag. Frozen are:
//!
//! - the sale: base, amount paid, tax, currency and items (a paid invoice does not change);
//! - the terms: campaign, rates, override, cap, hold, and the number of paying customers and therefore the tier;
//! - the decision that the invoice earns a commission: `once` (the first invoice), the month of conversion, the
//!   partner's accrual status;
//! - the recruiter and its share: the second line is written together with the first one, or never.
//!
//! Refunds, disputes, the exclusion flag, the charge's id and the bar of the referral are not frozen. The order of
//! arrival therefore matters only for facts that span several invoices or referrals.
//!
//! The decision for no commission is frozen too if it follows from the terms or the partner's status at that time
//! ([`NoCommission::is_permanent`]): new terms apply to new sales only. A decision that follows from the referral or
//! the exclusion flag uses their current state, and an unpaid invoice can still be paid later.
//!
//! # Lines that cannot be changed
//!
//! The amount and status of a paid line, or of a line in an approved payout, are not changed; adjustments are written
//! instead. They are computed as a state too: the adjustments of a line add up to the negative of what the partner owes
//! for it.
//!
//! - The line was paid too much (a refund, a dispute): the partner owes that amount under [`AfterPayout::Offset`],
//!   without what the program absorbed under [`AfterPayout::Absorb`]
//!   ([`RefundSplit`](super::commission::RefundSplit)).
//! - The line was paid too little, because a refund that had reduced it before the payout failed: the partner gets the
//!   difference, whatever the setting.
//!
//! If a failed payout releases the line, the line takes the change itself and its adjustments are undone. A line in a
//! draft payout leaves the draft with the first change of its amount.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

mod bounty;
// A table with one case per line.
#[cfg(test)]
#[rustfmt::skip]
mod cases;
mod initial_lines;
mod inputs;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenario;
mod update_lines;

pub use self::bounty::{LeadInput, bounty_line};
pub use self::initial_lines::NoCommission;
pub use self::update_lines::update_bounty;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::arithmetic::{ArithmeticError, base, rate::RateOffer, refund};
use super::commission::{Commission, CommissionLevel, CommissionState, ReversalReason};
use super::money::Currency;
use super::program::AfterPayout;
use super::sale::{Sale, SaleReturns};
use crate::id::{AccountId, CampaignId, CommissionId, PartnerId, PayoutId, ReferralId};

/// The program's settings that the computation depends on.
#[derive(Debug, Clone, Copy)]
pub struct ProgramRules {
    pub account: AccountId,
    /// The currency of flat amounts and caps.
    pub currency: Currency,
    /// True if a suspended partner still earns commissions from existing customers.
    pub suspended_accrue: bool,
    /// The effect of a refund on a commission that is already paid out.
    pub after_payout: AfterPayout,
}

/// Facts about the invoice.
#[derive(Debug, Clone, Copy)]
pub struct InvoiceInput<'a> {
    pub sale: &'a Sale,
    /// The charge's id at the payment processor; `None` until it is known.
    pub charge: Option<&'a str>,
    /// Refunds and disputes.
    pub returned: &'a SaleReturns,
    /// True if the exclusion flag applies to the sale: the invoice, its checkout session or its charge carries it, or
    /// the customer or subscription carried it from its creation until the payment, or before the first line.
    pub is_excluded: bool,
    /// The stored reason for no commission, if it is permanent.
    pub no_commission: Option<NoCommission>,
}

/// The reason why a referral no longer earns commissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferralBar {
    /// Blocked: a self-referral or an existing customer. The referral still converts.
    Blocked,
    Rejected,
    /// Expired without a purchase.
    Lapsed,
}

impl ReferralBar {
    /// The reversal reason of its open commissions.
    pub fn reason(self) -> ReversalReason {
        match self {
            Self::Blocked => ReversalReason::Blocked,
            Self::Rejected => ReversalReason::Fraud,
            Self::Lapsed => ReversalReason::Expired,
        }
    }
}

/// Facts about the referral of the invoice's customer.
#[derive(Debug, Clone, Copy)]
pub struct CustomerInput<'a> {
    pub referral: ReferralId,
    /// Invoices paid before this time do not count for the partner.
    pub counts_from: Timestamp,
    /// Time of the first paid invoice, if one is known.
    pub converted_at: Option<Timestamp>,
    pub bar: Option<ReferralBar>,
    /// True if the referral is held for review.
    pub is_under_review: bool,
    /// The first invoice that wrote a line, even if that line was reversed since. With the duration `once`, no other
    /// invoice earns.
    pub first_earning: Option<&'a str>,
}

/// Accrual status of a partner: decides whether new sales earn commissions. Derived from
/// [`super::partner::PartnerStatus`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccrualStatus {
    /// New sales earn commissions.
    Active,
    /// New sales earn commissions if the program's setting allows it.
    Suspended,
    /// New sales earn nothing: the partner is not approved, or was deleted.
    Outside,
}

/// Facts about the partner who referred the customer.
#[derive(Debug, Clone, Copy)]
pub struct SellerInput<'a> {
    pub partner: PartnerId,
    pub accrual: AccrualStatus,
    pub campaign: CampaignId,
    pub campaign_rev: u64,
    /// The campaign's terms, the partner's override and its number of paying customers. That number counts distinct
    /// referrals that have converted, including the one that converts by this invoice, without blocked, rejected and
    /// refunded ones.
    pub offer: RateOffer<'a>,
}

/// Facts about the partner who recruited the seller.
#[derive(Debug, Clone, Copy)]
pub struct RecruiterInput {
    pub partner: PartnerId,
    pub is_active: bool,
    /// True if the recruiter is the customer, by [`super::arithmetic::person::is_same_person`] for any of its
    /// addresses.
    pub is_customer: bool,
}

/// A stored ledger line.
#[derive(Debug, Clone, Copy)]
pub struct LedgerLine<'a> {
    pub line: &'a Commission,
    /// True if its payout is approved, so that the line cannot be removed from it.
    pub is_locked: bool,
    /// Sum of its adjustments in minor units: negative if too much was paid, positive if too little was.
    pub adjusted: i64,
    /// True if its partner was deleted, so that the line is not reopened.
    pub is_orphan: bool,
}

/// All facts about one invoice.
#[derive(Debug, Clone, Copy)]
pub struct RecomputeFacts<'a> {
    pub rules: ProgramRules,
    pub invoice: InvoiceInput<'a>,
    pub customer: CustomerInput<'a>,
    /// The partner who referred the customer.
    pub seller: SellerInput<'a>,
    /// The partner who recruited the seller.
    pub recruiter: Option<RecruiterInput>,
    /// The invoice's stored lines.
    pub lines: &'a [LedgerLine<'a>],
    /// Ids for new lines: the seller's, the recruiter's, and the one with the seller's flat amounts in another
    /// currency.
    pub ids: [CommissionId; 3],
    /// Timestamp for new and changed lines.
    pub now: Timestamp,
}

/// The effect of a paid invoice on its referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleWorth {
    /// The commissionable base in minor units. The first invoice with a base converts the referral.
    pub base: i64,
    /// The base after refunds: the referral's revenue.
    pub remaining: i64,
    /// True if everything was refunded or the funds are disputed.
    pub is_gone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    Created,
    /// Its hold ended.
    Earned,
    Reversed(ReversalReason),
    /// It was reversed because of a refund, for example, and is now reversed because of a dispute.
    ReasonChanged(ReversalReason),
    /// It is pending again, because the refund that reversed it failed or the exclusion ended.
    Reopened,
    /// Its amount, or the remaining amount of its sale, changed.
    Amount {
        /// Former amount in minor units.
        from: i64,
        /// New amount in minor units.
        to: i64,
    },
    /// It was frozen, or its freeze reasons changed.
    Frozen,
    /// All its freeze reasons ended.
    Thawed,
    /// It was removed from a draft payout, whose sum must be updated.
    LeftPayout(PayoutId),
    /// The charge's id became known.
    Charge,
    /// Refunds after the payout are divided in another way between the program and the partner.
    RefundSplit,
}

/// A line to write, new or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineUpdate {
    pub line: Commission,
    /// The changes in order; at least one.
    pub changes: Vec<LineChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdjustmentDue {
    pub line: CommissionId,
    pub partner: PartnerId,
    /// Minor units: negative after a refund, positive when that is undone, or when a refund from before the payout
    /// failed.
    pub amount: i64,
    pub currency: Currency,
}

/// The writes for an invoice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecomputeOutcome {
    /// Effect on the referral; `None` if nothing was paid, or if it was paid before the referral counts.
    pub worth: Option<SaleWorth>,
    pub updates: Vec<LineUpdate>,
    pub adjustments: Vec<AdjustmentDue>,
    /// The reason why the invoice has no line.
    pub no_commission: Option<NoCommission>,
}

/// Computes the lines and adjustments of one invoice.
///
/// # Errors
/// [`ArithmeticError`] if the processor's or the campaign's numbers cannot be computed with. Nothing may be written
/// then.
pub fn recompute(known: &RecomputeFacts<'_>) -> Result<RecomputeOutcome, ArithmeticError> {
    let mut outcome = RecomputeOutcome { worth: sale_worth(known)?, ..RecomputeOutcome::default() };
    if known.lines.is_empty() && known.invoice.no_commission.is_some() {
        outcome.no_commission = known.invoice.no_commission;
        return Ok(outcome);
    }
    if known.lines.is_empty() {
        match initial_lines::initial_lines(known, outcome.worth)? {
            Ok(lines) => {
                // A new line takes current facts into account, as a refund can arrive before the invoice.
                let ledger_lines: Vec<_> = lines.iter().map(LedgerLine::new).collect();
                for line in &ledger_lines {
                    outcome.updates.push(initial_lines::write_line(known, &ledger_lines, line)?);
                }
            }
            Err(nothing) => outcome.no_commission = Some(nothing),
        }
        return Ok(outcome);
    }
    for ledger_line in known.lines {
        let settled = update_lines::update_line(known, known.lines, ledger_line)?;
        outcome.updates.extend(settled.written);
        outcome.adjustments.extend(settled.adjustment);
    }
    Ok(outcome)
}

impl<'a> LedgerLine<'a> {
    /// A line without adjustments that is in no approved payout.
    pub fn new(line: &'a Commission) -> Self {
        Self { line, is_locked: false, adjusted: 0, is_orphan: false }
    }

    /// True if the line can no longer be changed.
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

/// Computes the effect of the invoice on its referral.
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

/// The seller's line among an invoice's lines.
fn sellers_line<'l, 'a>(lines: &'l [LedgerLine<'a>]) -> Option<&'l LedgerLine<'a>> {
    lines.iter().find(|ledger_line| ledger_line.line.level() == CommissionLevel::One)
}
