//! What is in memory: every task that is between the store and its settlement, so that none is ever
//! in memory twice.
//!
//! A task takes a place before the commit that makes its row visible, or when it is read back from
//! the store; it gives it back when its settlement is committed. One scan of the store runs at a
//! time; while it does, tasks that give their place back are remembered, because the scan may still
//! show their old rows.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mail::task::TaskId;

/// Where a task in memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlightState {
    /// In a ready queue, or on its way there.
    Waiting,
    /// Being tried; in which partition it lies.
    Attempting(u16),
    /// Taken back by the operator, who works on it; whoever meets it drops it. Its place is free once both are through:
    /// what lies in a line was read before, and must not go any more.
    CheckedOut {
        /// The operator is not done.
        is_worked_on: bool,
        /// It lies in a line, or on its way there.
        is_in_line: bool,
    },
}

/// What withdrawing a task came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutResult {
    /// It is out of everybody's reach until it is given back ([`Flights::give_back`]).
    Done,
    /// It is being tried this moment, or another order is about it: too late.
    Busy,
}

#[derive(Debug, Default)]
struct InFlightTable {
    tasks: HashMap<TaskId, InFlightState>,
    /// While a scan runs: what gave its place back since it began.
    finished_during_scan: Option<HashSet<TaskId>>,
}

impl InFlightTable {
    fn remove(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        if let Some(landed) = &mut self.finished_during_scan {
            landed.insert(task);
        }
    }

    /// The task is in no line any more. Its place is free, unless somebody works on it.
    fn leave_queue(&mut self, task: TaskId) {
        match self.tasks.get_mut(&task) {
            Some(InFlightState::CheckedOut { is_worked_on: true, is_in_line }) => *is_in_line = false,
            _ => self.remove(task),
        }
    }
}

/// The tasks in memory.
#[derive(Debug)]
pub struct InFlightTasks {
    table: Mutex<InFlightTable>,
    tasks_max: usize,
}

impl InFlightTasks {
    /// At most so many tasks are in memory.
    #[must_use]
    pub fn new(tasks_max: usize) -> Self {
        Self { table: Mutex::default(), tasks_max }
    }

    fn lock(&self) -> MutexGuard<'_, InFlightTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many tasks are in memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more may come.
    #[must_use]
    pub fn free_capacity(&self) -> usize {
        self.tasks_max.saturating_sub(self.len())
    }

    /// Takes a place for a task that is about to be written; false when there is no room.
    pub fn reserve(&self, task: TaskId) -> bool {
        let mut places = self.lock();
        if places.tasks.len() >= self.tasks_max {
            return false;
        }
        places.tasks.insert(task, InFlightState::Waiting);
        true
    }

    /// Takes a place for a task that was just read, if it has none and there is room.
    pub fn reserve_absent(&self, task: TaskId) -> bool {
        let mut places = self.lock();
        let is_free = places.tasks.len() < self.tasks_max && !places.tasks.contains_key(&task);
        if is_free {
            places.tasks.insert(task, InFlightState::Waiting);
        }
        is_free
    }

    /// Takes a place for a task that the running scan found; false when it is in memory, or was.
    pub fn admit(&self, task: TaskId) -> bool {
        let mut places = self.lock();
        if places.tasks.contains_key(&task) || places.finished_during_scan.as_ref().is_some_and(|l| l.contains(&task)) {
            return false;
        }
        places.tasks.insert(task, InFlightState::Waiting);
        true
    }

    /// The task, which lies in this partition, is tried now; false when it was withdrawn, and then it has
    /// given back its place.
    pub fn start(&self, task: TaskId, partition: u16) -> bool {
        let mut places = self.lock();
        match places.tasks.get_mut(&task) {
            Some(place @ InFlightState::Waiting) => {
                *place = InFlightState::Attempting(partition);
                true
            }
            _ => {
                places.leave_queue(task);
                false
            }
        }
    }

    /// The task was taken and is put back untried.
    pub fn requeue(&self, task: TaskId) {
        if let Some(place @ InFlightState::Attempting(_)) = self.lock().tasks.get_mut(&task) {
            *place = InFlightState::Waiting;
        }
    }

    /// The task gives back its place.
    pub fn finish(&self, task: TaskId) {
        self.lock().leave_queue(task);
    }

