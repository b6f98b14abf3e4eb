//! Throttle of a ready queue: the limits of its hosts, its provider and the warm-up, as the replies of the hosts change
//! them. Pure, except for the state that ready queues of one provider or pool share.

use std::sync::Arc;

use jiff::Timestamp;

use super::status::{SlowedConnections, ThrottleStatus};
use crate::scheduler::pacing::{Backoff, BackoffState, Backpressure, Pace, PaceLimits};
use crate::scheduler::provider_limits::ProviderLimits;
use crate::scheduler::warm_up::WarmUpBudget;

/// Limits of a ready queue as configured.
#[derive(Debug, Default)]
pub(crate) struct SendLimits {
    /// Limits of the hosts.
    pub(crate) pace: PaceLimits,
    /// Limits shared with the other ready queues of the provider.
    pub(crate) provider: Option<Arc<ProviderLimits>>,
    /// Warm-up budget of the source pool for the provider.
    pub(crate) warm_up: Option<Arc<WarmUpBudget>>,
}

/// Reason for sending nothing to a destination at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryObstacle {
    /// Reply of its hosts, or connection error.
    pub reason: String,
    /// End of the obstacle.
    pub until: Timestamp,
}

/// Current limits of a ready queue and the replies that caused them.
#[derive(Debug)]
pub(super) struct SiteThrottle {
    pub(super) pace: Pace,
    pub(super) provider: Option<Arc<ProviderLimits>>,
    warm_up: Option<Arc<WarmUpBudget>>,
    /// Current or last backoff.
    backoff: Option<BackoffState>,
    /// Last error reply of the hosts, or last connection error, and its time.
    pub(super) last_error: Option<(String, Timestamp)>,
    /// Cause of a reduced number of connections, until it has recovered.
    slowed: Option<SlowedConnections>,
}

impl SiteThrottle {
    pub(super) fn new(limits: SendLimits) -> Self {
        let SendLimits { pace, provider, warm_up } = limits;
        Self { pace: Pace::new(pace), provider, warm_up, backoff: None, last_error: None, slowed: None }
    }

    /// Changes the limits; the measured pace stays.
    pub(super) fn set_limits(&mut self, limits: SendLimits) {
        self.pace.set_limits(limits.pace);
        (self.provider, self.warm_up) = (limits.provider, limits.warm_up);
    }

    /// Lowers the connection limit and records the cause.
    fn reduce(&mut self, reason: &str, lower: impl FnOnce(&mut Pace)) {
        let before = self.pace.connections_max();
        lower(&mut self.pace);
        if self.pace.connections_max() < before {
            let from = self.slowed.as_ref().map_or(before, |slowed| slowed.from.max(before));
            self.slowed = Some(SlowedConnections { from, reason: reason.to_owned() });
        }
    }

    /// Cause of the reduced number of connections, while it is reduced.
    pub(super) fn slowed(&self) -> Option<SlowedConnections> {
        self.slowed.clone().filter(|slowed| self.pace.connections_max() < slowed.from)
    }

    /// Time until which nothing may be sent, because of the hosts or their provider; `None` if sending is allowed.
    pub(super) fn unavailable_until(&self, now: Timestamp) -> Option<Timestamp> {
        let provider_until = self.provider.as_ref().and_then(|provider| provider.backoff_until(now));
        self.pace.unavailable_until(now).max(provider_until)
    }

    /// Time until which a task has to wait, so that it stays on disk. Tasks may wait for days for a warm-up: they are
    /// routed again when they are due. Tasks with a deadline wait in memory, to be ready when a message is allowed.
    pub(super) fn closed_until(&self, has_deadline: bool, now: Timestamp) -> Option<Timestamp> {
        let warms_up_until = self.warm_up(now).map(|(until, _)| until).filter(|_| !has_deadline);
        self.unavailable_until(now).max(warms_up_until)
    }

    /// Time until which the warm-up allows no message, and its messages per day.
    fn warm_up(&self, now: Timestamp) -> Option<(Timestamp, u64)> {
        self.warm_up.as_ref()?.exhausted_until(now)
    }

    /// Time until which the rate of the hosts or their provider allows no message.
    fn rate_until(&self, now: Timestamp) -> Option<Timestamp> {
        let provider_until = self.provider.as_ref().and_then(|provider| provider.rate_until(now));
        self.pace.rate_until(now).max(provider_until)
    }

