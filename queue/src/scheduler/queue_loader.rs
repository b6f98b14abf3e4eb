//! Queue loader: reads due tasks from disk back into memory, queue by queue and a page at a time, while there is
//! capacity.

use std::sync::Arc;

use jiff::Timestamp;
use model::task::{QueueName, TaskTlsRequirement};
use store::engine::Key;

use crate::routing::route_table::READY_QUEUE_RETRY_DELAY;
use crate::scheduler::damaged_tasks::UnreadablePart;
use crate::scheduler::dispatch::{DispatchOutcome, Dispatcher, RETRY_DELAY};
use crate::scheduler::ready_queue::ReadyTask;

/// Tasks read from a queue at once: enough to keep a ready queue busy during the next read.
const PAGE_TASKS: usize = 256;

impl Dispatcher {
    /// Loads due tasks until shutdown.
    pub(crate) async fn run_queue_loader(self: Arc<Self>) {
        while !self.services.stop.is_cancelled() {
            if self.pause.is_paused() {
                self.pause.wait_unpaused().await;
                continue;
            }
            if self.scheduler.in_flight.free_capacity() == 0 {
                // Memory is full: wait until an outcome frees capacity.
                let recorded = self.services.outcome_recorded.notified();
                tokio::select! {
                    () = recorded => {}
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                    () = self.services.stop.cancelled() => {}
                }
                continue;
            }
            if let Some((queue, from)) = self.scheduler.due_index.pop_due(self.services.clock.now()) {
                self.load_queue(queue, from).await;
                // A queue without capacity returns at once; let other tasks run in between.
                tokio::task::yield_now().await;
                continue;
            }
            let next = self.scheduler.due_index.next_due().unwrap_or(Timestamp::MAX);
            tokio::select! {
                () = self.services.stop.cancelled() => {}
                () = self.services.clock.sleep_until(next) => {
                    let now = self.services.clock.now();
                    if now < next {
                        // The clock was set back: scans may have been scheduled from the wrong time.
                        self.scheduler.due_index.make_due_where(|_| true, now);
                    }
                }
                () = self.scheduler.due_index.changed() => {}
            }
        }
    }

    async fn load_queue(self: &Arc<Self>, queue: QueueName, from: Key) {
        if !self.services.leases.is_active(queue.partition) {
            // The partition's owner loads it. If this node takes it over, its queues are scanned again.
            return;
        }
        if self.scheduler.holds.is_account_held(queue.account) {
            return self.scheduler.park_queue(queue, from);
        }
        let now = self.services.clock.now();
        let Some(capacity) = self.load_capacity(&queue, &from, now) else { return };
        let slice = PAGE_TASKS.min(capacity);
        self.scheduler.in_flight.begin_scan();
        let listed = store::task::list(&self.services.store, &queue, from.clone(), slice).await;
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.scheduler.in_flight.end_scan();
                store::warn_unless_away!(self.services.store, %error, domain = %queue.domain, "cannot read due tasks; retrying");
                return self.scheduler.due_index.add(queue, self.services.clock.after(RETRY_DELAY), from);
            }
        };
        listed.damaged.iter().for_each(|(at, error)| self.quarantine(at, &queue, error));
        let mut next = listed.next;
        let mut ready = Vec::with_capacity(listed.tasks.len());
        for (task, row) in listed.tasks {
            if task.due > now {
                self.scheduler.due_index.add(queue.clone(), task.due, store::task::key_of(&task));
                next = None;
                break;
            }
            if !task.held && self.scheduler.in_flight.admit(task.id) {
                ready.push(ReadyTask { task, row: Some(row), body: None });
            }
        }
        self.scheduler.in_flight.end_scan();
        let mut is_full = false;
        for ready in ready {
            // Other tasks of the queue may use other ready queues.
            let is_default =
                ready.task.route.is_none() && ready.task.tls_requirement() == TaskTlsRequirement::Opportunistic;
            is_full |= self.dispatch(ready) == DispatchOutcome::QueueFull && is_default;
        }
        // If the ready queue is full, the next page waits with the tasks that did not fit.
        if let Some(next) = next.filter(|_| !is_full) {
            self.scheduler.due_index.continue_from(queue, now, next);
        }
    }

    /// Leaves an undecodable row where it is, for repair, and logs it once. It is a dead letter.
    fn quarantine(&self, at: &Key, queue: &QueueName, error: &store::engine::ReadError) {
        if self.scheduler.damaged.record(UnreadablePart::Row(at.clone())) {
            tracing::error!(%error, domain = %queue.domain, account.id = %queue.account,
                "cannot decode a task; skipping it (see `postrider admin store check`)");
        }
    }

    /// Returns how many tasks of a queue may be loaded. `None` if the queue must wait; it is scheduled for later then.
    fn load_capacity(&self, queue: &QueueName, from: &Key, now: Timestamp) -> Option<usize> {
        let note = |at| self.scheduler.due_index.add(queue.clone(), at, from.clone());
        let route = self.queues.routes.cached_domain_route(&queue.domain, now);
        if let Some(at) = self.queues.routes.suspended_until(&queue.domain, route.as_deref()) {
            note(at);
            self.queues.routes.wake_if_resumed(queue, route.as_deref(), at);
            return None;
        }
        // The pool may be unknown until a task of the account is read; then load without a ready queue.
        let site = route.filter(|_| self.queues.pools.knows_plan_of(queue.account)).map(|route| {
            let pool = self.queues.pools.preview_for_account(queue.account, &route, now);
            self.queues.ready_queue(pool, &route, TaskTlsRequirement::Opportunistic)
        });
        let found = match &site {
            None => Ok(self.lookup_capacity(&queue.domain)),
            Some(site) => site.load_capacity(queue.class, now, self.scheduler.in_flight.free_capacity()),
        };
        match (found, site) {
            (Ok(0), None) => note(self.services.clock.after(RETRY_DELAY)),
            (Ok(0), Some(site)) => {
                // Schedule and park the queue first, then check again: capacity freed in between wakes only parked
                // queues.
                note(self.services.clock.after(READY_QUEUE_RETRY_DELAY));
                site.park(queue.clone());
                if let Ok(1..) = site.load_capacity(queue.class, now, self.scheduler.in_flight.free_capacity()) {
                    self.scheduler.due_index.make_due(queue, now);
                }
            }
            (Err(until), site) => {
                note(until);
                site.iter().for_each(|site| self.queues.note_delay(queue.clone(), site));
            }
            (Ok(capacity), _) => return Some(capacity.min(self.scheduler.in_flight.free_capacity()).max(1)),
        }
        None
    }
}
