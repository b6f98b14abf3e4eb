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
enum Place {
    /// In a ready queue, or on its way there.
    Waiting,
    /// Being tried; in which partition it lies.
    Attempting(u16),
    /// Taken back by the operator, who works on it; whoever meets it drops it. Its place is free once both are through:
    /// what lies in a line was read before, and must not go any more.
    Withdrawn {
        /// The operator is not done.
        is_worked_on: bool,
        /// It lies in a line, or on its way there.
        is_in_line: bool,
    },
}

/// What withdrawing a task came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// It is out of everybody's reach until it is given back ([`Flights::give_back`]).
    Done,
    /// It is being tried this moment, or another order is about it: too late.
    Busy,
}

#[derive(Debug, Default)]
struct Places {
    taken: HashMap<TaskId, Place>,
    /// While a scan runs: what gave its place back since it began.
    landed: Option<HashSet<TaskId>>,
}

impl Places {
    fn free(&mut self, task: TaskId) {
        self.taken.remove(&task);
        if let Some(landed) = &mut self.landed {
            landed.insert(task);
        }
    }

    /// The task is in no line any more. Its place is free, unless somebody works on it.
    fn leave_line(&mut self, task: TaskId) {
        match self.taken.get_mut(&task) {
            Some(Place::Withdrawn { is_worked_on: true, is_in_line }) => *is_in_line = false,
            _ => self.free(task),
        }
    }
}

/// The tasks in memory.
#[derive(Debug)]
pub struct Flights {
    places: Mutex<Places>,
    places_max: usize,
}

impl Flights {
    /// At most so many tasks are in memory.
    #[must_use]
    pub fn new(places_max: usize) -> Self {
        Self { places: Mutex::default(), places_max }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many tasks are in memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().taken.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more may come.
    #[must_use]
    pub fn room(&self) -> usize {
        self.places_max.saturating_sub(self.len())
    }

    /// Takes a place for a task that is about to be written; false when there is no room.
    pub fn reserve(&self, task: TaskId) -> bool {
        let mut places = self.lock();
        if places.taken.len() >= self.places_max {
            return false;
        }
        places.taken.insert(task, Place::Waiting);
        true
    }

    /// Takes a place for a task that was just read, if it has none and there is room.
    pub fn reserve_absent(&self, task: TaskId) -> bool {
        let mut places = self.lock();
        let is_free = places.taken.len() < self.places_max && !places.taken.contains_key(&task);
        if is_free {
            places.taken.insert(task, Place::Waiting);
        }
        is_free
    }

    /// Takes a place for a task that the running scan found; false when it is in memory, or was.
    pub fn board(&self, task: TaskId) -> bool {
        let mut places = self.lock();
        if places.taken.contains_key(&task) || places.landed.as_ref().is_some_and(|l| l.contains(&task)) {
            return false;
        }
        places.taken.insert(task, Place::Waiting);
        true
    }

    /// The task, which lies in this partition, is tried now; false when it was withdrawn, and then it has
    /// given back its place.
    pub fn depart(&self, task: TaskId, partition: u16) -> bool {
        let mut places = self.lock();
        match places.taken.get_mut(&task) {
            Some(place @ Place::Waiting) => {
                *place = Place::Attempting(partition);
                true
            }
            _ => {
                places.leave_line(task);
                false
            }
        }
    }

    /// The task was taken and is put back untried.
    pub fn wait_again(&self, task: TaskId) {
        if let Some(place @ Place::Attempting(_)) = self.lock().taken.get_mut(&task) {
            *place = Place::Waiting;
        }
    }

    /// The task gives back its place.
    pub fn land(&self, task: TaskId) {
        self.lock().leave_line(task);
    }

    /// Takes a task back, wherever it is.
    pub fn withdraw(&self, task: TaskId) -> Withdrawal {
        let mut places = self.lock();
        let is_in_line = match places.taken.get(&task) {
            Some(Place::Attempting(_) | Place::Withdrawn { is_worked_on: true, .. }) => {
                return Withdrawal::Busy;
            }
            Some(Place::Waiting | Place::Withdrawn { .. }) => true,
            // Its place is taken, so that no scan brings it in before the operator is done.
            None => false,
        };
        places.taken.insert(task, Place::Withdrawn { is_worked_on: true, is_in_line });
        Withdrawal::Done
    }

    /// The operator is done with a task that was withdrawn. One that still lies in a line keeps its place until it is
    /// met there.
    pub fn give_back(&self, task: TaskId) {
        let mut places = self.lock();
        match places.taken.get_mut(&task) {
            Some(Place::Withdrawn { is_worked_on, is_in_line: true }) => *is_worked_on = false,
            _ => places.free(task),
        }
    }

    /// Whether the task is in memory and not withdrawn.
    #[must_use]
    pub fn holds(&self, task: TaskId) -> bool {
        matches!(self.lock().taken.get(&task), Some(Place::Waiting | Place::Attempting(_)))
    }

    /// Whether the task is being tried.
    #[must_use]
    pub fn is_attempting(&self, task: TaskId) -> bool {
        matches!(self.lock().taken.get(&task), Some(Place::Attempting(_)))
    }

    /// How many tasks of a partition are being tried.
    #[must_use]
    pub fn attempting(&self, partition: u16) -> usize {
        self.lock().taken.values().filter(|place| **place == Place::Attempting(partition)).count()
    }

    /// A scan begins. One at a time.
    pub fn scan_begins(&self) {
        self.lock().landed = Some(HashSet::new());
    }

    /// The scan has ended and what it found has boarded.
    pub fn scan_ends(&self) {
        self.lock().landed = None;
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
        let flights = Flights::new(10);
        assert!(flights.reserve(task(1)));
        flights.scan_begins();
        assert!(!flights.board(task(1)), "it is in memory");
        assert!(flights.depart(task(1), 0));
        flights.land(task(1));
        assert!(!flights.board(task(1)), "the scan saw its old row");
        flights.scan_ends();
        flights.scan_begins();
        assert!(flights.board(task(1)), "a new scan sees its new row");
    }

    #[test]
    fn a_withdrawn_task_is_dropped_when_it_is_met() {
        let flights = Flights::new(10);
        flights.reserve(task(1));
        assert_eq!(flights.withdraw(task(1)), Withdrawal::Done);
        assert_eq!(flights.withdraw(task(1)), Withdrawal::Busy, "somebody works on it");
        assert!(!flights.depart(task(1), 0));
        assert!(!flights.board(task(1)), "what is on disk is changed this moment");
        flights.give_back(task(1));
        assert!(flights.board(task(1)) && flights.depart(task(1), 0));
        assert_eq!(flights.withdraw(task(1)), Withdrawal::Busy);
    }

    #[test]
    fn what_lies_in_a_line_from_before_does_not_go() {
        let flights = Flights::new(10);
        flights.reserve(task(1));
        flights.withdraw(task(1));
        flights.give_back(task(1));
        assert!(!flights.board(task(1)), "its row of before lies in a line");
        assert!(!flights.depart(task(1), 0));
        assert!(flights.board(task(1)));
        flights.land(task(1));
        assert_eq!(flights.withdraw(task(1)), Withdrawal::Done);
        flights.give_back(task(1));
        assert!(flights.is_empty());
    }

    #[test]
    fn there_is_room_for_so_many() {
        let flights = Flights::new(1);
        assert!(flights.reserve(task(1)) && !flights.reserve(task(2)));
    }
}
