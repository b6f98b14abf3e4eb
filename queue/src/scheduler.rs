//! Scheduler: which queued tasks are in memory, and when the other ones are read from disk.
//!
//! ```text
//! reserve ─[commit]─► in flight ─► outcome            due index (one entry per queue, tasks on disk)
//!                         │ untried                        ▲
//!                         └────────── defer, park ─────────┘
//! ```

pub(crate) mod checked_out;
pub mod damaged_tasks;
pub(crate) mod deadline_timers;
pub(crate) mod deadlines;
pub(crate) mod delay_tracker;
pub(crate) mod delays;
pub mod destination_policies;
pub mod destination_queues;
pub(crate) mod dispatch;
pub mod due_index;
pub mod holds;
pub mod in_flight;
pub mod pacing;
pub mod partition_timers;
pub mod pause_state;
pub(crate) mod provider_limits;
pub(crate) mod queue_counter;
pub(crate) mod queue_loader;
pub mod ready_queue;
pub mod source_pools;
pub(crate) mod warm_up;
pub mod weighted_fair_queue;

use std::sync::Arc;

use jiff::Timestamp;
use model::task::{QueueName, Task};
use net::clock::Clock;
use store::engine::{Key, ReadError, Store};

use crate::scheduler::damaged_tasks::DamagedTasks;
use crate::scheduler::due_index::DueIndex;
use crate::scheduler::holds::HoldCache;
use crate::scheduler::in_flight::InFlightTasks;
use crate::scheduler::ready_queue::{ReadyQueue, ReadyTask};

/// The tasks in memory and the due times of those on disk.
pub struct Scheduler {
    pub(crate) clock: Clock,
    pub(crate) in_flight: InFlightTasks,
    pub(crate) due_index: DueIndex,
    pub(crate) holds: Arc<HoldCache>,
    pub damaged: DamagedTasks,
}

impl Scheduler {
    pub(crate) fn new(clock: Clock, holds: Arc<HoldCache>, in_flight_max: usize) -> Self {
        Self {
            clock,
            in_flight: InFlightTasks::new(in_flight_max),
            due_index: DueIndex::default(),
            holds,
            damaged: DamagedTasks::default(),
        }
    }

    /// Loads the queues of a partition from disk, with one read for each.
    pub(crate) async fn load_partition(&self, store: &Store, partition: u16) -> Result<(), ReadError> {
        let mut from = None;
        while let Some((queue, due, next)) = store::task::next_queue(store, partition, from).await? {
            let start = store::task::due_start(&queue, due);
            self.due_index.add(queue, due, start);
            from = Some(next);
        }
        Ok(())
    }

    /// Adds a task on disk to the due index.
    pub(crate) fn schedule_task(&self, task: &Task) {
        self.due_index.add(task.queue_name(), task.due, store::task::key_of(task));
    }

    /// Returns an untried task to disk; it is read again at `until`.
    pub(crate) fn defer(&self, task: &Task, until: Timestamp) {
        self.in_flight.finish(task.id);
        self.due_index.add(task.queue_name(), until, store::task::key_of(task));
    }

    /// Returns tasks to disk, untried.
    pub(crate) fn defer_all(&self, waiting: Vec<ReadyTask>, until: Timestamp) {
        for ready in waiting {
            if self.in_flight.start(ready.task.id, ready.task.partition) {
                self.defer(&ready.task, until);
            } else {
                self.schedule_task(&ready.task);
            }
        }
    }

    /// Releases a task without an outcome and reloads its queue from disk.
    pub(crate) fn release_task(&self, task: &Task) {
        self.in_flight.finish(task.id);
        self.reload_later(task);
    }

    /// Schedules the task's queue to be read from disk: the stored row is authoritative.
    pub(crate) fn reload_later(&self, task: &Task) {
        let queue = task.queue_name();
        let start = store::task::due_start(&queue, Timestamp::UNIX_EPOCH);
        self.due_index.add(queue, self.clock.now(), start);
    }

    /// Returns a task of a held account to disk. Its queue is not read before the hold is lifted.
    pub(crate) fn park(&self, task: &Task) {
        self.in_flight.finish(task.id);
        self.park_queue(task.queue_name(), store::task::key_of(task));
    }

    /// Like [`park`](Self::park), for a queue from `from` on.
    pub(crate) fn park_queue(&self, queue: QueueName, from: Key) {
        self.due_index.add(queue.clone(), Timestamp::MAX, from);
        // If the hold was lifted before this entry existed, make the queue due here.
        if !self.holds.is_account_held(queue.account) {
            self.due_index.make_due(&queue, self.clock.now());
        }
    }

    /// Wakes parked queues of a ready queue that has capacity again.
    pub(crate) fn wake_parked(&self, site: &ReadyQueue) {
        for queue in site.take_parked() {
            self.due_index.make_due(&queue, self.clock.now());
        }
    }

    /// True if the next scan of a queue is in the future.
    pub fn is_deferred(&self, queue: &QueueName) -> bool {
        self.due_index.due_of(queue).is_some_and(|due| due > self.clock.now())
    }
}
