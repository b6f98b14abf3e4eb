//! The payouts of a program: listed, and marked paid or failed by hand.

use std::collections::BTreeMap;

use model::affiliate::payout::{Payout, PayoutRunStatus, PayoutState, PayoutStatus};
use model::id::{AccountId, PartnerId, PayoutId, PayoutRunId};
use store::affiliate::listing::{ListPage, ListPageRequest};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{payout, payout_run};
use store::engine::{Batch, ReadError};
use store::retry_on_conflict;

use super::step::StepOutcome;
use super::view::PayoutView;
use crate::context::{Context, ExtendCommit};
use crate::error::{AffiliateError, AffiliateNoun, ConflictReason, ForbiddenReason, LedgerError, Result};
use crate::if_match::IfMatch;
use crate::ledger::commit_batch::build_batch;
use crate::ledger::recompute::recompute_all;
use crate::ledger::settlement::{PayoutOutcome, propagate_to_lines, settle_payout};
use crate::ledger::unit_of_work::UnitOfWork;

/// Filter of a list of payouts.
#[derive(Debug, Clone, Default)]
pub struct PayoutQuery {
    /// Any status if empty.
    pub statuses: Vec<PayoutStatus>,
    pub partner: Option<PartnerId>,
    pub run: Option<PayoutRunId>,
}

fn states(statuses: &[PayoutStatus]) -> Vec<PayoutState> {
    let state = |status: &PayoutStatus| match status {
        PayoutStatus::Draft | PayoutStatus::Processing => PayoutState::Open,
        PayoutStatus::Paid => PayoutState::Paid,
        PayoutStatus::Failed => PayoutState::Failed,
    };
    let mut states: Vec<_> = statuses.iter().map(state).collect();
    states.sort_unstable();
    states.dedup();
    states
}

impl Context {
    /// Returns a payout as it is visible to API clients.
    pub async fn get_payout(&self, account: AccountId, id: PayoutId) -> Result<PayoutView> {
        let unknown = || AffiliateError::NotFound(AffiliateNoun::Payout);
        let payout = payout::get(&self.store, account, id).await?.ok_or_else(unknown)?;
        let run = payout_run::get(&self.store, account, payout.run).await?;
        run.and_then(|run| PayoutView::from_payout(payout, &run)).ok_or_else(unknown)
    }

    /// Lists payouts, newest first.
    pub async fn list_payouts(
        &self,
        account: AccountId,
        query: &PayoutQuery,
        wanted: ListPageRequest,
    ) -> Result<ListPage<PayoutView>, ReadError> {
        // At most one run is a draft, and it is newer than all payouts of other runs. So the range of ids separates
        // drafts from payouts in progress.
        let open = payout_run::find_open(&self.store, account).await?;
        let started = open.as_ref().map(|run| PayoutId::new(run.created_at, 0).to_bytes());
        let wanted = match (query.statuses.as_slice(), started) {
            ([PayoutStatus::Draft], Some(started)) => ListPageRequest { from: Some(started), ..wanted },
            ([PayoutStatus::Draft], None) => return Ok(ListPage { rows: Vec::new(), next: None }),
            ([PayoutStatus::Processing], Some(started)) => {
                ListPageRequest { before: Some(wanted.before.map_or(started, |before| before.min(started))), ..wanted }
            }
            _ => wanted,
        };
        let fits = |payout: &Payout| {
            let payout_run = open.as_ref().filter(|open| open.id == payout.run);
            let status = payout.status(payout_run.map_or(PayoutRunStatus::Approved, |open| open.status));
            status.is_some_and(|status| query.statuses.is_empty() || query.statuses.contains(&status))
        };
        let mut states = states(&query.statuses);
        if states.is_empty() {
            states = vec![PayoutState::Open, PayoutState::Paid, PayoutState::Failed];
        }
        let filter = payout::PayoutFilter { run: query.run, partner: query.partner, states };
        let ListPage { rows, next } = payout::list(&self.store, account, &filter, wanted, &fits).await?;
        // A run may have changed since the query; compute each status from its current run.
        let mut rows = self.to_payout_views(account, rows).await?;
        rows.retain(|view| query.statuses.is_empty() || query.statuses.contains(&view.status));
        Ok(ListPage { rows, next })
    }

    /// Adds the visible status to payouts, and drops those that have none.
    pub(super) async fn to_payout_views(
        &self,
        account: AccountId,
        payouts: Vec<Payout>,
    ) -> Result<Vec<PayoutView>, ReadError> {
        let mut ids: Vec<PayoutRunId> = payouts.iter().map(|payout| payout.run).collect();
        ids.sort_unstable();
        ids.dedup();
        let runs = payout_run::get_each(&self.store, account, &ids).await?;
        let runs: BTreeMap<_, _> = runs.into_iter().flatten().map(|run| (run.id, run)).collect();
        let to_view = |payout: Payout| {
            let run = runs.get(&payout.run)?;
            PayoutView::from_payout(payout, run)
        };
        Ok(payouts.into_iter().filter_map(to_view).collect())
    }

