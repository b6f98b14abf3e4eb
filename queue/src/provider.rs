//! A provider: what all sites whose mail hosts lie under one name may be given together.
//!
//! Thousands of domains with hosts of their own may be one provider's (`example-com.mail.protection.outlook.com`), who
//! counts them together. Where a pace is configured or ordered for a name, connections and messages a second are those of
//! all sites under it; they take turns. The large ones are known by their names ([`mail::classify::provider`]), and have
//! a budget of connections without being asked. What one of their hosts says of us is said for all: they rest together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::pace::{Backoff, Pace, PaceLimits};
use crate::places::{ResizablePermit, ResizableSemaphore};
use crate::site::BackoffState;

/// Messages over a connection while other sites of the provider wait for one.
const MESSAGES_PER_TURN: u32 = 50;

#[derive(Debug)]
struct ProviderState {
    /// Counts the messages.
    pace: Pace,
    /// Why they rest, or did last.
    backoff: Option<BackoffState>,
}

/// What sites under one name have in common.
#[derive(Debug)]
pub(crate) struct ProviderLimits {
    state: Mutex<ProviderState>,
    connections: Arc<ResizableSemaphore>,
    /// Of them, those that lead to sites of which it is not known that they answer: silent ones hold a connection for
    /// as long as a dial takes, and however many they are, half of the connections stay with those that do answer.
    dial_permits: Arc<ResizableSemaphore>,
}

/// A connection to a provider; none where its sites have nothing in common.
#[derive(Debug)]
pub(crate) struct ProviderConnectionPermit(Option<HeldConnection>);

#[derive(Debug)]
struct HeldConnection {
    provider: Arc<ProviderLimits>,
    _connection: ResizablePermit,
    dial: Option<DialPermit>,
}

/// A dial of a site that is not known to answer: one of the provider's, and the only one of the site.
#[derive(Debug)]
struct DialPermit {
    _provider_permit: ResizablePermit,
    _queue_permit: ResizablePermit,
}

fn dials_max(connections_max: u32) -> u32 {
    (connections_max / 2).max(1)
}

impl ProviderLimits {
    pub(crate) fn new(limits: PaceLimits) -> Self {
        let connections_max = limits.connections_max.max(1);
        let state = ProviderState { pace: Pace::new(limits), backoff: None };
        Self {
            state: Mutex::new(state),
            connections: Arc::new(ResizableSemaphore::new(connections_max)),
            dial_permits: Arc::new(ResizableSemaphore::new(dials_max(connections_max))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limits. Connections beyond them are not closed; they are the last of their kind.
    pub(crate) fn set_limits(&self, limits: PaceLimits) {
        self.lock().pace.set_limits(limits);
        let connections_max = limits.connections_max.max(1);
        self.connections.resize(connections_max);
        self.dial_permits.resize(dials_max(connections_max));
    }

    /// They asked to be left alone: until when they are.
    pub(crate) fn back_off(&self, rest: Backoff, because: &str, now: Timestamp) -> Timestamp {
        let mut state = self.lock();
        let until = state.pace.back_off(rest, now);
        BackoffState::keep_longer(&mut state.backoff, BackoffState { kind: rest, until, reason: because.to_owned() });
        until
    }

    /// Until when they are left alone.
    pub(crate) fn backoff_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().pace.unavailable_until(now)
    }

    /// Why they rest, or did last.
    pub(crate) fn backoff_state(&self) -> Option<BackoffState> {
        self.lock().backoff.clone()
    }

    /// One of them took a message.
    pub(crate) fn record_accepted(&self, now: Timestamp) {
        self.lock().pace.record_accepted(now);
    }

    /// The operator says: try them now.
    pub(crate) fn reset_unavailable(&self) {
        let mut state = self.lock();
        state.pace.reset_unavailable();
        state.backoff = None;
    }

    /// Until when the rate lets no message go.
    pub(crate) fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock().pace.rate_until(now)
    }

    /// Takes the right to send one message; or says when to ask again.
    pub(crate) fn try_acquire_message(&self, now: Timestamp) -> Result<(), Timestamp> {
        self.lock().pace.try_acquire(now)
    }

    /// How many connections may be open, where sites wait for one: all, or to a site that is not known to answer.
    pub(crate) fn saturated_at(&self, answers: bool) -> Option<u32> {
        if self.has_waiters() {
            return Some(self.connections.capacity());
        }
        (!answers && self.dial_permits.has_waiters()).then(|| self.dial_permits.capacity())
    }

    /// Whether sites wait for a connection that any of them may have.
    pub(crate) fn has_waiters(&self) -> bool {
        self.connections.has_waiters()
    }

    /// Waits for a connection; who waits longest gets the next.
    pub(crate) async fn acquire(self: &Arc<Self>) -> ProviderConnectionPermit {
        let _connection = self.connections.acquire().await;
        ProviderConnectionPermit(Some(HeldConnection { provider: Arc::clone(self), _connection, dial: None }))
    }

    /// Waits for a connection to a site that is not known to answer; `of_site` are the site's own
    /// places to dial.
    pub(crate) async fn acquire_for_dial(
        self: &Arc<Self>,
        of_site: &Arc<ResizableSemaphore>,
    ) -> ProviderConnectionPermit {
        let _of_site = of_site.acquire().await;
        // First to be allowed to dial: who waits for that keeps no connection from others.
        let dial = Some(DialPermit { _provider_permit: self.dial_permits.acquire().await, _queue_permit: _of_site });
        let _connection = self.connections.acquire().await;
        ProviderConnectionPermit(Some(HeldConnection { provider: Arc::clone(self), _connection, dial }))
    }
}

impl ProviderConnectionPermit {
    /// Of nobody.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// The dial is over.
    pub(crate) fn finish_dial(&mut self) {
        if let Some(held) = &mut self.0 {
            held.dial = None;
        }
    }

