//! Who is looked at next, of the domains that are due: accounts take turns, and none has more than its share under way.
//!
//! ```text
//! what is due, as it is read ─[join]─► a line for each account ─[next]─► under way ─[done]─►
//! ```
//!
//! An account whose name servers are slow shares a few places with others like it; the other places stay for those
//! that are quick. What is in no line stays due in the store, and is read again.

use std::collections::{HashMap, HashSet, VecDeque};

use mail::id::{AccountId, DomainId};
use store::setup::DomainSetupKey;

/// Looks under way, of all accounts.
const CONCURRENCY: usize = 32;
/// Of them, those of accounts that are slow.
const SLOW_CONCURRENCY: usize = 12;
/// Looks of one account under way.
const PER_ACCOUNT_CONCURRENCY: usize = 4;
/// Domains of one account that wait in memory.
const PER_ACCOUNT_WAITING_MAX: usize = 256;
/// Accounts that are remembered to be slow while nothing of them is due.
const SLOW_ACCOUNTS_MAX: usize = 10_000;

/// What is known of an account while it has something in line or under way.
#[derive(Debug, Default)]
struct AccountChecks {
    waiting: VecDeque<DomainId>,
    in_progress: usize,
    is_slow: bool,
}

/// Domains that wait, and how many are under way.
#[derive(Debug, Default)]
pub(super) struct CheckQueue {
    accounts: HashMap<AccountId, AccountChecks>,
    /// The accounts that have domains waiting, in turn.
    turns: VecDeque<AccountId>,
    /// What waits or is under way.
    known: HashSet<DomainId>,
    /// The accounts that were slow last.
    slow: HashSet<AccountId>,
    in_progress: usize,
    slow_in_progress: usize,
}

impl CheckQueue {
    /// Whether it is in line now, or was; not when its account has enough there.
    pub(super) fn enqueue(&mut self, (account, domain): DomainSetupKey) -> bool {
        if self.known.contains(&domain) {
            return true;
        }
        let is_slow = self.slow.contains(&account);
        let lane =
            self.accounts.entry(account).or_insert_with(|| AccountChecks { is_slow, ..AccountChecks::default() });
        if lane.waiting.len() >= PER_ACCOUNT_WAITING_MAX {
            return false;
        }
        if lane.waiting.is_empty() {
            self.turns.push_back(account);
        }
        lane.waiting.push_back(domain);
        self.known.insert(domain);
        true
    }

    /// The next to look at, if there is a place for it.
    pub(super) fn dequeue(&mut self) -> Option<DomainSetupKey> {
        if self.in_progress >= CONCURRENCY {
            return None;
        }
        let slow_may = self.slow_in_progress < SLOW_CONCURRENCY;
        let lanes = &self.accounts;
        let may = |account: &AccountId| {
            lanes
                .get(account)
                .is_some_and(|lane| lane.in_progress < PER_ACCOUNT_CONCURRENCY && (slow_may || !lane.is_slow))
        };
        let account = self.turns.iter().position(may).and_then(|place| self.turns.remove(place))?;
        let lane = self.accounts.get_mut(&account)?;
        let domain = lane.waiting.pop_front()?;
        lane.in_progress += 1;
        self.in_progress += 1;
        self.slow_in_progress += usize::from(lane.is_slow);
        if !lane.waiting.is_empty() {
            self.turns.push_back(account);
        }
        Some((account, domain))
    }

    /// One was looked at, quickly or not: the account's next ones are treated by that.
    pub(super) fn finish(&mut self, (account, domain): DomainSetupKey, was_slow: bool) {
        self.known.remove(&domain);
        let Some(lane) = self.accounts.get_mut(&account) else { return };
        self.in_progress -= 1;
        lane.in_progress -= 1;
        // Those of its looks that are still under way count from now on as what the account is.
        self.slow_in_progress -= usize::from(lane.is_slow) * (lane.in_progress + 1);
        lane.is_slow = was_slow;
        self.slow_in_progress += usize::from(lane.is_slow) * lane.in_progress;
        if lane.waiting.is_empty() && lane.in_progress == 0 {
            self.accounts.remove(&account);
        }
        if !was_slow {
            self.slow.remove(&account);
        } else if self.slow.len() < SLOW_ACCOUNTS_MAX {
            self.slow.insert(account);
        }
    }

    /// Nobody waits any more.
    pub(super) fn clear(&mut self) {
        for account in self.turns.drain(..) {
            let Some(lane) = self.accounts.get_mut(&account) else { continue };
            for domain in lane.waiting.drain(..) {
                self.known.remove(&domain);
            }
            if lane.in_progress == 0 {
                self.accounts.remove(&account);
            }
        }
    }

    /// Whether nobody waits.
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
        taken.iter().filter(|(whose, _)| *whose == account(n)).count()
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
        // What is under way does not come again, and what is done lets the next one in.
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
        // Nobody knows yet that they are slow, and then it is known, of as many at a time as there are places.
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
            // One of the slow ones comes to its end now and then.
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
