//! Membership: this node among the others, and how they share the partitions out.
//!
//! ```text
//! every second: beat ─► look ─► bury the dead ─► take what is nobody's, up to our share
//!                                            └─► leave what is beyond our share: finish, then give up
//! ```
//!
//! Every node takes the same decision from the same view, so they need not talk: with `n` nodes, each
//! comes to 64/n partitions. A node is dead when its row has not changed for [`LEASE_BEATS`] looks of
//! ours: no clock of another machine is ever believed. What a node may do does not hang on any of this
//! being prompt: each commit about a task checks that its partition is still ours ([`Held::fence`]).
//!
//! A store that only one process can open needs none of it: its node takes everything at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use store::engine::{Batch, CommitError, ReadError, Store};
use store::lease::{self, ClusterView, FencingToken, Node, StoredNode, StoredPartition};
use store::task::PARTITIONS;
use thiserror::Error;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::lease::{Leases, OwnedPartition};
use crate::operate::QueueAdminError;
use crate::order::QueueCommand;
use crate::worker::Worker;

/// How often a node shows that it lives, and looks at the others.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A node whose row does not change for so many looks is dead.
pub const LEASE_HEARTBEATS: u32 = 10;
/// How many looks a partition that we leave may wait for its last attempts.
const LEAVE_HEARTBEATS: u32 = 30;
/// Hints followed at one look.
const HINTS_MAX: usize = 500;

/// Why a look came to nothing; the next one is a second later.
#[derive(Debug, Clone, Error)]
pub enum LeaseError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What a node does about a view. The same view gives every node decisions that fit together.
#[derive(Debug, Default, PartialEq, Eq)]
struct RebalanceDecision {
    claim: Vec<u16>,
    release: Vec<u16>,
}

/// How many partitions each of the nodes is to have; names in order.
fn partition_share(alive: &[&str], node: &str) -> usize {
    let count = alive.len().max(1);
    let place = alive.iter().position(|name| *name == node).unwrap_or(count);
    let all = usize::from(PARTITIONS);
    all / count + usize::from(place < all % count)
}

fn rebalance(view: &ClusterView, alive: &[&str], (active, held): (&[u16], &[u16]), node: &str) -> RebalanceDecision {
    let share = partition_share(alive, node);
    if active.len() > share {
        return RebalanceDecision { release: active[share..].to_vec(), ..RebalanceDecision::default() };
    }
    // A row that names us without our knowing (we dropped it, or the answer to our taking it was lost) is
    // nobody's too: as long as we live, no other node would ever take it.
    let is_free = |(number, seen): &(u16, &StoredPartition)| match seen.tenure.node.as_deref() {
        None => true,
        Some(owner) if owner == node => !held.contains(number),
        Some(owner) => !alive.contains(&owner),
    };
    let free = (0..PARTITIONS).zip(&view.partitions).filter(is_free);
    // Nodes begin at different ends, so that they seldom reach for the same.
    let before: usize =
        alive.iter().take_while(|name| **name != node).map(|name| self::partition_share(alive, name)).sum();
    let mut free: Vec<u16> = free.map(|(number, _)| number).collect();
    let begin = (before * free.len() / usize::from(PARTITIONS)).min(free.len());
    free.rotate_left(begin);
    free.truncate(share - active.len());
    RebalanceDecision { claim: free, ..RebalanceDecision::default() }
}

/// What is known of other nodes beforehand.
pub(crate) struct KnownNodes {
    /// Whether there may be any.
    pub(crate) may_exist: bool,
    /// One that is dead, because this node has taken its place.
    pub(crate) predecessor: Option<String>,
}

/// This node among the others.
pub(crate) struct Membership {
    store: Store,
    known_nodes: KnownNodes,
    clock: Clock,
    leases: Arc<Leases>,
    name: String,
    own_row: Option<StoredNode>,
    /// The others' last beats, and for how many looks they have stood still.
    heartbeats: HashMap<String, (u64, u32)>,
    failures: u32,
}

impl Membership {
    pub(crate) fn new(
        (store, known_nodes): (Store, KnownNodes),
        clock: Clock,
        leases: Arc<Leases>,
        name: String,
    ) -> Self {
        Self { store, known_nodes, clock, leases, name, own_row: None, heartbeats: HashMap::new(), failures: 0 }
    }

    /// One look; what it takes is [`Leases::unfound`]. `attempting` says how many attempts of a partition are
    /// under way.
    pub(crate) async fn poll(&mut self, attempting: impl Fn(u16) -> usize) -> Result<(), LeaseError> {
        match self.poll_once(attempting).await {
            Ok(()) => {
                self.failures = 0;
                Ok(())
            }
            Err(error) => {
                self.failures += 1;
                if self.failures == LEASE_HEARTBEATS {
                    // By now the others have taken over: what we tried would be tried twice.
                    tracing::error!(%error, "this node has shown no sign of life for so long that it gives up its partitions");
                    self.drop_lost(|_| false);
                }
                Err(error)
            }
        }
    }

