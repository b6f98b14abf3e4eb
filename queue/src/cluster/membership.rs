//! Cluster membership: heartbeats, and the distribution of partitions among nodes.
//!
//! ```text
//! every second: heartbeat ─► poll ─► evict expired nodes (eviction) ─► claim free partitions, up to this node's share
//!                                                        └─► release partitions beyond the share, once idle
//! ```
//!
//! All nodes derive matching decisions from the same view, so they need no messages: with `n` nodes, each gets 64/n
//! partitions. A node has expired when its row did not change for [`LEASE_HEARTBEATS`] polls of another node, so clocks
//! of different machines are never compared. Correctness does not depend on timing: each commit about a task checks its
//! partition's fencing token ([`FencingToken::fence`]).
//!
//! On a store that only one process can open, the node claims all partitions at once.

use std::collections::HashMap;
use std::sync::Arc;

use net::clock::Clock;
use store::engine::{Batch, CommitError, Store, StoreError};
use store::lease::{self, ClusterView, FencingToken, Node, StoredNode, StoredPartition};
use store::task::PARTITIONS;
use tokio::time::Instant;

use crate::cluster::lease::{Leases, OwnedPartition};

/// Number of polls without a change after which a node has expired.
pub const LEASE_HEARTBEATS: u32 = 10;
/// Number of polls that a partition in release waits for its last attempts.
const LEAVE_HEARTBEATS: u32 = 30;

/// Decision of a node about a view. Decisions of all nodes from one view fit together.
#[derive(Debug, Default, PartialEq, Eq)]
struct RebalanceDecision {
    claim: Vec<u16>,
    release: Vec<u16>,
}

/// Number of partitions for a node; `live_nodes` is sorted.
fn partition_share(live_nodes: &[&str], node: &str) -> usize {
    let count = live_nodes.len().max(1);
    let rank = live_nodes.iter().position(|name| *name == node).unwrap_or(count);
    let all = usize::from(PARTITIONS);
    all / count + usize::from(rank < all % count)
}

fn rebalance(view: &ClusterView, live_nodes: &[&str], active: &[u16], held: &[u16], node: &str) -> RebalanceDecision {
    let share = partition_share(live_nodes, node);
    if active.len() > share {
        return RebalanceDecision { release: active[share..].to_vec(), ..RebalanceDecision::default() };
    }
    // A row that names this node without its knowledge is free too: it dropped the lease, or the reply to its claim was
    // lost. No other node would claim it while this one runs.
    let is_free = |(number, row): &(u16, &StoredPartition)| match row.tenure.node.as_deref() {
        None => true,
        Some(owner) if owner == node => !held.contains(number),
        Some(owner) => !live_nodes.contains(&owner),
    };
    let free = (0..PARTITIONS).zip(&view.partitions).filter(is_free);
    // Nodes start at different offsets, so that they rarely claim the same partition.
    let before: usize =
        live_nodes.iter().take_while(|name| **name != node).map(|name| self::partition_share(live_nodes, name)).sum();
    let mut free: Vec<u16> = free.map(|(number, _)| number).collect();
    let begin = (before * free.len() / usize::from(PARTITIONS)).min(free.len());
    free.rotate_left(begin);
    free.truncate(share - active.len());
    RebalanceDecision { claim: free, ..RebalanceDecision::default() }
}

/// Prior knowledge about other nodes.
pub(crate) struct KnownNodes {
    /// False on an unshared store.
    pub(crate) may_exist: bool,
    /// Name of a node that this one replaces, and that is therefore dead.
    pub(crate) predecessor: Option<String>,
}

/// Membership of this node.
pub(crate) struct Membership {
    store: Store,
    known_nodes: KnownNodes,
    clock: Clock,
    leases: Arc<Leases>,
    name: String,
    own_row: Option<StoredNode>,
    /// Last heartbeat counter of each other node, and the number of polls since it changed.
    heartbeats: HashMap<String, (u64, u32)>,
    failures: u32,
}

