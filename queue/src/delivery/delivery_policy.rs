//! Delivery policy: settings that the operator may change while the server runs.

use std::sync::Arc;
use std::time::Duration;

use message::classify::ReplyRules;
use tokio::sync::watch;

use crate::delivery::retry_schedule::RetrySchedule;

/// Policy that the operator may change at runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPolicy {
    pub schedule: RetrySchedule,
    /// Pauses delivery: mail is accepted and stays queued.
    pub paused: bool,
    /// Retention time of an email after its acceptance.
    pub retention: Duration,
    /// Rules that map replies to backpressure.
    pub shaping: ReplyRules,
}

/// The current policy, shared by all subsystems.
#[derive(Debug)]
pub struct SharedDeliveryPolicy(watch::Sender<Arc<DeliveryPolicy>>);

impl SharedDeliveryPolicy {
    pub fn new(policy: DeliveryPolicy) -> Self {
        Self(watch::Sender::new(Arc::new(policy)))
    }

    /// The current policy.
    pub fn current(&self) -> Arc<DeliveryPolicy> {
        Arc::clone(&self.0.borrow())
    }

    /// Returns whether the policy pauses delivery.
    pub(crate) fn is_paused(&self) -> bool {
        self.0.borrow().paused
    }

    /// Replaces the policy; attempts in progress finish under the old one.
    pub fn reload(&self, policy: DeliveryPolicy) {
        self.0.send_replace(Arc::new(policy));
    }

    /// Subscribes to changes.
    pub fn subscribe(&self) -> watch::Receiver<Arc<DeliveryPolicy>> {
        self.0.subscribe()
    }
}
