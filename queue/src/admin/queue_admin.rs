//! Queue administration: the operator's commands on queued mail, and queries about it.
//!
//! A command applies to one email ([`QueueAdmin::command_email`]) or to all tasks that match a filter (bulk.rs). explain.rs
//! reports what an email waits for; top_destinations.rs lists the destinations with the longest queues.

mod bulk;
mod explain;
mod top_destinations;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use message::outcome::{AttemptPhase, Outcome};
use message::reply::{Enhanced, SmtpReply};
use model::destination::RouteOverride;
use model::event::{Event, EventKind};
use model::id::{AccountId, EmailId, EventId};
use model::recipient::{Recipient, RecipientState};
use model::task::{Task, TaskId};
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::{Batch, CommitError, ReadError, Value};
use thiserror::Error;
use tokio::sync::Notify;

use self::bulk::WatchedCommands;
pub use self::bulk::{BulkCommandHandle, CommandFailure, CommandProgress};
pub use self::explain::{EmailTrace, WaitCause, WaitStatus};
pub use self::top_destinations::{CountingMethod, LimitingFactor, TopDestination, TopDestinations};
use crate::admin::queue_command::QueueCommand;
use crate::delivery::commit_retries::CommitRetries;
use crate::delivery::outcome::AttemptResult;
use crate::scheduler::Scheduler;
use crate::scheduler::checked_out::CheckedOutTask;
use crate::scheduler::destination_queues::DestinationQueues;
use crate::scheduler::dispatch::Dispatcher;
use crate::scheduler::pause_state::PauseState;
use crate::scheduler::ready_queue::ReadyTask;
use crate::services::Services;

/// Error of a queue command.
#[derive(Debug, Error)]
pub enum QueueAdminError {
    #[error("email {0} does not exist")]
    Unknown(EmailId),
    /// The email has no recipient left in the queue.
    #[error("{0} has no recipients left in the queue")]
    Finished(EmailId),
    /// An attempt is in progress, or another command works on the task.
    #[error("{0} is being attempted right now; try again in a second")]
    Busy(EmailId),
    /// The configuration has no smarthost of this name.
    #[error("smarthost `{0}` is not configured in [[delivery.smarthosts]]")]
    NoSmarthost(String),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written, or the task changed concurrently.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The command failed after some recipients of the email. The recipients of other nodes count as changed: their
    /// hints are stored.
    #[error("{done} of {total} recipients were changed, then the command failed: {error}")]
    Partly { done: usize, total: usize, error: Box<QueueAdminError> },
}

impl QueueAdminError {
    /// Returns whether the store can take no commit for now: it is full, or the database is away.
    fn is_store_unavailable(&self) -> bool {
        matches!(self, Self::Commit(CommitError::Full | CommitError::Away(_) | CommitError::Unknown(_)))
    }
}

/// Executes queue commands and answers queries.
pub struct QueueAdmin {
    services: Services,
    dispatcher: Arc<Dispatcher>,
    scheduler: Arc<Scheduler>,
    queues: Arc<DestinationQueues>,
    pause: PauseState,
    /// Wakes the execution of bulk commands.
    command_wakeup: Notify,
    /// Signals progress of bulk commands.
    command_progressed: Notify,
    watched_commands: WatchedCommands,
}

/// A queued recipient with its task and the task's stored row.
struct QueuedRecipient {
    recipient: Recipient,
    task: Task,
    row: Value,
}

impl QueueAdmin {
    pub(crate) fn new(services: Services, dispatcher: Arc<Dispatcher>) -> Self {
        Self {
            services,
            scheduler: Arc::clone(&dispatcher.scheduler),
            queues: Arc::clone(&dispatcher.queues),
            pause: dispatcher.pause.clone(),
            dispatcher,
            command_wakeup: Notify::new(),
            command_progressed: Notify::new(),
            watched_commands: WatchedCommands::default(),
        }
    }

