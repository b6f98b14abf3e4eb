//! Deadlines: a task whose time is up is ended at that time, whatever it waits for: its next attempt, a destination that is
//! down or left alone, a warm-up, room in memory. Its sender, who asked to hear of delay, hears of it in time, too. What is
//! being tried then ends with its attempt.
//!
//! ```text
//! accepted ─► 4 hours old, NOTIFY=DELAY ─►[ the event; the report ]
//!          └► its time is up ─► out of its line ─►[ failed, or a soft bounce; the event ]
//! ```
//!
//! Read is only what has come to its time (`store::deadline`). While the queue of a restored store is held, nothing is ended:
//! the operator decides first what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::task::{LAST_ATTEMPT_GRACE, Task};
use store::engine::{Batch, CommitError, Key, ReadError, Value};

use crate::membership::LeaseError;
use crate::site::ReadyTask;
use crate::worker::Worker;

/// Tasks read at once.
const PAGE_TASKS: usize = 500;
/// Tasks ended at once: their commits share a sync.
const CONCURRENCY: usize = 64;
/// How soon is looked again after what was being tried, and what the store could not say.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Tasks of an older version indexed in one commit.
const INDEX_BATCH_TASKS: usize = 1_000;

impl Worker {
    /// A task lies on disk: it is looked at when its time comes.
    pub(crate) fn schedule_deadline(&self, task: &Task) {
        let at = task.delay_report_at().unwrap_or(task.expires_at);
        self.deadline_timers.schedule(task.partition, last_moment(at));
    }

    /// Ends what has passed its deadline until the worker stops.
    pub(crate) async fn run_deadlines(self: Arc<Self>) {
        if let Err(error) = self.index_deadlines().await {
            tracing::error!(%error, "mail that an older version queued cannot be indexed by its end; the next start tries again");
        }
        while !self.stop.is_cancelled() {
            self.wait_until_released().await;
            let (leases, changed) = (self.leases.changed(), self.deadline_timers.changed());
            let (due, next) = self.deadline_timers.due(&self.leases.active(), self.clock.now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock.sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = self.stop.cancelled() => {}
                }
                continue;
            }
            for partition in due {
                self.deadline_timers.begin_scan(partition);
                let next = self.expire_overdue(partition).await.unwrap_or_else(|error| {
                    store::warn_unless_away!(self.store, %error, partition, "what has passed its deadline cannot be read at the moment");
                    Some(self.after(RETRY_DELAY))
                });
                next.into_iter().for_each(|next| self.deadline_timers.schedule(partition, next));
            }
        }
    }

    /// Indexes the tasks of a version that indexed only some.
    async fn index_deadlines(&self) -> Result<(), LeaseError> {
        if store::deadline::is_indexed(&self.store).await? {
            return Ok(());
        }
        let mut from = None;
        loop {
            let page = store::task::list_all(&self.store, from, INDEX_BATCH_TASKS).await?;
            let mut batch = Batch::progress();
            store::deadline::index(&mut batch, &page.tasks);
            if page.next.is_none() {
                store::deadline::finish_index(&mut batch);
            }
            self.store.commit(batch).await?;
            page.tasks.iter().for_each(|(task, _)| self.schedule_deadline(task));
            from = page.next;
            if from.is_none() || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Looks at what of a partition has come to its time. When to look again, as far as it is known.
    async fn expire_overdue(self: &Arc<Self>, partition: u16) -> Result<Option<Timestamp>, ReadError> {
        let mut from: Option<Key> = None;
        let mut again = None;
        loop {
            let now = self.clock.now();
            let passed = now.checked_sub(LAST_ATTEMPT_GRACE).unwrap_or(Timestamp::MIN);
            let past = store::deadline::list_overdue(&self.store, partition, from, passed, PAGE_TASKS).await?;
            self.remove_orphans(&past.orphans).await;
            let mut ended =
                futures_util::stream::iter(past.tasks.into_iter().map(|one| self.expire_or_report_late(one)))
                    .buffer_unordered(CONCURRENCY);
            while let Some(is_ended) = ended.next().await {
                if !is_ended {
                    again = Some(self.after(RETRY_DELAY));
                }
            }
            match past.more {
                Some(more) if !self.stop.is_cancelled() => from = Some(more),
                _ => return Ok(again.into_iter().chain(past.next.map(last_moment)).min()),
            }
        }
    }

    async fn remove_orphans(&self, strays: &[(Key, Value)]) {
        if strays.is_empty() {
            return;
        }
        let mut batch = Batch::progress();
        store::deadline::delete_orphans(&mut batch, strays);
        match self.store.commit(batch).await {
            // One was written anew: the others are found at the next look.
            Ok(()) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => tracing::warn!(%error, "rows of tasks that are gone stay for now"),
        }
    }

    /// Ends a task, or tells that it is late. False: it is being tried, and ends with the attempt or goes on waiting, or
    /// somebody has changed it.
    async fn expire_or_report_late(self: &Arc<Self>, (task, row): (Task, Value)) -> bool {
        let ready = ReadyTask { task, row: Some(row), body: None };
        let Some(withdrawn) = self.check_out(&ready.task) else { return false };
        if !ready.task.is_expired(self.clock.now()) {
            // Its row goes on, and is read again when this is given back.
            return self.record_late(&ready).await;
        }
        let is_ended = self.expire_task(&ready).await;
        if is_ended {
            withdrawn.mark_deleted();
        }
        is_ended
    }
}

/// The last moment at which something with this deadline may still be tried, and one more.
fn last_moment(deadline: Timestamp) -> Timestamp {
    deadline.checked_add(LAST_ATTEMPT_GRACE + Duration::from_millis(1)).unwrap_or(Timestamp::MAX)
}
