//! Committing a settlement, and putting memory in order after it.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use mail::id::{EventId, SuppressionId};
use mail::suppression::Suppression;
use mail::task::Task;
use store::engine::{Batch, CommitError, ReadError};
use store::suppression::StoredSuppression;

use crate::attempt_log::log_attempt;
use crate::notification;
use crate::settle::{self, AttemptResult, NextAction};
use crate::site::ReadyTask;
use crate::worker::Worker;

/// How soon a store that took no booking is tried again.
const COMMIT_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(1);

/// What became of the recipient's suppression.
struct SuppressionUpdate {
    before: Option<StoredSuppression>,
    after: Option<Suppression>,
}

/// Why a settlement is not booked.
enum CommitOutcomeError {
    /// Somebody else changed the recipient's suppression first: it is to be decided anew.
    Conflict,
    /// It will not be.
    Abandoned,
}

impl Worker {
    /// Settles an attempt: decides what comes next, writes it in one commit, gives back the task's place.
    pub(crate) async fn record_outcome(self: &Arc<Self>, ready: &ReadyTask, attempted: &AttemptResult) {
        self.commit_outcome(ready, attempted).await;
    }

    /// The same. False: it is not booked, somebody else has changed the task.
    pub(crate) async fn commit_outcome(self: &Arc<Self>, ready: &ReadyTask, attempted: &AttemptResult) -> bool {
        let task = &ready.task;
        let attempted = self.with_earlier_reply(task, attempted).await;
        let attempted = attempted.as_ref();
        let now = self.clock.now();
        let next =
            settle::decide_next_action(task, attempted, &self.delivery_policy().schedule, now, self.entropy.u64());
        let notice = notification::dsn_for_outcome(self, task, attempted, &next, now).await;
        let email = (task.account, task.id.email);
        if !attempted.is_untried {
            self.metrics.record_attempt(attempted, &next, now);
            self.metrics.record_wait(task, attempted.began_at);
        }
        let event = EventId::new(now, self.entropy.unique_bits());
        let booked = loop {
            let suppressing = self.suppression_update(task, attempted, &next, now).await;
            let stands = suppressing.as_ref().and_then(SuppressionUpdate::current);
            let about = (task, ready.row.as_ref());
            let (mut batch, event) = settle::outcome_batch(about, attempted, (&next, stands), now, event);
            if let Some(SuppressionUpdate { before, after: Some(after) }) = &suppressing {
                store::suppression::put(&mut batch, before.as_ref(), after);
                self.suppressions().record_created(&mut batch, before.as_ref(), after);
            }
            if let Some(notice) = &notice {
                store::notice::put(&mut batch, task.partition, email, notice);
            }
            if !self.leases.fence(&mut batch, std::slice::from_ref(task)) {
                // Another node has the partition by now, and the books: it tries the task again.
                tracing::warn!(email.id = %task.id.email, "an attempt was not booked: its partition went to another node");
                self.release_task(task);
                self.outcome_recorded.notify_waiters();
                return false;
            }
            match self.commit_outcome_batch(batch, task).await {
                Ok(()) => {
                    self.recent_events.insert(event, None);
                    break true;
                }
                Err(CommitOutcomeError::Conflict) => {}
                Err(CommitOutcomeError::Abandoned) => break false,
            }
        };
        if booked {
            self.in_flight.finish(task.id);
            if let NextAction::Retry { at } = &next {
                self.schedule_task(&settle::rescheduled_task(task, attempted, *at, now));
            }
            match notice {
                Some(_) => drop(self.dsn_reporter.add(email, task.partition, now)),
                None => self.dsn_reporter.recipient_finished(email),
            }
        } else {
            // Whatever the rows are now, disk knows.
            self.release_task(task);
        }
        self.outbox_wakeup.notify_one();
        self.outcome_recorded.notify_waiters();
        log_attempt(task, attempted, &next);
        booked
    }

