//! Pace (throttle) of one ready queue: number of connections by feedback (AIMD), messages by rate (GCRA). Pure, no I/O.
//!
//! - Connections grow by one per round of accepted messages and halve on pushback: a 421, a 4yz before the first RCPT,
//!   or a failed connection.
//! - Circuit breaker: after several failed dials in a row the site is unreachable. One connection probes it at growing
//!   intervals until one succeeds.
//! - A reply may ask for more ([`crate::delivery::reply_policy`]). A reduced rate lasts until accepted messages have restored the
//!   previous one. A backoff suspends all sending until its end; then one connection starts again.

use std::time::Duration;

use jiff::Timestamp;
use model::destination::PaceOverride;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceLimits {
    /// Connections allowed at the start.
    pub connections_start: u32,
    /// Largest number of connections.
    pub connections_max: u32,
    /// Messages after which a connection is closed.
    pub messages_per_connection: u32,
    /// Largest number of messages per second; `None` is unlimited.
    pub messages_per_second: Option<f64>,
}

impl Default for PaceLimits {
    /// Postfix's destination limits are 5 at the start and 20 at most; large providers take both.
    fn default() -> Self {
        Self { connections_start: 5, connections_max: 20, messages_per_connection: 1_000, messages_per_second: None }
    }
}

impl PaceLimits {
    /// Applies the operator's override; limits without an override stay.
    #[must_use]
    pub fn with_order(self, pace: PaceOverride) -> Self {
        let connections_max = pace.connections_max.unwrap_or(self.connections_max);
        Self {
            connections_start: self.connections_start.min(connections_max),
            connections_max,
            messages_per_second: pace.messages_per_second.or(self.messages_per_second),
            ..self
        }
    }

    /// Returns the share of one of `nodes`, so that all together stay within the limits. The rate is divided, with a
    /// burst of one second's worth and one message per node. Connections are divided, with at least one per node.
    pub fn per_node(self, nodes: u32) -> Self {
        let nodes = nodes.max(1);
        Self {
            connections_start: (self.connections_start / nodes).max(1),
            connections_max: (self.connections_max / nodes).max(1),
            messages_per_second: self.messages_per_second.map(|rate| rate / f64::from(nodes)),
            ..self
        }
    }
}

/// Failed dials in a row after which a site is unreachable.
const DEAD_AFTER: u32 = 3;
/// First interval between probes of an unreachable site; it doubles.
const PROBE_AFTER: Duration = Duration::from_secs(30);
/// Longest interval between probes.
const PROBE_AFTER_MAX: Duration = Duration::from_secs(15 * 60);

/// First exponential backoff; it doubles until a message is accepted.
const BACKOFF_FIRST: Duration = Duration::from_secs(60);
/// Longest exponential backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(30 * 60);
/// Pushback that arrives within this interval has one cause, so the rate is reduced once.
const RATE_REDUCTION_INTERVAL: Duration = Duration::from_secs(10);
/// Lowest reduced rate, in messages per second.
const RATE_MIN: f64 = 0.1;
/// Rate assumed for a site to which little was sent so far, in messages per second.
const RATE_ASSUMED: f64 = 1.0;
/// Increase of a reduced rate per accepted message, in messages per second.
const RATE_GROWTH: f64 = 0.01;

/// Length of a backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// Doubles each time.
    Exponential,
    /// This long.
    Fixed(Duration),
}

/// A backoff and the reply that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackoffState {
    /// Kind of the backoff.
    pub kind: Backoff,
    /// End of the backoff.
    pub until: Timestamp,
    /// Reply that caused it.
    pub reason: String,
}

impl BackoffState {
    /// Keeps the backoff that ends later.
    pub(crate) fn keep_longer(longest: &mut Option<Self>, other: Self) {
        if longest.as_ref().is_none_or(|longest| longest.until < other.until) {
            *longest = Some(other);
        }
    }
}

/// Effect of a reply on the ready queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backpressure {
    /// No change; no reply was received.
    Unchanged,
    /// No change; the host responded.
    Answered,
    /// The host accepted a message: limits may grow again.
    Accepted,
    /// Reduce the number of connections.
    FewerConnections,
    /// Reduce connections and the message rate.
    SlowDown,
    /// Suspend delivery for a while, with the reason.
    BackOff(Backoff, String),
}

/// Measures the recent message rate.
#[derive(Debug, Clone, Copy, Default)]
struct RateMeter {
    since: Option<Timestamp>,
    count: u32,
    before: f64,
}

