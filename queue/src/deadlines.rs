//! Deadlines: mail that is worth nothing after a time (`expires_in`, BY) is ended at that time, whatever it waits for: its
//! next attempt, a host that is left alone, a warm-up, the operator. What is being tried then ends with its attempt.
//!
//! ```text
//! accepted ─► its deadline has passed ─► out of its line ─►[ failed, or a soft bounce; the event ]
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use mail::task::{LATE_MAX, Task};
use store::engine::{Key, ReadError, Value};

use crate::site::Ready;
use crate::worker::Worker;

/// Tasks read at once.
const SLICE: usize = 500;
/// Tasks ended at once: their commits share a sync.
const AT_ONCE: usize = 64;
/// How soon is looked again after what was being tried, and what the store could not say.
const AGAIN: Duration = Duration::from_secs(1);

impl Worker {
    /// Something with a deadline was accepted.
    pub(crate) fn note_deadline(&self, task: &Task) {
        if task.has_deadline {
            self.deadlines.note(task.partition, last_moment(task.expires_at));
        }
    }

    /// Ends what has passed its deadline until the worker stops.
    pub(crate) async fn keep_deadlines(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            let (leases, changed) = (self.leases.changed(), self.deadlines.changed());
            let (due, next) = self.deadlines.due(&self.leases.active(), self.clock.now());
            if due.is_empty() {
                tokio::select! {
                    () = self.clock.sleep_until(next) => {}
                    () = changed => {}
                    () = leases => {}
                    () = self.stop.cancelled() => {}
                }
            }
            for partition in due {
                self.deadlines.begin(partition);
                let next = self.end_past(partition).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, partition, "what has passed its deadline cannot be read at the moment");
                    Some(self.later(AGAIN))
                });
                next.into_iter().for_each(|next| self.deadlines.note(partition, next));
            }
        }
    }

    /// Ends what of a partition has passed its deadline. When to look again, as far as it is known.
    async fn end_past(self: &Arc<Self>, partition: u16) -> Result<Option<Timestamp>, ReadError> {
        let mut from: Option<Key> = None;
        let mut again = None;
        loop {
            let now = self.clock.now();
            let passed = now.checked_sub(LATE_MAX).unwrap_or(Timestamp::MIN);
            let past = store::deadline::past(&self.store, partition, from, passed, SLICE).await?;
            let mut ended = futures_util::stream::iter(past.tasks.into_iter().map(|one| self.end_one(one)))
                .buffer_unordered(AT_ONCE);
            while let Some(is_ended) = ended.next().await {
                if !is_ended {
                    again = Some(self.later(AGAIN));
                }
            }
            match past.more {
                Some(more) if !self.stop.is_cancelled() => from = Some(more),
                _ => return Ok(again.into_iter().chain(past.next.map(last_moment)).min()),
            }
        }
    }

    /// Ends a task. False: it is being tried, and ends with the attempt or goes on waiting, or somebody has changed it.
    async fn end_one(self: &Arc<Self>, (task, row): (Task, Value)) -> bool {
        let ready = Ready { task, row: Some(row), body: None };
        let Some(withdrawn) = self.withdraw(&ready.task) else { return false };
        let is_ended = self.end_lapsed(&ready).await;
        if is_ended {
            withdrawn.finish();
        }
        is_ended
    }
}

/// The last moment at which something with this deadline may still be tried, and one more.
fn last_moment(deadline: Timestamp) -> Timestamp {
    deadline.checked_add(LATE_MAX + Duration::from_millis(1)).unwrap_or(Timestamp::MAX)
}
