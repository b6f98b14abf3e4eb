//! Scheduler of due domain checks: round-robin over accounts, with a concurrency limit for each.
//!
//! ```text
//! due domains, as read ─[enqueue]─► one FIFO for each account ─[dequeue]─► in progress ─[finish]─►
//! ```
//!
//! Accounts with slow name servers share a limited number of slots; the other slots remain for fast ones. A domain that
//! finds no capacity stays due in the store and is read again.

use std::collections::{HashMap, HashSet, VecDeque};

use model::id::{AccountId, DomainId};
use store::domain_setup::DomainSetupKey;

/// Concurrent checks, over all accounts.
const CONCURRENCY: usize = 32;
/// Concurrent checks of slow accounts, out of these.
const SLOW_CONCURRENCY: usize = 12;
/// Concurrent checks of one account.
const PER_ACCOUNT_CONCURRENCY: usize = 4;
/// Domains of one account queued in memory.
const PER_ACCOUNT_WAITING_MAX: usize = 256;
/// Idle accounts that are remembered as slow.
const SLOW_ACCOUNTS_MAX: usize = 10_000;

/// Queued and running checks of an account.
#[derive(Debug, Default)]
struct AccountChecks {
    waiting: VecDeque<DomainId>,
    in_progress: usize,
    is_slow: bool,
}

/// Queued domains and the number of checks in progress.
#[derive(Debug, Default)]
pub(super) struct CheckQueue {
    accounts: HashMap<AccountId, AccountChecks>,
    /// Accounts with queued domains, in round-robin order.
    account_queue: VecDeque<AccountId>,
    /// Domains queued or in progress.
    tracked: HashSet<DomainId>,
    /// Accounts whose last check was slow.
    slow: HashSet<AccountId>,
    in_progress: usize,
    slow_in_progress: usize,
}

impl CheckQueue {
    /// Enqueues a domain. Returns false if its account's queue is full.
    pub(super) fn enqueue(&mut self, (account, domain): DomainSetupKey) -> bool {
        if self.tracked.contains(&domain) {
            return true;
        }
        let is_slow = self.slow.contains(&account);
        let account_checks =
            self.accounts.entry(account).or_insert_with(|| AccountChecks { is_slow, ..AccountChecks::default() });
        if account_checks.waiting.len() >= PER_ACCOUNT_WAITING_MAX {
            return false;
        }
        if account_checks.waiting.is_empty() {
            self.account_queue.push_back(account);
        }
        account_checks.waiting.push_back(domain);
        self.tracked.insert(domain);
        true
    }

    /// Takes the next domain to check, if a slot is free.
    pub(super) fn dequeue(&mut self) -> Option<DomainSetupKey> {
        if self.in_progress >= CONCURRENCY {
            return None;
        }
        let slow_may = self.slow_in_progress < SLOW_CONCURRENCY;
        let lanes = &self.accounts;
        let has_capacity = |account: &AccountId| {
            lanes.get(account).is_some_and(|account_checks| {
                account_checks.in_progress < PER_ACCOUNT_CONCURRENCY && (slow_may || !account_checks.is_slow)
            })
        };
        let account =
            self.account_queue.iter().position(has_capacity).and_then(|index| self.account_queue.remove(index))?;
        let account_checks = self.accounts.get_mut(&account)?;
        let domain = account_checks.waiting.pop_front()?;
        account_checks.in_progress += 1;
        self.in_progress += 1;
        self.slow_in_progress += usize::from(account_checks.is_slow);
        if !account_checks.waiting.is_empty() {
            self.account_queue.push_back(account);
        }
        Some((account, domain))
    }

    /// Records a finished check. Its speed decides the slots of the account's next checks.
    pub(super) fn finish(&mut self, (account, domain): DomainSetupKey, was_slow: bool) {
        self.tracked.remove(&domain);
        let Some(account_checks) = self.accounts.get_mut(&account) else { return };
        self.in_progress -= 1;
        account_checks.in_progress -= 1;
        // The account's running checks count by its new speed from now on.
        self.slow_in_progress -= usize::from(account_checks.is_slow) * (account_checks.in_progress + 1);
        account_checks.is_slow = was_slow;
        self.slow_in_progress += usize::from(account_checks.is_slow) * account_checks.in_progress;
        if account_checks.waiting.is_empty() && account_checks.in_progress == 0 {
            self.accounts.remove(&account);
        }
        if !was_slow {
            self.slow.remove(&account);
        } else if self.slow.len() < SLOW_ACCOUNTS_MAX {
            self.slow.insert(account);
        }
    }

