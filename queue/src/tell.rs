//! Telling: what follows from events, after the commit that made them true.
//!
//! ```text
//! event + outbox key ─► gather for a moment ─►[ usage + catalog + metrics + stream + deliveries - outbox keys ]
//! ```
//!
//! Each node tells the events in its own partitions; the commit is fenced like a settlement, so that every
//! event is told once. What is behind does no harm but lateness: it lies on disk.

pub(crate) mod fresh;
mod metric;
mod subjects;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::event::Event;
use mail::id::AccountId;
use mail::usage::{UsagePeriod, usage_of_event};
use store::engine::{Batch, CommitError, Key, ReadError};
use store::outbox::OutboxEntry;
use store::usage::UsageIncrements;
use thiserror::Error;
use tokio::time::Instant;

use self::subjects::EventSubjects;
use crate::webhooks::make::Subscribers;
use crate::worker::Worker;

/// How long events are gathered before they are told: an email that is delivered at once is told of in one
/// commit, from beginning to end.
const GATHER_DELAY: Duration = Duration::from_millis(100);
/// The same where somebody waits for them: an endpoint, or who follows the stream.
const GATHER_DELAY_WITH_LISTENERS: Duration = Duration::from_millis(3);
/// Events told in one commit.
const BATCH_EVENTS_MAX: usize = 1_000;
/// How often is looked for events that came into our partitions from elsewhere, or could not be told.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// For how many times as long as a round took is rested, while there is more to tell.
const IDLE_FACTOR: u32 = 3;
/// The same where somebody waits.
const IDLE_FACTOR_WITH_LISTENERS: u32 = 1;
/// Commits tried at once, when other nodes write the same rows.
const COMMIT_TRIES_MAX: usize = 20;

/// How far the telling of each run of partitions is, by its first: what is taken away lies in the way of who begins
/// there again, until the store has forgotten it.
type OutboxCursors = BTreeMap<u16, Option<Key>>;

