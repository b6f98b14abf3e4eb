//! Orders about all tasks that a filter names.
//!
//! ```text
//! order ─►[ a row in every partition ]─► its owner walks the queues there, and takes the row away
//! ```
//!
//! So an order is carried out to its end whatever is restarted meanwhile, and on every node. It is about the mail that is
//! in the queue when it is given; what is accepted later goes its usual way.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::id::EventId;
use mail::task::{QueueName, Task, TaskId};
use mail::task_filter::TaskFilter;
use store::engine::{Batch, CommitError, ReadError, Value};
use store::queue_order::{self, BulkQueueCommand, PendingQueueCommand};

use super::{QueueAdminError, QueuedRecipient};
use crate::order::QueueCommand;
use crate::worker::Worker;

/// Orders read at once: more of them wait until some are done.
const PENDING_MAX: usize = 10_000;
/// Tasks read at once.
const PAGE_TASKS: usize = 256;
/// Tasks that are changed at once: their commits go together.
const CONCURRENCY: usize = 64;
/// How soon tasks that were being tried are looked at again.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// What became of an order at this node so far.
#[derive(Debug, Clone, Default)]
struct LocalProgress {
    is_watched: bool,
    done: u64,
    /// Tasks that were being tried, by partition: all others there are done with.
    busy: HashMap<u16, HashSet<TaskId>>,
}

/// Orders that are carried out here, or watched.
#[derive(Debug, Default)]
pub(crate) struct WatchedCommands(Mutex<HashMap<[u8; 16], LocalProgress>>);

impl WatchedCommands {
    fn with<T>(&self, see: impl FnOnce(&mut HashMap<[u8; 16], LocalProgress>) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandProgress {
    /// Tasks that were changed, by this node.
    pub done: u64,
    /// Tasks that are being tried, and are done with as they come free.
    pub busy: usize,
    /// Partitions that nobody is through with yet.
    pub partitions_left: usize,
}

/// An order that was given: it is carried out, watched or not.
pub struct BulkCommandHandle {
    worker: Arc<Worker>,
    id: [u8; 16],
}

impl BulkCommandHandle {
    /// How far it is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn progress(&self) -> Result<CommandProgress, ReadError> {
        let left = queue_order::count_pending(&self.worker.store, self.id).await?;
        let progress = self.worker.watched_commands.with(|watched| watched.get(&self.id).cloned()).unwrap_or_default();
        let busy = progress.busy.values().map(HashSet::len).sum();
        Ok(CommandProgress { done: progress.done, busy, partitions_left: left.saturating_sub(progress.busy.len()) })
    }

    /// Returns when there may be progress.
    pub async fn wait_for_progress(&self) {
        let _ = tokio::time::timeout(BUSY_RETRY_DELAY, self.worker.bulk_command_progressed.notified()).await;
    }
}

impl Drop for BulkCommandHandle {
    fn drop(&mut self) {
        self.worker.watched_commands.with(|watched| {
            watched.entry(self.id).and_modify(|progress| progress.is_watched = false);
        });
    }
}

/// What became of a part of an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartitionProgress {
    /// It is carried out.
    Done,
    /// Some tasks were being tried, or changed just then.
    Busy,
}