impl Membership {
    pub(crate) fn new(store: Store, known_nodes: KnownNodes, clock: Clock, leases: Arc<Leases>, name: String) -> Self {
        Self { store, known_nodes, clock, leases, name, own_row: None, heartbeats: HashMap::new(), failures: 0 }
    }

    /// Polls once; new partitions appear in [`Leases::unloaded`]. `attempting` returns the number of attempts in a
    /// partition.
    pub(crate) async fn poll(&mut self, attempting: impl Fn(u16) -> usize) -> Result<(), StoreError> {
        match self.poll_once(attempting).await {
            Ok(()) => {
                self.failures = 0;
                Ok(())
            }
            Err(error) => {
                self.failures += 1;
                if self.failures == LEASE_HEARTBEATS {
                    // The other nodes have taken over by now: attempts of this node would be duplicates.
                    tracing::error!(%error, "no heartbeat could be written: giving up all partitions");
                    self.drop_lost(|_| false);
                }
                Err(error)
            }
        }
    }

    async fn poll_once(&mut self, attempting: impl Fn(u16) -> usize) -> Result<(), StoreError> {
        self.heartbeat().await?;
        let view = lease::read_view(&self.store).await?;
        self.drop_lost(|held| held.is_current_in(&view));
        let expired_nodes = self.find_expired(&view);
        for row in &expired_nodes {
            let mut batch = Batch::progress();
            lease::evict(&mut batch, row);
            // On a conflict it is alive, or another node was faster. On an unshared store it is this node's previous
            // run: not worth a log line.
            if self.store.try_commit(batch).await? && self.store.is_shared() {
                tracing::warn!(node = row.node.name, "node expired: taking over its partitions");
            }
        }
        let live_nodes: Vec<&str> = view
            .nodes
            .iter()
            .map(|row| row.node.name.as_str())
            .filter(|name| !expired_nodes.iter().any(|row| row.node.name == *name))
            .collect();
        let (active, held) = {
            let mut state = self.leases.state.lock();
            let nodes = u32::try_from(live_nodes.len()).unwrap_or(u32::MAX);
            if state.nodes != nodes {
                tracing::info!(nodes, "cluster size changed");
                state.nodes = nodes;
            }
            (state.active.clone(), state.partitions.keys().copied().collect::<Vec<_>>())
        };
        let decision = rebalance(&view, &live_nodes, &active, &held, &self.name);
        self.leases.start_release(&decision.release);
        self.finish_release(attempting).await?;
        self.claim_partitions(&view, &decision.claim).await
    }

    /// Writes a heartbeat. A node that was evicted joins again.
    pub(crate) async fn heartbeat(&mut self) -> Result<(), StoreError> {
        for _ in 0..2 {
            let beats = self.own_row.as_ref().map_or(1, |row| row.node.beats + 1);
            let started_at = self.own_row.as_ref().map_or_else(|| self.clock.now(), |row| row.node.started_at);
            let mut batch = Batch::progress();
            let node = Node { name: self.name.clone(), beats, started_at };
            let row = lease::heartbeat(&mut batch, self.own_row.as_ref(), node);
            let started = Instant::now();
            if self.store.try_commit(batch).await? {
                self.own_row = Some(row);
                if self.known_nodes.may_exist {
                    self.leases.state.lock().renew(started);
                }
                return Ok(());
            }
            tracing::warn!("this node was evicted by another; joining again");
            let view = lease::read_view(&self.store).await?;
            self.own_row = view.nodes.into_iter().find(|row| row.node.name == self.name);
        }
        Ok(())
    }

    /// Nodes that have expired. On an unshared store, all others have.
    fn find_expired(&mut self, view: &ClusterView) -> Vec<StoredNode> {
        let mut expired = Vec::new();
        let mut observed = HashMap::new();
        for row in view.nodes.iter().filter(|row| row.node.name != self.name) {
            let unchanged_polls = match self.heartbeats.get(&row.node.name) {
                Some((beats, unchanged_polls)) if *beats == row.node.beats => unchanged_polls + 1,
                _ => 0,
            };
            let is_former = self.known_nodes.predecessor.as_ref() == Some(&row.node.name);
            if unchanged_polls >= LEASE_HEARTBEATS || is_former || !self.known_nodes.may_exist {
                expired.push(row.clone());
            }
            observed.insert(row.node.name.clone(), (row.node.beats, unchanged_polls));
        }
        self.heartbeats = observed;
        expired
    }

