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
use mail::automation::context::Context;
use mail::automation::definition::Action;
use mail::automation::run::{CancelledBy, Run};
use mail::automation::{Automation, AutomationStatus};
use mail::id::{AccountId, AutomationId};
use store::engine::{Batch, CommitError, ReadError};
use store::run::due::Due;
use store::run::{About, Found};

use super::send::Tried;
use super::step::{self, Moved};
use super::turns;
use super::{Automations, corrupt};
use crate::accept::Hall;

/// Work of a partition that is read at once: what is due the longest, and as much of what became due last.
const SLICE: usize = 256;
/// Work of one round. What was read and has no place in it is read again.
const ROUND: usize = 4_096;
/// Runs and jobs that go on side by side: enough to share commits.
const AT_ONCE: usize = 128;
/// How soon is tried again what the store could not take.
const AGAIN: Duration = Duration::from_secs(1);
/// How often all partitions are looked at: other nodes put work into them.
const LOOK: Duration = Duration::from_secs(1);
/// Steps of a run in a row, conflicts counted.
const IN_A_ROW_MAX: usize = 100;
/// Changes of an automation's counts that lie beside the total before they are folded.
const FOLD_AT: usize = 1_000;
/// One run in so many has the counts looked at.
const FOLD_LOOK: u64 = 200;

