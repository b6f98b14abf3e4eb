//! Validity of a certificate, and the times that follow: when to renew it, when to retry after a failure. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::doctor::x509;

/// Delays after consecutive failures; the last one repeats. Authorities limit failures per hour.
const RETRY_DELAYS: [Duration; 4] =
    [Duration::from_secs(60), Duration::from_secs(15 * 60), Duration::from_secs(3600), Duration::from_secs(6 * 3600)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Validity {
    /// Reads the validity of a chain's first certificate.
    pub(super) fn from_chain(chain: &[u8]) -> Result<Self, String> {
        let leaf = x509::parse_first(chain)?;
        Ok(Self { not_before: leaf.not_before, not_after: leaf.not_after })
    }

    /// Default renewal time: two thirds of the lifetime.
    pub(super) fn renew_at(self) -> Timestamp {
        let life = Duration::try_from(self.not_after.duration_since(self.not_before)).unwrap_or_default();
        self.not_before.checked_add(life * 2 / 3).unwrap_or(self.not_after)
    }
}

/// Time of the next try after `failures` consecutive failures.
pub(super) fn retry_at(failures: u32, now: Timestamp) -> Timestamp {
    let nth = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX).min(RETRY_DELAYS.len() - 1);
    let wait = RETRY_DELAYS.get(nth).copied().unwrap_or(Duration::from_secs(3600));
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::Certificate;

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let validity = Validity { not_before: at(0), not_after: at(90 * 86_400) };
        assert_eq!(validity.renew_at(), at(60 * 86_400));
        // The validity that rcgen writes: 1975 to 4096.
        let certificate = Certificate::self_signed(&["localhost"]).unwrap();
        let validity = Validity::from_chain(&certificate.chain).unwrap();
        assert_eq!(validity.not_before.to_string(), "1975-01-01T00:00:00Z");
        assert_eq!(validity.not_after.to_string(), "4096-01-01T00:00:00Z");
        assert!(Validity::from_chain(b"").is_err() && Validity::from_chain(&certificate.key).is_err());
    }

    #[test]
    fn retries_have_growing_delays() {
        let now = Timestamp::UNIX_EPOCH;
        let retry_times = [1, 2, 3, 4, 5, u32::MAX].map(|failures| retry_at(failures, now).as_second());
        assert_eq!(retry_times, [60, 900, 3_600, 21_600, 21_600, 21_600]);
    }
}
