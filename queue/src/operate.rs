//! What the operator does to the queue, and asks of it.
//!
//! Orders are about one email ([`Worker::order`]) or about all tasks that a filter names (many.rs); explain.rs says what
//! an email waits for, top.rs where the queue is long.

mod explain;
mod many;
mod top;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mail::destination::RouteOverride;
use mail::event::{Event, EventKind};
use mail::id::{AccountId, EmailId, EventId};
use mail::recipient::{Recipient, RecipientState};
use mail::task::{Task, TaskId};
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::{Batch, CommitError, ReadError, Value};
use thiserror::Error;

pub use self::explain::{EmailTrace, WaitCause, WaitStatus};
pub(crate) use self::many::WatchedCommands;
pub use self::many::{BulkCommandHandle, CommandProgress};
pub use self::top::{LimitingFactor, TopDestination, TopDestinations};
use crate::order::QueueCommand;
use crate::site::ReadyTask;
use crate::worker::Worker;

/// Why an order was not carried out.
#[derive(Debug, Error)]
pub enum QueueAdminError {
    /// There is no such email.
    #[error("there is no email {0}")]
    Unknown(EmailId),
    /// Nothing of it is in the queue any more.
    #[error("{0} has no recipient left in the queue")]
    Finished(EmailId),
    /// It is being tried this moment.
    #[error("{0} is being tried this moment; try again in a second")]
    Busy(EmailId),
    /// There is no smarthost of this name.
    #[error("there is no smarthost `{0}`: the configuration names them in [[delivery.smarthosts]]")]
    NoSmarthost(String),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written, or the email was settled meanwhile.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A recipient that is in the queue: its task, and the task's row.
struct QueuedRecipient {
    recipient: Recipient,
    task: Task,
    row: Value,
}

impl Worker {
    /// Does something to all recipients of an email that are in the queue. Says how many they are. Those whose
    /// tasks are another node's are left word about: it carries the order out within a second or two.
    ///
    /// # Errors
    /// [`OperateError`].
    pub fn command_email<'a>(
        self: &'a Arc<Self>,
        id: EmailId,
        order: &'a QueueCommand,
    ) -> BoxFuture<'a, Result<usize, QueueAdminError>> {
        Box::pin(async move {
            self.validate_command(order)?;
            let email =
                store::email::find_in_any_account(&self.store, id).await?.ok_or(QueueAdminError::Unknown(id))?;
            let open = self.queued_recipients(&email).await?;
            if open.is_empty() {
                return Err(QueueAdminError::Finished(id));
            }
            let mut batch = Batch::progress();
            for one in &open {
                if self.leases.is_active(one.task.partition) {
                    self.execute_for_recipient(one, order).await?;
                } else {
                    let about = (email.email.account, id);
                    store::task::put_hint(&mut batch, one.task.partition, about, &order.word());
                }
            }
            if !batch.is_empty() {
                self.store.commit(batch).await?;
            }
            Ok(open.len())
        })
    }

    /// Mail is sent to smarthosts that there are.
    fn validate_command(&self, order: &QueueCommand) -> Result<(), QueueAdminError> {
        match order {
            QueueCommand::Reroute(Some(RouteOverride::Smarthost(name)))
                if self.router.smarthosts().named(name).is_none() =>
            {
                Err(QueueAdminError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Carries out an order about an email as far as its tasks are ours.
    pub(crate) async fn execute_command(
        self: &Arc<Self>,
        account: AccountId,
        id: EmailId,
        order: &QueueCommand,
    ) -> Result<(), QueueAdminError> {
        let email = store::email::get(&self.store, account, id).await?.ok_or(QueueAdminError::Unknown(id))?;
        for one in self.queued_recipients(&email).await? {
            if self.leases.is_active(one.task.partition) {
                self.execute_for_recipient(&one, order).await?;
            }
        }
        Ok(())
    }

    async fn execute_for_recipient(
        self: &Arc<Self>,
        one: &QueuedRecipient,
        order: &QueueCommand,
    ) -> Result<(), QueueAdminError> {
        match order {
            QueueCommand::Retry => self.retry_task(one).await,
            QueueCommand::Release => self.update_task(one, |task| task.held = false).await,
            QueueCommand::Hold => {
                self.with_checked_out(&one.task, self.update_task(one, |task| task.held = true)).await
            }
            QueueCommand::Drop => self.with_checked_out(&one.task, self.drop_task(one)).await,
            QueueCommand::Reroute(way) => {
                self.with_checked_out(&one.task, self.update_task(one, |task| task.way.clone_from(way))).await?;
                self.load_rerouted(&one.task).await
            }
        }
    }

    /// Does something to a task while it is out of everybody's reach.
    async fn with_checked_out(
        self: &Arc<Self>,
        task: &Task,
        work: impl Future<Output = Result<(), QueueAdminError>>,
    ) -> Result<(), QueueAdminError> {
        let Some(_withdrawn) = self.check_out(task) else { return Err(QueueAdminError::Busy(task.id.email)) };
        work.await
    }

    /// A task that goes a way of its own is brought into memory by itself: its queue may wait for other hosts. Its place
    /// is taken before it is read: what is read then is nobody else's.
    async fn load_rerouted(self: &Arc<Self>, task: &Task) -> Result<(), QueueAdminError> {
        if !self.leases.is_active(task.partition) || !self.in_flight.reserve_absent(task.id) {
            return Ok(());
        }
        let queue = task.queue_name();
        let whose = (&queue.domain, queue.class, queue.account);
        let found = store::task::find(&self.store, whose, task.due, task.id).await;
        let now = self.clock.now();
        match found {
            Ok(Some((task, row))) if task.due <= now && !task.held && task.way.is_some() => {
                self.dispatch(ReadyTask { task, row: Some(row), body: None });
                Ok(())
            }
            other => {
                self.release_task(task);
                other.map(drop).map_err(Into::into)
            }
        }
    }

    async fn update_task(&self, open: &QueuedRecipient, change: impl FnOnce(&mut Task)) -> Result<(), QueueAdminError> {
        let mut after = open.task.clone();
        change(&mut after);
        if after != open.task {
            let mut batch = Batch::progress();
            store::task::update(&mut batch, (&open.task, &open.row), &after);
            self.store.commit(batch).await?;
        }
        self.schedule_task(&after);
        Ok(())
    }

    async fn retry_task(&self, open: &QueuedRecipient) -> Result<(), QueueAdminError> {
        let QueuedRecipient { recipient, task, row } = open;
        let now = self.clock.now();
        self.retry_destination_now(task);
        if self.in_flight.contains(task.id) {
            return Ok(());
        }
        if task.due <= now {
            return self.update_task(open, |task| task.held = false).await;
        }
        let after = Task { due: now, held: false, ..task.clone() };
        let mut batch = Batch::progress();
        store::task::remove(&mut batch, task, Some(row));
        store::task::put(&mut batch, &after);
        let recipient = Recipient { next_attempt_at: Some(now), ..recipient.clone() };
        store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
        self.store.commit(batch).await?;
        self.schedule_task(&after);
        Ok(())
    }

    async fn drop_task(&self, open: &QueuedRecipient) -> Result<(), QueueAdminError> {
        let QueuedRecipient { recipient, task, row } = open;
        let now = self.clock.now();
        let mut batch = Batch::progress();
        store::task::remove(&mut batch, task, Some(row));
        let recipient = Recipient {
            state: RecipientState::Cancelled,
            last_event: (EventKind::Cancelled, now),
            next_attempt_at: None,
            ..recipient.clone()
        };
        store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
        let event = Event {
            id: EventId::new(now, self.entropy.unique_bits()),
            account: task.account,
            subject: task.id.email.into(),
            kind: EventKind::Cancelled,
            recipient: Some(task.address.clone()),
            created_at: now,
            detail: json!({"by": "operator"}),
        };
        store::event::record(&mut batch, &event, task.partition);
        self.store.commit(batch).await?;
        Ok(())
    }

    /// The recipients of an email that are not finished, with their tasks.
    async fn queued_recipients(&self, email: &EmailWithRecipients) -> Result<Vec<QueuedRecipient>, ReadError> {
        let mut open = Vec::new();
        for recipient in &email.recipients {
            let Some(due) = recipient.next_attempt_at else { continue };
            let queue = (recipient.address.domain(), email.email.class(), email.email.account);
            let id = TaskId { email: email.email.id, recipient: recipient.index };
            if let Some((task, row)) = store::task::find(&self.store, queue, due, id).await? {
                open.push(QueuedRecipient { recipient: recipient.clone(), task, row });
            }
        }
        Ok(open)
    }
}
