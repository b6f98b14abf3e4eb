//! Weighted fair queueing inside a ready queue: weighted by task class, round-robin by account. No I/O.
//!
//! Classes use stride scheduling: a class's pass value grows by its stride when it is served, and the lowest pass is
//! served next. A class that was empty starts at the current pass, so it has no credit from its idle time. Inside a
//! class, accounts take turns with one task each, so that one account's million messages do not delay another's single
//! one.

use std::collections::{HashMap, VecDeque};

use mail::id::AccountId;
use mail::task::TaskClass;

/// Stride of a class: half the stride is twice the share.
const fn stride(class: TaskClass) -> u64 {
    match class {
        TaskClass::Expiring => 1,
        TaskClass::Transactional => 2,
        TaskClass::Product => 8,
        TaskClass::Newsletter => 16,
    }
}

#[derive(Debug)]
struct ClassQueue<T> {
    pass: u64,
    turns: VecDeque<AccountId>,
    tasks: HashMap<AccountId, VecDeque<T>>,
}

impl<T> Default for ClassQueue<T> {
    fn default() -> Self {
        Self { pass: 0, turns: VecDeque::new(), tasks: HashMap::new() }
    }
}

/// A weighted fair queue.
#[derive(Debug)]
pub struct WeightedFairQueue<T> {
    classes: [ClassQueue<T>; TaskClass::ALL.len()],
    now: u64,
    len: usize,
}

impl<T> Default for WeightedFairQueue<T> {
    fn default() -> Self {
        Self { classes: std::array::from_fn(|_| ClassQueue::default()), now: 0, len: 0 }
    }
}

