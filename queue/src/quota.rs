//! Quotas: whether an account's plan has room for more rows of a noun (templates, suppressions, product events).
//!
//! ```text
//! reserve ─► count believed? ─yes─► fits ─► Reserved ─► commit ─► keep
//!               │ no: a page is read; a longer range is counted in the background, and until its end a tenth of the
//!               │     cap may be added; more is refused for the moment (`QuotaError::Counting`)
//! ```
//!
//! Counts follow from the rows themselves (`store::quota`) and are remembered here. Rows that others write (bounces,
//! other nodes, retention) are noticed by the next count. Below half of the cap a count is believed for long. Above it, a
//! count of few rows is believed for seconds, and near the cap they are counted each time, so that it is exact but for
//! what others write at the same moment. Many rows are counted again when their count is old, or when it is in the way.
//! What this process keeps while a count runs is added to it, although the count may have read it: then the count is
//! rough, says too much rather than too little, and is taken again sooner where it is in the way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use mail::account::Account;
use mail::id::AccountId;
use mail::plan::Plans;
use mail::quota::{Noun, QuotaExceeded};
use store::engine::{ReadError, Store};
use store::quota::QuotaCount;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::clock::Clock;

/// Rows, or kilobytes of them, that are counted while the caller waits; more are counted in the background.
const FOREGROUND_COST_MAX: u64 = 1_000;
/// A count is believed for this long, and longer when it took many rows.
const COUNT_TTL: SignedDuration = SignedDuration::from_mins(10);
/// Below half of the cap a count is believed for so many times as long.
const FAR_TTL_FACTOR: i32 = 10;
/// A count of few rows is believed for this long, up to nine tenths of the cap.
const SMALL_COUNT_TTL: SignedDuration = SignedDuration::from_secs(10);
/// While the rows are not counted yet, a tenth of the cap may be added, or this much.
const UNCOUNTED_ALLOWANCE_MIN: u64 = 1_000;
/// Accounts that are counted in the background at a time: a large one does not keep the others waiting.
const BACKGROUND_COUNTS_MAX: usize = 4;
/// Counts that are remembered. When there are more, those of few rows are forgotten, and then all that are not in use.
const ENTRIES_MAX: usize = 20_000;
/// Counting ends at so many times the cap: then it is known to be full.
const COUNT_LIMIT_FACTOR: u64 = 2;

/// Why nothing was reserved.
#[derive(Debug, Error)]
pub enum StorageQuotaError {
    /// The plan includes no more.
    #[error("{0}")]
    Full(QuotaExceeded),
    /// There are many, and it is not known yet how many: it may be tried again in a moment.
    #[error("the account's {} are being counted; try again in a moment", .0.word().replace('_', " "))]
    Counting(Noun),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[derive(Debug, Clone, Copy)]
struct StorageCount {
    sum: u64,
    /// Rows that were read for it, and their kilobytes.
    cost: u64,
    /// When it began.
    at: Timestamp,
    /// [`Entry::kept`] when it began.
    kept_before: u64,
    /// Something was kept while it ran, or reserved and may be kept later: it may be counted twice.
    may_double_count: bool,
}

impl StorageCount {
    fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.at)
    }

    /// A second for each thousand rows: however many there are, counting takes a small part of the time.
    fn is_expired(&self, now: Timestamp) -> bool {
        self.age(now) >= self.ttl()
    }

    fn ttl(&self) -> SignedDuration {
        COUNT_TTL.max(milliseconds(self.cost))
    }

    /// Where it stands in the way: a second for each ten thousand rows, where it is rough for each hundred thousand.
    fn should_recount(&self, now: Timestamp) -> bool {
        let believed = match self.may_double_count {
            true => milliseconds(self.cost / 100),
            false => milliseconds(self.cost / 10).max(SignedDuration::from_secs(1)),
        };
        self.age(now) >= believed
    }
}

fn milliseconds(count: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(count).unwrap_or(i64::MAX))
}

#[derive(Debug, Default)]
struct StorageEntry {
    count: Option<StorageCount>,
    /// Kept by this process since the entry was made.
    kept: u64,
    /// Reserved and neither kept nor given back.
    reserved: u64,
    is_counting: bool,
}

