//! Outbox dispatcher: writes the rows that follow from committed events.
//!
//! ```text
//! event + outbox key ─► gather briefly ─►[ usage + email index + metrics + event log + deliveries − outbox keys ]
//! ```
//!
//! Each node dispatches the events of its own partitions in fenced commits, so every event is dispatched once. A
//! backlog is stored on disk and only causes delay.

mod event_subjects;
mod metric_increments;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::event::Event;
use model::id::AccountId;
use model::usage::{PlanUsage, UsagePeriod, usage_of_event};
use queue::intake::quota_tracker::QuotaTracker;
use queue::services::Services;
use store::access::Tenant;
use store::engine::{Batch, CommitError, Key, ReadError, StoreError};
use store::outbox::{OutboxEntry, OutboxPage};
use store::usage::UsageIncrements;
use tokio::time::Instant;

use self::event_subjects::EventSubjects;
use crate::automations::trigger_index::TriggerIndex;
use crate::webhooks::WebhookSender;
use crate::webhooks::new_deliveries::Subscribers;

/// Delay in which events are gathered, so that all events of an email delivered at once are dispatched in one commit.
const GATHER_DELAY: Duration = Duration::from_millis(100);
/// The same while webhook endpoints or stream subscribers are waiting.
const GATHER_DELAY_WITH_LISTENERS: Duration = Duration::from_millis(3);
/// Events dispatched per commit.
const BATCH_EVENTS_MAX: usize = 1_000;
/// Poll interval for events from other nodes, and delay after an error.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// While there is a backlog, the pause after a round is this many times the round's duration.
const IDLE_FACTOR: u32 = 3;
/// The same while webhook endpoints or stream subscribers are waiting.
const IDLE_FACTOR_WITH_LISTENERS: u32 = 1;
/// Commit tries when other nodes write the same rows.
const COMMIT_TRIES_MAX: usize = 20;
/// Time limit for dispatching the outbox before usage is reported, so that emails just sent are counted.
const USAGE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Position in the outbox by first partition of each range. Starting at the beginning would scan the deleted keys,
/// which stay until the store compacts them.
type OutboxCursors = BTreeMap<u16, Option<Key>>;

/// Dispatches the events of this node's partitions.
pub struct OutboxDispatcher {
    pub(crate) services: Services,
    pub(crate) webhooks: Arc<WebhookSender>,
    pub(crate) quota_tracker: QuotaTracker,
    pub(crate) trigger_index: Arc<TriggerIndex>,
    /// Serialises dispatching.
    pub(crate) lock: tokio::sync::Mutex<()>,
    /// Time, in milliseconds since 1970, before which all events of owned partitions are dispatched; 0 until it is
    /// known.
    pub(crate) dispatched_until_ms: AtomicI64,
}

impl OutboxDispatcher {
    /// Dispatches events until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut failing = false;
        while !self.services.stop.is_cancelled() {
            tokio::select! {
                () = self.services.outbox_wakeup.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if self.services.store.is_shared() => {}
                () = self.services.stop.cancelled() => return,
            }
            let listened = self.webhooks.has_listeners(self.services.clock.now());
            tokio::time::sleep(if listened { GATHER_DELAY_WITH_LISTENERS } else { GATHER_DELAY }).await;
            let outcome = self.dispatch_with_backoff().await;
            let failed_before = std::mem::replace(&mut failing, outcome.is_err());
            if let Err(error) = outcome {
                // Log a continuing failure once.
                if !failed_before {
                    store::warn_unless_away!(self.services.store, %error, "cannot dispatch events; retrying");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                self.services.outbox_wakeup.notify_one();
            }
        }
    }

    /// Dispatches the whole backlog. Pauses after each round for longer than it took, so that intake has priority.
    async fn dispatch_with_backoff(&self) -> Result<(), StoreError> {
        let mut cursors = OutboxCursors::default();
        loop {
            let (started, at) = (Instant::now(), self.services.clock.now());
            if !self.dispatch_round(&mut cursors).await? {
                self.dispatched_until_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
                return Ok(());
            }
            if self.services.stop.is_cancelled() {
                return Ok(());
            }
            let has_listeners = self.webhooks.has_listeners(self.services.clock.now());
            let idle_factor = if has_listeners { IDLE_FACTOR_WITH_LISTENERS } else { IDLE_FACTOR };
            tokio::time::sleep(started.elapsed() * idle_factor).await;
        }
    }

