//! Holds on queued mail, cached in memory, and their effects.
//!
//! ```text
//! an account is suspended · a store is restored ─►[ store ]─► every node, within one heartbeat
//!                                                             │ account: removed from ready queues, parked by queue
//!                                                             └ queue: no attempts at all
//! ```
//!
//! A hold does not rewrite tasks: it is checked when a task is dispatched, read from disk or attempted. A held queue
//! has one entry in the due index, without a time, and is not read before the hold is lifted. A task that the operator
//! holds is marked in its own row and stays held.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use mail::id::AccountId;
use mail::task::{QueueName, Task};
use mail::task_filter::TaskFilter;
use store::engine::{Batch, CommitError, Key, ReadError};
use store::queue_hold::{self, Hold, HoldScope};
use store::queue_walk::QueueWalk;
use store::task::PARTITIONS;
use thiserror::Error;
use tokio::sync::watch;

use crate::attempt;
use crate::membership::LeaseError;
use crate::worker::Worker;

/// Commits tried when other holds change concurrently.
const COMMIT_TRIES_MAX: usize = 20;
/// Rows of the queue read to count held mail.
const COUNTED_ROWS_MAX: usize = 50_000;

#[derive(Debug, Error)]
pub enum HoldError {
    /// Concurrent changes did not end.
    #[error("another hold was changed at the same time; try again")]
    Conflict,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Amount of mail that a hold affects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldMail {
    /// Queued recipients.
    pub recipients: u64,
    /// Acceptance time of the oldest.
    pub oldest: Option<Timestamp>,
    /// The queue was too long to be read whole: there may be more recipients, and older ones.
    pub has_more: bool,
}

impl HeldMail {
    fn add(&mut self, task: &Task) {
        self.recipients += 1;
        self.oldest = Some(self.oldest.map_or(task.accepted_at, |oldest| oldest.min(task.accepted_at)));
    }
}

/// Cache of all holds.
#[derive(Debug)]
pub(crate) struct HoldCache {
    stored: RwLock<queue_hold::QueueHolds>,
    /// True while the whole queue is held.
    queue_held: watch::Sender<bool>,
    /// One reload at a time: otherwise an older read could replace a newer one.
    reload_lock: tokio::sync::Mutex<()>,
}

impl Default for HoldCache {
    fn default() -> Self {
        Self { stored: RwLock::default(), queue_held: watch::Sender::new(false), reload_lock: Default::default() }
    }
}

impl HoldCache {
    fn read<T>(&self, see: impl FnOnce(&queue_hold::QueueHolds) -> T) -> T {
        see(&self.stored.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether an account's mail is held.
    pub(crate) fn is_account_held(&self, account: AccountId) -> bool {
        self.read(|holds| holds.accounts.get(&account).is_some_and(Hold::is_active))
    }

    /// Returns whether the whole queue is held.
    pub(crate) fn is_queue_held(&self) -> bool {
        *self.queue_held.borrow()
    }

    /// Watches the hold of the whole queue.
    pub(crate) fn watch_queue(&self) -> watch::Receiver<bool> {
        self.queue_held.subscribe()
    }

    /// Replaces the cache. Returns the accounts that became held, and those that were released.
    fn replace(&self, new: queue_hold::QueueHolds) -> (Vec<AccountId>, Vec<AccountId>) {
        let is_held = new.queue.is_some_and(|hold| hold.is_active());
        let mut holds = self.stored.write().unwrap_or_else(PoisonError::into_inner);
        let was_held = |account| holds.accounts.get(account).is_some_and(Hold::is_active);
        let changed = new.accounts.iter().filter(|(account, hold)| was_held(account) != hold.is_active());
        let (held, released): (Vec<_>, Vec<_>) = changed.partition(|(_, hold)| hold.is_active());
        let ids = |changes: Vec<(&AccountId, &Hold)>| changes.into_iter().map(|(account, _)| *account).collect();
        let changed = (ids(held), ids(released));
        *holds = new;
        drop(holds);
        self.queue_held.send_if_modified(|current| std::mem::replace(current, is_held) != is_held);
        changed
    }
}

impl Worker {
    /// The hold of the whole queue, if active.
    #[must_use]
    pub fn queue_hold(&self) -> Option<Hold> {
        self.holds.read(|holds| holds.queue.filter(Hold::is_active))
    }

    /// Returns whether an account's mail is held because the account is suspended.
    #[must_use]
    pub fn is_account_held(&self, account: AccountId) -> bool {
        self.holds.is_account_held(account)
    }

    /// Lifts the hold of the whole queue. Returns it if it was active.
    ///
    /// # Errors
    /// Returns a [`HoldError`] if the store fails or concurrent changes do not end.
    pub async fn lift_queue_hold(&self) -> Result<Option<Hold>, HoldError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let holds = queue_hold::list(&self.services.store).await?;
            let Some(hold) = holds.queue.filter(Hold::is_active) else { return Ok(None) };
            let mut batch = Batch::progress();
            queue_hold::put(&mut batch, &holds.version, &[(HoldScope::Queue, hold.lift(self.services.clock.now()))]);
            match self.services.store.commit(batch).await {
                Ok(()) => {
                    self.reload_holds().await?;
                    return Ok(Some(hold));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(HoldError::Conflict)
    }

    /// Reloads holds if they changed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_holds(&self) -> Result<(), ReadError> {
        let _reload = self.holds.reload_lock.lock().await;
        let version = queue_hold::current_version(&self.services.store).await?;
        if self.holds.read(|holds| holds.version == version) {
            return Ok(());
        }
        let (held, released) = self.holds.replace(queue_hold::list(&self.services.store).await?);
        let now = self.services.clock.now();
        for pool in self.pools.all().filter(|_| !held.is_empty()) {
            let sites: Vec<_> = pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                for account in &held {
                    attempt::defer_to_disk(self, site.remove_account(*account), now);
                }
            }
        }
        if !released.is_empty() {
            self.due_index.make_due_where(|queue| released.contains(&queue.account), now);
        }
        Ok(())
    }

    /// Creates holds for accounts that an older version suspended without holding their mail.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn backfill_holds(&self) -> Result<(), LeaseError> {
        let mut tries_left = COMMIT_TRIES_MAX;
        while !queue_hold::is_backfilled(&self.services.store).await? {
            let holds = queue_hold::list(&self.services.store).await?;
            let suspended =
                store::account::list_suspended(&self.services.store).await?.into_iter().map(HoldScope::Account);
            let new = suspended.filter(|scope| holds.get(*scope).is_none());
            let new: Vec<_> = new.map(|scope| (scope, Hold::begin(self.services.clock.now()))).collect();
            let mut batch = Batch::progress();
            queue_hold::mark_backfilled(&mut batch);
            queue_hold::put(&mut batch, &holds.version, &new);
            match self.services.store.commit(batch).await {
                Ok(()) => break,
                // Another node was faster, or another hold changed concurrently.
                Err(CommitError::Conflict { .. }) if tries_left > 1 => tries_left -= 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.reload_holds().await?)
    }

    /// Returns a task of a held account to disk. Its queue is not read before the hold is lifted.
    pub(crate) fn park(&self, task: &Task) {
        self.in_flight.finish(task.id);
        self.park_queue(task.queue_name(), store::task::key_of(task));
    }

    /// Like [`park`](Self::park), for a queue from `from` on.
    pub(crate) fn park_queue(&self, queue: QueueName, from: Key) {
        self.due_index.add(queue.clone(), Timestamp::MAX, from);
        // If the hold was lifted before this entry existed, make the queue due here.
        if !self.holds.is_account_held(queue.account) {
            self.due_index.make_due(&queue, self.services.clock.now());
        }
    }

    /// Waits until the queue is not held, or the worker stops.
    pub(crate) async fn wait_until_released(&self) {
        let mut hold_changes = self.holds.watch_queue();
        tokio::select! {
            // The sender exists as long as `self`: an error is impossible.
            _ = hold_changes.wait_for(|held| !held) => {}
            () = self.services.stop.cancelled() => {}
        }
    }

    /// Counts the queued mail of an account, or of all. Reads at most [`COUNTED_ROWS_MAX`] rows; a longer queue that
    /// this node owns alone is counted in memory, which knows the time of the oldest by the minute.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_held(&self, account: Option<AccountId>) -> Result<HeldMail, ReadError> {
        let counts = self.services.store.queue_counts();
        if account.is_none() && self.services.leases.len() == usize::from(PARTITIONS) && !counts.is_incomplete() {
            let summary = counts.summary(0);
            let recipients = summary.recipients.iter().map(|(.., recipients)| recipients).sum();
            if recipients > COUNTED_ROWS_MAX as u64 {
                return Ok(HeldMail { recipients, oldest: summary.oldest_accepted_at, has_more: false });
            }
        }
        let mut waiting = HeldMail::default();
        let filter = TaskFilter { account, ..TaskFilter::default() };
        let mut walk = QueueWalk::new(&self.services.store, filter, COUNTED_ROWS_MAX);
        while let Some(page) = walk.next_page().await? {
            page.tasks.iter().for_each(|(task, _)| waiting.add(task));
        }
        waiting.has_more = walk.rest().is_some();
        Ok(waiting)
    }

