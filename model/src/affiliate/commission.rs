//! Commission: one line of the affiliate ledger with its state machine and the calculation of its amount.
//!
//! ```text
//!            ┌──── earn ────► Earned ── enter_payout ─► InPayout ── pay ─► Paid
//! (written) ─► Pending          │  ◄──── leave_payout ────┘ ◄── leave_payout ─┘
//!            │    ▲             │
//!            │    └ reopen, ────┤ reinstate
//!            └── reverse ─────► Reversed
//! ```
//!
//! A line is reversed by a refund or dispute of its sale, by the owner (also with an exclusion flag), or because its
//! partner was deleted. A reversed line becomes pending again when the refund failed or the exclusion ended
//! ([`Commission::reopen`]), or when the owner reinstates it ([`Commission::reinstate`]). A [`Waiver`] records the
//! cause that the owner waived, so that the same cause does not reverse the line again.
//!
//! A line can be frozen during a bank's inquiry or the owner's review: a frozen line is not earned and enters no
//! payout. The approval of a payout is stored with the payout, not here. Before the approval
//! [`Commission::leave_payout`] may remove a line from it; afterwards only the payout's failure does.
//!
//! Each transition updates `rev` and `updated_at`, or returns a [`CommissionError`] and changes nothing.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

mod refund_split;
mod snapshot;
mod state;
#[cfg(test)]
mod transitions;
mod waiver;

pub use self::refund_split::RefundSplit;
pub use self::snapshot::{CapEffect, CommissionCalculation, CommissionCap, TermsSnapshot};
pub use self::state::{CommissionError, CommissionState, FreezeReasons, ReconciliationState, ReversalReason};
pub use self::waiver::Waiver;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::money::Currency;
use super::sale::SaleReturns;
use crate::id::{AccountId, CommissionId, PartnerId, PayoutId, ReferralId};

/// The payment processor is queried about a commission's charge this long before the commission is earned.
const RECONCILED_BEFORE: SignedDuration = SignedDuration::from_hours(24);

/// The recipient of a share of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionLevel {
    /// The partner who referred the customer.
    One,
    /// The recruiter of that partner.
    Two,
    /// The flat amounts of the partner who referred the customer, if the percent shares of the same sale are in another
    /// currency. A line has one currency.
    OneFixed,
}

impl CommissionLevel {
    /// The level in the API (`tier`).
    pub fn number(self) -> u8 {
        match self {
            Self::One | Self::OneFixed => 1,
            Self::Two => 2,
        }
    }
}

/// The cause of a commission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionOrigin {
    Sale(Box<SoldInvoice>),
    /// A lead, whether or not it ever pays. Only the referring partner gets it, once per referral.
    Bounty,
}

/// The share of an invoice that a commission is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoldInvoice {
    pub level: CommissionLevel,
    /// The invoice's id at the payment processor.
    pub invoice: String,
    /// The charge's id at the payment processor; `None` until it is known.
    pub charge: Option<String>,
    /// The commissionable base after refunds, in minor units of the sale's currency.
    pub amount: i64,
    pub calculation: CommissionCalculation,
    /// Refunds since the payout was approved.
    #[serde(default, skip_serializing_if = "RefundSplit::is_empty")]
    pub refund_split: RefundSplit,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commission {
    pub id: CommissionId,
    pub account: AccountId,
    pub partner: PartnerId,
    /// The referral of the customer or lead.
    pub referral: ReferralId,
    pub origin: CommissionOrigin,
    /// Minor units of `currency`: positive, also in a reversed line.
    pub amount: i64,
    pub currency: Currency,
    pub status: CommissionState,
    /// End of the hold period: the commission is earned then unless it is frozen or reversed.
    pub earns_at: Timestamp,
    /// State of the query for the charge at the payment processor.
    #[serde(default, skip_serializing_if = "ReconciliationState::is_not_needed")]
    pub comparison: ReconciliationState,
    /// The campaign's terms at the time of writing. New rates apply to new commissions only.
    pub snapshot: TermsSnapshot,
    /// Causes of reversals that the owner waived. They do not reverse this line again.
    pub waived: Vec<Waiver>,
    /// The reason given for a manual reversal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Revision, incremented by every change.
    pub rev: u64,
}

impl Commission {
    /// The invoice; `None` for a bounty.
    pub fn sold_invoice(&self) -> Option<&SoldInvoice> {
        match &self.origin {
            CommissionOrigin::Sale(sold) => Some(sold),
            CommissionOrigin::Bounty => None,
        }
    }

    /// The recipient's level; [`CommissionLevel::One`] for a bounty.
    pub fn level(&self) -> CommissionLevel {
        self.sold_invoice().map_or(CommissionLevel::One, |sold| sold.level)
    }

