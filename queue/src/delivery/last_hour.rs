//! Counters of this node over the last hour, by minute, for `postrider status`.
//!
//! Sixty minutes in memory: lost on restart, and without other nodes.

use parking_lot::Mutex;

use jiff::Timestamp;
use serde::Serialize;

const MINUTES: usize = 60;

/// Counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HourlyCounter {
    /// Emails accepted.
    Accepted,
    /// Recipients delivered.
    Delivered,
    /// Attempts deferred.
    Deferred,
    /// Recipients bounced.
    Bounced,
    /// Recipients that failed for another reason, such as expiry or a local refusal.
    Failed,
    /// Messages received for customers' domains.
    Received,
}

/// Sums over the last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Emails accepted.
    pub accepted: u64,
    /// Recipients delivered.
    pub delivered: u64,
    /// Attempts deferred.
    pub deferred: u64,
    /// Recipients bounced.
    pub bounced: u64,
    /// Recipients that failed for another reason.
    pub failed: u64,
    /// Messages received for customers' domains.
    pub received: u64,
}

impl Counts {
    fn of(&mut self, counter: HourlyCounter) -> &mut u64 {
        match counter {
            HourlyCounter::Accepted => &mut self.accepted,
            HourlyCounter::Delivered => &mut self.delivered,
            HourlyCounter::Deferred => &mut self.deferred,
            HourlyCounter::Bounced => &mut self.bounced,
            HourlyCounter::Failed => &mut self.failed,
            HourlyCounter::Received => &mut self.received,
        }
    }

    fn add(&mut self, other: &Self) {
        let Self { accepted, delivered, deferred, bounced, failed, received } = other;
        self.accepted += accepted;
        self.delivered += delivered;
        self.deferred += deferred;
        self.bounced += bounced;
        self.failed += failed;
        self.received += received;
    }
}

/// Ring buffer of sixty minutes, each with its minute since 1970.
#[derive(Debug)]
pub struct LastHour(Mutex<[(i64, Counts); MINUTES]>);

impl Default for LastHour {
    fn default() -> Self {
        Self(Mutex::new([(i64::MIN, Counts::default()); MINUTES]))
    }
}

fn minute_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(60)
}

impl LastHour {
    /// Adds to a counter of the current minute.
    pub fn count(&self, counter: HourlyCounter, number: u64, now: Timestamp) {
        let minute = minute_of(now);
        let index = usize::try_from(minute.rem_euclid(MINUTES as i64)).unwrap_or(0);
        if let Some(slot) = self.0.lock().get_mut(index) {
            if slot.0 != minute {
                *slot = (minute, Counts::default());
            }
            *slot.1.of(counter) += number;
        }
    }

    /// Sums of the current minute and the 59 before it.
    pub fn sum(&self, now: Timestamp) -> Counts {
        let last = minute_of(now);
        let mut sum = Counts::default();
        let within = |minute: i64| minute <= last && minute > last - MINUTES as i64;
        self.0.lock().iter().filter(|(minute, _)| within(*minute)).for_each(|(_, counts)| sum.add(counts));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_sixty_minutes() {
        let at = |second: i64| Timestamp::from_second(1_767_261_600 + second).unwrap();
        let hour = LastHour::default();
        hour.count(HourlyCounter::Accepted, 3, at(0));
        hour.count(HourlyCounter::Accepted, 4, at(59));
        hour.count(HourlyCounter::Bounced, 1, at(3_599));
        assert_eq!(hour.sum(at(3_599)), Counts { accepted: 7, bounced: 1, ..Counts::default() });
        assert_eq!(hour.sum(at(3_600)), Counts { bounced: 1, ..Counts::default() });
        hour.count(HourlyCounter::Accepted, 5, at(3_600));
        assert_eq!(hour.sum(at(3_600)).accepted, 5, "the slot of an hour ago is reset");
        assert_eq!(hour.sum(at(100_000)), Counts::default());
    }
}