    /// Clears all queues; running checks are not affected.
    pub(super) fn clear(&mut self) {
        for account in self.account_queue.drain(..) {
            let Some(account_checks) = self.accounts.get_mut(&account) else { continue };
            for domain in account_checks.waiting.drain(..) {
                self.tracked.remove(&domain);
            }
            if account_checks.in_progress == 0 {
                self.accounts.remove(&account);
            }
        }
    }

    /// Returns whether no domain is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.account_queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(n: u8) -> AccountId {
        AccountId::from_bytes([n; 16])
    }

    fn join(queue: &mut CheckQueue, n: u8, domains: u16) {
        for domain in 0..domains {
            let mut id = [n; 16];
            id[..2].copy_from_slice(&domain.to_be_bytes());
            queue.enqueue((account(n), DomainId::from_bytes(id)));
        }
    }

    fn all(queue: &mut CheckQueue) -> Vec<DomainSetupKey> {
        std::iter::from_fn(|| queue.dequeue()).collect()
    }

    fn of(dequeued: &[DomainSetupKey], n: u8) -> usize {
        dequeued.iter().filter(|(owner, _)| *owner == account(n)).count()
    }

    #[test]
    fn an_account_gets_its_share_of_checks_only() {
        let mut queue = CheckQueue::default();
        join(&mut queue, 1, 1_000);
        assert_eq!(queue.tracked.len(), PER_ACCOUNT_WAITING_MAX, "memory is bounded");
        join(&mut queue, 2, 1);
        let dequeued = all(&mut queue);
        assert_eq!((of(&dequeued, 1), of(&dequeued, 2)), (PER_ACCOUNT_CONCURRENCY, 1));
        assert_eq!(dequeued[1].0, account(2), "in turns");
        // A running check is not enqueued again, and a finished one frees a slot.
        join(&mut queue, 2, 1);
        assert!(all(&mut queue).is_empty());
        queue.finish(dequeued[0], false);
        assert_eq!(of(&all(&mut queue), 1), 1);
    }

    #[test]
    fn slow_accounts_do_not_block_fast_ones() {
        let mut queue = CheckQueue::default();
        for slow in 0..100 {
            join(&mut queue, slow, 20);
        }
        // The accounts become known as slow, as many at a time as there are slots.
        for _ in 0..100usize.div_ceil(CONCURRENCY) {
            for dequeued in all(&mut queue) {
                queue.finish(dequeued, true);
            }
        }
        let mut of_slow = all(&mut queue);
        assert!(of_slow.len() < CONCURRENCY, "{}", of_slow.len());
        for round in 0..50 {
            join(&mut queue, 200, 40);
            let fast = all(&mut queue);
            assert!(of(&fast, 200) > 0, "round {round}: there is always a place");
            for domain in fast {
                let is_fast = domain.0 == account(200);
                if is_fast {
                    queue.finish(domain, false);
                } else {
                    of_slow.push(domain);
                }
            }
            // A slow check finishes now and then.
            queue.finish(of_slow.remove(0), true);
        }
    }

    #[test]
    fn a_cleared_domain_can_be_enqueued_again() {
        let mut queue = CheckQueue::default();
        join(&mut queue, 1, 30);
        let dequeued = all(&mut queue);
        queue.clear();
        assert_eq!((queue.tracked.len(), queue.is_empty()), (PER_ACCOUNT_CONCURRENCY, true));
        for domain in dequeued {
            queue.finish(domain, false);
        }
        join(&mut queue, 1, 30);
        assert_eq!((queue.tracked.len(), all(&mut queue).len()), (30, PER_ACCOUNT_CONCURRENCY));
    }

    #[test]
    fn finished_checks_leave_no_state() {
        let mut queue = CheckQueue::default();
        join(&mut queue, 1, 30);
        join(&mut queue, 2, 30);
        let mut checks = 0;
        while let Some(domain) = queue.dequeue() {
            let others = all(&mut queue);
            for domain in std::iter::once(domain).chain(others) {
                queue.finish(domain, checks % 3 == 0);
                checks += 1;
            }
        }
        assert!(queue.is_empty() && queue.accounts.is_empty() && queue.tracked.is_empty());
        assert_eq!((checks, queue.in_progress, queue.slow_in_progress), (60, 0, 0));
    }
}
