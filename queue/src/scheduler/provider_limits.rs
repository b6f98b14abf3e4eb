//! Provider limits: connections and rate shared by all ready queues whose mail hosts are under one name.
//!
//! Thousands of domains with hosts of their own may belong to one provider (`example-com.mail.protection.outlook.com`),
//! which counts their senders together. Where a pace is configured or ordered for a name, its connections and messages
//! per second apply to all ready queues under it; they take turns. Large providers are known by name
//! ([`message::classify::mailbox_provider`]) and have a connection limit by default. A backoff that one host asks for
//! applies to all.

use net::limit::resizable_semaphore::{ResizablePermit, ResizableSemaphore};
use parking_lot::Mutex;
use std::sync::Arc;

use jiff::Timestamp;

use crate::scheduler::pacing::{Backoff, BackoffState, Pace, PaceLimits};

/// Messages sent over a connection before it is released to a waiting ready queue.
const MESSAGES_PER_TURN: u32 = 50;

#[derive(Debug)]
struct ProviderState {
    /// Rate and backoff of the provider.
    pace: Pace,
    /// Current or last backoff.
    backoff: Option<BackoffState>,
}

/// Limits shared by the ready queues of a provider.
#[derive(Debug)]
pub(crate) struct ProviderLimits {
    state: Mutex<ProviderState>,
    connections: Arc<ResizableSemaphore>,
    /// Permits for dialling hosts that have not answered yet. A silent host occupies a connection until the dial times
    /// out, so at most half of the connections may dial such hosts.
    dial_permits: Arc<ResizableSemaphore>,
}

/// Permit for a connection to a provider; empty where no shared limits apply.
#[derive(Debug)]
pub(crate) struct ProviderConnectionPermit(Option<HeldConnection>);

#[derive(Debug)]
struct HeldConnection {
    provider: Arc<ProviderLimits>,
    _connection: ResizablePermit,
    dial: Option<DialPermit>,
}

/// Permits for dialling a host that has not answered yet: one of the provider's and the only one of the ready queue.
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

    /// Changes the limits. Open connections above them stay open until they are released.
    pub(crate) fn set_limits(&self, limits: PaceLimits) {
        self.state.lock().pace.set_limits(limits);
        let connections_max = limits.connections_max.max(1);
        self.connections.resize(connections_max);
        self.dial_permits.resize(dials_max(connections_max));
    }

    /// Starts a backoff of the provider and returns its end.
    pub(crate) fn back_off(&self, backoff: Backoff, reason: &str, now: Timestamp) -> Timestamp {
        let mut state = self.state.lock();
        let until = state.pace.back_off(backoff, now);
        BackoffState::keep_longer(&mut state.backoff, BackoffState { kind: backoff, until, reason: reason.to_owned() });
        until
    }

    /// End of the current backoff.
    pub(crate) fn backoff_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.state.lock().pace.unavailable_until(now)
    }

    /// Current or last backoff.
    pub(crate) fn backoff_state(&self) -> Option<BackoffState> {
        self.state.lock().backoff.clone()
    }

    /// Records an accepted message.
    pub(crate) fn record_accepted(&self, now: Timestamp) {
        self.state.lock().pace.record_accepted(now);
    }

    /// Ends the backoff by the operator's command.
    pub(crate) fn reset_unavailable(&self) {
        let mut state = self.state.lock();
        state.pace.reset_unavailable();
        state.backoff = None;
    }

    /// Time until which the rate limit allows no message.
    pub(crate) fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.state.lock().pace.rate_until(now)
    }

    /// Takes the right to send one message, or returns the time to try again.
    pub(crate) fn try_acquire_message(&self, now: Timestamp) -> Result<(), Timestamp> {
        self.state.lock().pace.try_acquire(now)
    }

    /// Returns the connection limit if ready queues wait for a permit: the limit of all connections, or, for a host
    /// that has not answered, the limit of dials.
    pub(crate) fn saturated_at(&self, answers: bool) -> Option<u32> {
        if self.has_waiters() {
            return Some(self.connections.capacity());
        }
        (!answers && self.dial_permits.has_waiters()).then(|| self.dial_permits.capacity())
    }

    /// True if ready queues wait for a connection permit.
    pub(crate) fn has_waiters(&self) -> bool {
        self.connections.has_waiters()
    }

    /// Waits for a connection permit, in FIFO order.
    pub(crate) async fn acquire(self: &Arc<Self>) -> ProviderConnectionPermit {
        let _connection = self.connections.acquire().await;
        ProviderConnectionPermit(Some(HeldConnection { provider: Arc::clone(self), _connection, dial: None }))
    }

    /// Waits for permits to dial a host that has not answered yet. `of_site` is the ready queue's own dial semaphore.
    pub(crate) async fn acquire_for_dial(
        self: &Arc<Self>,
        of_site: &Arc<ResizableSemaphore>,
    ) -> ProviderConnectionPermit {
        let _of_site = of_site.acquire().await;
        // Acquire the dial permit first: a waiting dial must not hold a connection permit.
        let dial = Some(DialPermit { _provider_permit: self.dial_permits.acquire().await, _queue_permit: _of_site });
        let _connection = self.connections.acquire().await;
        ProviderConnectionPermit(Some(HeldConnection { provider: Arc::clone(self), _connection, dial }))
    }
}

