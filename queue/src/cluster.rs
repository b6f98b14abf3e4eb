//! This node in the cluster: polls, loads the partitions that it acquires, and applies changes that other nodes stored.

pub mod lease;
pub mod membership;

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::id::EmailId;
use store::engine::{Batch, CommitError, ReadError, StoreError};
use store::task::PartitionHint;

use crate::admin::queue_admin::{QueueAdmin, QueueAdminError};
use crate::admin::queue_command::QueueCommand;
use crate::cluster::lease::HEARTBEAT_INTERVAL;
use crate::cluster::membership::Membership;
use crate::dsn::pending_dsns::PendingDsns;
use crate::scheduler::deadline_timers::DeadlineTimers;
use crate::scheduler::destination_queues::DestinationQueues;
use crate::services::Services;

/// Operator commands (hints) read at once.
const PAGE_HINTS: usize = 500;

/// Subsystems above the queue whose work belongs to partitions.
pub trait PartitionListener: Send + Sync {
    /// Number of operations in progress in a partition. A partition is not released before they end.
    fn in_progress(&self, partition: u16) -> usize;

    /// Loads the work of a partition that this node has acquired.
    ///
    /// # Errors
    /// The store cannot be read; the partition is loaded again at the next poll.
    fn load_partition(&self, partition: u16) -> BoxFuture<'_, Result<(), ReadError>>;

    /// Called once when this node has joined the cluster and owns a partition.
    fn joined(&self);
}

/// This node, and the subsystems that follow changes of the cluster.
pub struct ClusterMember {
    pub(crate) services: Services,
    /// `None` after this node has left the cluster.
    pub(crate) membership: tokio::sync::Mutex<Option<Membership>>,
    pub(crate) queues: Arc<DestinationQueues>,
    pub(crate) deadlines: Arc<DeadlineTimers>,
    pub(crate) pending_dsns: Arc<PendingDsns>,
    pub(crate) admin: Arc<QueueAdmin>,
    pub(crate) listener: Arc<dyn PartitionListener>,
    /// Emails with a pending command that this node does not understand, and the command. Each was logged.
    pub(crate) unknown_hints: Mutex<HashSet<(EmailId, String)>>,
}

