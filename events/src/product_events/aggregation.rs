//! Aggregation of product events and visits, after the commit that ingested them.
//!
//! ```text
//! pending ─► AnalyticsBatch (account, person, counting status) ─►[ counts + people + conversions + exports − pending ]
//! ```
//!
//! Each node aggregates its own partitions in fenced commits, so every event is counted once and a conversion is
//! recorded once, whichever nodes receive its events. A backlog is stored on disk and only delays the counts.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use queue::services::Services;
use store::engine::{Batch, CommitError, StoreError};
use store::pending_analytics::PendingAnalyticsEvent;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::analytics_batch::AnalyticsBatch;
use super::conversion_export::ConversionExporter;

/// Delay in which events are gathered for one commit.
const GATHER_DELAY: Duration = Duration::from_millis(100);
/// Events aggregated in one commit.
const BATCH_MAX: usize = 500;
/// Poll interval for events from other nodes, and delay after an error.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// While there is a backlog, the pause after a round is this many times the round's duration.
const IDLE_FACTOR: u32 = 3;
/// Commit tries when other nodes write the same rows.
const COMMIT_TRIES_MAX: usize = 20;

/// Aggregates product events and visits into the rows that accounts share.
pub struct AnalyticsAggregator {
    services: Services,
    exporter: Arc<ConversionExporter>,
    /// Serialises aggregation.
    lock: tokio::sync::Mutex<()>,
    wakeup: Notify,
}

impl AnalyticsAggregator {
    pub(crate) fn new(services: Services, exporter: Arc<ConversionExporter>) -> Self {
        Self { services, exporter, lock: tokio::sync::Mutex::default(), wakeup: Notify::new() }
    }

    /// Wakes the aggregation: an event or a visit was recorded.
    pub(crate) fn wake(&self) {
        self.wakeup.notify_one();
    }

    /// Aggregates pending events until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut failing = false;
        while !self.services.stop.is_cancelled() {
            tokio::select! {
                () = self.wakeup.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if self.services.store.is_shared() => {}
                () = self.services.stop.cancelled() => return,
            }
            tokio::time::sleep(GATHER_DELAY).await;
            let counted = self.aggregate_with_backoff().await;
            let failed_before = std::mem::replace(&mut failing, counted.is_err());
            if let Err(error) = counted {
                // Log a continuing failure once.
                if !failed_before {
                    store::warn_unless_away!(self.services.store, %error, "cannot aggregate product events; retrying");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                self.wake();
            }
        }
    }

    /// Aggregates the whole backlog. Pauses after each round for longer than it took, so that intake has priority.
    async fn aggregate_with_backoff(&self) -> Result<(), StoreError> {
        loop {
            let started = Instant::now();
            if !self.aggregate_round().await? || self.services.stop.is_cancelled() {
                return Ok(());
            }
            tokio::time::sleep(started.elapsed() * IDLE_FACTOR).await;
        }
    }

    /// Aggregates all pending events of this node's partitions.
    pub async fn aggregate_all(&self) -> Result<(), StoreError> {
        while self.aggregate_round().await? {}
        Ok(())
    }

    /// Aggregates one batch of each range of owned partitions. Returns true if there may be more.
    async fn aggregate_round(&self) -> Result<bool, StoreError> {
        let _counting = self.lock.lock().await;
        let mut has_more = false;
        for partitions in self.services.leases.owned_ranges() {
            has_more |= self.aggregate_some(partitions).await?;
        }
        Ok(has_more)
    }

    /// Returns true if there may be more.
    async fn aggregate_some(&self, partitions: RangeInclusive<u16>) -> Result<bool, StoreError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let uncounted = store::pending_analytics::list(&self.services.store, partitions.clone(), BATCH_MAX).await?;
            if uncounted.is_empty() {
                return Ok(false);
            }
            match self.commit_aggregated(&uncounted).await {
                Ok(counted) => return Ok(counted && uncounted.len() == BATCH_MAX),
                // Another node wrote counts of the same account, or took over the partition.
                Err(StoreError::Commit(CommitError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Returns false when another node took over one of the partitions.
    async fn commit_aggregated(&self, uncounted: &[PendingAnalyticsEvent]) -> Result<bool, StoreError> {
        let mut batch = Batch::progress();
        if !self.services.leases.fence_partitions(&mut batch, uncounted.iter().map(|row| row.partition)) {
            return Ok(false);
        }
        let slice = AnalyticsBatch::load(&self.services.store, uncounted).await?;
        let exported = self.exporter.is_enabled().then(|| self.services.clock.now());
        let conversions = slice.write(&self.services.store, &self.services.entropy, exported, &mut batch).await?;
        uncounted.iter().for_each(|row| row.remove(&mut batch));
        self.services.store.commit(batch).await?;
        if conversions > 0 {
            metrics::counter!("postrider_conversions_total").increment(conversions);
            self.exporter.wake();
        }
        Ok(true)
    }
}
