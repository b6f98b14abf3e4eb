//! Retry schedule: waits between delivery attempts, and when delivery is given up (RFC 5321
//! 4.5.4.1). Pure.

use std::time::Duration;

use jiff::Timestamp;

/// The retry schedule (backoff; greylisting ends within it). The last wait repeats until the message expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySchedule {
    /// Waits after the first, second, … attempt. Not empty.
    pub waits: Vec<Duration>,
    /// Time from acceptance to expiry.
    pub give_up_after: Duration,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        let waits = [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR];
        Self {
            waits: waits.into_iter().map(Duration::from_secs).collect(),
            give_up_after: Duration::from_secs(48 * HOUR),
        }
    }
}

impl RetrySchedule {
    /// Returns the time of the next attempt after `attempts` attempts (at least one), or `None` if the message has
    /// expired. Jitter from `seed` adds up to a tenth of the wait, so that messages deferred together are not retried
    /// together. The last attempt is exactly at `expires_at`.
    pub fn next_attempt(&self, attempts: u32, now: Timestamp, expires_at: Timestamp, seed: u64) -> Option<Timestamp> {
        if now >= expires_at {
            return None;
        }
        let nth = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        let wait = self.waits.get(nth).or(self.waits.last()).copied().unwrap_or(Duration::from_secs(60));
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX / 2);
        let longer_ms = seed % (wait_ms / 10 + 1);
        let next = now.checked_add(Duration::from_millis(wait_ms + longer_ms)).unwrap_or(Timestamp::MAX);
        Some(next.min(expires_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_schedule_is_as_specified() {
        let schedule = RetrySchedule::default();
        let start = Timestamp::from_second(1_000_000).unwrap();
        let end = start + schedule.give_up_after;
        let mut now = start;
        let mut waits = Vec::new();
        for attempts in 1.. {
            let Some(next) = schedule.next_attempt(attempts, now, end, 0) else { break };
            waits.push(next.duration_since(now).as_secs() / 60);
            now = next;
        }
        assert_eq!(waits[..8], [1, 5, 15, 30, 60, 120, 240, 240]);
        assert_eq!(now, end, "the last attempt is at the expiry");
        assert_eq!(schedule.next_attempt(1, end, end, 0), None);
    }

    #[test]
    fn jitter_adds_at_most_a_tenth() {
        let schedule = RetrySchedule::default();
        let now = Timestamp::from_second(1_000_000).unwrap();
        for seed in [0, 1, 5_999, 6_000, 6_001, u64::MAX] {
            let wait = schedule.next_attempt(1, now, Timestamp::MAX, seed).unwrap().duration_since(now).as_millis();
            assert!((60_000..=66_000).contains(&wait), "{wait}");
        }
    }
}