impl ProviderConnectionPermit {
    /// Permit where no shared limits apply.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// Releases the dial permits.
    pub(crate) fn finish_dial(&mut self) {
        if let Some(held) = &mut self.0 {
            held.dial = None;
        }
    }

    /// True if the connection has carried enough messages and another ready queue waits for a permit.
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
    async fn connections_are_shared_and_granted_in_order() {
        let provider = Arc::new(ProviderLimits::new(limits(1)));
        let first = provider.acquire().await;
        assert!(!first.should_yield(MESSAGES_PER_TURN), "no one waits");
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
        let (first, second) = (provider.acquire().await, provider.acquire().await);
        provider.set_limits(limits(1));
        assert_eq!(free(&provider), 0);
        drop(first);
        assert_eq!(free(&provider), 0, "the permit was above the new limit");
        provider.set_limits(limits(2));
        assert_eq!(free(&provider), 1);
        drop(second);
        assert_eq!(free(&provider), 2);
        let (_one, second) = (provider.acquire().await, provider.acquire().await);
        provider.set_limits(limits(1));
        provider.set_limits(limits(2));
        drop(second);
        assert_eq!(free(&provider), 1);
    }

    #[tokio::test]
    async fn responsive_hosts_keep_half_of_the_connections() {
        let provider = Arc::new(ProviderLimits::new(limits(4)));
        let site = || Arc::new(ResizableSemaphore::new(1));
        let (first, second, third) = (site(), site(), site());
        let mut dial = provider.acquire_for_dial(&first).await;
        let mut next_dial = Box::pin(provider.acquire_for_dial(&first));
        assert!(futures_util::poll!(&mut next_dial).is_pending(), "one dial at a time per ready queue");
        drop(next_dial);
        let _two = provider.acquire_for_dial(&second).await;
        let mut three = Box::pin(provider.acquire_for_dial(&third));
        assert!(futures_util::poll!(&mut three).is_pending(), "dials are limited to half of the connections");
        assert_eq!((free(&provider), provider.saturated_at(true), provider.saturated_at(false)), (2, None, Some(2)));
        let permit = provider.acquire().await;
        assert!(!permit.should_yield(MESSAGES_PER_TURN), "no one waits for a connection permit");
        dial.finish_dial();
        let _three = three.await;
        assert_eq!(free(&provider), 0);
    }

    #[test]
    fn messages_are_counted_together() {
        let provider = ProviderLimits::new(limits(5));
        let now = Timestamp::from_second(10).unwrap();
        let acquired = (0..5).take_while(|_| provider.try_acquire_message(now).is_ok()).count();
        assert_eq!(acquired, 2, "a burst of a second");
        assert!(provider.rate_until(now).is_some());
    }
}
