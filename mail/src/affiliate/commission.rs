//! A commission: one line of the ledger, what became of it, and why it is as large as it is.
//!
//! ```text
//!            ┌──── earn ────► Earned ── enter_payout ─► InPayout ── pay ─► Paid
//! (written) ─► Pending          │  ◄──── leave_payout ────┘ ◄── leave_payout ─┘
//!            │    ▲             │
//!            │    └ reopen, ────┤ reinstate
//!            └── reverse ─────► Reversed
//! ```
//!
//! A line is reversed by what happened to the sale (a refund, a dispute), by the owner, or with its partner. A reversed
//! line comes back when the refund failed ([`Commission::reopen`]) or when the owner says so ([`Commission::reinstate`]);
//! what the owner has waived so ([`Waiver`]) does not reverse it again. A line can be frozen for the time of a bank's inquiry or of
//! the owner's review: it does not earn, and no payout takes it. That a payout is approved is the payout's own
//! knowledge: until then [`Commission::leave_payout`] may take a line out of it, afterwards only its failure does.
//!
//! Each move changes `rev` and `updated_at`, or returns [`Refused`] and changes nothing.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

#[cfg(test)]
mod moves;
mod snapshot;
mod state;
mod waiver;

pub use self::snapshot::{CapEffect, CommissionCalculation, CommissionCap, TermsSnapshot};
pub use self::state::{CommissionError, CommissionState, FreezeReasons, ReconciliationState, ReversalReason};
pub use self::waiver::Waiver;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::money::Currency;
use super::sale::SaleReturns;
use crate::id::{AccountId, CommissionId, PartnerId, PayoutId, ReferralId};

/// How long before a commission is its partner's the processor is asked about its charge.
const RECONCILED_BEFORE: SignedDuration = SignedDuration::from_hours(24);

/// Whose share of a sale it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionLevel {
    /// The partner's who brought the customer.
    One,
    /// The partner's who recruited that partner.
    Two,
    /// The fixed amounts of the partner's who brought the customer, where its shares of the same sale are in another
    /// currency: a line has one.
    OneFixed,
}

impl CommissionLevel {
    /// The number on the wire (`tier`).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::One | Self::OneFixed => 1,
            Self::Two => 2,
        }
    }
}

/// What a commission is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommissionOrigin {
    /// A paid invoice.
    Sale(Box<SoldInvoice>),
    /// A lead, whether or not it ever pays; its partner's alone, and one for each referral.
    Bounty,
}

/// The invoice that a commission is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoldInvoice {
    /// Whose share it is.
    pub level: CommissionLevel,
    /// The processor's id of the invoice.
    pub invoice: String,
    /// The processor's id of the charge, once it is known.
    pub charge: Option<String>,
    /// What is left of the commissionable base, in the currency of the sale.
    pub amount: i64,
    /// How the commission was computed.
    pub calculation: CommissionCalculation,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commission {
    /// Its id.
    pub id: CommissionId,
    /// Whose program it is of.
    pub account: AccountId,
    /// Whose it is.
    pub partner: PartnerId,
    /// The customer it came by.
    pub referral: ReferralId,
    /// What it is for.
    pub origin: CommissionOrigin,
    /// What it comes to, in minor units: more than zero, also when it is reversed.
    pub amount: i64,
    /// The currency of `amount`.
    pub currency: Currency,
    /// What became of it.
    pub status: CommissionState,
    /// When it is its partner's, if nothing comes between.
    pub earns_at: Timestamp,
    /// Whether the processor was asked about its charge.
    #[serde(default, skip_serializing_if = "ReconciliationState::is_not_needed")]
    pub comparison: ReconciliationState,
    /// By which terms it was written: new rates are for new commissions.
    pub snapshot: TermsSnapshot,
    /// For what it was reversed and the owner reinstated it: that does not reverse it again.
    pub waived: Vec<Waiver>,
    /// What was said when somebody took it back by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// Grows with each change.
    pub rev: u64,
}

impl Commission {
    /// The invoice that it is for; `None` for a bounty.
    #[must_use]
    pub fn sold_invoice(&self) -> Option<&SoldInvoice> {
        match &self.origin {
            CommissionOrigin::Sale(sold) => Some(sold),
            CommissionOrigin::Bounty => None,
        }
    }

    /// Whose share it is. A bounty is the partner's who brought the lead.
    #[must_use]
    pub fn level(&self) -> CommissionLevel {
        self.sold_invoice().map_or(CommissionLevel::One, |sold| sold.level)
    }

    /// What is left of the sale (`sale_amount_cents`); zero for a bounty.
    #[must_use]
    pub fn sale_amount(&self) -> i64 {
        self.sold_invoice().map_or(0, |sold| sold.amount)
    }

    /// What it is for, in words.
    #[must_use]
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

    /// Why it is as large as it is, in one line: `20 % of 49.00 usd = 9.80 usd (tier from 21 customers)`.
    #[must_use]
    pub fn formula(&self) -> String {
        snapshot::formula(self)
    }

