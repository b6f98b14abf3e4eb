//! Payout runs: begun, drafted, approved or cancelled by the owner.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use model::affiliate::money::Currency;
use model::affiliate::payout::{PayoutRun, PayoutRunPhase, PayoutRunStatus, SkippedPartner};
use model::id::{AccountId, PayoutId, PayoutRunId};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{payout, payout_run, program};
use store::engine::{Batch, ReadError};
use store::retry_on_conflict;

use super::draft::draft_step;
use super::filter_methods::filter_step;
use super::release_lines::{delete_empty_run, release_run_payouts};
use super::step::{StepOutcome, lease_until};
use super::view::PayoutView;
use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, LedgerError, Result};
use crate::if_match::IfMatch;

/// Maximum skipped partners returned when the run has no payouts.
const SKIPPED_MAX: usize = 10_000;

#[derive(Debug, Clone)]
pub struct DraftResult {
    /// `None` if no partner is to be paid.
    pub run: Option<PayoutRun>,
    /// Without a run: the partners who are not paid, with the reason.
    pub skipped: Vec<SkippedPartner>,
}

impl Context {
    /// Creates a run of everything earned by the cutoff. A job or [`Self::finish_draft`] drafts it.
    ///
    /// # Errors
    /// `DraftOpen` if a draft is open; `NotSetUp`; the store failed.
    pub async fn begin_run(
        &self,
        account: AccountId,
        cutoff: Option<Timestamp>,
        extend_commit: ExtendCommit<'_, PayoutRunId>,
    ) -> Result<PayoutRunId> {
        retry_on_conflict(|| async {
            let program = program::get(&self.store, account).await?.ok_or(AffiliateError::NotSetUp)?;
            if let Some(open) = payout_run::find_open(&self.store, account).await? {
                if open.phase != Some(PayoutRunPhase::Sweeping) {
                    return Err(ConflictReason::DraftOpen.into());
                }
                continue_run(self, account, open.id).await?;
                return Ok(None);
            }
            let now = self.now();
            // Newer than all existing payouts, whatever other nodes' clocks show: lists rely on it.
            let newest = payout::newest_id(&self.store, account).await?.map(PayoutId::born_at);
            let after = newest.and_then(|newest| newest.checked_add(SignedDuration::from_millis(1)).ok());
            let created_at = after.map_or(now, |after| after.max(now));
            let run = PayoutRun {
                id: PayoutRunId::new(created_at, self.random()),
                account,
                status: PayoutRunStatus::Draft,
                phase: Some(PayoutRunPhase::Drafting { after: None, filling: None }),
                sifted: None,
                is_partial: false,
                cutoff: cutoff.unwrap_or(now),
                totals: BTreeMap::new(),
                uncompared: 0,
                payouts: 0,
                open: 0,
                transfers: 0,
                rev: 1,
                created_at,
                approved_at: None,
                completed_at: None,
            };
            let mut batch = Batch::intake();
            program::check_unchanged(&mut batch, &program);
            payout_run::create(&mut batch, &run);
            payout_job::schedule(&mut batch, account, PayoutJob::Run(run.id), lease_until(now));
            extend_commit(&mut batch, &run.id);
            Ok(self.commit(batch).await?.then_some(run.id))
        })
        .await
    }

