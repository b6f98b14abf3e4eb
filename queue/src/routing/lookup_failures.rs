//! The last failed MX lookup of each domain, shown to the operator. While DNS does not respond, a domain has no ready
//! queue that could store it.

use parking_lot::Mutex;
use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use message::address::DomainName;

/// Domains stored; when full, the oldest failures are removed.
const DOMAINS_MAX: usize = 10_000;
/// Number of failures removed at once, so that not every insert scans the map.
const FORGOTTEN_AT_ONCE: usize = 100;
/// TTL of a failure.
const FORGET_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// A failed lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LookupFailure {
    pub(crate) error: String,
    pub(crate) at: Timestamp,
}

impl LookupFailure {
    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.at) >= FORGET_AFTER
    }
}

/// Failed lookups by domain.
#[derive(Debug, Default)]
pub(crate) struct LookupFailures {
    by_domain: Mutex<HashMap<DomainName, LookupFailure>>,
}

impl LookupFailures {
    /// Records the result of a lookup: an error, or `None` for any answer.
    pub(crate) fn note(&self, domain: &DomainName, error: Option<&str>, now: Timestamp) {
        let mut by_domain = self.by_domain.lock();
        let Some(error) = error else {
            by_domain.remove(domain);
            return;
        };
        if by_domain.len() >= DOMAINS_MAX && !by_domain.contains_key(domain) {
            by_domain.retain(|_, failure| !failure.is_over(now));
            Self::make_room(&mut by_domain);
        }
        by_domain.insert(domain.clone(), LookupFailure { error: error.to_owned(), at: now });
    }

    /// Removes the oldest failures if the map is full.
    fn make_room(by_domain: &mut HashMap<DomainName, LookupFailure>) {
        if by_domain.len() < DOMAINS_MAX {
            return;
        }
        let mut moments: Vec<Timestamp> = by_domain.values().map(|failure| failure.at).collect();
        let (_, oldest, _) = moments.select_nth_unstable(FORGOTTEN_AT_ONCE - 1);
        let (oldest, mut left) = (*oldest, FORGOTTEN_AT_ONCE);
        by_domain.retain(|_, failure| {
            let is_retained = failure.at > oldest || left == 0;
            left -= usize::from(!is_retained);
            is_retained
        });
    }

    /// The last lookup error of a domain; `None` if the last lookup succeeded or was more than an hour ago.
    pub(crate) fn of(&self, domain: &DomainName, now: Timestamp) -> Option<LookupFailure> {
        self.by_domain.lock().get(domain).filter(|failure| !failure.is_over(now)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_failure_is_stored_until_a_lookup_succeeds_or_an_hour_passes() {
        let (failures, domain) = (LookupFailures::default(), "a.example".parse().unwrap());
        failures.note(&domain, Some("timed out"), at(0));
        assert_eq!(failures.of(&domain, at(3_599)).unwrap().error, "timed out");
        assert_eq!(failures.of(&domain, at(3_600)), None);
        failures.note(&domain, None, at(1));
        assert_eq!(failures.of(&domain, at(1)), None);
    }

    #[test]
    fn the_oldest_failures_are_evicted() {
        let failures = LookupFailures::default();
        let domain = |n: usize| format!("d{n}.example").parse::<DomainName>().unwrap();
        for n in 0..=DOMAINS_MAX {
            failures.note(&domain(n), Some("timed out"), at(i64::try_from(n / 10).unwrap()));
        }
        assert_eq!(failures.by_domain.lock().len(), DOMAINS_MAX - FORGOTTEN_AT_ONCE + 1);
        assert_eq!(failures.of(&domain(0), at(1_000)), None);
        assert!(failures.of(&domain(DOMAINS_MAX), at(1_000)).is_some());
        assert!(failures.of(&domain(FORGOTTEN_AT_ONCE), at(1_000)).is_some());
    }
}
