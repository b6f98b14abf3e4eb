//! The meter: whether a plan has room for more emails, exact under concurrency.
//!
//! ```text
//! used = rows (events that were told) + pending (accepted by us, not told yet) + what is being committed
//! ```
//!
//! After a start, events of the time before are told first; who has a cap waits for that.
//!
//! Only accounts whose plan has caps, or an included amount, are kept here. On a store of one node
//! the sum is exact. Of several nodes each reads the rows once a second: together they may go beyond a cap
//! by what the others accept within that second (docs/CLUSTER.md).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mail::event::Event;
use mail::id::{AccountId, EmailId};
use mail::plan::PlanLimits;
use mail::usage::{self, ExceededCap, PlanRemaining, PlanUsage, UsagePeriod};
use store::engine::{ReadError, Store};
use tokio::sync::watch;

/// For how long rows are believed that other nodes write, too.
const ROWS_TTL: Duration = Duration::from_secs(1);
/// How long who has a cap waits, after a start, until it is known what was used up.
const BACKLOG_WAIT_MAX: Duration = Duration::from_secs(20);
/// Accounts kept; those without anything pending go when there are more.
const ACCOUNTS_MAX: usize = 10_000;
/// Pending emails kept of an account without caps. While telling is further behind than that, what is said to
/// be left of its included amount is too much; nothing is refused by it.
const METERED_PENDING_MAX: usize = 10_000;

#[derive(Debug, Default)]
struct AccountUsage {
    /// The moment whose day and month `rows` are of, and when it was read; none before it was.
    read_at: Option<Timestamp>,
    rows: PlanUsage,
    /// Accepted or being committed here, not told yet.
    pending: HashMap<EmailId, u64>,
    /// How many those are together.
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

/// The meter. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct QuotaTracker {
    accounts: Arc<Mutex<HashMap<AccountId, AccountUsage>>>,
    /// Held while rows are read for the meter, and while they are written and the meter is told: in between
    /// an email would be counted twice, or not at all.
    rows_lock: Arc<tokio::sync::Mutex<()>>,
    /// Emails may have been accepted before this process began of which nothing is told yet.
    is_behind: Arc<watch::Sender<bool>>,
}

/// Emails of a plan that are being committed. Dropped, they are given back.
#[derive(Debug)]
#[must_use]
pub struct QuotaReservation {
    tracker: QuotaTracker,
    account: AccountId,
    email: Option<EmailId>,
    remaining: PlanRemaining,
}

impl QuotaReservation {
    /// What is left of the caps, or of the included amount, after them.
    #[must_use]
    pub fn remaining(&self) -> PlanRemaining {
        self.remaining
    }

    /// They are on disk: they count until their event is told, and from then on by the rows.
    pub fn confirm(mut self) {
        self.email = None;
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        if let Some(email) = self.email
            && let Some(account) = self.tracker.lock().get_mut(&self.account)
        {
            account.remove_pending(email);
        }
    }
}

/// What came of asking for room.
#[derive(Debug)]
pub enum QuotaDecision {
    /// There is.
    Reserved(QuotaReservation),
    /// A cap is in the way.
    CapReached(ExceededCap),
    /// What was used up is not known yet.
    Unknown,
}

impl QuotaTracker {
    fn lock(&self) -> MutexGuard<'_, HashMap<AccountId, AccountUsage>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room for `count` emails of a plan.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reserve(
        &self,
        store: &Store,
        (account, limits): (AccountId, &PlanLimits),
        (email, count): (EmailId, u64),
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
        let fresh = self.lock().get(&account).is_some_and(|known| known.is_fresh(now, store.is_shared()));
        if !fresh {
            self.refresh(store, account, now).await?;
        }
        let mut accounts = self.lock();
        let known = accounts.entry(account).or_default();
        if let Some(cap) = usage::exceeded_cap(limits, known.usage(), count, now) {
            return Ok(QuotaDecision::CapReached(cap));
        }
        if usage::has_caps(limits) || known.pending.len() < METERED_PENDING_MAX {
            known.add_pending(email, count);
        }
        // Beyond an included amount more may be sent: nothing of it is left then.
        let left = PlanRemaining::from_usage(&PlanLimits { overage: false, ..*limits }, known.usage());
        Ok(QuotaDecision::Reserved(QuotaReservation {
            tracker: self.clone(),
            account,
            email: Some(email),
            remaining: left,
        }))
    }

    /// What was accepted before this process began is not all told yet: who has a cap waits.
    pub(crate) fn mark_behind(&self) {
        self.is_behind.send_replace(true);
    }

    /// It is.
    pub(crate) fn mark_caught_up(&self) {
        self.is_behind.send_replace(false);
    }

    async fn wait_until_caught_up(&self) -> bool {
        if !*self.is_behind.borrow() {
            return true;
        }
        let mut behind = self.is_behind.subscribe();
        let known = tokio::time::timeout(BACKLOG_WAIT_MAX, behind.wait_for(|behind| !behind)).await;
        matches!(known, Ok(Ok(_)))
    }

    async fn refresh(&self, store: &Store, account: AccountId, now: Timestamp) -> Result<(), ReadError> {
        let _books = self.rows_lock.lock().await;
        let rows = store::usage::get(store, account, now).await?;
        let mut accounts = self.lock();
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.retain(|_, known| !known.pending.is_empty());
        }
        let known = accounts.entry(account).or_default();
        (known.read_at, known.rows) = (Some(now), rows);
        Ok(())
    }

    /// What an account has used up, those counted that are not told yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn usage_of(&self, store: &Store, account: AccountId, now: Timestamp) -> Result<PlanUsage, ReadError> {
        self.refresh(store, account, now).await?;
        Ok(self.lock().get(&account).map(AccountUsage::usage).unwrap_or_default())
    }

    /// Writes the books: nothing is read for the meter until the guard is gone.
    pub(crate) async fn lock_rows(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.rows_lock.lock().await
    }

    /// These events are counted in the rows from now on. Called with the books in hand.
    pub(crate) fn mark_dispatched<'a>(&self, events: impl Iterator<Item = &'a Event>) {
        let mut accounts = self.lock();
        for event in events {
            let Some((at, count)) = usage::usage_of_event(event) else { continue };
            let Some(known) = accounts.get_mut(&event.account) else { continue };
            if let Some(email) = event.email() {
                known.remove_pending(email);
            }
            let Some(read_at) = known.read_at else { continue };
            if UsagePeriod::day(at) == UsagePeriod::day(read_at) {
                known.rows.day = known.rows.day.saturating_add(count);
            }
            if UsagePeriod::month(at) == UsagePeriod::month(read_at) {
                known.rows.month = known.rows.month.saturating_add(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mail::account::Plan;

    use super::*;

    /// Time is paused: who waits has waited for as long as it may.
    #[tokio::test(start_paused = true)]
    async fn who_has_a_cap_waits_until_it_is_known_what_was_used() {
        let (meter, store) = (QuotaTracker::default(), Store::memory());
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let account = AccountId::new(now, 1);
        let room = async |plan, number| {
            let of = (account, &PlanLimits::for_plan(plan));
            meter.reserve(&store, of, (EmailId::new(now, number), 1), now).await.unwrap()
        };
        meter.mark_behind();
        assert!(matches!(room(Plan::Free, 1).await, QuotaDecision::Unknown));
        assert!(matches!(room(Plan::Dedicated, 2).await, QuotaDecision::Reserved(_)), "it has no cap");
        let (waits, ()) = tokio::join!(room(Plan::Free, 3), async { meter.mark_caught_up() });
        assert!(matches!(waits, QuotaDecision::Reserved(_)));
    }
}
