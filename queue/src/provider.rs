//! A provider: what all sites whose mail hosts lie under one name may be given together.
//!
//! Thousands of domains with hosts of their own may be one provider's (`example-com.mail.protection.outlook.com`), who
//! counts them together. Where a pace is configured or ordered for a name, connections and messages a second are those of
//! all sites under it; they take turns. The large ones are known by their names ([`mail::classify::provider`]), and have
//! a budget of connections without being asked. What one of their hosts says of us is said for all: they rest together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::pace::{Pace, PaceLimits, Rest};
use crate::places::{Place, Places};
use crate::site::Resting;

/// Messages over a connection while other sites of the provider wait for one.
const TURN_MESSAGES: u32 = 50;

#[derive(Debug)]
struct State {
    /// Counts the messages.
    pace: Pace,
    /// Why they rest, or did last.
    resting: Option<Resting>,
}

/// What sites under one name have in common.
#[derive(Debug)]
pub(crate) struct Provider {
    state: Mutex<State>,
    connections: Arc<Places>,
    /// Of them, those that lead to sites of which it is not known that they answer: silent ones hold a connection for
    /// as long as a dial takes, and however many they are, half of the connections stay with those that do answer.
    dials: Arc<Places>,
}

/// A connection to a provider; none where its sites have nothing in common.
#[derive(Debug)]
pub(crate) struct Share(Option<Held>);

#[derive(Debug)]
struct Held {
    provider: Arc<Provider>,
    _connection: Place,
    dial: Option<Dial>,
}

/// A dial of a site that is not known to answer: one of the provider's, and the only one of the site.
#[derive(Debug)]
struct Dial {
    _of_provider: Place,
    _of_site: Place,
}

fn dials(connections_max: u32) -> u32 {
    (connections_max / 2).max(1)
}

impl Provider {
    pub(crate) fn new(limits: PaceLimits) -> Self {
        let connections_max = limits.connections_max.max(1);
        let state = State { pace: Pace::new(limits), resting: None };
        Self {
            state: Mutex::new(state),
            connections: Arc::new(Places::new(connections_max)),
            dials: Arc::new(Places::new(dials(connections_max))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limits. Connections beyond them are not closed; they are the last of their kind.
    pub(crate) fn limit(&self, limits: PaceLimits) {
        self.lock().pace.limit(limits);
        let connections_max = limits.connections_max.max(1);
        self.connections.limit(connections_max);
        self.dials.limit(dials(connections_max));
    }

    /// They asked to be left alone: until when they are.
    pub(crate) fn rest(&self, rest: Rest, because: &str, now: Timestamp) -> Timestamp {
        let mut state = self.lock();
        let until = state.pace.rest(rest, now);
        Resting::keep_longer(&mut state.resting, Resting { rest, until, because: because.to_owned() });
        until
    }

    /// Until when they are left alone.
    pub(crate) fn rest_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().pace.alone_until(now)
    }

    /// Why they rest, or did last.
    pub(crate) fn resting(&self) -> Option<Resting> {
        self.lock().resting.clone()
    }

    /// One of them took a message.
    pub(crate) fn accepted(&self, now: Timestamp) {
        self.lock().pace.accepted(now);
    }

    /// The operator says: try them now.
    pub(crate) fn revive(&self) {
        let mut state = self.lock();
        state.pace.revive();
        state.resting = None;
    }

    /// Until when the rate lets no message go.
    pub(crate) fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().pace.rate_until(now)
    }

    /// Takes the right to send one message; or says when to ask again.
    pub(crate) fn take(&self, now: Timestamp) -> Result<(), Timestamp> {
        self.lock().pace.take(now)
    }

    /// How many connections may be open, where sites wait for one: all, or to a site that is not known to answer.
    pub(crate) fn busy(&self, answers: bool) -> Option<u32> {
        if self.is_awaited() {
            return Some(self.connections.all());
        }
        (!answers && self.dials.is_awaited()).then(|| self.dials.all())
    }

    /// Whether sites wait for a connection that any of them may have.
    pub(crate) fn is_awaited(&self) -> bool {
        self.connections.is_awaited()
    }

    /// Waits for a connection; who waits longest gets the next.
    pub(crate) async fn share(self: &Arc<Self>) -> Share {
        let _connection = self.connections.take().await;
        Share(Some(Held { provider: Arc::clone(self), _connection, dial: None }))
    }

    /// Waits for a connection to a site that is not known to answer; `of_site` are the site's own
    /// places to dial.
    pub(crate) async fn share_unknown(self: &Arc<Self>, of_site: &Arc<Places>) -> Share {
        let _of_site = of_site.take().await;
        // First to be allowed to dial: who waits for that keeps no connection from others.
        let dial = Some(Dial { _of_provider: self.dials.take().await, _of_site });
        let _connection = self.connections.take().await;
        Share(Some(Held { provider: Arc::clone(self), _connection, dial }))
    }
}

impl Share {
    /// Of nobody.
    pub(crate) const FREE: Self = Self(None);

