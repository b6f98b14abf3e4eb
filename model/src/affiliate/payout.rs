//! Payouts: the amount that one partner gets in one currency, drafted in a run that the owner approves.
//!
//! ```text
//! run:     (drafting) ─► draft ─ approve ─► approved ─► processing ─► completed
//!                          └──── cancel ──► cancelled
//! payout:  open ─► paid ─► failed (reversed by the processor)
//!            ├───────────► failed
//!            └───────────► dropped (all lines left it, or its run was cancelled)
//! ```
//!
//! The status of an open payout (draft or processing) is derived from its run by [`Payout::status`]. Approving a run of
//! any size is therefore an update of one row.
//!
//! The commission lines of a payout follow its state. If there are more lines than fit into one commit, they are
//! updated in several commits, and [`Payout::trail`] is the cursor.

mod eligibility;
mod file;
pub mod results;

pub use self::eligibility::{PayoutCandidate, PayoutDecision, SUM_MAX};
pub use self::file::{PayoutFileFormat, PayoutFileRow};

use std::collections::BTreeMap;

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};

use super::arithmetic::ArithmeticError;
use super::money::Currency;
use super::program::PayoutMethod;
use crate::id::{AccountId, AdjustmentId, CommissionId, PartnerId, PayoutId, PayoutRunId};

words! {
    /// Status of a payout in the API.
    PayoutStatus {
        /// In a run that is not approved yet.
        Draft = "draft",
        /// Approved, but not paid yet.
        Processing = "processing",
        Paid = "paid",
        /// Not received by the partner. Its commissions return to the next run.
        Failed = "failed",
    }
}

words! {
    PayoutRunStatus {
        /// Waits for the owner's approval.
        Draft = "draft",
        /// Approved by the owner.
        Approved = "approved",
        /// Transfers have started or payouts are settled, and at least one payout is open.
        Processing = "processing",
        /// No payout is open any more.
        Completed = "completed",
        /// Cancelled before the approval.
        Cancelled = "cancelled",
    }
}

words! {
    /// The reason why a run does not pay a partner.
    SkipReason {
        /// The partner is not active.
        NotActive = "not_active",
        /// The partner has no payable destination with an allowed method.
        NotReady = "not_ready",
        /// The sum is below the minimum payout.
        BelowMinimum = "below_minimum",
        /// Referrals of the partner are held for review.
        UnderReview = "under_review",
        /// Charges are disputed.
        Disputed = "disputed",
        /// The commissions were earned after the run's cutoff.
        AfterCutoff = "after_cutoff",
        /// The run has reached its maximum.
        RunFull = "run_full",
        /// A refund, or its failure, changed the commissions while they were in the draft.
        AmountChanged = "amount_changed",
    }
}

words! {
    /// Stored state of a payout, independent of its run.
    PayoutState {
        /// Neither paid nor failed.
        Open = "open",
        Paid = "paid",
        /// Not received by the partner, or returned.
        Failed = "failed",
        /// Removed and no longer visible; its lines are being released.
        Dropped = "dropped",
    }
}

/// Progress of updating a payout's commission lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCursor {
    /// The last updated line; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<CommissionId>,
}

/// Reasons to look up a transfer at the processor before requesting it, because it may exist although the store does
/// not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferDoubt {
    /// The store was restored from a backup after the payout was drafted.
    StoreRestored,
    /// The processor reports that the idempotency key was used with other parameters. The key is not used again.
    KeyUsed,
}

/// Requests to the payment processor for a payout's transfer.
#[message::row::omit_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferAttempts {
    /// Number in the idempotency key. It makes retries safe and changes after each definitive response.
    pub attempt: u32,
    /// Time of the first request with this number. Without a response the transfer may have been made.
    pub since: Option<Timestamp>,
    /// The processor account that received the request. Another account does not know its idempotency keys.
    pub of: Option<String>,
    /// Reason to look up the transfer first.
    pub doubt: Option<TransferDoubt>,
    /// Cause of the last failure, if it concerns the owner's processor account and not the partner.
    pub obstacle: Option<String>,
    /// Number of requests with this key.
    pub tries: u32,
    /// Number of failures because of an insufficient balance.
    pub short: u32,
    /// No request before this time (backoff).
    pub not_before: Option<Timestamp>,
}

