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
use store::queue_order::{self, Pending, QueueOrder};

use super::{Open, OperateError};
use crate::order::Order;
use crate::worker::Worker;

/// Orders read at once: more of them wait until some are done.
const PENDING_MAX: usize = 10_000;
/// Tasks read at once.
const SLICE_TASKS: usize = 256;
/// Tasks that are changed at once: their commits go together.
const AT_ONCE: usize = 64;
/// How soon tasks that were being tried are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What became of an order at this node so far.
#[derive(Debug, Clone, Default)]
struct Progress {
    is_watched: bool,
    done: u64,
    /// Tasks that were being tried, by partition: all others there are done with.
    busy: HashMap<u16, HashSet<TaskId>>,
}

/// Orders that are carried out here, or watched.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<HashMap<[u8; 16], Progress>>);

impl Watched {
    fn with<T>(&self, see: impl FnOnce(&mut HashMap<[u8; 16], Progress>) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Tasks that were changed, by this node.
    pub done: u64,
    /// Tasks that are being tried, and are done with as they come free.
    pub busy: usize,
    /// Partitions that nobody is through with yet.
    pub left: usize,
}

/// An order that was given: it is carried out, watched or not.
pub struct Given {
    worker: Arc<Worker>,
    id: [u8; 16],
}

impl Given {
    /// How far it is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn progress(&self) -> Result<Carried, ReadError> {
        let left = queue_order::left(&self.worker.store, self.id).await?;
        let progress = self.worker.watched.with(|watched| watched.get(&self.id).cloned()).unwrap_or_default();
        let busy = progress.busy.values().map(HashSet::len).sum();
        Ok(Carried { done: progress.done, busy, left: left.saturating_sub(progress.busy.len()) })
    }

    /// Returns when there may be progress.
    pub async fn moved(&self) {
        let _ = tokio::time::timeout(LOOK_AGAIN, self.worker.order_moved.notified()).await;
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.worker.watched.with(|watched| {
            watched.entry(self.id).and_modify(|progress| progress.is_watched = false);
        });
    }
}

/// What became of a part of an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It is carried out.
    Whole,
    /// Some tasks were being tried, or changed just then.
    Busy,
}

