//! The clock: the only code that reads the system time.
//!
//! Loops hold a `Clock`; pure functions take `now`. The clock can be moved forward by tests, and by the operator of an
//! installation on loopback (`admin clock advance`), to test retries and expiry without waiting. A sleeper wakes when
//! the clock passes its time, by itself or because it was moved. The system time can be set too, or pass while the
//! machine is suspended: sleepers read it every [`READ_INTERVAL`]. A test whose result depends on the time between its
//! steps stops the clock.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// Longest sleep before the system time is read again. About thirty tasks of a server sleep at a time, and one for each
/// webhook endpoint or connection that waits for its next turn.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// A clock that was set back by at least this much wakes all sleepers.
const SET_BACK_MIN: Duration = Duration::from_secs(1);

/// Source of the current time. Clones share one clock.
#[derive(Debug, Clone)]
pub struct Clock {
    setting: Arc<watch::Sender<ClockSetting>>,
}

#[derive(Debug, Clone, Copy)]
struct ClockSetting {
    /// Milliseconds by which the clock is ahead of its base.
    offset_ms: i64,
    /// The base of a stopped clock; a running one is based on the system time.
    stopped_at: Option<Timestamp>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::with_offset(Duration::ZERO)
    }
}

impl Clock {
    /// Creates a clock that is ahead of the system clock.
    pub fn with_offset(offset: Duration) -> Self {
        let offset_ms = i64::try_from(offset.as_millis()).unwrap_or(i64::MAX);
        Self { setting: Arc::new(watch::Sender::new(ClockSetting { offset_ms, stopped_at: None })) }
    }

    /// Current time, in milliseconds.
    pub fn now(&self) -> Timestamp {
        let setting = *self.setting.borrow();
        let base = setting.stopped_at.unwrap_or_else(|| self.machine_now());
        let ms = base.as_millisecond().saturating_add(setting.offset_ms);
        Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
    }

    /// The time after `wait`; the end of time if that is out of range.
    pub fn after(&self, wait: Duration) -> Timestamp {
        self.now().checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// The system time without the offset, to compare with other systems' clocks.
    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    pub fn machine_now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Offset by which this clock is ahead of the system clock.
    pub fn offset(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.setting.borrow().offset_ms).unwrap_or(0))
    }

    /// Moves the clock forward and wakes sleepers whose time has passed.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.setting.send_modify(|setting| setting.offset_ms = setting.offset_ms.saturating_add(by));
    }

    /// Stops the clock: from now on only [`Self::advance`] moves it.
    pub fn stop(&self) {
        let stopped_at = Some(self.machine_now());
        self.setting.send_modify(|setting| setting.stopped_at = stopped_at);
    }

    /// Completes when the clock has advanced by `wait`. Begins again if the clock was set back: it does not complete
    /// early, and does not wait for as long as the clock had jumped.
    pub async fn sleep(&self, wait: Duration) {
        loop {
            let until = self.after(wait);
            self.sleep_until(until).await;
            if self.now() >= until {
                return;
            }
        }
    }

    /// Completes when the clock reaches `time`, at most [`READ_INTERVAL`] late if it was set forward. Completes early
    /// if the clock was set back: `time` may have been counted from the wrong time, so the caller computes it again.
    pub async fn sleep_until(&self, time: Timestamp) {
        let mut setting = self.setting.subscribe();
        let mut last = self.now();
        loop {
            let Ok(left) = Duration::try_from(time.duration_since(last)) else { return };
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(READ_INTERVAL)) => {}
                // Never an error: the sender exists as long as this clock.
                _ = setting.changed() => {}
            }
            let now = self.now();
            if Duration::try_from(last.duration_since(now)).is_ok_and(|back| back >= SET_BACK_MIN) {
                return;
            }
            last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the system time of a clock: no sleeper is notified.
    fn step(clock: &Clock, by_ms: i64) {
        clock.setting.send_if_modified(|setting| {
            setting.offset_ms += by_ms;
            false
        });
    }

    #[tokio::test]
    async fn moving_the_clock_wakes_sleepers() {
        let clock = Clock::default();
        let deadline = clock.now() + Duration::from_secs(3600);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(deadline).await }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(3601));
        sleeper.await.unwrap();
        assert!(clock.now() >= deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_begins_again_after_the_clock_was_set_back() {
        let clock = Clock::default();
        clock.stop();
        let mut waiting = std::pin::pin!(clock.sleep(Duration::from_secs(60)));
        for (by_ms, ends) in [(30_000, false), (-3_600_000, false), (59_000, false), (1_000, true)] {
            let before = tokio::time::timeout(READ_INTERVAL * 2, waiting.as_mut()).await;
            assert!(before.is_err(), "{by_ms}: the clock has not moved");
            step(&clock, by_ms);
            let after = tokio::time::timeout(READ_INTERVAL * 2, waiting.as_mut()).await;
            assert_eq!(after.is_ok(), ends, "{by_ms}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sleepers_notice_a_clock_that_was_set() {
        let clock = Clock::default();
        clock.stop();
        for (wait_s, by_ms, wakes) in [(3_600, 3_601_000, true), (3_600, -60_000, true), (3_600, 3_000_000, false)] {
            let deadline = clock.now() + Duration::from_secs(wait_s);
            let mut sleeper = std::pin::pin!(clock.sleep_until(deadline));
            let before = tokio::time::timeout(READ_INTERVAL * 10, sleeper.as_mut()).await;
            assert!(before.is_err(), "{by_ms}: the clock has not moved");
            step(&clock, by_ms);
            let after = tokio::time::timeout(READ_INTERVAL * 2, sleeper).await;
            assert_eq!(after.is_ok(), wakes, "{by_ms}");
        }
    }

    #[test]
    fn a_stopped_clock_only_moves_by_advance() {
        let clock = Clock::default();
        clock.stop();
        let stopped_at = clock.now();
        assert_eq!(clock.now(), stopped_at);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now().duration_since(stopped_at).as_millis(), 1_000);
    }
}
