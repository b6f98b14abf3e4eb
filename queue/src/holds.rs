//! What holds mail in the queue back, in memory, and what follows from it.
//!
//! ```text
//! an account is suspended · a store is restored ─►[ store ]─► every node, within a beat
//!                                                             │ account: out of its lines, parked by queue
//!                                                             └ queue: nothing is attempted at all
//! ```
//!
//! Tasks are not rewritten: a rule says who may go, where a task is dispatched, read from disk and attempted. A queue that
//! is held has one entry in memory, without a time, and is not read again before the hold is lifted. What the operator
//! holds by hand is marked in its task, and stays held.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use mail::id::AccountId;
use mail::task::{QueueName, Task};
use store::engine::{Batch, CommitError, Key, ReadError};
use store::queue_hold::{self, Hold, HoldScope};
use store::task::PARTITIONS;
use thiserror::Error;
use tokio::sync::watch;

use crate::attempt;
use crate::membership::LeaseError;
use crate::worker::Worker;

/// Commits tried, when another hold changes meanwhile.
const TRIES_MAX: usize = 20;
/// Tasks read at once.
const SLICE_TASKS: usize = 1_000;

/// Why a hold was not lifted.
#[derive(Debug, Error)]
pub enum HoldError {
    /// Others change holds without end.
    #[error("another hold was changed at the same time; try again")]
    Changed,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// How much of the queue a hold is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Recipients that are in the queue.
    pub recipients: u64,
    /// When the oldest was accepted.
    pub oldest: Option<Timestamp>,
}

impl Waiting {
    fn add(&mut self, task: &Task) {
        self.recipients += 1;
        self.oldest = Some(self.oldest.map_or(task.accepted_at, |oldest| oldest.min(task.accepted_at)));
    }
}

/// All holds, as they were read last.
#[derive(Debug)]
pub(crate) struct Holds {
    known: RwLock<queue_hold::Holds>,
    /// Whether the whole queue is held.
    queue: watch::Sender<bool>,
    /// One at a time looks what is new: else what was read first could be taken on last.
    looking: tokio::sync::Mutex<()>,
}

impl Default for Holds {
    fn default() -> Self {
        Self { known: RwLock::default(), queue: watch::Sender::new(false), looking: Default::default() }
    }
}