    /// When the scheduler is to look at it, while it is pending.
    #[must_use]
    pub fn next_check_at(&self) -> Timestamp {
        if let ReconciliationState::Due(at) = self.comparison { at } else { self.earns_at }
    }

    /// The processor is to be asked about its charge before it is its partner's, unless it is that already.
    pub fn require_reconciliation(&mut self, now: Timestamp) {
        let before = self.earns_at.checked_sub(RECONCILED_BEFORE).unwrap_or(now);
        if self.sold_invoice().is_some() && matches!(self.status, CommissionState::Pending { .. }) {
            self.comparison = ReconciliationState::Due(before.max(now));
        }
    }

    /// Whether it waits for nothing but the scheduler.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        matches!(self.status, CommissionState::Pending { frozen } if !frozen.is_frozen()) && self.earns_at <= now
    }

    /// The hold ended: it is its partner's.
    ///
    /// # Errors
    /// It is not pending, it is frozen, or its time has not come.
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

    /// Takes it back. Whether it did: a line that is reversed already stays as it is, for the reason it was.
    ///
    /// # Errors
    /// It is paid, or in a payout (take it out first, if that is still open).
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

    /// The refund that it was reversed for failed: it waits again, at least until `now`.
    ///
    /// # Errors
    /// It is not reversed for a refund.
    pub fn reopen(&mut self, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::Reversed { reason: ReversalReason::Refund, .. } => self.reset_to_pending(now),
            _ => return Err(CommissionError::NotReversed),
        }
        Ok(())
    }

    /// The owner wants it back: it waits again, at least until `now`, and what it was reversed for is waived, as it is by
    /// what is known of the sale. Whether its referral still earns is for the caller to ask first.
    ///
    /// # Errors
    /// It is not reversed.
    pub fn reinstate(&mut self, returned: &SaleReturns, now: Timestamp) -> Result<(), CommissionError> {
        let CommissionState::Reversed { reason, .. } = self.status else {
            return Err(CommissionError::NotReversed);
        };
        waiver::add_waiver(&mut self.waived, reason, returned);
        self.reset_to_pending(now);
        Ok(())
    }

    /// Whether a dispute does not take it back.
    #[must_use]
    pub fn waives_dispute(&self, id: &str) -> bool {
        self.waived.iter().any(|waiver| matches!(waiver, Waiver::Dispute { dispute } if dispute == id))
    }

    /// Whether what was given back of its sale does not take it back.
    #[must_use]
    pub fn waives_refund(&self, returned: &SaleReturns) -> bool {
        self.waived.iter().any(|waiver| waiver.covers(returned))
    }

    /// Whether a reason that is none of the sale's does not take it back.
    #[must_use]
    pub fn waives(&self, reason: ReversalReason) -> bool {
        self.waived.contains(&Waiver::Reason(reason))
    }

    fn reset_to_pending(&mut self, now: Timestamp) {
        self.earns_at = self.earns_at.max(now);
        self.set_status(CommissionState::Pending { frozen: FreezeReasons::default() }, now);
    }

    /// Freezes it, or lets it go. Whether that changed anything: what is reversed or paid is beyond it.
    ///
    /// # Errors
    /// It is to be frozen and is in a payout (take it out first, if that is still open).
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

    /// A payout takes it. In the one that it is in already, it stays.
    ///
    /// # Errors
    /// It is not earned, it is frozen, or it is in another payout.
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

    /// Its payout was dropped, lost it, failed, or was taken back by the processor: the next run may take it.
    ///
    /// Who frees lines of an approved payout recomputes their invoices: a payout that is on its way holds back what
    /// happens to the sale meanwhile.
    ///
    /// # Errors
    /// It is not in that payout.
    pub fn leave_payout(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::InPayout { earned_at, payout: its }
            | CommissionState::Paid { earned_at, payout: its, .. }
                if its == payout =>
            {
                self.set_status(CommissionState::Earned { earned_at, frozen: FreezeReasons::default() }, now);
                Ok(())
            }
            _ => Err(CommissionError::NotInPayout),
        }
    }

    /// Its payout went out. Paid twice by the same one is paid once.
    ///
    /// # Errors
    /// It is not in that payout.
    pub fn pay(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), CommissionError> {
        match self.status {
            CommissionState::InPayout { earned_at, payout: its } if its == payout => {
                self.set_status(CommissionState::Paid { earned_at, payout, paid_at: now.max(earned_at) }, now);
                Ok(())
            }
            CommissionState::Paid { payout: its, .. } if its == payout => Ok(()),
            _ => Err(CommissionError::NotInPayout),
        }
    }

    fn set_status(&mut self, status: CommissionState, now: Timestamp) {
        self.status = status;
        self.touch(now);
    }

    /// Something about it changed.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.rev = self.rev.saturating_add(1);
    }
}