    /// Completes the drafting of a run. A complete run is returned as it is.
    pub async fn finish_draft(&self, account: AccountId, run: PayoutRunId) -> Result<DraftResult, LedgerError> {
        let mut skipped = Vec::new();
        loop {
            let Some(found) = payout_run::get(&self.store, account, run).await? else {
                return Ok(DraftResult { run: None, skipped });
            };
            match found.phase {
                Some(PayoutRunPhase::Drafting { .. }) => {}
                Some(PayoutRunPhase::Voiding) => {
                    if skipped.is_empty() {
                        skipped = payout_run::list_skipped(&self.store, account, run, None, SKIPPED_MAX).await?;
                    }
                }
                _ if found.needs_method_filter() => {
                    filter_step(self, account, run).await?;
                    continue;
                }
                _ => return Ok(DraftResult { run: Some(found), skipped: Vec::new() }),
            }
            continue_run(self, account, run).await?;
        }
    }

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
    ) -> Result<PayoutRun> {
        retry_on_conflict(|| async {
            let before = self.get_run(account, id).await?;
            if before.status != PayoutRunStatus::Draft {
                return Err(ConflictReason::NoDraft.into());
            }
            if !before.is_reconciled() {
                return Err(ConflictReason::RunCompared.into());
            }
            if before.sifted.is_some() {
                // Finish the method filter first.
                while filter_step(self, account, id).await? == StepOutcome::More {}
                return Ok(None);
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
            Ok(self.commit(batch).await?.then_some(after))
        })
        .await
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
    ) -> Result<PayoutRun> {
        retry_on_conflict::<_, AffiliateError, _>(|| async {
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
            Ok(self.commit(batch).await?.then_some(()))
        })
        .await?;
        while continue_run(self, account, id).await? == StepOutcome::More {}
        self.get_run(account, id).await
    }

    /// Returns a run whose drafting is complete.
    pub async fn get_run(&self, account: AccountId, id: PayoutRunId) -> Result<PayoutRun> {
        let found = payout_run::get(&self.store, account, id).await?;
        found.filter(PayoutRun::is_drafted).ok_or(AffiliateError::NotFound(AffiliateNoun::Run))
    }

    /// Lists runs, newest first.
    pub async fn list_runs(
        &self,
        account: AccountId,
        wanted: ListPageRequest,
    ) -> Result<ListPage<PayoutRun>, ReadError> {
        payout_run::list(&self.store, account, wanted).await
    }

    /// Lists payouts of a run, oldest first, reading at most `limit`. Returns the cursor of the next page as well.
    pub async fn list_payouts_of_run(
        &self,
        run: &PayoutRun,
        after: Option<PayoutId>,
        limit: usize,
    ) -> Result<(Vec<PayoutView>, Option<PayoutId>), ReadError> {
        let found = payout::list_by_run(&self.store, run.account, run.id, after, limit).await?;
        let next = found.last().map(|last| last.id).filter(|_| found.len() == limit);
        Ok((found.into_iter().filter_map(|payout| PayoutView::from_payout(payout, run)).collect(), next))
    }

    /// Lists partners skipped by a run.
    pub async fn list_skipped(
        &self,
        run: &PayoutRun,
        after: Option<&SkippedPartner>,
        limit: usize,
    ) -> Result<Vec<SkippedPartner>, ReadError> {
        payout_run::list_skipped(&self.store, run.account, run.id, after, limit).await
    }
}

/// Continues drafting, releasing or deleting a run by one step. Conflicts are retried: the next attempt sees the
/// change.
pub(crate) async fn continue_run(
    context: &Context,
    account: AccountId,
    id: PayoutRunId,
) -> Result<StepOutcome, LedgerError> {
    retry_on_conflict(|| async {
        let Some(run) = payout_run::get(&context.store, account, id).await? else {
            return Ok(Some(StepOutcome::Done));
        };
        let done = match run.phase.clone() {
            None => return Ok(Some(StepOutcome::Done)),
            Some(PayoutRunPhase::Drafting { after, filling }) => {
                context.commit(draft_step(context, run, after, filling).await?).await?
            }
            // Reconciling needs a client of the processor; see `reconcile_step`.
            Some(PayoutRunPhase::Comparing { .. }) => return Ok(Some(StepOutcome::Done)),
            Some(PayoutRunPhase::Voiding) => delete_empty_run(context, &run).await?,
            Some(PayoutRunPhase::Sweeping) => release_run_payouts(context, &run).await?,
        };
        Ok(done.then_some(StepOutcome::More))
    })
    .await
}
