//! Approval and cancellation of a draft run by the owner.

use std::collections::BTreeMap;

use mail::affiliate::money::Currency;
use mail::affiliate::payout::{PayoutRun, PayoutRunPhase, PayoutRunStatus};
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::payout_run;
use store::engine::Batch;

use super::StepOutcome;
use super::draft::lease_until;
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason};
use crate::ledger::Ledger;
use crate::service::{ExtendCommit, IfMatch};

/// Attempts to commit after conflicts.
const TRIES_MAX: usize = 32;

impl Ledger {
    /// Approves a draft that still has the `rev` and totals that the owner saw.
    ///
    /// # Errors
    /// `NoDraft`, `RunCompared` while it is reconciled, `OtherRun` if it has changed, `NobodyInRun` if it is empty; the
    /// store failed.
    pub async fn approve_run(
        &self,
        account: AccountId,
        id: PayoutRunId,
        rev: u64,
        totals: &BTreeMap<Currency, i64>,
        extend_commit: ExtendCommit<'_, PayoutRun>,
    ) -> Result<PayoutRun, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let before = self.get_run(account, id).await?;
            if before.status != PayoutRunStatus::Draft {
                return Err(ConflictReason::NoDraft.into());
            }
            if !before.is_reconciled() {
                return Err(ConflictReason::RunCompared.into());
            }
            if before.sifted.is_some() {
                // Finish the method filter first.
                while self.filter_step(account, id).await? == StepOutcome::More {}
                continue;
            }
            if before.rev != rev || before.totals != *totals {
                return Err(ConflictReason::OtherRun.into());
            }
            if before.payouts == 0 {
                return Err(ConflictReason::NobodyInRun.into());
            }
            let now = self.now();
            let after = PayoutRun {
                status: PayoutRunStatus::Approved,
                approved_at: Some(now),
                rev: before.rev.saturating_add(1),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &before, &after);
            payout_run::close(&mut batch, &before);
            if after.transfers > 0 {
                payout_job::schedule(&mut batch, account, PayoutJob::Run(id), now);
            }
            extend_commit(&mut batch, &after);
            if self.commit(batch).await? {
                return Ok(after);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Cancels a draft and releases its lines before it returns. If that fails halfway, a job continues.
    ///
    /// # Errors
    /// `NoDraft`; `if_match` is stale; `NotFound`; the store failed.
    pub async fn cancel_run(
        &self,
        account: AccountId,
        id: PayoutRunId,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, PayoutRun>,
    ) -> Result<PayoutRun, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let before = self.get_run(account, id).await?;
            IfMatch::check_rev(if_match, before.rev)?;
            if before.status != PayoutRunStatus::Draft {
                return Err(ConflictReason::NoDraft.into());
            }
            let now = self.now();
            let after = PayoutRun {
                status: PayoutRunStatus::Cancelled,
                phase: Some(PayoutRunPhase::Sweeping),
                sifted: None,
                rev: before.rev.saturating_add(1),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &before, &after);
            payout_job::schedule(&mut batch, account, PayoutJob::Run(id), lease_until(now));
            extend_commit(&mut batch, &after);
            if self.commit(batch).await? {
                while self.continue_run(account, id).await? == StepOutcome::More {}
                return self.get_run(account, id).await;
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Returns a run whose drafting is complete.
    ///
    /// # Errors
    /// `NotFound`; the store cannot be read.
    pub async fn get_run(&self, account: AccountId, id: PayoutRunId) -> Result<PayoutRun, AffiliateError> {
        let found = payout_run::get(self.store(), account, id).await?;
        found.filter(PayoutRun::is_drafted).ok_or(AffiliateError::NotFound(AffiliateNoun::Run))
    }
}
