//! Refilling: due tasks come from disk back into memory, a slice at a time, queue by queue, while there
//! is room for them.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use mail::task::{QueueName, TlsDemand};
use store::engine::Key;

use crate::dispatch::{LOOK_AGAIN, LOOK_AGAIN_AT_SITE, Went};
use crate::site::{Ready, Site};
use crate::worker::Worker;

/// Tasks read from a queue at once: enough to keep a site busy while the next are read.
const SLICE_TASKS: usize = 256;
/// Rows that are no tasks, told one by one; beyond it, something is wrong with the store as a whole.
const ASIDE_MAX: usize = 1_000;

impl Worker {
    /// Keeps reading due tasks until the worker stops.
    pub(crate) async fn refill(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            if self.is_paused() {
                self.unpaused().await;
                continue;
            }
            if self.flights.room() == 0 {
                // Memory is full: a settlement makes room.
                let freed = self.settled.notified();
                tokio::select! {
                    () = freed => {}
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                    () = self.stop.cancelled() => {}
                }
                continue;
            }
            if let Some((queue, from)) = self.scheduled.pop_due(self.clock.now()) {
                self.refill_queue(queue, from).await;
                // A queue without room is done with at once: others run in between all the same.
                tokio::task::yield_now().await;
                continue;
            }
            let next = self.scheduled.next_due().unwrap_or(Timestamp::MAX);
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.clock.sleep_until(next) => {}
                () = self.scheduled.changed() => {}
            }
        }
    }

    async fn refill_queue(self: &Arc<Self>, queue: QueueName, from: Key) {
        if !self.leases.is_active(queue.partition) {
            // Whoever has the partition knows of it; should it come to us, its queues are found again.
            return;
        }
        if self.holds.holds(queue.account) {
            return self.park_queue(queue, from);
        }
        let now = self.clock.now();
        let Some(room) = self.room_for(&queue, &from, now) else { return };
        let slice = SLICE_TASKS.min(room);
        self.flights.scan_begins();
        let listed = store::task::list(&self.store, &queue, from.clone(), slice).await;
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.flights.scan_ends();
                store::warn_unless_away!(self.store, %error, domain = %queue.domain, "reading due tasks failed");
                return self.scheduled.note(queue, self.later(LOOK_AGAIN), from);
            }
        };
        listed.damaged.iter().for_each(|(at, error)| self.set_aside(at, &queue, error));
        let mut next = listed.next;
        let mut ready = Vec::with_capacity(listed.tasks.len());
        for (task, row) in listed.tasks {
            if task.due > now {
                self.scheduled.note(queue.clone(), task.due, store::task::key_of(&task));
                next = None;
                break;
            }
            if !task.held && self.flights.board(task.id) {
                ready.push(Ready { task, row: Some(row), body: None });
            }
        }
        self.flights.scan_ends();
        let mut is_full = false;
        for ready in ready {
            // Others of the queue may go elsewhere.
            let is_usual = ready.task.way.is_none() && ready.task.tls_demand() == TlsDemand::Usual;
            is_full |= self.dispatch(ready) == Went::NoRoom && is_usual;
        }
        // Where there is no room, what lies behind waits with what found none.
        if let Some(next) = next.filter(|_| !is_full) {
            self.scheduled.read_on(queue, now, next);
        }
    }

    /// A row that is no task stays where it lies, for whoever can make sense of it, and is told once.
    fn set_aside(&self, at: &Key, queue: &QueueName, error: &store::engine::ReadError) {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        if aside.len() < ASIDE_MAX && aside.insert(at.clone()) {
            metrics::counter!("postrider_tasks_damaged_total").increment(1);
            tracing::error!(%error, domain = %queue.domain, account.id = %queue.account,
                "a task cannot be read and is passed over; `postrider admin store check` names it");
        }
    }

    /// How many tasks of a queue may come into memory; none when it must wait, and is noted for later.
    fn room_for(&self, queue: &QueueName, from: &Key, now: Timestamp) -> Option<usize> {
        let note = |again| self.scheduled.note(queue.clone(), again, from.clone());
        let route = self.route_to(&queue.domain, now);
        if let Some(again) = self.left_alone_until(&queue.domain, route.as_deref()) {
            note(again);
            self.look_if_resumed(queue, route.as_deref(), again);
            return None;
        }
        // Whose site it would be may not be known yet: then it is read.
        let site = route.filter(|_| self.pools.knows(queue.account)).map(|route| {
            let pool = self.pools.look(queue.account, &route, now);
            self.site(pool, &route, TlsDemand::Usual)
        });
        let found = match &site {
            None => Ok(self.room_to_look_up(&queue.domain)),
            Some(site) => site.admits(queue.class, now, self.flights.room()),
        };
        match (found, site) {
            (Ok(0), None) => note(self.later(LOOK_AGAIN)),
            (Ok(0), Some(site)) => {
                // Noted first, and looked at once more: who makes room hastens what is noted and parked.
                note(self.later(LOOK_AGAIN_AT_SITE));
                site.park(queue.clone());
                if let Ok(1..) = site.admits(queue.class, now, self.flights.room()) {
                    self.scheduled.hasten(queue, now);
                }
            }
            (Err(until), site) => {
                note(until);
                site.iter().for_each(|site| self.note_delay(queue.clone(), site));
            }
            (Ok(room), _) => return Some(room.min(self.flights.room()).max(1)),
        }
        None
    }

    /// A site has room again: some of its parked queues are looked at now.
    pub(crate) fn unpark(&self, site: &Site) {
        for queue in site.unpark() {
            self.scheduled.hasten(&queue, self.clock.now());
        }
    }
}
