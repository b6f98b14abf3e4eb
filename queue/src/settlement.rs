//! Committing a settlement, and putting memory in order after it.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use mail::id::{EventId, SuppressionId};
use mail::suppression::Suppression;
use mail::task::Task;
use store::engine::{Batch, CommitError, ReadError};
use store::suppression::Found;

use crate::attempt_log::log_attempt;
use crate::notification;
use crate::settle::{self, Attempted, Next};
use crate::site::Ready;
use crate::worker::Worker;

/// How soon a store that took no booking is tried again.
const BOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// What became of the recipient's suppression.
struct Suppressing {
    before: Option<Found>,
    after: Option<Suppression>,
}

/// Why a settlement is not booked.
enum Unbooked {
    /// Somebody else changed the recipient's suppression first: it is to be decided anew.
    Raced,
    /// It will not be.
    Lost,
}

impl Worker {
    /// Settles an attempt: decides what comes next, writes it in one commit, gives back the task's place.
    pub(crate) async fn settle(self: &Arc<Self>, ready: &Ready, attempted: &Attempted) {
        self.book(ready, attempted).await;
    }

    /// The same. False: it is not booked, somebody else has changed the task.
    pub(crate) async fn book(self: &Arc<Self>, ready: &Ready, attempted: &Attempted) -> bool {
        let task = &ready.task;
        let attempted = self.with_what_was_answered(task, attempted).await;
        let attempted = attempted.as_ref();
        let now = self.clock.now();
        let next = settle::decide(task, attempted, &self.manners().schedule, now, self.entropy.u64());
        let notice = notification::of(self, task, attempted, &next, now).await;
        let email = (task.account, task.id.email);
        if !attempted.is_untried {
            self.figures.attempted(attempted, &next, now);
            self.figures.waited(task, attempted.began_at);
        }
        let event = EventId::new(now, self.entropy.id());
        let booked = loop {
            let suppressing = self.suppress(task, attempted, &next, now).await;
            let stands = suppressing.as_ref().and_then(Suppressing::stands);
            let about = (task, ready.row.as_ref());
            let (mut batch, event) = settle::record(about, attempted, (&next, stands), now, event);
            if let Some(Suppressing { before, after: Some(after) }) = &suppressing {
                store::suppression::put(&mut batch, before.as_ref(), after);
                self.contacts().tell_created(&mut batch, before.as_ref(), after);
            }
            if let Some(notice) = &notice {
                store::notice::put(&mut batch, task.partition, email, notice);
            }
            if !self.leases.fence(&mut batch, std::slice::from_ref(task)) {
                // Another node has the partition by now, and the books: it tries the task again.
                tracing::warn!(email.id = %task.id.email, "an attempt was not booked: its partition went to another node");
                self.let_go(task);
                self.settled.notify_waiters();
                return false;
            }
            match self.commit_settlement(batch, task).await {
                Ok(()) => {
                    self.fresh.keep(event, None);
                    break true;
                }
                Err(Unbooked::Raced) => {}
                Err(Unbooked::Lost) => break false,
            }
        };
        if booked {
            self.flights.land(task.id);
            if let Next::Retry { at } = &next {
                self.note(&settle::moved(task, attempted, *at, now));
            }
            match notice {
                Some(_) => drop(self.reports.note(email, task.partition, now)),
                None => self.reports.settled(email),
            }
        } else {
            // Whatever the rows are now, disk knows.
            self.let_go(task);
        }
        self.untold.notify_one();
        self.settled.notify_waiters();
        log_attempt(task, attempted, &next);
        booked
    }

    /// Where nothing was answered to an attempt, what was before: it stays the last word. Only then is anything read.
    async fn with_what_was_answered<'a>(&self, task: &Task, attempted: &'a Attempted) -> Cow<'a, Attempted> {
        if task.replies == 0 || attempted.outcome.reply().is_some() {
            return Cow::Borrowed(attempted);
        }
        // Should it not be found: to book the attempt matters more.
        let found = store::email::look(&self.store, task.account, task.id).await.ok().flatten();
        match found.and_then(|found| found.recipient.last_response) {
            Some(reply) => Cow::Owned(Attempted { answered_before: Some(reply), ..attempted.clone() }),
            None => Cow::Borrowed(attempted),
        }
    }

    /// What becomes of the recipient's suppression; none when what comes next does not bear on it. Only then
    /// is anything read: what is delivered or tried again reads nothing.
    async fn suppress(
        &self,
        task: &Task,
        attempted: &Attempted,
        next: &Next,
        now: Timestamp,
    ) -> Option<Suppressing> {
        let grounds = settle::grounds_of(task, attempted, next)?;
        let before = loop {
            match store::suppression::get(&self.store, task.account, &grounds.target).await {
                Ok(before) => break before,
                // The booking would wait for the database, too.
                Err(error @ ReadError::Away(_)) if !self.cut.is_cancelled() => {
                    store::warn_unless_away!(self.store, %error, email.id = %task.id.email, "an attempt cannot be booked yet");
                    self.wait_to_book().await;
                }
                Err(error) => {
                    tracing::error!(%error, email.id = %task.id.email, "the recipient cannot be suppressed");
                    return None;
                }
            }
        };
        let id = SuppressionId::new(now, self.entropy.id());
        let stands = before.as_ref().map(|found| &found.suppression);
        let after = Suppression::follow(stands, grounds, task.account, id, now);
        Some(Suppressing { before, after })
    }

    async fn wait_to_book(&self) {
        tokio::select! {
            () = tokio::time::sleep(BOOK_AGAIN) => {}
            () = self.cut.cancelled() => {}
        }
    }

    async fn commit_settlement(&self, batch: Batch, task: &Task) -> Result<(), Unbooked> {
        loop {
            match self.store.commit(batch.clone()).await {
                Ok(()) => return Ok(()),
                // What was done must be booked before anything else is done: when there is room again (the
                // reserve is used up too), or when the database is back. One that cannot say whether it is
                // booked is asked again: a second booking would meet its own first as a conflict.
                Err(error @ (CommitError::Full | CommitError::Away(_) | CommitError::Unknown(_)))
                    if !self.cut.is_cancelled() =>
                {
                    store::warn_unless_away!(self.store, %error, email.id = %task.id.email, "an attempt cannot be booked yet");
                    self.wait_to_book().await;
                }
                Err(CommitError::Conflict { key }) if store::suppression::is_about_one(&key) => {
                    return Err(Unbooked::Raced);
                }
                Err(CommitError::Conflict { .. }) => {
                    // The operator took the task away meanwhile, or another node owns the partition
                    // now: the books are theirs.
                    tracing::warn!(email.id = %task.id.email, "an attempt was not booked: its task has changed");
                    return Err(Unbooked::Lost);
                }
                Err(error) => {
                    // The attempt stands nowhere: after a restart the message is tried again.
                    tracing::error!(%error, email.id = %task.id.email, "an attempt could not be booked");
                    self.stop.cancel();
                    return Err(Unbooked::Lost);
                }
            }
        }
    }
}

impl Suppressing {
    /// The suppression as it stands afterwards.
    fn stands(&self) -> Option<&Suppression> {
        self.after.as_ref().or(self.before.as_ref().map(|found| &found.suppression))
    }
}