impl TransferAttempts {
    /// Starts a new idempotency key, after the old key was refused for good or its transfer is known not to exist.
    pub fn next_attempt(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        (self.since, self.doubt, self.tries) = (None, None, 0);
    }
}

/// A payout to one partner in one currency.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payout {
    pub id: PayoutId,
    pub account: AccountId,
    pub partner: PartnerId,
    pub run: PayoutRunId,
    /// Minor units of `currency`: the sum of its commission lines and adjustments.
    pub amount: i64,
    pub currency: Currency,
    /// Sum of its adjustments, in minor units.
    #[serde(default)]
    pub adjusted: i64,
    /// Number of commission lines.
    pub lines: u32,
    pub method: PayoutMethod,
    /// The partner's payout account at the time of drafting.
    pub destination: String,
    pub state: PayoutState,
    /// Progress of updating its commission lines; `None` when all are up to date.
    pub trail: Option<LineCursor>,
    /// The transfer's id at the payment processor.
    pub transfer: Option<String>,
    /// Requests for the transfer.
    #[serde(default)]
    pub asking: TransferAttempts,
    /// Proof of payment, such as a transaction id.
    pub reference: Option<String>,
    pub failure_reason: Option<String>,
    pub paid_at: Option<Timestamp>,
    /// Revision, incremented by every change.
    pub rev: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Payout {
    /// The API status, derived from the state and the run's status; `None` if the payout is no longer visible.
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

    /// The reason of a failure; for an open payout, the obstacle that prevents its transfer.
    pub fn failure_or_obstacle(&self) -> Option<&str> {
        let obstacle = self.asking.obstacle.as_deref().filter(|_| self.state == PayoutState::Open);
        self.failure_reason.as_deref().or(obstacle)
    }

    /// Increments `rev` and sets `updated_at`.
    pub fn touch(&mut self, now: Timestamp) {
        self.rev = self.rev.saturating_add(1);
        self.updated_at = now;
    }
}

/// A partner whom a run does not pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPartner {
    pub partner: PartnerId,
    pub currency: Currency,
    /// Skipped amount in minor units.
    pub amount: i64,
    pub reason: SkipReason,
}

/// Progress of adding lines to a payout with more lines than fit into one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutFillCursor {
    pub partner: PartnerId,
    pub currency: Currency,
    pub payout: PayoutId,
    /// The last line that was processed.
    pub after: CommissionId,
}

/// Progress of reconciling a run's charges with the payment processor.
#[message::row::omit_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconciliationCursor {
    /// The last payout whose lines are all reconciled.
    pub payout: Option<PayoutId>,
    /// The last reconciled line of the next payout.
    pub line: Option<CommissionId>,
    /// The payout that `line` belongs to. If this payout was removed meanwhile, `line` does not apply to its successor.
    pub begun: Option<PayoutId>,
}

/// Progress of removing payouts whose method is no longer allowed from a draft.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodFilterCursor {
    /// The last payout that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PayoutId>,
}

/// Background work on a run that takes several commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayoutRunPhase {
    /// Partners are being added; the run is not visible yet.
    Drafting {
        /// The last partner and currency that were processed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<(PartnerId, Currency)>,
        /// A payout that does not contain all its lines yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filling: Option<PayoutFillCursor>,
    },
    /// Drafting is complete. The processor is queried about the charges of all lines before the run can be approved.
    Comparing {
        after: ReconciliationCursor,
        /// Number of failed queries for the next lines.
        tries: u32,
    },
    /// No partner can be paid: the drafted rows are deleted, then the run. It is not visible.
    Voiding,
    /// The run was cancelled: its payouts are deleted and their lines released.
    Sweeping,
}

