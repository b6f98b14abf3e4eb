//! Following: who reads an account's stream as it grows is woken when something was told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::id::AccountId;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Followers of one account.
const PER_ACCOUNT_MAX: usize = 16;
/// Followers in all.
const ALL_MAX: usize = 1_024;

#[derive(Debug, Default)]
struct State {
    by_account: HashMap<AccountId, (usize, Arc<Notify>)>,
    count: usize,
}

/// Who follows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Followers(Arc<Mutex<State>>);

/// One who follows, until it is dropped.
#[derive(Debug)]
pub struct Follower {
    account: AccountId,
    told: Arc<Notify>,
    all: Followers,
}

impl Followers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more; none when there are as many as there may be.
    pub(crate) fn follow(&self, account: AccountId) -> Option<Follower> {
        let mut state = self.lock();
        if state.count >= ALL_MAX {
            return None;
        }
        let (count, told) = state.by_account.entry(account).or_default();
        if *count >= PER_ACCOUNT_MAX {
            return None;
        }
        *count += 1;
        let told = Arc::clone(told);
        state.count += 1;
        Some(Follower { account, told, all: self.clone() })
    }

    /// Events of these accounts were told. Whether anybody listens.
    pub(crate) fn wake(&self, accounts: impl Iterator<Item = AccountId>) -> bool {
        let state = self.lock();
        if state.count == 0 {
            return false;
        }
        for account in accounts {
            if let Some((_, told)) = state.by_account.get(&account) {
                told.notify_waiters();
            }
        }
        true
    }
}

impl Follower {
    /// Ends when something is told, once this has been called.
    pub fn told(&self) -> OwnedNotified {
        Arc::clone(&self.told).notified_owned()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        state.count = state.count.saturating_sub(1);
        if let Some((count, _)) = state.by_account.get_mut(&self.account) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                state.by_account.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test]
    async fn followers_are_woken_bounded_and_forgotten() {
        let (all, now) = (Followers::default(), Timestamp::UNIX_EPOCH);
        let account = AccountId::new(now, 1);
        let some: Vec<Follower> = std::iter::from_fn(|| all.follow(account)).collect();
        assert_eq!(some.len(), PER_ACCOUNT_MAX);
        let heard = some[0].told();
        assert!(all.wake([account, AccountId::new(now, 2)].into_iter()));
        heard.await;
        drop(some);
        assert!(all.lock().by_account.is_empty());
        assert!(!all.wake(std::iter::once(account)));
    }
}
