//! How a site stands, for the operator: what waits, what is open, and what keeps it from more.

use jiff::Timestamp;
use mail::given_name::PoolName;

use super::BackoffState;
use crate::pace::Backoff;

/// Why fewer connections may be open to a site than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowedConnections {
    /// How many could be open before.
    pub from: u32,
    /// The reply, or the error, that lowered the number last.
    pub because: String,
}

/// How a site stands, for the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteStanding {
    /// Its name.
    pub name: String,
    /// The pool of addresses that it is served from.
    pub pool: PoolName,
    /// Tasks that wait here.
    pub ready: usize,
    /// Connections that are open, are being opened, or wait to be.
    pub connections: u32,
    /// Those of them that are open.
    pub open: u32,
    /// How many may be open.
    pub connections_max: u32,
    /// Until when it is left alone because it cannot be reached.
    pub dead_until: Option<Timestamp>,
    /// Until when it is left alone because it asked for it; it may be over.
    pub resting: Option<BackoffState>,
    /// The last refusal of its hosts, or error on the way to them.
    pub last_error: Option<String>,
    /// Why fewer connections may be open than before.
    pub slowed: Option<SlowedConnections>,
    /// Whether the last connection could not be opened.
    pub is_unreachable: bool,
    /// Messages a second at most.
    pub messages_per_second: Option<f64>,
    /// Until when its rate lets nothing more go.
    pub rate_until: Option<Timestamp>,
    /// Until when the warm-up of the pool lets nothing more go, and how many messages it lets go a day.
    pub warm_up: Option<(Timestamp, u64)>,
    /// How many connections its provider may have (or, to sites that are not known to answer, this one among them),
    /// where that many are taken and sites wait for one.
    pub provider_busy: Option<u32>,
    /// Queues that wait on disk for room here.
    pub parked: usize,
}

impl SiteStanding {
    /// From how many connections to how many it was slowed, and what for.
    #[must_use]
    pub fn slowed(&self) -> Option<String> {
        let SlowedConnections { from, because } = self.slowed.as_ref()?;
        Some(format!("slowed from {from} to {} connections because of {because}", self.connections_max))
    }

    /// How it rests now, and until when.
    #[must_use]
    pub fn rests(&self, now: Timestamp) -> Option<(String, Timestamp)> {
        let BackoffState { kind: rest, until, reason: because } =
            self.resting.as_ref().filter(|resting| resting.until > now)?;
        let how = match rest {
            Backoff::Exponential => "left alone",
            Backoff::Fixed(_) => "paused",
        };
        Some((format!("{how} until {until:.0} because it said: {because}"), *until))
    }
}