    /// The base after refunds (`sale_amount_cents`); zero for a bounty.
    pub fn sale_amount(&self) -> i64 {
        self.sold_invoice().map_or(0, |sold| sold.amount)
    }

    /// A short description for people.
    pub fn description(&self) -> String {
        match self.sold_invoice() {
            None => "Bounty for a lead".to_owned(),
            Some(SoldInvoice { level: CommissionLevel::One | CommissionLevel::OneFixed, invoice, .. }) => {
                format!("Commission on invoice {invoice}")
            }
            Some(SoldInvoice { level: CommissionLevel::Two, invoice, .. }) => {
                format!("Recruiter's share of invoice {invoice}")
            }
        }
    }

    /// Explains the amount in one line: `20 % of 49.00 usd = 9.80 usd (tier from 21 customers)`.
    pub fn formula(&self) -> String {
        snapshot::formula(self, snapshot::money_text, |currency| currency.to_string())
    }

    /// Same as [`Self::formula`], with a page's formats of amounts in minor units and of currencies.
    pub fn formula_with(
        &self,
        format_money: fn(i64, Currency) -> String,
        format_currency: fn(Currency) -> String,
    ) -> String {
        snapshot::formula(self, format_money, format_currency)
    }

    /// When the scheduler must process this pending commission next: to query the charge, or to earn it.
    pub fn next_check_at(&self) -> Timestamp {
        if let ReconciliationState::Due(at) = self.comparison { at } else { self.earns_at }
    }

    /// Schedules the query for the charge 24 hours before `earns_at`, or now if that time has passed. Does nothing for
    /// a bounty, or if the commission is no longer pending.
    pub fn require_reconciliation(&mut self, now: Timestamp) {
        let before = self.earns_at.checked_sub(RECONCILED_BEFORE).unwrap_or(now);
        if self.sold_invoice().is_some() && matches!(self.status, CommissionState::Pending { .. }) {
            self.comparison = ReconciliationState::Due(before.max(now));
        }
    }

    /// True if the commission is pending, not frozen, and past the end of its hold.
    pub fn is_due(&self, now: Timestamp) -> bool {
        matches!(self.status, CommissionState::Pending { frozen } if !frozen.is_frozen()) && self.earns_at <= now
    }

    /// Moves to `Earned` at the end of the hold.
    ///
    /// # Errors
    /// `NotPending`, `Frozen`, `Uncompared` while the charge still has to be queried, or `NotYet` before `earns_at`.
    pub fn earn(&mut self, now: Timestamp) -> Result<(), CommissionError> {
        let CommissionState::Pending { frozen } = self.status else {
            return Err(CommissionError::NotPending);
        };
        if frozen.is_frozen() {
            return Err(CommissionError::Frozen);
        }
        if matches!(self.comparison, ReconciliationState::Due(_)) {
            return Err(CommissionError::Uncompared);
        }
        if self.earns_at > now {
            return Err(CommissionError::NotYet { earns_at: self.earns_at });
        }
        self.set_status(CommissionState::Earned { earned_at: now, frozen }, now);
        Ok(())
    }

    /// Reverses the commission. Returns false if it was reversed before; its first reason is retained.
    ///
    /// # Errors
    /// `Paid`, or `InPayout`: the caller removes the line from a payout that is not approved yet first.
    pub fn reverse(&mut self, reason: ReversalReason, now: Timestamp) -> Result<bool, CommissionError> {
        let earned_at = match self.status {
            CommissionState::Pending { .. } => None,
            CommissionState::Earned { earned_at, .. } => Some(earned_at),
            CommissionState::InPayout { payout, .. } => return Err(CommissionError::InPayout(payout)),
            CommissionState::Paid { .. } => return Err(CommissionError::Paid),
            CommissionState::Reversed { .. } => return Ok(false),
        };
        self.set_status(CommissionState::Reversed { reversed_at: now, reason, earned_at }, now);
        Ok(true)
    }

