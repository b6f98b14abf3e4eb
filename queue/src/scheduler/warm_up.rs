//! Warm-up of a pool's source addresses, by provider. The rules are in [`model::warm_up`].

use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use model::warm_up::{WarmUpCredit, WarmUpCurve};

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
        *self.since.read()
    }

    pub(crate) fn set_start(&self, since: Option<Date>) {
        *self.since.write() = since;
    }

    /// Current day and length in days; `None` after the end.
    pub(crate) fn day(&self, now: Timestamp) -> Option<(usize, usize)> {
        Some((self.curve.day(self.since()?, now)?, self.curve.days()))
    }

    /// Messages per day to each provider, from the first day on.
    pub(crate) fn curve(&self) -> Vec<u64> {
        self.curve.per_day().iter().map(|messages| u64::from(*messages).saturating_mul(self.addresses)).collect()
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

/// Providers with a warm-up budget in memory before some are evicted.
const BUDGETS_MAX: usize = 20_000;
/// Budgets that an eviction leaves, if enough of them are unused.
const BUDGETS_KEPT: usize = 15_000;
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
        let next_ns = self.credit.lock().next_send_at(per_day, nanoseconds(now));
        let next = Timestamp::from_nanosecond(i128::from(next_ns)).ok()?;
        (next > now).then_some((next, per_day))
    }

    /// Time until which the caller may send nothing. An urgent caller that has to wait reserves the next message.
    pub(crate) fn closed_until(&self, is_urgent: bool, now: Timestamp) -> Option<Timestamp> {
        let used_up_until = self.exhausted_until(now).map(|(until, _)| until);
        if is_urgent {
            if used_up_until.is_some() {
                *self.reserved_for_urgent.lock() = used_up_until;
            }
            return used_up_until;
        }
        let reserved_until = self
            .reserved_for_urgent
            .lock()
            .and_then(|from| from.checked_add(RESERVED_FOR).ok())
            .filter(|until| now < *until);
        used_up_until.or(reserved_until.filter(|_| self.is_for_urgent()))
    }

    /// Takes the right to send one message, or returns the time to try again. True if the message is the last one for
    /// now and is due to an urgent task, if there is one.
    pub(crate) fn try_take(&self, now: Timestamp) -> Result<bool, Timestamp> {
        let Some(per_day) = self.warm_up.per_day(now) else { return Ok(false) };
        let acquired = self.credit.lock().acquire(per_day, nanoseconds(now));
        acquired.map_err(|wait| now.checked_add(wait).unwrap_or(Timestamp::MAX))?;
        *self.reserved_for_urgent.lock() = None;
        let is_urgent_only = self.is_for_urgent() && self.exhausted_until(now).is_some();
        self.messages.fetch_add(1, Ordering::Relaxed);
        Ok(is_urgent_only)
    }

    /// Some messages are for other classes, so that urgent mail never starves the rest.
    fn is_for_urgent(&self) -> bool {
        self.messages.load(Ordering::Relaxed) % NORMAL_SHARE != NORMAL_SHARE - 1
    }

    /// Time since which the whole burst is available, in nanoseconds; `None` if it is not.
    fn full_since(&self, now: Timestamp) -> Option<u64> {
        self.credit.lock().full_since(nanoseconds(now))
    }
}

/// Warm-up budgets of a pool by provider.
///
/// A budget in use is never evicted, because its successor would permit one more message. The number of budgets may
/// therefore exceed [`BUDGETS_MAX`] by the providers that got mail within the last burst (an hour, or the interval of
/// two messages if that is longer).
#[derive(Debug)]
pub(crate) struct WarmUpBudgets {
    by_provider: HashMap<String, Arc<WarmUpBudget>>,
    /// Number of budgets at which some are evicted.
    evict_at: usize,
}

impl Default for WarmUpBudgets {
    fn default() -> Self {
        Self { by_provider: HashMap::new(), evict_at: BUDGETS_MAX }
    }
}

impl WarmUpBudgets {
    /// Returns the budget of a provider, which is created if it does not exist.
    pub(crate) fn get_or_create(
        &mut self,
        provider: String,
        warm_up: &Arc<WarmUp>,
        now: Timestamp,
    ) -> Arc<WarmUpBudget> {
        if let Some(budget) = self.by_provider.get(&provider) {
            return Arc::clone(budget);
        }
        if self.by_provider.len() >= self.evict_at {
            self.evict(now);
        }
        let budget = Arc::new(WarmUpBudget::new(Arc::clone(warm_up)));
        self.by_provider.insert(provider, Arc::clone(&budget));
        budget
    }

    /// Evicts unused budgets with a full burst, those first that have been full for longest.
    fn evict(&mut self, now: Timestamp) {
        let excess = self.by_provider.len().saturating_sub(BUDGETS_KEPT);
        // A ready queue that has the budget continues to use it.
        let unused = self.by_provider.iter().filter(|(_, budget)| Arc::strong_count(budget) == 1);
        let mut full: Vec<(u64, String)> =
            unused.filter_map(|(provider, budget)| Some((budget.full_since(now)?, provider.clone()))).collect();
        full.sort_unstable();
        for (_, provider) in full.into_iter().take(excess) {
            self.by_provider.remove(&provider);
        }
        // While nearly all are in use, do not search them for each new one.
        self.evict_at = (self.by_provider.len() + BUDGETS_MAX - BUDGETS_KEPT).max(BUDGETS_MAX);
    }

    /// Providers that may get no message now, and until when.
    pub(crate) fn exhausted(&self, now: Timestamp) -> Vec<(String, Timestamp)> {
        let exhausted = |(provider, budget): (&String, &Arc<WarmUpBudget>)| {
            Some((provider.clone(), budget.exhausted_until(now)?.0))
        };
        let mut exhausted: Vec<_> = self.by_provider.iter().filter_map(exhausted).collect();
        exhausted.sort();
        exhausted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_budgets_are_evicted_the_oldest_first() {
        let start: Timestamp = "2026-11-23T00:00:00Z".parse().unwrap();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let curve = WarmUpCurve::try_from(vec![24; 10]).unwrap();
        let warm_up = Arc::new(WarmUp::new(Some("2026-11-23".parse().unwrap()), curve, 1));
        let mut budgets = WarmUpBudgets::default();
        let mut send = |provider: &str, now| budgets.get_or_create(provider.to_owned(), &warm_up, now).try_take(now);
        // One provider gets its only message of the first hour, others fill the map half an hour later.
        assert!(send("first.example", start).is_ok());
        for n in 1..BUDGETS_MAX {
            assert!(send(&format!("{n}.example"), after(1_800)).is_ok());
        }
        // All are in use: one more provider takes no other's history.
        assert!(send("more.example", after(1_801)).is_ok());
        for provider in ["first.example", "1.example", "more.example"] {
            assert!(send(provider, after(1_802)).is_err(), "{provider} may get nothing more");
        }
        // After an hour the first one is full again; the others are not.
        let count = budgets.by_provider.len();
        budgets.evict(after(3_601));
        assert_eq!((budgets.by_provider.len(), budgets.by_provider.contains_key("first.example")), (count - 1, false));
        // Later all are full. A budget that a ready queue uses stays.
        let used = Arc::clone(&budgets.by_provider["1.example"]);
        budgets.evict(after(8_000));
        assert_eq!(budgets.by_provider.len(), BUDGETS_KEPT);
        assert!(budgets.by_provider.contains_key("more.example"), "the newest stay");
        assert!(Arc::ptr_eq(&used, &budgets.by_provider["1.example"]));
    }
}
