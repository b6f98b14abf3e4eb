//! What the owner says of a draft: it is paid, or it is not.

use std::collections::BTreeMap;

use mail::affiliate::money::Currency;
use mail::affiliate::payout::{PayoutRun, PayoutRunPhase, PayoutRunStatus};
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_run;
use store::affiliate::payout_work::{self, PayoutJob};
use store::engine::Batch;

use super::StepOutcome;
use super::draft::lease_until;
use crate::ledger::Ledger;
use crate::office::{ExtendCommit, IfMatch};
use crate::refusal::{AffiliateError, AffiliateNoun, ConflictReason};

/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 32;

impl Ledger {
    /// Approves a draft that is still as the owner saw it: its number of changes, and what it comes to.
    ///
    /// # Errors
    /// It is no draft, or another one than was seen, or nobody is left in it; [`Refusal`].
    pub async fn approve_run(
        &self,
        (account, id): (AccountId, PayoutRunId),
        (rev, totals): (u64, &BTreeMap<Currency, i64>),
        beside: ExtendCommit<'_, PayoutRun>,
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
                // Whoever comes first helps.
                while self.filter_step((account, id)).await? == StepOutcome::More {}
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
                payout_work::schedule(&mut batch, account, PayoutJob::Run(id), now);
            }
            beside(&mut batch, &after);
            if self.commit(batch).await? {
                return Ok(after);
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// Cancels a draft: its payouts are gone, and its lines are free when this returns. Where it does not come to its
    /// end, the rest is done later.
    ///
    /// # Errors
    /// It is no draft; [`Refusal`].
    pub async fn cancel_run(
        &self,
        (account, id): (AccountId, PayoutRunId),
        seen: Option<&IfMatch>,
        beside: ExtendCommit<'_, PayoutRun>,
    ) -> Result<PayoutRun, AffiliateError> {
        for _ in 0..TRIES_MAX {
            let before = self.get_run(account, id).await?;
            IfMatch::check(seen, before.rev, before.created_at)?;
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
            payout_work::schedule(&mut batch, account, PayoutJob::Run(id), lease_until(now));
            beside(&mut batch, &after);
            if self.commit(batch).await? {
                while self.continue_run(account, id).await? == StepOutcome::More {}
                return self.get_run(account, id).await;
            }
        }
        Err(ConflictReason::Changed.into())
    }

    /// A run that is whole.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn get_run(&self, account: AccountId, id: PayoutRunId) -> Result<PayoutRun, AffiliateError> {
        let found = payout_run::get(self.store(), account, id).await?;
        found.filter(PayoutRun::is_drafted).ok_or(AffiliateError::NotFound(AffiliateNoun::Run))
    }
}
