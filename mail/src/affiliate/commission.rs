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

pub use self::snapshot::{Calculation, Cap, CapEffect, Snapshot};
pub use self::state::{Comparison, Frozen, Reason, Refused, Status};
pub use self::waiver::Waiver;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::money::Currency;
use super::sale::Returned;
use crate::id::{AccountId, CommissionId, PartnerId, PayoutId, ReferralId};

/// How long before a commission is its partner's the processor is asked about its charge.
const COMPARED_BEFORE: SignedDuration = SignedDuration::from_hours(24);

/// Whose share of a sale it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The partner's who brought the customer.
    One,
    /// The partner's who recruited that partner.
    Two,
    /// The fixed amounts of the partner's who brought the customer, where its shares of the same sale are in another
    /// currency: a line has one.
    OneFixed,
}

impl Level {
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
pub enum Origin {
    /// A paid invoice.
    Sale(Box<Sold>),
    /// A lead, whether or not it ever pays; its partner's alone, and one for each referral.
    Bounty,
}

/// The invoice that a commission is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sold {
    /// Whose share it is.
    pub level: Level,
    /// The processor's id of the invoice.
    pub invoice: String,
    /// The processor's id of the charge, once it is known.
    pub charge: Option<String>,
    /// What is left of the commissionable base, in the currency of the sale.
    pub amount: i64,
    /// How the commission was computed.
    pub calculation: Calculation,
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
    pub origin: Origin,
    /// What it comes to, in minor units: more than zero, also when it is reversed.
    pub amount: i64,
    /// The currency of `amount`.
    pub currency: Currency,
    /// What became of it.
    pub status: Status,
    /// When it is its partner's, if nothing comes between.
    pub earns_at: Timestamp,
    /// Whether the processor was asked about its charge.
    #[serde(default, skip_serializing_if = "Comparison::is_needless")]
    pub comparison: Comparison,
    /// By which terms it was written: new rates are for new commissions.
    pub snapshot: Snapshot,
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
    pub fn sold(&self) -> Option<&Sold> {
        match &self.origin {
            Origin::Sale(sold) => Some(sold),
            Origin::Bounty => None,
        }
    }

    /// Whose share it is. A bounty is the partner's who brought the lead.
    #[must_use]
    pub fn level(&self) -> Level {
        self.sold().map_or(Level::One, |sold| sold.level)
    }

    /// What is left of the sale (`sale_amount_cents`); zero for a bounty.
    #[must_use]
    pub fn sale_amount(&self) -> i64 {
        self.sold().map_or(0, |sold| sold.amount)
    }