    /// Dispatches a batch of each range of owned partitions. Returns true if there may be more.
    async fn dispatch_round(&self, cursors: &mut OutboxCursors) -> Result<bool, StoreError> {
        let _dispatch = self.lock.lock().await;
        let (mut has_more, mut conflict) = (false, None);
        for partitions in self.services.leases.owned_ranges() {
            let after = cursors.entry(*partitions.start()).or_default();
            match self.dispatch_some(partitions, after).await {
                Ok(more) => has_more |= more,
                // A conflict in one range must not block the others.
                Err(error @ StoreError::Commit(CommitError::Conflict { .. })) => conflict = Some(error),
                Err(error) => return Err(error),
            }
        }
        conflict.map_or(Ok(has_more), Err)
    }

    /// Dispatches all events that are in the outboxes of owned partitions now, and some that arrive meanwhile.
    pub fn dispatch_outbox(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let at = self.services.clock.now();
            for partitions in self.services.leases.owned_ranges() {
                let mut after = None;
                loop {
                    let _dispatch = self.lock.lock().await;
                    if !self.dispatch_some(partitions.clone(), &mut after).await? || after.is_none() {
                        break;
                    }
                }
            }
            self.dispatched_until_ms.fetch_max(at.as_millisecond(), Ordering::Relaxed);
            Ok(())
        })
    }

    /// Dispatches the outbox and waits for at most `at_most`, so that a list shows what was just done. Returns `None`
    /// when everything was dispatched, otherwise the time up to which everything was.
    pub async fn dispatch_within(self: &Arc<Self>, at_most: Duration) -> Option<Timestamp> {
        let dispatcher = Arc::clone(self);
        // A separate task: dropping the future half-way would waste its work, so it runs on after the timeout.
        let dispatching = tokio::spawn(async move { dispatcher.dispatch_outbox().await });
        match tokio::time::timeout(at_most, dispatching).await {
            Ok(Ok(Ok(()))) => return None,
            Ok(Ok(Err(error))) => {
                store::warn_unless_away!(self.services.store, %error, "cannot dispatch the outbox: lists may be stale");
            }
            Ok(Err(_)) | Err(_) => {}
        }
        Some(self.dispatched_until())
    }

    /// Emails that an account has used of its plan today and this month, exact to one email.
    pub async fn plan_usage(self: &Arc<Self>, tenant: &Tenant) -> Result<PlanUsage, ReadError> {
        // The quota tracker counts events that are not dispatched yet only for plans with caps.
        self.dispatch_within(USAGE_WAIT_MAX).await;
        let Services { store, clock, .. } = &self.services;
        self.quota_tracker.usage_of(store, tenant.account().id, clock.now()).await
    }

    /// All events of owned partitions before this time are dispatched. 1970 until that is known.
    #[must_use]
    pub fn dispatched_until(&self) -> Timestamp {
        Timestamp::from_millisecond(self.dispatched_until_ms.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Marks the plan usage as incomplete until [`Self::drain_backlog`] has run, and starts that.
    pub(crate) fn start_backlog(self: &Arc<Self>) {
        self.quota_tracker.mark_behind();
        self.services.spawn(Arc::clone(self).drain_backlog());
    }

    /// Dispatches the events of the previous process. Accounts with a cap wait for this ([`queue::intake::quota_tracker`]).
    async fn drain_backlog(self: Arc<Self>) {
        while let Err(error) = self.dispatch_outbox().await {
            store::warn_unless_away!(self.services.store, %error, "cannot dispatch the event backlog; retrying");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.quota_tracker.mark_caught_up();
    }

    /// Dispatches a batch of events after a position and moves it. Returns true if there may be more: behind the
    /// position or, at the end, from the beginning. Conflicts in all tries are an error, so that it is retried.
    async fn dispatch_some(
        &self,
        partitions: RangeInclusive<u16>,
        after: &mut Option<Key>,
    ) -> Result<bool, StoreError> {
        let mut conflict = None;
        for _ in 0..COMMIT_TRIES_MAX {
            let cached_event = |id| self.services.recent_events.take(id);
            let (partitions, limit) = (partitions.clone(), BATCH_EVENTS_MAX);
            let OutboxPage { entries, has_more } =
                store::outbox::list(&self.services.store, partitions, after.as_ref(), limit, &cached_event).await?;
            if entries.is_empty() {
                return Ok(after.take().is_some());
            }
            let (subjects, count) =
                EventSubjects::load(&self.services.store, &self.services.recent_events, &entries).await?;
            let loaded = entries.get(..count).unwrap_or_default();
            let events = loaded.iter().filter_map(|entry| entry.event.as_ref());
            let audience = self.webhooks.load_subscribers(&event_accounts(loaded), events).await?;
            let count = audience.events_that_fit(entries.iter().take(count).map(|entry| entry.event.as_ref()));
            let batch_entries = entries.get(..count).unwrap_or_default();
            match self.commit_dispatched(batch_entries, &subjects, &audience).await {
                Ok(true) => {
                    let is_all = after.is_none() && count == entries.len() && !has_more;
                    *after = batch_entries.last().filter(|_| !is_all).map(|last| last.key().clone());
                    return Ok(!is_all);
                }
                Ok(false) => return Ok(false),
                // Another node wrote counts of the same account or took over the partition, or an email was purged
                // concurrently.
                Err(error @ StoreError::Commit(CommitError::Conflict { .. })) => conflict = Some(error),
                Err(error) => return Err(error),
            }
        }
        // The events stay in the outbox: without an error, they would wait for the next event.
        conflict.map_or(Ok(false), Err)
    }

    /// Returns false when another node took over one of the partitions.
    async fn commit_dispatched(
        &self,
        entries: &[OutboxEntry],
        subjects: &EventSubjects,
        audience: &Subscribers,
    ) -> Result<bool, StoreError> {
        let mut batch = Batch::progress();
        let events = || entries.iter().filter_map(|entry| entry.event.as_ref());
        let email_of = |event| subjects.email_of(event).map(|stored| &*stored.email);
        let events_with_emails = events().map(|event| (event, email_of(event)));
        let Some(new_deliveries) = self.webhooks.create_deliveries(&mut batch, audience, events_with_emails) else {
            return Ok(false);
        };
        let partitions = entries.iter().map(|entry| entry.partition).chain(new_deliveries.partitions.iter().copied());
        if !self.services.leases.fence_partitions(&mut batch, partitions) {
            return Ok(false);
        }
        store::event_log::append(&self.services.store, &mut batch, self.services.clock.now(), events()).await?;
        subjects.update_email_index(&self.services.store, &mut batch).await?;
        store::metric::add(&self.services.store, &mut batch, &metric_increments::metric_increments(events(), subjects))
            .await?;
        let triggered = self
            .trigger_index
            .enqueue_trigger_jobs(&self.services.store, &mut batch, entries, self.services.clock.now())
            .await?;
        let additions = usage_increments(events());
        let _quota_rows = self.quota_tracker.lock_rows().await;
        store::usage::add(&self.services.store, &mut batch, &additions).await?;
        entries.iter().for_each(|entry| entry.remove(&mut batch));
        self.services.store.commit(batch).await?;
        self.quota_tracker.mark_dispatched(events());
        self.webhooks.deliveries_committed(new_deliveries);
        self.webhooks.wake_subscribers(events().map(|event| event.account));
        self.trigger_index.wake_at(&triggered, self.services.clock.now());
        Ok(true)
    }
}

/// Returns the accounts of these events.
fn event_accounts(entries: &[OutboxEntry]) -> Vec<AccountId> {
    let accounts = entries.iter().filter_map(|entry| entry.event.as_ref()).map(|event| event.account);
    accounts.collect::<BTreeSet<_>>().into_iter().collect()
}

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

#[cfg(test)]
mod tests {
    use model::event::EventKind;
    use model::id::{EventId, WebhookId};
    use queue::subsystems::idle::{self, IdleQueue};
    use serde_json::json;
    use store::engine::Store;

    use super::*;
    use crate::subsystems::EventSubsystems;
    use crate::subsystems::idle::webhooks;

    /// Otherwise the event would stay in the outbox until the next one wakes the dispatcher.
    #[tokio::test]
    async fn conflicts_in_all_tries_are_an_error() {
        const PARTITION: u16 = 7;
        let queue = IdleQueue::new(Store::memory(), idle::settings());
        queue.cluster.poll().await.unwrap();
        let events = EventSubsystems::new(&queue.services, webhooks());
        let now = queue.services.clock.now();
        let (account, webhook) = (AccountId::new(now, 1), WebhookId::new(now, 1));
        let event = Event::new(EventId::new(now, 1), account, webhook, EventKind::WebhookDisabled, now, json!({}));
        let mut batch = Batch::progress();
        store::event::record(&mut batch, &event, PARTITION);
        let view = store::lease::read_view(&queue.services.store).await.unwrap();
        store::lease::acquire(&mut batch, PARTITION, &view.partitions[usize::from(PARTITION)], "another");
        queue.services.store.commit(batch).await.unwrap();
        let outcome = events.outbox.dispatch_outbox().await;
        assert!(matches!(outcome, Err(StoreError::Commit(CommitError::Conflict { .. }))), "{outcome:?}");
    }
}