    /// Marks a payout as paid by hand, with a reference as proof. Idempotent for the same reference.
    ///
    /// # Errors
    /// `RunNotApproved`; `PaidOtherwise` with another reference; `PayoutSettled` if it failed; `ProcessorPays` for a
    /// transfer; `if_match` is stale; `NotFound`; the store failed.
    pub async fn mark_payout_paid(
        &self,
        account: AccountId,
        id: PayoutId,
        reference: &str,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, PayoutView>,
    ) -> Result<PayoutView> {
        retry_on_conflict(|| async {
            let view = self.get_payout(account, id).await?;
            IfMatch::check(if_match, view.rev(), view.payout.updated_at)?;
            if !view.payout.method.is_manual() {
                return Err(ForbiddenReason::ProcessorPays.into());
            }
            match view.status {
                PayoutStatus::Draft => return Err(ConflictReason::RunNotApproved.into()),
                PayoutStatus::Failed => return Err(ConflictReason::PayoutSettled.into()),
                PayoutStatus::Paid if view.payout.reference.as_deref() == Some(reference) => {
                    let mut batch = Batch::progress();
                    payout::check_unchanged(&mut batch, &view.payout);
                    extend_commit(&mut batch, &view);
                    if batch.is_empty() || self.commit(batch).await? {
                        return Ok(Some(view));
                    }
                    return Ok(None);
                }
                PayoutStatus::Paid => return Err(ConflictReason::PaidOtherwise.into()),
                PayoutStatus::Processing => {}
            }
            let outcome = PayoutOutcome::Paid { reference: Some(reference.to_owned()), transfer: None };
            self.settle_open_payout(&view, outcome, extend_commit).await
        })
        .await
    }

    /// Marks a payout as failed: its lines return to the next run.
    ///
    /// # Errors
    /// `PayoutSettled` unless it is in progress; `TransferUnderWay` while a transfer has no answer; `if_match` is
    /// stale; `NotFound`; the store failed.
    pub async fn fail_payout(
        &self,
        account: AccountId,
        id: PayoutId,
        reason: &str,
        if_match: Option<&IfMatch>,
        extend_commit: ExtendCommit<'_, PayoutView>,
    ) -> Result<PayoutView> {
        retry_on_conflict(|| async {
            let view = self.get_payout(account, id).await?;
            IfMatch::check(if_match, view.rev(), view.payout.updated_at)?;
            if view.status != PayoutStatus::Processing {
                return Err(ConflictReason::PayoutSettled.into());
            }
            if view.payout.asking.since.is_some() {
                return Err(ConflictReason::TransferUnderWay.into());
            }
            let outcome = PayoutOutcome::Failed { reason: reason.to_owned(), transfer: None };
            self.settle_open_payout(&view, outcome, extend_commit).await
        })
        .await
    }

    /// Settles a payout that was seen in progress; `None` after a conflict. Updates all its lines before it returns, or
    /// leaves the rest to a job.
    pub(super) async fn settle_open_payout(
        &self,
        before: &PayoutView,
        outcome: PayoutOutcome,
        extend_commit: ExtendCommit<'_, PayoutView>,
    ) -> Result<Option<PayoutView>> {
        let (account, id) = (before.payout.account, before.payout.id);
        let mut work = UnitOfWork::open(self, account).await?;
        let now = work.payouts.get(id).await?;
        if now.as_ref() != Some(&before.payout) {
            return Ok(None);
        }
        let is_failed = matches!(outcome, PayoutOutcome::Failed { .. });
        settle_payout(&mut work, id, outcome).await?;
        Box::pin(recompute_all(&mut work)).await?;
        let Some(payout) = work.payouts.get(id).await? else { return Ok(None) };
        let is_trailing = payout.trail.is_some();
        let status = if is_failed { PayoutStatus::Failed } else { PayoutStatus::Paid };
        let view = PayoutView { payout, status, approved_at: before.approved_at };
        let mut batch = build_batch(work, Batch::progress()).await?;
        extend_commit(&mut batch, &view);
        if !self.commit(batch).await? {
            return Ok(None);
        }
        if is_trailing {
            // The payout is settled already: an error here must not fail the request, because a job continues.
            loop {
                match self.propagate_payout(account, id).await {
                    Ok(StepOutcome::More) => {}
                    Ok(StepOutcome::Done) => break,
                    Err(fault) => {
                        store::warn_unless_away!(self.store, payout = %id, %fault, "payout settled, but its lines are updated later");
                        break;
                    }
                }
            }
        }
        Ok(Some(view))
    }

    /// Updates the next lines of a settled payout.
    pub(super) async fn propagate_payout(&self, account: AccountId, id: PayoutId) -> Result<StepOutcome, LedgerError> {
        retry_on_conflict(|| async {
            let mut work = UnitOfWork::open(self, account).await?;
            let found = work.payouts.get(id).await?;
            if found.is_none_or(|payout| payout.trail.is_none() || payout.state == PayoutState::Open) {
                let mut batch = Batch::progress();
                payout_job::delete(&mut batch, account, PayoutJob::Payout(id));
                self.commit(batch).await?;
                return Ok(Some(StepOutcome::Done));
            }
            propagate_to_lines(&mut work, id).await?;
            Box::pin(recompute_all(&mut work)).await?;
            let is_done = work.payouts.load(id).await?.is_none_or(|payout| payout.trail.is_none());
            work.payouts.schedule_job(PayoutJob::Payout(id), (!is_done).then(|| self.now()));
            Ok(self.commit(build_batch(work, Batch::progress()).await?).await?.then_some(if is_done {
                StepOutcome::Done
            } else {
                StepOutcome::More
            }))
        })
        .await
    }
}
