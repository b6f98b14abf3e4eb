//! Memory budget of HTTP responses, over all accounts and for each account.
//!
//! A [`ResponsePermit`] is held from the first byte of a response until its body is dropped. It grows by bytes
//! received, not by bytes announced. An account holds at most its limit, and at most as much as it leaves free
//! ("dynamic thresholds", Choudhury and Hahne 1998). So the next account finds some memory, however many accounts query
//! slow servers. A request waits for memory at most until its deadline. A refused request drops its permit, and the
//! others continue.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use model::id::AccountId;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Why a response cannot be read into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ResponseBudgetError {
    /// The permit is at its limit.
    #[error("the response is larger than {limit_bytes} bytes")]
    Limit {
        /// Limit of the permit.
        limit_bytes: usize,
    },
    /// Other responses use the memory.
    #[error("the memory for HTTP responses is in use; try again later")]
    Busy,
}

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct ResponseBudget(Arc<ResponseMemory>);

#[derive(Debug)]
struct ResponseMemory {
    bytes_max: usize,
    account_bytes_max: usize,
    usage: Mutex<ResponseMemoryUsage>,
    /// Notified when bytes are released.
    released: Notify,
}

/// Bytes in use.
#[derive(Debug, Default)]
struct ResponseMemoryUsage {
    total: usize,
    accounts: HashMap<AccountId, usize>,
}

impl ResponseMemory {
    fn try_acquire(&self, account: AccountId, bytes: usize) -> bool {
        let mut usage = self.usage.lock();
        let account_bytes = usage.accounts.get(&account).copied().unwrap_or(0).saturating_add(bytes);
        let all = usage.total.saturating_add(bytes);
        let is_granted = account_bytes <= self.account_bytes_max.min(self.bytes_max.saturating_sub(all));
        if is_granted {
            usage.total = all;
            usage.accounts.insert(account, account_bytes);
        }
        is_granted
    }

    fn release(&self, account: AccountId, bytes: usize) {
        let mut usage = self.usage.lock();
        usage.total = usage.total.saturating_sub(bytes);
        if let Some(account_bytes) = usage.accounts.get_mut(&account) {
            *account_bytes = account_bytes.saturating_sub(bytes);
            if *account_bytes == 0 {
                usage.accounts.remove(&account);
            }
        }
        drop(usage);
        self.released.notify_waiters();
    }
}

impl ResponseBudget {
    /// Creates a budget of `bytes_max` bytes, of which one account may use `account_bytes_max`.
    pub fn new(bytes_max: usize, account_bytes_max: usize) -> Self {
        Self(Arc::new(ResponseMemory {
            bytes_max,
            account_bytes_max,
            usage: Mutex::default(),
            released: Notify::new(),
        }))
    }

    /// Creates a permit of 0 bytes that can grow to `limit_bytes`.
    #[must_use]
    pub fn permit(&self, account: AccountId, limit_bytes: usize) -> ResponsePermit {
        ResponsePermit { bytes: 0, limit_bytes, account, memory: Arc::clone(&self.0) }
    }

    pub fn free_bytes(&self) -> usize {
        self.0.bytes_max.saturating_sub(self.0.usage.lock().total)
    }
}

/// A share of the budget, released on drop.
#[derive(Debug)]
pub struct ResponsePermit {
    bytes: usize,
    limit_bytes: usize,
    account: AccountId,
    memory: Arc<ResponseMemory>,
}

impl ResponsePermit {
    /// Grows the permit by `bytes`, waiting for free memory until `until`.
    ///
    /// # Errors
    /// The permit would exceed its limit, or memory was not free in time. The permit stays as large as before.
    pub async fn grow_until(&mut self, bytes: usize, until: Instant) -> Result<(), ResponseBudgetError> {
        let wanted = self.bytes.saturating_add(bytes);
        if wanted > self.limit_bytes {
            return Err(ResponseBudgetError::Limit { limit_bytes: self.limit_bytes });
        }
        loop {
            let mut released = pin!(self.memory.released.notified());
            // Register before the attempt, so that a release right after it is not missed.
            released.as_mut().enable();
            if self.memory.try_acquire(self.account, bytes) {
                self.bytes = wanted;
                return Ok(());
            }
            if timeout_at(until, released).await.is_err() {
                return Err(ResponseBudgetError::Busy);
            }
        }
    }
}

impl Drop for ResponsePermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.release(self.account, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KIB: usize = 1 << 10;

    fn account(n: u8) -> AccountId {
        AccountId::from_bytes([n; 16])
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_uses_its_share_and_leaves_as_much_free() {
        let budget = ResponseBudget::new(64 * KIB, 16 * KIB);
        let deadline = || Instant::now() + Duration::from_secs(5);
        let mut first = budget.permit(account(1), 12 * KIB);
        for _ in 0..4 * KIB {
            first.grow_until(1, deadline()).await.unwrap();
        }
        assert_eq!(budget.free_bytes(), 60 * KIB, "small pieces cost their size");
        first.grow_until(8 * KIB, deadline()).await.unwrap();
        let over = first.grow_until(1, deadline()).await;
        assert_eq!(over, Err(ResponseBudgetError::Limit { limit_bytes: 12 * KIB }));
        let mut second = budget.permit(account(1), 12 * KIB);
        second.grow_until(4 * KIB, deadline()).await.unwrap();
        assert_eq!(second.grow_until(1, deadline()).await, Err(ResponseBudgetError::Busy), "its part is used up");
        // However much other accounts use, the next one gets some memory.
        let mut permits = Vec::new();
        for n in 2..12 {
            let mut permit = budget.permit(account(n), 16 * KIB);
            while permit.grow_until(256, Instant::now()).await.is_ok() {}
            assert!(permit.bytes >= 256 || budget.free_bytes() < 512, "account {n}");
            permits.push(permit);
        }
        // A waiting permit grows when memory is released.
        let mut last = budget.permit(account(12), 16 * KIB);
        let until = deadline();
        let (waited, ()) = tokio::join!(last.grow_until(4 * KIB, until), async { drop(first) });
        assert_eq!(waited, Ok(()));
        drop((second, permits, last));
        assert_eq!(budget.free_bytes(), 64 * KIB);
        assert!(budget.0.usage.lock().accounts.is_empty());
    }
}
