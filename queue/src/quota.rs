//! Quotas: whether an account's plan has room for more rows of a noun (templates, suppressions, product events).
//!
//! ```text
//! reserve ─► count known? ─► fits ─► Reserved ─► commit ─► keep
//!              │ no: one page is read; what is longer is counted beside it, and nothing is refused until then
//! ```
//!
//! Counts follow from the rows themselves (`store::quota`) and are remembered here. Rows that others write (bounces,
//! other nodes, retention) are noticed by the next count. An account with few rows is counted each time, and exact but
//! for what others write at the same moment; one with many is counted again when its count is old, or when it is full.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use mail::account::Account;
use mail::id::AccountId;
use mail::plan::Plans;
use mail::quota::{Full, Noun};
use store::engine::{ReadError, Store};
use store::quota::Tally;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::clock::Clock;

/// Rows, or kilobytes of them, that are counted while the caller waits; more are counted in the background.
const QUICK_COST: u64 = 1_000;
/// A count is believed for this long, and longer when it took many rows.
const BELIEVED: SignedDuration = SignedDuration::from_mins(10);
/// Counts that are remembered; all but those in use are forgotten when there are more.
const KEPT_MAX: usize = 20_000;
/// Counting ends at so many times the cap: then it is known to be full.
const COUNTED_CAPS: u64 = 2;

/// Why nothing was reserved.
#[derive(Debug, Error)]
pub enum QuotaError {
    /// The plan includes no more.
    #[error("{0}")]
    Full(Full),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[derive(Debug, Clone, Copy)]
struct Count {
    sum: u64,
    /// Rows that were read for it, and their kilobytes.
    cost: u64,
    at: Timestamp,
    /// Kept since then by this process.
    added: u64,
}

impl Count {
    fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.at)
    }

    /// A second for each thousand rows: however many there are, counting takes a small part of the time.
    fn is_old(&self, now: Timestamp) -> bool {
        self.age(now) >= BELIEVED.max(milliseconds(self.cost))
    }

    /// Where it stands in the way: a second for each ten thousand rows.
    fn may_be_wrong(&self, now: Timestamp) -> bool {
        self.age(now) >= milliseconds(self.cost / 10).max(SignedDuration::from_secs(1))
    }
}

fn milliseconds(count: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(count).unwrap_or(i64::MAX))
}

#[derive(Debug, Default)]
struct Entry {
    count: Option<Count>,
    /// Reserved and neither kept nor given back.
    reserved: u64,
    is_counting: bool,
}

impl Entry {
    fn used(&self) -> Option<u64> {
        self.count.map(|count| count.sum.saturating_add(count.added).saturating_add(self.reserved))
    }

    fn fits(&self, cap: u64, more: u64) -> bool {
        self.used().is_none_or(|used| used.saturating_add(more) <= cap)
    }
}

type Entries = HashMap<(AccountId, Noun), Entry>;

/// The quotas of all accounts.
#[derive(Debug)]
pub struct Quotas {
    store: Store,
    clock: Clock,
    plans: Arc<RwLock<Plans>>,
    entries: Mutex<Entries>,
    /// One account is counted at a time.
    counting: Semaphore,
}

/// Room that is reserved. Dropped, it is given back.
#[derive(Debug)]
#[must_use]
pub struct Reserved {
    /// None where the plan has no end.
    of: Option<(Arc<Quotas>, AccountId, Noun)>,
    /// How much.
    amount: u64,
}

impl Reserved {
    /// How much it is.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// It was stored.
    pub fn keep(self) {
        let amount = self.amount;
        self.keep_part(amount);
    }