impl StorageEntry {
    /// Kept by this process since the count began.
    fn kept_since(&self, count: &StorageCount) -> u64 {
        self.kept.saturating_sub(count.kept_before)
    }

    fn used(&self) -> Option<u64> {
        self.count.map(|count| count.sum.saturating_add(self.kept_since(&count)).saturating_add(self.reserved))
    }

    /// How much may be added.
    fn available(&self, cap: u64) -> u64 {
        match self.used() {
            Some(used) => cap.saturating_sub(used),
            None => {
                (cap / 10).max(UNCOUNTED_ALLOWANCE_MIN).min(cap).saturating_sub(self.kept.saturating_add(self.reserved))
            }
        }
    }

    /// Whether the count answers for `more`; none where it is only to be shown.
    fn is_trusted(&self, cap: u64, more: Option<u64>, now: Timestamp) -> bool {
        let Some(count) = &self.count else { return false };
        let fits = |up_to: u64| self.used().is_some_and(|used| used.saturating_add(more.unwrap_or(0)) <= up_to);
        // Far from the cap even a count that is off does no harm.
        if more.is_some() && fits(cap / 2) {
            return count.age(now) < count.ttl() * FAR_TTL_FACTOR;
        }
        if count.cost <= FOREGROUND_COST_MAX {
            return more.is_some() && count.age(now) < SMALL_COUNT_TTL && fits(cap / 10 * 9);
        }
        if fits(cap) { !count.is_expired(now) } else { !count.should_recount(now) }
    }

    fn begin_count(&self, (account, noun): (AccountId, Noun), now: Timestamp) -> RunningCount {
        RunningCount { tally: QuotaCount::start(account, noun), at: now, kept_before: self.kept }
    }
}

/// A count that runs.
struct RunningCount {
    tally: QuotaCount,
    at: Timestamp,
    kept_before: u64,
}

impl RunningCount {
    fn is_finished(&self, cap: u64) -> bool {
        self.tally.is_whole || self.tally.sum > cap.saturating_mul(COUNT_LIMIT_FACTOR)
    }
}

type StorageEntries = HashMap<(AccountId, Noun), StorageEntry>;

/// The quotas of all accounts.
#[derive(Debug)]
pub struct StorageQuotaTracker {
    store: Store,
    clock: Clock,
    plans: Arc<RwLock<Plans>>,
    entries: Mutex<StorageEntries>,
    /// So many are counted in the background.
    counting: Semaphore,
}

/// Room that is reserved. Dropped, it is given back.
#[derive(Debug)]
#[must_use]
pub struct StorageReservation {
    /// None where the plan has no end.
    owner: Option<(Arc<StorageQuotaTracker>, AccountId, Noun)>,
    /// How much.
    amount: u64,
}

impl StorageReservation {
    /// How much it is.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// It was stored.
    pub fn confirm(self) {
        let amount = self.amount;
        self.confirm_part(amount);
    }

    /// So much of it was stored; the rest is given back.
    pub fn confirm_part(self, stored: u64) {
        if let Some((quotas, account, noun)) = &self.owner {
            quotas.record(*account, *noun, stored.min(self.amount));
        }
    }
}

impl Drop for StorageReservation {
    fn drop(&mut self) {
        if let Some((quotas, account, noun)) = &self.owner
            && let Some(entry) = quotas.lock().get_mut(&(*account, *noun))
        {
            entry.reserved = entry.reserved.saturating_sub(self.amount);
        }
    }
}

impl StorageQuotaTracker {
    /// The quotas of these plans.
    #[must_use]
    pub fn new(store: Store, clock: Clock, plans: Arc<RwLock<Plans>>) -> Self {
        Self { store, clock, plans, entries: Mutex::default(), counting: Semaphore::new(BACKGROUND_COUNTS_MAX) }
    }

