//! A payout: what one partner gets in one currency, drafted in a run that the owner approves.
//!
//! ```text
//! run:     (drafting) ─► draft ─ approve ─► approved ─► processing ─► completed
//!                          └──── cancel ──► cancelled
//! payout:  open ─► paid ─► failed (the processor took it back)        what [`Payout::status`] says of an open one,
//!            ├───────────► failed                                     its run says: draft or processing
//!            └───────────► dropped (its lines left it, or its run was cancelled)
//! ```
//!
//! Whether an open payout is a draft stands in its run and nowhere else, so that approving a run of any size is the
//! change of one row. A payout's lines follow what became of it; where they are more than one commit should hold, they
//! follow in several, and [`Payout::trail`] says how far they are.

mod eligibility;
mod file;
pub mod results;

pub use self::eligibility::{PayoutCandidate, PayoutDecision, SUM_MAX};
pub use self::file::{PayoutFileFormat, PayoutFileRow};

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::money::Currency;
use super::program::PayoutMethod;
use super::word::words;
use crate::id::{AccountId, AdjustmentId, CommissionId, PartnerId, PayoutId, PayoutRunId};

words! {
    /// Where a payout stands.
    PayoutStatus {
        /// In a run that is not approved.
        Draft = "draft",
        /// Approved, not paid.
        Processing = "processing",
        /// Paid.
        Paid = "paid",
        /// It did not reach the partner; its commissions return to the next run.
        Failed = "failed",
    }
}

words! {
    /// Where a run stands.
    PayoutRunStatus {
        /// Waits for the owner.
        Draft = "draft",
        /// The owner said yes.
        Approved = "approved",
        /// Money is under way.
        Processing = "processing",
        /// No payout is under way any more.
        Completed = "completed",
        /// Taken back before it was approved.
        Cancelled = "cancelled",
    }
}

words! {
    /// Why a partner is not in a run.
    SkipReason {
        /// It is not active.
        NotActive = "not_active",
        /// It cannot be paid.
        NotReady = "not_ready",
        /// There is less than the least that is paid out.
        BelowMinimum = "below_minimum",
        /// Referrals of it wait for the owner's look.
        UnderReview = "under_review",
        /// Charges are disputed.
        Disputed = "disputed",
        /// It was earned after the run's cutoff.
        AfterCutoff = "after_cutoff",
        /// The run comes to as much as it may.
        RunFull = "run_full",
    }
}

words! {
    /// What became of a payout, whatever became of its run.
    PayoutState {
        /// Neither paid nor failed.
        Open = "open",
        /// Paid.
        Paid = "paid",
        /// It did not reach the partner, or came back.
        Failed = "failed",
        /// Gone, for nobody to see; its lines are being freed.
        Dropped = "dropped",
    }
}

/// How far a payout's lines have followed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCursor {
    /// The last line that has, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<CommissionId>,
}

/// Why a transfer may have been made although nothing here says so: it is looked up before it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferDoubt {
    /// The store was restored from a backup after the payout was drafted.
    StoreRestored,
    /// The processor says that the key was used with other figures: the key is not used again.
    KeyUsed,
}

/// What the processor was asked, where it pays by transfers of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferAttempts {
    /// The number in the key that makes asking again harmless; another one after each definitive answer.
    pub attempt: u32,
    /// When it was asked first with that number. Until it answers, the money may be on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Which account there was asked so: another one knows of no key that this one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Why it is looked up first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<TransferDoubt>,
    /// Why the transfer was not made when it was asked last: for the account, not for the partner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// How often it was asked with that number.
    pub tries: u32,
    /// How often there was not enough money.
    pub short: u32,
    /// Not to be asked before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

impl TransferAttempts {
    /// The key was refused for good, or its transfer is known not to be made: the next request has another key.
    pub fn next_attempt(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        (self.since, self.doubt, self.tries) = (None, None, 0);
    }
}

/// A payout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payout {
    /// Its id.
    pub id: PayoutId,
    /// Whose program it is of.
    pub account: AccountId,
    /// Who gets it.
    pub partner: PartnerId,
    /// The run that it is in.
    pub run: PayoutRunId,
    /// How much, in minor units: its lines and its adjustments.
    pub amount: i64,
    /// Of what.
    pub currency: Currency,
    /// What its adjustments come to.
    #[serde(default)]
    pub adjusted: i64,
    /// How many lines are in it.
    pub lines: u32,
    /// In which way.
    pub method: PayoutMethod,
    /// To whom, as it stood when the run was drafted.
    pub destination: String,
    /// What became of it.
    pub state: PayoutState,
    /// How far its lines have followed; nothing when all have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<LineCursor>,
    /// The processor's id of the transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<String>,
    /// What the processor was asked.
    #[serde(default)]
    pub asking: TransferAttempts,
    /// What the owner says that proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// When it was paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_at: Option<Timestamp>,
    /// Grows with each change.
    pub rev: u64,
    /// When it was drafted.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

impl Payout {
    /// Where it stands, its run being so; nothing when it is gone.
    #[must_use]
    pub fn status(&self, run: PayoutRunStatus) -> Option<PayoutStatus> {
        match (self.state, run) {
            (PayoutState::Dropped, _) | (PayoutState::Open, PayoutRunStatus::Cancelled) => None,
            (PayoutState::Open, PayoutRunStatus::Draft) => Some(PayoutStatus::Draft),
            (
                PayoutState::Open,
                PayoutRunStatus::Approved | PayoutRunStatus::Processing | PayoutRunStatus::Completed,
            ) => Some(PayoutStatus::Processing),
            (PayoutState::Paid, _) => Some(PayoutStatus::Paid),
            (PayoutState::Failed, _) => Some(PayoutStatus::Failed),
        }
    }

