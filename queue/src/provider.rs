//! A provider: what all sites whose mail hosts lie under one name may be given together.
//!
//! Thousands of domains with hosts of their own may be one provider's (`example-com.mail.protection.outlook.com`), who
//! counts them together. Where a pace is configured or ordered for a name, connections and messages a second are those of
//! all sites under it; they take turns. The large ones are known by their names ([`mail::classify::provider`]), and have
//! a budget of connections without being asked. What one of their hosts says of us is said for all: they rest together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pace::{Pace, PaceLimits, Rest};
use crate::site::Resting;

/// Messages over a connection while other sites of the provider wait for one.
const TURN_MESSAGES: u32 = 50;

#[derive(Debug)]
struct State {
    /// Counts the messages.
    pace: Pace,
    /// Why they rest, or did last.
    resting: Option<Resting>,
    connections_max: u32,
    /// Connections that are open beyond what may be since it became less.
    too_many: u32,
}

/// What sites under one name have in common.
#[derive(Debug)]
pub(crate) struct Provider {
    state: Mutex<State>,
    connections: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A connection to a provider; none where its sites have nothing in common.
#[derive(Debug)]
pub(crate) struct Share(Option<(Arc<Provider>, OwnedSemaphorePermit)>);

impl Provider {
    pub(crate) fn new(limits: PaceLimits) -> Self {
        let connections_max = limits.connections_max.max(1);
        Self {
            state: Mutex::new(State { pace: Pace::new(limits), resting: None, connections_max, too_many: 0 }),
            connections: Arc::new(Semaphore::new(connections_max as usize)),
            waiting: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limits. Connections beyond them are not closed; they are the last of their kind.
    pub(crate) fn limit(&self, limits: PaceLimits) {
        let mut state = self.lock();
        state.pace.limit(limits);
        let wanted = limits.connections_max.max(1);
        if wanted >= state.connections_max {
            let more = wanted - state.connections_max;
            let settled = more.min(state.too_many);
            state.too_many -= settled;
            self.connections.add_permits((more - settled) as usize);
        } else {
            let fewer = state.connections_max - wanted;
            let gone = self.connections.forget_permits(fewer as usize);
            state.too_many += fewer.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        state.connections_max = wanted;
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

    /// How many connections may be open, where sites wait for one.
    pub(crate) fn busy(&self) -> Option<u32> {
        (self.waiting.load(Ordering::Relaxed) > 0).then(|| self.lock().connections_max)
    }

    /// Waits for a connection; who waits longest gets the next.
    pub(crate) async fn share(self: &Arc<Self>) -> Share {
        /// Counts who waits, also who gives up waiting.
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() {
            return Share(Some((Arc::clone(self), permit)));
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        // It is never closed.
        let permit = Arc::clone(&self.connections).acquire_owned().await.ok();
        Share(permit.map(|permit| (Arc::clone(self), permit)))
    }
}

impl Share {
    /// Of nobody.
    pub(crate) const FREE: Self = Self(None);

    /// Whether it is somebody else's turn after so many messages.
    pub(crate) fn is_over(&self, carried: u32) -> bool {
        carried >= TURN_MESSAGES && self.0.as_ref().is_some_and(|(provider, _)| provider.busy().is_some())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some((provider, permit)) = self.0.take() else { return };
        let mut state = provider.lock();
        if state.too_many > 0 {
            state.too_many -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections_max: u32) -> PaceLimits {
        PaceLimits { connections_max, messages_per_second: Some(1.0), ..PaceLimits::default() }
    }

    fn free(provider: &Provider) -> usize {
        provider.connections.available_permits()
    }

    #[tokio::test]
    async fn connections_are_counted_together_and_go_to_who_waits() {
        let provider = Arc::new(Provider::new(limits(1)));
        let first = provider.share().await;
        assert!(!first.is_over(TURN_MESSAGES), "nobody waits");
        let mut second = Box::pin(provider.share());
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(first.is_over(TURN_MESSAGES) && !first.is_over(TURN_MESSAGES - 1));
        assert_eq!(provider.busy(), Some(1));
        drop(first);
        let _second = second.await;
        assert_eq!(provider.busy(), None);
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

    #[test]
    fn messages_are_counted_together() {
        let provider = Provider::new(limits(5));
        let now = Timestamp::from_second(10).unwrap();
        let taken = (0..5).take_while(|_| provider.take(now).is_ok()).count();
        assert_eq!(taken, 2, "a burst of a second");
        assert!(provider.rate_until(now).is_some());
    }
}