    /// Where nothing was answered to an attempt, what was before: it stays the last word. Only then is anything read.
    async fn with_earlier_reply<'a>(&self, task: &Task, attempted: &'a AttemptResult) -> Cow<'a, AttemptResult> {
        if task.replies == 0 || attempted.outcome.reply().is_some() {
            return Cow::Borrowed(attempted);
        }
        // Should it not be found: to book the attempt matters more.
        let found = store::email::get_stored_recipient(&self.store, task.account, task.id).await.ok().flatten();
        match found.and_then(|found| found.recipient.last_response) {
            Some(reply) => Cow::Owned(AttemptResult { earlier_reply: Some(reply), ..attempted.clone() }),
            None => Cow::Borrowed(attempted),
        }
    }

    /// What becomes of the recipient's suppression; none when what comes next does not bear on it. Only then
    /// is anything read: what is delivered or tried again reads nothing.
    async fn suppression_update(
        &self,
        task: &Task,
        attempted: &AttemptResult,
        next: &NextAction,
        now: Timestamp,
    ) -> Option<SuppressionUpdate> {
        let grounds = settle::suppression_cause(task, attempted, next)?;
        let before = loop {
            match store::suppression::get(&self.store, task.account, &grounds.target).await {
                Ok(before) => break before,
                // The booking would wait for the database, too.
                Err(error @ ReadError::Away(_)) if !self.abort.is_cancelled() => {
                    store::warn_unless_away!(self.store, %error, email.id = %task.id.email, "an attempt cannot be booked yet");
                    self.wait_to_retry_commit().await;
                }
                Err(error) => {
                    tracing::error!(%error, email.id = %task.id.email, "the recipient cannot be suppressed");
                    return None;
                }
            }
        };
        let id = SuppressionId::new(now, self.entropy.unique_bits());
        let stands = before.as_ref().map(|found| &found.suppression);
        let after = Suppression::apply_cause(stands, grounds, task.account, id, now);
        Some(SuppressionUpdate { before, after })
    }

    async fn wait_to_retry_commit(&self) {
        tokio::select! {
            () = tokio::time::sleep(COMMIT_RETRY_DELAY) => {}
            () = self.abort.cancelled() => {}
        }
    }

    async fn commit_outcome_batch(&self, batch: Batch, task: &Task) -> Result<(), CommitOutcomeError> {
        loop {
            match self.store.commit(batch.clone()).await {
                Ok(()) => return Ok(()),
                // What was done must be booked before anything else is done: when there is room again (the
                // reserve is used up too), or when the database is back. One that cannot say whether it is
                // booked is asked again: a second booking would meet its own first as a conflict.
                Err(error @ (CommitError::Full | CommitError::Away(_) | CommitError::Unknown(_)))
                    if !self.abort.is_cancelled() =>
                {
                    store::warn_unless_away!(self.store, %error, email.id = %task.id.email, "an attempt cannot be booked yet");
                    self.wait_to_retry_commit().await;
                }
                Err(CommitError::Conflict { key }) if store::suppression::caused_conflict(&key) => {
                    return Err(CommitOutcomeError::Conflict);
                }
                Err(CommitError::Conflict { .. }) => {
                    // The operator took the task away meanwhile, or another node owns the partition
                    // now: the books are theirs.
                    tracing::warn!(email.id = %task.id.email, "an attempt was not booked: its task has changed");
                    return Err(CommitOutcomeError::Abandoned);
                }
                Err(error) => {
                    // The attempt stands nowhere: after a restart the message is tried again.
                    tracing::error!(%error, email.id = %task.id.email, "an attempt could not be booked");
                    self.stop.cancel();
                    return Err(CommitOutcomeError::Abandoned);
                }
            }
        }
    }
}

impl SuppressionUpdate {
    /// The suppression as it stands afterwards.
    fn current(&self) -> Option<&Suppression> {
        self.after.as_ref().or(self.before.as_ref().map(|found| &found.suppression))
    }
}
