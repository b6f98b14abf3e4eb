//! Waiting tasks of a ready queue, in weighted-fair order, and its capacity for tasks that are on disk.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::task::{QueueName, Task, TaskClass};
use net::limit::body_budget::BufferedBody;
use store::engine::Value;

use crate::scheduler::weighted_fair_queue::WeightedFairQueue;

/// Idle timeout of a connection: opening a new one costs more than keeping one open this long.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// A task that is due.
#[derive(Debug)]
pub struct ReadyTask {
    pub task: Task,
    /// Row as read from disk; `None` for a fresh task, whose row equals its encoding.
    pub row: Option<Value>,
    /// The message, if it is in memory.
    pub body: Option<Arc<BufferedBody>>,
}

/// The tasks of a ready queue, and the queues on disk that wait for capacity.
#[derive(Debug)]
pub(super) struct WaitingTasks {
    pub(super) tasks: WeightedFairQueue<ReadyTask>,
    /// Largest number of tasks.
    max: usize,
    /// Queues with due tasks on disk for which there was no capacity.
    parked: HashSet<QueueName>,
    /// Arrival times of the newest task and the one before.
    arrivals: [Option<Timestamp>; 2],
}

impl WaitingTasks {
    pub(super) fn new(max: usize) -> Self {
        Self { tasks: WeightedFairQueue::default(), max, parked: HashSet::new(), arrivals: [None; 2] }
    }

    pub(super) fn push(&mut self, ready: ReadyTask, now: Timestamp) {
        self.tasks.push(ready.task.class, ready.task.account, ready);
        self.arrivals = [Some(now), self.arrivals[0]];
    }

    /// Puts back a task that was taken and not attempted.
    pub(super) fn push_front(&mut self, ready: ReadyTask) {
        self.tasks.push_front(ready.task.class, ready.task.account, ready);
    }

    /// Removes and returns all tasks.
    pub(super) fn take_all(&mut self) -> Vec<ReadyTask> {
        std::iter::from_fn(|| self.tasks.pop()).collect()
    }

    /// True if keeping a connection open is worthwhile: tasks are waiting, or the last two tasks arrived within
    /// [`IDLE_TIMEOUT`] of each other and of now.
    pub(super) fn expects_more(&self, now: Timestamp) -> bool {
        let is_close = |later_at: Timestamp, earlier_at: Timestamp| {
            !Duration::try_from(later_at.duration_since(earlier_at)).is_ok_and(|wait| wait > IDLE_TIMEOUT)
        };
        match self.arrivals {
            _ if !self.tasks.is_empty() => true,
            [Some(last), Some(before)] => is_close(now, last) && is_close(last, before),
            _ => false,
        }
    }

    /// Number of tasks of a class that may still be enqueued. Lower classes may fill only a part, so that higher ones
    /// always find capacity.
    pub(super) fn class_capacity(&self, class: TaskClass, free: usize) -> usize {
        let share = match class {
            TaskClass::Expiring | TaskClass::Transactional => self.max,
            TaskClass::Product => self.max / 2,
            TaskClass::Newsletter => self.max / 4,
        };
        share.min(free).max(1).saturating_sub(self.tasks.len())
    }

    /// Number of tasks of a class that may be loaded from disk, so that all of them fit after each has taken one of the
    /// `free` places.
    pub(super) fn load_capacity(&self, class: TaskClass, free: usize) -> usize {
        let waiting = self.tasks.len();
        let fair = free.saturating_sub(waiting) / 2;
        self.class_capacity(class, usize::MAX).min(fair).max(usize::from(waiting == 0))
    }

    pub(super) fn park(&mut self, queue: QueueName) {
        self.parked.insert(queue);
    }

    pub(super) fn parked_count(&self) -> usize {
        self.parked.len()
    }

    /// Takes some parked queues, higher classes first, once at most an eighth of the capacity is used. The others follow
    /// as more messages are sent.
    pub(super) fn take_parked(&mut self) -> Vec<QueueName> {
        const AT_ONCE: usize = 16;
        if self.parked.is_empty() || self.tasks.len() > self.max / 8 {
            return Vec::new();
        }
        let mut chosen: Vec<QueueName> = self.parked.iter().take(AT_ONCE * 4).cloned().collect();
        chosen.sort_by_key(|queue| queue.class);
        chosen.truncate(AT_ONCE);
        for queue in &chosen {
            self.parked.remove(queue);
        }
        chosen
    }
}
