//! Times of a session, from which its timeouts are measured. All but the start are durations since the start.

use std::time::Duration;

use tokio::time::Instant;

/// The times of a session.
#[derive(Debug)]
pub(crate) struct SessionTimes {
    pub(crate) began: Instant,
    pub(super) now: Duration,
    /// Time of the last complete input.
    active_at: Duration,
    /// Time of the last accepted message, at first the start of the session.
    last_message_at: Duration,
}

impl SessionTimes {
    pub(super) fn start() -> Self {
        Self { began: Instant::now(), now: Duration::ZERO, active_at: Duration::ZERO, last_message_at: Duration::ZERO }
    }

    /// Records a complete input.
    pub(super) fn record_input(&mut self) {
        self.active_at = self.now;
    }

    /// Records an accepted message.
    pub(super) fn record_message(&mut self) {
        self.last_message_at = self.now;
    }

    /// The time at which the next input is due.
    pub(super) fn input_due(&self, timeout: Duration) -> Duration {
        self.active_at + timeout
    }

    /// The time at which the next accepted message is due.
    pub(super) fn message_due(&self, timeout: Duration) -> Duration {
        self.last_message_at.saturating_add(timeout)
    }
}