impl<T> WeightedFairQueue<T> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a task to its account's queue.
    pub fn push(&mut self, class: TaskClass, account: AccountId, task: T) {
        self.account_queue(class, account).push_back(task);
    }

    /// Returns an untried task to the head of its account's queue.
    pub fn push_front(&mut self, class: TaskClass, account: AccountId, task: T) {
        self.account_queue(class, account).push_front(task);
    }

    fn account_queue(&mut self, class: TaskClass, account: AccountId) -> &mut VecDeque<T> {
        self.len += 1;
        let accounts = &mut self.classes[class as usize];
        if accounts.turns.is_empty() {
            accounts.pass = accounts.pass.max(self.now);
        }
        let line = accounts.tasks.entry(account).or_default();
        if line.is_empty() {
            accounts.turns.push_back(account);
        }
        line
    }

    /// Number of tasks served before this one. Tasks that arrive later may still be served first.
    #[must_use]
    pub fn position(&self, class: TaskClass, account: AccountId, is: impl Fn(&T) -> bool) -> Option<usize> {
        let own = self.classes[class as usize].tasks.get(&account)?.iter().position(is)?;
        let mut waiting = WeightedFairQueue { len: self.len, now: self.now, ..WeightedFairQueue::default() };
        for (class, accounts) in TaskClass::ALL.into_iter().zip(&self.classes) {
            let tasks = |account| accounts.tasks.get(account).map_or(0, VecDeque::len);
            waiting.classes[class as usize] = ClassQueue {
                pass: accounts.pass,
                turns: accounts.turns.clone(),
                tasks: accounts
                    .turns
                    .iter()
                    .map(|one| (*one, VecDeque::from(vec![(class, *one); tasks(one)])))
                    .collect(),
            };
        }
        let order = std::iter::from_fn(|| waiting.pop()).enumerate();
        let mut theirs = order.filter(|(_, whose)| *whose == (class, account));
        theirs.nth(own).map(|(place, _)| place)
    }

    /// Removes a task from its account's queue; false if it is not there.
    pub fn remove(&mut self, class: TaskClass, account: AccountId, is: impl Fn(&T) -> bool) -> bool {
        let accounts = &mut self.classes[class as usize];
        let Some(line) = accounts.tasks.get_mut(&account) else { return false };
        let Some(at) = line.iter().position(is) else { return false };
        line.remove(at);
        self.len -= 1;
        if line.is_empty() {
            accounts.tasks.remove(&account);
            accounts.turns.retain(|one| *one != account);
        }
        true
    }

    /// Removes all tasks of an account.
    pub fn remove_all(&mut self, account: AccountId) -> Vec<T> {
        let mut removed = Vec::new();
        for accounts in &mut self.classes {
            if let Some(line) = accounts.tasks.remove(&account) {
                accounts.turns.retain(|one| *one != account);
                removed.extend(line);
            }
        }
        self.len -= removed.len();
        removed
    }

    /// Returns whether a class has tasks.
    #[must_use]
    pub fn has(&self, class: TaskClass) -> bool {
        !self.classes[class as usize].turns.is_empty()
    }

    /// Takes the next task.
    pub fn pop(&mut self) -> Option<T> {
        let waiting = TaskClass::ALL.into_iter().filter(|class| self.has(*class));
        self.pop_class(waiting.min_by_key(|class| self.classes[*class as usize].pass)?)
    }

    /// Takes the next task of a class.
    pub fn pop_class(&mut self, class: TaskClass) -> Option<T> {
        let accounts = &mut self.classes[class as usize];
        self.now = accounts.pass;
        accounts.pass += stride(class);
        let account = accounts.turns.pop_front()?;
        let line = accounts.tasks.get_mut(&account)?;
        let task = line.pop_front()?;
        self.len -= 1;
        if line.is_empty() {
            accounts.tasks.remove(&account);
        } else {
            accounts.turns.push_back(account);
        }
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn account(n: u128) -> AccountId {
        AccountId::new(Timestamp::UNIX_EPOCH, n)
    }

    #[test]
    fn a_password_reset_passes_a_million_newsletters() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..1_000 {
            queue.push(TaskClass::Newsletter, account(1), format!("news {n}"));
        }
        queue.pop();
        queue.push(TaskClass::Transactional, account(2), "reset".to_owned());
        assert_eq!(queue.pop().as_deref(), Some("reset"));
    }

    #[test]
    fn newsletters_do_not_starve() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..100 {
            queue.push(TaskClass::Transactional, account(1), ('t', n));
            queue.push(TaskClass::Newsletter, account(1), ('n', n));
        }
        let first: Vec<char> = std::iter::from_fn(|| queue.pop()).take(36).map(|(kind, _)| kind).collect();
        assert_eq!(first.iter().filter(|kind| **kind == 'n').count(), 4, "{first:?}");
    }

    #[test]
    fn accounts_take_turns_and_lines_keep_their_order() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..3 {
            queue.push(TaskClass::Transactional, account(1), (1, n));
        }
        queue.push(TaskClass::Transactional, account(2), (2, 0));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(1, 0), (2, 0), (1, 1), (1, 2)]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_place_is_when_it_is_taken() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..40 {
            queue.push(TaskClass::ALL[n % 4], account(n as u128 % 3), n);
        }
        for _ in 0..5 {
            queue.pop();
        }
        let places: Vec<_> =
            (0..40).map(|n| queue.position(TaskClass::ALL[n % 4], account(n as u128 % 3), |task| *task == n)).collect();
        let mut taken = 0;
        while let Some(n) = queue.pop() {
            assert_eq!(places[n], Some(taken));
            taken += 1;
        }
        assert_eq!(places.iter().flatten().count(), taken);
    }

    #[test]
    fn one_is_taken_out_and_the_others_keep_their_turns() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..6 {
            queue.push(TaskClass::Product, account(n % 2), n);
        }
        let gone = |queue: &mut WeightedFairQueue<u128>, n| {
            queue.remove(TaskClass::Product, account(n % 2), |task| *task == n)
        };
        assert!(gone(&mut queue, 2) && !gone(&mut queue, 2) && gone(&mut queue, 1));
        assert!(gone(&mut queue, 3) && gone(&mut queue, 5));
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [0, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_is_put_back_goes_first() {
        let mut queue = WeightedFairQueue::default();
        queue.push(TaskClass::Product, account(1), 2);
        queue.push_front(TaskClass::Product, account(1), 1);
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(1), Some(2), None));
    }
}
