//! State of a ready queue, for the operator: waiting tasks, connections, and what limits them.

use jiff::Timestamp;
use model::slug::PoolName;

use crate::pacing::{Backoff, BackoffState};

/// Cause of a reduced number of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowedConnections {
    /// Connection limit before the reduction.
    pub from: u32,
    /// Reply or error that caused the last reduction.
    pub reason: String,
}

/// Snapshot of a ready queue.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteStanding {
    /// Name of the ready queue.
    pub name: String,
    /// Source pool.
    pub pool: PoolName,
    /// Waiting tasks.
    pub ready: usize,
    /// Connections that are open, being opened, or waiting to be opened.
    pub connections: u32,
    /// Open connections.
    pub open: u32,
    /// Current connection limit.
    pub connections_max: u32,
    /// Time of the next probe if the hosts are unreachable.
    pub dead_until: Option<Timestamp>,
    /// Current or last backoff.
    pub resting: Option<BackoffState>,
    /// Last error reply of the hosts, or last connection error.
    pub last_error: Option<String>,
    /// Cause of a reduced number of connections.
    pub slowed: Option<SlowedConnections>,
    /// True if no connection is open and the last dial failed.
    pub is_unreachable: bool,
    /// Current limit of messages per second.
    pub messages_per_second: Option<f64>,
    /// Time until which the rate allows no message.
    pub rate_until: Option<Timestamp>,
    /// Time until which the warm-up allows no message, and its messages per day.
    pub warm_up: Option<(Timestamp, u64)>,
    /// The provider's connection limit, if it is reached and ready queues wait. For hosts that have not answered yet it
    /// may be the limit of dials.
    pub provider_busy: Option<u32>,
    /// Queues on disk that wait for capacity here.
    pub parked: usize,
}

impl SiteStanding {
    /// Describes the reduction of connections and its cause.
    #[must_use]
    pub fn slowed(&self) -> Option<String> {
        let SlowedConnections { from, reason } = self.slowed.as_ref()?;
        Some(format!("slowed from {from} to {} connections because of {reason}", self.connections_max))
    }

    /// Describes the current backoff, with its end.
    #[must_use]
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
