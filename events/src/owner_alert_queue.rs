//! Adds alerts for account owners to a commit, and schedules them to be sent.

use std::sync::Arc;

use model::id::{AccountId, EventId};
use model::owner_alert::{AlertSubject, OwnerAlert};
use queue::scheduler::partition_timers::PartitionTimers;
use queue::services::Services;
use store::engine::Batch;
use store::task::PARTITIONS;

/// Partition into which the alert of a commit is written.
#[derive(Debug, Clone, Copy)]
pub struct AlertPartition(u16);

/// Owner alerts that wait to be sent. Clones share them.
#[derive(Clone)]
pub struct OwnerAlertQueue {
    pub(crate) services: Services,
    /// Next scan of each partition.
    pub timers: Arc<PartitionTimers>,
}

impl OwnerAlertQueue {
    pub(crate) fn new(services: Services) -> Self {
        Self { services, timers: Arc::default() }
    }

    /// Returns a partition for an alert, one of this node's if it owns any.
    #[must_use]
    pub fn choose_partition(&self) -> AlertPartition {
        let any = || u16::try_from(self.services.entropy.u64() % u64::from(PARTITIONS)).unwrap_or_default();
        AlertPartition(self.services.leases.any().unwrap_or_else(any))
    }

    /// Adds an alert for an account's owner to a batch. Call [`Self::notify`] after the commit.
    pub fn put(
        &self,
        batch: &mut Batch,
        AlertPartition(place): AlertPartition,
        account: AccountId,
        about: AlertSubject,
    ) {
        let now = self.services.clock.now();
        let notice = OwnerAlert { id: EventId::new(now, self.services.entropy.u128()), account, about, since: now };
        store::owner_alert::enqueue(batch, place, &notice);
    }

    /// Schedules the alert of a completed commit to be sent now.
    pub fn notify(&self, AlertPartition(place): AlertPartition) {
        self.timers.schedule(place, self.services.clock.now());
    }
}
