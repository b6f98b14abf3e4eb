//! Whether delivery is paused: by the configuration, by a hold of the whole queue, or because the server stops.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::delivery::delivery_policy::SharedDeliveryPolicy;
use crate::scheduler::holds::HoldCache;

/// Tells whether delivery is paused.
#[derive(Clone)]
pub struct PauseState {
    policy: Arc<SharedDeliveryPolicy>,
    holds: Arc<HoldCache>,
    stop: CancellationToken,
}

impl PauseState {
    pub(crate) fn new(policy: Arc<SharedDeliveryPolicy>, holds: Arc<HoldCache>, stop: CancellationToken) -> Self {
        Self { policy, holds, stop }
    }

    /// True if delivery is paused by the configuration or the queue is held.
    pub(crate) fn is_paused(&self) -> bool {
        self.policy.is_paused() || self.holds.is_queue_held()
    }

    /// True if no new attempt may begin.
    pub(crate) fn is_stopped_or_paused(&self) -> bool {
        self.stop.is_cancelled() || self.is_paused()
    }

    /// Waits until delivery is not paused, or stops.
    pub(crate) async fn wait_unpaused(&self) {
        let (mut policy, mut hold) = (self.policy.subscribe(), self.holds.watch_queue());
        while self.is_paused() {
            // `changed` cannot fail, because `self` holds the senders.
            tokio::select! {
                _ = policy.changed() => {}
                _ = hold.changed() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Waits until the queue is not held, or shutdown.
    pub async fn wait_until_released(&self) {
        let mut hold_changes = self.holds.watch_queue();
        tokio::select! {
            // The sender exists as long as `self`: an error is impossible.
            _ = hold_changes.wait_for(|held| !held) => {}
            () = self.stop.cancelled() => {}
        }
    }
}
