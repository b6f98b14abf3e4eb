//! Scheduler of due domain checks: round-robin over accounts, with a concurrency limit for each.
//!
//! ```text
//! due domains, as read ─[enqueue]─► one FIFO for each account ─[dequeue]─► in progress ─[finish]─►
//! ```
//!
//! Accounts with slow name servers share a limited number of slots; the other slots remain for fast ones. A domain that
//! finds no room stays due in the store and is read again.

use std::collections::{HashMap, HashSet, VecDeque};

use mail::id::{AccountId, DomainId};
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
    turns: VecDeque<AccountId>,
    /// Domains queued or in progress.
    known: HashSet<DomainId>,
    /// Accounts whose last check was slow.
    slow: HashSet<AccountId>,
    in_progress: usize,
    slow_in_progress: usize,
}

impl CheckQueue {
    /// Enqueues a domain. Returns false if its account's queue is full.
    pub(super) fn enqueue(&mut self, (account, domain): DomainSetupKey) -> bool {
        if self.known.contains(&domain) {
            return true;
        }
        let is_slow = self.slow.contains(&account);
        let account_checks =
            self.accounts.entry(account).or_insert_with(|| AccountChecks { is_slow, ..AccountChecks::default() });
        if account_checks.waiting.len() >= PER_ACCOUNT_WAITING_MAX {
            return false;
        }
        if account_checks.waiting.is_empty() {
            self.turns.push_back(account);
        }
        account_checks.waiting.push_back(domain);
        self.known.insert(domain);
        true
    }

    /// Takes the next domain to check, if a slot is free.
    pub(super) fn dequeue(&mut self) -> Option<DomainSetupKey> {
        if self.in_progress >= CONCURRENCY {
            return None;
        }
        let slow_may = self.slow_in_progress < SLOW_CONCURRENCY;
        let lanes = &self.accounts;
        let may = |account: &AccountId| {
            lanes.get(account).is_some_and(|account_checks| {
                account_checks.in_progress < PER_ACCOUNT_CONCURRENCY && (slow_may || !account_checks.is_slow)
            })
        };
        let account = self.turns.iter().position(may).and_then(|place| self.turns.remove(place))?;
        let account_checks = self.accounts.get_mut(&account)?;
        let domain = account_checks.waiting.pop_front()?;
        account_checks.in_progress += 1;
        self.in_progress += 1;
        self.slow_in_progress += usize::from(account_checks.is_slow);
        if !account_checks.waiting.is_empty() {
            self.turns.push_back(account);
        }
        Some((account, domain))
    }

    /// Records a finished check. Its speed decides the slots of the account's next checks.
    pub(super) fn finish(&mut self, (account, domain): DomainSetupKey, was_slow: bool) {
        self.known.remove(&domain);
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
        for account in self.turns.drain(..) {
            let Some(account_checks) = self.accounts.get_mut(&account) else { continue };
            for domain in account_checks.waiting.drain(..) {
                self.known.remove(&domain);
            }
            if account_checks.in_progress == 0 {
                self.accounts.remove(&account);
            }
        }
    }

    /// Returns whether no domain is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(n: u8) -> AccountId {
        AccountId::from_bytes([n; 16])
    }

    fn join(line: &mut CheckQueue, n: u8, domains: u16) {
        for domain in 0..domains {
            let mut id = [n; 16];
            id[..2].copy_from_slice(&domain.to_be_bytes());
            line.enqueue((account(n), DomainId::from_bytes(id)));
        }
    }

    fn all(line: &mut CheckQueue) -> Vec<DomainSetupKey> {
        std::iter::from_fn(|| line.dequeue()).collect()
    }

    fn of(taken: &[DomainSetupKey], n: u8) -> usize {
        taken.iter().filter(|(owner, _)| *owner == account(n)).count()
    }

    #[test]
    fn an_account_has_its_share_and_no_more() {
        let mut line = CheckQueue::default();
        join(&mut line, 1, 1_000);
        assert_eq!(line.known.len(), PER_ACCOUNT_WAITING_MAX, "memory is bounded");
        join(&mut line, 2, 1);
        let taken = all(&mut line);
        assert_eq!((of(&taken, 1), of(&taken, 2)), (PER_ACCOUNT_CONCURRENCY, 1));
        assert_eq!(taken[1].0, account(2), "in turns");
        // A running check is not enqueued again, and a finished one frees a slot.
        join(&mut line, 2, 1);
        assert!(all(&mut line).is_empty());
        line.finish(taken[0], false);
        assert_eq!(of(&all(&mut line), 1), 1);
    }

    #[test]
    fn slow_accounts_do_not_stop_quick_ones() {
        let mut line = CheckQueue::default();
        for slow in 0..100 {
            join(&mut line, slow, 20);
        }
        // The accounts become known as slow, as many at a time as there are slots.
        for _ in 0..100usize.div_ceil(CONCURRENCY) {
            for taken in all(&mut line) {
                line.finish(taken, true);
            }
        }
        let mut of_slow = all(&mut line);
        assert!(of_slow.len() < CONCURRENCY, "{}", of_slow.len());
        for round in 0..50 {
            join(&mut line, 200, 40);
            let quick = all(&mut line);
            assert!(of(&quick, 200) > 0, "round {round}: there is always a place");
            for one in quick {
                let is_quick = one.0 == account(200);
                if is_quick {
                    line.finish(one, false);
                } else {
                    of_slow.push(one);
                }
            }
            // A slow check finishes now and then.
            line.finish(of_slow.remove(0), true);
        }
    }

    #[test]
    fn who_leaves_may_come_again() {
        let mut line = CheckQueue::default();
        join(&mut line, 1, 30);
        let taken = all(&mut line);
        line.clear();
        assert_eq!((line.known.len(), line.is_empty()), (PER_ACCOUNT_CONCURRENCY, true));
        for one in taken {
            line.finish(one, false);
        }
        join(&mut line, 1, 30);
        assert_eq!((line.known.len(), all(&mut line).len()), (30, PER_ACCOUNT_CONCURRENCY));
    }

    #[test]
    fn nothing_stays_when_all_is_done() {
        let mut line = CheckQueue::default();
        join(&mut line, 1, 30);
        join(&mut line, 2, 30);
        let mut looks = 0;
        while let Some(one) = line.dequeue() {
            let more = all(&mut line);
            for one in std::iter::once(one).chain(more) {
                line.finish(one, looks % 3 == 0);
                looks += 1;
            }
        }
        assert!(line.is_empty() && line.accounts.is_empty() && line.known.is_empty());
        assert_eq!((looks, line.in_progress, line.slow_in_progress), (60, 0, 0));
    }
}