    /// Logs that the queue is held, and how much mail waits.
    pub(crate) async fn log_queue_hold(self: Arc<Self>) {
        let Some(hold) = self.queue_hold() else { return };
        let since = hold.since;
        match self.count_held(None).await {
            Ok(HeldMail { recipients, oldest, has_more }) => tracing::warn!(
                recipients,
                has_more,
                oldest = oldest.map(tracing::field::display),
                "the queue is held since {since:.0}, because the store was restored: mail is accepted, but not \
                 sent. Mail delivered after the backup would be sent again. List it with `postrider \
                 admin queue list`, remove mail with `queue drop`, and send the rest with \
                 `postrider admin queue release --all`"
            ),
            Err(error) => {
                tracing::warn!(%error, "the queue is held since {since:.0}; cannot count its mail")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::engine::Store;

    use super::*;
    use crate::outcome::tests::task;
    use crate::worker::tests::idle;

    async fn put(worker: &Worker, account: AccountId, change: impl FnOnce(Option<Hold>) -> Hold) {
        let holds = queue_hold::list(&worker.services.store).await.unwrap();
        let scope = HoldScope::Account(account);
        let mut batch = Batch::progress();
        queue_hold::put(&mut batch, &holds.version, &[(scope, change(holds.get(scope)))]);
        worker.services.store.commit(batch).await.unwrap();
        worker.reload_holds().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_parked_while_its_hold_is_lifted_is_due_at_once() {
        let (worker, task) = (idle(Store::memory()), task());
        let now = worker.services.clock.now();
        put(&worker, task.account, |_| Hold::begin(now)).await;
        worker.park(&task);
        assert_eq!(worker.due_index.next_due(), Some(Timestamp::MAX), "nothing reads it");
        put(&worker, task.account, |hold| hold.unwrap().lift(now)).await;
        assert!(worker.due_index.next_due() <= Some(worker.services.clock.now()));
        worker.due_index.pop_due(Timestamp::MAX);
        // Found held, and released before the entry existed.
        worker.park(&task);
        assert!(worker.due_index.next_due() <= Some(worker.services.clock.now()), "nobody would look at it");
    }

    #[tokio::test]
    async fn a_restored_store_is_held_until_it_is_released() {
        let store = Store::memory();
        store.commit(queue_hold::restore_batch(Timestamp::UNIX_EPOCH, true)).await.unwrap();
        let worker = idle(store);
        worker.backfill_holds().await.unwrap();
        assert_eq!(worker.queue_hold(), Some(Hold::begin(Timestamp::UNIX_EPOCH)));
        assert!(worker.holds.is_queue_held());
        assert!(worker.lift_queue_hold().await.unwrap().is_some());
        assert!(!worker.holds.is_queue_held() && worker.lift_queue_hold().await.unwrap().is_none());
    }
}
