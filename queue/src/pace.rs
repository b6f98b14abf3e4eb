//! How fast a site is served: connections by feedback, messages by rate. Pure.
//!
//! Connections grow by one for each round of successes (one over the limit, per success) and halve
//! when the site pushes back: 421, a 4yz before any recipient was named, a connection that fails.
//! A site that cannot be reached at all several times in a row is dead: it is probed by one
//! connection, at growing intervals, until one succeeds.

use std::time::Duration;

use jiff::Timestamp;

/// Limits of one site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceLimits {
    /// Connections at the start.
    pub connections_start: u32,
    /// Connections at most.
    pub connections_max: u32,
    /// Messages over one connection, then it is closed.
    pub messages_per_connection: u32,
    /// Messages a second at most; none is no limit.
    pub messages_per_second: Option<f64>,
}

impl Default for PaceLimits {
    /// Postfix's destination limits are 5 at the start and 20 at most; large providers take both.
    fn default() -> Self {
        Self {
            connections_start: 5,
            connections_max: 20,
            messages_per_connection: 1_000,
            messages_per_second: None,
        }
    }
}

impl PaceLimits {
    /// What each of `nodes` may give to a site, so that all together stay within the limits: the rate, with a
    /// burst of one second's worth and a message a node; the connections, or one a node where there are more
    /// nodes than connections.
    #[must_use]
    pub fn share(self, nodes: u32) -> Self {
        let nodes = nodes.max(1);
        Self {
            connections_start: (self.connections_start / nodes).max(1),
            connections_max: (self.connections_max / nodes).max(1),
            messages_per_second: self.messages_per_second.map(|rate| rate / f64::from(nodes)),
            ..self
        }
    }
}

/// Failed dials in a row after which a site is dead.
const DEAD_AFTER: u32 = 3;
/// The first wait before a dead site is probed; it doubles.
const PROBE_AFTER: Duration = Duration::from_secs(30);
/// The longest.
const PROBE_AFTER_MAX: Duration = Duration::from_secs(15 * 60);

/// By how much a rate may be ahead: a second's worth may go at once.
const BURST: Duration = Duration::from_secs(1);

/// The pace of one site.
#[derive(Debug, Clone)]
pub struct Pace {
    limits: PaceLimits,
    connections: f64,
    failures: u32,
    dead_until: Option<Timestamp>,
    /// When the next message may go by the rate (the theoretical arrival time of a GCRA).
    free_at: Option<Timestamp>,
}

impl Pace {
    /// The pace of a site that nothing is known about.
    #[must_use]
    pub fn new(limits: PaceLimits) -> Self {
        Self {
            limits,
            connections: f64::from(limits.connections_start.min(limits.connections_max).max(1)),
            failures: 0,
            dead_until: None,
            free_at: None,
        }
    }

    /// Changes the limits.
    pub fn limit(&mut self, limits: PaceLimits) {
        self.limits = limits;
        self.connections = self.connections.min(f64::from(limits.connections_max.max(1)));
    }

    /// How many connections may be open now.
    #[must_use]
    pub fn connections_max(&self) -> u32 {
        // At least one and at most `connections_max`, both whole.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a u32")]
        let whole = self.connections as u32;
        if self.failures >= DEAD_AFTER { 1 } else { whole.max(1) }
    }

    /// How many messages one connection carries.
    #[must_use]
    pub fn messages_per_connection(&self) -> u32 {
        self.limits.messages_per_connection.max(1)
    }

    /// Until when the site is left alone.
    #[must_use]
    pub fn dead_until(&self) -> Option<Timestamp> {
        self.dead_until
    }

    /// The site speaks: it can be reached.
    pub fn answered(&mut self) {
        self.failures = 0;
        self.dead_until = None;
    }

    /// The operator says that the site is worth another try now.
    pub fn revive(&mut self) {
        self.dead_until = None;
    }

    /// The site took a message.
    pub fn accepted(&mut self) {
        self.answered();
        let grown = self.connections + 1.0 / self.connections;
        self.connections = grown.min(f64::from(self.limits.connections_max.max(1)));
    }

    /// The site asked for less.
    pub fn pushed_back(&mut self) {
        self.connections = (self.connections / 2.0).max(1.0);
    }

    /// The site could not be reached. True when that makes it dead: what waits for it is put off.
    pub fn unreachable(&mut self, now: Timestamp) -> bool {
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

    /// Until when the rate lets no message go.
    #[must_use]
    pub fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.limits.messages_per_second.filter(|rate| *rate > 0.0)?;
        self.free_at?.checked_sub(BURST).ok().filter(|allowed| *allowed > now)
    }

    /// Takes the right to send one message; or says when to ask again.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        let Some(rate) = self.limits.messages_per_second.filter(|rate| *rate > 0.0) else { return Ok(()) };
        if let Some(allowed) = self.rate_until(now) {
            return Err(allowed);
        }
        let apart = Duration::from_secs_f64((1.0 / rate).min(86_400.0));
        self.free_at = self.free_at.unwrap_or(now).max(now).checked_add(apart).ok();
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
        let limits =
            PaceLimits { connections_max: 20, messages_per_second: Some(8.0), ..PaceLimits::default() };
        for nodes in [1, 2, 3, 50] {
            let share = limits.share(nodes);
            assert!(share.connections_max * nodes <= 20.max(nodes), "{nodes}");
            let mut paces = vec![Pace::new(share); nodes as usize];
            let mut taken = 0;
            for tick in 0..600 {
                let now = at(0) + Duration::from_millis(tick * 100);
                for pace in &mut paces {
                    while pace.take(now).is_ok() {
                        taken += 1;
                    }
                }
            }
            assert!((8 * 55..=8 * 61 + nodes).contains(&taken), "{nodes} nodes: {taken} in a minute");
        }
    }

    #[test]
    fn grows_on_success_and_halves_on_pushback() {
        let mut pace = Pace::new(PaceLimits::default());
        assert_eq!(pace.connections_max(), 5);
        (0..1_000).for_each(|_| pace.accepted());
        assert_eq!(pace.connections_max(), 20);
        pace.pushed_back();
        assert_eq!(pace.connections_max(), 10);
        (0..10).for_each(|_| pace.pushed_back());
        assert_eq!(pace.connections_max(), 1);
    }

    #[test]
    fn a_dead_site_is_probed_ever_more_seldom_until_it_answers() {
        let mut pace = Pace::new(PaceLimits::default());
        assert!(!pace.unreachable(at(0)) && !pace.unreachable(at(0)));
        assert!(pace.unreachable(at(0)));
        assert_eq!(pace.dead_until(), Some(at(30)));
        assert!(pace.unreachable(at(30)));
        assert_eq!(pace.dead_until(), Some(at(90)));
        (0..20).for_each(|_| assert!(pace.unreachable(at(90))));
        assert_eq!(pace.dead_until(), Some(at(90 + 15 * 60)));
        assert_eq!(pace.connections_max(), 1);
        pace.answered();
        assert_eq!(pace.dead_until(), None);
    }

    #[test]
    fn the_rate_lets_a_burst_go_and_then_one_at_a_time() {
        let limits = PaceLimits { messages_per_second: Some(2.0), ..PaceLimits::default() };
        let mut pace = Pace::new(limits);
        let mut gone = 0;
        while pace.take(at(0)).is_ok() {
            gone += 1;
        }
        assert_eq!(gone, 3);
        assert!(pace.take(at(1)).is_ok() && pace.take(at(1)).is_ok());
        assert!(pace.take(at(1)).is_err());
    }
}
