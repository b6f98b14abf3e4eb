//! The bytes of message content that may be in memory at once, over all sessions of one kind of listener.
//!
//! ```text
//! Session ─► Reservation (one a session: who pays, how fast the message comes) ─► Quota
//! Content ─► Held (one a message) ─► Reservation
//! ```
//!
//! While less than a quarter of the bytes is free, a message that came more slowly than [`SLOW_BYTES_PER_S`] over
//! the last minute is cut off: the slowest first, until a quarter is free again. Its bytes are given back at
//! once, and its session ends with 421. Whoever asks for bytes does that; there is no task for it.
//!
//! A session that is refused all the same cuts off messages that are faster than that, the slowest first,
//! but only those that have come for more than a minute and whose sender has more than the newcomer would have. So a
//! few senders, each just fast enough, do not keep the memory full, and nobody loses a message to one who has more.
//!
//! How fast a message comes is one moment, its due time: each byte moves it on by what a byte may take, and it is
//! never more than a minute ahead (the "virtual scheduling" of GCRA). A message is slow once it is overdue, and the
//! one that is longest overdue is the slowest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use crate::quota::{FairShareQuota, QuotaBounds, QuotaHolder, QuotaShare};

/// A message that comes more slowly than this is cut off while memory is short.
pub const SLOW_BYTES_PER_S: u64 = 16_000;
/// Over so long the rate is averaged: a message may pause for that long once.
pub const SLOW_AVERAGING_WINDOW: Duration = Duration::from_secs(60);
/// Looking for slow messages takes a look at each: no more often than this.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Stands for the bytes of a message that was cut off.
const ABORTED: usize = usize::MAX;

/// The bytes of one kind of listener.
#[derive(Debug)]
pub struct ContentBudget {
    quota: Arc<FairShareQuota>,
    listener: &'static str,
    epoch: Instant,
    /// When slow messages were last looked for, in nanoseconds since `epoch`.
    slow_checked_at: AtomicU64,
    reservations: Mutex<ReservationTable>,
}

/// The sessions that have received content.
#[derive(Debug, Default)]
struct ReservationTable {
    next: u64,
    by_number: HashMap<u64, Weak<MemoryReservation>>,
}

impl ContentBudget {
    /// The default for all listeners: on a small machine still room for a few of the largest messages.
    pub const BYTES_DEFAULT: usize = 512 * 1024 * 1024;

    /// A budget of so many bytes; who is alone may have all of them.
    #[must_use]
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Self::with_bounds(QuotaBounds { sole_holder: bytes_max, ..QuotaBounds::shared(bytes_max) }, "any")
    }

    /// A budget with these bounds, for a kind of listener that the figures name so.
    #[must_use]
    pub fn with_bounds(bounds: QuotaBounds, listener: &'static str) -> Arc<Self> {
        Arc::new(Self {
            quota: FairShareQuota::new(bounds),
            listener,
            epoch: Instant::now(),
            slow_checked_at: AtomicU64::new(0),
            reservations: Mutex::default(),
        })
    }

    /// Has these bounds from now on. What is held already stays held.
    pub fn set_bounds(&self, bounds: QuotaBounds) {
        self.quota.set_bounds(bounds);
    }

    /// Bytes that are free now.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.quota.free()
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.quota.used()
    }

    /// For a session that began at a moment, what it will hold for somebody who counts for these holders.
    #[must_use]
    pub fn reserve(
        self: &Arc<Self>,
        holders: impl IntoIterator<Item = QuotaHolder>,
        began: Instant,
    ) -> Arc<MemoryReservation> {
        let share = self.quota.share_for(holders);
        let mut sessions = self.reservation_table();
        let number = sessions.next;
        sessions.next += 1;
        let reservation = Arc::new(MemoryReservation {
            budget: Arc::clone(self),
            share,
            number,
            began: as_nanos(began.saturating_duration_since(self.epoch)),
            now: AtomicU64::new(0),
            started: AtomicU64::new(0),
            overdue_at: AtomicU64::new(u64::MAX),
            bytes: AtomicUsize::new(0),
            waker: Mutex::default(),
        });
        sessions.by_number.insert(number, Arc::downgrade(&reservation));
        reservation
    }

    fn reservation_table(&self) -> MutexGuard<'_, ReservationTable> {
        // The table is whole after every statement: a panic elsewhere did not break it.
        self.reservations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts off slow messages, the slowest first, until memory is not short although so many bytes are taken.
    fn abort_slow_messages(&self, now: u64, wanted: usize) {
        if !self.quota.is_near_capacity(wanted) {
            return;
        }
        let late =
            |last: u64| (last == 0 || now >= last.saturating_add(as_nanos(SLOW_CHECK_INTERVAL))).then_some(now.max(1));
        if self.slow_checked_at.fetch_update(Ordering::AcqRel, Ordering::Acquire, late).is_err() {
            return;
        }
        let all = self.reservations();
        let mut slow: Vec<_> = all.iter().filter(|one| one.is_overdue(now)).collect();
        slow.sort_unstable_by_key(|one| one.overdue_at.load(Ordering::Relaxed));
        for one in slow {
            if !self.quota.is_near_capacity(wanted) {
                break;
            }
            one.abort();
        }
    }

    /// Cuts off messages of those who have more than the newcomer would have, the slowest first, until so many bytes
    /// would be granted to it.
    fn abort_larger_senders(&self, newcomer: &MemoryReservation, now: u64, wanted: usize) {
        if !newcomer.share.could_acquire(wanted) {
            return;
        }
        let would_have = newcomer.share.own_units().saturating_add(wanted);
        let all = self.reservations();
        let mut lasting: Vec<_> = all.iter().filter(|one| one.is_long_running(now)).collect();
        lasting.sort_by_cached_key(|one| one.bytes_per_s(now));
        for one in lasting {
            if newcomer.share.can_acquire(wanted) {
                break;
            }
            if one.share.own_units() > would_have {
                one.abort();
            }
        }
    }

    /// Those of all sessions. (The last handle of one locks the table when it is dropped: the lock is not held.)
    fn reservations(&self) -> Vec<Arc<MemoryReservation>> {
        self.reservation_table().by_number.values().filter_map(Weak::upgrade).collect()
    }
}

