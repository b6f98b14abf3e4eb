//! Committing a settlement, and putting memory in order after it.

use std::sync::Arc;

use jiff::Timestamp;
use mail::id::EventId;
use mail::outcome::Outcome;
use mail::task::Task;
use store::engine::{Batch, CommitError};

use crate::notification;
use crate::settle::{self, Attempted, Next};
use crate::site::Ready;
use crate::worker::Worker;

/// How soon a store that took no booking is tried again.
const BOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

impl Worker {
    /// Settles an attempt: decides what comes next, writes it in one commit, gives back the task's place.
    pub(crate) async fn settle(self: &Arc<Self>, ready: &Ready, attempted: &Attempted) {
        let task = &ready.task;
        let now = self.clock.now();
        let next = settle::decide(task, attempted, &self.manners().schedule, now, self.entropy.u64());
        let mut batch = settle::record(
            (task, ready.row.as_ref()),
            attempted,
            &next,
            now,
            EventId::new(now, self.entropy.u128()),
        );
        let mut ours = self.leases.fence(&mut batch, std::slice::from_ref(task));
        let notification = match notification::of(self, task, attempted, &next).await {
            Ok(notification) => notification,
            Err(error) => {
                tracing::error!(%error, email.id = %task.id.email, "the sender cannot be notified");
                None
            }
        };
        let reservation = notification.and_then(|staged| {
            // A report that finds no partition of its own goes with the task that it is about.
            let placed = staged.place(|domain| self.leases.choose(domain).or(Some(task.partition)))?;
            ours &= self.leases.fence_partitions(&mut batch, placed.partitions());
            staged.write(&mut batch, &placed, EventId::new(now, self.entropy.u128()));
            Some((self.reserve(placed.tasks), staged.chunks))
        });
        self.figures.attempted(&next);
        if !ours {
            // Another node has the partition by now, and the books: it tries the task again.
            tracing::warn!(email.id = %task.id.email, "an attempt was not booked: its partition went to another node");
            self.let_go(task);
            return self.settled.notify_waiters();
        }
        match self.commit_settlement(batch, task).await {
            Ok(()) => {
                self.flights.land(task.id);
                if let Next::Retry { at } = &next {
                    self.note(&settle::moved(task, attempted, *at));
                }
                if let Some((reservation, chunks)) = reservation {
                    reservation.committed(&chunks);
                }
            }
            // Whatever the rows are now, disk knows.
            Err(()) => {
                self.let_go(task);
                if let Some((reservation, _)) = reservation {
                    reservation.in_doubt();
                }
            }
        }
        self.untold.notify_one();
        self.settled.notify_waiters();
        log(task, attempted, &next);
    }

    async fn commit_settlement(&self, batch: Batch, task: &Task) -> Result<(), ()> {
        loop {
            match self.store.commit(batch.clone()).await {
                Ok(()) => return Ok(()),
                // What was done must be booked before anything else is done: when there is room again (the
                // reserve is used up too), or when the database is back. One that cannot say whether it is
                // booked is asked again: a second booking would meet its own first as a conflict.
                Err(error @ (CommitError::Full | CommitError::Away(_) | CommitError::Unknown(_)))
                    if !self.cut.is_cancelled() =>
                {
                    tracing::warn!(%error, email.id = %task.id.email, "an attempt cannot be booked yet");
                    tokio::select! {
                        () = tokio::time::sleep(BOOK_AGAIN) => {}
                        () = self.cut.cancelled() => {}
                    }
                }
                Err(CommitError::Conflict { .. }) => {
                    // The operator took the task away meanwhile, or another node owns the partition
                    // now: the books are theirs.
                    tracing::warn!(email.id = %task.id.email, "an attempt was not booked: its task has changed");
                    return Err(());
                }
                Err(error) => {
                    // The attempt stands nowhere: after a restart the message is tried again.
                    tracing::error!(%error, email.id = %task.id.email, "an attempt could not be booked");
                    self.stop.cancel();
                    return Err(());
                }
            }
        }
    }
}

fn log(task: &Task, attempted: &Attempted, next: &Next) {
    let at: Option<Timestamp> = match next {
        Next::Retry { at } => Some(*at),
        _ => None,
    };
    match &attempted.outcome {
        Outcome::Delivered(_) => {
            tracing::debug!(email.id = %task.id.email, recipient = task.id.recipient, "delivered")
        }
        _ => tracing::info!(
            email.id = %task.id.email,
            recipient = task.id.recipient,
            host = attempted.mx_host.as_deref(),
            code = attempted.outcome.reply().map(|r| r.code),
            next_attempt_at = at.map(tracing::field::display),
            "not delivered"
        ),
    }
}
