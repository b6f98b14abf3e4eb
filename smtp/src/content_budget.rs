//! Limits the bytes of message content in memory, over all sessions of one kind of listener (back-pressure, load
//! shedding).
//!
//! ```text
//! SmtpSession ─► MemoryReservation (one per session: its quota holders, its receive rate) ─► FairShareQuota
//! ContentBuffer ─► MessageMemory (one per message) ─► MemoryReservation
//! ```
//!
//! Memory is short while less than a quarter of the bytes is free. Two rules then abort messages:
//!
//! - Slow messages: a message slower than [`SLOW_BYTES_PER_S`], averaged over the last minute, is aborted. The slowest
//!   is aborted first, until a quarter is free again.
//! - Larger senders: if a session's request is still refused, faster messages are aborted too, the slowest first. This
//!   affects only messages that have been arriving for more than a minute and whose sender holds more than the
//!   requesting session would. So a few senders that are just fast enough cannot keep the memory full. No sender loses
//!   a message to one that holds more.
//!
//! An aborted message releases its bytes at once, and its session ends with 421. The session that requests bytes runs
//! these checks; there is no background task.
//!
//! The rate of a message is stored as one time, its due time (the "virtual scheduling" of GCRA). Each received byte
//! moves it forward by the time that a byte may take, to at most a minute ahead. A message is slow once its due time
//! has passed. The message that is overdue for longest is the slowest.

use net::limit::fair_share::{FairShareQuota, QuotaBounds, QuotaHolder, QuotaShare};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

/// Messages that are received more slowly than this are aborted while memory is short.
pub const SLOW_BYTES_PER_S: u64 = 16_000;
/// The window over which the rate is averaged. A message can therefore pause for this long once.
pub const SLOW_AVERAGING_WINDOW: Duration = Duration::from_secs(60);
/// The minimum interval between two scans for slow messages, because a scan reads every reservation.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Value of `MemoryReservation::bytes` for an aborted message.
const ABORTED: usize = usize::MAX;

/// The content memory of one kind of listener.
#[derive(Debug)]
pub struct ContentBudget {
    quota: Arc<FairShareQuota>,
    listener: &'static str,
    epoch: Instant,
    /// Time of the last scan for slow messages, in nanoseconds since `epoch`.
    slow_checked_at: AtomicU64,
    reservations: Mutex<ReservationTable>,
}

/// The reservations of all sessions that have received content.
#[derive(Debug, Default)]
struct ReservationTable {
    next: u64,
    by_number: HashMap<u64, Weak<MemoryReservation>>,
}

impl ContentBudget {
    /// The default for all listeners together. Small machines can hold a few messages of the largest size.
    pub const BYTES_DEFAULT: usize = 512 * 1024 * 1024;

    /// Creates a budget of `bytes_max` bytes. A sole holder can take all of them.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Self::with_bounds(QuotaBounds { sole_holder: bytes_max, ..QuotaBounds::shared(bytes_max) }, "any")
    }

    /// Creates a budget with these bounds. `listener` is the label of its metrics.
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

    /// Replaces the bounds. Memory that is already held stays held.
    pub fn set_bounds(&self, bounds: QuotaBounds) {
        self.quota.set_bounds(bounds);
    }

    pub fn free_bytes(&self) -> usize {
        self.quota.free()
    }

    pub fn used_bytes(&self) -> usize {
        self.quota.used()
    }

    /// Creates the reservation of a session that began at `began`. Its bytes count against each of `holders`.
    #[must_use]
    pub fn reserve(
        self: &Arc<Self>,
        holders: impl IntoIterator<Item = QuotaHolder>,
        began: Instant,
    ) -> Arc<MemoryReservation> {
        let share = self.quota.share_for(holders);
        let mut sessions = self.reservations.lock();
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

    /// Aborts slow messages, the slowest first, until the quota would not be short after `needed` more bytes.
    fn abort_slow_messages(&self, now: u64, needed: usize) {
        if !self.quota.is_near_capacity(needed) {
            return;
        }
        let late =
            |last: u64| (last == 0 || now >= last.saturating_add(as_nanos(SLOW_CHECK_INTERVAL))).then_some(now.max(1));
        if self.slow_checked_at.fetch_update(Ordering::AcqRel, Ordering::Acquire, late).is_err() {
            return;
        }
        let all = self.reservations();
        let mut slow: Vec<_> = all.iter().filter(|reservation| reservation.is_overdue(now)).collect();
        slow.sort_unstable_by_key(|reservation| reservation.overdue_at.load(Ordering::Relaxed));
        for reservation in slow {
            if !self.quota.is_near_capacity(needed) {
                break;
            }
            reservation.abort();
        }
    }

    /// Aborts long-running messages of senders that hold more than `newcomer` would, the slowest first, until the quota
    /// would grant it `needed` bytes.
    fn abort_larger_senders(&self, newcomer: &MemoryReservation, now: u64, needed: usize) {
        if !newcomer.share.could_acquire(needed) {
            return;
        }
        let units_after = newcomer.share.own_units().saturating_add(needed);
        let all = self.reservations();
        let mut long_running: Vec<_> = all.iter().filter(|reservation| reservation.is_long_running(now)).collect();
        long_running.sort_by_cached_key(|reservation| reservation.bytes_per_s(now));
        for reservation in long_running {
            if newcomer.share.can_acquire(needed) {
                break;
            }
            if reservation.share.own_units() > units_after {
                reservation.abort();
            }
        }
    }

    /// The live reservations. Dropping the last handle of a reservation locks the table, so the lock is not held here.
    fn reservations(&self) -> Vec<Arc<MemoryReservation>> {
        self.reservations.lock().by_number.values().filter_map(Weak::upgrade).collect()
    }
}

