//! Payout jobs: the node that owns a partition continues unfinished runs, payouts and deletions.

use std::future::pending;
use std::ops::RangeInclusive;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::id::{AccountId, PayoutId, PayoutRunId};
use store::affiliate::payout_job::{self, PayoutJob, QueuedPayoutJob};
use store::affiliate::payout_run;
use store::engine::Batch;

use super::deleted_partner::clean_up_deleted_partner;
use super::filter_methods::filter_step;
use super::reconcile::reconcile_step;
use super::runs::continue_run;
use super::step::StepOutcome;
use super::transfers::{PayoutGateway, Transfers};
use crate::context::Context;
use crate::error::LedgerResult as Result;
use crate::fair_executor::{AccountJob, FairExecutor};
use crate::reconciliation::Reconciler;

const POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(2);
/// Page size of the query for jobs.
const PAGE_JOBS: usize = 200;
/// Jobs that run concurrently, so that a slow processor does not delay other accounts.
const CONCURRENT_JOBS_MAX: usize = 32;
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

/// The processor as the jobs need it.
pub trait PayoutProcessor: PayoutGateway + Reconciler {}

impl<T: PayoutGateway + Reconciler> PayoutProcessor for T {}

/// Runs payout jobs.
pub struct PayoutJobs<'a> {
    context: &'a Context,
    processor: &'a dyn PayoutProcessor,
}

impl<'a> PayoutJobs<'a> {
    pub fn new(context: &'a Context, processor: &'a dyn PayoutProcessor) -> Self {
        Self { context, processor }
    }

    pub async fn run_due_jobs(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<JobCounts> {
        let due = self.due_jobs(partitions, now).await?;
        let begin = |job| self.run_job(job);
        Ok(JobCounts::from_results(
            FairExecutor::new(CONCURRENT_JOBS_MAX, CONCURRENT_JOBS_PER_ACCOUNT_MAX).run(due, begin, pending()).await,
        ))
    }

    async fn due_jobs(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<Vec<AccountJob<PayoutJob>>> {
        let (mut due, mut after) = (Vec::new(), None::<QueuedPayoutJob>);
        loop {
            let found = payout_job::list(&self.context.store, partitions.clone(), after.as_ref(), PAGE_JOBS).await?;
            let is_last = found.len() < PAGE_JOBS;
            due.extend(found.iter().filter(|item| item.due <= now).map(|item| (item.account, item.work)));
            after = found.into_iter().next_back();
            if is_last {
                return Ok(due);
            }
        }
    }

    /// Runs a job and logs its error. Returns true on success.
    fn run_job(&self, (account, work): AccountJob<PayoutJob>) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let done = match work {
                PayoutJob::Run(id) => self.continue_run_job(account, id).await,
                PayoutJob::Payout(id) => self.propagate_to_end(account, id).await,
                PayoutJob::Partner(id) => clean_up_deleted_partner(self.context, account, id).await,
            };
            done.inspect_err(
                |fault| store::warn_unless_away!(self.context.store, %account, ?work, %fault, "payout job failed"),
            )
            .is_ok()
        })
    }

    async fn propagate_to_end(&self, account: AccountId, id: PayoutId) -> Result<()> {
        while self.context.propagate_payout(account, id).await? == StepOutcome::More {}
        Ok(())
    }

    async fn continue_run_job(&self, account: AccountId, id: PayoutRunId) -> Result<()> {
        let run = payout_run::get(&self.context.store, account, id).await?;
        match run {
            Some(run) if run.needs_method_filter() => {
                while filter_step(self.context, account, id).await? == StepOutcome::More {}
                Ok(())
            }
            Some(run) if !run.is_reconciled() => {
                // Without an answer the job waits for its next turn.
                while reconcile_step(self.context, account, id, self.processor)
                    .await?
                    .is_some_and(|next| next <= self.context.now())
                {}
                Ok(())
            }
            Some(run) if run.phase.is_some() => {
                while continue_run(self.context, account, id).await? == StepOutcome::More {}
                Ok(())
            }
            Some(run) if run.is_approved() => {
                Transfers::new(self.context, self.processor).transfer_due_payouts(account, id).await.map(|_| ())
            }
            run => {
                let mut batch = Batch::progress();
                // Conflicts if another commit has given the run more work.
                run.iter().for_each(|run| payout_run::check_unchanged(&mut batch, run));
                payout_job::delete(&mut batch, account, PayoutJob::Run(id));
                self.context.commit(batch).await?;
                Ok(())
            }
        }
    }

    /// Runs the due jobs of this node until dropped.
    pub(crate) fn run(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut lanes = FairExecutor::new(CONCURRENT_JOBS_MAX, CONCURRENT_JOBS_PER_ACCOUNT_MAX);
            loop {
                let now = self.context.now();
                let mut due = Vec::new();
                for partitions in self.context.leases.owned_ranges() {
                    match self.due_jobs(partitions, now).await {
                        Ok(further) => due.extend(further),
                        Err(fault) => {
                            store::warn_unless_away!(self.context.store, %fault, "cannot list due payout jobs")
                        }
                    }
                }
                let next = now.checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
                let begin = |job| self.run_job(job);
                lanes.run(due, begin, self.context.clock.sleep_until(next)).await;
                if lanes.is_idle() {
                    self.context.clock.sleep_until(next).await;
                }
            }
        })
    }
}