    /// Moves back to `Pending` because the refund that reversed it failed, or because its sale is no longer excluded.
    /// `earns_at` is at least `now`.
    ///
    /// # Errors
    /// `NotReversed` if it is not reversed because of a refund or an exclusion.
    pub fn reopen(&mut self, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::Reversed { reason: ReversalReason::Refund | ReversalReason::Excluded, .. } => {
                self.reset_to_pending(now);
            }
            _ => return Err(CommissionError::NotReversed),
        }
        Ok(())
    }

    /// Moves back to `Pending` at the owner's request, and waives the cause of the reversal as far as `returned` has
    /// it. `earns_at` is at least `now`. The caller first checks that the referral still earns commissions.
    pub fn reinstate(&mut self, returned: &SaleReturns, now: Timestamp) -> Result<(), CommissionError> {
        let CommissionState::Reversed { reason, .. } = self.status else {
            return Err(CommissionError::NotReversed);
        };
        waiver::add_waiver(&mut self.waived, reason, returned);
        self.reset_to_pending(now);
        Ok(())
    }

    /// True if the owner waived this dispute.
    pub fn waives_dispute(&self, id: &str) -> bool {
        self.waived.iter().any(|waiver| matches!(waiver, Waiver::Dispute { dispute } if dispute == id))
    }

    /// True if the owner waived the refunds in `returned`.
    pub fn waives_refund(&self, returned: &SaleReturns) -> bool {
        self.waived.iter().any(|waiver| waiver.covers(returned))
    }

    /// True if the owner waived a reversal reason other than refund or dispute.
    pub fn waives(&self, reason: ReversalReason) -> bool {
        self.waived.contains(&Waiver::Reason(reason))
    }

    /// True if another version of the line differs at most in its [`RefundSplit`].
    pub fn is_equal_without_refund_split(&self, other: &Self) -> bool {
        let without = |line: &Self| {
            let mut line = Self { updated_at: self.updated_at, rev: self.rev, ..line.clone() };
            if let CommissionOrigin::Sale(sold) = &mut line.origin {
                sold.refund_split = RefundSplit::default();
            }
            line
        };
        without(self) == without(other)
    }

    fn reset_to_pending(&mut self, now: Timestamp) {
        self.earns_at = self.earns_at.max(now);
        self.set_status(CommissionState::Pending { frozen: FreezeReasons::default() }, now);
    }

    /// Sets the freeze reasons; none of them thaws the line. Returns whether anything changed. Reversed and paid lines
    /// are not changed.
    ///
    /// # Errors
    /// `InPayout` if a line in a payout is to be frozen: the caller removes it first from a payout that is not approved
    /// yet.
    pub fn freeze(&mut self, wanted: FreezeReasons, now: Timestamp) -> Result<bool, CommissionError> {
        let status = match self.status {
            CommissionState::Pending { frozen } if frozen != wanted => CommissionState::Pending { frozen: wanted },
            CommissionState::Earned { earned_at, frozen } if frozen != wanted => {
                CommissionState::Earned { earned_at, frozen: wanted }
            }
            CommissionState::InPayout { payout, .. } if wanted.is_frozen() => {
                return Err(CommissionError::InPayout(payout));
            }
            _ => return Ok(false),
        };
        self.set_status(status, now);
        Ok(true)
    }

    /// Moves to `InPayout`. Does nothing if the line is in that payout already.
    ///
    /// # Errors
    /// `NotEarned`, `Frozen`, `Paid`, or `InPayout` with the id of another payout.
    pub fn enter_payout(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::Earned { frozen, .. } if frozen.is_frozen() => Err(CommissionError::Frozen),
            CommissionState::Earned { earned_at, .. } => {
                self.set_status(CommissionState::InPayout { earned_at, payout }, now);
                Ok(())
            }
            CommissionState::InPayout { payout: other, .. } if other == payout => Ok(()),
            CommissionState::InPayout { payout: other, .. } => Err(CommissionError::InPayout(other)),
            CommissionState::Paid { .. } => Err(CommissionError::Paid),
            CommissionState::Pending { .. } | CommissionState::Reversed { .. } => Err(CommissionError::NotEarned),
        }
    }

    /// Moves back to `Earned`: the payout was dropped, released the line, failed, or was reversed by the processor. The
    /// next run can include the line.
    ///
    /// After releasing lines of an approved payout the caller recomputes their invoices, because changes to a sale are
    /// deferred while its payout is in progress.
    ///
    /// # Errors
    /// `NotInPayout` if the line is not in `payout`.
    pub fn leave_payout(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::InPayout { earned_at, payout: current }
            | CommissionState::Paid { earned_at, payout: current, .. }
                if current == payout =>
            {
                if let CommissionOrigin::Sale(sold) = &mut self.origin {
                    // From now on refunds change the line itself.
                    sold.refund_split = RefundSplit::default();
                }
                self.set_status(CommissionState::Earned { earned_at, frozen: FreezeReasons::default() }, now);
                Ok(())
            }
            _ => Err(CommissionError::NotInPayout),
        }
    }

    /// Moves to `Paid`. Idempotent for the same payout.
    ///
    /// # Errors
    /// `NotInPayout` if the line is not in `payout`.
    pub fn pay(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::InPayout { earned_at, payout: current } if current == payout => {
                self.set_status(CommissionState::Paid { earned_at, payout, paid_at: now.max(earned_at) }, now);
                Ok(())
            }
            CommissionState::Paid { payout: current, .. } if current == payout => Ok(()),
            _ => Err(CommissionError::NotInPayout),
        }
    }

    fn set_status(&mut self, status: CommissionState, now: Timestamp) {
        self.status = status;
        self.touch(now);
    }

    /// Increments `rev` and sets `updated_at`.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.rev = self.rev.saturating_add(1);
    }
}
