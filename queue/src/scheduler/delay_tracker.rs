//! Queues whose destination is unavailable, and how far their delays were recorded.

use parking_lot::Mutex;
use std::collections::HashMap;

use model::task::QueueName;
use quick_cache::unsync::Cache;
use store::engine::Key;
use tokio::sync::Notify;

use crate::scheduler::ready_queue::DeliveryObstacle;

/// Queues with a known scan position. Beyond the limit, positions are evicted and those queues are scanned again.
const TRACKED_QUEUES_MAX: usize = 100_000;

/// Queues with delays to record, and how far each was scanned.
#[derive(Debug, Default)]
pub(crate) struct DelayTracker {
    state: Mutex<DelayState>,
    pub(crate) changed: Notify,
}

#[derive(Debug)]
struct DelayState {
    pending: HashMap<QueueName, DeliveryObstacle>,
    reported_up_to: Cache<QueueName, Key>,
}

impl Default for DelayState {
    fn default() -> Self {
        Self { pending: HashMap::new(), reported_up_to: Cache::new(TRACKED_QUEUES_MAX) }
    }
}

impl DelayTracker {
    pub(crate) fn add(&self, queue: QueueName, obstacle: DeliveryObstacle) {
        self.state.lock().pending.insert(queue, obstacle);
        self.changed.notify_one();
    }

    pub(crate) fn next_pending(&self) -> Option<(QueueName, DeliveryObstacle, Option<Key>)> {
        let mut state = self.state.lock();
        let queue = state.pending.keys().next()?.clone();
        let obstacle = state.pending.remove(&queue)?;
        let reported = state.reported_up_to.get(&queue).cloned();
        Some((queue, obstacle, reported))
    }

    pub(crate) fn set_reported(&self, queue: QueueName, up_to: Key) {
        let mut state = self.state.lock();
        state.reported_up_to.insert(queue, up_to);
    }
}