/// A run: one draft with the payouts of all eligible partners.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutRun {
    pub id: PayoutRunId,
    pub account: AccountId,
    pub status: PayoutRunStatus,
    /// Background work in progress.
    pub phase: Option<PayoutRunPhase>,
    /// Set if a payout method was disallowed after drafting: payouts with such a method are removed before the
    /// approval.
    pub sifted: Option<MethodFilterCursor>,
    /// True if at least one payout failed.
    pub is_partial: bool,
    /// Only commissions that were earned by this time are included.
    pub cutoff: Timestamp,
    /// Sum per currency in minor units.
    pub totals: BTreeMap<Currency, i64>,
    pub payouts: u32,
    /// Number of payouts that are neither paid nor failed.
    pub open: u32,
    /// Number of payouts that the payment processor transfers.
    pub transfers: u32,
    /// Number of charges that could not be reconciled because the processor did not answer.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub uncompared: u32,
    /// Revision, incremented by every change.
    pub rev: u64,
    pub created_at: Timestamp,
    pub approved_at: Option<Timestamp>,
    /// When its last payout was paid or failed.
    pub completed_at: Option<Timestamp>,
}

impl PayoutRun {
    /// True if the run is visible: drafting is complete and found partners to pay.
    pub fn is_drafted(&self) -> bool {
        !matches!(self.phase, Some(PayoutRunPhase::Drafting { .. } | PayoutRunPhase::Voiding))
    }

    /// True if no charges remain to be reconciled.
    pub fn is_reconciled(&self) -> bool {
        !matches!(self.phase, Some(PayoutRunPhase::Comparing { .. }))
    }

    /// True if payouts with disallowed methods must be removed now. This waits until drafting is complete.
    pub fn needs_method_filter(&self) -> bool {
        let is_open_draft = self.is_drafted() && self.status == PayoutRunStatus::Draft;
        self.sifted.is_some() && is_open_draft
    }

    /// True if the owner approved the run.
    pub fn is_approved(&self) -> bool {
        matches!(self.status, PayoutRunStatus::Approved | PayoutRunStatus::Processing | PayoutRunStatus::Completed)
    }

    /// Adds an amount, which may be negative, to the total of a currency.
    ///
    /// # Errors
    /// `TooLarge` on overflow; then nothing changes.
    pub fn add_to_total(&mut self, currency: Currency, amount: i64) -> Result<(), ArithmeticError> {
        let before = self.totals.get(&currency).copied().unwrap_or(0);
        let sum = before.checked_add(amount).ok_or(ArithmeticError::TooLarge)?;
        if sum == 0 {
            self.totals.remove(&currency);
        } else {
            self.totals.insert(currency, sum);
        }
        Ok(())
    }

    /// Takes a payout that is dropped from a draft out of the totals and counts.
    ///
    /// # Errors
    /// `TooLarge` on overflow; then nothing changes.
    pub fn remove_payout(&mut self, payout: &Payout) -> Result<(), ArithmeticError> {
        self.add_to_total(payout.currency, payout.amount.checked_neg().ok_or(ArithmeticError::TooLarge)?)?;
        self.payouts = self.payouts.saturating_sub(1);
        self.open = self.open.saturating_sub(1);
        self.transfers = self.transfers.saturating_sub(u32::from(!payout.method.is_manual()));
        Ok(())
    }

    /// Counts a payout as settled (paid or failed), and completes the run with the last one.
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

/// A correction of a partner's balance: a refund after the payout or its reversal, or the failure of a refund that had
/// reduced the commission before the payout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    pub id: AdjustmentId,
    pub account: AccountId,
    pub partner: PartnerId,
    /// The commission that is corrected.
    pub line: CommissionId,
    /// Minor units: negative after a refund.
    pub amount: i64,
    pub currency: Currency,
    /// The payout that includes this adjustment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payout: Option<PayoutId>,
    pub created_at: Timestamp,
}
