//! Orders about all tasks that a filter names.
//!
//! ```text
//! order ─►[ a row in every partition ]─► its owner walks the queues there, and takes the row away
//! ```
//!
//! So an order is carried out to its end whatever is restarted meanwhile, and on every node. It is about the mail that is
//! in the queue when it is given; what is accepted later goes its usual way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::task::{QueueName, Task};
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

/// How many tasks were changed here, by order: of those that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<HashMap<[u8; 16], u64>>);

impl Watched {
    fn with<T>(&self, see: impl FnOnce(&mut HashMap<[u8; 16], u64>) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An order that was given: it is carried out, watched or not.
pub struct Given {
    worker: Arc<Worker>,
    id: [u8; 16],
}

impl Given {
    /// How many tasks were changed so far, by this node; and in how many partitions it is not carried out yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn progress(&self) -> Result<(u64, usize), ReadError> {
        let left = queue_order::left(&self.worker.store, self.id).await?;
        let done = self.worker.watched.with(|watched| watched.get(&self.id).copied());
        Ok((done.unwrap_or(0), left))
    }

    /// Returns when there may be progress.
    pub async fn moved(&self) {
        let _ = tokio::time::timeout(LOOK_AGAIN, self.worker.order_moved.notified()).await;
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.worker.watched.with(|watched| watched.remove(&self.id));
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
    pub async fn order_many(
        self: &Arc<Self>,
        filter: TaskFilter,
        order: &Order,
    ) -> Result<Given, OperateError> {
        self.judge(order)?;
        let now = self.later(Duration::from_millis(1));
        let before = filter.accepted_before.map_or(now, |before| before.min(now));
        let filter = TaskFilter { accepted_before: Some(before), ..filter };
        let id = self.entropy.u128().to_be_bytes();
        let mut batch = Batch::progress();
        queue_order::put(&mut batch, id, &QueueOrder { order: order.word(), filter });
        self.watched.with(|watched| watched.insert(id, 0));
        let given = Given { worker: Arc::clone(self), id };
        self.store.commit(batch).await?;
        self.something_ordered.notify_one();
        Ok(given)
    }

    /// Carries out what is ordered about many tasks, until the worker stops.
    pub(crate) async fn carry_out_orders(self: Arc<Self>) {
        loop {
            let again = match self.carry_out_some().await {
                Ok(Part::Whole) if self.store.is_shared() => LOOK_AGAIN,
                Ok(Part::Whole) => Duration::MAX,
                Ok(Part::Busy) => LOOK_AGAIN,
                Err(error) => {
                    tracing::warn!(%error, "an order about the queue cannot be carried out yet");
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
        let mut whole = Part::Whole;
        for pending in queue_order::pending(&self.store, PENDING_MAX).await? {
            if self.stop.is_cancelled() {
                return Ok(Part::Busy);
            }
            if !self.leases.is_active(pending.partition) {
                continue;
            }
            if self.carry_out_in(&pending).await? == Part::Busy {
                whole = Part::Busy;
                continue;
            }
            let mut batch = Batch::progress();
            queue_order::done(&mut batch, pending.partition, pending.id);
            self.store.commit(batch).await?;
            self.order_moved.notify_waiters();
        }
        Ok(whole)
    }

    async fn carry_out_in(self: &Arc<Self>, pending: &Pending) -> Result<Part, OperateError> {
        // Of a newer version: whoever gave it finds out.
        let Some(order) = Order::of_word(&pending.order.order) else { return Ok(Part::Whole) };
        let (mut whole, mut from) = (Part::Whole, None);
        while let Some((queue, _, next)) =
            store::task::next_queue(&self.store, pending.partition, from).await?
        {
            if pending.order.filter.may_be_in(&queue)
                && self.carry_out_in_queue(&queue, pending, &order).await? == Part::Busy
            {
                whole = Part::Busy;
            }
            from = Some(next);
        }
        Ok(whole)
    }

    async fn carry_out_in_queue(
        self: &Arc<Self>,
        queue: &QueueName,
        pending: &Pending,
        order: &Order,
    ) -> Result<Part, OperateError> {
        let mut whole = Part::Whole;
        let mut from = Some(store::task::start_of(queue, Timestamp::UNIX_EPOCH));
        while let Some(start) = from.filter(|_| !self.stop.is_cancelled()) {
            let slice = store::task::list(&self.store, queue, start, SLICE_TASKS).await?;
            from = slice.next;
            let meant = slice.tasks.into_iter().filter(|(task, _)| pending.order.filter.matches(task));
            let changed: Vec<Result<(), OperateError>> = futures_util::stream::iter(meant)
                .map(|(task, row)| self.carry_out_about(task, row, order))
                .buffer_unordered(AT_ONCE)
                .collect()
                .await;
            let done = changed.iter().filter(|done| done.is_ok()).count();
            self.watched.with(|watched| {
                watched.entry(pending.id).and_modify(|count| *count += done as u64);
            });
            self.order_moved.notify_waiters();
            for failed in changed.into_iter().filter_map(Result::err) {
                match failed {
                    // It is being tried, or has just changed: at the next look.
                    OperateError::Busy(_) | OperateError::Commit(CommitError::Conflict { .. }) => {
                        whole = Part::Busy;
                    }
                    error => return Err(error),
                }
            }
        }
        Ok(if self.stop.is_cancelled() { Part::Busy } else { whole })
    }

    async fn carry_out_about(&self, task: Task, row: Value, order: &Order) -> Result<(), OperateError> {
        let found = store::email::look(&self.store, task.account, task.id).await?;
        // Forgotten meanwhile, and its task with it.
        let Some(found) = found else { return Ok(()) };
        self.carry_out_one(&Open { recipient: found.recipient, task, row }, order).await
    }
}
