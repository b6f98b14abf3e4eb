//! The buckets of the accounts that are asking now, in bounded memory: the rule is [`crate::rate`]'s.
//!
//! A bucket that is empty says nothing and is not kept, so there are as many as accounts asked within the
//! last seconds; and never more than [`BUCKETS_MAX`]. HTTP and SMTP draw on the same ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use mail::id::AccountId;

use crate::rate::{Bucket, Rate, Standing};

/// Accounts meet only where they fall into the same part.
const PARTS: usize = 64;
/// Buckets that are kept at most: about 10 MB. Should more accounts than these ask within two seconds, those
/// that come last begin anew with every request: they are let in rather than kept out.
pub const BUCKETS_MAX: usize = 1 << 18;
/// A part is swept when it has doubled since the last time, from here on.
const SWEEP_MIN: usize = 64;
/// A full part is not swept more often.
const SWEEP_PAUSE_NS: u64 = 1_000_000_000;

/// Counts the requests of every account.
#[derive(Debug)]
pub struct Throttle {
    on: AtomicBool,
    parts: Vec<Mutex<Part>>,
}

#[derive(Debug, Default)]
struct Part {
    buckets: HashMap<AccountId, Bucket>,
    /// How many there must be for a sweep to be worth it …
    sweep_len: usize,
    /// … unless the part is full: then it is worth it at this time.
    sweep_at_ns: u64,
}

impl Throttle {
    /// Nobody has asked yet. When it is not `on`, everybody may ask as often as they like.
    #[must_use]
    pub fn new(on: bool) -> Self {
        Self { on: AtomicBool::new(on), parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }

    /// Whether requests are counted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Counts requests from now on, or does not.
    pub fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// One request of an account.
    ///
    /// # Errors
    /// It may not be made now.
    pub fn take(&self, account: AccountId, rate: Rate, now: Timestamp) -> Result<Standing, Standing> {
        let now_ns = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        // The random end of an id: accounts that were made together fall into different parts.
        let [.., end] = account.to_bytes();
        let Some(part) = self.parts.get(usize::from(end) % PARTS) else {
            return Bucket::default().take(rate, now_ns);
        };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = part.buckets.get_mut(&account) {
            return bucket.take(rate, now_ns);
        }
        let mut bucket = Bucket::default();
        let outcome = bucket.take(rate, now_ns);
        part.keep(account, bucket, now_ns);
        outcome
    }

    /// How many buckets are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).buckets.len()).sum()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Part {
    fn keep(&mut self, account: AccountId, bucket: Bucket, now_ns: u64) {
        let full = self.buckets.len() >= BUCKETS_MAX / PARTS;
        if full && now_ns >= self.sweep_at_ns || !full && self.buckets.len() >= self.sweep_len.max(SWEEP_MIN)
        {
            self.buckets.retain(|_, bucket| !bucket.is_empty(now_ns));
            self.sweep_len = self.buckets.len() * 2;
            self.sweep_at_ns = now_ns.saturating_add(SWEEP_PAUSE_NS);
        }
        if self.buckets.len() < BUCKETS_MAX / PARTS {
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
        let throttle = Throttle::new(true);
        let rate = Rate::new(1, 1);
        for n in [1, 2, 1 + PARTS as u128] {
            assert!(throttle.take(account(n), rate, at(0)).is_ok());
            assert!(throttle.take(account(n), rate, at(0)).is_ok());
            assert!(throttle.take(account(n), rate, at(0)).is_err());
        }
        assert!(throttle.take(account(1), rate, at(1)).is_ok());
    }

    #[test]
    fn memory_stays_bounded() {
        let throttle = Throttle::new(true);
        let rate = Rate::new(10, 1);
        for n in 0..10_000 {
            throttle.take(account(n), rate, at(i64::try_from(n).unwrap())).unwrap();
        }
        assert!(throttle.len() <= PARTS * SWEEP_MIN, "those that say nothing are gone: {}", throttle.len());
        for n in 0..2 * BUCKETS_MAX as u128 {
            throttle.take(account(n), rate, at(20_000)).unwrap();
        }
        assert!(throttle.len() <= BUCKETS_MAX);
        throttle.take(account(1 << 40), rate, at(30_000)).unwrap();
        assert!(throttle.len() <= BUCKETS_MAX - BUCKETS_MAX / PARTS + 1, "a full part is swept");
    }
}
