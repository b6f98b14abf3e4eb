//! The memory budget of answers: how many bytes of foreign answers all accounts together may hold, and each of them.
//!
//! ```text
//! a piece of an answer comes ─► the account's part ─► the whole ─► the piece is kept
//! ```
//!
//! An [`AnswerPermit`] is held from the first byte of an answer until what was read of it is dropped. It grows by what has
//! come, never by what was announced. Who waits for memory waits in line, and not longer than the question may take. Whoever
//! is refused drops its permit, and the others go on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mail::id::AccountId;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// What permits are counted in.
const GRAIN_BYTES: usize = 1 << 10;

/// Why an answer, or more of it, is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// One permit holds no more.
    #[error("more than {limit_bytes} bytes were answered")]
    Limit {
        /// What it may hold.
        limit_bytes: usize,
    },
    /// Other answers hold the memory.
    #[error("other answers use all memory that is set aside for answers; ask again later")]
    Busy,
}

/// The budget. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct AnswerBudget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    whole: Arc<Semaphore>,
    account_bytes_max: usize,
    /// Accounts that hold something: how many permits, and what is left of their part.
    accounts: Mutex<HashMap<AccountId, (usize, Arc<Semaphore>)>>,
}

impl AnswerBudget {
    /// A budget of so many bytes, of which one account may hold so many.
    #[must_use]
    pub fn new(bytes_max: usize, account_bytes_max: usize) -> Self {
        let accounts = Mutex::default();
        Self(Arc::new(Pool { whole: semaphore(bytes_max), account_bytes_max, accounts }))
    }

    /// A permit of an account, for nothing yet and up to `limit_bytes`.
    #[must_use]
    pub fn permit(&self, account: AccountId, limit_bytes: usize) -> AnswerPermit {
        let mut accounts = self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || (0, semaphore(self.0.account_bytes_max));
        let (permits, own) = accounts.entry(account).or_insert_with(full);
        *permits += 1;
        let own = Arc::clone(own);
        AnswerPermit { paid: None, bytes: 0, limit_bytes, own, account, pool: Arc::clone(&self.0) }
    }

    /// What nobody holds, in bytes.
    #[must_use]
    pub fn left_bytes(&self) -> usize {
        self.0.whole.available_permits() * GRAIN_BYTES
    }
}

/// A part of the budget; it goes back when this is dropped.
#[derive(Debug)]
pub struct AnswerPermit {
    /// Of the account's part, and of the whole. They go back first.
    paid: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    bytes: usize,
    limit_bytes: usize,
    own: Arc<Semaphore>,
    account: AccountId,
    pool: Arc<Pool>,
}

impl AnswerPermit {
    /// Makes it larger by `bytes`, and waits for them until a moment.
    ///
    /// # Errors
    /// It would be larger than its limit, or the memory was not free in time: then it is as large as before.
    pub async fn enlarge_until(&mut self, bytes: usize, until: Instant) -> Result<(), BudgetError> {
        let wanted = self.bytes.saturating_add(bytes);
        if wanted > self.limit_bytes {
            return Err(BudgetError::Limit { limit_bytes: self.limit_bytes });
        }
        let grains = grains(wanted).saturating_sub(grains(self.bytes));
        if grains > 0 {
            let (own, whole) = (Arc::clone(&self.own), Arc::clone(&self.pool.whole));
            // Who waits for the account's part keeps no other account waiting.
            let both = async {
                let own = own.acquire_many_owned(grains).await.ok()?;
                Some((own, whole.acquire_many_owned(grains).await.ok()?))
            };
            let Ok(Some(more)) = timeout_at(until, both).await else { return Err(BudgetError::Busy) };
            match &mut self.paid {
                Some((own, whole)) => {
                    own.merge(more.0);
                    whole.merge(more.1);
                }
                paid @ None => *paid = Some(more),
            }
        }
        self.bytes = wanted;
        Ok(())
    }
}

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        let mut accounts = self.pool.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((permits, _)) = accounts.get_mut(&self.account) {
            *permits -= 1;
            if *permits == 0 {
                accounts.remove(&self.account);
            }
        }
    }
}

fn semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.div_ceil(GRAIN_BYTES).min(Semaphore::MAX_PERMITS)))
}

fn grains(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(GRAIN_BYTES)).unwrap_or(u32::MAX)
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
    async fn an_account_holds_its_part_and_all_hold_the_whole() {
        let budget = AnswerBudget::new(24 * KIB, 16 * KIB);
        let soon = || Instant::now() + Duration::from_secs(5);
        let mut first = budget.permit(account(1), 12 * KIB);
        for _ in 0..4 * KIB {
            first.enlarge_until(1, soon()).await.unwrap();
        }
        assert_eq!(budget.left_bytes(), 20 * KIB, "small pieces cost what they are");
        first.enlarge_until(8 * KIB, soon()).await.unwrap();
        let over = first.enlarge_until(1, soon()).await;
        assert_eq!(over, Err(BudgetError::Limit { limit_bytes: 12 * KIB }));
        let mut second = budget.permit(account(1), 12 * KIB);
        second.enlarge_until(4 * KIB, soon()).await.unwrap();
        assert_eq!(second.enlarge_until(1, soon()).await, Err(BudgetError::Busy), "its part is used up");
        let mut other = budget.permit(account(2), 12 * KIB);
        other.enlarge_until(8 * KIB, soon()).await.unwrap();
        assert_eq!(other.enlarge_until(1, soon()).await, Err(BudgetError::Busy), "all is used up");
        // Who waits has it when it is given back.
        let until = soon();
        let (waited, ()) = tokio::join!(other.enlarge_until(KIB, until), async { drop(first) });
        assert_eq!(waited, Ok(()));
        drop((second, other));
        assert_eq!(budget.left_bytes(), 24 * KIB);
        assert!(budget.0.accounts.lock().unwrap().is_empty());
    }
}