/// What a session holds of a budget, and how fast its message comes.
#[derive(Debug)]
pub struct MemoryReservation {
    budget: Arc<ContentBudget>,
    share: QuotaShare,
    number: u64,
    /// When the session began, since the budget's epoch. All moments are in nanoseconds.
    began: u64,
    /// The session's time, as it told it last.
    now: AtomicU64,
    /// When the message that is under way began.
    started: AtomicU64,
    /// When it becomes overdue.
    overdue_at: AtomicU64,
    /// Bytes of the message that is under way, or [`CUT`].
    bytes: AtomicUsize,
    /// Whom to wake when the message is cut off.
    waker: Mutex<Option<Waker>>,
}

impl MemoryReservation {
    /// Whether so many bytes are free for this session now, `now` after it began.
    #[must_use]
    pub fn has_available(&self, bytes: usize, now: Duration) -> bool {
        let now = self.update_clock(now);
        let has = || self.share.can_acquire(bytes);
        let found = has()
            || {
                self.budget.abort_slow_messages(now, bytes);
                has()
            }
            || {
                self.budget.abort_larger_senders(self, now, bytes);
                has()
            };
        if !found {
            self.count_refused("memory");
        }
        found
    }

    /// A message begins.
    pub(crate) fn begin_message(&self, now: Duration) {
        let now = self.update_clock(now);
        self.started.store(now, Ordering::Relaxed);
        self.overdue_at.store(now.saturating_add(as_nanos(SLOW_AVERAGING_WINDOW)), Ordering::Relaxed);
    }

    /// Bytes of it have come.
    pub(crate) fn record_received(&self, bytes: usize, now: Duration) {
        const NANOS_PER_BYTE: u64 = 1_000_000_000 / SLOW_BYTES_PER_S;
        let now = self.update_clock(now);
        let earned = (bytes as u64).saturating_mul(NANOS_PER_BYTE);
        let due = self.overdue_at.load(Ordering::Relaxed).saturating_add(earned);
        self.overdue_at.store(due.min(now.saturating_add(as_nanos(SLOW_AVERAGING_WINDOW))), Ordering::Relaxed);
    }

