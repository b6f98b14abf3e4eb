//! Following: who reads an account's stream as it grows is woken when something was told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mail::id::AccountId;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Followers of one account.
const PER_ACCOUNT_MAX: usize = 16;
/// Followers in all.
const SUBSCRIBERS_MAX: usize = 1_024;

#[derive(Debug, Default)]
struct SubscriberState {
    by_account: HashMap<AccountId, (usize, Arc<Notify>)>,
    count: usize,
}

/// Who follows.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamSubscribers(Arc<Mutex<SubscriberState>>);

/// One who follows, until it is dropped.
#[derive(Debug)]
pub struct StreamSubscriber {
    account: AccountId,
    dispatched: Arc<Notify>,
    subscribers: StreamSubscribers,
}

impl StreamSubscribers {
    fn lock(&self) -> MutexGuard<'_, SubscriberState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more; none when there are as many as there may be.
    pub(crate) fn subscribe(&self, account: AccountId) -> Option<StreamSubscriber> {
        let mut state = self.lock();
        if state.count >= SUBSCRIBERS_MAX {
            return None;
        }
        let (count, told) = state.by_account.entry(account).or_default();
        if *count >= PER_ACCOUNT_MAX {
            return None;
        }
        *count += 1;
        let told = Arc::clone(told);
        state.count += 1;
        Some(StreamSubscriber { account, dispatched: told, subscribers: self.clone() })
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

impl StreamSubscriber {
    /// Ends when something is told, once this has been called.
    pub fn next_dispatch(&self) -> OwnedNotified {
        Arc::clone(&self.dispatched).notified_owned()
    }
}

impl Drop for StreamSubscriber {
    fn drop(&mut self) {
        let mut state = self.subscribers.lock();
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
        let (all, now) = (StreamSubscribers::default(), Timestamp::UNIX_EPOCH);
        let account = AccountId::new(now, 1);
        let some: Vec<StreamSubscriber> = std::iter::from_fn(|| all.subscribe(account)).collect();
        assert_eq!(some.len(), PER_ACCOUNT_MAX);
        let heard = some[0].next_dispatch();
        assert!(all.wake([account, AccountId::new(now, 2)].into_iter()));
        heard.await;
        drop(some);
        assert!(all.lock().by_account.is_empty());
        assert!(!all.wake(std::iter::once(account)));
    }
}
