//! Rate limiter: buckets of the accounts with recent requests, in bounded memory. The rule is in [`crate::limit::rate_limit`].
//!
//! An empty bucket is not stored, so there are as many buckets as accounts with requests in the last seconds, at most
//! [`BUCKETS_MAX`]. HTTP and SMTP share the buckets.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use model::id::AccountId;

use crate::limit::rate_limit::{RateBucket, RateLimitStatus, RequestRate};

/// Number of shards; only accounts of the same shard contend for a lock.
const SHARDS: usize = 64;
/// Largest number of buckets, about 10 MB. If more accounts send requests within two seconds, the last ones are not
/// limited.
pub const BUCKETS_MAX: usize = 1 << 18;
/// Smallest number of buckets at which a shard is swept; further sweeps follow when it has doubled.
const SWEEP_MIN: usize = 64;
/// Shortest interval between sweeps of a full shard.
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;

/// Limits the requests of each account.
#[derive(Debug)]
pub struct RateLimiter {
    is_enabled: AtomicBool,
    shards: Vec<Mutex<LimiterShard>>,
}

#[derive(Debug, Default)]
struct LimiterShard {
    buckets: HashMap<AccountId, RateBucket>,
    /// Number of buckets for the next sweep …
    sweep_len: usize,
    /// … unless the shard is full: then the time of the next sweep.
    sweep_at_ns: u64,
}

impl RateLimiter {
    /// Creates a limiter. If `is_enabled` is false, requests are not limited.
    pub fn new(is_enabled: bool) -> Self {
        Self { is_enabled: AtomicBool::new(is_enabled), shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// True if requests are limited.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Switches limiting on or off.
    pub fn set_enabled(&self, is_enabled: bool) {
        self.is_enabled.store(is_enabled, Ordering::Relaxed);
    }

    /// Counts one request of an account.
    ///
    /// # Errors
    /// The request exceeds the rate.
    pub fn check(
        &self,
        account: AccountId,
        rate: RequestRate,
        now: Timestamp,
    ) -> Result<RateLimitStatus, RateLimitStatus> {
        let now_ns = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        // The last byte of an id is random, so accounts created together are in different shards.
        let [.., end] = account.to_bytes();
        let Some(part) = self.shards.get(usize::from(end) % SHARDS) else {
            return RateBucket::default().try_take(rate, now_ns);
        };
        let mut part = part.lock();
        if let Some(bucket) = part.buckets.get_mut(&account) {
            return bucket.try_take(rate, now_ns);
        }
        let mut bucket = RateBucket::default();
        let outcome = bucket.try_take(rate, now_ns);
        part.insert(account, bucket, now_ns);
        outcome
    }

    /// Number of buckets in memory.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|part| part.lock().buckets.len()).sum()
    }

    /// True if no bucket is in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl LimiterShard {
    fn insert(&mut self, account: AccountId, bucket: RateBucket, now_ns: u64) {
        let full = self.buckets.len() >= BUCKETS_MAX / SHARDS;
        if full && now_ns >= self.sweep_at_ns || !full && self.buckets.len() >= self.sweep_len.max(SWEEP_MIN) {
            self.buckets.retain(|_, bucket| !bucket.is_empty(now_ns));
            self.sweep_len = self.buckets.len() * 2;
            self.sweep_at_ns = now_ns.saturating_add(SWEEP_INTERVAL_NS);
        }
        if self.buckets.len() < BUCKETS_MAX / SHARDS {
            self.buckets.insert(account, bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn account(n: u128) -> AccountId {
        AccountId::new(at(0), n)
    }

    #[test]
    fn accounts_do_not_share() {
        let throttle = RateLimiter::new(true);
        let rate = RequestRate::new(1, 1);
        for n in [1, 2, 1 + SHARDS as u128] {
            assert!(throttle.check(account(n), rate, at(0)).is_ok());
            assert!(throttle.check(account(n), rate, at(0)).is_ok());
            assert!(throttle.check(account(n), rate, at(0)).is_err());
        }
        assert!(throttle.check(account(1), rate, at(1)).is_ok());
    }

    #[test]
    fn memory_stays_bounded() {
        let throttle = RateLimiter::new(true);
        let rate = RequestRate::new(10, 1);
        for n in 0..10_000 {
            throttle.check(account(n), rate, at(i64::try_from(n).unwrap())).unwrap();
        }
        assert!(throttle.len() <= SHARDS * SWEEP_MIN, "empty buckets are swept: {}", throttle.len());
        for n in 0..2 * BUCKETS_MAX as u128 {
            throttle.check(account(n), rate, at(20_000)).unwrap();
        }
        assert!(throttle.len() <= BUCKETS_MAX);
        throttle.check(account(1 << 40), rate, at(30_000)).unwrap();
        assert!(throttle.len() <= BUCKETS_MAX - BUCKETS_MAX / SHARDS + 1, "a full shard is swept");
    }
}