    /// Why it failed; while it is open, why the processor has not made the transfer yet.
    #[must_use]
    pub fn failure_or_obstacle(&self) -> Option<&str> {
        let obstacle = self.asking.obstacle.as_deref().filter(|_| self.state == PayoutState::Open);
        self.failure_reason.as_deref().or(obstacle)
    }

    /// Something about it changed.
    pub fn touch(&mut self, now: Timestamp) {
        self.rev = self.rev.saturating_add(1);
        self.updated_at = now;
    }
}

/// A partner who is not in a run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPartner {
    /// Who.
    pub partner: PartnerId,
    /// Of what.
    pub currency: Currency,
    /// How much is earned.
    pub amount: i64,
    /// Why.
    pub reason: SkipReason,
}

/// A payout with so many lines that they enter it in several commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutFillCursor {
    /// Whose.
    pub partner: PartnerId,
    /// Of what.
    pub currency: Currency,
    /// The payout.
    pub payout: PayoutId,
    /// The last line that was looked at.
    pub after: CommissionId,
}

/// How far the comparing of a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconciliationCursor {
    /// The last payout that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payout: Option<PayoutId>,
    /// The last line of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<CommissionId>,
    /// Which one that is: it may be gone when this goes on, and the line is none of those after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<PayoutId>,
}

/// How far the payouts of a draft are looked through for methods that are allowed no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodFilterCursor {
    /// The last payout that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PayoutId>,
}

/// What is under way with a run, over several commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayoutRunPhase {
    /// Partners are still taken in: nobody is shown the run.
    Drafting {
        /// The last partner and currency that were looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<(PartnerId, Currency)>,
        /// The payout of those, when it has more lines to come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filling: Option<PayoutFillCursor>,
    },
    /// It is whole; the processor is asked about the charges of its lines, one after the other, before it can be approved.
    Comparing {
        /// The last payout whose lines were compared, and the last line of the one after that, if some of it were.
        after: ReconciliationCursor,
        /// How often what comes next was asked in vain.
        tries: u32,
    },
    /// Nobody is to be paid: what was noted is forgotten, and then the run itself. Nobody is shown it.
    Voiding,
    /// It was cancelled: its payouts are taken away, and their lines freed.
    Sweeping,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A run: the payouts of all partners who can be paid, in one draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutRun {
    /// Its id.
    pub id: PayoutRunId,
    /// Whose program it is of.
    pub account: AccountId,
    /// Where it stands.
    pub status: PayoutRunStatus,
    /// What is under way with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PayoutRunPhase>,
    /// Methods are allowed no more since it was drafted: payouts by them are taken out before it is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sifted: Option<MethodFilterCursor>,
    /// Whether payouts of it failed.
    pub is_partial: bool,
    /// Until when commissions were earned that are in it.
    pub cutoff: Timestamp,
    /// What it comes to, by currency.
    pub totals: BTreeMap<Currency, i64>,
    /// Payouts in it.
    pub payouts: u32,
    /// Payouts of it that are neither paid nor failed.
    pub open: u32,
    /// Payouts of it that the processor is to make.
    pub transfers: u32,
    /// Lines of it about whose charges the processor was asked in vain.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncompared: u32,
    /// Grows with each change.
    pub rev: u64,
    /// When it was drafted.
    pub created_at: Timestamp,
    /// When the owner approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// When its last payout was settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl PayoutRun {
    /// Whether anybody is shown it.
    #[must_use]
    pub fn is_drafted(&self) -> bool {
        !matches!(self.phase, Some(PayoutRunPhase::Drafting { .. } | PayoutRunPhase::Voiding))
    }

    /// Whether the processor is still asked about charges in it.
    #[must_use]
    pub fn is_reconciled(&self) -> bool {
        !matches!(self.phase, Some(PayoutRunPhase::Comparing { .. }))
    }

    /// Whether payouts by methods that are allowed no more are to be taken out of it now: once all are drafted.
    #[must_use]
    pub fn needs_method_filter(&self) -> bool {
        let is_there = self.is_drafted() && self.status == PayoutRunStatus::Draft;
        self.sifted.is_some() && is_there
    }

    /// Whether the owner said yes.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        matches!(self.status, PayoutRunStatus::Approved | PayoutRunStatus::Processing | PayoutRunStatus::Completed)
    }

    /// It comes to so much more, or less. False: to more than can be counted, and nothing is changed.
    #[must_use]
    pub fn add_to_total(&mut self, currency: Currency, amount: i64) -> bool {
        let before = self.totals.get(&currency).copied().unwrap_or(0);
        let Some(sum) = before.checked_add(amount) else { return false };
        if sum == 0 {
            self.totals.remove(&currency);
        } else {
            self.totals.insert(currency, sum);
        }
        true
    }

    /// One of its payouts was settled.
    pub fn record_settlement(&mut self, is_failed: bool, now: Timestamp) {
        self.open = self.open.saturating_sub(1);
        self.is_partial |= is_failed;
        self.status = PayoutRunStatus::Processing;
        if self.open == 0 {
            self.status = PayoutRunStatus::Completed;
            self.completed_at = Some(now);
        }
        self.rev = self.rev.saturating_add(1);
    }
}

/// A correction of what a partner is owed: money came back after the payout, or that was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// Its id.
    pub id: AdjustmentId,
    /// Whose program it is of.
    pub account: AccountId,
    /// Whose it is.
    pub partner: PartnerId,
    /// The line that it is for.
    pub line: CommissionId,
    /// By so much: negative when money came back.
    pub amount: i64,
    /// In this currency.
    pub currency: Currency,
    /// The payout that it was netted in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payout: Option<PayoutId>,
    /// When it was written.
    pub created_at: Timestamp,
}
