//! Semaphores by key: bound the concurrent work of each account, so that domains with slow name servers delay only
//! their own account.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent checks of one account: the periodic ones ([`super::check_queue`]), and some on request.
pub(super) const CHECKS_PER_ACCOUNT_MAX: usize = 6;

/// A map of semaphores, each with the same number of permits.
#[derive(Debug)]
pub(super) struct KeyedSemaphore<K> {
    permits_per_key: usize,
    semaphores: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> KeyedSemaphore<K> {
    pub(super) fn new(permits_per_key: usize) -> Self {
        Self { permits_per_key, semaphores: Mutex::default() }
    }

    /// Acquires a permit for a key, waiting if all are in use.
    pub(super) async fn acquire(&self, key: K) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed; if it were, continue without a permit.
        self.semaphore_for(key).acquire_owned().await.ok()
    }

    /// Acquires a permit without waiting; `None` if all are in use.
    pub(super) fn try_acquire(&self, key: K) -> Option<OwnedSemaphorePermit> {
        self.semaphore_for(key).try_acquire_owned().ok()
    }

    fn semaphore_for(&self, key: K) -> Arc<Semaphore> {
        let mut all = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        // Remove semaphores without permit holders and waiters: both hold a reference.
        all.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(all.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.permits_per_key))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use mail::id::AccountId;

    use super::*;

    #[tokio::test]
    async fn an_account_waits_for_itself_alone_and_is_forgotten() {
        let turns = KeyedSemaphore::new(CHECKS_PER_ACCOUNT_MAX);
        let [one, other] = [1, 2].map(|n| AccountId::from_bytes([n; 16]));
        let mut held = Vec::new();
        for _ in 0..CHECKS_PER_ACCOUNT_MAX {
            held.push(turns.acquire(one).now_or_never().expect("at once"));
        }
        assert!(turns.acquire(one).now_or_never().is_none());
        assert!(turns.acquire(other).now_or_never().is_some());
        held.pop();
        assert!(turns.acquire(one).now_or_never().is_some());
        drop(held);
        drop(turns.acquire(other).await);
        assert_eq!(turns.semaphores.lock().unwrap().len(), 1);
    }
}
