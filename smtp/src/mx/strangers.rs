//! Who asks for mailboxes that are not there: counted per address (per /64 for IPv6) over sessions, in bounded
//! memory, and forgotten by the hour.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use mail::network::counted;

use crate::counts::Counts;

const FORGET_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Addresses remembered.
const ADDRESSES_MAX: usize = 16_384;

#[derive(Debug)]
pub(super) struct Strangers {
    /// After so many an address is not listened to until the hour is over.
    max: u32,
    /// Since when each was counted.
    counts: Mutex<Counts<IpAddr, Timestamp>>,
}

impl Strangers {
    pub(super) fn new(max: u32) -> Self {
        Self { max, counts: Mutex::new(Counts::new(ADDRESSES_MAX)) }
    }

    /// Counts one.
    pub(super) fn count(&self, peer: IpAddr, now: Timestamp) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = counts.entry(counted(peer), now, |since| is_over(since, now));
        entry.count = entry.count.saturating_add(1);
    }

    /// Whether an address has asked too often.
    pub(super) fn are_too_many(&self, peer: IpAddr, now: Timestamp) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&counted(peer), |since| is_over(since, now)).is_some_and(|entry| entry.count >= self.max)
    }
}

fn is_over(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) > FORGET_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_heard_again_after_an_hour() {
        let (strangers, now) = (Strangers::new(100), Timestamp::UNIX_EPOCH);
        let peer = "192.0.2.1".parse().unwrap();
        for _ in 0..100 {
            assert!(!strangers.are_too_many(peer, now));
            strangers.count(peer, now);
        }
        assert!(strangers.are_too_many(peer, now));
        assert!(!strangers.are_too_many("192.0.2.2".parse().unwrap(), now));
        let later = now + FORGET_AFTER + SignedDuration::from_secs(1);
        assert!(!strangers.are_too_many(peer, later));
        strangers.count(peer, later);
        assert!(!strangers.are_too_many(peer, later));
    }

    #[test]
    fn memory_is_bounded() {
        let (strangers, now) = (Strangers::new(100), Timestamp::UNIX_EPOCH);
        for n in 0..(ADDRESSES_MAX as u32 + 10) {
            strangers.count(IpAddr::V4(n.into()), now);
        }
        assert!(strangers.counts.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
