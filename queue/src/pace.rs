//! How fast a site is served: connections by feedback, messages by rate. Pure.
//!
//! Connections grow by one for each round of successes (one over the limit, per success) and halve
//! when the site pushes back: 421, a 4yz before any recipient was named, a connection that fails.
//! A site that cannot be reached at all several times in a row is dead: it is probed by one
//! connection, at growing intervals, until one succeeds. One that asks for it ([`crate::judgement`]) gets messages
//! more slowly until it has taken as many again, or rests: nothing is sent there until the rest is over, and then
//! one connection begins anew.

use std::time::Duration;

use jiff::Timestamp;
use mail::destination::PaceOverride;

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
        Self { connections_start: 5, connections_max: 20, messages_per_connection: 1_000, messages_per_second: None }
    }
}

impl PaceLimits {
    /// As the operator has ordered; what nothing was ordered about stays.
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

    /// What each of `nodes` may give to a site, so that all together stay within the limits: the rate, with a
    /// burst of one second's worth and a message a node; the connections, or one a node where there are more
    /// nodes than connections.
    #[must_use]
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

/// Failed dials in a row after which a site is dead.
const DEAD_AFTER: u32 = 3;
/// The first wait before a dead site is probed; it doubles.
const PROBE_AFTER: Duration = Duration::from_secs(30);
/// The longest.
const PROBE_AFTER_MAX: Duration = Duration::from_secs(15 * 60);

/// The first rest of a site that wants to be left alone; it doubles until a message is taken.
const BACKOFF_FIRST: Duration = Duration::from_secs(60);
/// The longest.
const BACKOFF_MAX: Duration = Duration::from_secs(30 * 60);
/// What connections hear within this time they hear for one reason: it slows down once.
const RATE_REDUCTION_INTERVAL: Duration = Duration::from_secs(10);
/// Never slower than this, in messages a second.
const RATE_MIN: f64 = 0.1;
/// Who has just begun to send there is taken to send so many a second.
const RATE_ASSUMED: f64 = 1.0;
/// So much faster for each message that is taken: twice as fast after a good minute.
const RATE_GROWTH: f64 = 0.01;

/// How a site is left alone that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// For longer each time.
    Exponential,
    /// For so long.
    Fixed(Duration),
}

/// How many messages go of late.
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

    /// Messages a second.
    fn rate(&self, now: Timestamp) -> f64 {
        let present = f64::from(self.count) / self.seconds(now).max(1.0);
        // What went before counts for as long as the present is young.
        if self.seconds(now) < Self::WINDOW_S { present.max(self.before) } else { present }
    }
}

/// A site that gets messages more slowly than it did.
#[derive(Debug, Clone, Copy)]
struct ReducedRate {
    /// Messages a second.
    rate: f64,
    /// As many as went when it first asked for fewer.
    previous: f64,
    at: Timestamp,
}
/// By how much a rate may be ahead: a second's worth may go at once.
const BURST: Duration = Duration::from_secs(1);