    /// Whether the message was cut off.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.bytes.load(Ordering::Acquire) == ABORTED
    }

    /// Ready once the message is cut off.
    pub fn poll_aborted(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return Poll::Pending;
        }
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        // Only now: whoever cuts from here on finds the waker.
        if self.is_aborted() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn update_clock(&self, now: Duration) -> u64 {
        let now = self.began.saturating_add(as_nanos(now));
        self.now.store(now, Ordering::Relaxed);
        now
    }

    /// Whether a message is under way that holds something.
    fn holds_bytes(&self) -> bool {
        !matches!(self.bytes.load(Ordering::Relaxed), 0 | ABORTED)
    }

    fn is_overdue(&self, now: u64) -> bool {
        self.holds_bytes() && self.overdue_at.load(Ordering::Relaxed) < now
    }

    /// For how long the message has been under way.
    fn message_age(&self, now: u64) -> u64 {
        now.saturating_sub(self.started.load(Ordering::Relaxed))
    }

    fn is_long_running(&self, now: u64) -> bool {
        self.holds_bytes() && self.message_age(now) > as_nanos(SLOW_AVERAGING_WINDOW)
    }

    /// How fast the message has come so far; what is reserved for it stands for what came.
    fn bytes_per_s(&self, now: u64) -> u64 {
        let seconds = Duration::from_nanos(self.message_age(now)).as_secs().max(1);
        self.bytes.load(Ordering::Relaxed) as u64 / seconds
    }

    fn abort(&self) {
        let held = |bytes: usize| (!matches!(bytes, 0 | ABORTED)).then_some(ABORTED);
        let Ok(bytes) = self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, held) else { return };
        self.share.release(bytes);
        self.count_refused("slow");
        if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }

    fn count_refused(&self, reason: &'static str) {
        let listener = self.budget.listener;
        metrics::counter!("postrider_smtp_refused_total", "listener" => listener, "reason" => reason).increment(1);
    }

    fn grow(&self, needed: usize, wished: usize) -> Option<usize> {
        let now = self.now.load(Ordering::Relaxed);
        let take = |bytes: usize| self.share.try_acquire(bytes).then_some(bytes);
        let took = if let Some(took) = take(wished) {
            self.budget.abort_slow_messages(now, 0);
            Some(took)
        } else {
            self.budget.abort_slow_messages(now, wished);
            take(wished).or_else(|| take(needed)).or_else(|| {
                self.budget.abort_larger_senders(self, now, needed);
                take(needed)
            })
        };
        let Some(bytes) = took else {
            self.count_refused("memory");
            return None;
        };
        let more = |held: usize| (held != ABORTED).then(|| held + bytes);
        let kept = self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        if !kept {
            self.share.release(bytes);
        }
        kept.then_some(bytes)
    }

    /// The bytes of the message under way, which is none from now on; `None` when it was cut off.
    fn take_bytes(&self) -> Option<usize> {
        let none = |held: usize| (held != ABORTED).then_some(0);
        self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, none).ok()
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.reservation_table().by_number.remove(&self.number);
    }
}

/// The bytes of one message; given back when dropped.
#[derive(Debug)]
pub struct MessageMemory {
    reservation: Arc<MemoryReservation>,
    /// The bytes of a message that is complete: it is cut off no more.
    complete: Option<usize>,
}

impl MessageMemory {
    /// Nothing yet.
    #[must_use]
    pub fn new(reservation: &Arc<MemoryReservation>) -> Self {
        Self { reservation: Arc::clone(reservation), complete: None }
    }

    /// Takes more; `false`, and nothing taken, when there is not so much.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.grow_between(bytes, bytes).is_some()
    }

    /// Takes as much as is wished, or else as much as is needed, and says which; `None`, and nothing taken, when
    /// there is not even that.
    #[must_use]
    pub fn grow_between(&mut self, needed: usize, wished: usize) -> Option<usize> {
        self.reservation.grow(needed, wished)
    }

    /// The message has come whole; `false` when it was cut off before.
    #[must_use]
    pub fn complete(&mut self) -> bool {
        self.complete = self.complete.or_else(|| self.reservation.take_bytes());
        self.complete.is_some()
    }

    /// Gives all back.
    pub fn release(&mut self) {
        let bytes = self.complete.take().or_else(|| self.reservation.take_bytes());
        self.reservation.share.release(bytes.unwrap_or(0));
    }
}

impl Drop for MessageMemory {
    fn drop(&mut self) {
        self.release();
    }
}

fn as_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(n: u8) -> [QuotaHolder; 1] {
        [QuotaHolder::for_site([192, 0, 2, n].into())]
    }

    #[test]
    fn a_budget_is_given_back() {
        let budget = ContentBudget::new(10);
        let reservation = budget.reserve(site(1), budget.epoch);
        let mut held = MessageMemory::new(&reservation);
        assert!(held.grow(6) && !held.grow(5) && held.grow(4));
        assert!(!reservation.has_available(1, Duration::ZERO));
        budget.set_bounds(QuotaBounds { sole_holder: 5, ..QuotaBounds::shared(5) });
        assert!(!held.grow(1) && budget.free_bytes() == 0);
        assert!(held.complete());
        // The next message of the session, while the one before is still being written to disk.
        assert!(!MessageMemory::new(&reservation).grow(1));
        drop(held);
        assert_eq!(budget.free_bytes(), 5);
        drop(reservation);
        assert!(budget.reservation_table().by_number.is_empty() && budget.quota.holders_known() == 0);
    }

    #[test]
    fn a_rate_is_averaged_over_a_minute() {
        let budget = ContentBudget::new(10);
        let reservation = budget.reserve(site(1), budget.epoch);
        let at = Duration::from_secs;
        reservation.begin_message(at(0));
        assert!(MessageMemory::new(&reservation).grow(1), "given back at once");
        let _held = {
            let mut held = MessageMemory::new(&reservation);
            assert!(held.grow(1));
            held
        };
        let overdue = |now: u64| reservation.is_overdue(as_nanos(at(now)));
        assert!(!overdue(60) && overdue(61));
        // Ten seconds' worth; and then more than a minute's, of which a minute counts.
        reservation.record_received(160_000, at(30));
        assert!(!overdue(70) && overdue(71));
        reservation.record_received(160_000_000, at(100));
        assert!(!overdue(160) && overdue(161));
    }
}