/// The memory that one session holds, and the rate of its message.
#[derive(Debug)]
pub struct MemoryReservation {
    budget: Arc<ContentBudget>,
    share: QuotaShare,
    number: u64,
    /// When the session began. All times here are nanoseconds since the budget's epoch.
    began: u64,
    /// The time of the last call that passed the session's clock.
    now: AtomicU64,
    /// When the current message began.
    started: AtomicU64,
    /// The due time of the current message: it is slow from then on.
    overdue_at: AtomicU64,
    /// Bytes that the current message holds, or [`ABORTED`].
    bytes: AtomicUsize,
    /// Woken when the message is aborted.
    waker: Mutex<Option<Waker>>,
}

impl MemoryReservation {
    /// Returns whether `bytes` are available to this session, after aborting other messages if necessary. `now` is the
    /// time since the session began.
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

    /// Starts the rate measurement of a message.
    pub(crate) fn begin_message(&self, now: Duration) {
        let now = self.update_clock(now);
        self.started.store(now, Ordering::Relaxed);
        self.overdue_at.store(now.saturating_add(as_nanos(SLOW_AVERAGING_WINDOW)), Ordering::Relaxed);
    }

    /// Counts received bytes of the current message.
    pub(crate) fn record_received(&self, bytes: usize, now: Duration) {
        const NANOS_PER_BYTE: u64 = 1_000_000_000 / SLOW_BYTES_PER_S;
        let now = self.update_clock(now);
        let earned = (bytes as u64).saturating_mul(NANOS_PER_BYTE);
        let due = self.overdue_at.load(Ordering::Relaxed).saturating_add(earned);
        self.overdue_at.store(due.min(now.saturating_add(as_nanos(SLOW_AVERAGING_WINDOW))), Ordering::Relaxed);
    }

    /// Returns whether the current message was aborted.
    pub fn is_aborted(&self) -> bool {
        self.bytes.load(Ordering::Acquire) == ABORTED
    }

    /// Ready once the current message is aborted.
    pub fn poll_aborted(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return Poll::Pending;
        }
        let mut waker = self.waker.lock();
        if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        // Checked after the waker is stored: an abort from here on finds it.
        if self.is_aborted() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn update_clock(&self, now: Duration) -> u64 {
        let now = self.began.saturating_add(as_nanos(now));
        self.now.store(now, Ordering::Relaxed);
        now
    }

    /// Returns whether a message is in progress and holds memory.
    fn holds_bytes(&self) -> bool {
        !matches!(self.bytes.load(Ordering::Relaxed), 0 | ABORTED)
    }

    fn is_overdue(&self, now: u64) -> bool {
        self.holds_bytes() && self.overdue_at.load(Ordering::Relaxed) < now
    }

    /// Age of the current message in nanoseconds.
    fn message_age(&self, now: u64) -> u64 {
        now.saturating_sub(self.started.load(Ordering::Relaxed))
    }

    fn is_long_running(&self, now: u64) -> bool {
        self.holds_bytes() && self.message_age(now) > as_nanos(SLOW_AVERAGING_WINDOW)
    }

    /// Average receive rate of the current message, taking its reserved bytes for the received ones.
    fn bytes_per_s(&self, now: u64) -> u64 {
        let seconds = Duration::from_nanos(self.message_age(now)).as_secs().max(1);
        self.bytes.load(Ordering::Relaxed) as u64 / seconds
    }

