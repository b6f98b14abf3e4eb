//! The buckets of the accounts that are asking now, in bounded memory: the rule is [`crate::rate`]'s.
//!
//! A bucket that is empty says nothing and is not kept, so there are as many as accounts asked within the
//! last seconds; and never more than [`BUCKETS_MAX`]. HTTP and SMTP draw on the same ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use mail::id::AccountId;

use crate::rate::{RateBucket, RateLimitStatus, RequestRate};

/// Accounts meet only where they fall into the same part.
const SHARDS: usize = 64;
/// Buckets that are kept at most: about 10 MB. Should more accounts than these ask within two seconds, those
/// that come last begin anew with every request: they are let in rather than kept out.
pub const BUCKETS_MAX: usize = 1 << 18;
/// A part is swept when it has doubled since the last time, from here on.
const SWEEP_MIN: usize = 64;
/// A full part is not swept more often.
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;

/// Counts the requests of every account.
#[derive(Debug)]
pub struct RateLimiter {
    is_enabled: AtomicBool,
    shards: Vec<Mutex<LimiterShard>>,
}

#[derive(Debug, Default)]
struct LimiterShard {
    buckets: HashMap<AccountId, RateBucket>,
    /// How many there must be for a sweep to be worth it …
    sweep_len: usize,
    /// … unless the part is full: then it is worth it at this time.
    sweep_at_ns: u64,
}

impl RateLimiter {
    /// Nobody has asked yet. When it is not `on`, everybody may ask as often as they like.
    #[must_use]
    pub fn new(on: bool) -> Self {
        Self { is_enabled: AtomicBool::new(on), shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Whether requests are counted.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Counts requests from now on, or does not.
    pub fn set_enabled(&self, on: bool) {
        self.is_enabled.store(on, Ordering::Relaxed);
    }

    /// One request of an account.
    ///
    /// # Errors
    /// It may not be made now.
    pub fn check(
        &self,
        account: AccountId,
        rate: RequestRate,
        now: Timestamp,
    ) -> Result<RateLimitStatus, RateLimitStatus> {
        let now_ns = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        // The random end of an id: accounts that were made together fall into different parts.
        let [.., end] = account.to_bytes();
        let Some(part) = self.shards.get(usize::from(end) % SHARDS) else {
            return RateBucket::default().try_take(rate, now_ns);
        };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = part.buckets.get_mut(&account) {
            return bucket.try_take(rate, now_ns);
        }
        let mut bucket = RateBucket::default();
        let outcome = bucket.try_take(rate, now_ns);
        part.insert(account, bucket, now_ns);
        outcome
    }

    /// How many buckets are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).buckets.len()).sum()
    }

    /// Whether none is kept.
    #[must_use]
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
        assert!(throttle.len() <= SHARDS * SWEEP_MIN, "those that say nothing are gone: {}", throttle.len());
        for n in 0..2 * BUCKETS_MAX as u128 {
            throttle.check(account(n), rate, at(20_000)).unwrap();
        }
        assert!(throttle.len() <= BUCKETS_MAX);
        throttle.check(account(1 << 40), rate, at(30_000)).unwrap();
        assert!(throttle.len() <= BUCKETS_MAX - BUCKETS_MAX / SHARDS + 1, "a full part is swept");
    }
}