    fn lock(&self) -> MutexGuard<'_, StorageEntries> {
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
    /// [`QuotaError`].
    pub async fn reserve(
        self: &Arc<Self>,
        account: &Account,
        noun: Noun,
        more: u64,
    ) -> Result<StorageReservation, StorageQuotaError> {
        let Some(cap) = self.cap(account, noun) else {
            return Ok(StorageReservation { owner: None, amount: more });
        };
        self.refresh_count((account.id, noun), cap, Some(more)).await?;
        let mut entries = self.lock();
        let entry = entries.entry((account.id, noun)).or_default();
        match entry.used() {
            _ if entry.available(cap) >= more => {
                entry.reserved = entry.reserved.saturating_add(more);
                Ok(StorageReservation { owner: Some((Arc::clone(self), account.id, noun)), amount: more })
            }
            Some(used) => Err(StorageQuotaError::Full(QuotaExceeded { noun, used, cap })),
            None => Err(StorageQuotaError::Counting(noun)),
        }
    }

    /// Counts what was stored without being reserved.
    pub fn record(&self, account: AccountId, noun: Noun, stored: u64) {
        if let Some(entry) = self.lock().get_mut(&(account, noun)) {
            entry.kept = entry.kept.saturating_add(stored);
        }
    }

    /// Reserves room for `more`, or for as much as there is, which may be nothing. Waits until it is counted. A count
    /// from before `asked_at` gives room, but does not refuse it: something may have been deleted since.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reserve_up_to(
        self: &Arc<Self>,
        account: &Account,
        noun: Noun,
        (more, asked_at): (u64, Timestamp),
    ) -> Result<StorageReservation, ReadError> {
        let Some(cap) = self.cap(account, noun) else {
            return Ok(StorageReservation { owner: None, amount: more });
        };
        let (at, now) = ((account.id, noun), self.clock.now());
        let may_answer = |count: &StorageCount, fits: bool| match fits {
            true => !count.is_expired(now),
            false => count.at > asked_at && !count.should_recount(now),
        };
        let counting = {
            let mut entries = self.lock();
            let entry = entries.entry(at).or_default();
            let fits = entry.available(cap) >= more;
            let answers = entry.count.is_some_and(|count| may_answer(&count, fits));
            (!answers).then(|| entry.begin_count(at, now))
        };
        if let Some(counting) = counting {
            self.finish_count(at, cap, counting).await?;
        }
        let mut entries = self.lock();
        let entry = entries.entry(at).or_default();
        let amount = more.min(entry.available(cap));
        entry.reserved = entry.reserved.saturating_add(amount);
        Ok(StorageReservation { owner: Some((Arc::clone(self), account.id, noun)), amount })
    }

    /// How much an account keeps of a noun, up to twice what its plan includes; none while it is being counted, or
    /// where the plan has no end.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn used(self: &Arc<Self>, account: &Account, noun: Noun) -> Result<Option<u64>, ReadError> {
        let Some(cap) = self.cap(account, noun) else { return Ok(None) };
        self.refresh_count((account.id, noun), cap, None).await?;
        Ok(self.lock().get(&(account.id, noun)).and_then(StorageEntry::used))
    }

    /// What of an account is nearest to full; none where nothing is bounded and counted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn nearest(self: &Arc<Self>, account: &Account) -> Result<Option<QuotaExceeded>, ReadError> {
        let mut nearest: Option<QuotaExceeded> = None;
        for noun in Noun::ALL {
            let (Some(cap), Some(used)) = (self.cap(account, *noun), self.used(account, *noun).await?) else {
                continue;
            };
            let is_nearer = |than: &QuotaExceeded| {
                u128::from(used) * u128::from(than.cap.max(1)) > u128::from(than.used) * u128::from(cap.max(1))
            };
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some(QuotaExceeded { noun: *noun, used, cap });
            }
        }
        Ok(nearest)
    }

    /// Counts where the count is missing, or old, or in the way: at once where that is quick, else in the background.
    async fn refresh_count(
        self: &Arc<Self>,
        at: (AccountId, Noun),
        cap: u64,
        more: Option<u64>,
    ) -> Result<(), ReadError> {
        let now = self.clock.now();
        let mut counting = {
            let mut entries = self.lock();
            evict_entries(&mut entries);
            let entry = entries.entry(at).or_default();
            let others_write = |count: StorageCount| self.store.is_shared() && entry.kept_since(&count) > cap / 10;
            let is_believed = entry.is_trusted(cap, more, now) && !entry.count.is_some_and(others_write);
            if entry.is_counting || is_believed {
                return Ok(());
            }
            entry.begin_count(at, now)
        };
        while !counting.is_finished(cap) && counting.tally.cost < FOREGROUND_COST_MAX {
            counting.tally.count_next_page(&self.store).await?;
        }
        if counting.is_finished(cap) {
            self.store_count(at, &counting);
        } else if !std::mem::replace(&mut self.lock().entry(at).or_default().is_counting, true) {
            let quotas = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = quotas.finish_count(at, cap, counting).await {
                    tracing::warn!(account.id = %at.0, noun = at.1.word(), %error, "counting what an account keeps");
                }
                if let Some(entry) = quotas.lock().get_mut(&at) {
                    entry.is_counting = false;
                }
            });
        }
        Ok(())
    }

    /// Counts to the end, a few accounts at a time.
    async fn finish_count(&self, at: (AccountId, Noun), cap: u64, mut counting: RunningCount) -> Result<(), ReadError> {
        let _permit = self.counting.acquire().await;
        while !counting.is_finished(cap) {
            counting.tally.count_next_page(&self.store).await?;
            tokio::task::yield_now().await;
        }
        self.store_count(at, &counting);
        Ok(())
    }

    /// Remembers a count; of two that ran at once, the one that began later.
    fn store_count(&self, at: (AccountId, Noun), counting: &RunningCount) {
        let RunningCount { tally, at: began, kept_before } = counting;
        let mut entries = self.lock();
        let entry = entries.entry(at).or_default();
        let is_rough = entry.kept != *kept_before || entry.reserved > 0;
        let count = StorageCount {
            sum: tally.sum,
            cost: tally.cost,
            at: *began,
            kept_before: *kept_before,
            may_double_count: is_rough,
        };
        if entry.count.is_none_or(|there| there.at <= count.at) {
            entry.count = Some(count);
        }
    }
}

