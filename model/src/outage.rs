//! Log throttling for outages of external services (name servers, a database, a smarthost): the start, at most one line
//! a minute while it lasts, and the end.

use std::time::Duration;

/// Minimum time between two log lines about outages.
const REMIND_AFTER: Duration = Duration::from_secs(60);

/// Contents of a log line about an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageNotice {
    pub lasts: Duration,
    /// Number of consecutive failures.
    pub failures: u64,
}

/// State of one service and its logging. Times are durations since any fixed moment.
#[derive(Debug, Clone)]
pub struct Outage {
    /// Consecutive failures from which an outage is logged.
    failures_min: u64,
    failures: u64,
    since: Duration,
    /// Time of the last log line, of this outage or an earlier one.
    logged_at: Option<Duration>,
    is_logged: bool,
    /// Sum of the outages that were not logged because they began and ended within [`REMIND_AFTER`] of the last line.
    missed: Option<OutageNotice>,
}

impl Outage {
    /// Creates the state without an outage; one is logged from this many consecutive failures on.
    pub const fn after(failures_min: u64) -> Self {
        Self { failures_min, failures: 0, since: Duration::ZERO, logged_at: None, is_logged: false, missed: None }
    }

    /// Records a failure. Returns the outage if it is to be logged now, at most once a minute.
    pub fn failed(&mut self, now: Duration) -> Option<OutageNotice> {
        if self.failures == 0 {
            self.since = now;
        }
        self.failures += 1;
        if self.failures < self.failures_min || self.is_quiet(now) {
            return None;
        }
        (self.logged_at, self.is_logged, self.missed) = (Some(now), true, None);
        Some(OutageNotice { lasts: now.saturating_sub(self.since), failures: self.failures })
    }

    /// Records a success. Returns the ended outage if its start was logged.
    pub fn answered(&mut self, now: Duration) -> Option<OutageNotice> {
        if self.failures == 0 {
            return None;
        }
        let ended = OutageNotice { lasts: now.saturating_sub(self.since), failures: self.failures };
        self.failures = 0;
        if std::mem::take(&mut self.is_logged) {
            return Some(ended);
        }
        if ended.failures >= self.failures_min {
            let missed = self.missed.get_or_insert(OutageNotice { lasts: Duration::ZERO, failures: 0 });
            missed.lasts += ended.lasts;
            missed.failures += ended.failures;
        }
        None
    }

    /// Returns the sum of the outages that were not logged, as soon as a line may be logged again. To be called
    /// periodically while the service responds.
    pub fn missed(&mut self, now: Duration) -> Option<OutageNotice> {
        if self.failures > 0 || self.is_quiet(now) {
            return None;
        }
        let missed = self.missed.take()?;
        self.logged_at = Some(now);
        Some(missed)
    }

    fn is_quiet(&self, now: Duration) -> bool {
        self.logged_at.is_some_and(|logged_at| now.saturating_sub(logged_at) < REMIND_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn an_outage_is_logged_at_its_start_each_minute_and_at_its_end() {
        let mut outage = Outage::after(1);
        assert_eq!(outage.answered(at(1)), None);
        let logged: Vec<u64> = (10..200).filter(|now| outage.failed(at(*now)).is_some()).collect();
        assert_eq!(logged, [10, 70, 130, 190]);
        assert_eq!(outage.answered(at(200)), Some(OutageNotice { lasts: at(190), failures: 190 }));
        assert_eq!(outage.answered(at(201)), None);
    }

    #[test]
    fn an_intermittent_outage_is_logged_once_a_minute() {
        let mut outage = Outage::after(1);
        let mut logged = 0;
        for now in 0..600 {
            logged += usize::from(outage.failed(at(now)).is_some());
            outage.answered(at(now));
        }
        assert_eq!(logged, 10);
    }

    #[test]
    fn a_suppressed_outage_is_logged_after_the_interval() {
        let mut outage = Outage::after(1);
        assert!(outage.failed(at(0)).is_some() && outage.answered(at(5)).is_some());
        assert_eq!((outage.failed(at(10)), outage.answered(at(40))), (None, None));
        assert_eq!(outage.missed(at(59)), None);
        assert_eq!(outage.missed(at(60)), Some(OutageNotice { lasts: at(30), failures: 1 }));
        assert_eq!(outage.missed(at(200)), None);
        // An ongoing outage is logged by its next failure, and so is its end.
        assert!(outage.failed(at(300)).is_some() && outage.answered(at(305)).is_some());
        assert_eq!(outage.failed(at(310)), None);
        assert!(outage.failed(at(360)).is_some() && outage.answered(at(361)).is_some());
    }

    #[test]
    fn fewer_failures_than_the_minimum_are_no_outage() {
        let mut outage = Outage::after(3);
        assert_eq!((outage.failed(at(1)), outage.failed(at(2))), (None, None));
        assert_eq!(outage.answered(at(3)), None);
        assert_eq!((outage.failed(at(4)), outage.failed(at(5))), (None, None));
        assert_eq!(outage.failed(at(6)), Some(OutageNotice { lasts: at(2), failures: 3 }));
    }
}
