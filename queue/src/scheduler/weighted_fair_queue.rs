//! Weighted fair queueing inside a ready queue: weighted by task class, round-robin by account. No I/O.
//!
//! Classes use stride scheduling: a class's pass value grows by its stride when it is served, and the lowest pass is
//! served next. A class that was empty starts at the current pass, so it has no credit from its idle time. Inside a
//! class, accounts take turns with one task each, so that one account's million messages do not delay another's single
//! one.

use std::collections::{HashMap, VecDeque};

use model::id::AccountId;
use model::task::TaskClass;

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
    accounts: VecDeque<AccountId>,
    tasks: HashMap<AccountId, VecDeque<T>>,
}

impl<T> Default for ClassQueue<T> {
    fn default() -> Self {
        Self { pass: 0, accounts: VecDeque::new(), tasks: HashMap::new() }
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
    pub fn len(&self) -> usize {
        self.len
    }

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
        let class_queue = &mut self.classes[class as usize];
        if class_queue.accounts.is_empty() {
            class_queue.pass = class_queue.pass.max(self.now);
        }
        let queue = class_queue.tasks.entry(account).or_default();
        if queue.is_empty() {
            class_queue.accounts.push_back(account);
        }
        queue
    }

    /// Number of tasks served before this one. Tasks that arrive later may still be served first.
    pub fn position(&self, class: TaskClass, account: AccountId, is: impl Fn(&T) -> bool) -> Option<usize> {
        let own_position = self.classes[class as usize].tasks.get(&account)?.iter().position(is)?;
        let mut waiting = WeightedFairQueue { len: self.len, now: self.now, ..WeightedFairQueue::default() };
        for (class, class_queue) in TaskClass::ALL.into_iter().zip(&self.classes) {
            let tasks = |account| class_queue.tasks.get(account).map_or(0, VecDeque::len);
            waiting.classes[class as usize] = ClassQueue {
                pass: class_queue.pass,
                accounts: class_queue.accounts.clone(),
                tasks: class_queue
                    .accounts
                    .iter()
                    .map(|account_id| (*account_id, VecDeque::from(vec![(class, *account_id); tasks(account_id)])))
                    .collect(),
            };
        }
        let order = std::iter::from_fn(|| waiting.pop()).enumerate();
        let mut own_turns = order.filter(|(_, turn)| *turn == (class, account));
        own_turns.nth(own_position).map(|(index, _)| index)
    }

    /// Removes a task from its account's queue; false if it is not there.
    pub fn remove(&mut self, class: TaskClass, account: AccountId, is: impl Fn(&T) -> bool) -> bool {
        let class_queue = &mut self.classes[class as usize];
        let Some(queue) = class_queue.tasks.get_mut(&account) else { return false };
        let Some(at) = queue.iter().position(is) else { return false };
        queue.remove(at);
        self.len -= 1;
        if queue.is_empty() {
            class_queue.tasks.remove(&account);
            class_queue.accounts.retain(|other| *other != account);
        }
        true
    }

    /// Removes all tasks of an account.
    pub fn remove_all(&mut self, account: AccountId) -> Vec<T> {
        let mut removed = Vec::new();
        for class_queue in &mut self.classes {
            if let Some(queue) = class_queue.tasks.remove(&account) {
                class_queue.accounts.retain(|other| *other != account);
                removed.extend(queue);
            }
        }
        self.len -= removed.len();
        removed
    }

    /// Returns whether a class has tasks.
    pub fn has(&self, class: TaskClass) -> bool {
        !self.classes[class as usize].accounts.is_empty()
    }

    /// Takes the next task.
    pub fn pop(&mut self) -> Option<T> {
        let waiting = TaskClass::ALL.into_iter().filter(|class| self.has(*class));
        self.pop_class(waiting.min_by_key(|class| self.classes[*class as usize].pass)?)
    }

    /// Takes the next task of a class.
    pub fn pop_class(&mut self, class: TaskClass) -> Option<T> {
        let class_queue = &mut self.classes[class as usize];
        self.now = class_queue.pass;
        class_queue.pass += stride(class);
        let account = class_queue.accounts.pop_front()?;
        let queue = class_queue.tasks.get_mut(&account)?;
        let task = queue.pop_front()?;
        self.len -= 1;
        if queue.is_empty() {
            class_queue.tasks.remove(&account);
        } else {
            class_queue.accounts.push_back(account);
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
    fn a_password_reset_overtakes_a_million_newsletters() {
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
    fn accounts_take_turns_and_their_tasks_keep_their_order() {
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
    fn a_position_predicts_the_order_of_dequeuing() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..40 {
            queue.push(TaskClass::ALL[n % 4], account(n as u128 % 3), n);
        }
        for _ in 0..5 {
            queue.pop();
        }
        let positions: Vec<_> =
            (0..40).map(|n| queue.position(TaskClass::ALL[n % 4], account(n as u128 % 3), |task| *task == n)).collect();
        let mut dequeued = 0;
        while let Some(n) = queue.pop() {
            assert_eq!(positions[n], Some(dequeued));
            dequeued += 1;
        }
        assert_eq!(positions.iter().flatten().count(), dequeued);
    }

    #[test]
    fn removing_a_task_keeps_the_other_turns() {
        let mut queue = WeightedFairQueue::default();
        for n in 0..6 {
            queue.push(TaskClass::Product, account(n % 2), n);
        }
        let remove = |queue: &mut WeightedFairQueue<u128>, n| {
            queue.remove(TaskClass::Product, account(n % 2), |task| *task == n)
        };
        assert!(remove(&mut queue, 2) && !remove(&mut queue, 2) && remove(&mut queue, 1));
        assert!(remove(&mut queue, 3) && remove(&mut queue, 5));
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [0, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_requeued_task_is_first() {
        let mut queue = WeightedFairQueue::default();
        queue.push(TaskClass::Product, account(1), 2);
        queue.push_front(TaskClass::Product, account(1), 1);
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(1), Some(2), None));
    }
}