impl Worker {
    /// Orders something about all tasks that a filter names.
    ///
    /// # Errors
    /// [`OperateError`].
    pub fn command_matching<'a>(
        self: &'a Arc<Self>,
        filter: TaskFilter,
        order: &'a QueueCommand,
    ) -> BoxFuture<'a, Result<BulkCommandHandle, QueueAdminError>> {
        Box::pin(async move {
            self.validate_command(order)?;
            let now = self.after(Duration::from_millis(1));
            let before = filter.accepted_before.map_or(now, |before| before.min(now));
            let filter = TaskFilter { accepted_before: Some(before), ..filter };
            // By time: of two, the older one is carried out first.
            let id = EventId::new(self.clock.now(), self.entropy.unique_bits()).to_bytes();
            let mut batch = Batch::progress();
            queue_order::put(&mut batch, id, &BulkQueueCommand { order: order.word(), filter });
            self.watched_commands
                .with(|watched| watched.insert(id, LocalProgress { is_watched: true, ..LocalProgress::default() }));
            let given = BulkCommandHandle { worker: Arc::clone(self), id };
            self.store.commit(batch).await?;
            self.bulk_command_wakeup.notify_one();
            Ok(given)
        })
    }

    /// Carries out what is ordered about many tasks, until the worker stops.
    pub(crate) async fn run_bulk_commands(self: Arc<Self>) {
        loop {
            let again = match self.execute_pending_commands().await {
                Ok(PartitionProgress::Done) if self.store.is_shared() => BUSY_RETRY_DELAY,
                Ok(PartitionProgress::Done) => Duration::MAX,
                Ok(PartitionProgress::Busy) => BUSY_RETRY_DELAY,
                Err(error) => {
                    store::warn_unless_away!(self.store, %error, "an order about the queue cannot be carried out yet");
                    BUSY_RETRY_DELAY
                }
            };
            tokio::select! {
                () = self.bulk_command_wakeup.notified() => {}
                () = tokio::time::sleep(again) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn execute_pending_commands(self: &Arc<Self>) -> Result<PartitionProgress, QueueAdminError> {
        let pending = queue_order::list_pending(&self.store, PENDING_MAX).await?;
        let is_pending = |id| pending.iter().any(|pending| pending.id == id);
        self.watched_commands.with(|watched| watched.retain(|id, progress| progress.is_watched || is_pending(*id)));
        let (mut whole, mut failed) = (PartitionProgress::Done, None);
        for pending in pending {
            if self.stop.is_cancelled() {
                return Ok(PartitionProgress::Busy);
            }
            if !self.leases.is_active(pending.partition) {
                continue;
            }
            match self.execute_in_partition(&pending).await {
                Ok(PartitionProgress::Done) => {
                    let mut batch = Batch::progress();
                    queue_order::complete(&mut batch, pending.partition, pending.id);
                    self.store.commit(batch).await?;
                }
                Ok(PartitionProgress::Busy) => whole = PartitionProgress::Busy,
                // Others are not to wait for what is wrong here.
                Err(error) => failed = Some(error),
            }
            self.bulk_command_progressed.notify_waiters();
        }
        failed.map_or(Ok(whole), Err)
    }

    async fn execute_in_partition(
        self: &Arc<Self>,
        pending: &PendingQueueCommand,
    ) -> Result<PartitionProgress, QueueAdminError> {
        // Of a newer version: whoever gave it finds out.
        let Some(order) = QueueCommand::from_word(&pending.order.order) else {
            return Ok(PartitionProgress::Done);
        };
        let before =
            self.watched_commands.with(|watched| watched.get(&pending.id)?.busy.get(&pending.partition).cloned());
        let (mut busy, mut from) = (HashSet::new(), None);
        while let Some((queue, _, next)) = store::task::next_queue(&self.store, pending.partition, from).await? {
            if pending.order.filter.may_match_queue(&queue) {
                let meant = |task: &Task| {
                    // What was done once is not done again: something else may have been ordered since.
                    let is_left = before.as_ref().is_none_or(|before| before.contains(&task.id));
                    is_left && pending.order.filter.matches(task)
                };
                busy.extend(self.execute_in_queue(&queue, (pending.id, &order), &meant).await?);
            }
            from = Some(next);
        }
        if self.stop.is_cancelled() {
            return Ok(PartitionProgress::Busy);
        }
        self.watched_commands.with(|watched| {
            let progress = watched.entry(pending.id).or_default();
            if busy.is_empty() {
                progress.busy.remove(&pending.partition);
                Ok(PartitionProgress::Done)
            } else {
                progress.busy.insert(pending.partition, busy);
                Ok(PartitionProgress::Busy)
            }
        })
    }

    /// Carries an order out in a queue; says which tasks were being tried, or changed just then.
    async fn execute_in_queue(
        self: &Arc<Self>,
        queue: &QueueName,
        (id, order): ([u8; 16], &QueueCommand),
        is_meant: &(dyn Fn(&Task) -> bool + Sync),
    ) -> Result<HashSet<TaskId>, QueueAdminError> {
        let mut busy = HashSet::new();
        let mut from = Some(store::task::due_start(queue, Timestamp::UNIX_EPOCH));
        while let Some(start) = from.filter(|_| !self.stop.is_cancelled()) {
            let slice = store::task::list(&self.store, queue, start, PAGE_TASKS).await?;
            from = slice.next;
            let meant = slice.tasks.into_iter().filter(|(task, _)| is_meant(task));
            let changed: Vec<(TaskId, Result<(), QueueAdminError>)> = futures_util::stream::iter(meant)
                .map(async |(task, row)| (task.id, self.execute_for_task(task, row, order).await))
                .buffer_unordered(CONCURRENCY)
                .collect()
                .await;
            let done = changed.iter().filter(|(_, done)| done.is_ok()).count();
            self.watched_commands.with(|watched| watched.entry(id).or_default().done += done as u64);
            self.bulk_command_progressed.notify_waiters();
            for (task, done) in changed {
                match done {
                    Ok(()) => {}
                    // It is being tried, or has just changed: at the next look.
                    Err(QueueAdminError::Busy(_) | QueueAdminError::Commit(CommitError::Conflict { .. })) => {
                        busy.insert(task);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(busy)
    }

    async fn execute_for_task(
        self: &Arc<Self>,
        task: Task,
        row: Value,
        order: &QueueCommand,
    ) -> Result<(), QueueAdminError> {
        let found = store::email::get_stored_recipient(&self.store, task.account, task.id).await?;
        // Forgotten meanwhile, and its task with it.
        let Some(found) = found else { return Ok(()) };
        self.execute_for_recipient(&QueuedRecipient { recipient: found.recipient, task, row }, order).await
    }
}
