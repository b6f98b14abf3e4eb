//! Storage quota: how many rows of a noun (templates, suppressions, product events) an account's plan allows.
//!
//! ```text
//! reserve ─► cached count trusted? ─yes─► fits ─► reservation ─► commit ─► confirm
//!               │ no: a page of rows is read; longer ranges are counted in the background. Until that ends, a tenth
//!               │     of the cap may be added; more is rejected for now (`StorageQuotaError::Counting`)
//! ```
//!
//! Counts are taken from the rows themselves (`store::quota`) and cached here. Rows written elsewhere (bounces, other
//! nodes, retention) are noticed by the next count.
//!
//! - Below half of the cap a count is trusted for a long time.
//! - Above that, a count of few rows is trusted for seconds. Near the cap few rows are counted each time, so the result
//!   is exact except for concurrent writes of others.
//! - Many rows are counted again when their count expires, or when it would reject a reservation and is not recent.
//!
//! Rows that this process stores during a count are added to its result, although the count may have read them. Such a
//! count is approximate: it is too high rather than too low, and it is repeated sooner when it would reject.

use net::clock::Clock;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::account::Account;
use model::id::AccountId;
use model::quota::{Noun, QuotaExceeded};
use store::engine::{ReadError, Store};
use store::quota::QuotaCount;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::intake::shared_plans::SharedPlans;

/// Rows, or kilobytes of rows, counted while the caller waits; more are counted in the background.
const FOREGROUND_COST_MAX: u64 = 1_000;
/// TTL of a count; longer for counts of many rows.
const COUNT_TTL: SignedDuration = SignedDuration::from_mins(10);
/// Factor of the TTL below half of the cap.
const FAR_TTL_FACTOR: i32 = 10;
/// TTL of a count of few rows, up to nine tenths of the cap.
const SMALL_COUNT_TTL: SignedDuration = SignedDuration::from_secs(10);
/// Until the first count ends, a tenth of the cap may be added, or this many rows if that is more.
const UNCOUNTED_ALLOWANCE_MIN: u64 = 1_000;
/// Concurrent background counts, so that a large account does not block the others.
const BACKGROUND_COUNTS_MAX: usize = 4;
/// Cached counts. Beyond this number counts of few rows are evicted, then all that are not in use.
const ENTRIES_MAX: usize = 20_000;
/// Counting stops at this multiple of the cap, because the quota is known to be full.
const COUNT_LIMIT_FACTOR: u64 = 2;

/// Error of [`StorageQuotaTracker::reserve`].
#[derive(Debug, Error)]
pub enum StorageQuotaError {
    /// The plan allows no more.
    #[error("{0}")]
    Full(QuotaExceeded),
    /// The rows are being counted in the background; retry in a moment.
    #[error("the account's {} are being counted; try again in a moment", .0.word().replace('_', " "))]
    Counting(Noun),
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[derive(Debug, Clone, Copy)]
struct StorageCount {
    sum: u64,
    /// Cost of the count: rows read, and their kilobytes.
    cost: u64,
    /// Start time of the count.
    at: Timestamp,
    /// [`StorageEntry::stored_rows`] at the start of the count.
    stored_rows_before: u64,
    /// Rows were stored or reserved during the count and may be counted twice.
    may_double_count: bool,
}

impl StorageCount {
    fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.at)
    }

    /// True if the TTL has passed. The TTL is at least a second per thousand rows, so counting takes a small part of
    /// the time.
    fn is_expired(&self, now: Timestamp) -> bool {
        self.age(now) >= self.ttl()
    }

    fn ttl(&self) -> SignedDuration {
        COUNT_TTL.max(milliseconds(self.cost))
    }

    /// True if a count that would reject a reservation is old enough to be repeated: a second per ten thousand rows, or
    /// per hundred thousand if it may double count.
    fn should_recount(&self, now: Timestamp) -> bool {
        let trusted_for = match self.may_double_count {
            true => milliseconds(self.cost / 100),
            false => milliseconds(self.cost / 10).max(SignedDuration::from_secs(1)),
        };
        self.age(now) >= trusted_for
    }
}

fn milliseconds(count: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(count).unwrap_or(i64::MAX))
}

#[derive(Debug, Default)]
struct StorageEntry {
    count: Option<StorageCount>,
    /// Rows stored by this process since the entry was created.
    stored_rows: u64,
    /// Reserved and neither confirmed nor released.
    reserved: u64,
    is_counting: bool,
}

impl StorageEntry {
    /// Rows stored by this process since the count began.
    fn rows_stored_since(&self, count: &StorageCount) -> u64 {
        self.stored_rows.saturating_sub(count.stored_rows_before)
    }

