//! Counting: what follows from product events and visits, after the commit that took them in.
//!
//! ```text
//! uncounted ─► slice (whose? what? as what does it count?) ─►[ counts + people + conversions + exports − uncounted ]
//! ```
//!
//! Each node counts what lies in its own partitions; the commit is fenced like a settlement, so that everything
//! is counted once, and a conversion is recorded once whatever nodes its event came to. What is behind does no
//! harm but lateness: it lies on disk.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use store::engine::{Batch, CommitError, ReadError};
use store::uncounted::PendingAnalyticsEvent;
use thiserror::Error;
use tokio::time::Instant;

use super::slice::AnalyticsBatch;
use crate::worker::Worker;

/// How long is gathered before it is counted.
const GATHER_DELAY: Duration = Duration::from_millis(100);
/// What is counted in one commit.
const BATCH_MAX: usize = 500;
/// How often is looked for what came into our partitions from elsewhere, or could not be counted.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// For how many times as long as a round took is rested, while there is more.
const IDLE_FACTOR: u32 = 3;
/// Commits tried at once, when other nodes write the same rows.
const COMMIT_TRIES_MAX: usize = 20;

/// Why nothing could be counted or exported; it is done later.
#[derive(Debug, Error)]
pub enum AnalyticsError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// Keeps counting until the worker stops.
    pub(crate) async fn run_aggregation(self: Arc<Self>) {
        let mut failing = false;
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.analytics_wakeup.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if self.store.is_shared() => {}
                () = self.stop.cancelled() => return,
            }
            tokio::time::sleep(GATHER_DELAY).await;
            let counted = self.aggregate_with_backoff().await;
            let failed_before = std::mem::replace(&mut failing, counted.is_err());
            if let Err(error) = counted {
                // Said once, however long it lasts.
                if !failed_before {
                    store::warn_unless_away!(self.store, %error, "product events cannot be counted at the moment");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                self.analytics_wakeup.notify_one();
            }
        }
    }

    /// Counts all there is, and rests after each round for longer than it took: who hands in goes first.
    async fn aggregate_with_backoff(&self) -> Result<(), AnalyticsError> {
        loop {
            let begun = Instant::now();
            if !self.aggregate_round().await? || self.stop.is_cancelled() {
                return Ok(());
            }
            tokio::time::sleep(begun.elapsed() * IDLE_FACTOR).await;
        }
    }

    /// Counts all there is in our partitions.
    ///
    /// # Errors
    /// [`CountError`].
    pub(crate) async fn aggregate_all(&self) -> Result<(), AnalyticsError> {
        while self.aggregate_round().await? {}
        Ok(())
    }

    /// Counts some of each run of our partitions. Says whether there may be more.
    async fn aggregate_round(&self) -> Result<bool, AnalyticsError> {
        let _counting = self.aggregation_lock.lock().await;
        let mut more = false;
        for partitions in self.leases.owned_ranges() {
            more |= self.aggregate_some(partitions).await?;
        }
        Ok(more)
    }

    /// Says whether there may be more.
    async fn aggregate_some(&self, partitions: RangeInclusive<u16>) -> Result<bool, AnalyticsError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let uncounted = store::uncounted::list(&self.store, partitions.clone(), BATCH_MAX).await?;
            if uncounted.is_empty() {
                return Ok(false);
            }
            match self.commit_aggregated(&uncounted).await {
                Ok(counted) => return Ok(counted && uncounted.len() == BATCH_MAX),
                // Another node counted for the same account, or has the partition by now.
                Err(AnalyticsError::Commit(CommitError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// False: some of it is another node's by now.
    async fn commit_aggregated(&self, uncounted: &[PendingAnalyticsEvent]) -> Result<bool, AnalyticsError> {
        let mut batch = Batch::progress();
        if !self.leases.fence_partitions(&mut batch, uncounted.iter().map(|one| one.partition)) {
            return Ok(false);
        }
        let slice = AnalyticsBatch::load(&self.store, uncounted).await?;
        let exported = self.exporter().is_some().then(|| self.clock.now());
        let conversions = slice.write(&self.store, &self.entropy, exported, &mut batch).await?;
        uncounted.iter().for_each(|one| one.remove(&mut batch));
        self.store.commit(batch).await?;
        if conversions > 0 {
            metrics::counter!("postrider_conversions_total").increment(conversions);
            self.export_wakeup.notify_one();
        }
        Ok(true)
    }
}