impl Worker {
    /// Orders something about all tasks that a filter names.
    ///
    /// # Errors
    /// [`OperateError`].
    pub fn order_many<'a>(
        self: &'a Arc<Self>,
        filter: TaskFilter,
        order: &'a Order,
    ) -> BoxFuture<'a, Result<Given, OperateError>> {
        Box::pin(async move {
            self.judge(order)?;
            let now = self.later(Duration::from_millis(1));
            let before = filter.accepted_before.map_or(now, |before| before.min(now));
            let filter = TaskFilter { accepted_before: Some(before), ..filter };
            // By time: of two, the older one is carried out first.
            let id = EventId::new(self.clock.now(), self.entropy.id()).to_bytes();
            let mut batch = Batch::progress();
            queue_order::put(&mut batch, id, &QueueOrder { order: order.word(), filter });
            self.watched
                .with(|watched| watched.insert(id, Progress { is_watched: true, ..Progress::default() }));
            let given = Given { worker: Arc::clone(self), id };
            self.store.commit(batch).await?;
            self.something_ordered.notify_one();
            Ok(given)
        })
    }

    /// Carries out what is ordered about many tasks, until the worker stops.
    pub(crate) async fn carry_out_orders(self: Arc<Self>) {
        loop {
            let again = match self.carry_out_some().await {
                Ok(Part::Whole) if self.store.is_shared() => LOOK_AGAIN,
                Ok(Part::Whole) => Duration::MAX,
                Ok(Part::Busy) => LOOK_AGAIN,
                Err(error) => {
                    store::warn_unless_away!(self.store, %error, "an order about the queue cannot be carried out yet");
                    LOOK_AGAIN
                }
            };
            tokio::select! {
                () = self.something_ordered.notified() => {}
                () = tokio::time::sleep(again) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn carry_out_some(self: &Arc<Self>) -> Result<Part, OperateError> {
        let pending = queue_order::pending(&self.store, PENDING_MAX).await?;
        let is_pending = |id| pending.iter().any(|pending| pending.id == id);
        self.watched.with(|watched| watched.retain(|id, progress| progress.is_watched || is_pending(*id)));
        let (mut whole, mut failed) = (Part::Whole, None);
        for pending in pending {
            if self.stop.is_cancelled() {
                return Ok(Part::Busy);
            }
            if !self.leases.is_active(pending.partition) {
                continue;
            }
            match self.carry_out_in(&pending).await {
                Ok(Part::Whole) => {
                    let mut batch = Batch::progress();
                    queue_order::done(&mut batch, pending.partition, pending.id);
                    self.store.commit(batch).await?;
                }
                Ok(Part::Busy) => whole = Part::Busy,
                // Others are not to wait for what is wrong here.
                Err(error) => failed = Some(error),
            }
            self.order_moved.notify_waiters();
        }
        failed.map_or(Ok(whole), Err)
    }

    async fn carry_out_in(self: &Arc<Self>, pending: &Pending) -> Result<Part, OperateError> {
        // Of a newer version: whoever gave it finds out.
        let Some(order) = Order::of_word(&pending.order.order) else { return Ok(Part::Whole) };
        let before =
            self.watched.with(|watched| watched.get(&pending.id)?.busy.get(&pending.partition).cloned());
        let (mut busy, mut from) = (HashSet::new(), None);
        while let Some((queue, _, next)) =
            store::task::next_queue(&self.store, pending.partition, from).await?
        {
            if pending.order.filter.may_be_in(&queue) {
                let meant = |task: &Task| {
                    // What was done once is not done again: something else may have been ordered since.
                    let is_left = before.as_ref().is_none_or(|before| before.contains(&task.id));
                    is_left && pending.order.filter.matches(task)
                };
                busy.extend(self.carry_out_in_queue(&queue, (pending.id, &order), &meant).await?);
            }
            from = Some(next);
        }
        if self.stop.is_cancelled() {
            return Ok(Part::Busy);
        }
        self.watched.with(|watched| {
            let progress = watched.entry(pending.id).or_default();
            if busy.is_empty() {
                progress.busy.remove(&pending.partition);
                Ok(Part::Whole)
            } else {
                progress.busy.insert(pending.partition, busy);
                Ok(Part::Busy)
            }
        })
    }

    /// Carries an order out in a queue; says which tasks were being tried, or changed just then.
    async fn carry_out_in_queue(
        self: &Arc<Self>,
        queue: &QueueName,
        (id, order): ([u8; 16], &Order),
        is_meant: &(dyn Fn(&Task) -> bool + Sync),
    ) -> Result<HashSet<TaskId>, OperateError> {
        let mut busy = HashSet::new();
        let mut from = Some(store::task::start_of(queue, Timestamp::UNIX_EPOCH));
        while let Some(start) = from.filter(|_| !self.stop.is_cancelled()) {
            let slice = store::task::list(&self.store, queue, start, SLICE_TASKS).await?;
            from = slice.next;
            let meant = slice.tasks.into_iter().filter(|(task, _)| is_meant(task));
            let changed: Vec<(TaskId, Result<(), OperateError>)> = futures_util::stream::iter(meant)
                .map(async |(task, row)| (task.id, self.carry_out_about(task, row, order).await))
                .buffer_unordered(AT_ONCE)
                .collect()
                .await;
            let done = changed.iter().filter(|(_, done)| done.is_ok()).count();
            self.watched.with(|watched| watched.entry(id).or_default().done += done as u64);
            self.order_moved.notify_waiters();
            for (task, done) in changed {
                match done {
                    Ok(()) => {}
                    // It is being tried, or has just changed: at the next look.
                    Err(OperateError::Busy(_) | OperateError::Commit(CommitError::Conflict { .. })) => {
                        busy.insert(task);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(busy)
    }

    async fn carry_out_about(
        self: &Arc<Self>,
        task: Task,
        row: Value,
        order: &Order,
    ) -> Result<(), OperateError> {
        let found = store::email::look(&self.store, task.account, task.id).await?;
        // Forgotten meanwhile, and its task with it.
        let Some(found) = found else { return Ok(()) };
        self.carry_out_one(&Open { recipient: found.recipient, task, row }, order).await
    }
}