    fn used(&self) -> Option<u64> {
        self.count.map(|count| count.sum.saturating_add(self.rows_stored_since(&count)).saturating_add(self.reserved))
    }

    /// Number of rows that may be added.
    fn available(&self, cap: u64) -> u64 {
        match self.used() {
            Some(used) => cap.saturating_sub(used),
            None => (cap / 10)
                .max(UNCOUNTED_ALLOWANCE_MIN)
                .min(cap)
                .saturating_sub(self.stored_rows.saturating_add(self.reserved)),
        }
    }

    /// True if the cached count can answer a reservation of `added` rows, or with `None` a query for display.
    fn is_trusted(&self, cap: u64, added: Option<u64>, now: Timestamp) -> bool {
        let Some(count) = &self.count else { return false };
        let fits = |up_to: u64| self.used().is_some_and(|used| used.saturating_add(added.unwrap_or(0)) <= up_to);
        // Below half of the cap an inaccurate count is harmless.
        if added.is_some() && fits(cap / 2) {
            return count.age(now) < count.ttl() * FAR_TTL_FACTOR;
        }
        if count.cost <= FOREGROUND_COST_MAX {
            return added.is_some() && count.age(now) < SMALL_COUNT_TTL && fits(cap / 10 * 9);
        }
        if fits(cap) { !count.is_expired(now) } else { !count.should_recount(now) }
    }

    fn begin_count(&self, key: QuotaKey, now: Timestamp) -> RunningCount {
        RunningCount { tally: QuotaCount::start(key.account, key.noun), at: now, stored_rows_before: self.stored_rows }
    }
}

/// A count in progress.
struct RunningCount {
    tally: QuotaCount,
    at: Timestamp,
    stored_rows_before: u64,
}

impl RunningCount {
    fn is_finished(&self, cap: u64) -> bool {
        self.tally.is_whole || self.tally.sum > cap.saturating_mul(COUNT_LIMIT_FACTOR)
    }
}

/// The account and the noun that an entry counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct QuotaKey {
    account: AccountId,
    noun: Noun,
}

type StorageEntries = HashMap<QuotaKey, StorageEntry>;

/// Tracks the storage quotas of all accounts.
#[derive(Debug)]
pub struct StorageQuotaTracker {
    store: Store,
    clock: Clock,
    plans: SharedPlans,
    entries: Mutex<StorageEntries>,
    /// Limits concurrent background counts.
    counting: Semaphore,
}

/// Reserved quota. Dropping it releases what was not confirmed.
#[derive(Debug)]
#[must_use]
pub struct StorageReservation {
    /// `None` if the plan has no cap.
    owner: Option<(Arc<StorageQuotaTracker>, AccountId, Noun)>,
    amount: u64,
}

impl StorageReservation {
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Confirms that all reserved rows are stored.
    pub fn confirm(self) {
        let amount = self.amount;
        self.confirm_part(amount);
    }

    /// Confirms that `stored` of the reserved rows are stored and releases the rest.
    pub fn confirm_part(self, stored: u64) {
        if let Some((quotas, account, quota)) = &self.owner {
            quotas.record(*account, *quota, stored.min(self.amount));
        }
    }
}

impl Drop for StorageReservation {
    fn drop(&mut self) {
        if let Some((quotas, account, quota)) = &self.owner
            && let Some(entry) = quotas.entries.lock().get_mut(&QuotaKey { account: *account, noun: *quota })
        {
            entry.reserved = entry.reserved.saturating_sub(self.amount);
        }
    }
}

impl StorageQuotaTracker {
    /// Creates a tracker for these plans.
    pub fn new(store: Store, clock: Clock, plans: SharedPlans) -> Self {
        Self { store, clock, plans, entries: Mutex::default(), counting: Semaphore::new(BACKGROUND_COUNTS_MAX) }
    }

    /// Returns the cap of a noun in an account's plan; `None` if it is unlimited.
    pub fn cap(&self, account: &Account, quota: Noun) -> Option<u64> {
        self.plans.of(account.plan).storage.cap(quota)
    }