impl ClusterMember {
    /// Joins the cluster: acquires this node's share of the partitions and loads their queues. Returns when it owns a
    /// partition, which takes longer only if other nodes own all of them and must release some first.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn join<'a>(self: &'a Arc<Self>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.queues.backfill_holds().await?;
            self.poll().await?;
            while self.services.leases.is_empty() && !self.services.stop.is_cancelled() {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                self.poll().await?;
            }
            if self.services.store.is_shared() {
                self.services.spawn(Arc::clone(self).run());
            }
            self.listener.joined();
            Ok(())
        })
    }

    /// Polls the cluster until shutdown.
    async fn run(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {}
                () = self.services.stop.cancelled() => return,
            }
            let polled = tokio::select! {
                polled = self.poll() => polled,
                () = self.services.stop.cancelled() => return,
            };
            if let Err(error) = polled {
                store::warn_unless_away!(self.services.store, %error, "cannot poll the cluster; retrying");
            }
        }
    }

    /// Polls the cluster once: takes over free partitions, loads their queues, and applies hints and orders of other
    /// nodes.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn poll(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut membership = self.membership.lock().await;
        let Some(member) = membership.as_mut() else { return Ok(()) };
        // Load holds before any task can be sent.
        self.queues.reload_holds().await?;
        let nodes = self.services.leases.nodes();
        let attempting =
            |partition| self.queues.scheduler.in_flight.attempting_in(partition) + self.listener.in_progress(partition);
        let polled = member.poll(attempting).await;
        drop(membership);
        if self.services.leases.nodes() != nodes {
            self.queues.rebalance_pace();
        }
        self.services.store.queue_counts().track(&self.services.leases.held());
        // A read error is retried at the next poll, because no other node loads these queues.
        for partition in self.services.leases.unloaded() {
            self.services.store.queue_counts().invalidate(partition);
            self.queues.scheduler.load_partition(&self.services.store, partition).await?;
            self.listener.load_partition(partition).await?;
            self.pending_dsns.scan_partition(partition);
            // Scan again for rows that another node may have added.
            self.deadlines.0.reset(partition);
            self.services.leases.mark_loaded(partition);
        }
        polled?;
        self.queues.reload_overrides().await?;
        self.queues.reload_pools().await?;
        if self.services.store.is_shared() { self.apply_hints().await } else { Ok(()) }
    }

    /// Renews the leases during a stop: attempts in progress may take longer than a lease is valid, and a node that took
    /// their partition over would repeat them. Waits for at most one heartbeat interval.
    pub(crate) async fn renew_leases(&self) {
        if let Some(member) = self.membership.lock().await.as_mut()
            && self.services.store.is_shared()
            && let Ok(Err(error)) = tokio::time::timeout(HEARTBEAT_INTERVAL, member.heartbeat()).await
        {
            store::warn_unless_away!(self.services.store, %error, "cannot renew the leases; retrying");
        }
    }

    /// Leaves the cluster: other nodes take over at their next poll. Waits for at most one heartbeat interval.
    pub(crate) async fn leave(&self) {
        if let Some(member) = self.membership.lock().await.take()
            && self.services.store.is_shared()
        {
            // Do not wait for an unreachable database: other nodes then take over when the lease expires.
            let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, member.leave()).await;
        }
    }

    /// Executes operator commands that other nodes left for tasks of this node.
    pub(crate) async fn apply_hints(self: &Arc<Self>) -> Result<(), StoreError> {
        let (mut unknown, mut last) = (HashSet::new(), None);
        loop {
            let hints = store::task::list_hints(&self.services.store, last.as_ref(), PAGE_HINTS).await?;
            self.apply_hint_page(&hints, &mut unknown).await?;
            match hints.into_iter().nth(PAGE_HINTS - 1) {
                Some(end) => last = Some(end),
                None => break,
            }
        }
        *self.unknown_hints.lock() = unknown;
        Ok(())
    }

    /// Returns whether a command of a newer release is kept for a node that understands it. It expires once its email
    /// has left the queue. Both are logged once.
    async fn keep_unknown_hint(
        &self,
        hint: &PartitionHint,
        unknown: &mut HashSet<(EmailId, String)>,
    ) -> Result<bool, StoreError> {
        let (email, command) = (hint.email, hint.order.as_str());
        if !self.admin.is_queued(hint.account, email).await? {
            tracing::warn!(%email, %command, "a queue command that no node has understood has expired");
            return Ok(false);
        }
        let entry = (email, hint.order.clone());
        if self.unknown_hints.lock().insert(entry.clone()) {
            tracing::warn!(%email, %command, "this release does not know a queue command; it waits for a newer node");
        }
        unknown.insert(entry);
        Ok(true)
    }

    /// Executes one page of hints. Adds those to `unknown` that this node does not understand.
    async fn apply_hint_page(
        self: &Arc<Self>,
        hints: &[PartitionHint],
        unknown: &mut HashSet<(EmailId, String)>,
    ) -> Result<(), StoreError> {
        for hint in hints.iter().filter(|hint| self.services.leases.is_active(hint.partition)) {
            let executed = match QueueCommand::from_word(&hint.order) {
                Some(order) => self.admin.execute_command(hint.account, hint.email, &order).await,
                None if self.keep_unknown_hint(hint, unknown).await? => continue,
                None => Ok(()),
            };
            match executed {
                // The task is in an attempt or has just changed: retry at the next poll.
                Err(
                    QueueAdminError::Busy(_)
                    | QueueAdminError::Commit(CommitError::Conflict { .. })
                    | QueueAdminError::Partly { .. },
                ) => continue,
                Err(QueueAdminError::Read(error)) => return Err(error.into()),
                Err(QueueAdminError::Commit(error)) => return Err(error.into()),
                Ok(())
                | Err(QueueAdminError::Unknown(_) | QueueAdminError::Finished(_) | QueueAdminError::NoSmarthost(_)) => {
                }
            }
            let mut batch = Batch::progress();
            hint.remove_hint(&mut batch);
            self.services.store.try_commit(batch).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use message::address::Mailbox;
    use model::email::{Email, Ingress};
    use model::event::EventKind;
    use model::recipient::{Recipient, RecipientState};
    use model::task::Task;
    use store::engine::Store;

    use super::*;

    /// Stores a task's email, with one recipient in the queue.
    async fn store_queued_email(store: &Store, task: &Task) {
        let recipient = Recipient {
            index: task.id.recipient,
            address: task.address.clone(),
            kind: task.kind,
            state: RecipientState::Deferred,
            attempts: 1,
            last_response: None,
            error: None,
            mx_host: None,
            last_event: (EventKind::DeliveryDelayed, task.accepted_at),
            delivered_at: None,
            bounced_at: None,
            complained_at: None,
            next_attempt_at: Some(task.due),
            notify: task.notify.clone(),
        };
        let from = Mailbox { name: None, address: "hello@acme.example".parse().unwrap() };
        let email =
            Email { size_bytes: 1, ..Email::new(task.id.email, task.account, Ingress::Api, from, task.accepted_at) };
        let mut batch = Batch::progress();
        store::email::create(&mut batch, &email, &[recipient], bytes::Bytes::from_static(b"x").into());
        store::task::put(&mut batch, task);
        store.commit(batch).await.unwrap();
    }

    #[tokio::test]
    async fn a_hint_of_a_newer_release_stays_while_its_email_is_queued() {
        let queue = crate::subsystems::tests::idle(Store::memory());
        queue.cluster.poll().await.unwrap();
        let task = crate::delivery::outcome::tests::task();
        store_queued_email(&queue.services.store, &task).await;
        // More unknown hints than fit on a page precede a known one.
        let mut batch = Batch::progress();
        let gone = |n: usize| EmailId::new(task.accepted_at, 1_000 + n as u128);
        for n in 0..PAGE_HINTS {
            store::task::put_hint(&mut batch, 0, task.account, gone(n), "quarantine");
        }
        store::task::put_hint(&mut batch, 0, task.account, task.id.email, "quarantine");
        store::task::put_hint(&mut batch, 1, task.account, gone(0), "hold");
        queue.services.store.commit(batch).await.unwrap();
        for _ in 0..2 {
            queue.cluster.apply_hints().await.unwrap();
            let hints = store::task::list_hints(&queue.services.store, None, 10).await.unwrap();
            let remaining: Vec<_> = hints.iter().map(|hint| (hint.email, hint.order.as_str())).collect();
            assert_eq!(remaining, [(task.id.email, "quarantine")], "the others have expired or were executed");
            assert_eq!(queue.cluster.unknown_hints.lock().len(), 1, "it was logged");
        }
        // A newer command about the email replaces it.
        let mut batch = Batch::progress();
        store::task::put_hint(&mut batch, 0, task.account, task.id.email, "hold");
        queue.services.store.commit(batch).await.unwrap();
        queue.cluster.apply_hints().await.unwrap();
        assert!(store::task::list_hints(&queue.services.store, None, 10).await.unwrap().is_empty());
        assert!(queue.cluster.unknown_hints.lock().is_empty());
    }
}
