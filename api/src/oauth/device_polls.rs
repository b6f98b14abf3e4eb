//! Polls of devices that wait for the user's decision (RFC 8628 3.5), in bounded memory.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use model::credential::SecretHash;

/// Time between polls at first.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Added by each poll that comes too early.
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// Devices with a poll; more are not limited.
const DEVICES_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollDecision {
    Wait,
    SlowDown,
}

#[derive(Debug, Clone, Copy)]
struct DevicePoll {
    last: Timestamp,
    interval: Duration,
    expires_at: Timestamp,
}

/// Polls by the hash of the device code.
#[derive(Debug, Default)]
pub struct DevicePolls(Mutex<HashMap<SecretHash, DevicePoll>>);

impl DevicePolls {
    /// Records a poll of a pending device.
    pub(super) fn poll(&self, device: SecretHash, expires_at: Timestamp, now: Timestamp) -> PollDecision {
        let mut polls = self.0.lock();
        if polls.len() >= DEVICES_MAX {
            polls.retain(|_, poll| now < poll.expires_at);
        }
        let Some(poll) = polls.get_mut(&device) else {
            if polls.len() < DEVICES_MAX {
                polls.insert(device, DevicePoll { last: now, interval: POLL_INTERVAL, expires_at });
            }
            return PollDecision::Wait;
        };
        // A second of tolerance for timers and networks.
        let due = poll.last.checked_add(poll.interval.saturating_sub(Duration::from_secs(1)));
        poll.last = now;
        if due.is_ok_and(|due| now < due) {
            poll.interval = poll.interval.saturating_add(SLOW_DOWN);
            return PollDecision::SlowDown;
        }
        PollDecision::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_polls_too_fast_is_slowed_down() {
        let (polls, device) = (DevicePolls::default(), SecretHash::from_bytes(b"device"));
        let poll = |second| {
            let at = |second| Timestamp::from_second(second).unwrap();
            polls.poll(device, at(600), at(second))
        };
        use PollDecision::{SlowDown, Wait};
        for (second, decision) in [(0, Wait), (5, Wait), (6, SlowDown), (11, SlowDown), (30, Wait), (40, SlowDown)] {
            assert_eq!(poll(second), decision, "{second}");
        }
    }
}
