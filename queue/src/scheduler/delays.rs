//! Delay events: untried mail to an unreachable or suspended destination gets the event `email.delivery_delayed`, once
//! for each recipient. Mail that was tried has that event from its attempt.
//!
//! ```text
//! destination unavailable ─► its queues ─► tasks older by then than the first retry ─►[ recipient deferred; event ]
//! ```
//!
//! The tasks themselves do not change, so a task in memory continues unaffected. A queue's untried tasks are stored in
//! the order of acceptance, so one key marks how far delays were recorded. The key is in memory; after a restart each
//! queue is scanned once more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use model::event::EventKind;
use model::id::EventId;
use model::recipient::{Recipient, RecipientState};
use model::task::{QueueName, Task};
use store::engine::{Batch, CommitError, Key, ReadError, Value};

use crate::delivery::outcome::{self, NextAction};
use crate::dsn::dsn_request;
use crate::scheduler::dispatch::Dispatcher;
use crate::scheduler::ready_queue::{DeliveryObstacle, ReadyTask};

/// Tasks read at once.
const PAGE_TASKS: usize = 256;
/// Tasks recorded concurrently, so that their commits share one sync.
const CONCURRENCY: usize = 64;
/// Upper bound of the time between a task's key and its commit.
const COMMITTED_WITHIN: Duration = Duration::from_secs(10);

impl Dispatcher {
    /// Records delays until shutdown.
    pub(crate) async fn run_delay_recorder(self: Arc<Self>) {
        while !self.services.stop.is_cancelled() {
            let Some((queue, obstacle, reported)) = self.queues.delays.next_pending() else {
                tokio::select! {
                    () = self.queues.delays.changed.notified() => {}
                    () = self.services.stop.cancelled() => {}
                }
                continue;
            };
            if let Err(error) = self.record_delays(&queue, &obstacle, reported).await {
                store::warn_unless_away!(self.services.store, %error, domain = %queue.domain, "cannot read waiting mail to record its delay");
            }
        }
    }

    /// Records delays of all tasks of a queue that will have waited longer than the first retry takes.
    async fn record_delays(
        self: &Arc<Self>,
        queue: &QueueName,
        obstacle: &DeliveryObstacle,
        reported: Option<Key>,
    ) -> Result<(), ReadError> {
        let now = self.services.clock.now();
        let first_retry = self.agent.policy.current().schedule.waits.first().copied().unwrap_or_default();
        let before = obstacle.until.checked_sub(first_retry).unwrap_or(now).min(now);
        let end = store::task::due_start(queue, before);
        let mut from = reported.unwrap_or_else(|| store::task::due_start(queue, Timestamp::UNIX_EPOCH));
        while from < end && !self.services.stop.is_cancelled() {
            let slice = store::task::list(&self.services.store, queue, from, PAGE_TASKS).await?;
            let untried_tasks = slice.tasks.into_iter().filter(|(task, _)| task.due < before && task.attempts == 0);
            let unreported = untried_tasks.filter(|(task, _)| !task.held && task.route.is_none());
            futures_util::stream::iter(unreported)
                .for_each_concurrent(CONCURRENCY, async |(task, row)| {
                    self.record_delay(&task, &row, obstacle).await;
                })
                .await;
            match slice.next {
                Some(next) => from = next,
                None => break,
            }
        }
        let safe_until = before.checked_sub(COMMITTED_WITHIN).unwrap_or(Timestamp::UNIX_EPOCH);
        self.queues.delays.set_reported(queue.clone(), store::task::due_start(queue, safe_until));
        Ok(())
    }

    /// Records the delay of a task whose sender requested a delay DSN. Returns false if the task changed concurrently.
    pub(crate) async fn record_late(self: &Arc<Self>, ready: &ReadyTask) -> bool {
        let Some(row) = &ready.row else { return false };
        let obstacle = self.queues.delivery_obstacle(&ready.task).unwrap_or_else(|| DeliveryObstacle {
            reason: "waiting for the next attempt".to_owned(),
            until: ready.task.due.max(self.services.clock.now()),
        });
        self.record_delay(&ready.task, row, &obstacle).await
    }

    /// Records that a task is delayed: the event, if the recipient has none yet, and the delay DSN, if it was requested
    /// and is due. Returns false if nothing was written because the task changed concurrently.
    async fn record_delay(self: &Arc<Self>, task: &Task, row: &Value, obstacle: &DeliveryObstacle) -> bool {
        let now = self.services.clock.now();
        let found = match store::email::get_stored_recipient(&self.services.store, task.account, task.id).await {
            Ok(Some(found)) => found,
            Ok(None) => return false,
            Err(error) => {
                store::warn_unless_away!(self.services.store, %error, email.id = %task.id.email, "cannot read a recipient");
                return false;
            }
        };
        let is_final = found.recipient.state != RecipientState::Queued;
        let is_dsn_due = dsn_request::is_delay_dsn_due(task, now);
        if is_final && !is_dsn_due {
            return true;
        }
        let mut batch = Batch::progress();
        let mut after = task.clone();
        after.notify.delay &= !is_dsn_due;
        if is_dsn_due {
            store::task::update(&mut batch, task, row, &after);
            let result = self.agent.outcomes.untried_result(task, &obstacle.reason).await;
            let next = NextAction::Retry { at: obstacle.until };
            if let Some(notice) = dsn_request::dsn_for_outcome(&self.services.store, task, &result, &next, now).await {
                store::pending_dsn::put(&mut batch, task.partition, (task.account, task.id.email), &notice);
            }
        } else {
            batch.check(store::task::key_of(task), Some(row.clone()));
        }
        let recipient = Recipient {
            state: RecipientState::Deferred,
            last_event: if is_final { found.recipient.last_event } else { (EventKind::DeliveryDelayed, now) },
            ..found.recipient.clone()
        };
        store::email::update_recipient(&mut batch, task.account, task.id.email, &found, &recipient);
        let event = outcome::delayed_event(task, obstacle, now, EventId::new(now, self.services.entropy.unique_bits()));
        if !is_final {
            store::event::record(&mut batch, &event, task.partition);
        }
        if !self.services.leases.fence(&mut batch, std::slice::from_ref(task)) {
            return false;
        }
        match self.services.store.commit(batch).await {
            Ok(()) => {
                self.deadlines.schedule(&after);
                self.services.outbox_wakeup.notify_one();
                self.services.outcome_recorded.notify_waiters();
                if is_dsn_due {
                    self.agent.outcomes.pending_dsns.add((task.account, task.id.email), task.partition, now);
                }
                true
            }
            // An attempt finished, or the operator changed the task.
            Err(CommitError::Conflict { .. }) => false,
            Err(error) => {
                store::warn_unless_away!(self.services.store, %error, email.id = %task.id.email, "cannot record a delivery delay");
                false
            }
        }
    }
}