impl Hall {
    pub(crate) async fn keep_running(&self) {
        let worker = &self.worker;
        while !worker.stop.is_cancelled() {
            // What a restored store would do again waits with its queue: a run may have gone on after the backup.
            worker.queue_let_go().await;
            let (leases, changed) = (worker.leases.changed(), worker.ears.appointments.changed());
            let (due, next) = worker.ears.appointments.due(&worker.leases.active(), self.clock().now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock().sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = tokio::time::sleep(LOOK), if self.store().is_shared() => {
                        worker.ears.appointments.look_at_all();
                    }
                    () = worker.stop.cancelled() => {}
                }
                continue;
            }
            self.work_through(&due).await;
        }
    }

    /// Goes through all that is due in our partitions, until nothing is.
    pub async fn run_due(&self) {
        loop {
            let (mut due, now) = (Vec::new(), self.clock().now());
            for partition in self.worker.leases.active() {
                let first = store::run::due::first_due(self.store(), partition, now, 1).await;
                if first.is_ok_and(|first| !first.due.is_empty()) {
                    due.push(partition);
                }
            }
            if due.is_empty() {
                return;
            }
            self.work_through(&due).await;
        }
    }

    /// Goes through some of what is due in these partitions; should more be due, their turn comes again.
    async fn work_through(&self, partitions: &[u16]) {
        let mut work = Vec::new();
        let now = self.clock().now();
        for partition in partitions {
            let appointments = &self.worker.ears.appointments;
            appointments.begin(*partition);
            match store::run::due::at_hand(self.store(), *partition, now, SLICE).await {
                Ok(first) => {
                    if let Some(next) = if first.more { Some(now) } else { first.later } {
                        appointments.note(*partition, next);
                    }
                    work.extend(first.due.into_iter().map(|due| (*partition, due)));
                }
                Err(error) => {
                    store::warn_unless_away!(self.store(), %error, "what automations have to do cannot be read at the moment");
                    appointments.note(*partition, self.worker.later(AGAIN));
                }
            }
        }
        let (work, left) = turns::in_turns(work, ROUND);
        left.iter().for_each(|(partition, _)| self.worker.ears.appointments.note(*partition, now));
        let mut done = futures_util::stream::iter(work)
            .map(|(partition, due)| async move { (partition, self.work_at(partition, due).await) })
            .buffer_unordered(AT_ONCE);
        let mut any = false;
        while let Some((partition, outcome)) = done.next().await {
            any |= matches!(outcome, Ok(Tried::Committed));
            if !matches!(outcome, Ok(Tried::Committed | Tried::Changed)) {
                if let Err(error) = outcome {
                    store::warn_unless_away!(self.store(), %error, "an automation cannot go on at the moment");
                }
                self.worker.ears.appointments.note(partition, self.worker.later(AGAIN));
            }
        }
        if any {
            self.worker.untold.notify_one();
        }
    }

    async fn work_at(&self, partition: u16, (at, due): (Timestamp, Due)) -> Result<Tried, ReadError> {
        let about = match due {
            Due::Step(about) => about,
            Due::Job(job) => return self.do_job(&job).await,
            Due::Damaged(key) => {
                tracing::error!("a row of what automations have to do is damaged; it is taken away");
                let mut batch = Batch::progress();
                store::run::due::take_damaged(&mut batch, key);
                return self.book(batch).await;
            }
        };
        match self.advance(about).await {
            // Nobody could ever go on with it, and it would be looked at for ever.
            Err(ReadError::Corrupt(error)) => {
                tracing::error!(%error, run.id = %about.2, "a run cannot be read; it is left where it is");
                self.take_stale(partition, at, about).await
            }
            Ok(None) => self.take_stale(partition, at, about).await,
            Ok(Some(tried)) => Ok(tried),
            Err(error) => Err(error),
        }
    }

    async fn take_stale(&self, partition: u16, at: Timestamp, about: About) -> Result<Tried, ReadError> {
        let mut batch = Batch::progress();
        store::run::due::take_stale(&mut batch, partition, at, about);
        self.book(batch).await
    }

    /// Goes on with a run for as long as something of it is due. None when there is no such run, or nothing of
    /// it is due.
    async fn advance(&self, about: About) -> Result<Option<Tried>, ReadError> {
        let mut outcome = None;
        for _ in 0..IN_A_ROW_MAX {
            let Some((found, sealed)) = store::run::get_whole(self.store(), about).await? else {
                return Ok(outcome);
            };
            let run = &found.run;
            if !run.status.is_active() || run.due.is_none() {
                return Ok(outcome);
            }
            if run.due > Some(self.clock().now()) {
                if let Some(due) = run.due {
                    self.worker.ears.appointments.note(run.partition, due);
                }
                return Ok(Some(outcome.unwrap_or(Tried::Changed)));
            }
            let tried = self.take_step(&found, sealed.as_deref()).await?;
            if matches!(tried, Tried::Again) || self.worker.stop.is_cancelled() {
                return Ok(Some(tried));
            }
            outcome = Some(tried);
        }
        // Somebody keeps changing it: later.
        Ok(Some(Tried::Again))
    }

    async fn take_step(&self, found: &Found, sealed: Option<&[u8]>) -> Result<Tried, ReadError> {
        let (run, now) = (&found.run, self.clock().now());
        let automation = store::automation::get(self.store(), run.account, run.automation).await?;
        let Some(automation) = automation else { return self.give_up(found, now).await };
        match automation.automation.status {
            AutomationStatus::Active => {}
            AutomationStatus::Archived => return self.give_up(found, now).await,
            AutomationStatus::Paused | AutomationStatus::Draft => {
                let (mut held, mut batch) = (run.clone(), Batch::progress());
                held.hold();
                // Activated this very moment, it would not be found among those that are held.
                automation.check(&mut batch);
                store::run::update(&mut batch, found, &held);
                return self.book(batch).await;
            }
        }
        let version = (run.automation, run.version);
        let definition = self.automations().definition(run.account, version).await?;
        let definition = definition.ok_or_else(|| corrupt("the version that a run follows is gone"))?;
        let known = sealed.ok_or_else(|| corrupt("what a run knows is gone"));
        let known: Context = self.automations().open(&run.id.to_bytes(), known?)?;
        let Some(action) = definition.steps.get(run.index).map(|step| &step.action) else {
            return self.commit_moved(found, step::failed(run.clone(), "there is no such step", now)).await;
        };
        let is_sending = matches!(action, Action::SendEmail(_) | Action::Sms(_));
        if is_sending && self.worker.holds_account(run.account) {
            return self.commit_moved(found, step::held(run.clone(), now)).await;
        }
        let moved = match action {
            Action::SendEmail(email) => return self.send_step(found, email, &known).await,
            Action::Sms(sms) => return self.text_step(found, sms, &known).await,
            Action::Delay(delay) => step::delay(run.clone(), delay, &known, now),
            Action::WaitForEvent(wait) => step::wait(run.clone(), wait, &known, now),
            Action::Condition(gate) => step::gate(run.clone(), gate, &known, now),
        };
        self.commit_moved(found, moved).await
    }

    /// Its automation is over.
    async fn give_up(&self, found: &Found, now: Timestamp) -> Result<Tried, ReadError> {
        let mut run = found.run.clone();
        run.cancel(CancelledBy::Api, now);
        self.commit_moved(found, Moved { run, facts: Vec::new(), known: None }).await
    }

    /// Commits a run as it is after a step.
    pub(super) async fn commit_moved(&self, found: &Found, moved: Moved) -> Result<Tried, ReadError> {
        let mut batch = Batch::progress();
        self.automations().write_moved(found, &moved, self.clock().now(), &mut batch);
        let tried = self.book(batch).await?;
        if let (Tried::Committed, Some(due)) = (&tried, moved.run.due) {
            // Its partition has more to do then, whatever else is due there.
            self.worker.ears.appointments.note(moved.run.partition, due);
        }
        if !moved.run.status.is_active() && self.worker.entropy.u64().is_multiple_of(FOLD_LOOK) {
            self.fold((moved.run.account, moved.run.automation)).await?;
        }
        Ok(tried)
    }

    pub(super) async fn book(&self, batch: Batch) -> Result<Tried, ReadError> {
        match self.store().commit(batch).await {
            Ok(()) => {
                self.worker.untold.notify_one();
                Ok(Tried::Committed)
            }
            Err(CommitError::Conflict { .. }) => Ok(Tried::Changed),
            Err(error) => {
                store::warn_unless_away!(self.store(), %error, "what automations do cannot be written at the moment");
                Ok(Tried::Again)
            }
        }
    }

    /// Folds the counts of an automation, should many changes lie beside them.
    async fn fold(&self, of: (AccountId, AutomationId)) -> Result<(), ReadError> {
        let counted = store::run::counts::read(self.store(), of).await?;
        if counted.changes() >= FOLD_AT {
            let mut batch = Batch::progress();
            counted.fold(&mut batch, of);
            self.book(batch).await?;
        }
        Ok(())
    }

    /// How many runs an automation has in each state.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_runs(&self, automation: &Automation) -> Result<mail::automation::Counts, ReadError> {
        let of = (automation.account, automation.id);
        loop {
            let counted = store::run::counts::read(self.store(), of).await?;
            if !counted.more {
                return Ok(counted.counts);
            }
            // More than one look shows: what was seen is folded, and the rest is looked at.
            let mut batch = Batch::progress();
            counted.fold(&mut batch, of);
            if matches!(self.book(batch).await?, Tried::Again) {
                return Ok(counted.counts);
            }
        }
    }

    /// Ends a run, as its customer wishes. None when there is no such run; as it is, when it is over.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn cancel_run(&self, about: About) -> Result<Option<Run>, ReadError> {
        for _ in 0..IN_A_ROW_MAX {
            let Some(found) = store::run::get(self.store(), about).await? else { return Ok(None) };
            if !found.run.status.is_active() {
                return Ok(Some(found.run));
            }
            let mut run = found.run.clone();
            run.cancel(CancelledBy::Api, self.clock().now());
            let moved = Moved { run: run.clone(), facts: Vec::new(), known: None };
            match self.commit_moved(&found, moved).await? {
                Tried::Committed => return Ok(Some(run)),
                Tried::Changed => {}
                Tried::Again => break,
            }
        }
        Err(corrupt("the run cannot be changed at the moment"))
    }
}

impl Automations {
    /// Writes a run as it is after a step. The commit is fenced: it conflicts when the run's partition is another
    /// node's by now, as far as we have it.
    pub(super) fn write_moved(&self, found: &Found, moved: &Moved, now: Timestamp, batch: &mut Batch) {
        let run = &moved.run;
        let _ours = self.0.worker.leases.fence_partitions(batch, std::iter::once(run.partition));
        store::run::update(batch, found, run);
        if let Some(known) = &moved.known {
            match self.seal(run.id, known) {
                Ok(sealed) => store::run::put_sealed(batch, store::run::about(run), sealed),
                // The cipher fails when the system has no randomness: what was known before stays.
                Err(error) => tracing::error!(%error, run.id = %run.id, "what a run knows cannot be sealed"),
            }
        }
        self.record(batch, run, &moved.facts, now);
    }
}
