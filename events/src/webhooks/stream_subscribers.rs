//! Stream subscribers: clients that read an account's event log and are woken when events are dispatched.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use model::id::AccountId;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

const PER_ACCOUNT_MAX: usize = 16;
/// Subscribers in total.
const SUBSCRIBERS_MAX: usize = 1_024;

#[derive(Debug, Default)]
struct SubscriberState {
    by_account: HashMap<AccountId, (usize, Arc<Notify>)>,
    count: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct StreamSubscribers(Arc<Mutex<SubscriberState>>);

/// A subscription, which ends when it is dropped.
#[derive(Debug)]
pub struct StreamSubscriber {
    account: AccountId,
    dispatched: Arc<Notify>,
    subscribers: StreamSubscribers,
}

impl StreamSubscribers {
    /// Adds a subscriber; `None` if a limit is reached.
    pub(crate) fn subscribe(&self, account: AccountId) -> Option<StreamSubscriber> {
        let mut state = self.0.lock();
        if state.count >= SUBSCRIBERS_MAX {
            return None;
        }
        let (count, dispatched) = state.by_account.entry(account).or_default();
        if *count >= PER_ACCOUNT_MAX {
            return None;
        }
        *count += 1;
        let dispatched = Arc::clone(dispatched);
        state.count += 1;
        Some(StreamSubscriber { account, dispatched, subscribers: self.clone() })
    }

    /// Wakes the subscribers of these accounts. Returns true if there are any subscribers at all.
    pub(crate) fn wake(&self, accounts: impl Iterator<Item = AccountId>) -> bool {
        let state = self.0.lock();
        if state.count == 0 {
            return false;
        }
        for account in accounts {
            if let Some((_, dispatched)) = state.by_account.get(&account) {
                dispatched.notify_waiters();
            }
        }
        true
    }
}

impl StreamSubscriber {
    /// Resolves at the next dispatch after this call.
    pub fn next_dispatch(&self) -> OwnedNotified {
        Arc::clone(&self.dispatched).notified_owned()
    }
}

impl Drop for StreamSubscriber {
    fn drop(&mut self) {
        let mut state = self.subscribers.0.lock();
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
    async fn stream_subscribers_are_woken_limited_and_removed() {
        let (all, now) = (StreamSubscribers::default(), Timestamp::UNIX_EPOCH);
        let account = AccountId::new(now, 1);
        let subscribers: Vec<StreamSubscriber> = std::iter::from_fn(|| all.subscribe(account)).collect();
        assert_eq!(subscribers.len(), PER_ACCOUNT_MAX);
        let dispatched = subscribers[0].next_dispatch();
        assert!(all.wake([account, AccountId::new(now, 2)].into_iter()));
        dispatched.await;
        drop(subscribers);
        assert!(all.0.lock().by_account.is_empty());
        assert!(!all.wake(std::iter::once(account)));
    }
}
