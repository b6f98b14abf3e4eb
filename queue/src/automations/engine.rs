//! The engine: goes through what is due in our partitions.
//!
//! ```text
//! partition due? ─► slices of due work ─► in turns by account, side by side: run ─► step ─[ commit ]─► next step,
//! while it is due
//! ```
//!
//! Memory holds one time for each partition and slices of work, however many runs wait. What changes under
//! our hands conflicts, and is read again.

use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::automation::context::RunContext;
use mail::automation::definition::StepAction;
use mail::automation::run::{AutomationRun, CancelSource};
use mail::automation::{Automation, AutomationStatus};
use mail::id::{AccountId, AutomationId};
use store::engine::{Batch, CommitError, ReadError};
use store::run::due::DueWork;
use store::run::{RunKey, StoredRun};

use super::send::StepCommit;
use super::step::{self, RunUpdate};
use super::turns;
use super::{AutomationEngine, corrupt};
use crate::accept::Intake;

/// Work of a partition that is read at once: what is due the longest, and as much of what became due last.
const PAGE_WORK: usize = 256;
/// Work of one round. What was read and has no place in it is read again.
const ROUND_WORK: usize = 4_096;
/// Runs and jobs that go on side by side: enough to share commits.
const CONCURRENCY: usize = 128;
/// How soon is tried again what the store could not take.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often all partitions are looked at: other nodes put work into them.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Steps of a run in a row, conflicts counted.
const STEPS_IN_A_ROW_MAX: usize = 100;
/// Changes of an automation's counts that lie beside the total before they are folded.
const FOLD_THRESHOLD: usize = 1_000;
/// One run in so many has the counts looked at.
const FOLD_CHECK_EVERY: u64 = 200;

