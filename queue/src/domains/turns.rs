//! Whose domains are looked at: of one account only some at once, so that domains whose name servers are slow keep
//! nobody waiting but the account that has them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mail::id::AccountId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Looks of one account at once: those that come by themselves ([`super::line`]), and some that somebody asks for.
const EACH_MAX: usize = 6;

/// Gives out turns.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<AccountId, Arc<Semaphore>>>);

impl Turns {
    /// A turn of the account's; it waits while the account has as many as it may.
    pub(super) async fn take(&self, account: AccountId) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Who has none and waits for none is forgotten: a permit holds its semaphore, and so does who waits.
            accounts.retain(|_, turns| Arc::strong_count(turns) > 1);
            Arc::clone(accounts.entry(account).or_insert_with(|| Arc::new(Semaphore::new(EACH_MAX))))
        };
        // The semaphore is never closed; if it were, we would look without waiting.
        turns.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_account_waits_for_itself_alone_and_is_forgotten() {
        let turns = Turns::default();
        let [one, other] = [1, 2].map(|n| AccountId::from_bytes([n; 16]));
        let mut held = Vec::new();
        for _ in 0..EACH_MAX {
            held.push(turns.take(one).now_or_never().expect("at once"));
        }
        assert!(turns.take(one).now_or_never().is_none());
        assert!(turns.take(other).now_or_never().is_some());
        held.pop();
        assert!(turns.take(one).now_or_never().is_some());
        drop(held);
        drop(turns.take(other).await);
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }
}
