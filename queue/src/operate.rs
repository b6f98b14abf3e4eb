//! What the operator does to the queue, and asks of it: list, trace, hold, release, retry, drop.

use std::sync::Arc;

use jiff::Timestamp;
use mail::attempt::Attempt;
use mail::event::{Event, EventKind};
use mail::id::{AccountId, EmailId, EventId};
use mail::recipient::{Recipient, RecipientState};
use mail::task::{Task, TaskId};
use serde_json::json;
use store::email::EmailWithRecipients;
use store::engine::{Batch, CommitError, ReadError, Value};
use thiserror::Error;

use crate::flight::Withdrawal;
use crate::site::SiteStanding;
use crate::worker::Worker;

/// Attempts and events shown of one email.
const SHOWN_MAX: usize = 1_000;

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
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written, or the email was settled meanwhile.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What is to be done to an email in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Try it now, whenever it is due.
    Retry,
    /// Do not try it.
    Hold,
    /// Try it again as it is due.
    Release,
    /// Take it out: its recipients are cancelled.
    Drop,
}

impl Order {
    const WORDS: [(Self, &'static str); 4] =
        [(Self::Retry, "retry"), (Self::Hold, "hold"), (Self::Release, "release"), (Self::Drop, "drop")];

    /// The word for it, as it is left for another node.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(order, _)| *order == self).map_or("", |(_, word)| word)
    }

    /// The order of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(order, _)| *order)
    }
}

/// What a recipient waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The recipient's place in the email.
    pub recipient: u16,
    /// In a sentence.
    pub what: String,
    /// When it goes on, as far as is known.
    pub until: Option<Timestamp>,
}

/// Everything known about an email.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The email and its recipients.
    pub email: EmailWithRecipients,
    /// What happened, oldest first.
    pub events: Vec<Event>,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// What the recipients that are not finished wait for.
    pub waiting: Vec<Waiting>,
}

/// A recipient that is in the queue: its task, and the task's row.
struct Open<'a> {
    recipient: &'a Recipient,
    task: Task,
    row: Value,
}

impl Worker {
    /// Explains an email: what happened, what it waits for, when it goes next.
    ///
    /// # Errors
    /// [`OperateError`].
    pub async fn trace(&self, id: EmailId) -> Result<Trace, OperateError> {
        let email = store::email::find(&self.store, id).await?.ok_or(OperateError::Unknown(id))?;
        let account = email.email.account;
        let events = store::event::list(&self.store, account, id, SHOWN_MAX).await?;
        let attempts = store::attempt::list(&self.store, account, id, SHOWN_MAX).await?;
        let mut waiting = Vec::new();
        for open in self.open_tasks(&email).await? {
            waiting.push(self.waiting(open.recipient, &open.task));
        }
        Ok(Trace { email, events, attempts, waiting })
    }

    fn waiting(&self, recipient: &Recipient, task: &Task) -> Waiting {
        let now = self.clock.now();
        let (what, until) = if task.held {
            ("held by the operator; `queue release` lets it go".to_owned(), None)
        } else if self.is_paused() {
            ("delivery is paused by the configuration".to_owned(), None)
        } else if !self.leases.is_active(task.partition) && task.due > now {
            (format!("its next attempt (number {}), by another node", task.attempts + 1), Some(task.due))
        } else if !self.leases.is_active(task.partition) {
            ("its turn at another node: ask there what for".to_owned(), None)
        } else if let Some(standing) = self.site_of(task, now) {
            match standing.left_alone(now) {
                Some((why, until)) => (format!("{}: {why}", standing.name), Some(until)),
                None if !self.flights.holds(task.id) && task.due > now => {
                    (format!("its next attempt (number {})", task.attempts + 1), Some(task.due))
                }
                None if !self.flights.holds(task.id) => {
                    ("room in memory: it is due and lies on disk behind others of its queue".to_owned(), None)
                }
                None => (
                    format!(
                        "its turn, or the reply, at {}: {} ready there, {} of at most {} connections open",
                        standing.name, standing.ready, standing.connections, standing.connections_max
                    ),
                    None,
                ),
            }
        } else if self.flights.holds(task.id) {
            (format!("the mail hosts of {}: their look-up, or their reply", task.address.domain()), None)
        } else if task.due <= now {
            ("room in memory: it is due and lies on disk behind others of its queue".to_owned(), None)
        } else {
            (format!("its next attempt (number {})", task.attempts + 1), Some(task.due))
        };
        Waiting { recipient: recipient.index, what, until }
    }

