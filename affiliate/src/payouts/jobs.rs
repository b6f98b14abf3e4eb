//! Payout jobs: the node that owns a partition continues unfinished runs, payouts and deletions.

use std::future::pending;
use std::ops::RangeInclusive;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mail::id::{AccountId, PayoutId, PayoutRunId};
use store::affiliate::payout_job::{self, PayoutJob, QueuedPayoutJob};
use store::affiliate::payout_run;
use store::engine::Batch;

use super::StepOutcome;
use super::transfers::PayoutGateway;
use crate::fair_executor::{AccountJob, FairExecutor};
use crate::ledger::{Ledger, LedgerError};
use crate::reconciliation::Reconciler;
use crate::service::AffiliateService;

/// Poll interval.
const POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(2);
/// Page size of the query for jobs.
const PAGE_JOBS: usize = 200;
/// Jobs that run concurrently, so that a slow processor does not delay other accounts.
const CONCURRENT_JOBS_MAX: usize = 32;
/// Concurrent jobs of one account.
const CONCURRENT_JOBS_PER_ACCOUNT_MAX: usize = 2;

/// Results of the due jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub done: usize,
    /// Jobs that failed; they are retried.
    pub failed: usize,
}

impl JobCounts {
    fn from_results(done: Vec<bool>) -> Self {
        let failed = done.iter().filter(|is_done| !**is_done).count();
        Self { done: done.len().saturating_sub(failed), failed }
    }
}

impl Ledger {
    /// Runs the due jobs of these partitions.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn run_due_jobs(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        processor: &(impl PayoutGateway + Reconciler),
    ) -> Result<JobCounts, LedgerError> {
        let due = self.due_jobs(partitions, now).await?;
        let begin = |job| self.run_job(job, processor);
        Ok(JobCounts::from_results(
            FairExecutor::new(CONCURRENT_JOBS_MAX, CONCURRENT_JOBS_PER_ACCOUNT_MAX).run(due, begin, pending()).await,
        ))
    }

    async fn due_jobs(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<Vec<AccountJob<PayoutJob>>, LedgerError> {
        let (mut due, mut after) = (Vec::new(), None::<QueuedPayoutJob>);
        loop {
            let found = payout_job::list(self.store(), partitions.clone(), after.as_ref(), PAGE_JOBS).await?;
            let is_last = found.len() < PAGE_JOBS;
            due.extend(found.iter().filter(|item| item.due <= now).map(|item| (item.account, item.work)));
            after = found.into_iter().next_back();
            if is_last {
                return Ok(due);
            }
        }
    }

    /// Runs a job and logs its error. Returns true on success.
    async fn run_job(
        &self,
        (account, work): AccountJob<PayoutJob>,
        processor: &(impl PayoutGateway + Reconciler),
    ) -> bool {
        let done = match work {
            PayoutJob::Run(id) => self.continue_run_job(account, id, processor).await,
            PayoutJob::Payout(id) => self.propagate_to_end(account, id).await,
            PayoutJob::Partner(id) => self.clean_up_deleted_partner(account, id).await,
        };
        done.inspect_err(|fault| store::warn_unless_away!(self.store(), %account, ?work, %fault, "payout job failed"))
            .is_ok()
    }

    async fn propagate_to_end(&self, account: AccountId, id: PayoutId) -> Result<(), LedgerError> {
        while self.propagate_payout(account, id).await? == StepOutcome::More {}
        Ok(())
    }

    async fn continue_run_job(
        &self,
        account: AccountId,
        id: PayoutRunId,
        processor: &(impl PayoutGateway + Reconciler),
    ) -> Result<(), LedgerError> {
        let run = payout_run::get(self.store(), account, id).await?;
        match run {
            Some(run) if run.needs_method_filter() => {
                while self.filter_step(account, id).await? == StepOutcome::More {}
                Ok(())
            }
            Some(run) if !run.is_reconciled() => {
                // Without an answer the job waits for its next turn.
                while self.reconcile_step(account, id, processor).await?.is_some_and(|next| next <= self.now()) {}
                Ok(())
            }
            Some(run) if run.phase.is_some() => {
                while self.continue_run(account, id).await? == StepOutcome::More {}
                Ok(())
            }
            Some(run) if run.is_approved() => self.transfer_due_payouts(account, id, processor).await.map(|_| ()),
            run => {
                let mut batch = Batch::progress();
                // Conflicts if another commit has given the run more work.
                run.iter().for_each(|run| payout_run::check_unchanged(&mut batch, run));
                payout_job::delete(&mut batch, account, PayoutJob::Run(id));
                self.commit(batch).await?;
                Ok(())
            }
        }
    }
}

impl AffiliateService {
    /// Runs the due jobs of this node until dropped.
    pub fn run_payout_jobs(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut lanes = FairExecutor::new(CONCURRENT_JOBS_MAX, CONCURRENT_JOBS_PER_ACCOUNT_MAX);
            loop {
                let now = self.now();
                let mut due = Vec::new();
                for partitions in self.intake.partition_ranges() {
                    match self.ledger().due_jobs(partitions, now).await {
                        Ok(further) => due.extend(further),
                        Err(fault) => {
                            store::warn_unless_away!(self.store(), %fault, "cannot list due payout jobs")
                        }
                    }
                }
                let next = now.checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
                let begin = |job| async move { self.ledger().run_job(job, self).await };
                lanes.run(due, begin, self.intake.clock().sleep_until(next)).await;
                if lanes.is_idle() {
                    self.intake.clock().sleep_until(next).await;
                }
            }
        })
    }
}
