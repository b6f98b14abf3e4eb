//! How a pool's addresses are warmed up, provider by provider ([`mail::warm_up`] has the rules).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use mail::warm_up::{WarmUpCredit, WarmUpCurve};

/// The warm-up of a pool. When it began may change while mail goes.
#[derive(Debug)]
pub(crate) struct WarmUp {
    since: RwLock<Option<Date>>,
    curve: WarmUpCurve,
    addresses: u64,
}

impl WarmUp {
    /// Of so many addresses, one after the other.
    pub(crate) fn new(since: Option<Date>, curve: WarmUpCurve, addresses: u64) -> Self {
        Self { since: RwLock::new(since), curve, addresses: addresses.max(1) }
    }

    /// The first day of it; none where the addresses are warm from the beginning.
    pub(crate) fn since(&self) -> Option<Date> {
        *self.since.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_start(&self, since: Option<Date>) {
        *self.since.write().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// The day of it, and of how many; none when it is over.
    pub(crate) fn day(&self, now: Timestamp) -> Option<(usize, usize)> {
        Some((self.curve.day(self.since()?, now)?, self.curve.days()))
    }

    /// How many messages a day go to each provider; none when it is over.
    pub(crate) fn per_day(&self, now: Timestamp) -> Option<u64> {
        let each = self.curve.messages_per_day(self.since()?, now)?;
        Some(u64::from(each).saturating_mul(self.addresses))
    }
}

/// What a pool may send to one provider.
#[derive(Debug)]
pub(crate) struct WarmUpBudget {
    warm_up: Arc<WarmUp>,
    credit: Mutex<WarmUpCredit>,
    /// Something pressing waits for the message that may go then.
    reserved_for_urgent: Mutex<Option<Timestamp>>,
    messages: AtomicU32,
}

/// Every so manieth goes by the usual weights.
const NORMAL_SHARE: u32 = 4;
/// For so long a message that may go is kept for what is pressing and waited for it: it may have gone elsewhere.
const RESERVED_FOR: Duration = Duration::from_secs(2);

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}

impl WarmUpBudget {
    pub(crate) fn new(warm_up: Arc<WarmUp>) -> Self {
        let (credit, reserved_for_urgent) = (Mutex::default(), Mutex::default());
        Self { warm_up, credit, reserved_for_urgent, messages: AtomicU32::new(0) }
    }

    /// Until when nothing may go, and how many may a day; none when one may go now.
    pub(crate) fn exhausted_until(&self, now: Timestamp) -> Option<(Timestamp, u64)> {
        let per_day = self.warm_up.per_day(now)?;
        let next_ns =
            self.credit.lock().unwrap_or_else(PoisonError::into_inner).next_send_at(per_day, nanoseconds(now));
        let next = Timestamp::from_nanosecond(i128::from(next_ns)).ok()?;
        (next > now).then_some((next, per_day))
    }

    /// Until when it is closed to who asks. What is pressing, and may not go yet, has the next that may.
    pub(crate) fn closed_until(&self, is_pressing: bool, now: Timestamp) -> Option<Timestamp> {
        let used_up_until = self.exhausted_until(now).map(|(until, _)| until);
        if is_pressing {
            if used_up_until.is_some() {
                *self.reservation() = used_up_until;
            }
            return used_up_until;
        }
        let kept_until =
            self.reservation().and_then(|from| from.checked_add(RESERVED_FOR).ok()).filter(|until| now < *until);
        used_up_until.or(kept_until.filter(|_| self.is_for_urgent()))
    }

    /// Takes the right to send one message; or says when to ask again. Whether it is the last for now, and one that goes to
    /// what is pressing, if there is something.
    pub(crate) fn try_take(&self, now: Timestamp) -> Result<bool, Timestamp> {
        let Some(per_day) = self.warm_up.per_day(now) else { return Ok(false) };
        let taken = self.credit.lock().unwrap_or_else(PoisonError::into_inner).acquire(per_day, nanoseconds(now));
        taken.map_err(|wait| now.checked_add(wait).unwrap_or(Timestamp::MAX))?;
        *self.reservation() = None;
        let goes_to_pressing = self.is_for_urgent() && self.exhausted_until(now).is_some();
        self.messages.fetch_add(1, Ordering::Relaxed);
        Ok(goes_to_pressing)
    }

    /// Some go to others all the same: nobody is starved by those who call everything pressing.
    fn is_for_urgent(&self) -> bool {
        self.messages.load(Ordering::Relaxed) % NORMAL_SHARE != NORMAL_SHARE - 1
    }

    fn reservation(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.reserved_for_urgent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether as much may go as ever may at once.
    pub(crate) fn is_full(&self, now: Timestamp) -> bool {
        self.credit.lock().unwrap_or_else(PoisonError::into_inner).is_full(nanoseconds(now))
    }
}
