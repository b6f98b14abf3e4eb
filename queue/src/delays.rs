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

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::event::EventKind;
use mail::id::EventId;
use mail::outcome::{AttemptPhase, Outcome};
use mail::recipient::{Recipient, RecipientState};
use mail::reply::Severity;
use mail::task::{QueueName, Task};
use quick_cache::unsync::Cache;
use store::engine::{Batch, CommitError, Key, ReadError, Value};
use tokio::sync::Notify;

use crate::dsn_request;
use crate::outcome::{self, AttemptResult, NextAction};
use crate::ready_queue::{DeliveryObstacle, ReadyQueue, ReadyTask};
use crate::worker::Worker;

/// Tasks read at once.
const PAGE_TASKS: usize = 256;
/// Tasks recorded concurrently, so that their commits share one sync.
const CONCURRENCY: usize = 64;
/// Queues with a known scan position. Beyond the limit, all positions are dropped and queues are scanned again.
const TRACKED_QUEUES_MAX: usize = 100_000;
/// Upper bound of the time between a task's key and its commit.
const COMMITTED_WITHIN: Duration = Duration::from_secs(10);

/// Queues with delays to record, and how far each was scanned.
#[derive(Debug, Default)]
pub(crate) struct DelayTracker {
    state: Mutex<DelayState>,
    changed: Notify,
}

#[derive(Debug)]
struct DelayState {
    pending: HashMap<QueueName, DeliveryObstacle>,
    reported_up_to: Cache<QueueName, Key>,
}

impl Default for DelayState {
    fn default() -> Self {
        Self { pending: HashMap::new(), reported_up_to: Cache::new(TRACKED_QUEUES_MAX) }
    }
}

impl DelayTracker {
    fn lock(&self) -> MutexGuard<'_, DelayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, queue: QueueName, obstacle: DeliveryObstacle) {
        self.lock().pending.insert(queue, obstacle);
        self.changed.notify_one();
    }

    fn next_pending(&self) -> Option<(QueueName, DeliveryObstacle, Option<Key>)> {
        let mut state = self.lock();
        let queue = state.pending.keys().next()?.clone();
        let obstacle = state.pending.remove(&queue)?;
        let reported = state.reported_up_to.get(&queue).cloned();
        Some((queue, obstacle, reported))
    }

    fn set_reported(&self, queue: QueueName, up_to: Key) {
        let mut state = self.lock();
        state.reported_up_to.insert(queue, up_to);
    }
}

impl Worker {
    /// Schedules a scan of a queue if its destination is unavailable.
    pub(crate) fn note_delay(&self, queue: QueueName, site: &ReadyQueue) {
        if let Some(obstacle) = site.delivery_obstacle(self.clock.now()) {
            self.delays.add(queue, obstacle);
        }
    }

    /// Why nothing is delivered to a task's destination, if so.
    pub(crate) fn delivery_obstacle(&self, task: &Task) -> Option<DeliveryObstacle> {
        let now = self.clock.now();
        let route = self.last_route(task)?;
        self.ready_queues_of(task, &route).find_map(|site| site.delivery_obstacle(now))
    }

    /// The last error of a task's destination: its last refusal, a connection error, or why its MX lookup failed.
    pub(crate) fn last_error(&self, task: &Task) -> Option<String> {
        let of_site = || {
            let route = self.last_route(task)?;
            self.ready_queues_of(task, &route).find_map(|site| site.last_error())
        };
        match (self.lookup_failures.of(task.address.domain(), self.clock.now()), of_site()) {
            (Some(lookup), Some((error, at))) if at > lookup.at => Some(error),
            (Some(lookup), _) => Some(lookup.error),
            (None, of_site) => of_site.map(|(error, _)| error),
        }
    }

    /// Returns whether the newest fact about a task's destination is a failed MX lookup.
    pub(crate) fn is_lookup_failing(&self, task: &Task) -> bool {
        let Some(lookup) = self.lookup_failures.of(task.address.domain(), self.clock.now()) else {
            return false;
        };
        let route = self.last_route(task);
        let of_site = route.and_then(|route| self.ready_queues_of(task, &route).find_map(|site| site.last_error()));
        of_site.is_none_or(|(_, at)| at <= lookup.at)
    }

