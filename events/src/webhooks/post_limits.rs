//! Limits of concurrent POSTs, in total and per account, so that stalled endpoints of one account do not block the
//! others.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use model::id::AccountId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Account semaphores in memory; beyond this number idle ones are dropped.
const ACCOUNTS_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct PostLimits {
    total: Arc<Semaphore>,
    per_account: usize,
    accounts: Mutex<HashMap<AccountId, Arc<Semaphore>>>,
}

/// Permit for one POST, released when dropped.
#[derive(Debug)]
pub(super) struct PostPermit {
    _total_permit: OwnedSemaphorePermit,
    _account_permit: OwnedSemaphorePermit,
}

impl PostLimits {
    /// Creates the limits: `all` in total, of which one account has `per_account` at most.
    pub(super) fn new(all: usize, per_account: usize) -> Self {
        Self { total: Arc::new(Semaphore::new(all)), per_account, accounts: Mutex::default() }
    }

    /// Waits for a permit. The account's permit is acquired first, so an account has at most its share of waiters for
    /// the total.
    pub(super) async fn acquire(&self, account: AccountId) -> Option<PostPermit> {
        let share = self.account_semaphore(account);
        // The semaphores are never closed.
        let of_share = share.acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.total).acquire_owned().await.ok()?;
        Some(PostPermit { _total_permit: of_all, _account_permit: of_share })
    }

    fn account_semaphore(&self, account: AccountId) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock();
        if accounts.len() >= ACCOUNTS_MAX {
            // Holders and waiters have a reference to the semaphore.
            accounts.retain(|_, share| Arc::strong_count(share) > 1);
        }
        Arc::clone(accounts.entry(account).or_insert_with(|| Arc::new(Semaphore::new(self.per_account))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use jiff::Timestamp;

    #[tokio::test]
    async fn no_account_exceeds_its_share() {
        let limits = PostLimits::new(4, 2);
        let account = |n: u128| AccountId::new(Timestamp::UNIX_EPOCH, n);
        let mut first_account = vec![limits.acquire(account(1)).await, limits.acquire(account(1)).await];
        let mut waiting = Box::pin(limits.acquire(account(1)));
        assert!(waiting.as_mut().now_or_never().is_none());
        let other_accounts = [limits.acquire(account(2)).now_or_never(), limits.acquire(account(3)).now_or_never()];
        assert!(other_accounts.iter().all(|other| matches!(other, Some(Some(_)))));
        // All permits are held. Waiters are served in order, and the flooding account has at most its share of them.
        let mut next = Box::pin(limits.acquire(account(4)));
        assert!(next.as_mut().now_or_never().is_none());
        first_account.pop();
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(next.as_mut().now_or_never().is_some());
    }
}