    /// Takes the right to send one message by all limits, or returns the time to try again. During a warm-up expiring
    /// tasks have priority: `true` is the right to send one of them only.
    pub(super) fn try_acquire(&mut self, has_expiring: bool, now: Timestamp) -> Result<bool, Timestamp> {
        let warms_up_until = self.warm_up.as_ref().and_then(|budget| budget.closed_until(has_expiring, now));
        if let Some(until) = self.rate_until(now).max(warms_up_until) {
            return Err(until);
        }
        self.pace.try_acquire(now)?;
        self.provider.as_ref().map_or(Ok(()), |provider| provider.try_acquire_message(now))?;
        let Some(budget) = &self.warm_up else { return Ok(false) };
        Ok(budget.try_take(now)? && has_expiring)
    }

    /// Current or last backoff, of the hosts or their provider.
    fn backoff_state(&self) -> Option<BackoffState> {
        let mut resting = self.backoff.clone();
        let provider_state = self.provider.as_ref().and_then(|provider| provider.backoff_state());
        provider_state.into_iter().for_each(|provider_state| BackoffState::keep_longer(&mut resting, provider_state));
        resting
    }

    /// Applies the effect of a reply, whose diagnostic text becomes the cause. Returns the end of a backoff.
    pub(super) fn apply(
        &mut self,
        pressure: Backpressure,
        diagnostic: impl FnOnce() -> String,
        now: Timestamp,
    ) -> Option<Timestamp> {
        match pressure {
            Backpressure::Unchanged => {}
            Backpressure::Answered => self.pace.record_answer(),
            Backpressure::Accepted => self.record_accepted(now),
            Backpressure::FewerConnections => self.reduce(&diagnostic(), Pace::reduce_connections),
            Backpressure::SlowDown => self.reduce(&diagnostic(), |pace| pace.reduce_rate(now)),
            Backpressure::BackOff(backoff, reason) => return Some(self.back_off(backoff, reason, now)),
        }
        None
    }

    fn record_accepted(&mut self, now: Timestamp) {
        self.pace.record_accepted(now);
        self.slowed = self.slowed();
        if let Some(provider) = &self.provider {
            provider.record_accepted(now);
        }
    }

    /// Starts a backoff and returns its end.
    fn back_off(&mut self, backoff: Backoff, reason: String, now: Timestamp) -> Timestamp {
        let provider_until = self.provider.as_ref().map(|provider| provider.back_off(backoff, &reason, now));
        let mut until = now;
        self.reduce(&reason, |pace| until = pace.back_off(backoff, now));
        let until = Some(until).max(provider_until).unwrap_or(now);
        BackoffState::keep_longer(&mut self.backoff, BackoffState { kind: backoff, until, reason });
        until
    }

    /// Records a failed dial while other connections are open: the hosts accept no more.
    pub(super) fn record_connection_limit(&mut self) {
        self.reduce(&self.last_error_text(), Pace::reduce_connections);
    }

    /// Records a failed dial while no connection is open. Returns the time of the next probe if the hosts count as
    /// unreachable.
    pub(super) fn record_unreachable(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut is_dead = false;
        self.reduce(&self.last_error_text(), |pace| is_dead = pace.record_unreachable(now));
        is_dead.then(|| self.pace.dead_until.unwrap_or(now))
    }

    fn last_error_text(&self) -> String {
        self.last_error.as_ref().map(|(error, _)| error.clone()).unwrap_or_default()
    }

    /// Returns the cause and end of a backoff or unreachability, if there is one.
    pub(super) fn obstacle(&self, now: Timestamp) -> Option<DeliveryObstacle> {
        let until = self.unavailable_until(now)?;
        let resting = self.backoff_state().filter(|resting| resting.until > now);
        let reason = match (resting, &self.last_error) {
            (Some(BackoffState { reason, .. }), _) => reason,
            (None, Some((error, _))) => error.clone(),
            (None, None) => "the mail hosts are unreachable".to_owned(),
        };
        Some(DeliveryObstacle { reason, until })
    }

    /// Returns a snapshot for the operator.
    pub(super) fn status(&self, is_connected: bool, now: Timestamp) -> ThrottleStatus {
        ThrottleStatus {
            dead_until: self.pace.dead_until,
            is_unreachable: !is_connected && self.pace.has_failed(),
            resting: self.backoff_state(),
            last_error: self.last_error.as_ref().map(|(error, _)| error.clone()),
            messages_per_second: self.pace.messages_per_second(),
            rate_until: self.rate_until(now),
            warm_up: self.warm_up(now),
        }
    }

    /// Ends backoff and unreachability by the operator's command.
    pub(super) fn reset_unavailable(&mut self) {
        self.pace.reset_unavailable();
        self.backoff = None;
        if let Some(provider) = &self.provider {
            provider.reset_unavailable();
        }
    }
}