    /// Whether it is somebody else's turn after so many messages.
    pub(crate) fn should_yield(&self, carried: u32) -> bool {
        let is_awaited = || self.0.as_ref().is_some_and(|held| held.provider.has_waiters());
        carried >= MESSAGES_PER_TURN && is_awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections_max: u32) -> PaceLimits {
        PaceLimits { connections_max, messages_per_second: Some(1.0), ..PaceLimits::default() }
    }

    fn free(provider: &ProviderLimits) -> usize {
        provider.connections.free()
    }

    #[tokio::test]
    async fn connections_are_counted_together_and_go_to_who_waits() {
        let provider = Arc::new(ProviderLimits::new(limits(1)));
        let first = provider.acquire().await;
        assert!(!first.should_yield(MESSAGES_PER_TURN), "nobody waits");
        let mut second = Box::pin(provider.acquire());
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(first.should_yield(MESSAGES_PER_TURN) && !first.should_yield(MESSAGES_PER_TURN - 1));
        assert_eq!(provider.saturated_at(true), Some(1));
        drop(first);
        let _second = second.await;
        assert_eq!(provider.saturated_at(true), None);
    }

    #[tokio::test]
    async fn limits_change_under_open_connections() {
        let provider = Arc::new(ProviderLimits::new(limits(3)));
        let (one, two) = (provider.acquire().await, provider.acquire().await);
        provider.set_limits(limits(1));
        assert_eq!(free(&provider), 0);
        drop(one);
        assert_eq!(free(&provider), 0, "it was one too many");
        provider.set_limits(limits(2));
        assert_eq!(free(&provider), 1);
        drop(two);
        assert_eq!(free(&provider), 2);
        let (_one, two) = (provider.acquire().await, provider.acquire().await);
        provider.set_limits(limits(1));
        provider.set_limits(limits(2));
        drop(two);
        assert_eq!(free(&provider), 1);
    }

    #[tokio::test]
    async fn those_that_answer_keep_half_of_the_connections() {
        let provider = Arc::new(ProviderLimits::new(limits(4)));
        let site = || Arc::new(ResizableSemaphore::new(1));
        let (first, second, third) = (site(), site(), site());
        let mut one = provider.acquire_for_dial(&first).await;
        let mut again = Box::pin(provider.acquire_for_dial(&first));
        assert!(futures_util::poll!(&mut again).is_pending(), "one at a time of a site");
        drop(again);
        let _two = provider.acquire_for_dial(&second).await;
        let mut three = Box::pin(provider.acquire_for_dial(&third));
        assert!(futures_util::poll!(&mut three).is_pending(), "it may be as silent as they are");
        assert_eq!((free(&provider), provider.saturated_at(true), provider.saturated_at(false)), (2, None, Some(2)));
        let known = provider.acquire().await;
        assert!(!known.should_yield(MESSAGES_PER_TURN), "to let go of it would help nobody");
        one.finish_dial();
        let _three = three.await;
        assert_eq!(free(&provider), 0);
    }

    #[test]
    fn messages_are_counted_together() {
        let provider = ProviderLimits::new(limits(5));
        let now = Timestamp::from_second(10).unwrap();
        let taken = (0..5).take_while(|_| provider.try_acquire_message(now).is_ok()).count();
        assert_eq!(taken, 2, "a burst of a second");
        assert!(provider.rate_until(now).is_some());
    }
}
