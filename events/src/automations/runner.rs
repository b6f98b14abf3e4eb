//! The automation engine: processes the due work of this node's partitions.
//!
//! ```text
//! partition due? ─► pages of due work ─► round-robin by account, concurrently: run ─► step ─[ commit ]─► next step,
//! while it is due
//! ```
//!
//! Memory holds one timer for each partition and one page of work, however many runs wait. A run that changes
//! concurrently causes a commit conflict and is read again.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use model::automation::context::RunContext;
use model::automation::definition::StepAction;
use model::automation::run::{AutomationRun, CancelSource};
use model::automation::{Automation, AutomationStatus};
use model::id::{AccountId, AutomationId, RunId};
use net::limit::round_robin::round_robin;
use queue::intake::{Intake, TemplateRenderer};
use queue::scheduler::destination_queues::DestinationQueues;
use queue::scheduler::pause_state::PauseState;
use queue::services::Services;
use store::automation_run::due_work::{DueWork, DueWorkBatch};
use store::automation_run::{RunKey, StoredRun};
use store::engine::{Batch, CommitError, Key, ReadError};

use super::email_step::StepCommit;
use super::engine::{AutomationEngine, corrupt};
use super::step::{self, RunUpdate};

/// Due work read from a partition at once: this many of the oldest, and this many of the newest.
const PAGE_WORK: usize = 256;
/// Work of one round. The rest is read again in the next round.
const ROUND_WORK: usize = 4_096;
/// Concurrent runs and jobs: enough to share commits.
const CONCURRENCY: usize = 128;
/// Retry delay when the store cannot be read or written, or when a scan read only rows that are left for a newer node.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Delay before a run that cannot be read is tried again.
const CORRUPT_RETRY_DELAY: Duration = Duration::from_secs(10 * 60);
/// Poll interval on a shared store, since other nodes add work to our partitions.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Steps of a run executed in a row, conflicts included.
const STEPS_IN_A_ROW_MAX: usize = 100;
/// Number of counter deltas of an automation at which they are folded into its total.
const FOLD_THRESHOLD: usize = 1_000;
/// The counters are checked after one in this many finished runs.
const FOLD_CHECK_EVERY: u64 = 200;
/// Maximum number of runs whose read error is logged.
const LOGGED_RUNS_MAX: usize = 1_000;

/// Due work with its partition and due time.
type PartitionWork = (u16, (Timestamp, DueWork));

/// By partition, the row after which the next scan continues ([`DueWorkBatch::read_until`]).
type ScanPositions = HashMap<u16, Key>;

/// Advances runs, executes jobs and makes dry runs. Clones share one state.
#[derive(Clone)]
pub struct AutomationRunner {
    pub services: Services,
    /// Accepts the emails of steps.
    pub intake: Arc<Intake>,
    pub templates: Arc<TemplateRenderer>,
    pub engine: AutomationEngine,
    pub queues: Arc<DestinationQueues>,
    pub pause: PauseState,
    /// Runs whose read error was logged.
    pub logged_runs: Arc<Mutex<HashSet<RunId>>>,
}

impl AutomationRunner {
    /// Processes due work until shutdown.
    pub async fn run(self) {
        let (services, timers) = (&self.services, &self.engine.0.trigger_index.timers);
        let mut positions = ScanPositions::new();
        while !services.stop.is_cancelled() {
            // On a restored store, automations wait until the operator releases the queue: runs may have advanced after
            // the backup.
            self.pause.wait_until_released().await;
            let due = timers.due_or_wait(services, Some(POLL_INTERVAL)).await;
            self.process_partitions(&due, &mut positions).await;
        }
    }

    /// Processes all due work of this node's partitions until none is due.
    pub async fn run_due(&self) {
        let mut positions = ScanPositions::new();
        loop {
            let (mut due, now) = (Vec::new(), self.services.clock.now());
            for partition in self.services.leases.active() {
                let first = store::automation_run::due_work::list_due(&self.services.store, partition, now, 1).await;
                if first.is_ok_and(|first| !first.due.is_empty()) {
                    due.push(partition);
                }
            }
            if due.is_empty() {
                return;
            }
            self.process_partitions(&due, &mut positions).await;
        }
    }

