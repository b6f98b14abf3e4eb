//! Rate limits of visit reports, by address and by site, in bounded memory. The algorithm is that of
//! `net/src/limit/rate_limit.rs`.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use events::email_tracking::EmailTracking;
use jiff::Timestamp;
use model::cidr::client_prefix;
use model::id::AccountId;
use net::limit::rate_limit::{RateBucket, RateLimitStatus, RequestRate};
use tokio::sync::Semaphore;

/// Visits a second of one address (one /64 of IPv6), such as an office; the burst is twice that.
const PER_ADDRESS: u32 = 10;
/// Visits a second of one site; the burst is twice that.
const PER_SITE: u32 = 200;
/// Most buckets. Empty buckets are evicted; if all are in use, new keys are refused.
const BUCKETS_MAX: usize = 50_000;

/// Most reports of referral sign-ups that are processed in the background at once.
const SIGNUP_REPORTS_MAX: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LimitKey {
    Address(Option<IpAddr>),
    Site(AccountId),
}

/// Limits of what browsers and mail programs report.
pub(crate) struct VisitLimits {
    pub(crate) pages: VisitRateLimiter,
    /// Referral visits of an affiliate program.
    pub(crate) referrals: VisitRateLimiter,
    /// Permits for referral sign-up reports, which are processed after the response.
    pub(crate) signup_reports: Arc<Semaphore>,
    /// Records opens and clicks, a bounded number at a time.
    pub(crate) emails: Arc<EmailTracking>,
}

impl VisitLimits {
    pub(crate) fn new(emails: Arc<EmailTracking>) -> Self {
        Self {
            pages: VisitRateLimiter::default(),
            referrals: VisitRateLimiter::default(),
            signup_reports: Arc::new(Semaphore::new(SIGNUP_REPORTS_MAX)),
            emails,
        }
    }
}

#[derive(Debug, Default)]
pub struct VisitRateLimiter(Mutex<HashMap<LimitKey, RateBucket>>);

impl VisitRateLimiter {
    /// Counts a visit from an address.
    ///
    /// # Errors
    /// The rate limit is exceeded.
    pub fn check_address(&self, from: Option<IpAddr>, now: Timestamp) -> Result<(), RateLimitStatus> {
        self.try_take(LimitKey::Address(from.map(client_prefix)), RequestRate::new(PER_ADDRESS, 1), now)
    }

    /// Counts a visit to a site.
    ///
    /// # Errors
    /// The rate limit is exceeded.
    pub fn check_site(&self, account: AccountId, now: Timestamp) -> Result<(), RateLimitStatus> {
        self.try_take(LimitKey::Site(account), RequestRate::new(PER_SITE, 1), now)
    }

    fn try_take(&self, key: LimitKey, rate: RequestRate, now: Timestamp) -> Result<(), RateLimitStatus> {
        let now_ns = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        let mut buckets = self.0.lock();
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| !bucket.is_empty(now_ns));
            if buckets.len() >= BUCKETS_MAX {
                return Err(RateLimitStatus { limit: 0, remaining: 0, reset_s: 1 });
            }
        }
        buckets.entry(key).or_default().try_take(rate, now_ns).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_memory_are_bounded() {
        let (limits, now) = (VisitRateLimiter::default(), Timestamp::from_second(1_700_000_000).unwrap());
        let address = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for _ in 0..2 * PER_ADDRESS {
            limits.check_address(address(1), now).unwrap();
        }
        assert!(limits.check_address(address(1), now).is_err() && limits.check_address(address(2), now).is_ok());
        for n in 3..=BUCKETS_MAX as u32 {
            limits.check_address(address(n), now).unwrap();
        }
        assert!(limits.check_address(address(u32::MAX), now).is_err(), "the number of buckets is limited");
        let later = now + std::time::Duration::from_secs(3);
        assert!(limits.check_address(address(u32::MAX), later).is_ok());
        assert_eq!(limits.0.lock().len(), 1);
    }
}
