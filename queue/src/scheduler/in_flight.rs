//! Tasks in memory: every task between its read or creation and the commit of its outcome. It ensures that no task is
//! in memory twice.
//!
//! A task gets an entry before the commit that makes its row visible, or when it is read from the store. The entry is
//! removed when its outcome is committed. One scan of the store runs at a time. During a scan, removed tasks are
//! remembered, because the scan may still return their old rows.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

use model::task::TaskId;

/// State of a task in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlightState {
    /// In a ready queue, or on its way there.
    Waiting,
    /// In an attempt; carries its partition.
    Attempting(u16),
    /// Withdrawn by the operator, who changes its row. A connection that finds it drops it, since that copy is
    /// outdated. The entry is removed after both.
    CheckedOut {
        /// True while the operator's change is not finished.
        is_worked_on: bool,
        /// True while the task is in a ready queue, or on its way there.
        is_in_line: bool,
    },
}

/// Result of checking a task out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutResult {
    /// The task is reserved for the caller until [`InFlightTasks::check_in`].
    Done,
    /// The task is in an attempt, or checked out by another command.
    Busy,
}

#[derive(Debug, Default)]
struct InFlightTable {
    tasks: HashMap<TaskId, InFlightState>,
    /// During a scan: tasks removed since it began.
    finished_during_scan: Option<HashSet<TaskId>>,
}

impl InFlightTable {
    fn remove(&mut self, task: TaskId) {
        self.tasks.remove(&task);
        if let Some(landed) = &mut self.finished_during_scan {
            landed.insert(task);
        }
    }

    /// Records that a task left its queue. Removes its entry unless it is being worked on.
    fn leave_queue(&mut self, task: TaskId) {
        match self.tasks.get_mut(&task) {
            Some(InFlightState::CheckedOut { is_worked_on: true, is_in_line }) => *is_in_line = false,
            _ => self.remove(task),
        }
    }
}

/// Registry of the tasks in memory.
#[derive(Debug)]
pub struct InFlightTasks {
    table: Mutex<InFlightTable>,
    tasks_max: usize,
}

impl InFlightTasks {
    /// Creates a registry for at most `tasks_max` tasks.
    pub fn new(tasks_max: usize) -> Self {
        Self { table: Mutex::default(), tasks_max }
    }