    fn abort(&self) {
        let to_aborted = |bytes: usize| (!matches!(bytes, 0 | ABORTED)).then_some(ABORTED);
        let Ok(bytes) = self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, to_aborted) else { return };
        self.share.release(bytes);
        self.count_refused("slow");
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    fn count_refused(&self, reason: &'static str) {
        let listener = self.budget.listener;
        metrics::counter!("postrider_smtp_refused_total", "listener" => listener, "reason" => reason).increment(1);
    }

    fn grow(&self, needed: usize, preferred: usize) -> Option<usize> {
        let now = self.now.load(Ordering::Relaxed);
        let take = |bytes: usize| self.share.try_acquire(bytes).then_some(bytes);
        let took = if let Some(took) = take(preferred) {
            self.budget.abort_slow_messages(now, 0);
            Some(took)
        } else {
            self.budget.abort_slow_messages(now, preferred);
            take(preferred).or_else(|| take(needed)).or_else(|| {
                self.budget.abort_larger_senders(self, now, needed);
                take(needed)
            })
        };
        let Some(bytes) = took else {
            self.count_refused("memory");
            return None;
        };
        let add = |bytes_held: usize| (bytes_held != ABORTED).then(|| bytes_held + bytes);
        let is_added = self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok();
        if !is_added {
            self.share.release(bytes);
        }
        is_added.then_some(bytes)
    }

    /// Returns the bytes of the current message and ends it; `None` if it was aborted.
    fn take_bytes(&self) -> Option<usize> {
        let to_zero = |bytes_held: usize| (bytes_held != ABORTED).then_some(0);
        self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, to_zero).ok()
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.reservations.lock().by_number.remove(&self.number);
    }
}

/// The memory of one message; released on drop.
#[derive(Debug)]
pub struct MessageMemory {
    reservation: Arc<MemoryReservation>,
    /// Bytes of a complete message, which can no longer be aborted.
    complete: Option<usize>,
}

impl MessageMemory {
    /// Creates the memory of a message, without any bytes yet.
    pub fn new(reservation: &Arc<MemoryReservation>) -> Self {
        Self { reservation: Arc::clone(reservation), complete: None }
    }

    /// Acquires `bytes`. Returns false, and acquires nothing, if they are not available.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.grow_between(bytes, bytes).is_some()
    }

    /// Acquires `preferred` bytes, or else `needed`, and returns how many. Returns `None`, and acquires nothing, if even
    /// `needed` bytes are not available.
    #[must_use]
    pub fn grow_between(&mut self, needed: usize, preferred: usize) -> Option<usize> {
        self.reservation.grow(needed, preferred)
    }

    /// Marks the message as completely received. Returns false if it was aborted before.
    #[must_use]
    pub fn complete(&mut self) -> bool {
        self.complete = self.complete.or_else(|| self.reservation.take_bytes());
        self.complete.is_some()
    }

    /// Releases all bytes.
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
    fn memory_is_released() {
        let budget = ContentBudget::new(10);
        let reservation = budget.reserve(site(1), budget.epoch);
        let mut memory = MessageMemory::new(&reservation);
        assert!(memory.grow(6) && !memory.grow(5) && memory.grow(4));
        assert!(!reservation.has_available(1, Duration::ZERO));
        budget.set_bounds(QuotaBounds { sole_holder: 5, ..QuotaBounds::shared(5) });
        assert!(!memory.grow(1) && budget.free_bytes() == 0);
        assert!(memory.complete());
        // The next message of the session begins while the previous one is still being written to disk.
        assert!(!MessageMemory::new(&reservation).grow(1));
        drop(memory);
        assert_eq!(budget.free_bytes(), 5);
        drop(reservation);
        assert!(budget.reservations.lock().by_number.is_empty() && budget.quota.holders_known() == 0);
    }

    #[test]
    fn a_rate_is_averaged_over_a_minute() {
        let budget = ContentBudget::new(10);
        let reservation = budget.reserve(site(1), budget.epoch);
        let at = Duration::from_secs;
        reservation.begin_message(at(0));
        assert!(MessageMemory::new(&reservation).grow(1), "released at once");
        let _held = {
            let mut memory = MessageMemory::new(&reservation);
            assert!(memory.grow(1));
            memory
        };
        let overdue = |now: u64| reservation.is_overdue(as_nanos(at(now)));
        assert!(!overdue(60) && overdue(61));
        // The first call adds ten seconds. The second adds more than a minute, of which a minute counts.
        reservation.record_received(160_000, at(30));
        assert!(!overdue(70) && overdue(71));
        reservation.record_received(160_000_000, at(100));
        assert!(!overdue(160) && overdue(161));
    }
}