    fn site_of(&self, task: &Task, now: Timestamp) -> Option<SiteStanding> {
        self.planner
            .known(task.address.domain(), now)
            .map(|route| self.standing_of(&route, task.tls_demand()))
    }

    /// Does something to all recipients of an email that are in the queue. Says how many they are. Those whose
    /// tasks are another node's are left word about: it carries the order out within a second or two.
    ///
    /// # Errors
    /// [`OperateError`].
    pub async fn order(self: &Arc<Self>, id: EmailId, order: Order) -> Result<usize, OperateError> {
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
                store::task::hint(&mut batch, one.task.partition, about, order.word());
            }
        }
        if !batch.is_empty() {
            self.store.commit(batch).await?;
        }
        Ok(open.len())
    }

    /// Carries out an order about an email as far as its tasks are ours.
    pub(crate) async fn carry_out(
        self: &Arc<Self>,
        account: AccountId,
        id: EmailId,
        order: Order,
    ) -> Result<(), OperateError> {
        let email = store::email::get(&self.store, account, id).await?.ok_or(OperateError::Unknown(id))?;
        for one in self.open_tasks(&email).await? {
            if self.leases.is_active(one.task.partition) {
                self.carry_out_one(&one, order).await?;
            }
        }
        Ok(())
    }

    async fn carry_out_one(&self, one: &Open<'_>, order: Order) -> Result<(), OperateError> {
        match order {
            Order::Retry => self.retry(one).await,
            Order::Release => self.change(one, |task| task.held = false).await,
            Order::Hold => self.apart(&one.task, self.change(one, |task| task.held = true)).await,
            Order::Drop => self.apart(&one.task, self.drop_task(one)).await,
        }
    }

    /// Does something to a task while it is out of everybody's reach.
    async fn apart(
        &self,
        task: &Task,
        work: impl Future<Output = Result<(), OperateError>>,
    ) -> Result<(), OperateError> {
        match self.flights.withdraw(task.id) {
            Withdrawal::Busy => Err(OperateError::Busy(task.id.email)),
            // Whoever meets it in its line gives back its place.
            Withdrawal::Waiting => work.await,
            Withdrawal::OnDisk => {
                let done = work.await;
                self.let_go(task);
                done
            }
        }
    }

    async fn change(&self, open: &Open<'_>, change: impl FnOnce(&mut Task)) -> Result<(), OperateError> {
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

    async fn retry(&self, open: &Open<'_>) -> Result<(), OperateError> {
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
        let recipient = Recipient { next_attempt_at: Some(now), ..(*recipient).clone() };
        store::email::put_recipient(&mut batch, task.account, task.id.email, &recipient);
        self.store.commit(batch).await?;
        self.note(&after);
        Ok(())
    }

    async fn drop_task(&self, open: &Open<'_>) -> Result<(), OperateError> {
        let Open { recipient, task, row } = open;
        let now = self.clock.now();
        let mut batch = Batch::progress();
        store::task::take(&mut batch, task, Some(row));
        let recipient = Recipient {
            state: RecipientState::Cancelled,
            last_event: (EventKind::Cancelled, now),
            next_attempt_at: None,
            ..(*recipient).clone()
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
    async fn open_tasks<'a>(&self, email: &'a EmailWithRecipients) -> Result<Vec<Open<'a>>, ReadError> {
        let mut open = Vec::new();
        for recipient in &email.recipients {
            let Some(due) = recipient.next_attempt_at else { continue };
            let queue = (recipient.address.domain(), email.email.class(), email.email.account);
            let id = TaskId { email: email.email.id, recipient: recipient.index };
            if let Some((task, row)) = store::task::find(&self.store, queue, due, id).await? {
                open.push(Open { recipient, task, row });
            }
        }
        Ok(open)
    }
}
