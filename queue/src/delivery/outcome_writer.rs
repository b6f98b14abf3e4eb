//! Commits the outcome of an attempt and updates the in-memory state.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use message::outcome::{AttemptPhase, Outcome};
use message::reply::Severity;
use model::id::{EventId, SuppressionId};
use model::suppression::Suppression;
use model::task::Task;
use store::engine::{Batch, CommitError, ReadError};
use store::suppression::StoredSuppression;

use crate::delivery::attempt_log::log_attempt;
use crate::delivery::commit_retries::CommitRetries;
use crate::delivery::delivery_metrics::DeliveryMetrics;
use crate::delivery::delivery_policy::SharedDeliveryPolicy;
use crate::delivery::outcome::{self, AttemptResult, NextAction};
use crate::dsn::dsn_request;
use crate::dsn::pending_dsns::PendingDsns;
use crate::routing::RouteError;
use crate::scheduler::Scheduler;
use crate::scheduler::ready_queue::ReadyTask;
use crate::services::Services;
use crate::suppression_event::record_created;

/// Delay before a commit is retried while the store is full or away.
const COMMIT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Change of the recipient's suppression.
struct SuppressionUpdate {
    before: Option<StoredSuppression>,
    after: Option<Suppression>,
}

/// Error of committing an outcome.
enum CommitOutcomeError {
    /// The recipient's suppression changed concurrently; decide again.
    Conflict,
    /// The outcome is given up.
    Abandoned,
    /// The store was full or away at each of the tries. If the result of a try is unknown, the task may be changed.
    Unavailable(CommitError),
}

/// Commits outcomes.
pub(crate) struct OutcomeWriter {
    pub(crate) services: Services,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) policy: Arc<SharedDeliveryPolicy>,
    pub(crate) metrics: Arc<DeliveryMetrics>,
    pub(crate) pending_dsns: Arc<PendingDsns>,
}

impl OutcomeWriter {
    /// Records an attempt: decides the next action, commits it and releases the task.
    pub(crate) async fn record_outcome(&self, ready: &ReadyTask, attempted: &AttemptResult) {
        // With unlimited retries, the store is never given up.
        let _ = self.commit_outcome(ready, attempted, CommitRetries::Unlimited).await;
    }

    /// Commits the outcome of an attempt. Returns false when the operator or another node changed the task first.
    ///
    /// # Errors
    /// The store was full or away at each of the limited tries. The task is unchanged, unless the result of a try is
    /// unknown ([`CommitError::Unknown`]): then it may be changed.
    pub(crate) async fn commit_outcome(
        &self,
        ready: &ReadyTask,
        attempted: &AttemptResult,
        retries: CommitRetries,
    ) -> Result<bool, CommitError> {
        let task = &ready.task;
        let attempted = self.with_earlier_reply(task, attempted).await;
        let attempted = attempted.as_ref();
        let now = self.services.clock.now();
        let next = outcome::decide_next_action(
            task,
            attempted,
            &self.policy.current().schedule,
            now,
            self.services.entropy.u64(),
        );
        let notice = dsn_request::dsn_for_outcome(&self.services.store, task, attempted, &next, now).await;
        let email = (task.account, task.id.email);
        if !attempted.is_untried {
            self.metrics.record_attempt(attempted, &next, now);
            self.metrics.record_wait(task, attempted.began_at);
        }
        let event = EventId::new(now, self.services.entropy.unique_bits());
        let mut unavailable = None;
        let committed = loop {
            let suppressing = self.suppression_update(task, attempted, &next, now).await;
            let current = suppressing.as_ref().and_then(SuppressionUpdate::current);
            let (mut batch, event) =
                outcome::outcome_batch(task, ready.row.as_ref(), attempted, &next, current, now, event);
            if let Some(SuppressionUpdate { before, after: Some(after) }) = &suppressing {
                store::suppression::put(&mut batch, before.as_ref(), after);
                record_created(&mut batch, &self.services.clock, &self.services.entropy, before.as_ref(), after);
            }
            if let Some(notice) = &notice {
                store::pending_dsn::put(&mut batch, task.partition, email, notice);
            }
            if !self.services.leases.fence(&mut batch, std::slice::from_ref(task)) {
                // Another node owns the partition now and attempts the task again.
                tracing::warn!(email.id = %task.id.email, "outcome dropped: another node took over the partition");
                self.scheduler.release_task(task);
                self.services.outcome_recorded.notify_waiters();
                return Ok(false);
            }
            match self.commit_outcome_batch(batch, task, retries).await {
                Ok(()) => {
                    self.services.recent_events.insert(event, None);
                    break true;
                }
                Err(CommitOutcomeError::Conflict) => {}
                Err(CommitOutcomeError::Abandoned) => break false,
                Err(CommitOutcomeError::Unavailable(error)) => {
                    unavailable = Some(error);
                    break false;
                }
            }
        };
        if committed {
            self.scheduler.in_flight.finish(task.id);
            if let NextAction::Retry { at } = &next {
                self.scheduler.schedule_task(&outcome::rescheduled_task(task, attempted, *at, now));
            }
            match notice {
                Some(_) => drop(self.pending_dsns.add(email, task.partition, now)),
                None => self.pending_dsns.recipient_finished(email),
            }
        } else {
            // Memory may be stale; the stored row is authoritative, so reload it.
            self.scheduler.release_task(task);
        }
        self.services.outbox_wakeup.notify_one();
        self.services.outcome_recorded.notify_waiters();
        if let Some(error) = unavailable {
            return Err(error);
        }
        log_attempt(task, attempted, &next);
        Ok(committed)
    }