    /// Processes a page of due work of these partitions, and reschedules those with more.
    async fn process_partitions(&self, partitions: &[u16], positions: &mut ScanPositions) {
        let mut work = Vec::new();
        let now = self.services.clock.now();
        for partition in partitions {
            let due = self.scan_partition(*partition, now, positions).await;
            work.extend(due.into_iter().map(|due| (*partition, due)));
        }
        let mut work = round_robin(work, account_of);
        let left = work.split_off(work.len().min(ROUND_WORK));
        left.iter().for_each(|(partition, _)| self.engine.0.trigger_index.timers.schedule(*partition, now));
        let mut done = futures_util::stream::iter(work)
            .map(|(partition, (at, due))| async move { (partition, self.process_due(partition, at, due).await) })
            .buffer_unordered(CONCURRENCY);
        let mut any = false;
        while let Some((partition, outcome)) = done.next().await {
            any |= matches!(outcome, Ok(StepCommit::Committed));
            if !matches!(outcome, Ok(StepCommit::Committed | StepCommit::Conflict)) {
                if let Err(error) = outcome {
                    store::warn_unless_away!(self.services.store, %error, "cannot advance an automation run; retrying");
                }
                self.engine.0.trigger_index.timers.schedule(partition, self.services.clock.after(RETRY_DELAY));
            }
        }
        if any {
            self.services.outbox_wakeup.notify_one();
        }
    }

    /// Reads a page of due work of a partition and schedules its next scan. The page has the oldest work and the newest,
    /// since another account's work may be behind a flood. Work between the two ends of one account's flood waits until
    /// one end reaches it.
    async fn scan_partition(
        &self,
        partition: u16,
        now: Timestamp,
        positions: &mut ScanPositions,
    ) -> Vec<(Timestamp, DueWork)> {
        let timers = &self.engine.0.trigger_index.timers;
        timers.begin_scan(partition);
        let (after, store) = (positions.remove(&partition), &self.services.store);
        let retry_at = self.services.clock.after(RETRY_DELAY);
        let found = store::automation_run::due_work::list_oldest_and_newest_due(
            store,
            partition,
            now,
            PAGE_WORK,
            after.as_ref(),
        );
        match found.await {
            Ok(found) => {
                if let Some(next) = next_scan(&found, after.is_some(), now, retry_at) {
                    timers.schedule(partition, next);
                }
                positions.extend(found.read_until.map(|last| (partition, last)));
                found.due
            }
            Err(error) => {
                store::warn_unless_away!(store, %error, "cannot read the due work of automations; retrying");
                timers.schedule(partition, retry_at);
                Vec::new()
            }
        }
    }

    async fn process_due(&self, partition: u16, at: Timestamp, due: DueWork) -> Result<StepCommit, ReadError> {
        let run_key = match due {
            DueWork::Step(run_key) => run_key,
            DueWork::Job(job) => return self.run_job(&job).await,
            DueWork::Damaged(key) => {
                tracing::error!("removing a damaged row of due automation work");
                let mut batch = Batch::progress();
                store::automation_run::due_work::remove_damaged(&mut batch, key);
                return self.commit_step(batch).await;
            }
        };
        match self.advance_run(run_key, at).await {
            // It is corrupt, or has a step of a newer release: then a newer node of the cluster can advance it.
            Err(ReadError::Corrupt(error)) => {
                self.log_unreadable(run_key.2, &error);
                let mut batch = Batch::progress();
                let until = self.services.clock.after(CORRUPT_RETRY_DELAY);
                store::automation_run::due_work::postpone_step(&mut batch, partition, at, run_key, until);
                self.commit_step(batch).await
            }
            Ok(None) => self.remove_stale(partition, at, run_key).await,
            Ok(Some(committed)) => Ok(committed),
            Err(error) => Err(error),
        }
    }

    /// Logs the read error of a run, once.
    fn log_unreadable(&self, run: RunId, error: &str) {
        let mut logged = self.logged_runs.lock();
        if logged.len() < LOGGED_RUNS_MAX && logged.insert(run) {
            tracing::error!(%error, run.id = %run, "cannot read an automation run; trying again later");
        }
    }

    async fn remove_stale(&self, partition: u16, at: Timestamp, run_key: RunKey) -> Result<StepCommit, ReadError> {
        let mut batch = Batch::progress();
        store::automation_run::due_work::remove_stale_step(&mut batch, partition, at, run_key);
        self.commit_step(batch).await
    }