/// The pace of one site.
#[derive(Debug, Clone)]
pub struct Pace {
    limits: PaceLimits,
    connections: f64,
    failures: u32,
    dead_until: Option<Timestamp>,
    backoff_until: Option<Timestamp>,
    /// Rests of growing length, one after the other.
    backoffs: u32,
    rate_meter: RateMeter,
    reduced_rate: Option<ReducedRate>,
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
            backoff_until: None,
            backoffs: 0,
            rate_meter: RateMeter::default(),
            reduced_rate: None,
            free_at: None,
        }
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, limits: PaceLimits) {
        if limits.messages_per_second != self.limits.messages_per_second {
            // What was paid for at another rate is forgotten.
            self.free_at = None;
        }
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

    /// Whether the last connection could not be opened.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Until when the site is left alone, because it cannot be reached.
    #[must_use]
    pub fn dead_until(&self) -> Option<Timestamp> {
        self.dead_until
    }

    /// Until when it is left alone, because it asked for it.
    #[must_use]
    pub fn backoff_until(&self) -> Option<Timestamp> {
        self.backoff_until
    }

    /// Until when it is left alone, for whatever reason; none when it is not.
    #[must_use]
    pub fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.dead_until.max(self.backoff_until).filter(|until| *until > now)
    }

    /// Messages a second at most: as configured, or fewer because the site asked for it.
    #[must_use]
    pub fn messages_per_second(&self) -> Option<f64> {
        let configured = self.limits.messages_per_second.filter(|rate| *rate > 0.0);
        match (configured, self.reduced_rate) {
            (Some(rate), Some(slowed)) => Some(rate.min(slowed.rate)),
            (None, Some(slowed)) => Some(slowed.rate),
            (configured, None) => configured,
        }
    }

    /// The site speaks: it can be reached.
    pub fn record_answer(&mut self) {
        self.failures = 0;
        self.dead_until = None;
    }

    /// The operator says that the site is worth another try now: if that fails, it waits as if for the first time.
    pub fn reset_unavailable(&mut self) {
        self.failures = self.failures.min(DEAD_AFTER - 1);
        self.dead_until = None;
        self.backoff_until = None;
    }

    /// The site took a message. While it rests that was one that was under way, and says nothing.
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

    /// The site asked for less.
    pub fn reduce_connections(&mut self) {
        self.connections = (self.connections / 2.0).max(1.0);
    }

    /// The site asked for messages more slowly.
    pub fn reduce_rate(&mut self, now: Timestamp) {
        self.reduce_connections();
        let again = |slowed: &ReducedRate| {
            Duration::try_from(now.duration_since(slowed.at)).is_ok_and(|past| past >= RATE_REDUCTION_INTERVAL)
        };
        let (rate, was) = match &self.reduced_rate {
            Some(slowed) if !again(slowed) => return,
            Some(slowed) => (slowed.rate, slowed.previous),
            None => {
                let rate = self.rate_meter.rate(now).max(RATE_ASSUMED);
                (rate, rate)
            }
        };
        self.reduced_rate = Some(ReducedRate { rate: (rate / 2.0).max(RATE_MIN), previous: was, at: now });
    }

    /// The site asked to be left alone: until when it is. Rests do not add up: what is said while it rests was
    /// said to who was there before.
    pub fn back_off(&mut self, rest: Backoff, now: Timestamp) -> Timestamp {
        self.connections = 1.0;
        let resting = self.backoff_until.filter(|until| *until > now);
        let lasts = match (rest, resting) {
            (Backoff::Fixed(lasts), _) => lasts,
            (Backoff::Exponential, Some(until)) => return until,
            (Backoff::Exponential, None) => {
                let doublings = self.backoffs.min(16);
                self.backoffs = self.backoffs.saturating_add(1);
                BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MAX)
            }
        };
        let until = now.checked_add(lasts).unwrap_or(Timestamp::MAX).max(resting.unwrap_or(now));
        self.backoff_until = Some(until);
        until
    }

    /// The site could not be reached. True when that makes it dead: what waits for it is put off.
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

    /// Until when the rate lets no message go.
    #[must_use]
    pub fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.messages_per_second()?;
        self.free_at?.checked_sub(BURST).ok().filter(|allowed| *allowed > now)
    }

    /// Takes the right to send one message; or says when to ask again.
    pub fn try_acquire(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        if let Some(allowed) = self.rate_until(now) {
            return Err(allowed);
        }
        self.rate_meter.count(now);
        let Some(rate) = self.messages_per_second() else { return Ok(()) };
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
        let limits = PaceLimits { connections_max: 20, messages_per_second: Some(8.0), ..PaceLimits::default() };
        for nodes in [1, 2, 3, 50] {
            let share = limits.per_node(nodes);
            assert!(share.connections_max * nodes <= 20.max(nodes), "{nodes}");
            let mut paces = vec![Pace::new(share); nodes as usize];
            let mut taken = 0;
            for tick in 0..600 {
                let now = at(0) + Duration::from_millis(tick * 100);
                for pace in &mut paces {
                    while pace.try_acquire(now).is_ok() {
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
        (0..1_000).for_each(|_| pace.record_accepted(at(0)));
        assert_eq!(pace.connections_max(), 20);
        pace.reduce_connections();
        assert_eq!(pace.connections_max(), 10);
        (0..10).for_each(|_| pace.reduce_connections());
        assert_eq!(pace.connections_max(), 1);
    }

    #[test]
    fn a_dead_site_is_probed_ever_more_seldom_until_it_answers() {
        let mut pace = Pace::new(PaceLimits::default());
        assert!(!pace.record_unreachable(at(0)) && !pace.record_unreachable(at(0)));
        assert!(pace.record_unreachable(at(0)));
        assert_eq!(pace.dead_until(), Some(at(30)));
        assert!(pace.record_unreachable(at(30)));
        assert_eq!(pace.dead_until(), Some(at(90)));
        (0..20).for_each(|_| assert!(pace.record_unreachable(at(90))));
        assert_eq!(pace.dead_until(), Some(at(90 + 15 * 60)));
        assert_eq!(pace.connections_max(), 1);
        pace.reset_unavailable();
        assert_eq!(pace.unavailable_until(at(90)), None);
        assert!(pace.record_unreachable(at(100)));
        assert_eq!(pace.dead_until(), Some(at(130)), "an order does not make the pause longer");
        pace.record_answer();
        assert_eq!(pace.dead_until(), None);
    }

    #[test]
    fn a_site_that_asks_for_it_rests_and_begins_anew() {
        let mut pace = Pace::new(PaceLimits::default());
        assert_eq!(pace.back_off(Backoff::Exponential, at(0)), at(60));
        assert_eq!(pace.back_off(Backoff::Exponential, at(1)), at(60), "the other connections hear it too");
        pace.record_accepted(at(2));
        assert_eq!((pace.unavailable_until(at(3)), pace.connections_max()), (Some(at(60)), 1), "it was under way");
        assert_eq!(pace.unavailable_until(at(60)), None);
        assert_eq!(pace.back_off(Backoff::Exponential, at(60)), at(180), "longer each time");
        (0..20).for_each(|n| _ = pace.back_off(Backoff::Exponential, at(10_000 * (n + 1))));
        assert_eq!(pace.back_off(Backoff::Exponential, at(1_000_000)), at(1_000_000 + 30 * 60));
        pace.record_accepted(at(2_000_000));
        assert_eq!(pace.back_off(Backoff::Exponential, at(2_000_000)), at(2_000_060), "it had taken one");
        assert_eq!(pace.back_off(Backoff::Fixed(Duration::from_secs(900)), at(2_000_001)), at(2_000_901));
        assert_eq!(pace.back_off(Backoff::Fixed(Duration::from_secs(1)), at(2_000_002)), at(2_000_901));
        pace.reset_unavailable();
        assert_eq!(pace.unavailable_until(at(2_000_003)), None, "the operator says so");
    }

    #[test]
    fn a_site_that_asks_for_it_gets_messages_more_slowly_until_it_takes_them() {
        let mut pace = Pace::new(PaceLimits::default());
        for tick in 0..100 {
            pace.try_acquire(at(0) + Duration::from_millis(tick * 100)).unwrap();
        }
        pace.reduce_rate(at(10));
        let slow = pace.messages_per_second().unwrap();
        assert!((4.0..6.0).contains(&slow), "half of ten a second: {slow}");
        pace.reduce_rate(at(11));
        assert_eq!(pace.messages_per_second(), Some(slow), "for the same reason");
        pace.reduce_rate(at(20));
        assert_eq!(pace.messages_per_second(), Some(slow / 2.0));
        (0..100).for_each(|n| _ = pace.try_acquire(at(30 + n)));
        assert!(pace.try_acquire(at(130)).is_ok() && (0..10).any(|_| pace.try_acquire(at(130)).is_err()));
        (0..1_000).for_each(|_| pace.record_accepted(at(200)));
        assert_eq!(pace.messages_per_second(), None, "as fast as before");
        let mut little = Pace::new(PaceLimits::default());
        little.reduce_rate(at(0));
        assert_eq!(little.messages_per_second(), Some(RATE_ASSUMED / 2.0));
    }

    #[test]
    fn the_rate_lets_a_burst_go_and_then_one_at_a_time() {
        let limits = PaceLimits { messages_per_second: Some(2.0), ..PaceLimits::default() };
        let mut pace = Pace::new(limits);
        let mut gone = 0;
        while pace.try_acquire(at(0)).is_ok() {
            gone += 1;
        }
        assert_eq!(gone, 3);
        assert!(pace.try_acquire(at(1)).is_ok() && pace.try_acquire(at(1)).is_ok());
        assert!(pace.try_acquire(at(1)).is_err());
    }
}