/// Makes room for further entries, where there are too many: what is in use stays, and what took long to count longest.
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
    use mail::account::Plan;
    use mail::id::SuppressionId;
    use mail::suppression::{Suppression, SuppressionCause, SuppressionReason, SuppressionSource, SuppressionTarget};
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
        Arc::new(StorageQuotaTracker::new(Store::memory(), Clock::default(), Arc::new(RwLock::new(plans))))
    }

    #[tokio::test]
    async fn what_is_reserved_counts_until_it_is_given_back() {
        let quotas = quotas(3);
        let reserve = async |more| quotas.reserve(&account(), Noun::Suppressions, more).await;
        suppress(&quotas.store, 0..1).await;
        let reserved = reserve(2).await.unwrap();
        let full = reserve(1).await.unwrap_err();
        assert!(matches!(full, StorageQuotaError::Full(QuotaExceeded { used: 3, cap: 3, .. })), "{full:?}");
        drop(reserved);
        reserve(2).await.unwrap().confirm();
        // It was not stored in truth: few rows are counted each time.
        assert_eq!(reserve(2).await.unwrap().amount(), 2);
    }

    async fn suppress_many(store: &Store, count: u32) {
        for from in (0..count).step_by(1_000) {
            suppress(store, from..count.min(from + 1_000)).await;
        }
    }

    /// An account of an older version with many rows: nothing waits for the count, and until its end some may be added.
    #[tokio::test]
    async fn many_rows_are_counted_in_the_background() {
        let quotas = quotas(4_100);
        suppress_many(&quotas.store, 4_000).await;
        let reserve = async |more| quotas.reserve(&account(), Noun::Suppressions, more).await;
        assert!(matches!(reserve(1_001).await, Err(StorageQuotaError::Counting(Noun::Suppressions))));
        let reserved = reserve(900).await.unwrap();
        assert!(matches!(reserve(101).await, Err(StorageQuotaError::Counting(_))));
        // It is stored while the count runs, and counts beside it.
        reserved.confirm_part(60);
        while quotas.used(&account(), Noun::Suppressions).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(quotas.used(&account(), Noun::Suppressions).await.unwrap(), Some(4_060));
        reserve(40).await.unwrap().confirm();
        assert!(matches!(reserve(1).await, Err(StorageQuotaError::Full(_))));
        // What was kept is not there after all: it is counted again, at most once a second.
        quotas.clock.advance(std::time::Duration::from_secs(2));
        while reserve(1).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn few_rows_are_read_again_near_the_cap_only() {
        let quotas = quotas(20);
        let used = || quotas.lock().get(&(account().id, Noun::Suppressions)).and_then(StorageEntry::used);
        let reserve = async |more| quotas.reserve(&account(), Noun::Suppressions, more).await;
        suppress(&quotas.store, 0..10).await;
        drop(reserve(1).await.unwrap());
        suppress(&quotas.store, 10..12).await;
        drop(reserve(1).await.unwrap());
        assert_eq!(used(), Some(10), "it was counted a moment ago");
        drop(reserve(9).await.unwrap_err());
        assert_eq!(used(), Some(12), "near the cap it is counted each time");
        suppress(&quotas.store, 12..13).await;
        quotas.clock.advance(std::time::Duration::from_secs(11));
        drop(reserve(1).await.unwrap());
        assert_eq!(used(), Some(13));
    }

    /// A row that is stored before the count reads it and kept after, is counted twice. That is over soon, also where
    /// rows are many and a count is believed for long.
    #[tokio::test]
    async fn what_is_stored_while_a_count_runs_is_counted_twice_for_a_moment_only() {
        let quotas = quotas(30_000);
        suppress_many(&quotas.store, 20_000).await;
        let up_to = async |more| {
            let asked = (more, Timestamp::UNIX_EPOCH);
            quotas.reserve_up_to(&account(), Noun::Suppressions, asked).await.unwrap()
        };
        drop(up_to(1).await);
        // The first is reserved while the count that follows runs, the second is kept while it runs.
        let (first, second) = (up_to(2_000).await, up_to(2_000).await);
        suppress(&quotas.store, 20_000..24_000).await;
        quotas.clock.advance(std::time::Duration::from_secs(700));
        let (third, ()) = tokio::join!(up_to(9_000), async {
            tokio::task::yield_now().await;
            second.confirm();
        });
        assert_eq!(third.amount(), 30_000 - 24_000 - 4_000);
        first.confirm();
        drop(third);
        assert_eq!(up_to(9_000).await.amount(), 2_000, "never too few are counted");
        quotas.clock.advance(std::time::Duration::from_millis(300));
        assert_eq!(up_to(9_000).await.amount(), 6_000);
        // A count beside which nothing happened is believed for as long as ever.
        suppress(&quotas.store, 24_000..24_001).await;
        quotas.clock.advance(std::time::Duration::from_millis(300));
        assert_eq!(up_to(9_000).await.amount(), 6_000);
        quotas.clock.advance(std::time::Duration::from_secs(3));
        assert_eq!(up_to(9_000).await.amount(), 5_999);
    }

    /// An import goes on after the account deleted something, whatever was counted before.
    #[tokio::test]
    async fn a_count_from_before_it_was_asked_refuses_nothing() {
        let quotas = quotas(3_000);
        suppress_many(&quotas.store, 3_000).await;
        let up_to = async |more, asked_at| {
            let reserved = quotas.reserve_up_to(&account(), Noun::Suppressions, (more, asked_at)).await;
            reserved.unwrap().amount()
        };
        let begun = quotas.clock.now();
        quotas.clock.advance(std::time::Duration::from_millis(1));
        assert_eq!(up_to(9, begun).await, 0);
        let target = SuppressionTarget::parse("a1@example.net").unwrap();
        let found = store::suppression::get(&quotas.store, account().id, &target).await.unwrap().unwrap();
        let mut batch = Batch::progress();
        store::suppression::delete(&mut batch, &found);
        quotas.store.commit(batch).await.unwrap();
        assert_eq!(up_to(9, begun).await, 0, "it was counted less than a second ago");
        quotas.clock.advance(std::time::Duration::from_millis(1));
        assert_eq!(up_to(9, quotas.clock.now()).await, 1);
    }
}