    /// So much of it was stored; the rest is given back.
    pub fn keep_part(self, stored: u64) {
        if let Some((quotas, account, noun)) = &self.of {
            quotas.record(*account, *noun, stored.min(self.amount));
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some((quotas, account, noun)) = &self.of
            && let Some(entry) = quotas.lock().get_mut(&(*account, *noun))
        {
            entry.reserved = entry.reserved.saturating_sub(self.amount);
        }
    }
}

impl Quotas {
    /// The quotas of these plans.
    #[must_use]
    pub fn new(store: Store, clock: Clock, plans: Arc<RwLock<Plans>>) -> Self {
        Self { store, clock, plans, entries: Mutex::default(), counting: Semaphore::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much of a noun the plan of an account includes; none is without end.
    #[must_use]
    pub fn cap(&self, account: &Account, noun: Noun) -> Option<u64> {
        self.plans.read().unwrap_or_else(PoisonError::into_inner).of(account.plan).storage.cap(noun)
    }

    /// Reserves room for `more`.
    ///
    /// # Errors
    /// The plan includes no more; the store cannot be read.
    pub async fn reserve(
        self: &Arc<Self>,
        account: &Account,
        noun: Noun,
        more: u64,
    ) -> Result<Reserved, QuotaError> {
        let Some(cap) = self.cap(account, noun) else { return Ok(Reserved { of: None, amount: more }) };
        self.bring_up_to_date((account.id, noun), cap, more).await?;
        let mut entries = self.lock();
        let entry = entries.entry((account.id, noun)).or_default();
        match entry.used() {
            Some(used) if !entry.fits(cap, more) => Err(QuotaError::Full(Full { noun, used, cap })),
            _ => {
                entry.reserved = entry.reserved.saturating_add(more);
                Ok(Reserved { of: Some((Arc::clone(self), account.id, noun)), amount: more })
            }
        }
    }

    /// Counts what was stored without being reserved.
    pub fn record(&self, account: AccountId, noun: Noun, stored: u64) {
        if let Some(count) = self.lock().get_mut(&(account, noun)).and_then(|entry| entry.count.as_mut()) {
            count.added = count.added.saturating_add(stored);
        }
    }

    /// Reserves room for `more`, or for as much as there is, which may be nothing. Waits until it is counted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reserve_up_to(
        self: &Arc<Self>,
        account: &Account,
        noun: Noun,
        more: u64,
    ) -> Result<Reserved, ReadError> {
        let Some(cap) = self.cap(account, noun) else { return Ok(Reserved { of: None, amount: more }) };
        let at = (account.id, noun);
        let now = self.clock.now();
        let is_known =
            self.lock().get(&at).and_then(|entry| entry.count).is_some_and(|count| !count.is_old(now));
        if !is_known {
            self.count_whole(at, cap).await?;
        }
        let mut entries = self.lock();
        let entry = entries.entry(at).or_default();
        let amount = entry.used().map_or(more, |used| more.min(cap.saturating_sub(used)));
        entry.reserved = entry.reserved.saturating_add(amount);
        Ok(Reserved { of: Some((Arc::clone(self), account.id, noun)), amount })
    }

    /// How much an account keeps of a noun, up to twice what its plan includes; none while it is being counted, or
    /// where the plan has no end.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn used(self: &Arc<Self>, account: &Account, noun: Noun) -> Result<Option<u64>, ReadError> {
        let Some(cap) = self.cap(account, noun) else { return Ok(None) };
        self.bring_up_to_date((account.id, noun), cap, 0).await?;
        Ok(self.lock().get(&(account.id, noun)).and_then(Entry::used))
    }

    /// What of an account is nearest to full; none where nothing is bounded and counted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn nearest(self: &Arc<Self>, account: &Account) -> Result<Option<Full>, ReadError> {
        let mut nearest: Option<Full> = None;
        for noun in Noun::ALL {
            let (Some(cap), Some(used)) = (self.cap(account, *noun), self.used(account, *noun).await?) else {
                continue;
            };
            let is_nearer = |than: &Full| {
                u128::from(used) * u128::from(than.cap.max(1))
                    > u128::from(than.used) * u128::from(cap.max(1))
            };
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some(Full { noun: *noun, used, cap });
            }
        }
        Ok(nearest)
    }

    /// Counts where the count is missing, or old, or in the way: at once where that is quick, else in the background.
    async fn bring_up_to_date(
        self: &Arc<Self>,
        at: (AccountId, Noun),
        cap: u64,
        more: u64,
    ) -> Result<(), ReadError> {
        let now = self.clock.now();
        let is_good = {
            let mut entries = self.lock();
            if entries.len() >= KEPT_MAX {
                entries.retain(|_, entry| entry.reserved > 0 || entry.is_counting);
            }
            let entry = entries.entry(at).or_default();
            let others_write = |count: &Count| self.store.is_shared() && count.added > cap / 10;
            entry.is_counting
                || entry.count.is_some_and(|count| match entry.fits(cap, more) {
                    _ if count.cost <= QUICK_COST => false,
                    true => !count.is_old(now) && !others_write(&count),
                    false => !count.may_be_wrong(now),
                })
        };
        if is_good {
            return Ok(());
        }
        let mut tally = Tally::begin(at.0, at.1);
        while !is_over(&tally, cap) && tally.cost < QUICK_COST {
            tally.go_on(&self.store).await?;
        }
        if is_over(&tally, cap) {
            self.set(at, &tally, now);
        } else if !std::mem::replace(&mut self.lock().entry(at).or_default().is_counting, true) {
            let quotas = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = quotas.count_whole(at, cap).await {
                    tracing::warn!(account.id = %at.0, noun = at.1.word(), %error, "counting what an account keeps");
                }
                if let Some(entry) = quotas.lock().get_mut(&at) {
                    entry.is_counting = false;
                }
            });
        }
        Ok(())
    }

    /// Counts to the end, one account at a time.
    async fn count_whole(&self, at: (AccountId, Noun), cap: u64) -> Result<(), ReadError> {
        let _permit = self.counting.acquire().await;
        let now = self.clock.now();
        let mut tally = Tally::begin(at.0, at.1);
        while !is_over(&tally, cap) {
            tally.go_on(&self.store).await?;
            tokio::task::yield_now().await;
        }
        self.set(at, &tally, now);
        Ok(())
    }

    fn set(&self, at: (AccountId, Noun), tally: &Tally, now: Timestamp) {
        let count = Count { sum: tally.sum, cost: tally.cost, at: now, added: 0 };
        self.lock().entry(at).or_default().count = Some(count);
    }
}