    pub fn len(&self) -> usize {
        self.table.lock().tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of tasks that may still be added.
    pub fn free_capacity(&self) -> usize {
        self.tasks_max.saturating_sub(self.len())
    }

    /// Adds an entry for a task that is about to be committed; false if the registry is full.
    pub fn reserve(&self, task: TaskId) -> bool {
        let mut table = self.table.lock();
        if table.tasks.len() >= self.tasks_max {
            return false;
        }
        table.tasks.insert(task, InFlightState::Waiting);
        true
    }

    /// Adds an entry for a task that was just read, if it has none and the registry is not full.
    pub fn reserve_absent(&self, task: TaskId) -> bool {
        let mut table = self.table.lock();
        let is_free = table.tasks.len() < self.tasks_max && !table.tasks.contains_key(&task);
        if is_free {
            table.tasks.insert(task, InFlightState::Waiting);
        }
        is_free
    }

    /// Adds an entry for a task that the running scan returned. False if it is in memory, or was since the scan began.
    pub fn admit(&self, task: TaskId) -> bool {
        let mut table = self.table.lock();
        if table.tasks.contains_key(&task) || table.finished_during_scan.as_ref().is_some_and(|l| l.contains(&task)) {
            return false;
        }
        table.tasks.insert(task, InFlightState::Waiting);
        true
    }

    /// Marks a task as in an attempt. False if it was withdrawn; its queue entry is then removed.
    pub fn start(&self, task: TaskId, partition: u16) -> bool {
        let mut table = self.table.lock();
        match table.tasks.get_mut(&task) {
            Some(state @ InFlightState::Waiting) => {
                *state = InFlightState::Attempting(partition);
                true
            }
            _ => {
                table.leave_queue(task);
                false
            }
        }
    }

    /// Marks a task as waiting again: it was taken and not tried.
    pub fn requeue(&self, task: TaskId) {
        if let Some(state @ InFlightState::Attempting(_)) = self.table.lock().tasks.get_mut(&task) {
            *state = InFlightState::Waiting;
        }
    }

    /// Removes a task's entry, unless it is checked out.
    pub fn finish(&self, task: TaskId) {
        self.table.lock().leave_queue(task);
    }

    /// Checks a task out, wherever it is.
    pub fn check_out(&self, task: TaskId) -> CheckOutResult {
        let mut table = self.table.lock();
        let is_in_line = match table.tasks.get(&task) {
            Some(InFlightState::Attempting(_) | InFlightState::CheckedOut { is_worked_on: true, .. }) => {
                return CheckOutResult::Busy;
            }
            Some(InFlightState::Waiting | InFlightState::CheckedOut { .. }) => true,
            // The entry prevents a scan from loading the task before the operator is done.
            None => false,
        };
        table.tasks.insert(task, InFlightState::CheckedOut { is_worked_on: true, is_in_line });
        CheckOutResult::Done
    }

    /// Ends a checkout. A task that is still in a queue keeps its entry until it is found there.
    pub fn check_in(&self, task: TaskId) {
        let mut table = self.table.lock();
        match table.tasks.get_mut(&task) {
            Some(InFlightState::CheckedOut { is_worked_on, is_in_line: true }) => *is_worked_on = false,
            _ => table.remove(task),
        }
    }

    /// Returns whether the task is in memory and not withdrawn.
    pub fn contains(&self, task: TaskId) -> bool {
        matches!(self.table.lock().tasks.get(&task), Some(InFlightState::Waiting | InFlightState::Attempting(_)))
    }

    /// Returns whether the task is in an attempt.
    pub fn is_attempting(&self, task: TaskId) -> bool {
        matches!(self.table.lock().tasks.get(&task), Some(InFlightState::Attempting(_)))
    }

    /// Number of tasks of a partition that are in an attempt.
    pub fn attempting_in(&self, partition: u16) -> usize {
        self.table.lock().tasks.values().filter(|state| **state == InFlightState::Attempting(partition)).count()
    }

    /// Starts a scan; one at a time.
    pub fn begin_scan(&self) {
        self.table.lock().finished_during_scan = Some(HashSet::new());
    }

    /// Ends the scan, after its tasks were admitted.
    pub fn end_scan(&self) {
        self.table.lock().finished_during_scan = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::id::EmailId;

    fn task(n: u128) -> TaskId {
        TaskId { email: EmailId::new(Timestamp::UNIX_EPOCH, n), recipient: 0 }
    }

    #[test]
    fn a_task_is_in_memory_once() {
        let in_flight = InFlightTasks::new(10);
        assert!(in_flight.reserve(task(1)));
        in_flight.begin_scan();
        assert!(!in_flight.admit(task(1)), "already in memory");
        assert!(in_flight.start(task(1), 0));
        in_flight.finish(task(1));
        assert!(!in_flight.admit(task(1)), "the scan saw its old row");
        in_flight.end_scan();
        in_flight.begin_scan();
        assert!(in_flight.admit(task(1)), "a new scan sees its new row");
    }

    #[test]
    fn a_checked_out_task_is_not_attempted() {
        let in_flight = InFlightTasks::new(10);
        in_flight.reserve(task(1));
        assert_eq!(in_flight.check_out(task(1)), CheckOutResult::Done);
        assert_eq!(in_flight.check_out(task(1)), CheckOutResult::Busy, "already checked out");
        assert!(!in_flight.start(task(1), 0));
        assert!(!in_flight.admit(task(1)), "its row is being changed");
        in_flight.check_in(task(1));
        assert!(in_flight.admit(task(1)) && in_flight.start(task(1), 0));
        assert_eq!(in_flight.check_out(task(1)), CheckOutResult::Busy);
    }

    #[test]
    fn an_outdated_queued_copy_is_not_attempted() {
        let in_flight = InFlightTasks::new(10);
        in_flight.reserve(task(1));
        in_flight.check_out(task(1));
        in_flight.check_in(task(1));
        assert!(!in_flight.admit(task(1)), "an outdated copy is still queued");
        assert!(!in_flight.start(task(1), 0));
        assert!(in_flight.admit(task(1)));
        in_flight.finish(task(1));
        assert_eq!(in_flight.check_out(task(1)), CheckOutResult::Done);
        in_flight.check_in(task(1));
        assert!(in_flight.is_empty());
    }

    #[test]
    fn reservations_are_limited_by_capacity() {
        let in_flight = InFlightTasks::new(1);
        assert!(in_flight.reserve(task(1)) && !in_flight.reserve(task(2)));
    }
}
