//! Warm-up of a pool's source addresses, by provider. The rules are in [`mail::warm_up`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use mail::warm_up::{WarmUpCredit, WarmUpCurve};

/// Warm-up of a pool. Its start may be changed at runtime.
#[derive(Debug)]
pub(crate) struct WarmUp {
    since: RwLock<Option<Date>>,
    curve: WarmUpCurve,
    addresses: u64,
}

impl WarmUp {
    /// Creates the warm-up of a number of addresses.
    pub(crate) fn new(since: Option<Date>, curve: WarmUpCurve, addresses: u64) -> Self {
        Self { since: RwLock::new(since), curve, addresses: addresses.max(1) }
    }

    /// First day; `None` if the addresses are warm.
    pub(crate) fn since(&self) -> Option<Date> {
        *self.since.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_start(&self, since: Option<Date>) {
        *self.since.write().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Current day and length in days; `None` after the end.
    pub(crate) fn day(&self, now: Timestamp) -> Option<(usize, usize)> {
        Some((self.curve.day(self.since()?, now)?, self.curve.days()))
    }

    /// Messages per day to each provider; `None` after the end.
    pub(crate) fn per_day(&self, now: Timestamp) -> Option<u64> {
        let per_day = self.curve.messages_per_day(self.since()?, now)?;
        Some(u64::from(per_day).saturating_mul(self.addresses))
    }
}

/// Warm-up budget of a pool for one provider.
#[derive(Debug)]
pub(crate) struct WarmUpBudget {
    warm_up: Arc<WarmUp>,
    credit: Mutex<WarmUpCredit>,
    /// Time at which an urgent task waits for the next message allowed.
    reserved_for_urgent: Mutex<Option<Timestamp>>,
    messages: AtomicU32,
}

/// One in this many messages is chosen by the usual weights.
const NORMAL_SHARE: u32 = 4;
/// Time for which a message is reserved for an urgent task that waited; the task may have been sent elsewhere.
const RESERVED_FOR: Duration = Duration::from_secs(2);

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}

impl WarmUpBudget {
    pub(crate) fn new(warm_up: Arc<WarmUp>) -> Self {
        let (credit, reserved_for_urgent) = (Mutex::default(), Mutex::default());
        Self { warm_up, credit, reserved_for_urgent, messages: AtomicU32::new(0) }
    }

    /// Time until which nothing may be sent, and the messages per day; `None` if a message is allowed now.
    pub(crate) fn exhausted_until(&self, now: Timestamp) -> Option<(Timestamp, u64)> {
        let per_day = self.warm_up.per_day(now)?;
        let next_ns =
            self.credit.lock().unwrap_or_else(PoisonError::into_inner).next_send_at(per_day, nanoseconds(now));
        let next = Timestamp::from_nanosecond(i128::from(next_ns)).ok()?;
        (next > now).then_some((next, per_day))
    }

    /// Time until which the caller may send nothing. An urgent caller that has to wait reserves the next message.
    pub(crate) fn closed_until(&self, is_urgent: bool, now: Timestamp) -> Option<Timestamp> {
        let used_up_until = self.exhausted_until(now).map(|(until, _)| until);
        if is_urgent {
            if used_up_until.is_some() {
                *self.reservation() = used_up_until;
            }
            return used_up_until;
        }
        let reserved_until =
            self.reservation().and_then(|from| from.checked_add(RESERVED_FOR).ok()).filter(|until| now < *until);
        used_up_until.or(reserved_until.filter(|_| self.is_for_urgent()))
    }

    /// Takes the right to send one message, or returns the time to try again. True if the message is the last one for
    /// now and is due to an urgent task, if there is one.
    pub(crate) fn try_take(&self, now: Timestamp) -> Result<bool, Timestamp> {
        let Some(per_day) = self.warm_up.per_day(now) else { return Ok(false) };
        let acquired = self.credit.lock().unwrap_or_else(PoisonError::into_inner).acquire(per_day, nanoseconds(now));
        acquired.map_err(|wait| now.checked_add(wait).unwrap_or(Timestamp::MAX))?;
        *self.reservation() = None;
        let is_urgent_only = self.is_for_urgent() && self.exhausted_until(now).is_some();
        self.messages.fetch_add(1, Ordering::Relaxed);
        Ok(is_urgent_only)
    }

    /// Some messages are for other classes, so that urgent mail never starves the rest.
    fn is_for_urgent(&self) -> bool {
        self.messages.load(Ordering::Relaxed) % NORMAL_SHARE != NORMAL_SHARE - 1
    }

    fn reservation(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.reserved_for_urgent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the whole burst is available.
    pub(crate) fn is_full(&self, now: Timestamp) -> bool {
        self.credit.lock().unwrap_or_else(PoisonError::into_inner).is_full(nanoseconds(now))
    }
}