    /// The dial is over.
    pub(crate) fn dialled(&mut self) {
        if let Some(held) = &mut self.0 {
            held.dial = None;
        }
    }

    /// Whether it is somebody else's turn after so many messages.
    pub(crate) fn is_over(&self, carried: u32) -> bool {
        let is_awaited = || self.0.as_ref().is_some_and(|held| held.provider.is_awaited());
        carried >= TURN_MESSAGES && is_awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections_max: u32) -> PaceLimits {
        PaceLimits { connections_max, messages_per_second: Some(1.0), ..PaceLimits::default() }
    }

    fn free(provider: &Provider) -> usize {
        provider.connections.free()
    }

    #[tokio::test]
    async fn connections_are_counted_together_and_go_to_who_waits() {
        let provider = Arc::new(Provider::new(limits(1)));
        let first = provider.share().await;
        assert!(!first.is_over(TURN_MESSAGES), "nobody waits");
        let mut second = Box::pin(provider.share());
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(first.is_over(TURN_MESSAGES) && !first.is_over(TURN_MESSAGES - 1));
        assert_eq!(provider.busy(true), Some(1));
        drop(first);
        let _second = second.await;
        assert_eq!(provider.busy(true), None);
    }

    #[tokio::test]
    async fn limits_change_under_open_connections() {
        let provider = Arc::new(Provider::new(limits(3)));
        let (one, two) = (provider.share().await, provider.share().await);
        provider.limit(limits(1));
        assert_eq!(free(&provider), 0);
        drop(one);
        assert_eq!(free(&provider), 0, "it was one too many");
        provider.limit(limits(2));
        assert_eq!(free(&provider), 1);
        drop(two);
        assert_eq!(free(&provider), 2);
        let (_one, two) = (provider.share().await, provider.share().await);
        provider.limit(limits(1));
        provider.limit(limits(2));
        drop(two);
        assert_eq!(free(&provider), 1);
    }

    #[tokio::test]
    async fn those_that_answer_keep_half_of_the_connections() {
        let provider = Arc::new(Provider::new(limits(4)));
        let site = || Arc::new(Places::new(1));
        let (first, second, third) = (site(), site(), site());
        let mut one = provider.share_unknown(&first).await;
        let mut again = Box::pin(provider.share_unknown(&first));
        assert!(futures_util::poll!(&mut again).is_pending(), "one at a time of a site");
        drop(again);
        let _two = provider.share_unknown(&second).await;
        let mut three = Box::pin(provider.share_unknown(&third));
        assert!(futures_util::poll!(&mut three).is_pending(), "it may be as silent as they are");
        assert_eq!((free(&provider), provider.busy(true), provider.busy(false)), (2, None, Some(2)));
        let known = provider.share().await;
        assert!(!known.is_over(TURN_MESSAGES), "to let go of it would help nobody");
        one.dialled();
        let _three = three.await;
        assert_eq!(free(&provider), 0);
    }

    #[test]
    fn messages_are_counted_together() {
        let provider = Provider::new(limits(5));
        let now = Timestamp::from_second(10).unwrap();
        let taken = (0..5).take_while(|_| provider.take(now).is_ok()).count();
        assert_eq!(taken, 2, "a burst of a second");
        assert!(provider.rate_until(now).is_some());
    }
}