    /// Executes steps of a run, found by its due key at `at`, for as long as one is due, and deletes that key. Returns
    /// `None` if the run does not exist or has no due step; then the key is left.
    async fn advance_run(&self, run_key: RunKey, at: Timestamp) -> Result<Option<StepCommit>, ReadError> {
        let mut outcome = None;
        for _ in 0..STEPS_IN_A_ROW_MAX {
            let Some((mut found, sealed)) =
                store::automation_run::get_with_sealed(&self.services.store, run_key).await?
            else {
                return Ok(outcome);
            };
            // The first commit deletes the key.
            if !matches!(outcome, Some(StepCommit::Committed)) {
                found.set_due_key(at);
            }
            let run = &found.run;
            if !run.status.is_active() || run.due.is_none() {
                return Ok(outcome);
            }
            if run.due > Some(self.services.clock.now()) {
                // The step before this wait sent something. After a crash, the events are read when the wait is over.
                if run.has_unread_events() {
                    let committed = self.run_step(&found, sealed.as_deref()).await?;
                    if matches!(committed, StepCommit::Retry) {
                        return Ok(Some(committed));
                    }
                    outcome = Some(committed);
                    continue;
                }
                if let Some(due) = run.due {
                    self.engine.0.trigger_index.timers.schedule(run.partition, due);
                }
                if !found.has_other_due_key() {
                    return Ok(Some(outcome.unwrap_or(StepCommit::Conflict)));
                }
                // A newer node has advanced the run since its key was postponed.
                let mut batch = Batch::progress();
                found.remove_other_due_key(&mut batch);
                match self.commit_step(batch).await? {
                    StepCommit::Conflict => outcome = Some(StepCommit::Conflict),
                    committed => return Ok(Some(committed)),
                }
                continue;
            }
            let committed = self.run_step(&found, sealed.as_deref()).await?;
            // A wait that follows a step that sends reads its events now, or else at its timeout.
            let is_stopped = self.services.stop.is_cancelled() && !run.is_sending();
            if matches!(committed, StepCommit::Retry) || is_stopped {
                return Ok(Some(committed));
            }
            outcome = Some(committed);
        }
        // Concurrent changes continue: retry later.
        Ok(Some(StepCommit::Retry))
    }

    async fn run_step(&self, found: &StoredRun, sealed: Option<&[u8]>) -> Result<StepCommit, ReadError> {
        let (run, now) = (&found.run, self.services.clock.now());
        let automation = store::automation::get(&self.services.store, run.account, run.automation).await?;
        let Some(automation) = automation else { return self.cancel_orphaned_run(found, now).await };
        match automation.automation.status {
            AutomationStatus::Active => {}
            AutomationStatus::Archived => return self.cancel_orphaned_run(found, now).await,
            AutomationStatus::Paused | AutomationStatus::Draft => {
                let (mut held, mut batch) = (run.clone(), Batch::progress());
                held.hold();
                // Check the automation's row: if it is activated concurrently, this run would be missed among the held
                // ones.
                automation.check(&mut batch);
                store::automation_run::update(&mut batch, found, &held);
                return self.commit_step(batch).await;
            }
        }
        let definition = self.engine.definition(run.account, run.automation, run.version).await?;
        let definition = definition.ok_or_else(|| corrupt("the automation version of the run is missing"))?;
        let run_context = sealed.ok_or_else(|| corrupt("the context of the run is missing"));
        let run_context: RunContext = self.engine.unseal_json(&run.id.to_bytes(), run_context?)?;
        let Some(action) = definition.steps.get(run.index).map(|step| &step.action) else {
            return self.commit_run_update(found, step::fail_step(run.clone(), "the step does not exist", now)).await;
        };
        let is_sending = matches!(action, StepAction::SendEmail(_) | StepAction::Sms(_));
        if is_sending && self.queues.is_account_held(run.account) {
            return self.commit_run_update(found, step::hold_step(run.clone(), now)).await;
        }
        let update = match action {
            StepAction::SendEmail(email) => {
                return self.run_email_step(found, &definition, email, &run_context).await;
            }
            StepAction::Sms(sms) => return self.run_sms_step(found, &definition, sms, &run_context).await,
            StepAction::Delay(delay) => step::delay_step(run.clone(), delay, &run_context, now),
            StepAction::WaitForEvent(_) if run.has_unread_events() => {
                return self.read_earlier_events(found, sealed).await;
            }
            StepAction::WaitForEvent(wait) => step::wait_step(run.clone(), wait, &run_context, now),
            StepAction::Condition(gate) => step::condition_step(run.clone(), gate, &run_context, now),
        };
        self.commit_run_update(found, update.with_next_steps(&definition, &run_context, now)).await
    }

