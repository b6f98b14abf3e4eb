//! What the operator does to the queue, and asks of it.
//!
//! Orders are about one email ([`Worker::order`]) or about all tasks that a filter names (many.rs); explain.rs says what
//! an email waits for, top.rs where the queue is long.

mod explain;
mod many;
mod top;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mail::destination::Way;
use mail::event::{Event, EventKind};
use mail::id::{AccountId, EmailId, EventId};
use mail::recipient::{Recipient, RecipientState};
use mail::task::{Task, TaskId};
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::{Batch, CommitError, ReadError, Value};
use thiserror::Error;

pub use self::explain::{Cause, Trace, Waiting};
pub(crate) use self::many::Watched;
pub use self::many::{Carried, Given};
pub use self::top::{Limit, Top, TopDestination};
use crate::order::Order;
use crate::site::Ready;
use crate::worker::Worker;

/// Why an order was not carried out.
#[derive(Debug, Error)]
pub enum OperateError {
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
struct Open {
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
    pub fn order<'a>(
        self: &'a Arc<Self>,
        id: EmailId,
        order: &'a Order,
    ) -> BoxFuture<'a, Result<usize, OperateError>> {
        Box::pin(async move {
            self.judge(order)?;
            let email = store::email::find(&self.store, id).await?.ok_or(OperateError::Unknown(id))?;
            let open = self.open_tasks(&email).await?;
            if open.is_empty() {
                return Err(OperateError::Finished(id));
            }
            let mut batch = Batch::progress();
            for one in &open {
                if self.leases.is_active(one.task.partition) {
                    self.carry_out_one(one, order).await?;
                } else {
                    let about = (email.email.account, id);
                    store::task::hint(&mut batch, one.task.partition, about, &order.word());
                }
            }
            if !batch.is_empty() {
                self.store.commit(batch).await?;
            }
            Ok(open.len())
        })
    }

    /// Mail is sent to smarthosts that there are.
    fn judge(&self, order: &Order) -> Result<(), OperateError> {
        match order {
            Order::Reroute(Some(Way::Smarthost(name))) if self.planner.smarthosts().named(name).is_none() => {
                Err(OperateError::NoSmarthost(name.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Carries out an order about an email as far as its tasks are ours.
    pub(crate) async fn carry_out(
        self: &Arc<Self>,
        account: AccountId,
        id: EmailId,
        order: &Order,
    ) -> Result<(), OperateError> {
        let email = store::email::get(&self.store, account, id).await?.ok_or(OperateError::Unknown(id))?;
        for one in self.open_tasks(&email).await? {
            if self.leases.is_active(one.task.partition) {
                self.carry_out_one(&one, order).await?;
            }
        }
        Ok(())
    }

    async fn carry_out_one(self: &Arc<Self>, one: &Open, order: &Order) -> Result<(), OperateError> {
        match order {
            Order::Retry => self.retry(one).await,
            Order::Release => self.change(one, |task| task.held = false).await,
            Order::Hold => self.apart(&one.task, self.change(one, |task| task.held = true)).await,
            Order::Drop => self.apart(&one.task, self.drop_task(one)).await,
            Order::Reroute(way) => {
                self.apart(&one.task, self.change(one, |task| task.way.clone_from(way))).await?;
                self.bring(&one.task).await
            }
        }
    }

    /// Does something to a task while it is out of everybody's reach.
    async fn apart(
        self: &Arc<Self>,
        task: &Task,
        work: impl Future<Output = Result<(), OperateError>>,
    ) -> Result<(), OperateError> {
        let Some(_withdrawn) = self.withdraw(task) else { return Err(OperateError::Busy(task.id.email)) };
        work.await
    }

    /// A task that goes a way of its own is brought into memory by itself: its queue may wait for other hosts. Its place
    /// is taken before it is read: what is read then is nobody else's.
    async fn bring(self: &Arc<Self>, task: &Task) -> Result<(), OperateError> {
        if !self.leases.is_active(task.partition) || !self.flights.reserve_absent(task.id) {
            return Ok(());
        }
        let queue = task.queue();
        let whose = (&queue.domain, queue.class, queue.account);
        let found = store::task::find(&self.store, whose, task.due, task.id).await;
        let now = self.clock.now();
        match found {
            Ok(Some((task, row))) if task.due <= now && !task.held && task.way.is_some() => {
                self.dispatch(Ready { task, row: Some(row), body: None });
                Ok(())
            }
            other => {
                self.let_go(task);
                other.map(drop).map_err(Into::into)
            }
        }
    }

    async fn change(&self, open: &Open, change: impl FnOnce(&mut Task)) -> Result<(), OperateError> {
        let mut after = open.task.clone();
        change(&mut after);
        if after != open.task {
            let mut batch = Batch::progress();
            store::task::update(&mut batch, (&open.task, &open.row), &after);
            self.store.commit(batch).await?;
        }
        self.note(&after);
        Ok(())
    }

    async fn retry(&self, open: &Open) -> Result<(), OperateError> {
        let Open { recipient, task, row } = open;
        let now = self.clock.now();
        self.revive(task);
        if self.flights.holds(task.id) {
            return Ok(());
        }
        if task.due <= now {
            return self.change(open, |task| task.held = false).await;
        }
        let after = Task { due: now, held: false, ..task.clone() };
        let mut batch = Batch::progress();
        store::task::take(&mut batch, task, Some(row));
        store::task::put(&mut batch, &after);
        let recipient = Recipient { next_attempt_at: Some(now), ..recipient.clone() };
        store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
        self.store.commit(batch).await?;
        self.note(&after);
        Ok(())
    }

    async fn drop_task(&self, open: &Open) -> Result<(), OperateError> {
        let Open { recipient, task, row } = open;
        let now = self.clock.now();
        let mut batch = Batch::progress();
        store::task::take(&mut batch, task, Some(row));
        let recipient = Recipient {
            state: RecipientState::Cancelled,
            last_event: (EventKind::Cancelled, now),
            next_attempt_at: None,
            ..recipient.clone()
        };
        store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
        let event = Event {
            id: EventId::new(now, self.entropy.id()),
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
    async fn open_tasks(&self, email: &EmailWithRecipients) -> Result<Vec<Open>, ReadError> {
        let mut open = Vec::new();
        for recipient in &email.recipients {
            let Some(due) = recipient.next_attempt_at else { continue };
            let queue = (recipient.address.domain(), email.email.class(), email.email.account);
            let id = TaskId { email: email.email.id, recipient: recipient.index };
            if let Some((task, row)) = store::task::find(&self.store, queue, due, id).await? {
                open.push(Open { recipient: recipient.clone(), task, row });
            }
        }
        Ok(open)
    }
}