    async fn poll_once(&mut self, attempting: impl Fn(u16) -> usize) -> Result<(), LeaseError> {
        self.heartbeat().await?;
        let view = lease::read_view(&self.store).await?;
        self.drop_lost(|held| held.is_current_in(&view));
        let dead = self.find_expired(&view);
        for seen in &dead {
            let mut batch = Batch::progress();
            lease::evict(&mut batch, seen);
            match self.store.commit(batch).await {
                // In a store of our own it was us, before the last start: no news.
                Ok(()) if !self.store.is_shared() => {}
                Ok(()) => {
                    tracing::warn!(node = seen.node.name, "a node is dead: its partitions are taken over")
                }
                // It lives, or another node was quicker.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let alive: Vec<&str> = view
            .nodes
            .iter()
            .map(|seen| seen.node.name.as_str())
            .filter(|name| !dead.iter().any(|dead| dead.node.name == *name))
            .collect();
        let (active, held) = {
            let mut state = self.leases.lock();
            let nodes = u32::try_from(alive.len()).unwrap_or(u32::MAX);
            if state.nodes != nodes {
                tracing::info!(nodes, "nodes that share the work");
                state.nodes = nodes;
            }
            (state.active.clone(), state.partitions.keys().copied().collect::<Vec<_>>())
        };
        let decision = rebalance(&view, &alive, (&active, &held), &self.name);
        self.start_release(&decision.release);
        self.finish_release(attempting).await?;
        self.claim_partitions(&view, &decision.claim).await
    }

    /// Shows that we live. A node that was buried by mistake joins anew.
    async fn heartbeat(&mut self) -> Result<(), LeaseError> {
        for _ in 0..2 {
            let beats = self.own_row.as_ref().map_or(1, |seen| seen.node.beats + 1);
            let started_at = self.own_row.as_ref().map_or_else(|| self.clock.now(), |seen| seen.node.started_at);
            let mut batch = Batch::progress();
            let node = Node { name: self.name.clone(), beats, started_at };
            let seen = lease::heartbeat(&mut batch, self.own_row.as_ref(), node);
            let began = Instant::now();
            match self.store.commit(batch).await {
                Ok(()) => {
                    self.own_row = Some(seen);
                    if self.known_nodes.may_exist {
                        self.leases.lock().renew(began);
                    }
                    return Ok(());
                }
                Err(CommitError::Conflict { .. }) => {
                    tracing::warn!("the other nodes took this one for dead; it joins again");
                    let view = lease::read_view(&self.store).await?;
                    self.own_row = view.nodes.into_iter().find(|seen| seen.node.name == self.name);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The nodes that have not beaten for too long. With a store of our own, nobody else lives.
    fn find_expired(&mut self, view: &ClusterView) -> Vec<StoredNode> {
        let mut dead = Vec::new();
        let mut others = HashMap::new();
        for seen in view.nodes.iter().filter(|seen| seen.node.name != self.name) {
            let still = match self.heartbeats.get(&seen.node.name) {
                Some((beats, still)) if *beats == seen.node.beats => still + 1,
                _ => 0,
            };
            let is_former = self.known_nodes.predecessor.as_ref() == Some(&seen.node.name);
            if still >= LEASE_HEARTBEATS || is_former || !self.known_nodes.may_exist {
                dead.push(seen.clone());
            }
            others.insert(seen.node.name.clone(), (seen.node.beats, still));
        }
        self.heartbeats = others;
        dead
    }

    /// Forgets the partitions that are not ours any more.
    fn drop_lost(&self, ours: impl Fn(&FencingToken) -> bool) {
        let mut state = self.leases.lock();
        let before = state.partitions.len();
        state.partitions.retain(|_, holding| ours(&holding.token));
        if state.partitions.len() < before {
            tracing::warn!(partitions = before - state.partitions.len(), "partitions went to another node");
            state.refresh_active();
            drop(state);
            self.leases.changed.notify_waiters();
        }
    }

    fn start_release(&self, partitions: &[u16]) {
        let mut state = self.leases.lock();
        for partition in partitions {
            if let Some(holding) = state.partitions.get_mut(partition) {
                holding.leaving_polls = Some(0);
            }
        }
        state.refresh_active();
    }

    /// Gives up the partitions that we leave and in which nothing is under way any more.
    async fn finish_release(&self, attempting: impl Fn(u16) -> usize) -> Result<(), LeaseError> {
        let done: Vec<FencingToken> = {
            let mut state = self.leases.lock();
            let leaving = state.partitions.values_mut().filter_map(|holding| {
                let beats = holding.leaving_polls.as_mut()?;
                *beats += 1;
                let done = attempting(holding.token.partition()) == 0 || *beats > LEAVE_HEARTBEATS;
                done.then(|| holding.token.clone())
            });
            leaving.collect()
        };
        self.release_partitions(&done).await
    }

    async fn release_partitions(&self, partitions: &[FencingToken]) -> Result<(), LeaseError> {
        if partitions.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::progress();
        partitions.iter().for_each(|held| held.release(&mut batch));
        match self.store.commit(batch).await {
            // A conflict: somebody has taken one over; the next look sees which.
            Ok(()) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.drop_lost(|held| !partitions.contains(held));
        Ok(())
    }

    async fn claim_partitions(&self, view: &ClusterView, partitions: &[u16]) -> Result<(), LeaseError> {
        let mut wanted = Vec::with_capacity(partitions.len());
        let mut commits = Vec::with_capacity(partitions.len());
        for partition in partitions {
            if let Some(seen) = view.partitions.get(usize::from(*partition)) {
                let mut batch = Batch::progress();
                wanted.push(lease::acquire(&mut batch, *partition, seen, &self.name));
                commits.push(self.store.commit(batch));
            }
        }
        let (mut taken, mut failed) = (0, None);
        for (held, committed) in wanted.into_iter().zip(futures_util::future::join_all(commits).await) {
            match committed {
                Ok(()) => {
                    taken += 1;
                    let number = held.partition();
                    self.leases
                        .lock()
                        .partitions
                        .insert(number, OwnedPartition { token: held, leaving_polls: None, is_loaded: false });
                }
                Err(CommitError::Conflict { .. }) => {}
                // Those that were taken beside it are ours all the same.
                Err(error) => failed = Some(error),
            }
        }
        if taken > 0 {
            tracing::info!(partitions = taken, "partitions taken");
            self.leases.lock().refresh_active();
            self.leases.changed.notify_waiters();
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Gives up everything and leaves: others take over at their next look.
    pub(crate) async fn leave(mut self) {
        let held: Vec<FencingToken> =
            self.leases.lock().partitions.values().map(|holding| holding.token.clone()).collect();
        if let Err(error) = self.release_partitions(&held).await {
            return tracing::warn!(%error, "the partitions could not be given up: others wait until the lease is over");
        }
        if let Some(seen) = self.own_row.take() {
            let mut batch = Batch::progress();
            lease::evict(&mut batch, &seen);
            // A row that stays is buried by the others.
            let _ = self.store.commit(batch).await;
        }
    }
}

impl Worker {
    /// Carries out what operators ordered at other nodes about tasks of ours.
    pub(crate) async fn apply_hints(self: &Arc<Self>) -> Result<(), LeaseError> {
        let hints = store::task::list_hints(&self.store, HINTS_MAX).await?;
        for hint in hints.iter().filter(|hint| self.leases.is_active(hint.partition)) {
            let carried = match QueueCommand::from_word(&hint.order) {
                Some(order) => self.execute_command(hint.account, hint.email, &order).await,
                // Of a newer version: whoever wrote it finds out.
                None => Ok(()),
            };
            match carried {
                // It is being tried, or has just changed: at the next look.
                Err(QueueAdminError::Busy(_) | QueueAdminError::Commit(CommitError::Conflict { .. })) => {
                    continue;
                }
                Err(QueueAdminError::Read(error)) => return Err(error.into()),
                Err(QueueAdminError::Commit(error)) => return Err(error.into()),
                Ok(())
                | Err(QueueAdminError::Unknown(_) | QueueAdminError::Finished(_) | QueueAdminError::NoSmarthost(_)) => {
                }
            }
            let mut batch = Batch::progress();
            hint.remove_hint(&mut batch);
            match self.store.commit(batch).await {
                Ok(()) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::LEASE_VALID_FOR;
    use mail::address::DomainName;

    fn member(store: &Store, name: &str, shared: bool) -> Membership {
        let neighbours = KnownNodes { may_exist: shared, predecessor: None };
        Membership::new((store.clone(), neighbours), Clock::default(), Arc::default(), name.to_owned())
    }

    async fn look(member: &mut Membership) -> usize {
        member.poll(|_| 0).await.unwrap();
        member.leases.len()
    }

    /// All members look in turns, so many times; how many partitions each has then.
    async fn rounds(members: &mut [Membership], count: u32) -> Vec<usize> {
        for _ in 0..count {
            for member in &mut *members {
                look(member).await;
            }
        }
        members.iter().map(|member| member.leases.len()).collect()
    }

    /// Whether a member may still commit something about the first partition that it believes to have.
    async fn may_commit(store: &Store, member: &Membership) -> bool {
        let held = member.leases.lock().partitions.values().next().map(|holding| holding.token.clone());
        let Some(held) = held else { return false };
        let mut batch = Batch::progress();
        held.fence(&mut batch);
        store.commit(batch).await.is_ok()
    }

    #[test]
    fn shares_add_up() {
        for count in 1..100 {
            let names: Vec<String> = (0..count).map(|n| format!("{n:03}")).collect();
            let alive: Vec<&str> = names.iter().map(String::as_str).collect();
            let shares: Vec<usize> = alive.iter().map(|name| partition_share(&alive, name)).collect();
            assert_eq!(shares.iter().sum::<usize>(), usize::from(PARTITIONS), "{count}");
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn what_is_nobodys_is_taken_once() {
        let view = ClusterView { nodes: Vec::new(), partitions: vec![StoredPartition::default(); PARTITIONS.into()] };
        let alive = ["a", "b", "c"];
        let mut all: Vec<u16> =
            alive.iter().flat_map(|name| rebalance(&view, &alive, (&[], &[]), name).claim).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), usize::from(PARTITIONS), "no two reach for the same");
    }

    #[tokio::test]
    async fn what_a_node_has_given_up_in_memory_alone_it_takes_again() {
        let store = Store::memory();
        let mut node = member(&store, "node", true);
        assert_eq!(look(&mut node).await, 64);
        // As after ten looks that failed, or a take-over whose answer was lost: the rows still name it.
        node.drop_lost(|_| false);
        assert_eq!(look(&mut node).await, 64, "nobody else would ever take them");
    }

    #[tokio::test]
    async fn a_store_of_ones_own_is_taken_whole() {
        let store = Store::memory();
        let mut former = member(&store, "former life", false);
        assert_eq!(look(&mut former).await, 64);
        let mut now = member(&store, "now", false);
        assert_eq!(look(&mut now).await, 64);
        assert!(!may_commit(&store, &former).await, "it is fenced off");
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
        // One that parts is not waited for.
        members.remove(0).leave().await;
        assert_eq!(rounds(&mut members, 2).await, [32, 32]);
    }

    #[tokio::test]
    async fn a_dead_node_is_taken_over_and_fenced_off() {
        let store = Store::memory();
        let mut members = vec![member(&store, "a", true), member(&store, "b", true)];
        rounds(&mut members, 3).await;
        let mut dead = members.remove(0);
        // As long as the lease lasts, nothing of it is touched.
        assert_eq!(rounds(&mut members, LEASE_HEARTBEATS - 1).await, [32]);
        assert!(may_commit(&store, &dead).await);
        assert_eq!(rounds(&mut members, 1).await, [64]);
        assert!(!may_commit(&store, &dead).await);
        // It wakes up: it finds that it has nothing, joins anew, and gets its share again.
        look(&mut dead).await;
        assert!(dead.leases.is_empty());
        members.insert(0, dead);
        assert_eq!(rounds(&mut members, 3).await, [32, 32]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_frozen_lets_go_before_others_begin() {
        let store = Store::memory();
        let mut frozen = member(&store, "a", true);
        look(&mut frozen).await;
        (0..PARTITIONS).for_each(|number| frozen.leases.mark_loaded(number));
        assert!(frozen.leases.is_active(3) && frozen.leases.unloaded().is_empty());
        tokio::time::advance(LEASE_VALID_FOR).await;
        assert!(LEASE_VALID_FOR < HEARTBEAT_INTERVAL * LEASE_HEARTBEATS);
        assert!(!frozen.leases.is_active(3));
        assert_eq!(frozen.leases.choose_for_domain(&"example.net".parse().unwrap()), None);
        // Nobody has taken over: it goes on, and finds what it let go of.
        look(&mut frozen).await;
        assert!(frozen.leases.is_active(3));
        assert_eq!(frozen.leases.unloaded().len(), usize::from(PARTITIONS));
    }

    #[tokio::test]
    async fn who_takes_its_place_need_not_wait() {
        let store = Store::memory();
        let mut members = vec![member(&store, "a", true), member(&store, "b", true)];
        rounds(&mut members, 3).await;
        let mut next = member(&store, "a again", true);
        next.known_nodes.predecessor = Some("a".to_owned());
        assert_eq!(look(&mut next).await, 32, "in its first look");
    }

    #[tokio::test]
    async fn a_partition_is_left_when_its_attempts_are_over() {
        let store = Store::memory();
        let (mut old, mut new) = (member(&store, "old", true), member(&store, "new", true));
        look(&mut old).await;
        look(&mut new).await;
        for _ in 0..LEAVE_HEARTBEATS {
            old.poll(|_| 1).await.unwrap();
            assert_eq!((old.leases.len(), look(&mut new).await), (32, 0), "attempts are under way");
        }
        old.poll(|_| 1).await.unwrap();
        assert_eq!(look(&mut new).await, 32, "but nobody waits for ever");
    }

    #[tokio::test]
    async fn new_tasks_go_into_partitions_of_ones_own() {
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