impl Holds {
    fn with<T>(&self, see: impl FnOnce(&queue_hold::Holds) -> T) -> T {
        see(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether an account's mail is held.
    pub(crate) fn holds(&self, account: AccountId) -> bool {
        self.with(|known| known.accounts.get(&account).is_some_and(Hold::is_on))
    }

    /// Whether the whole queue is held.
    pub(crate) fn is_queue_held(&self) -> bool {
        *self.queue.borrow()
    }

    /// Hears when the whole queue is held, and when not any more.
    pub(crate) fn of_queue(&self) -> watch::Receiver<bool> {
        self.queue.subscribe()
    }

    /// Takes on what was read; gives the accounts whose mail is held since, and those whose mail is not any more.
    fn adopt(&self, new: queue_hold::Holds) -> (Vec<AccountId>, Vec<AccountId>) {
        let is_held = new.queue.is_some_and(|hold| hold.is_on());
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let was_on = |account| known.accounts.get(account).is_some_and(Hold::is_on);
        let changed = new.accounts.iter().filter(|(account, hold)| was_on(account) != hold.is_on());
        let (held, lifted): (Vec<_>, Vec<_>) = changed.partition(|(_, hold)| hold.is_on());
        let ids = |these: Vec<(&AccountId, &Hold)>| these.into_iter().map(|(account, _)| *account).collect();
        let changed = (ids(held), ids(lifted));
        *known = new;
        drop(known);
        self.queue.send_if_modified(|was| std::mem::replace(was, is_held) != is_held);
        changed
    }
}

impl Worker {
    /// The hold of the whole queue, while it is on.
    #[must_use]
    pub fn queue_hold(&self) -> Option<Hold> {
        self.holds.with(|known| known.queue.filter(Hold::is_on))
    }

    /// Whether an account's mail is held, because the account is suspended.
    #[must_use]
    pub fn holds_account(&self, account: AccountId) -> bool {
        self.holds.holds(account)
    }

    /// Lifts the hold of the whole queue; gives it, if it was on.
    ///
    /// # Errors
    /// [`HoldError`].
    pub async fn lift_queue_hold(&self) -> Result<Option<Hold>, HoldError> {
        for _ in 0..TRIES_MAX {
            let holds = queue_hold::all(&self.store).await?;
            let Some(hold) = holds.queue.filter(Hold::is_on) else { return Ok(None) };
            let mut batch = Batch::progress();
            queue_hold::put(&mut batch, &holds.version, &[(HoldScope::Queue, hold.lift(self.clock.now()))]);
            match self.store.commit(batch).await {
                Ok(()) => {
                    self.look_at_holds().await?;
                    return Ok(Some(hold));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(HoldError::Changed)
    }

    /// Takes on holds that were begun or lifted since the last look.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn look_at_holds(&self) -> Result<(), ReadError> {
        let _looking = self.holds.looking.lock().await;
        let version = queue_hold::version(&self.store).await?;
        if self.holds.with(|known| known.version == version) {
            return Ok(());
        }
        let (held, lifted) = self.holds.adopt(queue_hold::all(&self.store).await?);
        let now = self.clock.now();
        for pool in self.pools.all().filter(|_| !held.is_empty()) {
            let sites: Vec<_> = pool.sites().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                for account in &held {
                    attempt::leave_to_disk(self, site.take_out_all(*account), now);
                }
            }
        }
        if !lifted.is_empty() {
            self.scheduled.hasten_where(|queue| lifted.contains(&queue.account), now);
        }
        Ok(())
    }

    /// Writes the holds of accounts that a version suspended which did not hold their mail.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn begin_holds(&self) -> Result<(), LeaseError> {
        let mut tries = TRIES_MAX;
        while !queue_hold::is_begun(&self.store).await? {
            let holds = queue_hold::all(&self.store).await?;
            let suspended = store::account::suspended(&self.store).await?.into_iter().map(HoldScope::Account);
            let new = suspended.filter(|scope| holds.of(*scope).is_none());
            let new: Vec<_> = new.map(|scope| (scope, Hold::begin(self.clock.now()))).collect();
            let mut batch = Batch::progress();
            queue_hold::begin(&mut batch);
            queue_hold::put(&mut batch, &holds.version, &new);
            match self.store.commit(batch).await {
                Ok(()) => break,
                // Another node was quicker, or another hold was begun or lifted meanwhile.
                Err(CommitError::Conflict { .. }) if tries > 1 => tries -= 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.look_at_holds().await?)
    }

    /// Leaves a task to disk while its account's mail is held. Nothing is read of its queue before the hold is lifted.
    pub(crate) fn park(&self, task: &Task) {
        self.flights.land(task.id);
        self.park_queue(task.queue(), store::task::key_of(task));
    }

    /// The same for a queue, from a key on.
    pub(crate) fn park_queue(&self, queue: QueueName, from: Key) {
        self.scheduled.note(queue.clone(), Timestamp::MAX, from);
        // Lifted before this was noted: then nobody else has it looked at.
        if !self.holds.holds(queue.account) {
            self.scheduled.hasten(&queue, self.clock.now());
        }
    }

    /// Returns when the queue is not held, or the worker stops.
    pub(crate) async fn queue_let_go(&self) {
        let mut heard = self.holds.of_queue();
        tokio::select! {
            // The sender is ours: it is not gone while we wait.
            _ = heard.wait_for(|held| !held) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// How much is in the queue: of an account, or all of it. Reads all of that.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_waiting(&self, account: Option<AccountId>) -> Result<Waiting, ReadError> {
        let mut waiting = Waiting::default();
        for partition in 0..PARTITIONS {
            let mut next = None;
            while let Some((queue, due, after)) =
                store::task::next_queue(&self.store, partition, next).await?
            {
                if account.is_none_or(|account| queue.account == account) {
                    let mut from = Some(store::task::start_of(&queue, due));
                    while let Some(start) = from {
                        let slice = store::task::list(&self.store, &queue, start, SLICE_TASKS).await?;
                        slice.tasks.iter().for_each(|(task, _)| waiting.add(task));
                        from = slice.next;
                    }
                }
                next = Some(after);
            }
            tokio::task::yield_now().await;
        }
        Ok(waiting)
    }

    /// Says in the log that the queue is held, and how much waits in it.
    pub(crate) async fn tell_hold(self: Arc<Self>) {
        let Some(hold) = self.queue_hold() else { return };
        let since = hold.since;
        match self.count_waiting(None).await {
            Ok(Waiting { recipients, oldest }) => tracing::warn!(
                recipients,
                oldest = oldest.map(tracing::field::display),
                "the queue is held since {since:.0}, because the store was restored: mail is accepted, and nothing is \
                 sent. Mail that was delivered after the backup was made would be sent again. Look with `postrider \
                 admin queue list`, take out what is not to go with `queue drop`, and let the rest go with \
                 `postrider admin queue release --all`"
            ),
            Err(error) => {
                tracing::warn!(%error, "the queue is held since {since:.0}; what waits in it cannot be read")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::engine::Store;

    use super::*;
    use crate::settle::tests::task;
    use crate::worker::tests::idle;

    async fn put(worker: &Worker, account: AccountId, change: impl FnOnce(Option<Hold>) -> Hold) {
        let holds = queue_hold::all(&worker.store).await.unwrap();
        let scope = HoldScope::Account(account);
        let mut batch = Batch::progress();
        queue_hold::put(&mut batch, &holds.version, &[(scope, change(holds.of(scope)))]);
        worker.store.commit(batch).await.unwrap();
        worker.look_at_holds().await.unwrap();
    }

    #[tokio::test]
    async fn what_is_parked_when_its_hold_is_lifted_is_looked_at() {
        let (worker, task) = (idle(Store::memory()), task());
        let now = worker.clock.now();
        put(&worker, task.account, |_| Hold::begin(now)).await;
        worker.park(&task);
        assert_eq!(worker.scheduled.next_due(), Some(Timestamp::MAX), "nothing reads it");
        put(&worker, task.account, |hold| hold.unwrap().lift(now)).await;
        assert!(worker.scheduled.next_due() <= Some(worker.clock.now()));
        worker.scheduled.pop_due(Timestamp::MAX);
        // Found to be held, and lifted before that was noted.
        worker.park(&task);
        assert!(worker.scheduled.next_due() <= Some(worker.clock.now()), "nobody would look at it");
    }

    #[tokio::test]
    async fn a_restored_store_is_held_until_it_is_released() {
        let store = Store::memory();
        store.commit(queue_hold::of_stopped_store(Timestamp::UNIX_EPOCH, true)).await.unwrap();
        let worker = idle(store);
        worker.begin_holds().await.unwrap();
        assert_eq!(worker.queue_hold(), Some(Hold::begin(Timestamp::UNIX_EPOCH)));
        assert!(worker.holds.is_queue_held());
        assert!(worker.lift_queue_hold().await.unwrap().is_some());
        assert!(!worker.holds.is_queue_held() && worker.lift_queue_hold().await.unwrap().is_none());
    }
}
