//! Plan quota: emails that a plan still allows per day and month, exact under concurrency.
//!
//! ```text
//! used = stored rows (dispatched events) + pending (accepted here, not dispatched) + reserved (being committed)
//! ```
//!
//! After a start, the events of the previous process are dispatched first. Accounts with a cap wait for that backlog.
//!
//! Only accounts whose plan has caps or an included amount are tracked. On a single-node store the sum is exact. In a
//! cluster each node reads the rows once a second: together the nodes may exceed a cap by what the others accept within
//! that second (docs/CLUSTER.md).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::event::Event;
use model::id::{AccountId, EmailId};
use model::plan::PlanLimits;
use model::usage::{self, ExceededCap, PlanRemaining, PlanUsage, UsagePeriod};
use store::engine::{ReadError, Store};
use tokio::sync::watch;

/// TTL of the cached rows where other nodes write them, too.
const ROWS_TTL: Duration = Duration::from_secs(1);
/// Longest wait of an account with caps, after a start, for the event backlog to be dispatched.
const BACKLOG_WAIT_MAX: Duration = Duration::from_secs(20);
/// Cached accounts. Beyond this number those without pending emails are evicted.
const ACCOUNTS_MAX: usize = 10_000;
/// Pending emails tracked for an account without caps. When dispatching is further behind than that, the reported
/// remainder of the included amount is too high; no email is rejected because of it.
const METERED_PENDING_MAX: usize = 10_000;

#[derive(Debug, Default)]
struct AccountUsage {
    /// Time of the last read of `rows`, which also fixes their day and month. `None` before the first read.
    read_at: Option<Timestamp>,
    rows: PlanUsage,
    /// Emails accepted or being committed here whose event is not dispatched yet, with their counts.
    pending: HashMap<EmailId, u64>,
    /// Sum of the counts in `pending`.
    pending_count: u64,
}

impl AccountUsage {
    fn usage(&self) -> PlanUsage {
        let pending = i64::try_from(self.pending_count).unwrap_or(i64::MAX);
        PlanUsage { day: self.rows.day.saturating_add(pending), month: self.rows.month.saturating_add(pending) }
    }

    fn add_pending(&mut self, email: EmailId, count: u64) {
        self.pending.insert(email, count);
        self.pending_count = self.pending_count.saturating_add(count);
    }

    fn remove_pending(&mut self, email: EmailId) {
        let count = self.pending.remove(&email).unwrap_or(0);
        self.pending_count = self.pending_count.saturating_sub(count);
    }

    fn is_fresh(&self, now: Timestamp, shared: bool) -> bool {
        self.read_at.is_some_and(|at| {
            let old = now.duration_since(at);
            let held =
                !shared || (!old.is_negative() && old < jiff::SignedDuration::try_from(ROWS_TTL).unwrap_or_default());
            held && UsagePeriod::day(at) == UsagePeriod::day(now)
        })
    }
}

/// Tracks the plan usage of accounts. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct QuotaTracker {
    accounts: Arc<Mutex<HashMap<AccountId, AccountUsage>>>,
    /// Held while rows are read into the cache, and from writing them until the cache is updated. Otherwise an email
    /// could be counted twice or not at all.
    rows_lock: Arc<tokio::sync::Mutex<()>>,
    /// True while emails of a previous process may have events that are not dispatched yet.
    is_behind: Arc<watch::Sender<bool>>,
}

/// Quota reserved for an email whose commit is in progress. Dropping it unconfirmed releases the quota.
#[derive(Debug)]
#[must_use]
pub struct QuotaReservation {
    tracker: QuotaTracker,
    account: AccountId,
    email: Option<EmailId>,
    remaining: PlanRemaining,
}

impl QuotaReservation {
    /// Remainder of the caps, or of the included amount, after this reservation.
    pub fn remaining(&self) -> PlanRemaining {
        self.remaining
    }

    /// Confirms that the email is committed. It counts as pending until its event is dispatched, and in the rows from
    /// then on.
    pub fn confirm(mut self) {
        self.email = None;
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        if let Some(email) = self.email
            && let Some(account) = self.tracker.accounts.lock().get_mut(&self.account)
        {
            account.remove_pending(email);
        }
    }
}

/// Result of [`QuotaTracker::reserve`].
#[derive(Debug)]
pub enum QuotaDecision {
    Reserved(QuotaReservation),
    /// The reservation would exceed this cap.
    CapReached(ExceededCap),
    /// The event backlog was not dispatched within `BACKLOG_WAIT_MAX`, so the usage is unknown.
    Unknown,
}

