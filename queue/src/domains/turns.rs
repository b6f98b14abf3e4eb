//! Whose domains are looked at: of one account only some at once, so that domains whose name servers are slow keep
//! nobody waiting but the account that has them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Looks of one account at once: those that come by themselves ([`super::line`]), and some that somebody asks for.
pub(super) const CHECKS_PER_ACCOUNT_MAX: usize = 6;

/// Gives out turns, to each so many at a time.
#[derive(Debug)]
pub(super) struct KeyedSemaphore<K> {
    permits_per_key: usize,
    semaphores: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> KeyedSemaphore<K> {
    pub(super) fn new(permits_per_key: usize) -> Self {
        Self { permits_per_key, semaphores: Mutex::default() }
    }

    /// A turn of somebody's; it waits while they have as many as they may.
    pub(super) async fn acquire(&self, whose: K) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed; if it were, we would look without waiting.
        self.semaphore_for(whose).acquire_owned().await.ok()
    }

    /// The same, without waiting; none: they have as many as they may.
    pub(super) fn try_acquire(&self, whose: K) -> Option<OwnedSemaphorePermit> {
        self.semaphore_for(whose).try_acquire_owned().ok()
    }

    fn semaphore_for(&self, whose: K) -> Arc<Semaphore> {
        let mut all = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        // Who has none and waits for none is forgotten: a permit holds its semaphore, and so does who waits.
        all.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(all.entry(whose).or_insert_with(|| Arc::new(Semaphore::new(self.permits_per_key))))
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
