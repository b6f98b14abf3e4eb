//! Semaphores by key: bound the concurrent work of each account, so that one account's slow work delays only its own.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A map of semaphores, each with the same number of permits.
#[derive(Debug)]
pub struct KeyedSemaphore<K> {
    permits_per_key: usize,
    semaphores: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> KeyedSemaphore<K> {
    pub fn new(permits_per_key: usize) -> Self {
        Self { permits_per_key, semaphores: Mutex::default() }
    }

    /// Acquires a permit for a key, waiting if all are in use.
    pub async fn acquire(&self, key: K) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed; if it were, continue without a permit.
        self.semaphore_for(key).acquire_owned().await.ok()
    }

    /// Acquires a permit without waiting; `None` if all are in use.
    pub fn try_acquire(&self, key: K) -> Option<OwnedSemaphorePermit> {
        self.semaphore_for(key).try_acquire_owned().ok()
    }

    fn semaphore_for(&self, key: K) -> Arc<Semaphore> {
        let mut all = self.semaphores.lock();
        // Remove semaphores without permit holders and waiters: both hold a reference.
        all.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        Arc::clone(all.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.permits_per_key))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use model::id::AccountId;

    use super::*;

    #[tokio::test]
    async fn an_account_waits_only_for_itself_and_unused_semaphores_are_removed() {
        let semaphores = KeyedSemaphore::new(2);
        let [first, second] = [1, 2].map(|n| AccountId::from_bytes([n; 16]));
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(semaphores.acquire(first).now_or_never().expect("at once"));
        }
        assert!(semaphores.acquire(first).now_or_never().is_none());
        assert!(semaphores.acquire(second).now_or_never().is_some());
        held.pop();
        assert!(semaphores.acquire(first).now_or_never().is_some());
        drop(held);
        drop(semaphores.acquire(second).await);
        assert_eq!(semaphores.semaphores.lock().len(), 1);
    }
}
