//! Handles that every subsystem of the queue is built with.

use std::sync::Arc;

use net::clock::Clock;
use net::entropy::Entropy;
use store::engine::Store;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cluster::lease::Leases;
use crate::recent_events::RecentEvents;
use crate::supervisor::Supervisor;

/// Shared handles. Clones share their state.
#[derive(Clone)]
pub struct Services {
    pub store: Store,
    pub clock: Clock,
    pub entropy: Entropy,
    /// Partitions that this node owns.
    pub leases: Arc<Leases>,
    /// Wakes the outbox dispatcher after an event was recorded.
    pub outbox_wakeup: Arc<Notify>,
    /// Cache of committed events for the outbox dispatcher.
    pub recent_events: Arc<RecentEvents>,
    /// Notified after each recorded outcome.
    pub outcome_recorded: Arc<Notify>,
    /// Cancelled when no new work may begin.
    pub stop: CancellationToken,
    /// Cancelled when attempts must not wait for hosts any more.
    pub abort: CancellationToken,
    pub(crate) supervisor: Arc<Supervisor>,
}

impl Services {
    pub fn new(store: Store, clock: Clock, entropy: Entropy) -> Self {
        let supervisor = Arc::<Supervisor>::default();
        Self {
            store,
            clock,
            entropy,
            leases: Arc::default(),
            outbox_wakeup: Arc::default(),
            recent_events: Arc::default(),
            outcome_recorded: Arc::default(),
            stop: supervisor.stop.clone(),
            abort: supervisor.abort.clone(),
            supervisor,
        }
    }

    /// Spawns a task that ends at shutdown; a panic in it stops delivery.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, work: F) {
        self.supervisor.spawn(work);
    }

    /// True if delivery has stopped permanently because of a panic and a restart is needed.
    pub fn has_failed(&self) -> bool {
        self.supervisor.has_failed()
    }
}