    /// Drops partitions that this node no longer owns.
    fn drop_lost(&self, is_kept: impl Fn(&FencingToken) -> bool) {
        let lost = self.drop_partitions(is_kept);
        if lost > 0 {
            tracing::warn!(partitions = lost, "lost partitions to another node");
        }
    }

    /// Forgets partitions in memory. Returns how many.
    fn drop_partitions(&self, is_kept: impl Fn(&FencingToken) -> bool) -> usize {
        let mut state = self.leases.state.lock();
        let before = state.partitions.len();
        state.partitions.retain(|_, lease| is_kept(&lease.token));
        let dropped = before - state.partitions.len();
        if dropped > 0 {
            state.refresh_active();
            drop(state);
            self.leases.changed.notify_waiters();
        }
        dropped
    }

    /// Releases partitions that have no attempts left.
    async fn finish_release(&self, attempting: impl Fn(u16) -> usize) -> Result<(), StoreError> {
        let done: Vec<FencingToken> = {
            let mut state = self.leases.state.lock();
            let leaving = state.partitions.values_mut().filter_map(|lease| {
                let beats = lease.leaving_polls.as_mut()?;
                *beats += 1;
                let done = attempting(lease.token.partition()) == 0 || *beats > LEAVE_HEARTBEATS;
                done.then(|| lease.token.clone())
            });
            leaving.collect()
        };
        self.release_partitions(&done).await
    }

    async fn release_partitions(&self, partitions: &[FencingToken]) -> Result<(), StoreError> {
        if partitions.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::progress();
        partitions.iter().for_each(|held| held.release(&mut batch));
        // On a conflict, another node took one over; the next poll finds out.
        self.store.try_commit(batch).await?;
        self.drop_partitions(|held| !partitions.contains(held));
        Ok(())
    }