/// Why events could not be told; they are told later.
#[derive(Debug, Error)]
pub enum OutboxError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// Keeps telling until the worker stops.
    pub(crate) async fn run_outbox_dispatcher(self: Arc<Self>) {
        let mut failing = false;
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.outbox_wakeup.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if self.store.is_shared() => {}
                () = self.stop.cancelled() => return,
            }
            let listened = self.webhooks.has_listeners(self.clock.now());
            tokio::time::sleep(if listened { GATHER_DELAY_WITH_LISTENERS } else { GATHER_DELAY }).await;
            let told = self.dispatch_with_backoff().await;
            let failed_before = std::mem::replace(&mut failing, told.is_err());
            if let Err(error) = told {
                // Said once, however long it lasts.
                if !failed_before {
                    store::warn_unless_away!(self.store, %error, "events cannot be told at the moment");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                self.outbox_wakeup.notify_one();
            }
        }
    }

    /// Tells all events, and rests after each round for longer than it took: who hands in mail goes first.
    async fn dispatch_with_backoff(&self) -> Result<(), OutboxError> {
        let mut places = OutboxCursors::default();
        loop {
            let (begun, at) = (Instant::now(), self.clock.now());
            if !self.dispatch_round(&mut places).await? {
                self.dispatched_until_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
                return Ok(());
            }
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let listened = self.webhooks.has_listeners(self.clock.now());
            let rest = if listened { IDLE_FACTOR_WITH_LISTENERS } else { IDLE_FACTOR };
            tokio::time::sleep(begun.elapsed() * rest).await;
        }
    }

    /// Tells some events of each run of our partitions. Says whether there may be more.
    async fn dispatch_round(&self, places: &mut OutboxCursors) -> Result<bool, OutboxError> {
        let _telling = self.dispatch_lock.lock().await;
        let mut more = false;
        for partitions in self.leases.owned_ranges() {
            let after = places.entry(*partitions.start()).or_default();
            more |= self.dispatch_some(partitions, after).await?;
        }
        Ok(more)
    }

    /// Tells all events that are in the outboxes of our partitions when this is called; of those that come meanwhile, some.
    ///
    /// # Errors
    /// [`TellError`].
    pub fn dispatch_outbox(&self) -> BoxFuture<'_, Result<(), OutboxError>> {
        Box::pin(async move {
            let at = self.clock.now();
            for partitions in self.leases.owned_ranges() {
                let mut after = None;
                loop {
                    let _telling = self.dispatch_lock.lock().await;
                    if !self.dispatch_some(partitions.clone(), &mut after).await? || after.is_none() {
                        break;
                    }
                }
            }
            self.dispatched_until_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
            Ok(())
        })
    }

    /// All events in our partitions that are older than this were told; 1970 before it is known.
    pub(crate) fn dispatched_until(&self) -> Timestamp {
        Timestamp::from_millisecond(self.dispatched_until_ms.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Tells what the time before this one has left behind; until that is done, whoever has a cap waits
    /// ([`crate::meter`]).
    pub(crate) async fn drain_backlog(self: Arc<Self>) {
        while let Err(error) = self.dispatch_outbox().await {
            store::warn_unless_away!(self.store, %error, "events of the time before cannot be told yet");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.quota_tracker.mark_caught_up();
    }

    /// Tells some of the events after a place, and moves it. Says whether there may be more: after it, or, at the end,
    /// from the beginning on.
    async fn dispatch_some(
        &self,
        partitions: RangeInclusive<u16>,
        after: &mut Option<Key>,
    ) -> Result<bool, OutboxError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let known = |id| self.recent_events.take(id);
            let place = (after.as_ref(), BATCH_EVENTS_MAX);
            let untold = store::outbox::list(&self.store, partitions.clone(), place, &known).await?;
            if untold.is_empty() {
                return Ok(after.take().is_some());
            }
            let (subjects, count) = EventSubjects::load((&self.store, &self.recent_events), &untold).await?;
            let told = untold.get(..count).unwrap_or_default();
            let events = told.iter().filter_map(|one| one.event.as_ref());
            let audience = self.load_subscribers(&event_accounts(told), events).await?;
            let count = audience.events_that_fit(untold.iter().take(count).map(|one| one.event.as_ref()));
            let some = untold.get(..count).unwrap_or_default();
            match self.commit_dispatched(some, &subjects, &audience).await {
                Ok(true) => {
                    let is_all = after.is_none() && count == untold.len() && count < BATCH_EVENTS_MAX;
                    *after = some.last().filter(|_| !is_all).map(|last| last.key().clone());
                    return Ok(!is_all);
                }
                Ok(false) => return Ok(false),
                // Another node counted for the same account, or has the partition by now; or an email was
                // forgotten meanwhile.
                Err(OutboxError::Commit(CommitError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// False: some of them are another node's by now.
    async fn commit_dispatched(
        &self,
        untold: &[OutboxEntry],
        subjects: &EventSubjects,
        audience: &Subscribers,
    ) -> Result<bool, OutboxError> {
        let mut batch = Batch::progress();
        let events = || untold.iter().filter_map(|one| one.event.as_ref());
        let email_of = |event| subjects.email_of(event).map(|about| &*about.email);
        let about = events().map(|event| (event, email_of(event)));
        let Some(made) = self.create_deliveries(&mut batch, audience, about) else { return Ok(false) };
        let partitions = untold.iter().map(|one| one.partition).chain(made.partitions.iter().copied());
        if !self.leases.fence_partitions(&mut batch, partitions) {
            return Ok(false);
        }
        store::stream::append(&self.store, &mut batch, self.clock.now(), events()).await?;
        subjects.update_email_index(&self.store, &mut batch).await?;
        store::metric::add(&self.store, &mut batch, &metric::metric_increments(events(), subjects)).await?;
        let heard = self.trigger_index.enqueue_trigger_jobs(&self.store, &mut batch, untold, self.clock.now()).await?;
        let additions = usage_increments(events());
        let _books = self.quota_tracker.lock_rows().await;
        store::usage::add(&self.store, &mut batch, &additions).await?;
        untold.iter().for_each(|one| one.remove(&mut batch));
        self.store.commit(batch).await?;
        self.quota_tracker.mark_dispatched(events());
        self.deliveries_committed(made);
        self.wake_subscribers(events().map(|event| event.account));
        self.trigger_index.wake_at(&heard, self.clock.now());
        Ok(true)
    }
}

/// Whose events these are, each account once.
fn event_accounts(untold: &[OutboxEntry]) -> Vec<AccountId> {
    let accounts = untold.iter().filter_map(|one| one.event.as_ref()).map(|event| event.account);
    accounts.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What events add to the usage.
fn usage_increments<'a>(events: impl Iterator<Item = &'a Event>) -> UsageIncrements {
    let mut additions = UsageIncrements::new();
    for event in events {
        let Some((at, count)) = usage_of_event(event) else { continue };
        for period in [UsagePeriod::day(at), UsagePeriod::month(at)] {
            *additions.entry((event.account, period)).or_default() += count;
        }
    }
    additions
}
