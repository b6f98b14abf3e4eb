//! Limits unknown recipients per client address (per /64 for IPv6) over all its sessions, in bounded memory. Counters
//! expire after an hour.

use net::limit::bounded_counters::BoundedCounters;
use parking_lot::Mutex;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use model::cidr::client_prefix;

const FORGET_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Addresses with a counter.
const ADDRESSES_MAX: usize = 16_384;

#[derive(Debug)]
pub(super) struct UnknownRecipientLimiter {
    /// At this count MAIL from the address is refused until the hour ends.
    max: u32,
    /// Each with the time of its first unknown recipient.
    counts: Mutex<BoundedCounters<IpAddr, Timestamp>>,
}

impl UnknownRecipientLimiter {
    pub(super) fn new(max: u32) -> Self {
        Self { max, counts: Mutex::new(BoundedCounters::new(ADDRESSES_MAX)) }
    }

    pub(super) fn record(&self, peer: IpAddr, now: Timestamp) {
        let mut counts = self.counts.lock();
        let entry = counts.entry(client_prefix(peer), now, |since| is_expired(since, now));
        entry.count = entry.count.saturating_add(1);
    }

    /// Returns whether the address has reached the limit.
    pub(super) fn is_over_limit(&self, peer: IpAddr, now: Timestamp) -> bool {
        let counts = self.counts.lock();
        counts.get(&client_prefix(peer), |since| is_expired(since, now)).is_some_and(|entry| entry.count >= self.max)
    }
}

fn is_expired(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) > FORGET_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_ends_after_an_hour() {
        let (limiter, now) = (UnknownRecipientLimiter::new(100), Timestamp::UNIX_EPOCH);
        let peer = "192.0.2.1".parse().unwrap();
        for _ in 0..100 {
            assert!(!limiter.is_over_limit(peer, now));
            limiter.record(peer, now);
        }
        assert!(limiter.is_over_limit(peer, now));
        assert!(!limiter.is_over_limit("192.0.2.2".parse().unwrap(), now));
        let later = now + FORGET_AFTER + SignedDuration::from_secs(1);
        assert!(!limiter.is_over_limit(peer, later));
        limiter.record(peer, later);
        assert!(!limiter.is_over_limit(peer, later));
    }

    #[test]
    fn memory_is_bounded() {
        let (limiter, now) = (UnknownRecipientLimiter::new(100), Timestamp::UNIX_EPOCH);
        for n in 0..(ADDRESSES_MAX as u32 + 10) {
            limiter.record(IpAddr::V4(n.into()), now);
        }
        assert!(limiter.counts.lock().len() <= ADDRESSES_MAX);
    }
}