    /// Reserves quota for `added` rows.
    ///
    /// # Errors
    /// `Full` when the cap would be exceeded, `Counting` while the rows are being counted; the store cannot be read.
    pub async fn reserve(
        self: &Arc<Self>,
        account: &Account,
        quota: Noun,
        added: u64,
    ) -> Result<StorageReservation, StorageQuotaError> {
        let Some(cap) = self.cap(account, quota) else {
            return Ok(StorageReservation { owner: None, amount: added });
        };
        let key = QuotaKey { account: account.id, noun: quota };
        self.refresh_count(key, cap, Some(added)).await?;
        let mut entries = self.entries.lock();
        let entry = entries.entry(key).or_default();
        match entry.used() {
            _ if entry.available(cap) >= added => {
                entry.reserved = entry.reserved.saturating_add(added);
                Ok(StorageReservation { owner: Some((Arc::clone(self), account.id, quota)), amount: added })
            }
            Some(used) => Err(StorageQuotaError::Full(QuotaExceeded { noun: quota, used, cap })),
            None => Err(StorageQuotaError::Counting(quota)),
        }
    }

    /// Adds rows that were stored without a reservation.
    pub fn record(&self, account: AccountId, quota: Noun, stored: u64) {
        if let Some(entry) = self.entries.lock().get_mut(&QuotaKey { account, noun: quota }) {
            entry.stored_rows = entry.stored_rows.saturating_add(stored);
        }
    }

    /// Reserves quota for `added` rows, or for as many as fit, which may be none. Waits for a count if needed. A count
    /// from before `requested_at` may grant but not reject, because rows may have been deleted since.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reserve_up_to(
        self: &Arc<Self>,
        account: &Account,
        quota: Noun,
        added: u64,
        requested_at: Timestamp,
    ) -> Result<StorageReservation, ReadError> {
        let Some(cap) = self.cap(account, quota) else {
            return Ok(StorageReservation { owner: None, amount: added });
        };
        let (key, now) = (QuotaKey { account: account.id, noun: quota }, self.clock.now());
        let may_answer = |count: &StorageCount, fits: bool| match fits {
            true => !count.is_expired(now),
            false => count.at > requested_at && !count.should_recount(now),
        };
        let counting = {
            let mut entries = self.entries.lock();
            let entry = entries.entry(key).or_default();
            let fits = entry.available(cap) >= added;
            let answers = entry.count.is_some_and(|count| may_answer(&count, fits));
            (!answers).then(|| entry.begin_count(key, now))
        };
        if let Some(counting) = counting {
            self.finish_count(key, cap, counting).await?;
        }
        let mut entries = self.entries.lock();
        let entry = entries.entry(key).or_default();
        let amount = added.min(entry.available(cap));
        entry.reserved = entry.reserved.saturating_add(amount);
        Ok(StorageReservation { owner: Some((Arc::clone(self), account.id, quota)), amount })
    }

    /// Returns the rows of a noun that an account has, up to twice its cap. Returns `None` while they are being
    /// counted, or if the plan has no cap.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn used(self: &Arc<Self>, account: &Account, quota: Noun) -> Result<Option<u64>, ReadError> {
        let Some(cap) = self.cap(account, quota) else { return Ok(None) };
        let key = QuotaKey { account: account.id, noun: quota };
        self.refresh_count(key, cap, None).await?;
        Ok(self.entries.lock().get(&key).and_then(StorageEntry::used))
    }

    /// Returns the noun of an account that is nearest to its cap; `None` if nothing is capped and counted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn nearest(self: &Arc<Self>, account: &Account) -> Result<Option<QuotaExceeded>, ReadError> {
        let mut nearest: Option<QuotaExceeded> = None;
        for quota in Noun::ALL {
            let (Some(cap), Some(used)) = (self.cap(account, *quota), self.used(account, *quota).await?) else {
                continue;
            };
            let is_fuller = |other: &QuotaExceeded| {
                u128::from(used) * u128::from(other.cap.max(1)) > u128::from(other.used) * u128::from(cap.max(1))
            };
            if nearest.as_ref().is_none_or(is_fuller) {
                nearest = Some(QuotaExceeded { noun: *quota, used, cap });
            }
        }
        Ok(nearest)
    }

    /// Counts again if the cached count is missing, expired or not trusted: a small count at once, a large one in the
    /// background.
    async fn refresh_count(self: &Arc<Self>, key: QuotaKey, cap: u64, added: Option<u64>) -> Result<(), ReadError> {
        let now = self.clock.now();
        let mut counting = {
            let mut entries = self.entries.lock();
            evict_entries(&mut entries);
            let entry = entries.entry(key).or_default();
            let has_other_writers =
                |count: StorageCount| self.store.is_shared() && entry.rows_stored_since(&count) > cap / 10;
            let is_trusted = entry.is_trusted(cap, added, now) && !entry.count.is_some_and(has_other_writers);
            if entry.is_counting || is_trusted {
                return Ok(());
            }
            entry.begin_count(key, now)
        };
        while !counting.is_finished(cap) && counting.tally.cost < FOREGROUND_COST_MAX {
            counting.tally.count_next_page(&self.store).await?;
        }
        if counting.is_finished(cap) {
            self.store_count(key, &counting);
        } else if !std::mem::replace(&mut self.entries.lock().entry(key).or_default().is_counting, true) {
            let quotas = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = quotas.finish_count(key, cap, counting).await {
                    tracing::warn!(account.id = %key.account, noun = key.noun.word(), %error, "cannot count storage rows");
                }
                if let Some(entry) = quotas.entries.lock().get_mut(&key) {
                    entry.is_counting = false;
                }
            });
        }
        Ok(())
    }

    /// Completes a count. At most [`BACKGROUND_COUNTS_MAX`] run concurrently.
    async fn finish_count(&self, key: QuotaKey, cap: u64, mut counting: RunningCount) -> Result<(), ReadError> {
        let _permit = self.counting.acquire().await;
        while !counting.is_finished(cap) {
            counting.tally.count_next_page(&self.store).await?;
            tokio::task::yield_now().await;
        }
        self.store_count(key, &counting);
        Ok(())
    }

    /// Caches a count unless one that began later is cached.
    fn store_count(&self, key: QuotaKey, counting: &RunningCount) {
        let RunningCount { tally, at: started_at, stored_rows_before } = counting;
        let mut entries = self.entries.lock();
        let entry = entries.entry(key).or_default();
        let has_changed = entry.stored_rows != *stored_rows_before || entry.reserved > 0;
        let count = StorageCount {
            sum: tally.sum,
            cost: tally.cost,
            at: *started_at,
            stored_rows_before: *stored_rows_before,
            may_double_count: has_changed,
        };
        if entry.count.is_none_or(|stored| stored.at <= count.at) {
            entry.count = Some(count);
        }
    }
}

