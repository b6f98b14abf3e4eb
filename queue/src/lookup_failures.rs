//! The last failed look-up of each domain's mail hosts, for the operator: while the DNS does not answer, a domain has no
//! site that could remember it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mail::address::Name;

/// Domains remembered; beyond it no other is until some are found again.
const DOMAINS_MAX: usize = 10_000;

/// Why the mail hosts of domains are not known.
#[derive(Debug, Default)]
pub(crate) struct LookupFailures {
    by_domain: Mutex<HashMap<Name, String>>,
}

impl LookupFailures {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, String>> {
        self.by_domain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look-up has ended: without an answer, or with one, whatever it was.
    pub(crate) fn note(&self, domain: &Name, error: Option<&str>) {
        let mut by_domain = self.lock();
        match error {
            Some(error) if by_domain.len() < DOMAINS_MAX || by_domain.contains_key(domain) => {
                by_domain.insert(domain.clone(), error.to_owned());
            }
            Some(_) => {}
            None => _ = by_domain.remove(domain),
        }
    }

    /// Why the last look-up of a domain gave no answer; none where it gave one, or nobody has looked.
    pub(crate) fn of(&self, domain: &Name) -> Option<String> {
        self.lock().get(domain).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_until_there_is_an_answer_and_so_many_are() {
        let (failures, domain) = (LookupFailures::default(), "a.example".parse().unwrap());
        failures.note(&domain, Some("timed out"));
        assert_eq!(failures.of(&domain).as_deref(), Some("timed out"));
        failures.note(&domain, None);
        assert_eq!(failures.of(&domain), None);
        for n in 0..=DOMAINS_MAX {
            failures.note(&format!("d{n}.example").parse().unwrap(), Some("timed out"));
        }
        assert_eq!(failures.lock().len(), DOMAINS_MAX);
    }
}