impl Intake {
    pub(crate) async fn run_automations(&self) {
        let worker = &self.worker;
        while !worker.stop.is_cancelled() {
            // What a restored store would do again waits with its queue: a run may have gone on after the backup.
            worker.wait_until_released().await;
            let (leases, changed) = (worker.leases.changed(), worker.trigger_index.timers.changed());
            let (due, next) = worker.trigger_index.timers.due(&worker.leases.active(), self.clock().now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock().sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = tokio::time::sleep(POLL_INTERVAL), if self.store().is_shared() => {
                        worker.trigger_index.timers.reset_all();
                    }
                    () = worker.stop.cancelled() => {}
                }
                continue;
            }
            self.process_partitions(&due).await;
        }
    }

    /// Goes through all that is due in our partitions, until nothing is.
    pub async fn run_due_automations(&self) {
        loop {
            let (mut due, now) = (Vec::new(), self.clock().now());
            for partition in self.worker.leases.active() {
                let first = store::run::due::list_due(self.store(), partition, now, 1).await;
                if first.is_ok_and(|first| !first.due.is_empty()) {
                    due.push(partition);
                }
            }
            if due.is_empty() {
                return;
            }
            self.process_partitions(&due).await;
        }
    }

    /// Goes through some of what is due in these partitions; should more be due, their turn comes again.
    async fn process_partitions(&self, partitions: &[u16]) {
        let mut work = Vec::new();
        let now = self.clock().now();
        for partition in partitions {
            let appointments = &self.worker.trigger_index.timers;
            appointments.begin_scan(*partition);
            match store::run::due::list_oldest_and_newest_due(self.store(), *partition, now, PAGE_WORK).await {
                Ok(first) => {
                    if let Some(next) = if first.more { Some(now) } else { first.later } {
                        appointments.schedule(*partition, next);
                    }
                    work.extend(first.due.into_iter().map(|due| (*partition, due)));
                }
                Err(error) => {
                    store::warn_unless_away!(self.store(), %error, "what automations have to do cannot be read at the moment");
                    appointments.schedule(*partition, self.worker.after(RETRY_DELAY));
                }
            }
        }
        let (work, left) = turns::round_robin(work, ROUND_WORK);
        left.iter().for_each(|(partition, _)| self.worker.trigger_index.timers.schedule(*partition, now));
        let mut done = futures_util::stream::iter(work)
            .map(|(partition, due)| async move { (partition, self.process_due(partition, due).await) })
            .buffer_unordered(CONCURRENCY);
        let mut any = false;
        while let Some((partition, outcome)) = done.next().await {
            any |= matches!(outcome, Ok(StepCommit::Committed));
            if !matches!(outcome, Ok(StepCommit::Committed | StepCommit::Conflict)) {
                if let Err(error) = outcome {
                    store::warn_unless_away!(self.store(), %error, "an automation cannot go on at the moment");
                }
                self.worker.trigger_index.timers.schedule(partition, self.worker.after(RETRY_DELAY));
            }
        }
        if any {
            self.worker.outbox_wakeup.notify_one();
        }
    }

    async fn process_due(&self, partition: u16, (at, due): (Timestamp, DueWork)) -> Result<StepCommit, ReadError> {
        let about = match due {
            DueWork::Step(about) => about,
            DueWork::Job(job) => return self.run_job(&job).await,
            DueWork::Damaged(key) => {
                tracing::error!("a row of what automations have to do is damaged; it is taken away");
                let mut batch = Batch::progress();
                store::run::due::remove_damaged(&mut batch, key);
                return self.commit_step(batch).await;
            }
        };
        match self.advance_run(about).await {
            // Nobody could ever go on with it, and it would be looked at for ever.
            Err(ReadError::Corrupt(error)) => {
                tracing::error!(%error, run.id = %about.2, "a run cannot be read; it is left where it is");
                self.remove_stale(partition, at, about).await
            }
            Ok(None) => self.remove_stale(partition, at, about).await,
            Ok(Some(tried)) => Ok(tried),
            Err(error) => Err(error),
        }
    }

    async fn remove_stale(&self, partition: u16, at: Timestamp, about: RunKey) -> Result<StepCommit, ReadError> {
        let mut batch = Batch::progress();
        store::run::due::remove_stale_step(&mut batch, partition, at, about);
        self.commit_step(batch).await
    }

    /// Goes on with a run for as long as something of it is due. None when there is no such run, or nothing of
    /// it is due.
    async fn advance_run(&self, about: RunKey) -> Result<Option<StepCommit>, ReadError> {
        let mut outcome = None;
        for _ in 0..STEPS_IN_A_ROW_MAX {
            let Some((found, sealed)) = store::run::get_with_sealed(self.store(), about).await? else {
                return Ok(outcome);
            };
            let run = &found.run;
            if !run.status.is_active() || run.due.is_none() {
                return Ok(outcome);
            }
            if run.due > Some(self.clock().now()) {
                if let Some(due) = run.due {
                    self.worker.trigger_index.timers.schedule(run.partition, due);
                }
                return Ok(Some(outcome.unwrap_or(StepCommit::Conflict)));
            }
            let tried = self.run_step(&found, sealed.as_deref()).await?;
            if matches!(tried, StepCommit::Retry) || self.worker.stop.is_cancelled() {
                return Ok(Some(tried));
            }
            outcome = Some(tried);
        }
        // Somebody keeps changing it: later.
        Ok(Some(StepCommit::Retry))
    }

    async fn run_step(&self, found: &StoredRun, sealed: Option<&[u8]>) -> Result<StepCommit, ReadError> {
        let (run, now) = (&found.run, self.clock().now());
        let automation = store::automation::get(self.store(), run.account, run.automation).await?;
        let Some(automation) = automation else { return self.cancel_orphaned_run(found, now).await };
        match automation.automation.status {
            AutomationStatus::Active => {}
            AutomationStatus::Archived => return self.cancel_orphaned_run(found, now).await,
            AutomationStatus::Paused | AutomationStatus::Draft => {
                let (mut held, mut batch) = (run.clone(), Batch::progress());
                held.hold();
                // Activated this very moment, it would not be found among those that are held.
                automation.check(&mut batch);
                store::run::update(&mut batch, found, &held);
                return self.commit_step(batch).await;
            }
        }
        let version = (run.automation, run.version);
        let definition = self.automations().definition(run.account, version).await?;
        let definition = definition.ok_or_else(|| corrupt("the version that a run follows is gone"))?;
        let known = sealed.ok_or_else(|| corrupt("what a run knows is gone"));
        let known: RunContext = self.automations().unseal_json(&run.id.to_bytes(), known?)?;
        let Some(action) = definition.steps.get(run.index).map(|step| &step.action) else {
            return self.commit_run_update(found, step::fail_step(run.clone(), "there is no such step", now)).await;
        };
        let is_sending = matches!(action, StepAction::SendEmail(_) | StepAction::Sms(_));
        if is_sending && self.worker.is_account_held(run.account) {
            return self.commit_run_update(found, step::hold_step(run.clone(), now)).await;
        }
        let moved = match action {
            StepAction::SendEmail(email) => return self.run_email_step(found, email, &known).await,
            StepAction::Sms(sms) => return self.run_sms_step(found, sms, &known).await,
            StepAction::Delay(delay) => step::delay_step(run.clone(), delay, &known, now),
            StepAction::WaitForEvent(wait) => step::wait_step(run.clone(), wait, &known, now),
            StepAction::Condition(gate) => step::condition_step(run.clone(), gate, &known, now),
        };
        self.commit_run_update(found, moved).await
    }

    /// Its automation is over.
    async fn cancel_orphaned_run(&self, found: &StoredRun, now: Timestamp) -> Result<StepCommit, ReadError> {
        let mut run = found.run.clone();
        run.cancel(CancelSource::Api, now);
        self.commit_run_update(found, RunUpdate { run, facts: Vec::new(), known: None }).await
    }

    /// Commits a run as it is after a step.
    pub(super) async fn commit_run_update(&self, found: &StoredRun, moved: RunUpdate) -> Result<StepCommit, ReadError> {
        let mut batch = Batch::progress();
        self.automations().write_run_update(found, &moved, self.clock().now(), &mut batch);
        let tried = self.commit_step(batch).await?;
        if let (StepCommit::Committed, Some(due)) = (&tried, moved.run.due) {
            // Its partition has more to do then, whatever else is due there.
            self.worker.trigger_index.timers.schedule(moved.run.partition, due);
        }
        if !moved.run.status.is_active() && self.worker.entropy.u64().is_multiple_of(FOLD_CHECK_EVERY) {
            self.fold_run_counts((moved.run.account, moved.run.automation)).await?;
        }
        Ok(tried)
    }

    pub(super) async fn commit_step(&self, batch: Batch) -> Result<StepCommit, ReadError> {
        match self.store().commit(batch).await {
            Ok(()) => {
                self.worker.outbox_wakeup.notify_one();
                Ok(StepCommit::Committed)
            }
            Err(CommitError::Conflict { .. }) => Ok(StepCommit::Conflict),
            Err(error) => {
                store::warn_unless_away!(self.store(), %error, "what automations do cannot be written at the moment");
                Ok(StepCommit::Retry)
            }
        }
    }

    /// Folds the counts of an automation, should many changes lie beside them.
    async fn fold_run_counts(&self, of: (AccountId, AutomationId)) -> Result<(), ReadError> {
        let counted = store::run::counts::read(self.store(), of).await?;
        if counted.changes() >= FOLD_THRESHOLD {
            let mut batch = Batch::progress();
            counted.fold(&mut batch, of);
            self.commit_step(batch).await?;
        }
        Ok(())
    }

    /// How many runs an automation has in each state.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_runs(&self, automation: &Automation) -> Result<mail::automation::RunCounts, ReadError> {
        let of = (automation.account, automation.id);
        loop {
            let counted = store::run::counts::read(self.store(), of).await?;
            if !counted.more {
                return Ok(counted.counts);
            }
            // More than one look shows: what was seen is folded, and the rest is looked at.
            let mut batch = Batch::progress();
            counted.fold(&mut batch, of);
            if matches!(self.commit_step(batch).await?, StepCommit::Retry) {
                return Ok(counted.counts);
            }
        }
    }

    /// Ends a run, as its customer wishes. None when there is no such run; as it is, when it is over.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn cancel_run(&self, about: RunKey) -> Result<Option<AutomationRun>, ReadError> {
        for _ in 0..STEPS_IN_A_ROW_MAX {
            let Some(found) = store::run::get(self.store(), about).await? else { return Ok(None) };
            if !found.run.status.is_active() {
                return Ok(Some(found.run));
            }
            let mut run = found.run.clone();
            run.cancel(CancelSource::Api, self.clock().now());
            let moved = RunUpdate { run: run.clone(), facts: Vec::new(), known: None };
            match self.commit_run_update(&found, moved).await? {
                StepCommit::Committed => return Ok(Some(run)),
                StepCommit::Conflict => {}
                StepCommit::Retry => break,
            }
        }
        Err(corrupt("the run cannot be changed at the moment"))
    }
}

impl AutomationEngine {
    /// Writes a run as it is after a step. The commit is fenced: it conflicts when the run's partition is another
    /// node's by now, as far as we have it.
    pub(super) fn write_run_update(&self, found: &StoredRun, moved: &RunUpdate, now: Timestamp, batch: &mut Batch) {
        let run = &moved.run;
        let _ours = self.0.worker.leases.fence_partitions(batch, std::iter::once(run.partition));
        store::run::update(batch, found, run);
        if let Some(known) = &moved.known {
            match self.seal_context(run.id, known) {
                Ok(sealed) => store::run::put_sealed(batch, store::run::run_key(run), sealed),
                // The cipher fails when the system has no randomness: what was known before stays.
                Err(error) => tracing::error!(%error, run.id = %run.id, "what a run knows cannot be sealed"),
            }
        }
        self.record_facts(batch, run, &moved.facts, now);
    }
}