    /// Ends a wait by an event that came while the steps before it sent something, if there is one.
    async fn read_earlier_events(&self, found: &StoredRun, sealed: Option<&[u8]>) -> Result<StepCommit, ReadError> {
        let mut batch = Batch::progress();
        if !self.engine.resume_by_earlier_event(found, sealed, &mut batch).await? {
            let mut run = found.run.clone();
            run.mark_wait_read();
            store::automation_run::update(&mut batch, found, &run);
        }
        self.commit_step(batch).await
    }

    /// Cancels a run whose automation was deleted or archived.
    async fn cancel_orphaned_run(&self, found: &StoredRun, now: Timestamp) -> Result<StepCommit, ReadError> {
        let mut run = found.run.clone();
        run.cancel(CancelSource::Api, now);
        self.commit_run_update(found, RunUpdate { run, facts: Vec::new(), run_context: None }).await
    }

    /// Commits the run's state after a step.
    pub(super) async fn commit_run_update(
        &self,
        found: &StoredRun,
        update: RunUpdate,
    ) -> Result<StepCommit, ReadError> {
        let mut batch = Batch::progress();
        self.engine.write_run_update(found, &update, self.services.clock.now(), &mut batch);
        let committed = self.commit_step(batch).await?;
        if let (StepCommit::Committed, Some(due)) = (&committed, update.run.due) {
            // Schedule the partition for this run, whatever else is due there.
            self.engine.0.trigger_index.timers.schedule(update.run.partition, due);
        }
        if !update.run.status.is_active() && self.services.entropy.u64().is_multiple_of(FOLD_CHECK_EVERY) {
            self.fold_run_counts(update.run.account, update.run.automation).await?;
        }
        Ok(committed)
    }

    pub(super) async fn commit_step(&self, batch: Batch) -> Result<StepCommit, ReadError> {
        match self.services.store.commit(batch).await {
            Ok(()) => {
                self.services.outbox_wakeup.notify_one();
                Ok(StepCommit::Committed)
            }
            Err(CommitError::Conflict { .. }) => Ok(StepCommit::Conflict),
            Err(error) => {
                store::warn_unless_away!(self.services.store, %error, "cannot commit automation work; retrying");
                Ok(StepCommit::Retry)
            }
        }
    }

    /// Folds the counter deltas of an automation into its total if there are many.
    async fn fold_run_counts(&self, account: AccountId, automation: AutomationId) -> Result<(), ReadError> {
        let counted = store::automation_run::counts::read(&self.services.store, account, automation).await?;
        if counted.changes() >= FOLD_THRESHOLD {
            let mut batch = Batch::progress();
            counted.fold(&mut batch, account, automation);
            self.commit_step(batch).await?;
        }
        Ok(())
    }

    /// Counts the runs of an automation by status.
    pub async fn count_runs(&self, automation: &Automation) -> Result<model::automation::RunCounts, ReadError> {
        let (account, id) = (automation.account, automation.id);
        loop {
            let counted = store::automation_run::counts::read(&self.services.store, account, id).await?;
            if !counted.has_more {
                return Ok(counted.counts);
            }
            // More deltas than one read returns: fold these and read on.
            let mut batch = Batch::progress();
            counted.fold(&mut batch, account, id);
            if matches!(self.commit_step(batch).await?, StepCommit::Retry) {
                return Ok(counted.counts);
            }
        }
    }

    /// Cancels a run. Returns `None` if it does not exist, and an ended run unchanged.
    pub async fn cancel_run(&self, run_key: RunKey) -> Result<Option<AutomationRun>, ReadError> {
        for _ in 0..STEPS_IN_A_ROW_MAX {
            let Some(found) = store::automation_run::get(&self.services.store, run_key).await? else { return Ok(None) };
            if !found.run.status.is_active() {
                return Ok(Some(found.run));
            }
            let mut run = found.run.clone();
            run.cancel(CancelSource::Api, self.services.clock.now());
            let update = RunUpdate { run: run.clone(), facts: Vec::new(), run_context: None };
            match self.commit_run_update(&found, update).await? {
                StepCommit::Committed => return Ok(Some(run)),
                StepCommit::Conflict => {}
                StepCommit::Retry => break,
            }
        }
        Err(corrupt("the run cannot be changed now; try again"))
    }
}