impl QuotaTracker {
    /// Reserves quota for `count` recipients of an email.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reserve(
        &self,
        store: &Store,
        account: AccountId,
        limits: &PlanLimits,
        email: EmailId,
        count: u64,
        now: Timestamp,
    ) -> Result<QuotaDecision, ReadError> {
        if limits.emails_per_day.or(limits.emails_per_month).is_none() {
            return Ok(QuotaDecision::Reserved(QuotaReservation {
                tracker: self.clone(),
                account,
                email: None,
                remaining: PlanRemaining::default(),
            }));
        }
        if usage::has_caps(limits) && !self.wait_until_caught_up().await {
            return Ok(QuotaDecision::Unknown);
        }
        let is_fresh = self.accounts.lock().get(&account).is_some_and(|usage| usage.is_fresh(now, store.is_shared()));
        if !is_fresh {
            self.refresh(store, account, now).await?;
        }
        let mut accounts = self.accounts.lock();
        let usage = accounts.entry(account).or_default();
        if let Some(cap) = usage::exceeded_cap(limits, usage.usage(), count, now) {
            return Ok(QuotaDecision::CapReached(cap));
        }
        if usage::has_caps(limits) || usage.pending.len() < METERED_PENDING_MAX {
            usage.add_pending(email, count);
        }
        // Sending beyond an included amount is allowed; the remainder is zero then.
        let left = PlanRemaining::from_usage(&PlanLimits { overage: false, ..*limits }, usage.usage());
        Ok(QuotaDecision::Reserved(QuotaReservation {
            tracker: self.clone(),
            account,
            email: Some(email),
            remaining: left,
        }))
    }

    /// Marks the event backlog of a previous process as not dispatched: accounts with caps wait.
    pub fn mark_behind(&self) {
        self.is_behind.send_replace(true);
    }

    /// Marks the event backlog as dispatched.
    pub fn mark_caught_up(&self) {
        self.is_behind.send_replace(false);
    }

    async fn wait_until_caught_up(&self) -> bool {
        if !*self.is_behind.borrow() {
            return true;
        }
        let mut is_behind = self.is_behind.subscribe();
        let caught_up = tokio::time::timeout(BACKLOG_WAIT_MAX, is_behind.wait_for(|is_behind| !is_behind)).await;
        matches!(caught_up, Ok(Ok(_)))
    }

    async fn refresh(&self, store: &Store, account: AccountId, now: Timestamp) -> Result<(), ReadError> {
        let _rows = self.rows_lock.lock().await;
        let rows = store::usage::get(store, account, now).await?;
        let mut accounts = self.accounts.lock();
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.retain(|_, usage| !usage.pending.is_empty());
        }
        let usage = accounts.entry(account).or_default();
        (usage.read_at, usage.rows) = (Some(now), rows);
        Ok(())
    }

    /// Returns the usage of an account, pending emails included.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn usage_of(&self, store: &Store, account: AccountId, now: Timestamp) -> Result<PlanUsage, ReadError> {
        self.refresh(store, account, now).await?;
        Ok(self.accounts.lock().get(&account).map(AccountUsage::usage).unwrap_or_default())
    }

    /// Locks the usage rows for writing: the cache reads no rows until the guard is dropped.
    pub async fn lock_rows(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.rows_lock.lock().await
    }

    /// Moves these events from pending to the cached rows. The caller holds the guard of [`QuotaTracker::lock_rows`].
    pub fn mark_dispatched<'a>(&self, events: impl Iterator<Item = &'a Event>) {
        let mut accounts = self.accounts.lock();
        for event in events {
            let Some((at, count)) = usage::usage_of_event(event) else { continue };
            let Some(usage) = accounts.get_mut(&event.account) else { continue };
            if let Some(email) = event.email() {
                usage.remove_pending(email);
            }
            let Some(read_at) = usage.read_at else { continue };
            if UsagePeriod::day(at) == UsagePeriod::day(read_at) {
                usage.rows.day = usage.rows.day.saturating_add(count);
            }
            if UsagePeriod::month(at) == UsagePeriod::month(read_at) {
                usage.rows.month = usage.rows.month.saturating_add(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::account::Plan;

    use super::*;

    /// Tokio's time is paused, so the wait ends at once when its timeout is reached.
    #[tokio::test(start_paused = true)]
    async fn capped_accounts_wait_for_the_event_backlog() {
        let (meter, store) = (QuotaTracker::default(), Store::memory());
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let account = AccountId::new(now, 1);
        let reserve = async |plan, number| {
            meter
                .reserve(&store, account, &PlanLimits::for_plan(plan), EmailId::new(now, number), 1, now)
                .await
                .unwrap()
        };
        meter.mark_behind();
        assert!(matches!(reserve(Plan::Free, 1).await, QuotaDecision::Unknown));
        assert!(matches!(reserve(Plan::Dedicated, 2).await, QuotaDecision::Reserved(_)), "the plan has no cap");
        let (waits, ()) = tokio::join!(reserve(Plan::Free, 3), async { meter.mark_caught_up() });
        assert!(matches!(waits, QuotaDecision::Reserved(_)));
    }
}
