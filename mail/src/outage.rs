//! An outage of something that others run (name servers, a database, a smarthost), as the log tells it: its start, a
//! line a minute at most while it lasts, and its end.

use std::time::Duration;

/// So long is nothing more said of an outage.
const REMIND_AFTER: Duration = Duration::from_secs(60);

/// What is to be said of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageNotice {
    /// How long the outage lasts.
    pub lasts: Duration,
    /// Failures in a row.
    pub failures: u64,
}

/// Whether something answers, and what was said of it. Moments are durations since any fixed one.
#[derive(Debug, Clone)]
pub struct Outage {
    /// An outage is said from so many failures in a row on.
    failures_min: u64,
    failures: u64,
    since: Duration,
    /// When something was said last, of this outage or one before it.
    said_at: Option<Duration>,
    is_said: bool,
}

impl Outage {
    /// None yet; one is said from so many failures in a row on.
    #[must_use]
    pub const fn after(failures_min: u64) -> Self {
        Self { failures_min, failures: 0, since: Duration::ZERO, said_at: None, is_said: false }
    }

    /// It did not answer. Returns what is to be said, at most once a minute.
    pub fn failed(&mut self, now: Duration) -> Option<OutageNotice> {
        if self.failures == 0 {
            self.since = now;
        }
        self.failures += 1;
        let is_quiet = self.said_at.is_some_and(|said_at| now.saturating_sub(said_at) < REMIND_AFTER);
        if self.failures < self.failures_min || is_quiet {
            return None;
        }
        (self.said_at, self.is_said) = (Some(now), true);
        Some(OutageNotice { lasts: now.saturating_sub(self.since), failures: self.failures })
    }

    /// It answered. Returns the outage that has ended, if it was said that there was one.
    pub fn answered(&mut self, now: Duration) -> Option<OutageNotice> {
        if self.failures == 0 {
            return None;
        }
        let ended = OutageNotice { lasts: now.saturating_sub(self.since), failures: self.failures };
        self.failures = 0;
        std::mem::take(&mut self.is_said).then_some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn an_outage_is_told_at_its_start_once_a_minute_and_at_its_end() {
        let mut outage = Outage::after(1);
        assert_eq!(outage.answered(at(1)), None);
        let told: Vec<u64> = (10..200).filter(|now| outage.failed(at(*now)).is_some()).collect();
        assert_eq!(told, [10, 70, 130, 190]);
        assert_eq!(outage.answered(at(200)), Some(OutageNotice { lasts: at(190), failures: 190 }));
        assert_eq!(outage.answered(at(201)), None);
    }

    #[test]
    fn one_that_comes_and_goes_is_told_once_a_minute() {
        let mut outage = Outage::after(1);
        let mut told = 0;
        for now in 0..600 {
            told += usize::from(outage.failed(at(now)).is_some());
            outage.answered(at(now));
        }
        assert_eq!(told, 10);
    }

    #[test]
    fn a_single_failure_is_no_outage_where_several_are_asked_for() {
        let mut outage = Outage::after(3);
        assert_eq!((outage.failed(at(1)), outage.failed(at(2))), (None, None));
        assert_eq!(outage.answered(at(3)), None);
        assert_eq!((outage.failed(at(4)), outage.failed(at(5))), (None, None));
        assert_eq!(outage.failed(at(6)), Some(OutageNotice { lasts: at(2), failures: 3 }));
    }
}