impl RateMeter {
    const WINDOW_S: f64 = 10.0;

    fn seconds(&self, now: Timestamp) -> f64 {
        self.since.map_or(0.0, |since| now.duration_since(since).as_secs_f64())
    }

    fn count(&mut self, now: Timestamp) {
        if self.since.is_none() || self.seconds(now) >= Self::WINDOW_S {
            *self = Self { since: Some(now), count: 0, before: self.rate(now) };
        }
        self.count = self.count.saturating_add(1);
    }

    /// Returns the rate in messages per second.
    fn rate(&self, now: Timestamp) -> f64 {
        let present = f64::from(self.count) / self.seconds(now).max(1.0);
        // The previous window counts while the current one is incomplete.
        if self.seconds(now) < Self::WINDOW_S { present.max(self.before) } else { present }
    }
}

/// A reduced message rate.
#[derive(Debug, Clone, Copy)]
struct ReducedRate {
    /// Current rate, messages per second.
    rate: f64,
    /// Rate before the first reduction.
    previous: f64,
    at: Timestamp,
}
/// Burst tolerance: one second's worth of messages may be sent at once.
const BURST: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Pace {
    limits: PaceLimits,
    connections: f64,
    failures: u32,
    pub dead_until: Option<Timestamp>,
    pub backoff_until: Option<Timestamp>,
    /// Number of consecutive exponential backoffs.
    backoffs: u32,
    rate_meter: RateMeter,
    reduced_rate: Option<ReducedRate>,
    /// Theoretical arrival time (GCRA) of the next message.
    free_at: Option<Timestamp>,
}

impl Pace {
    /// Creates the pace of a site without history.
    pub fn new(limits: PaceLimits) -> Self {
        Self {
            limits,
            connections: f64::from(limits.connections_start.min(limits.connections_max).max(1)),
            failures: 0,
            dead_until: None,
            backoff_until: None,
            backoffs: 0,
            rate_meter: RateMeter::default(),
            reduced_rate: None,
            free_at: None,
        }
    }

    pub fn set_limits(&mut self, limits: PaceLimits) {
        if limits.messages_per_second != self.limits.messages_per_second {
            // Debt at the former rate does not apply to the new one.
            self.free_at = None;
        }
        self.limits = limits;
        self.connections = self.connections.min(f64::from(limits.connections_max.max(1)));
    }

    /// Number of connections that may be open now.
    pub fn connections_max(&self) -> u32 {
        // Between 1 and `connections_max`, which is a u32.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u32")]
        let connections = self.connections as u32;
        if self.failures >= DEAD_AFTER { 1 } else { connections.max(1) }
    }

    /// Messages after which a connection is closed, at least 1.
    pub fn messages_per_connection(&self) -> u32 {
        self.limits.messages_per_connection.max(1)
    }