fn is_over(tally: &Tally, cap: u64) -> bool {
    tally.is_whole || tally.sum > cap.saturating_mul(COUNTED_CAPS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::account::Plan;
    use mail::id::SuppressionId;
    use mail::suppression::{Grounds, Reason, Source, Suppression, Target};
    use store::engine::Batch;

    fn account() -> Account {
        Account {
            id: AccountId::new(Timestamp::UNIX_EPOCH, 1),
            email: "ada@example.com".parse().unwrap(),
            plan: Plan::Free,
            production: true,
            payment_method: false,
            suspended: false,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    async fn suppress(store: &Store, count: std::ops::Range<u32>) {
        let mut batch = Batch::progress();
        for n in count {
            let target = Target::read(&format!("a{n}@example.net")).unwrap();
            let grounds = Grounds::new(target, Reason::Manual, Source::Import);
            let (id, now) = (SuppressionId::new(Timestamp::UNIX_EPOCH, n.into()), Timestamp::UNIX_EPOCH);
            let suppression = Suppression::follow(None, grounds, account().id, id, now).unwrap();
            store::suppression::put(&mut batch, None, &suppression);
        }
        store.commit(batch).await.unwrap();
    }

    fn quotas(cap: u64) -> Arc<Quotas> {
        let mut plans = Plans::default();
        plans.free.storage.set(Noun::Suppressions, Some(cap));
        Arc::new(Quotas::new(Store::memory(), Clock::default(), Arc::new(RwLock::new(plans))))
    }

    #[tokio::test]
    async fn what_is_reserved_counts_until_it_is_given_back() {
        let quotas = quotas(3);
        let reserve = async |more| quotas.reserve(&account(), Noun::Suppressions, more).await;
        suppress(&quotas.store, 0..1).await;
        let reserved = reserve(2).await.unwrap();
        let full = reserve(1).await.unwrap_err();
        assert!(matches!(full, QuotaError::Full(Full { used: 3, cap: 3, .. })), "{full:?}");
        drop(reserved);
        reserve(2).await.unwrap().keep();
        // It was not stored in truth: few rows are counted each time.
        assert_eq!(reserve(2).await.unwrap().amount(), 2);
    }

    /// An account of an older version with many rows: nothing waits for the count, and nothing is refused by it.
    #[tokio::test]
    async fn many_rows_are_counted_in_the_background() {
        let quotas = quotas(4_100);
        suppress(&quotas.store, 0..2_000).await;
        suppress(&quotas.store, 2_000..4_000).await;
        let reserve = async |more| quotas.reserve(&account(), Noun::Suppressions, more).await;
        reserve(5_000).await.unwrap().keep();
        while quotas.used(&account(), Noun::Suppressions).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(quotas.used(&account(), Noun::Suppressions).await.unwrap(), Some(4_000));
        reserve(100).await.unwrap().keep();
        assert!(reserve(1).await.is_err());
        assert_eq!(quotas.reserve_up_to(&account(), Noun::Suppressions, 9).await.unwrap().amount(), 0);
        // What was kept is not there after all: it is counted again, at most once a second.
        quotas.clock.advance(std::time::Duration::from_secs(2));
        while reserve(1).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}