    async fn claim_partitions(&self, view: &ClusterView, partitions: &[u16]) -> Result<(), StoreError> {
        let mut wanted = Vec::with_capacity(partitions.len());
        let mut commits = Vec::with_capacity(partitions.len());
        for partition in partitions {
            if let Some(row) = view.partitions.get(usize::from(*partition)) {
                let mut batch = Batch::progress();
                wanted.push(lease::acquire(&mut batch, *partition, row, &self.name));
                commits.push(self.store.commit(batch));
            }
        }
        let (mut claimed, mut failed) = (0, None);
        for (held, committed) in wanted.into_iter().zip(futures_util::future::join_all(commits).await) {
            match committed {
                Ok(()) => {
                    claimed += 1;
                    let number = held.partition();
                    self.leases
                        .state
                        .lock()
                        .partitions
                        .insert(number, OwnedPartition { token: held, leaving_polls: None, is_loaded: false });
                }
                Err(CommitError::Conflict { .. }) => {}
                // Partitions claimed by the other commits are ours all the same.
                Err(error) => failed = Some(error),
            }
        }
        if claimed > 0 {
            tracing::info!(partitions = claimed, "partitions acquired");
            self.leases.state.lock().refresh_active();
            self.leases.changed.notify_waiters();
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Releases all partitions and leaves the cluster; others claim them at their next poll.
    pub(crate) async fn leave(mut self) {
        let held: Vec<FencingToken> =
            self.leases.state.lock().partitions.values().map(|lease| lease.token.clone()).collect();
        if let Err(error) = self.release_partitions(&held).await {
            return tracing::warn!(%error, "cannot release partitions: other nodes wait until the lease expires");
        }
        if let Some(row) = self.own_row.take() {
            let mut batch = Batch::progress();
            lease::evict(&mut batch, &row);
            // If this fails, the other nodes evict the row later.
            let _ = self.store.commit(batch).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::lease::{HEARTBEAT_INTERVAL, LEASE_VALID_FOR};
    use message::address::DomainName;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn member(store: &Store, name: &str, shared: bool) -> Membership {
        let neighbours = KnownNodes { may_exist: shared, predecessor: None };
        Membership::new(store.clone(), neighbours, Clock::default(), Arc::default(), name.to_owned())
    }

    async fn poll(member: &mut Membership) -> usize {
        member.poll(|_| 0).await.unwrap();
        member.leases.len()
    }

    /// Polls all members in turn, `count` times. Returns the number of partitions of each.
    async fn rounds(members: &mut [Membership], count: u32) -> Vec<usize> {
        for _ in 0..count {
            for member in &mut *members {
                poll(member).await;
            }
        }
        members.iter().map(|member| member.leases.len()).collect()
    }

    /// Returns whether a member can still commit in the first partition that it believes to own.
    async fn may_commit(store: &Store, member: &Membership) -> bool {
        let held = member.leases.state.lock().partitions.values().next().map(|lease| lease.token.clone());
        let Some(held) = held else { return false };
        let mut batch = Batch::progress();
        held.fence(&mut batch);
        store.commit(batch).await.is_ok()
    }

    /// Counts warnings and errors in the log.
    #[derive(Clone, Default)]
    struct WarningCounter(Arc<AtomicUsize>);

    impl tracing::Subscriber for WarningCounter {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::WARN
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[tokio::test]
    async fn partitions_that_a_node_releases_are_not_logged_as_lost() {
        let warnings = WarningCounter::default();
        let _guard = tracing::subscriber::set_default(warnings.clone());
        let store = Store::memory();
        let mut node = member(&store, "a", true);
        poll(&mut node).await;
        let leases = Arc::clone(&node.leases);
        node.leave().await;
        assert!(leases.held().is_empty());
        assert_eq!(warnings.0.load(Ordering::Relaxed), 0);
        let mut node = member(&store, "b", true);
        poll(&mut node).await;
        node.drop_lost(|_| false);
        assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn shares_add_up() {
        for count in 1..100 {
            let names: Vec<String> = (0..count).map(|n| format!("{n:03}")).collect();
            let live_nodes: Vec<&str> = names.iter().map(String::as_str).collect();
            let shares: Vec<usize> = live_nodes.iter().map(|name| partition_share(&live_nodes, name)).collect();
            assert_eq!(shares.iter().sum::<usize>(), usize::from(PARTITIONS), "{count}");
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn free_partitions_are_claimed_once() {
        let view = ClusterView { nodes: Vec::new(), partitions: vec![StoredPartition::default(); PARTITIONS.into()] };
        let live_nodes = ["a", "b", "c"];
        let mut all: Vec<u16> =
            live_nodes.iter().flat_map(|name| rebalance(&view, &live_nodes, &[], &[], name).claim).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), usize::from(PARTITIONS), "no partition is claimed twice");
    }

    #[tokio::test]
    async fn partitions_lost_in_memory_only_are_claimed_again() {
        let store = Store::memory();
        let mut node = member(&store, "node", true);
        assert_eq!(poll(&mut node).await, 64);
        // As after ten failed polls, or a claim whose reply was lost: the rows still name the node.
        node.drop_lost(|_| false);
        assert_eq!(poll(&mut node).await, 64, "no other node would claim them");
    }

    #[tokio::test]
    async fn a_single_node_claims_all_partitions_at_once() {
        let store = Store::memory();
        let mut former = member(&store, "former life", false);
        assert_eq!(poll(&mut former).await, 64);
        let mut now = member(&store, "now", false);
        assert_eq!(poll(&mut now).await, 64);
        assert!(!may_commit(&store, &former).await, "fenced");
    }

    #[tokio::test]
    async fn nodes_join_and_leave() {
        let store = Store::memory();
        let mut members = vec![member(&store, "a", true)];
        assert_eq!(rounds(&mut members, 1).await, [64]);
        members.push(member(&store, "b", true));
        assert_eq!(rounds(&mut members, 3).await, [32, 32]);
        members.push(member(&store, "c", true));
        assert_eq!(rounds(&mut members, 3).await, [22, 21, 21]);
        assert!(members.iter().all(|member| member.leases.nodes() == 3));
        // A node that leaves is not waited for.
        members.remove(0).leave().await;
        assert_eq!(rounds(&mut members, 2).await, [32, 32]);
    }

    #[tokio::test]
    async fn an_expired_node_is_evicted_and_fenced() {
        let store = Store::memory();
        let mut members = vec![member(&store, "a", true), member(&store, "b", true)];
        rounds(&mut members, 3).await;
        let mut expired_node = members.remove(0);
        // Until the lease expires, its partitions are not touched.
        assert_eq!(rounds(&mut members, LEASE_HEARTBEATS - 1).await, [32]);
        assert!(may_commit(&store, &expired_node).await);
        assert_eq!(rounds(&mut members, 1).await, [64]);
        assert!(!may_commit(&store, &expired_node).await);
        // It resumes, finds that it owns nothing, joins again and gets its share.
        poll(&mut expired_node).await;
        assert!(expired_node.leases.is_empty());
        members.insert(0, expired_node);
        assert_eq!(rounds(&mut members, 3).await, [32, 32]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_node_stops_before_its_partitions_are_claimed() {
        let store = Store::memory();
        let mut frozen = member(&store, "a", true);
        poll(&mut frozen).await;
        (0..PARTITIONS).for_each(|number| frozen.leases.mark_loaded(number));
        assert!(frozen.leases.is_active(3) && frozen.leases.unloaded().is_empty());
        tokio::time::advance(LEASE_VALID_FOR).await;
        assert!(LEASE_VALID_FOR < HEARTBEAT_INTERVAL * LEASE_HEARTBEATS);
        assert!(!frozen.leases.is_active(3));
        assert!(frozen.leases.no_partition_reason().is_some_and(|reason| reason.contains("heartbeat")));
        assert_eq!(frozen.leases.choose_for_domain(&"example.net".parse().unwrap()), None);
        // No node has taken over: it continues, and loads the queues it dropped.
        poll(&mut frozen).await;
        assert!(frozen.leases.is_active(3));
        assert_eq!(frozen.leases.no_partition_reason(), None);
        assert_eq!(frozen.leases.unloaded().len(), usize::from(PARTITIONS));
    }

    #[tokio::test]
    async fn a_successor_of_a_node_claims_at_once() {
        let store = Store::memory();
        let mut members = vec![member(&store, "a", true), member(&store, "b", true)];
        rounds(&mut members, 3).await;
        let mut next = member(&store, "a again", true);
        next.known_nodes.predecessor = Some("a".to_owned());
        assert_eq!(poll(&mut next).await, 32, "in its first poll");
    }

    #[tokio::test]
    async fn a_partition_is_released_after_its_attempts() {
        let store = Store::memory();
        let (mut old, mut new) = (member(&store, "old", true), member(&store, "new", true));
        poll(&mut old).await;
        poll(&mut new).await;
        for _ in 0..LEAVE_HEARTBEATS {
            old.poll(|_| 1).await.unwrap();
            assert_eq!((old.leases.len(), poll(&mut new).await), (32, 0), "attempts are in progress");
        }
        old.poll(|_| 1).await.unwrap();
        assert_eq!(poll(&mut new).await, 32, "but not for ever");
    }

    #[tokio::test]
    async fn new_tasks_are_stored_in_owned_partitions() {
        let store = Store::memory();
        let mut members = vec![member(&store, "a", true), member(&store, "b", true)];
        assert_eq!(members[0].leases.choose_for_domain(&"example.net".parse().unwrap()), None);
        rounds(&mut members, 3).await;
        for n in 0..200 {
            let domain: DomainName = format!("d{n}.example").parse().unwrap();
            for member in &members {
                let chosen = member.leases.choose_for_domain(&domain).unwrap();
                assert!(member.leases.is_active(chosen));
                assert_eq!(member.leases.choose_for_domain(&domain), Some(chosen), "always the same");
            }
        }
    }
}
