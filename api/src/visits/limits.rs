//! How often visits may be told, in bounded memory: by one address, and of one site. The rule is that of
//! `queue/src/rate.rs`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use mail::id::AccountId;
use mail::network::client_prefix;
use queue::rate::{RateBucket, RateLimitStatus, RequestRate};

/// Visits a second of one address (one /64 of IPv6): an office's, perhaps. Twice as many at once.
const PER_ADDRESS: u32 = 10;
/// Visits a second of one site.
const PER_SITE: u32 = 200;
/// Buckets kept at most. Those that are empty say nothing; should so many be in use, others are turned away.
const BUCKETS_MAX: usize = 50_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LimitKey {
    Address(Option<IpAddr>),
    Site(AccountId),
}

/// Counts visits.
#[derive(Debug, Default)]
pub struct VisitRateLimiter(Mutex<HashMap<LimitKey, RateBucket>>);

impl VisitRateLimiter {
    /// A visit of an address.
    ///
    /// # Errors
    /// It may not be told now.
    pub fn check_address(&self, from: Option<IpAddr>, now: Timestamp) -> Result<(), RateLimitStatus> {
        self.try_take(LimitKey::Address(from.map(client_prefix)), RequestRate::new(PER_ADDRESS, 1), now)
    }

    /// A visit to a site.
    ///
    /// # Errors
    /// It may not be told now.
    pub fn check_site(&self, account: AccountId, now: Timestamp) -> Result<(), RateLimitStatus> {
        self.try_take(LimitKey::Site(account), RequestRate::new(PER_SITE, 1), now)
    }

    fn try_take(&self, of: LimitKey, rate: RequestRate, now: Timestamp) -> Result<(), RateLimitStatus> {
        let now_ns = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&of) {
            buckets.retain(|_, bucket| !bucket.is_empty(now_ns));
            if buckets.len() >= BUCKETS_MAX {
                return Err(RateLimitStatus { limit: 0, remaining: 0, reset_s: 1 });
            }
        }
        buckets.entry(of).or_default().try_take(rate, now_ns).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_bounded_and_so_is_memory() {
        let (limits, now) = (VisitRateLimiter::default(), Timestamp::from_second(1_700_000_000).unwrap());
        let address = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for _ in 0..2 * PER_ADDRESS {
            limits.check_address(address(1), now).unwrap();
        }
        assert!(limits.check_address(address(1), now).is_err() && limits.check_address(address(2), now).is_ok());
        for n in 3..=BUCKETS_MAX as u32 {
            limits.check_address(address(n), now).unwrap();
        }
        assert!(limits.check_address(address(u32::MAX), now).is_err(), "so many, and no more");
        let later = now + std::time::Duration::from_secs(3);
        assert!(limits.check_address(address(u32::MAX), later).is_ok());
        assert_eq!(limits.0.lock().unwrap().len(), 1);
    }
}
