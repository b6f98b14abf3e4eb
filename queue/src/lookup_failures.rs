//! The last failed look-up of each domain's mail hosts, for the operator: while the DNS does not answer, a domain has no
//! site that could remember it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use mail::address::DomainName;

/// Domains remembered; beyond it those that failed the longest ago are forgotten.
const DOMAINS_MAX: usize = 10_000;
/// So many are forgotten at once then, so that not every failure looks through all.
const FORGOTTEN_AT_ONCE: usize = 100;
/// A failure is forgotten when no other came for so long.
const FORGET_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// A look-up that gave no answer.
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

/// Why the mail hosts of domains are not known.
#[derive(Debug, Default)]
pub(crate) struct LookupFailures {
    by_domain: Mutex<HashMap<DomainName, LookupFailure>>,
}

impl LookupFailures {
    fn lock(&self) -> MutexGuard<'_, HashMap<DomainName, LookupFailure>> {
        self.by_domain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look-up has ended: without an answer, or with one, whatever it was.
    pub(crate) fn note(&self, domain: &DomainName, error: Option<&str>, now: Timestamp) {
        let mut by_domain = self.lock();
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

    /// When full, forgets those that failed the longest ago.
    fn make_room(by_domain: &mut HashMap<DomainName, LookupFailure>) {
        if by_domain.len() < DOMAINS_MAX {
            return;
        }
        let mut moments: Vec<Timestamp> = by_domain.values().map(|failure| failure.at).collect();
        let (_, oldest, _) = moments.select_nth_unstable(FORGOTTEN_AT_ONCE - 1);
        let (oldest, mut left) = (*oldest, FORGOTTEN_AT_ONCE);
        by_domain.retain(|_, failure| {
            let is_kept = failure.at > oldest || left == 0;
            left -= usize::from(!is_kept);
            is_kept
        });
    }

    /// Why the last look-up of a domain gave no answer; none where it gave one, or nobody has looked for an hour.
    pub(crate) fn of(&self, domain: &DomainName, now: Timestamp) -> Option<LookupFailure> {
        self.lock().get(domain).filter(|failure| !failure.is_over(now)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_failure_is_remembered_until_there_is_an_answer_or_for_an_hour() {
        let (failures, domain) = (LookupFailures::default(), "a.example".parse().unwrap());
        failures.note(&domain, Some("timed out"), at(0));
        assert_eq!(failures.of(&domain, at(3_599)).unwrap().error, "timed out");
        assert_eq!(failures.of(&domain, at(3_600)), None);
        failures.note(&domain, None, at(1));
        assert_eq!(failures.of(&domain, at(1)), None);
    }

    #[test]
    fn the_oldest_make_room() {
        let failures = LookupFailures::default();
        let domain = |n: usize| format!("d{n}.example").parse::<DomainName>().unwrap();
        for n in 0..=DOMAINS_MAX {
            failures.note(&domain(n), Some("timed out"), at(i64::try_from(n / 10).unwrap()));
        }
        assert_eq!(failures.lock().len(), DOMAINS_MAX - FORGOTTEN_AT_ONCE + 1);
        assert_eq!(failures.of(&domain(0), at(1_000)), None);
        assert!(failures.of(&domain(DOMAINS_MAX), at(1_000)).is_some());
        assert!(failures.of(&domain(FORGOTTEN_AT_ONCE), at(1_000)).is_some());
    }
}