/// Evicts entries when there are too many. Entries in use are not evicted; expensive counts are evicted last.
fn evict_entries(entries: &mut StorageEntries) {
    let is_large = |entry: &StorageEntry| entry.count.is_some_and(|count| count.cost > FOREGROUND_COST_MAX);
    if entries.len() >= ENTRIES_MAX {
        entries.retain(|_, entry| entry.reserved > 0 || entry.is_counting || is_large(entry));
    }
    if entries.len() >= ENTRIES_MAX {
        entries.retain(|_, entry| entry.reserved > 0 || entry.is_counting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::account::Plan;
    use model::id::SuppressionId;
    use model::plan::Plans;
    use model::suppression::{Suppression, SuppressionCause, SuppressionReason, SuppressionSource, SuppressionTarget};
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
            let target = SuppressionTarget::parse(&format!("a{n}@example.net")).unwrap();
            let grounds = SuppressionCause::new(target, SuppressionReason::Manual, SuppressionSource::Import);
            let (id, now) = (SuppressionId::new(Timestamp::UNIX_EPOCH, n.into()), Timestamp::UNIX_EPOCH);
            let suppression = Suppression::apply_cause(None, grounds, account().id, id, now).unwrap();
            store::suppression::put(&mut batch, None, &suppression);
        }
        store.commit(batch).await.unwrap();
    }

    fn quotas(cap: u64) -> Arc<StorageQuotaTracker> {
        let mut plans = Plans::default();
        plans.free.storage.set(Noun::Suppressions, Some(cap));
        Arc::new(StorageQuotaTracker::new(Store::memory(), Clock::default(), SharedPlans::new(plans)))
    }

    #[tokio::test]
    async fn a_reservation_counts_until_it_is_released() {
        let quotas = quotas(3);
        let reserve = async |added| quotas.reserve(&account(), Noun::Suppressions, added).await;
        suppress(&quotas.store, 0..1).await;
        let reserved = reserve(2).await.unwrap();
        let full = reserve(1).await.unwrap_err();
        assert!(matches!(full, StorageQuotaError::Full(QuotaExceeded { used: 3, cap: 3, .. })), "{full:?}");
        drop(reserved);
        reserve(2).await.unwrap().confirm();
        // Nothing was stored, and few rows are counted each time.
        assert_eq!(reserve(2).await.unwrap().amount(), 2);
    }

    async fn suppress_many(store: &Store, count: u32) {
        for from in (0..count).step_by(1_000) {
            suppress(store, from..count.min(from + 1_000)).await;
        }
    }

    /// A large account without a count: nothing waits for the count, and some rows may be added until it ends.
    #[tokio::test]
    async fn many_rows_are_counted_in_the_background() {
        let quotas = quotas(4_100);
        suppress_many(&quotas.store, 4_000).await;
        let reserve = async |added| quotas.reserve(&account(), Noun::Suppressions, added).await;
        assert!(matches!(reserve(1_001).await, Err(StorageQuotaError::Counting(Noun::Suppressions))));
        let reserved = reserve(900).await.unwrap();
        assert!(matches!(reserve(101).await, Err(StorageQuotaError::Counting(_))));
        // Rows stored during the count are added to its result.
        reserved.confirm_part(60);
        while quotas.used(&account(), Noun::Suppressions).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(quotas.used(&account(), Noun::Suppressions).await.unwrap(), Some(4_060));
        reserve(40).await.unwrap().confirm();
        assert!(matches!(reserve(1).await, Err(StorageQuotaError::Full(_))));
        // The confirmed rows do not exist: they are counted again, at most once a second.
        quotas.clock.advance(std::time::Duration::from_secs(2));
        while reserve(1).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn few_rows_are_read_again_near_the_cap_only() {
        let quotas = quotas(20);
        let used = || {
            quotas
                .entries
                .lock()
                .get(&QuotaKey { account: account().id, noun: Noun::Suppressions })
                .and_then(StorageEntry::used)
        };
        let reserve = async |added| quotas.reserve(&account(), Noun::Suppressions, added).await;
        suppress(&quotas.store, 0..10).await;
        drop(reserve(1).await.unwrap());
        suppress(&quotas.store, 10..12).await;
        drop(reserve(1).await.unwrap());
        assert_eq!(used(), Some(10), "the recent count is trusted");
        drop(reserve(9).await.unwrap_err());
        assert_eq!(used(), Some(12), "near the cap rows are counted each time");
        suppress(&quotas.store, 12..13).await;
        quotas.clock.advance(std::time::Duration::from_secs(11));
        drop(reserve(1).await.unwrap());
        assert_eq!(used(), Some(13));
    }

    /// A row that is stored before the count reads it and confirmed after is counted twice. This is corrected soon,
    /// even where counts have a long TTL.
    #[tokio::test]
    async fn rows_stored_during_a_count_are_double_counted_only_briefly() {
        let quotas = quotas(30_000);
        suppress_many(&quotas.store, 20_000).await;
        let reserve = async |added| {
            quotas.reserve_up_to(&account(), Noun::Suppressions, added, Timestamp::UNIX_EPOCH).await.unwrap()
        };
        drop(reserve(1).await);
        // The first is reserved during the next count, the second is confirmed during it.
        let (first, second) = (reserve(2_000).await, reserve(2_000).await);
        suppress(&quotas.store, 20_000..24_000).await;
        quotas.clock.advance(std::time::Duration::from_secs(700));
        let (third, ()) = tokio::join!(reserve(9_000), async {
            tokio::task::yield_now().await;
            second.confirm();
        });
        assert_eq!(third.amount(), 30_000 - 24_000 - 4_000);
        first.confirm();
        drop(third);
        assert_eq!(reserve(9_000).await.amount(), 2_000, "the count is too high rather than too low");
        quotas.clock.advance(std::time::Duration::from_millis(300));
        assert_eq!(reserve(9_000).await.amount(), 6_000);
        // A count without concurrent changes has the usual TTL.
        suppress(&quotas.store, 24_000..24_001).await;
        quotas.clock.advance(std::time::Duration::from_millis(300));
        assert_eq!(reserve(9_000).await.amount(), 6_000);
        quotas.clock.advance(std::time::Duration::from_secs(3));
        assert_eq!(reserve(9_000).await.amount(), 5_999);
    }

    /// An import continues after the account deleted rows, whatever was counted before.
    #[tokio::test]
    async fn an_older_count_rejects_nothing() {
        let quotas = quotas(3_000);
        suppress_many(&quotas.store, 3_000).await;
        let reserve = async |added, requested_at| {
            let reserved = quotas.reserve_up_to(&account(), Noun::Suppressions, added, requested_at).await;
            reserved.unwrap().amount()
        };
        let started_at = quotas.clock.now();
        quotas.clock.advance(std::time::Duration::from_millis(1));
        assert_eq!(reserve(9, started_at).await, 0);
        let target = SuppressionTarget::parse("a1@example.net").unwrap();
        let found = store::suppression::get(&quotas.store, account().id, &target).await.unwrap().unwrap();
        let mut batch = Batch::progress();
        store::suppression::delete(&mut batch, &found);
        quotas.store.commit(batch).await.unwrap();
        assert_eq!(reserve(9, started_at).await, 0, "the count is less than a second old");
        quotas.clock.advance(std::time::Duration::from_millis(1));
        assert_eq!(reserve(9, quotas.clock.now()).await, 1);
    }
}
