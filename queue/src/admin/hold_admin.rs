//! Changes of holds and their effects on the ready queues.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use model::id::AccountId;
use model::task::Task;
use model::task_filter::TaskFilter;
use store::engine::{Batch, CommitError, ReadError, StoreError};
use store::queue_hold::{self, Hold, HoldScope};
use store::queue_walk::QueueWalk;
use store::task::PARTITIONS;
use store::{RetriesExhausted, retry_on_conflict};
use thiserror::Error;

use crate::scheduler::destination_queues::DestinationQueues;

/// Commits tried when other holds change concurrently.
const COMMIT_TRIES_MAX: usize = 20;
/// Rows of the queue read to count held mail.
const COUNTED_ROWS_MAX: usize = 50_000;

#[derive(Debug, Error)]
pub enum HoldError {
    /// Concurrent changes did not end.
    #[error("another hold was changed at the same time; try again")]
    Conflict(#[from] RetriesExhausted),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl HoldError {
    /// Returns whether the database is unavailable. The store logs that itself.
    pub fn is_away(&self) -> bool {
        match self {
            Self::Conflict(_) => false,
            Self::Read(error) => error.is_away(),
            Self::Commit(error) => error.is_away(),
        }
    }
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

impl DestinationQueues {
    /// The hold of the whole queue, if active.
    pub fn queue_hold(&self) -> Option<Hold> {
        self.scheduler.holds.read(|holds| holds.queue.filter(Hold::is_active))
    }

    /// Returns whether an account's mail is held because the account is suspended.
    pub fn is_account_held(&self, account: AccountId) -> bool {
        self.scheduler.holds.is_account_held(account)
    }

    /// Lifts the hold of the whole queue. Returns it if it was active.
    ///
    /// # Errors
    /// Returns a [`HoldError`] if the store fails or concurrent changes do not end.
    pub async fn lift_queue_hold(&self) -> Result<Option<Hold>, HoldError> {
        let lifted = retry_on_conflict(|| async {
            let holds = queue_hold::list(&self.services.store).await?;
            let Some(hold) = holds.queue.filter(Hold::is_active) else { return Ok(Some(None)) };
            let mut batch = Batch::progress();
            queue_hold::put(&mut batch, &holds.version, &[(HoldScope::Queue, hold.lift(self.services.clock.now()))]);
            Ok::<_, HoldError>(self.services.store.try_commit(batch).await?.then_some(Some(hold)))
        })
        .await?;
        self.reload_holds().await?;
        Ok(lifted)
    }

    /// Reloads holds if they changed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn reload_holds(&self) -> Result<(), ReadError> {
        let _reload = self.scheduler.holds.reload_lock.lock().await;
        let version = queue_hold::current_version(&self.services.store).await?;
        if self.scheduler.holds.read(|holds| holds.version == version) {
            return Ok(());
        }
        let (held, released) = self.scheduler.holds.replace(queue_hold::list(&self.services.store).await?);
        let now = self.services.clock.now();
        for pool in self.pools.all().filter(|_| !held.is_empty()) {
            let sites: Vec<_> = pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                for account in &held {
                    self.scheduler.defer_all(site.remove_account(*account), now);
                }
            }
        }
        if !released.is_empty() {
            self.scheduler.due_index.make_due_where(|queue| released.contains(&queue.account), now);
        }
        Ok(())
    }

    /// Creates holds for accounts that an older version suspended without holding their mail.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) async fn backfill_holds(&self) -> Result<(), StoreError> {
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

    /// Counts the queued mail of an account, or of all. Reads at most [`COUNTED_ROWS_MAX`] rows; a longer queue that
    /// this node owns alone is counted in memory, which knows the time of the oldest by the minute.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_held_mail(&self, account: Option<AccountId>) -> Result<HeldMail, ReadError> {
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
        match self.count_held_mail(None).await {
            Ok(HeldMail { recipients, oldest, has_more }) => tracing::warn!(
                recipients,
                has_more,
                oldest = oldest.map(tracing::field::display),
                "the queue has been held since {since:.0}, because the store was restored: mail is accepted, but not \
                 sent. Mail delivered after the backup would be sent again. List it with `postrider \
                 admin queue list`, remove mail with `queue drop`, and send the rest with \
                 `postrider admin queue release --all`"
            ),
            Err(error) => {
                tracing::warn!(%error, "the queue has been held since {since:.0}; cannot count its mail")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::engine::Store;

    use super::*;
    use crate::delivery::outcome::tests::task;
    use crate::subsystems::tests::{IdleQueue, idle};

    async fn put(queue: &IdleQueue, account: AccountId, change: impl FnOnce(Option<Hold>) -> Hold) {
        let holds = queue_hold::list(&queue.services.store).await.unwrap();
        let scope = HoldScope::Account(account);
        let mut batch = Batch::progress();
        queue_hold::put(&mut batch, &holds.version, &[(scope, change(holds.get(scope)))]);
        queue.services.store.commit(batch).await.unwrap();
        queue.delivery.queues.reload_holds().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_parked_while_its_hold_is_lifted_is_due_at_once() {
        let (queue, task) = (idle(Store::memory()), task());
        let now = queue.services.clock.now();
        put(&queue, task.account, |_| Hold::begin(now)).await;
        queue.delivery.scheduler.park(&task);
        assert_eq!(queue.delivery.scheduler.due_index.next_due(), Some(Timestamp::MAX), "nothing reads it");
        put(&queue, task.account, |hold| hold.unwrap().lift(now)).await;
        assert!(queue.delivery.scheduler.due_index.next_due() <= Some(queue.services.clock.now()));
        queue.delivery.scheduler.due_index.pop_due(Timestamp::MAX);
        // Found held, and released before the entry existed.
        queue.delivery.scheduler.park(&task);
        assert!(
            queue.delivery.scheduler.due_index.next_due() <= Some(queue.services.clock.now()),
            "nobody would look at it"
        );
    }

    #[tokio::test]
    async fn a_restored_store_is_held_until_it_is_released() {
        let store = Store::memory();
        store.commit(queue_hold::restore_batch(Timestamp::UNIX_EPOCH, true)).await.unwrap();
        let queue = idle(store);
        queue.delivery.queues.backfill_holds().await.unwrap();
        assert_eq!(queue.delivery.queues.queue_hold(), Some(Hold::begin(Timestamp::UNIX_EPOCH)));
        assert!(queue.delivery.scheduler.holds.is_queue_held());
        assert!(queue.delivery.queues.lift_queue_hold().await.unwrap().is_some());
        assert!(
            !queue.delivery.scheduler.holds.is_queue_held()
                && queue.delivery.queues.lift_queue_hold().await.unwrap().is_none()
        );
    }
}