    /// Executes a command for all queued recipients of an email and returns their number. For tasks owned by another
    /// node a hint row is written first: that node executes the command within a second or two, also if a task of this
    /// node fails.
    ///
    /// # Errors
    /// `Unknown` or `Finished` when nothing of the email is queued, `Busy` when a task is being attempted,
    /// `NoSmarthost` for an unknown smarthost; the store cannot be read or written; `Partly` if that happened after
    /// some recipients.
    pub fn command_email<'a>(
        self: &'a Arc<Self>,
        id: EmailId,
        order: &'a QueueCommand,
    ) -> BoxFuture<'a, Result<usize, QueueAdminError>> {
        Box::pin(async move {
            self.validate_command(order)?;
            let email = store::email::find_in_any_account(&self.services.store, id)
                .await?
                .ok_or(QueueAdminError::Unknown(id))?;
            let open = self.queued_recipients(&email).await?;
            if open.is_empty() {
                return Err(QueueAdminError::Finished(id));
            }
            let (own, others): (Vec<_>, Vec<_>) =
                open.iter().partition(|recipient| self.services.leases.is_active(recipient.task.partition));
            let mut batch = Batch::progress();
            for recipient in &others {
                store::task::put_hint(&mut batch, recipient.task.partition, email.email.account, id, &order.word());
            }
            if !batch.is_empty() {
                self.services.store.commit(batch).await?;
            }
            for (index, recipient) in own.into_iter().enumerate() {
                let partly = |error| match others.len() + index {
                    0 => error,
                    done => QueueAdminError::Partly { done, total: open.len(), error: Box::new(error) },
                };
                self.execute_for_recipient(recipient, order).await.map_err(partly)?;
            }
            Ok(open.len())
        })
    }

    /// Rejects a reroute to a smarthost that is not configured.
    fn validate_command(&self, order: &QueueCommand) -> Result<(), QueueAdminError> {
        match order {
            QueueCommand::Reroute(Some(RouteOverride::Smarthost(name)))
                if self.queues.routes.router.settings.smarthosts.named(name).is_none() =>
            {
                Err(QueueAdminError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a recipient of an email is in the queue.
    pub(crate) async fn is_queued(&self, account: AccountId, id: EmailId) -> Result<bool, ReadError> {
        match store::email::get(&self.services.store, account, id).await? {
            Some(email) => Ok(!self.queued_recipients(&email).await?.is_empty()),
            None => Ok(false),
        }
    }

    /// Executes a command for those recipients of an email whose tasks this node owns.
    pub(crate) async fn execute_command(
        self: &Arc<Self>,
        account: AccountId,
        id: EmailId,
        order: &QueueCommand,
    ) -> Result<(), QueueAdminError> {
        let email = store::email::get(&self.services.store, account, id).await?.ok_or(QueueAdminError::Unknown(id))?;
        for recipient in self.queued_recipients(&email).await? {
            if self.services.leases.is_active(recipient.task.partition) {
                self.execute_for_recipient(&recipient, order).await?;
            }
        }
        Ok(())
    }

    async fn execute_for_recipient(
        self: &Arc<Self>,
        recipient: &QueuedRecipient,
        order: &QueueCommand,
    ) -> Result<(), QueueAdminError> {
        match order {
            QueueCommand::Retry => self.retry_task(recipient).await,
            QueueCommand::Release => self.update_task(recipient, |task| task.held = false).await,
            QueueCommand::Hold => {
                self.with_checked_out(&recipient.task, self.update_task(recipient, |task| task.held = true)).await
            }
            QueueCommand::Drop => self.with_checked_out(&recipient.task, self.drop_task(recipient)).await,
            QueueCommand::Fail => self.with_checked_out(&recipient.task, self.fail_task(recipient)).await,
            QueueCommand::Reroute(route) => {
                self.with_checked_out(
                    &recipient.task,
                    self.update_task(recipient, |task| task.route.clone_from(route)),
                )
                .await?;
                self.load_rerouted(&recipient.task).await
            }
        }
    }

    /// Runs `work` while the task is checked out, so that no attempt starts meanwhile.
    async fn with_checked_out(
        self: &Arc<Self>,
        task: &Task,
        work: impl Future<Output = Result<(), QueueAdminError>>,
    ) -> Result<(), QueueAdminError> {
        let Some(_checked_out) = CheckedOutTask::check_out(&self.queues, task) else {
            return Err(QueueAdminError::Busy(task.id.email));
        };
        work.await
    }

    /// Loads a rerouted task into memory on its own, because its queue may wait for other hosts. The task is reserved
    /// before it is read, so that no other loader takes the same row.
    async fn load_rerouted(self: &Arc<Self>, task: &Task) -> Result<(), QueueAdminError> {
        if !self.services.leases.is_active(task.partition) || !self.scheduler.in_flight.reserve_absent(task.id) {
            return Ok(());
        }
        let queue = task.queue_name();
        let found =
            store::task::find(&self.services.store, &queue.domain, queue.class, queue.account, task.due, task.id).await;
        let now = self.services.clock.now();
        match found {
            Ok(Some((task, row))) if task.due <= now && !task.held && task.route.is_some() => {
                self.dispatcher.dispatch(ReadyTask { task, row: Some(row), body: None });
                Ok(())
            }
            other => {
                self.scheduler.release_task(task);
                other.map(drop).map_err(Into::into)
            }
        }
    }

    async fn update_task(&self, open: &QueuedRecipient, change: impl FnOnce(&mut Task)) -> Result<(), QueueAdminError> {
        let mut after = open.task.clone();
        change(&mut after);
        if after != open.task {
            let mut batch = Batch::progress();
            store::task::update(&mut batch, &open.task, &open.row, &after);
            self.services.store.commit(batch).await?;
        }
        self.scheduler.schedule_task(&after);
        Ok(())
    }

    async fn retry_task(&self, open: &QueuedRecipient) -> Result<(), QueueAdminError> {
        let QueuedRecipient { recipient, task, row } = open;
        let now = self.services.clock.now();
        self.queues.retry_destination_now(task);
        if self.scheduler.in_flight.contains(task.id) {
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
        self.services.store.commit(batch).await?;
        self.scheduler.schedule_task(&after);
        Ok(())
    }

    async fn drop_task(&self, open: &QueuedRecipient) -> Result<(), QueueAdminError> {
        let QueuedRecipient { recipient, task, row } = open;
        let now = self.services.clock.now();
        let mut batch = Batch::progress();
        store::task::remove(&mut batch, task, Some(row));
        let recipient = Recipient {
            state: RecipientState::Cancelled,
            last_event: (EventKind::Cancelled, now),
            next_attempt_at: None,
            ..recipient.clone()
        };
        store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
        let id = EventId::new(now, self.services.entropy.unique_bits());
        let detail = json!({"by": "operator"});
        let event = Event::new(id, task.account, task.id.email, EventKind::Cancelled, now, detail);
        let event = Event { recipient: Some(task.address.clone()), ..event };
        store::event::record(&mut batch, &event, task.partition);
        self.services.store.commit(batch).await?;
        Ok(())
    }

    /// Ends a task as a permanent failure that is not about the recipient.
    async fn fail_task(self: &Arc<Self>, open: &QueuedRecipient) -> Result<(), QueueAdminError> {
        let QueuedRecipient { task, row, .. } = open;
        let verdict = SmtpReply::new(550, Enhanced::new(5, 0, 0), "the operator of this server gave up delivery");
        let outcome = Outcome::Undeliverable(verdict);
        let result = self.dispatcher.agent.outcomes.no_connection_result(
            outcome,
            AttemptPhase::Connect,
            self.services.clock.now(),
        );
        let ready = ReadyTask { task: task.clone(), row: Some(row.clone()), body: None };
        let result = AttemptResult { is_untried: true, ..result };
        let is_recorded =
            self.dispatcher.agent.outcomes.commit_outcome(&ready, &result, CommitRetries::Command).await?;
        if is_recorded { Ok(()) } else { Err(QueueAdminError::Busy(task.id.email)) }
    }

    /// Returns the unfinished recipients of an email with their tasks.
    async fn queued_recipients(&self, email: &EmailWithRecipients) -> Result<Vec<QueuedRecipient>, ReadError> {
        let mut open = Vec::new();
        for recipient in &email.recipients {
            let Some(due) = recipient.next_attempt_at else { continue };
            let id = TaskId { email: email.email.id, recipient: recipient.index };
            let (domain, class, account) = (recipient.address.domain(), email.email.class(), email.email.account);
            if let Some((task, row)) = store::task::find(&self.services.store, domain, class, account, due, id).await? {
                open.push(QueuedRecipient { recipient: recipient.clone(), task, row });
            }
        }
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::account::{Account, Plan};
    use model::email::{Email, Ingress};
    use store::engine::Store;

    use super::*;
    use crate::delivery::outcome::tests::{queued_recipient, task};
    use crate::subsystems::tests::{IdleQueue, idle};

    /// Stores an email with one recipient in each of these partitions.
    async fn put_email(queue: &IdleQueue, partitions: [u16; 2]) -> Vec<Task> {
        let tasks: Vec<Task> = (0..)
            .zip(partitions)
            .map(|(recipient, partition)| {
                let task = task();
                Task { id: TaskId { recipient, ..task.id }, partition, ..task }
            })
            .collect();
        let recipients: Vec<Recipient> = tasks.iter().map(queued_recipient).collect();
        let (id, account, now) = (tasks[0].id.email, tasks[0].account, tasks[0].accepted_at);
        let owner: message::address::Address = "owner@acme.example".parse().unwrap();
        let account = Account {
            id: account,
            email: owner.clone(),
            plan: Plan::Dedicated,
            production: true,
            payment_method: false,
            suspended: false,
            created_at: now,
        };
        let email = Email::new(id, account.id, Ingress::Api, owner.into(), now);
        let mut batch = Batch::progress();
        store::account::create(&mut batch, &account);
        store::email::create(&mut batch, &email, &recipients, Bytes::from_static(b"x").into());
        tasks.iter().for_each(|task| store::task::put_new(&mut batch, task));
        queue.services.store.commit(batch).await.unwrap();
        tasks
    }

    #[tokio::test]
    async fn hints_for_another_node_are_stored_although_an_own_task_is_busy() {
        let queue = idle(Store::memory());
        queue.cluster.poll().await.unwrap();
        let tasks = put_email(&queue, [0, 1]).await;
        {
            // The partition of the second recipient belongs to another node.
            let mut leases = queue.services.leases.state.lock();
            leases.partitions.remove(&1);
            leases.refresh_active();
        }
        let checked_out = CheckedOutTask::check_out(&queue.delivery.queues, &tasks[0]).unwrap();
        let error = queue.delivery.admin.command_email(tasks[0].id.email, &QueueCommand::Hold).await.unwrap_err();
        assert!(matches!(error, QueueAdminError::Partly { done: 1, total: 2, .. }), "{error}");
        let hints = store::task::list_hints(&queue.services.store, None, 10).await.unwrap();
        let hints: Vec<_> = hints.iter().map(|hint| (hint.partition, hint.order.as_str())).collect();
        assert_eq!(hints, [(1, "hold")]);
        drop(checked_out);
    }
}