    /// True if the last dial failed.
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Time until which nothing may be sent, for either reason; `None` if sending is allowed.
    pub fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.dead_until.max(self.backoff_until).filter(|until| *until > now)
    }

    /// Current limit of messages per second: the configured one, or a lower one after pushback.
    pub fn messages_per_second(&self) -> Option<f64> {
        let configured = self.limits.messages_per_second.filter(|rate| *rate > 0.0);
        match (configured, self.reduced_rate) {
            (Some(rate), Some(slowed)) => Some(rate.min(slowed.rate)),
            (None, Some(slowed)) => Some(slowed.rate),
            (configured, None) => configured,
        }
    }

    /// Records a response of the site: it is reachable.
    pub fn record_answer(&mut self) {
        self.failures = 0;
        self.dead_until = None;
    }

    /// Ends backoff and unreachability by the operator's command. If the next dial fails, the first probe interval
    /// applies.
    pub fn reset_unavailable(&mut self) {
        self.failures = self.failures.min(DEAD_AFTER - 1);
        self.dead_until = None;
        self.backoff_until = None;
    }

    /// Records an accepted message. During a backoff the message was already in progress, so it does not end the
    /// backoff.
    pub fn record_accepted(&mut self, now: Timestamp) {
        self.record_answer();
        if self.backoff_until.is_some_and(|until| until > now) {
            return;
        }
        (self.backoff_until, self.backoffs) = (None, 0);
        self.reduced_rate = self.reduced_rate.and_then(|slowed| {
            let rate = slowed.rate + RATE_GROWTH;
            (rate < slowed.previous).then_some(ReducedRate { rate, ..slowed })
        });
        let grown = self.connections + 1.0 / self.connections;
        self.connections = grown.min(f64::from(self.limits.connections_max.max(1)));
    }

    /// Halves the number of connections.
    pub fn reduce_connections(&mut self) {
        self.connections = (self.connections / 2.0).max(1.0);
    }

    /// Halves the number of connections and the message rate, the rate at most once per `RATE_REDUCTION_INTERVAL`.
    pub fn reduce_rate(&mut self, now: Timestamp) {
        self.reduce_connections();
        let is_repeated = |slowed: &ReducedRate| {
            Duration::try_from(now.duration_since(slowed.at)).is_ok_and(|elapsed| elapsed >= RATE_REDUCTION_INTERVAL)
        };
        let (rate, previous) = match &self.reduced_rate {
            Some(slowed) if !is_repeated(slowed) => return,
            Some(slowed) => (slowed.rate, slowed.previous),
            None => {
                let rate = self.rate_meter.rate(now).max(RATE_ASSUMED);
                (rate, rate)
            }
        };
        self.reduced_rate = Some(ReducedRate { rate: (rate / 2.0).max(RATE_MIN), previous, at: now });
    }

    /// Starts a backoff and returns its end. Backoffs do not add up: a reply during a backoff belongs to a message sent
    /// before it.
    pub fn back_off(&mut self, backoff: Backoff, now: Timestamp) -> Timestamp {
        self.connections = 1.0;
        let resting = self.backoff_until.filter(|until| *until > now);
        let duration = match (backoff, resting) {
            (Backoff::Fixed(duration), _) => duration,
            (Backoff::Exponential, Some(until)) => return until,
            (Backoff::Exponential, None) => {
                let doublings = self.backoffs.min(16);
                self.backoffs = self.backoffs.saturating_add(1);
                BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
            }
        };
        let until = now.checked_add(duration).unwrap_or(Timestamp::MAX).max(resting.unwrap_or(now));
        self.backoff_until = Some(until);
        until
    }

    /// Records a failed dial. Returns true if the site is unreachable, so that its waiting tasks are deferred.
    pub fn record_unreachable(&mut self, now: Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.connections = 1.0;
        if self.failures < DEAD_AFTER {
            return false;
        }
        let doublings = (self.failures - DEAD_AFTER).min(16);
        let wait = PROBE_AFTER.saturating_mul(1 << doublings).min(PROBE_AFTER_MAX);
        self.dead_until = now.checked_add(wait).ok();
        true
    }

    /// Time until which the rate limit allows no message.
    pub fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.messages_per_second()?;
        self.free_at?.checked_sub(BURST).ok().filter(|allowed| *allowed > now)
    }

    /// Takes the right to send one message, or returns the time to try again.
    pub fn try_acquire(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        if let Some(allowed) = self.rate_until(now) {
            return Err(allowed);
        }
        self.rate_meter.count(now);
        let Some(rate) = self.messages_per_second() else { return Ok(()) };
        let interval = Duration::from_secs_f64((1.0 / rate).min(86_400.0));
        self.free_at = self.free_at.unwrap_or(now).max(now).checked_add(interval).ok();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn nodes_together_stay_within_the_limits() {
        let limits = PaceLimits { connections_max: 20, messages_per_second: Some(8.0), ..PaceLimits::default() };
        for nodes in [1, 2, 3, 50] {
            let share = limits.per_node(nodes);
            assert!(share.connections_max * nodes <= 20.max(nodes), "{nodes}");
            let mut paces = vec![Pace::new(share); nodes as usize];
            let mut acquired = 0;
            for tick in 0..600 {
                let now = at(0) + Duration::from_millis(tick * 100);
                for pace in &mut paces {
                    while pace.try_acquire(now).is_ok() {
                        acquired += 1;
                    }
                }
            }
            assert!((8 * 55..=8 * 61 + nodes).contains(&acquired), "{nodes} nodes: {acquired} in a minute");
        }
    }

    #[test]
    fn grows_on_success_and_halves_on_pushback() {
        let mut pace = Pace::new(PaceLimits::default());
        assert_eq!(pace.connections_max(), 5);
        (0..1_000).for_each(|_| pace.record_accepted(at(0)));
        assert_eq!(pace.connections_max(), 20);
        pace.reduce_connections();
        assert_eq!(pace.connections_max(), 10);
        (0..10).for_each(|_| pace.reduce_connections());
        assert_eq!(pace.connections_max(), 1);
    }

    #[test]
    fn an_unreachable_site_is_probed_at_growing_intervals() {
        let mut pace = Pace::new(PaceLimits::default());
        assert!(!pace.record_unreachable(at(0)) && !pace.record_unreachable(at(0)));
        assert!(pace.record_unreachable(at(0)));
        assert_eq!(pace.dead_until, Some(at(30)));
        assert!(pace.record_unreachable(at(30)));
        assert_eq!(pace.dead_until, Some(at(90)));
        (0..20).for_each(|_| assert!(pace.record_unreachable(at(90))));
        assert_eq!(pace.dead_until, Some(at(90 + 15 * 60)));
        assert_eq!(pace.connections_max(), 1);
        pace.reset_unavailable();
        assert_eq!(pace.unavailable_until(at(90)), None);
        assert!(pace.record_unreachable(at(100)));
        assert_eq!(pace.dead_until, Some(at(130)), "the reset restarts the intervals");
        pace.record_answer();
        assert_eq!(pace.dead_until, None);
    }

    #[test]
    fn a_backoff_ends_and_starts_again_with_one_connection() {
        let mut pace = Pace::new(PaceLimits::default());
        assert_eq!(pace.back_off(Backoff::Exponential, at(0)), at(60));
        assert_eq!(pace.back_off(Backoff::Exponential, at(1)), at(60), "backoffs do not add up");
        pace.record_accepted(at(2));
        assert_eq!(
            (pace.unavailable_until(at(3)), pace.connections_max()),
            (Some(at(60)), 1),
            "the message was in progress before the backoff"
        );
        assert_eq!(pace.unavailable_until(at(60)), None);
        assert_eq!(pace.back_off(Backoff::Exponential, at(60)), at(180), "the backoff doubles");
        (0..20).for_each(|n| _ = pace.back_off(Backoff::Exponential, at(10_000 * (n + 1))));
        assert_eq!(pace.back_off(Backoff::Exponential, at(1_000_000)), at(1_000_000 + 30 * 60));
        pace.record_accepted(at(2_000_000));
        assert_eq!(
            pace.back_off(Backoff::Exponential, at(2_000_000)),
            at(2_000_060),
            "an accepted message resets the backoff"
        );
        assert_eq!(pace.back_off(Backoff::Fixed(Duration::from_secs(900)), at(2_000_001)), at(2_000_901));
        assert_eq!(pace.back_off(Backoff::Fixed(Duration::from_secs(1)), at(2_000_002)), at(2_000_901));
        pace.reset_unavailable();
        assert_eq!(pace.unavailable_until(at(2_000_003)), None, "the operator ended the backoff");
    }

    #[test]
    fn a_reduced_rate_recovers_with_accepted_messages() {
        let mut pace = Pace::new(PaceLimits::default());
        for tick in 0..100 {
            pace.try_acquire(at(0) + Duration::from_millis(tick * 100)).unwrap();
        }
        pace.reduce_rate(at(10));
        let slow = pace.messages_per_second().unwrap();
        assert!((4.0..6.0).contains(&slow), "half of ten a second: {slow}");
        pace.reduce_rate(at(11));
        assert_eq!(pace.messages_per_second(), Some(slow), "pushback within the interval has one cause");
        pace.reduce_rate(at(20));
        assert_eq!(pace.messages_per_second(), Some(slow / 2.0));
        (0..100).for_each(|n| _ = pace.try_acquire(at(30 + n)));
        assert!(pace.try_acquire(at(130)).is_ok() && (0..10).any(|_| pace.try_acquire(at(130)).is_err()));
        (0..1_000).for_each(|_| pace.record_accepted(at(200)));
        assert_eq!(pace.messages_per_second(), None, "the rate has recovered");
        let mut little = Pace::new(PaceLimits::default());
        little.reduce_rate(at(0));
        assert_eq!(little.messages_per_second(), Some(RATE_ASSUMED / 2.0));
    }

    #[test]
    fn the_rate_allows_a_burst_and_then_single_messages() {
        let limits = PaceLimits { messages_per_second: Some(2.0), ..PaceLimits::default() };
        let mut pace = Pace::new(limits);
        let mut acquired = 0;
        while pace.try_acquire(at(0)).is_ok() {
            acquired += 1;
        }
        assert_eq!(acquired, 3);
        assert!(pace.try_acquire(at(1)).is_ok() && pace.try_acquire(at(1)).is_ok());
        assert!(pace.try_acquire(at(1)).is_err());
    }
}