    /// Records delays until the worker stops.
    pub(crate) async fn run_delay_events(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            let Some((queue, obstacle, reported)) = self.delays.next_pending() else {
                tokio::select! {
                    () = self.delays.changed.notified() => {}
                    () = self.stop.cancelled() => {}
                }
                continue;
            };
            if let Err(error) = self.record_delays(&queue, &obstacle, reported).await {
                store::warn_unless_away!(self.store, %error, domain = %queue.domain, "cannot read waiting mail to record its delay");
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
        let now = self.clock.now();
        let first_retry = self.delivery_policy().schedule.waits.first().copied().unwrap_or_default();
        let before = obstacle.until.checked_sub(first_retry).unwrap_or(now).min(now);
        let end = store::task::due_start(queue, before);
        let mut from = reported.unwrap_or_else(|| store::task::due_start(queue, Timestamp::UNIX_EPOCH));
        while from < end && !self.stop.is_cancelled() {
            let slice = store::task::list(&self.store, queue, from, PAGE_TASKS).await?;
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
        self.delays.set_reported(queue.clone(), store::task::due_start(queue, safe_until));
        Ok(())
    }

    /// Records the delay of a task whose sender requested a delay DSN. Returns false if the task changed concurrently.
    pub(crate) async fn record_late(self: &Arc<Self>, ready: &ReadyTask) -> bool {
        let Some(row) = &ready.row else { return false };
        let obstacle = self.delivery_obstacle(&ready.task).unwrap_or_else(|| DeliveryObstacle {
            reason: "waiting for the next attempt".to_owned(),
            until: ready.task.due.max(self.clock.now()),
        });
        self.record_delay(&ready.task, row, &obstacle).await
    }

    /// Records that a task is delayed: the event, if the recipient has none yet, and the delay DSN, if it was requested
    /// and is due. Returns false if nothing was written because the task changed concurrently.
    async fn record_delay(self: &Arc<Self>, task: &Task, row: &Value, obstacle: &DeliveryObstacle) -> bool {
        let now = self.clock.now();
        let found = match store::email::get_stored_recipient(&self.store, task.account, task.id).await {
            Ok(Some(found)) => found,
            Ok(None) => return false,
            Err(error) => {
                store::warn_unless_away!(self.store, %error, email.id = %task.id.email, "cannot read a recipient");
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
            let result = self.untried_result(task, &obstacle.reason).await;
            let next = NextAction::Retry { at: obstacle.until };
            if let Some(notice) = dsn_request::dsn_for_outcome(self, task, &result, &next, now).await {
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
        let event = outcome::delayed_event(task, obstacle, now, EventId::new(now, self.entropy.unique_bits()));
        if !is_final {
            store::event::record(&mut batch, &event, task.partition);
        }
        if !self.leases.fence(&mut batch, std::slice::from_ref(task)) {
            return false;
        }
        match self.store.commit(batch).await {
            Ok(()) => {
                self.schedule_deadline(&after);
                self.outbox_wakeup.notify_one();
                self.outcome_recorded.notify_waiters();
                if is_dsn_due {
                    self.dsn_reporter.add((task.account, task.id.email), task.partition, now);
                }
                true
            }
            // An attempt finished, or the operator changed the task.
            Err(CommitError::Conflict { .. }) => false,
            Err(error) => {
                store::warn_unless_away!(self.store, %error, email.id = %task.id.email, "cannot record a delivery delay");
                false
            }
        }
    }

    /// Result of an attempt that was not made: the last attempt's outcome, or `text` if there was none.
    pub(crate) async fn untried_result(&self, task: &Task, text: &str) -> AttemptResult {
        let result =
            self.no_connection_result(Outcome::Unreachable(text.to_owned()), AttemptPhase::Connect, self.clock.now());
        let result = AttemptResult { is_untried: true, ..result };
        if task.attempts == 0 {
            return result;
        }
        // If it cannot be read, continue: ending the task in time matters more.
        let last = store::attempt::get(&self.store, task.account, task.id, task.attempts).await;
        let Some(last) = last.ok().flatten() else { return result };
        let outcome = match (last.reply, last.error) {
            (Some(reply), _) if reply.severity() == Severity::Transient => Outcome::Deferred(reply),
            (_, Some(error)) => Outcome::Unreachable(error),
            (_, None) => result.outcome,
        };
        AttemptResult { outcome, phase: last.phase, mx_host: last.mx_host, ip: last.ip, ..result }
    }
}
