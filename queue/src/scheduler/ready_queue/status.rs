//! Status of a ready queue, for the operator: waiting tasks, connections, and what limits them.

use jiff::Timestamp;
use model::slug::PoolName;

use crate::scheduler::pacing::{Backoff, BackoffState};

/// Snapshot of a ready queue.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyQueueStatus {
    /// Name of the ready queue.
    pub name: String,
    /// Source pool.
    pub pool: PoolName,
    /// Waiting tasks.
    pub ready: usize,
    /// Queues on disk that wait for capacity here.
    pub parked: usize,
    pub connections: ConnectionUsage,
    pub throttle: ThrottleStatus,
}

/// Connections of a ready queue and their limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionUsage {
    /// Connections that are open, being opened, or waiting to be opened.
    pub counted: u32,
    /// Open connections.
    pub open: u32,
    /// Current connection limit.
    pub max: u32,
    /// Cause of a reduced number of connections.
    pub slowed: Option<SlowedConnections>,
    /// The provider's connection limit, if it is reached and ready queues wait. For hosts that have not answered yet it
    /// may be the limit of dials.
    pub provider_busy: Option<u32>,
}

/// Cause of a reduced number of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowedConnections {
    /// Connection limit before the reduction.
    pub from: u32,
    /// Reply or error that caused the last reduction.
    pub reason: String,
}

impl ConnectionUsage {
    /// True if no further connection may be opened.
    pub fn is_at_limit(&self) -> bool {
        self.counted >= self.max
    }

    /// Describes the reduction of connections and its cause.
    pub fn slowed(&self) -> Option<String> {
        let SlowedConnections { from, reason } = self.slowed.as_ref()?;
        Some(format!("slowed from {from} to {} connections because of {reason}", self.max))
    }
}

/// Limits of sending to the hosts, and the replies that caused them.
#[derive(Debug, Clone, PartialEq)]
pub struct ThrottleStatus {
    /// Time of the next probe if the hosts are unreachable.
    pub dead_until: Option<Timestamp>,
    /// True if no connection is open and the last dial failed.
    pub is_unreachable: bool,
    /// Current or last backoff.
    pub resting: Option<BackoffState>,
    /// Last error reply of the hosts, or last connection error.
    pub last_error: Option<String>,
    /// Current limit of messages per second.
    pub messages_per_second: Option<f64>,
    /// Time until which the rate allows no message.
    pub rate_until: Option<Timestamp>,
    /// Time until which the warm-up allows no message, and its messages per day.
    pub warm_up: Option<(Timestamp, u64)>,
}

impl ThrottleStatus {
    /// Describes the current backoff, with its end.
    pub fn backoff_description(&self, now: Timestamp) -> Option<(String, Timestamp)> {
        let BackoffState { kind: backoff, until, reason } =
            self.resting.as_ref().filter(|resting| resting.until > now)?;
        let description = match backoff {
            Backoff::Exponential => "in backoff",
            Backoff::Fixed(_) => "paused",
        };
        Some((format!("{description} until {until:.0} after the reply: {reason}"), *until))
    }
}
