//! Partition leases: which partitions of the task space this node owns.
//!
//! Code that accepts, attempts or records a task checks ownership here, and fences its commit so that it fails if the
//! partition has moved ([`Leases::fence`]). [`crate::cluster::membership`] acquires and releases partitions.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use message::address::DomainName;
use model::task::Task;
use store::engine::Batch;
use store::lease::FencingToken;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Interval of heartbeats and polls.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Validity of a node's leases after a heartbeat. It is shorter than the other nodes wait
/// ([`crate::cluster::membership::LEASE_HEARTBEATS`]), so that a frozen or disconnected node stops attempts before others start
/// them.
pub(crate) const LEASE_VALID_FOR: Duration = Duration::from_secs(8);

/// A partition that this node owns.
#[derive(Debug)]
pub(crate) struct OwnedPartition {
    /// Fencing token.
    pub(crate) token: FencingToken,
    /// Number of polls since its release started; `None` while it is in use.
    pub(crate) leaving_polls: Option<u32>,
    /// True once its queues were loaded from disk.
    pub(crate) is_loaded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LeaseState {
    pub(crate) partitions: BTreeMap<u16, OwnedPartition>,
    /// Numbers of the partitions in use (not being released), in order.
    pub(crate) active: Vec<u16>,
    /// Number of nodes in the cluster.
    pub(crate) nodes: u32,
    /// End of the leases; `None` on an unshared store.
    valid_until: Option<Instant>,
}

impl LeaseState {
    /// Returns whether the last heartbeat is recent enough that no node can have evicted this one.
    fn is_valid(&self) -> bool {
        self.valid_until.is_none_or(|until| Instant::now() < until)
    }

    /// Renews the leases by a heartbeat that began at `started`. If they had expired, all queues are loaded again,
    /// because tasks in memory were dropped.
    pub(crate) fn renew(&mut self, started: Instant) {
        if !self.is_valid() {
            self.partitions.values_mut().for_each(|lease| lease.is_loaded = false);
        }
        self.valid_until = Some(started + LEASE_VALID_FOR);
    }

    /// Recomputes `active`.
    pub(crate) fn refresh_active(&mut self) {
        self.active = self.partitions.iter().filter(|(_, h)| h.leaving_polls.is_none()).map(|(n, _)| *n).collect();
    }
}

/// The leases of this node.
#[derive(Debug, Default)]
pub struct Leases {
    pub(crate) state: Mutex<LeaseState>,
    pub(crate) changed: Notify,
}

impl Leases {
    /// Partition for new tasks of a domain; `None` if this node owns none.
    pub fn choose_for_domain(&self, domain: &DomainName) -> Option<u16> {
        let state = self.state.lock();
        if !state.is_valid() {
            return None;
        }
        state.active.get(store::task::slot_for_domain(domain, state.active.len())).copied()
    }

    /// Partition for new work with this number, stable while the owned partitions do not change; `None` if this node
    /// owns none.
    pub fn choose_by_hash(&self, number: u64) -> Option<u16> {
        let state = self.state.lock();
        if !state.is_valid() {
            return None;
        }
        let index = usize::try_from(number % state.active.len().max(1) as u64).unwrap_or(0);
        state.active.get(index).copied()
    }

    /// Numbers of all owned partitions, including those being released, in order.
    pub fn held(&self) -> Vec<u16> {
        self.state.lock().partitions.keys().copied().collect()
    }

    /// Numbers of the partitions in use, in order.
    pub fn active(&self) -> Vec<u16> {
        self.state.lock().active.clone()
    }

    /// Any partition in use, for rows that belong to no domain; `None` if this node owns none.
    pub fn any(&self) -> Option<u16> {
        let state = self.state.lock();
        state.active.first().copied().filter(|_| state.is_valid())
    }

    /// Why this node has no partition in use; `None` if it has one.
    pub fn no_partition_reason(&self) -> Option<&'static str> {
        let state = self.state.lock();
        match (state.is_valid(), state.active.is_empty()) {
            (false, _) => Some("this node could not write its heartbeat in time, and its leases have expired"),
            (true, false) => None,
            (true, true) if state.nodes > 1 => Some("other nodes own the whole queue"),
            (true, true) => Some("this node holds no lease"),
        }
    }

    /// All owned partitions, including those being released, as ranges of adjacent numbers.
    pub fn owned_ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut runs: Vec<RangeInclusive<u16>> = Vec::new();
        for number in self.state.lock().partitions.keys() {
            match runs.last_mut() {
                Some(run) if run.end() + 1 == *number => *run = *run.start()..=*number,
                _ => runs.push(*number..=*number),
            }
        }
        runs
    }

    /// Returns whether this node may attempt tasks of a partition.
    pub fn is_active(&self, partition: u16) -> bool {
        let state = self.state.lock();
        state.is_valid() && state.partitions.get(&partition).is_some_and(|lease| lease.leaving_polls.is_none())
    }

    /// Makes a commit fail if the partition of one of these tasks has moved. Returns false if one is known to have
    /// moved already.
    #[must_use]
    pub fn fence(&self, batch: &mut Batch, tasks: &[Task]) -> bool {
        self.fence_partitions(batch, tasks.iter().map(|task| task.partition))
    }

    /// Like [`fence`](Self::fence), for partition numbers.
    #[must_use]
    pub fn fence_partitions(&self, batch: &mut Batch, partitions: impl Iterator<Item = u16>) -> bool {
        let state = self.state.lock();
        let partitions: HashSet<u16> = partitions.collect();
        partitions
            .iter()
            .all(|partition| state.partitions.get(partition).inspect(|lease| lease.token.fence(batch)).is_some())
    }

    /// Partitions whose queues must be loaded: newly acquired ones, and those whose loading failed.
    pub(crate) fn unloaded(&self) -> Vec<u16> {
        self.state.lock().partitions.iter().filter(|(_, lease)| !lease.is_loaded).map(|(number, _)| *number).collect()
    }

    /// Marks the queues of a partition as loaded.
    pub(crate) fn mark_loaded(&self, partition: u16) {
        if let Some(lease) = self.state.lock().partitions.get_mut(&partition) {
            lease.is_loaded = true;
        }
    }

    /// Stops new work in partitions that this node will release.
    pub fn start_release(&self, partitions: &[u16]) {
        let mut state = self.state.lock();
        for partition in partitions {
            if let Some(lease) = state.partitions.get_mut(partition) {
                lease.leaving_polls = Some(0);
            }
        }
        state.refresh_active();
    }

    /// Number of nodes in the cluster.
    pub fn nodes(&self) -> u32 {
        self.state.lock().nodes.max(1)
    }

    /// Number of partitions in use.
    pub fn len(&self) -> usize {
        self.state.lock().active.len()
    }

    /// Returns whether no partition is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the set of partitions changes, for one heartbeat interval at most.
    pub async fn wait_for_change(&self) {
        let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, self.changed()).await;
    }

    /// Completes when the set of partitions changes. A change after this call counts, even before the first poll.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }
}