    /// Takes a task back, wherever it is.
    pub fn check_out(&self, task: TaskId) -> CheckOutResult {
        let mut places = self.lock();
        let is_in_line = match places.tasks.get(&task) {
            Some(InFlightState::Attempting(_) | InFlightState::CheckedOut { is_worked_on: true, .. }) => {
                return CheckOutResult::Busy;
            }
            Some(InFlightState::Waiting | InFlightState::CheckedOut { .. }) => true,
            // Its place is taken, so that no scan brings it in before the operator is done.
            None => false,
        };
        places.tasks.insert(task, InFlightState::CheckedOut { is_worked_on: true, is_in_line });
        CheckOutResult::Done
    }

    /// The operator is done with a task that was withdrawn. One that still lies in a line keeps its place until it is
    /// met there.
    pub fn check_in(&self, task: TaskId) {
        let mut places = self.lock();
        match places.tasks.get_mut(&task) {
            Some(InFlightState::CheckedOut { is_worked_on, is_in_line: true }) => *is_worked_on = false,
            _ => places.remove(task),
        }
    }

    /// Whether the task is in memory and not withdrawn.
    #[must_use]
    pub fn contains(&self, task: TaskId) -> bool {
        matches!(self.lock().tasks.get(&task), Some(InFlightState::Waiting | InFlightState::Attempting(_)))
    }

    /// Whether the task is being tried.
    #[must_use]
    pub fn is_attempting(&self, task: TaskId) -> bool {
        matches!(self.lock().tasks.get(&task), Some(InFlightState::Attempting(_)))
    }

    /// How many tasks of a partition are being tried.
    #[must_use]
    pub fn attempting_in(&self, partition: u16) -> usize {
        self.lock().tasks.values().filter(|place| **place == InFlightState::Attempting(partition)).count()
    }

    /// A scan begins. One at a time.
    pub fn begin_scan(&self) {
        self.lock().finished_during_scan = Some(HashSet::new());
    }

    /// The scan has ended and what it found has boarded.
    pub fn end_scan(&self) {
        self.lock().finished_during_scan = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use mail::id::EmailId;

    fn task(n: u128) -> TaskId {
        TaskId { email: EmailId::new(Timestamp::UNIX_EPOCH, n), recipient: 0 }
    }

    #[test]
    fn a_task_is_in_memory_once() {
        let flights = InFlightTasks::new(10);
        assert!(flights.reserve(task(1)));
        flights.begin_scan();
        assert!(!flights.admit(task(1)), "it is in memory");
        assert!(flights.start(task(1), 0));
        flights.finish(task(1));
        assert!(!flights.admit(task(1)), "the scan saw its old row");
        flights.end_scan();
        flights.begin_scan();
        assert!(flights.admit(task(1)), "a new scan sees its new row");
    }

    #[test]
    fn a_withdrawn_task_is_dropped_when_it_is_met() {
        let flights = InFlightTasks::new(10);
        flights.reserve(task(1));
        assert_eq!(flights.check_out(task(1)), CheckOutResult::Done);
        assert_eq!(flights.check_out(task(1)), CheckOutResult::Busy, "somebody works on it");
        assert!(!flights.start(task(1), 0));
        assert!(!flights.admit(task(1)), "what is on disk is changed this moment");
        flights.check_in(task(1));
        assert!(flights.admit(task(1)) && flights.start(task(1), 0));
        assert_eq!(flights.check_out(task(1)), CheckOutResult::Busy);
    }

    #[test]
    fn what_lies_in_a_line_from_before_does_not_go() {
        let flights = InFlightTasks::new(10);
        flights.reserve(task(1));
        flights.check_out(task(1));
        flights.check_in(task(1));
        assert!(!flights.admit(task(1)), "its row of before lies in a line");
        assert!(!flights.start(task(1), 0));
        assert!(flights.admit(task(1)));
        flights.finish(task(1));
        assert_eq!(flights.check_out(task(1)), CheckOutResult::Done);
        flights.check_in(task(1));
        assert!(flights.is_empty());
    }

    #[test]
    fn there_is_room_for_so_many() {
        let flights = InFlightTasks::new(1);
        assert!(flights.reserve(task(1)) && !flights.reserve(task(2)));
    }
}
