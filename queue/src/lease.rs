//! Leases: which partitions of the task space are this node's.
//!
//! Whoever accepts, tries or settles a task asks here, and makes its commit check that the answer still holds
//! ([`Leases::fence`]). How nodes come by partitions is [`crate::membership`]'s.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mail::address::DomainName;
use mail::task::Task;
use store::engine::Batch;
use store::lease::FencingToken;
use tokio::sync::Notify;
use tokio::time::Instant;

/// For so long after a sign of life a node believes that its partitions are its own: less than the others wait
/// ([`crate::membership::LEASE_BEATS`]), so that one that was frozen or cut off has stopped trying before they
/// begin.
pub(crate) const LEASE_VALID_FOR: Duration = Duration::from_secs(8);

/// A partition of ours.
#[derive(Debug)]
pub(crate) struct OwnedPartition {
    /// What fences it.
    pub(crate) token: FencingToken,
    /// For how many looks we have been leaving it; none while we work on it.
    pub(crate) leaving_polls: Option<u32>,
    /// Whether the queues in it have been found on disk.
    pub(crate) is_loaded: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct LeaseState {
    pub(crate) partitions: BTreeMap<u16, OwnedPartition>,
    /// Those of them that we work on, in order.
    pub(crate) active: Vec<u16>,
    /// How many nodes share the work.
    pub(crate) nodes: u32,
    /// Until when we may believe that they are ours; none where nobody else could have them.
    valid_until: Option<Instant>,
}

impl LeaseState {
    /// Whether our last sign of life is so fresh that nobody can have taken us for dead.
    fn is_valid(&self) -> bool {
        self.valid_until.is_none_or(|until| Instant::now() < until)
    }

    /// We have shown a sign of life that began then. After a silence in which we let go of what was in memory,
    /// all queues are found anew.
    pub(crate) fn renew(&mut self, began: Instant) {
        if !self.is_valid() {
            self.partitions.values_mut().for_each(|holding| holding.is_loaded = false);
        }
        self.valid_until = Some(began + LEASE_VALID_FOR);
    }

    /// Brings `active` up to date.
    pub(crate) fn refresh_active(&mut self) {
        self.active = self.partitions.iter().filter(|(_, h)| h.leaving_polls.is_none()).map(|(n, _)| *n).collect();
    }
}

/// The partitions that are ours.
#[derive(Debug, Default)]
pub struct Leases {
    state: Mutex<LeaseState>,
    pub(crate) changed: Notify,
}

impl Leases {
    pub(crate) fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition that new tasks for a domain go into; none while we have none.
    #[must_use]
    pub fn choose_for_domain(&self, domain: &DomainName) -> Option<u16> {
        let state = self.lock();
        if !state.is_valid() {
            return None;
        }
        state.active.get(store::task::slot_for_domain(domain, state.active.len())).copied()
    }

    /// The partition that new work goes into of what has this number, the same each time while our partitions are
    /// the same; none while we have none.
    #[must_use]
    pub(crate) fn choose_by_hash(&self, number: u64) -> Option<u16> {
        let state = self.lock();
        if !state.is_valid() {
            return None;
        }
        let place = usize::try_from(number % state.active.len().max(1) as u64).unwrap_or(0);
        state.active.get(place).copied()
    }

    /// The partitions that are ours, those that we are leaving too, in order.
    pub(crate) fn held(&self) -> Vec<u16> {
        self.lock().partitions.keys().copied().collect()
    }

    /// The partitions that we work on, in order.
    pub(crate) fn active(&self) -> Vec<u16> {
        self.lock().active.clone()
    }

    /// Any of our partitions, for what belongs to no domain; none while we have none.
    #[must_use]
    pub fn any(&self) -> Option<u16> {
        let state = self.lock();
        state.active.first().copied().filter(|_| state.is_valid())
    }

    /// The partitions that are ours, those that we are leaving too, in runs of neighbours.
    pub(crate) fn owned_ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut runs: Vec<RangeInclusive<u16>> = Vec::new();
        for number in self.lock().partitions.keys() {
            match runs.last_mut() {
                Some(run) if run.end() + 1 == *number => *run = *run.start()..=*number,
                _ => runs.push(*number..=*number),
            }
        }
        runs
    }

    /// Whether tasks of a partition may be tried by us.
    #[must_use]
    pub fn is_active(&self, partition: u16) -> bool {
        let state = self.lock();
        state.is_valid() && state.partitions.get(&partition).is_some_and(|holding| holding.leaving_polls.is_none())
    }

    /// Makes a commit fail when the partition of one of these tasks is not ours any more. False: one is
    /// known not to be, and there is no need to try.
    #[must_use]
    pub fn fence(&self, batch: &mut Batch, tasks: &[Task]) -> bool {
        self.fence_partitions(batch, tasks.iter().map(|task| task.partition))
    }

    /// The same for partitions by number.
    #[must_use]
    pub fn fence_partitions(&self, batch: &mut Batch, partitions: impl Iterator<Item = u16>) -> bool {
        let state = self.lock();
        let partitions: HashSet<u16> = partitions.collect();
        partitions
            .iter()
            .all(|partition| state.partitions.get(partition).inspect(|holding| holding.token.fence(batch)).is_some())
    }

    /// The partitions whose queues are still to be found: those just taken, and those whose reading failed.
    pub(crate) fn unloaded(&self) -> Vec<u16> {
        self.lock().partitions.iter().filter(|(_, holding)| !holding.is_loaded).map(|(number, _)| *number).collect()
    }

    /// The queues of a partition have been found.
    pub(crate) fn mark_loaded(&self, partition: u16) {
        if let Some(holding) = self.lock().partitions.get_mut(&partition) {
            holding.is_loaded = true;
        }
    }

    /// How many nodes share the work.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.lock().nodes.max(1)
    }

    /// How many partitions are ours.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().active.len()
    }

    /// Whether we have none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns after the next look that changed something. What changes once this is called counts.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }
}
