//! Rate limiter for DNS queries: one leaky bucket per key, by the generic cell rate algorithm (GCRA), in bounded
//! memory.
//!
//! A charge can exceed the burst, because the number of queries is often known only afterwards. Further queries are
//! then refused until the excess has drained. The time is an argument, in nanoseconds of any monotonic clock.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Maximum number of keys. Idle keys are evicted first; if that is not enough, all keys are.
const KEYS_MAX: usize = 65_536;

/// A rate with its burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryRate {
    /// Queries per second.
    pub per_second: u32,
    /// Queries at once.
    pub burst: u32,
}

impl QueryRate {
    fn interval_ns(self) -> u64 {
        SECOND_NS / u64::from(self.per_second.max(1))
    }

    fn burst_ns(self) -> u64 {
        self.interval_ns().saturating_mul(u64::from(self.burst.max(1)))
    }
}

/// Limits the queries of each key.
#[derive(Debug)]
pub struct QueryLimiter<K> {
    /// Per key, the time at which its bucket is empty.
    empty_at_ns: Mutex<HashMap<K, u64>>,
}

impl<K> Default for QueryLimiter<K> {
    fn default() -> Self {
        Self { empty_at_ns: Mutex::default() }
    }
}

impl<K: Eq + Hash + Clone> QueryLimiter<K> {
    /// Charges `queries` queries to the key, if at least one is permitted now.
    ///
    /// # Errors
    /// The time until the key may query again.
    pub fn acquire(&self, key: &K, queries: u32, rate: QueryRate, now_ns: u64) -> Result<(), Duration> {
        let mut levels = self.empty_at_ns.lock();
        if let Some(wait) = wait_time(&levels, key, rate, now_ns) {
            return Err(wait);
        }
        spend(&mut levels, key.clone(), queries, rate, now_ns);
        Ok(())
    }

    /// Refunds queries that were charged but not sent.
    pub fn refund(&self, key: &K, queries: u32, rate: QueryRate) {
        if let Some(empty_at_ns) = self.empty_at_ns.lock().get_mut(key) {
            *empty_at_ns = empty_at_ns.saturating_sub(rate.interval_ns().saturating_mul(u64::from(queries)));
        }
    }

    /// Charges queries that were already sent.
    pub fn charge(&self, key: K, queries: u32, rate: QueryRate, now_ns: u64) {
        spend(&mut self.empty_at_ns.lock(), key, queries, rate, now_ns);
    }
}

fn wait_time<K: Eq + Hash>(levels: &HashMap<K, u64>, key: &K, rate: QueryRate, now_ns: u64) -> Option<Duration> {
    let spent_ns = levels.get(key).map_or(0, |at| spent_ns(*at, rate, now_ns));
    let over_ns = (spent_ns + rate.interval_ns()).saturating_sub(rate.burst_ns());
    (over_ns > 0).then(|| Duration::from_nanos(over_ns))
}

fn spend<K: Eq + Hash>(levels: &mut HashMap<K, u64>, key: K, queries: u32, rate: QueryRate, now_ns: u64) {
    if levels.len() >= KEYS_MAX && !levels.contains_key(&key) {
        levels.retain(|_, at| *at > now_ns);
        if levels.len() >= KEYS_MAX {
            levels.clear();
        }
    }
    let before = levels.get(&key).map_or(0, |at| spent_ns(*at, rate, now_ns));
    let spent = before.saturating_add(rate.interval_ns().saturating_mul(u64::from(queries)));
    levels.insert(key, now_ns.saturating_add(spent));
}

/// The present level of a bucket. It is capped at twice the burst, in case of a large charge or a clock that went back.
fn spent_ns(empty_at_ns: u64, rate: QueryRate, now_ns: u64) -> u64 {
    empty_at_ns.saturating_sub(now_ns).min(rate.burst_ns().saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: QueryRate = QueryRate { per_second: 10, burst: 20 };

    fn take(limiter: &QueryLimiter<u32>, key: u32, queries: u32, now_ns: u64) -> Result<(), Duration> {
        limiter.acquire(&key, queries, RATE, now_ns)
    }

    #[test]
    fn a_burst_is_permitted_and_then_the_rate() {
        let limiter = QueryLimiter::default();
        let granted = |from_ns: u64, until_ns: u64| {
            let (mut granted, mut now_ns) = (0, from_ns);
            while now_ns < until_ns {
                match take(&limiter, 1, 1, now_ns) {
                    Ok(()) => granted += 1,
                    Err(wait) => now_ns += u64::try_from(wait.as_nanos()).unwrap(),
                }
            }
            granted
        };
        let start = 1_000 * SECOND_NS;
        assert_eq!(granted(start, start + 1), 20);
        assert_eq!(granted(start + 1, start + SECOND_NS + 1), 10);
        assert_eq!(take(&limiter, 2, 1, start), Ok(()), "other keys are not affected");
    }

    #[test]
    fn excess_queries_delay_the_next_ones() {
        let limiter = QueryLimiter::default();
        take(&limiter, 1, 25, SECOND_NS).unwrap();
        limiter.charge(1, 5, RATE, SECOND_NS);
        assert_eq!(take(&limiter, 1, 1, SECOND_NS), Err(Duration::from_millis(1_100)));
        assert_eq!(take(&limiter, 1, 1, 3 * SECOND_NS), Ok(()));
        // The wait is bounded, however large the charge is and however far the clock is set back.
        limiter.charge(1, 1_000_000, RATE, 1_000 * SECOND_NS);
        assert!(take(&limiter, 1, 1, SECOND_NS).is_err_and(|wait| wait < Duration::from_secs(3)));
    }

    #[test]
    fn unsent_queries_are_refunded() {
        let limiter = QueryLimiter::default();
        take(&limiter, 1, 30, SECOND_NS).unwrap();
        limiter.refund(&1, 11, RATE);
        assert_eq!(take(&limiter, 1, 1, SECOND_NS), Ok(()));
        assert_eq!(take(&limiter, 1, 1, SECOND_NS), Err(Duration::from_millis(100)));
    }

    #[test]
    fn memory_is_bounded() {
        let limiter = QueryLimiter::default();
        for key in 0..2 * KEYS_MAX {
            limiter.charge(key, 1, RATE, SECOND_NS);
        }
        assert!(limiter.empty_at_ns.lock().len() <= KEYS_MAX);
    }
}
