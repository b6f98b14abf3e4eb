//! Deadlines: ends a task when its time is up, whatever it waits for: a retry, a suspended destination, a warm-up
//! limit, memory. It also sends the delay DSN on time to senders that requested it. A task in an attempt ends with that
//! attempt.
//!
//! ```text
//! accepted ─► 4 hours old, NOTIFY=DELAY ─►[ event; delay DSN ]
//!          └► deadline ─► removed from its queue ─►[ failed, or a soft bounce; event ]
//! ```
//!
//! Only overdue tasks are read (`store::deadline`). While the queue of a restored store is held, no task is
//! ended: the operator decides first.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use model::task::{LAST_ATTEMPT_GRACE, Task};
use store::engine::{Batch, Key, ReadError, StoreError, Value};

use crate::scheduler::checked_out::CheckedOutTask;
use crate::scheduler::deadline_timers::last_moment;
use crate::scheduler::dispatch::Dispatcher;
use crate::scheduler::ready_queue::ReadyTask;

/// Tasks read at once.
const PAGE_TASKS: usize = 500;
/// Tasks ended concurrently, so that their commits share one sync.
const CONCURRENCY: usize = 64;
/// Delay before the next look when a task was in an attempt or the store failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Tasks of an older version indexed in one commit.
const INDEX_BATCH_TASKS: usize = 1_000;

impl Dispatcher {
    /// Ends expired tasks until shutdown.
    pub(crate) async fn run_deadlines(self: Arc<Self>) {
        if let Err(error) = self.index_deadlines().await {
            tracing::error!(%error, "cannot index the deadlines of mail queued by an older version; retrying at the next start");
        }
        while !self.services.stop.is_cancelled() {
            self.pause.wait_until_released().await;
            for partition in self.deadlines.0.due_or_wait(&self.services, None).await {
                self.deadlines.0.begin_scan(partition);
                let next = self.expire_overdue(partition).await.unwrap_or_else(|error| {
                    store::warn_unless_away!(self.services.store, %error, partition, "cannot read expired tasks; retrying");
                    Some(self.services.clock.after(RETRY_DELAY))
                });
                next.into_iter().for_each(|next| self.deadlines.0.schedule(partition, next));
            }
        }
    }

    /// Indexes tasks that were stored by a version that indexed only some of them.
    async fn index_deadlines(&self) -> Result<(), StoreError> {
        if store::deadline::is_indexed(&self.services.store).await? {
            return Ok(());
        }
        let mut from = None;
        loop {
            let page = store::task::list_all(&self.services.store, from, INDEX_BATCH_TASKS).await?;
            let mut batch = Batch::progress();
            store::deadline::index(&mut batch, &page.tasks);
            if page.next.is_none() {
                store::deadline::finish_index(&mut batch);
            }
            self.services.store.commit(batch).await?;
            page.tasks.iter().for_each(|(task, _)| self.deadlines.schedule(task));
            from = page.next;
            if from.is_none() || self.services.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Handles the tasks of a partition whose deadline has passed. Returns when to check again, if that is known.
    async fn expire_overdue(self: &Arc<Self>, partition: u16) -> Result<Option<Timestamp>, ReadError> {
        let mut from: Option<Key> = None;
        let mut next_from = None;
        loop {
            let now = self.services.clock.now();
            let passed = now.checked_sub(LAST_ATTEMPT_GRACE).unwrap_or(Timestamp::MIN);
            let overdue =
                store::deadline::list_overdue(&self.services.store, partition, from, passed, PAGE_TASKS).await?;
            self.remove_orphans(&overdue.orphans).await;
            let mut expired =
                futures_util::stream::iter(overdue.tasks.into_iter().map(|task| self.expire_or_report_late(task)))
                    .buffer_unordered(CONCURRENCY);
            while let Some(is_ended) = expired.next().await {
                if !is_ended {
                    next_from = Some(self.services.clock.after(RETRY_DELAY));
                }
            }
            match overdue.next_page {
                Some(next) if !self.services.stop.is_cancelled() => from = Some(next),
                _ => return Ok(next_from.into_iter().chain(overdue.next.map(last_moment)).min()),
            }
        }
    }

    async fn remove_orphans(&self, orphans: &[(Key, Value)]) {
        if orphans.is_empty() {
            return;
        }
        let mut batch = Batch::progress();
        store::deadline::delete_orphans(&mut batch, orphans);
        // On a conflict a row was rewritten: the next check finds the others.
        if let Err(error) = self.services.store.try_commit(batch).await {
            tracing::warn!(%error, "cannot delete deadline rows of removed tasks; retrying");
        }
    }

    /// Ends an expired task, or reports its delay. Returns false if the task is in an attempt, which will end or defer
    /// it, or was changed concurrently.
    async fn expire_or_report_late(self: &Arc<Self>, (task, row): (Task, Value)) -> bool {
        let ready = ReadyTask { task, row: Some(row), body: None };
        let Some(checked_out) = CheckedOutTask::check_out(&self.queues, &ready.task) else { return false };
        if !ready.task.is_expired(self.services.clock.now()) {
            // The row changes, so the task is reloaded when `checked_out` is dropped.
            return self.record_late(&ready).await;
        }
        let is_ended = self.agent.expire_task(&ready).await;
        if is_ended {
            checked_out.mark_deleted();
        }
        is_ended
    }
}