    /// Adds the last reply of an earlier attempt if this one had none. Only then is the recipient read.
    async fn with_earlier_reply<'a>(&self, task: &Task, attempted: &'a AttemptResult) -> Cow<'a, AttemptResult> {
        if task.replies == 0 || attempted.outcome.reply().is_some() {
            return Cow::Borrowed(attempted);
        }
        // A read error must not prevent the outcome from being recorded.
        let found =
            store::email::get_stored_recipient(&self.services.store, task.account, task.id).await.ok().flatten();
        match found.and_then(|found| found.recipient.last_response) {
            Some(reply) => Cow::Owned(AttemptResult { earlier_reply: Some(reply), ..attempted.clone() }),
            None => Cow::Borrowed(attempted),
        }
    }

    /// Returns the change of the recipient's suppression, if the next action calls for one. Deliveries and retries read
    /// nothing.
    async fn suppression_update(
        &self,
        task: &Task,
        attempted: &AttemptResult,
        next: &NextAction,
        now: Timestamp,
    ) -> Option<SuppressionUpdate> {
        let grounds = outcome::suppression_cause(task, attempted, next)?;
        let before = loop {
            match store::suppression::get(&self.services.store, task.account, &grounds.target).await {
                Ok(before) => break before,
                // The commit would wait for the database, too.
                Err(error @ ReadError::Away(_)) if !self.services.abort.is_cancelled() => {
                    store::warn_unless_away!(self.services.store, %error, email.id = %task.id.email, "cannot record an attempt; retrying");
                    self.wait_to_retry_commit().await;
                }
                Err(error) => {
                    tracing::error!(%error, email.id = %task.id.email, "cannot suppress the recipient");
                    return None;
                }
            }
        };
        let id = SuppressionId::new(now, self.services.entropy.unique_bits());
        let current = before.as_ref().map(|found| &found.suppression);
        let after = Suppression::apply_cause(current, grounds, task.account, id, now);
        Some(SuppressionUpdate { before, after })
    }

    async fn wait_to_retry_commit(&self) {
        tokio::select! {
            () = tokio::time::sleep(COMMIT_RETRY_DELAY) => {}
            () = self.services.abort.cancelled() => {}
        }
    }

    async fn commit_outcome_batch(
        &self,
        batch: Batch,
        task: &Task,
        retries: CommitRetries,
    ) -> Result<(), CommitOutcomeError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.services.store.commit(batch.clone()).await {
                Ok(()) => return Ok(()),
                // The outcome must be recorded before anything else, so wait for disk space or for the database. An
                // unknown commit result is repeated: if the first commit succeeded, the second one conflicts with it.
                Err(error @ (CommitError::Full | CommitError::Away(_) | CommitError::Unknown(_)))
                    if !self.services.abort.is_cancelled() =>
                {
                    if !retries.may_follow(tries) {
                        return Err(CommitOutcomeError::Unavailable(error));
                    }
                    store::warn_unless_away!(self.services.store, %error, email.id = %task.id.email, "cannot record an attempt; retrying");
                    self.wait_to_retry_commit().await;
                }
                Err(CommitError::Conflict { key }) if store::suppression::caused_conflict(&key) => {
                    return Err(CommitOutcomeError::Conflict);
                }
                Err(CommitError::Conflict { .. }) => {
                    // The operator changed the task, or another node owns the partition: their state is authoritative.
                    tracing::warn!(email.id = %task.id.email, "outcome dropped: the task changed concurrently");
                    return Err(CommitOutcomeError::Abandoned);
                }
                Err(error) => {
                    // The attempt is not recorded: after a restart the message is attempted again.
                    tracing::error!(%error, email.id = %task.id.email, "cannot record an attempt; stopping delivery");
                    self.services.stop.cancel();
                    return Err(CommitOutcomeError::Abandoned);
                }
            }
        }
    }

    /// Result of an attempt that found no route.
    pub(crate) fn route_error_result(&self, error: RouteError, began_at: Timestamp) -> AttemptResult {
        let (outcome, phase) = match error {
            RouteError::Transient(text) | RouteError::DnssecBogus(text) => {
                (Outcome::Unreachable(text), AttemptPhase::Dns)
            }
            RouteError::TlsPolicyUnmet(text, _) => (Outcome::Unreachable(text), AttemptPhase::Tls),
            RouteError::Permanent(reply) => (Outcome::Undeliverable(reply), AttemptPhase::Dns),
        };
        self.no_connection_result(outcome, phase, began_at)
    }

    /// Result of an attempt that opened no connection.
    pub(crate) fn no_connection_result(
        &self,
        outcome: Outcome,
        phase: AttemptPhase,
        began_at: Timestamp,
    ) -> AttemptResult {
        let duration = Duration::try_from(self.services.clock.now().duration_since(began_at)).unwrap_or_default();
        let transcript = String::new();
        AttemptResult {
            outcome,
            phase,
            began_at,
            duration,
            mx_host: None,
            ip: None,
            source: None,
            tls: None,
            transcript,
            is_untried: false,
            earlier_reply: None,
        }
    }

    /// Result of an attempt that was not made: the last attempt's outcome, or `text` if there was none.
    pub(crate) async fn untried_result(&self, task: &Task, text: &str) -> AttemptResult {
        let result = self.no_connection_result(
            Outcome::Unreachable(text.to_owned()),
            AttemptPhase::Connect,
            self.services.clock.now(),
        );
        let result = AttemptResult { is_untried: true, ..result };
        if task.attempts == 0 {
            return result;
        }
        // If it cannot be read, continue: ending the task in time matters more.
        let last = store::attempt::get(&self.services.store, task.account, task.id, task.attempts).await;
        let Some(last) = last.ok().flatten() else { return result };
        let outcome = match (last.reply, last.error) {
            (Some(reply), _) if reply.severity() == Severity::Transient => Outcome::Deferred(reply),
            (_, Some(error)) => Outcome::Unreachable(error),
            (_, None) => result.outcome,
        };
        AttemptResult { outcome, phase: last.phase, mx_host: last.mx_host, ip: last.ip, ..result }
    }
}

impl SuppressionUpdate {
    /// The recipient's suppression after the change.
    fn current(&self) -> Option<&Suppression> {
        self.after.as_ref().or(self.before.as_ref().map(|found| &found.suppression))
    }
}