    /// What it is for, in words.
    #[must_use]
    pub fn description(&self) -> String {
        match self.sold() {
            None => "Bounty for a lead".to_owned(),
            Some(Sold { level: Level::One | Level::OneFixed, invoice, .. }) => {
                format!("Commission on invoice {invoice}")
            }
            Some(Sold { level: Level::Two, invoice, .. }) => {
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
    pub fn looked_at(&self) -> Timestamp {
        if let Comparison::Due(at) = self.comparison { at } else { self.earns_at }
    }

    /// The processor is to be asked about its charge before it is its partner's, unless it is that already.
    pub fn compare_first(&mut self, now: Timestamp) {
        let before = self.earns_at.checked_sub(COMPARED_BEFORE).unwrap_or(now);
        if self.sold().is_some() && matches!(self.status, Status::Pending { .. }) {
            self.comparison = Comparison::Due(before.max(now));
        }
    }

    /// Whether it waits for nothing but the scheduler.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        matches!(self.status, Status::Pending { frozen } if !frozen.is_frozen()) && self.earns_at <= now
    }

    /// The hold ended: it is its partner's.
    ///
    /// # Errors
    /// It is not pending, it is frozen, or its time has not come.
    pub fn earn(&mut self, now: Timestamp) -> Result<(), Refused> {
        let Status::Pending { frozen } = self.status else { return Err(Refused::NotPending) };
        if frozen.is_frozen() {
            return Err(Refused::Frozen);
        }
        if matches!(self.comparison, Comparison::Due(_)) {
            return Err(Refused::Uncompared);
        }
        if self.earns_at > now {
            return Err(Refused::NotYet { earns_at: self.earns_at });
        }
        self.becomes(Status::Earned { earned_at: now, frozen }, now);
        Ok(())
    }

    /// Takes it back. Whether it did: a line that is reversed already stays as it is, for the reason it was.
    ///
    /// # Errors
    /// It is paid, or in a payout (take it out first, if that is still open).
    pub fn reverse(&mut self, reason: Reason, now: Timestamp) -> Result<bool, Refused> {
        let earned_at = match self.status {
            Status::Pending { .. } => None,
            Status::Earned { earned_at, .. } => Some(earned_at),
            Status::InPayout { payout, .. } => return Err(Refused::InPayout(payout)),
            Status::Paid { .. } => return Err(Refused::Paid),
            Status::Reversed { .. } => return Ok(false),
        };
        self.becomes(Status::Reversed { reversed_at: now, reason, earned_at }, now);
        Ok(true)
    }

    /// The refund that it was reversed for failed: it waits again, at least until `now`.
    ///
    /// # Errors
    /// It is not reversed for a refund.
    pub fn reopen(&mut self, now: Timestamp) -> Result<(), Refused> {
        match self.status {
            Status::Reversed { reason: Reason::Refund, .. } => self.wait_again(now),
            _ => return Err(Refused::NotReversed),
        }
        Ok(())
    }

    /// The owner wants it back: it waits again, at least until `now`, and what it was reversed for is waived, as it is by
    /// what is known of the sale. Whether its referral still earns is for the caller to ask first.
    ///
    /// # Errors
    /// It is not reversed.
    pub fn reinstate(&mut self, returned: &Returned, now: Timestamp) -> Result<(), Refused> {
        let Status::Reversed { reason, .. } = self.status else { return Err(Refused::NotReversed) };
        waiver::waive(&mut self.waived, reason, returned);
        self.wait_again(now);
        Ok(())
    }

    /// Whether a dispute does not take it back.
    #[must_use]
    pub fn waives_dispute(&self, id: &str) -> bool {
        self.waived.iter().any(|waiver| matches!(waiver, Waiver::Dispute { dispute } if dispute == id))
    }

    /// Whether what was given back of its sale does not take it back.
    #[must_use]
    pub fn waives_refund(&self, returned: &Returned) -> bool {
        self.waived.iter().any(|waiver| waiver.covers(returned))
    }

    /// Whether a reason that is none of the sale's does not take it back.
    #[must_use]
    pub fn waives(&self, reason: Reason) -> bool {
        self.waived.contains(&Waiver::Reason(reason))
    }

    fn wait_again(&mut self, now: Timestamp) {
        self.earns_at = self.earns_at.max(now);
        self.becomes(Status::Pending { frozen: Frozen::default() }, now);
    }

    /// Freezes it, or lets it go. Whether that changed anything: what is reversed or paid is beyond it.
    ///
    /// # Errors
    /// It is to be frozen and is in a payout (take it out first, if that is still open).
    pub fn freeze(&mut self, wanted: Frozen, now: Timestamp) -> Result<bool, Refused> {
        let status = match self.status {
            Status::Pending { frozen } if frozen != wanted => Status::Pending { frozen: wanted },
            Status::Earned { earned_at, frozen } if frozen != wanted => {
                Status::Earned { earned_at, frozen: wanted }
            }
            Status::InPayout { payout, .. } if wanted.is_frozen() => return Err(Refused::InPayout(payout)),
            _ => return Ok(false),
        };
        self.becomes(status, now);
        Ok(true)
    }

    /// A payout takes it. In the one that it is in already, it stays.
    ///
    /// # Errors
    /// It is not earned, it is frozen, or it is in another payout.
    pub fn enter_payout(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), Refused> {
        match self.status {
            Status::Earned { frozen, .. } if frozen.is_frozen() => Err(Refused::Frozen),
            Status::Earned { earned_at, .. } => {
                self.becomes(Status::InPayout { earned_at, payout }, now);
                Ok(())
            }
            Status::InPayout { payout: other, .. } if other == payout => Ok(()),
            Status::InPayout { payout: other, .. } => Err(Refused::InPayout(other)),
            Status::Paid { .. } => Err(Refused::Paid),
            Status::Pending { .. } | Status::Reversed { .. } => Err(Refused::NotEarned),
        }
    }

    /// Its payout was dropped, lost it, failed, or was taken back by the processor: the next run may take it.
    ///
    /// Who frees lines of an approved payout recomputes their invoices: a payout that is on its way holds back what
    /// happens to the sale meanwhile.
    ///
    /// # Errors
    /// It is not in that payout.
    pub fn leave_payout(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), Refused> {
        match self.status {
            Status::InPayout { earned_at, payout: its } | Status::Paid { earned_at, payout: its, .. }
                if its == payout =>
            {
                self.becomes(Status::Earned { earned_at, frozen: Frozen::default() }, now);
                Ok(())
            }
            _ => Err(Refused::NotInPayout),
        }
    }

    /// Its payout went out. Paid twice by the same one is paid once.
    ///
    /// # Errors
    /// It is not in that payout.
    pub fn pay(&mut self, payout: PayoutId, now: Timestamp) -> Result<(), Refused> {
        match self.status {
            Status::InPayout { earned_at, payout: its } if its == payout => {
                self.becomes(Status::Paid { earned_at, payout, paid_at: now.max(earned_at) }, now);
                Ok(())
            }
            Status::Paid { payout: its, .. } if its == payout => Ok(()),
            _ => Err(Refused::NotInPayout),
        }
    }

    fn becomes(&mut self, status: Status, now: Timestamp) {
        self.status = status;
        self.touch(now);
    }

    /// Something about it changed.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.rev = self.rev.saturating_add(1);
    }
}