/// Returns when a partition is scanned next, whatever is reported later. `is_continued` is true if the scan continued
/// an earlier one, so that it has not read the first rows.
fn next_scan(found: &DueWorkBatch, is_continued: bool, now: Timestamp, retry_at: Timestamp) -> Option<Timestamp> {
    let is_partial = found.read_until.is_some();
    if found.has_more || (is_partial && !found.due.is_empty()) {
        Some(now)
    } else if is_partial || is_continued {
        Some(found.later.map_or(retry_at, |later| later.min(retry_at)))
    } else {
        found.later
    }
}

/// The account of the work; `None` for a damaged row.
fn account_of((_, (_, due)): &PartitionWork) -> Option<AccountId> {
    match due {
        DueWork::Step(run_key) => Some(run_key.0),
        DueWork::Job(found) => Some(found.job.account),
        DueWork::Damaged(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::automation::job::{AutomationJob, AutomationJobKind};
    use model::id::EventId;
    use store::engine::Store;

    #[test]
    fn a_scan_that_finds_only_rows_of_a_newer_release_is_repeated_later() {
        let next = |found: &DueWorkBatch, is_continued| next_scan(found, is_continued, at(10), at(11));
        let nothing = DueWorkBatch::default();
        assert_eq!((next(&nothing, false), next(&nothing, true)), (None, Some(at(11))));
        let partial = DueWorkBatch { read_until: Some(Key::from_static(b"x")), ..DueWorkBatch::default() };
        assert_eq!(next(&partial, false), Some(at(11)));
        let due = vec![(at(9), DueWork::Damaged(Key::from_static(b"x")))];
        assert_eq!(next(&DueWorkBatch { due, ..partial }, false), Some(at(10)));
        let later = DueWorkBatch { later: Some(at(50)), ..DueWorkBatch::default() };
        assert_eq!((next(&later, false), next(&later, true)), (Some(at(50)), Some(at(11))));
        let full = DueWorkBatch { has_more: true, ..DueWorkBatch::default() };
        assert_eq!(next(&full, true), Some(at(10)));
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn a_flood_of_runs_does_not_delay_other_accounts() {
        let (store, partition) = (Store::memory(), 3);
        let account = |n: u128| AccountId::new(at(0), n);
        let mut batch = Batch::progress();
        let mut put = |account_number: u128, n: u128, due: i64| {
            let work = AutomationJobKind::Release { automation: AutomationId::new(at(0), n) };
            let id = EventId::new(at(0), n);
            let job = AutomationJob { id, account: account(account_number), partition, due: at(due), work };
            store::automation_run::due_work::put_job(&mut batch, &job);
        };
        // A thousand are due at once, then one of each of two other accounts, and one that is not due yet.
        for n in 0..1_000 {
            put(1, n, 100);
        }
        put(2, 2_000, 101);
        put(3, 3_000, 102);
        put(2, 2_001, 200);
        store.commit(batch).await.unwrap();
        let page = store::automation_run::due_work::list_oldest_and_newest_due(&store, partition, at(150), 20, None)
            .await
            .unwrap();
        assert!(page.has_more && page.due.len() == 40, "{page:?}");
        let work = page.due.into_iter().map(|due| (partition, due)).collect();
        let mut next = round_robin(work, account_of);
        let left = next.split_off(6);
        let accounts: Vec<_> = next.iter().filter_map(account_of).collect();
        assert_eq!(accounts, [1, 2, 3, 1, 1, 1].map(account));
        assert_eq!(left.len(), 34);
        // Within an account, the work that is due the longest is first.
        assert!(next.iter().all(|(_, (due, _))| *due <= at(102)));
        // With a large page, all due work is read at once.
        let full_page =
            store::automation_run::due_work::list_oldest_and_newest_due(&store, partition, at(150), 2_000, None)
                .await
                .unwrap();
        assert_eq!((full_page.due.len(), full_page.has_more, full_page.later), (1_002, false, Some(at(200))));
    }
}
