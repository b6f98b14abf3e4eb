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
use store::uncounted::Uncounted;
use thiserror::Error;
use tokio::time::Instant;

use super::slice::Slice;
use crate::worker::Worker;

/// How long is gathered before it is counted.
const GATHER: Duration = Duration::from_millis(100);
/// What is counted in one commit.
const AT_ONCE_MAX: usize = 500;
/// How often is looked for what came into our partitions from elsewhere, or could not be counted.
const LOOK: Duration = Duration::from_secs(1);
/// For how many times as long as a round took is rested, while there is more.
const REST: u32 = 3;
/// Commits tried at once, when other nodes write the same rows.
const TRIES_MAX: usize = 20;

/// Why nothing could be counted or exported; it is done later.
#[derive(Debug, Error)]
pub enum CountError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// Keeps counting until the worker stops.
    pub(crate) async fn keep_counting(self: Arc<Self>) {
        let mut failing = false;
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.uncounted.notified() => {}
                () = tokio::time::sleep(LOOK), if self.store.is_shared() => {}
                () = self.stop.cancelled() => return,
            }
            tokio::time::sleep(GATHER).await;
            let counted = self.count_at_leisure().await;
            let failed_before = std::mem::replace(&mut failing, counted.is_err());
            if let Err(error) = counted {
                // Said once, however long it lasts.
                if !failed_before {
                    store::warn_unless_away!(self.store, %error, "product events cannot be counted at the moment");
                }
                tokio::time::sleep(LOOK).await;
                self.uncounted.notify_one();
            }
        }
    }

    /// Counts all there is, and rests after each round for longer than it took: who hands in goes first.
    async fn count_at_leisure(&self) -> Result<(), CountError> {
        loop {
            let begun = Instant::now();
            if !self.count_round().await? || self.stop.is_cancelled() {
                return Ok(());
            }
            tokio::time::sleep(begun.elapsed() * REST).await;
        }
    }

    /// Counts all there is in our partitions.
    ///
    /// # Errors
    /// [`CountError`].
    pub(crate) async fn count_all(&self) -> Result<(), CountError> {
        while self.count_round().await? {}
        Ok(())
    }

    /// Counts some of each run of our partitions. Says whether there may be more.
    async fn count_round(&self) -> Result<bool, CountError> {
        let _counting = self.counting.lock().await;
        let mut more = false;
        for partitions in self.leases.runs() {
            more |= self.count_some(partitions).await?;
        }
        Ok(more)
    }

    /// Says whether there may be more.
    async fn count_some(&self, partitions: RangeInclusive<u16>) -> Result<bool, CountError> {
        for _ in 0..TRIES_MAX {
            let uncounted = store::uncounted::read(&self.store, partitions.clone(), AT_ONCE_MAX).await?;
            if uncounted.is_empty() {
                return Ok(false);
            }
            match self.commit_counted(&uncounted).await {
                Ok(counted) => return Ok(counted && uncounted.len() == AT_ONCE_MAX),
                // Another node counted for the same account, or has the partition by now.
                Err(CountError::Commit(CommitError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// False: some of it is another node's by now.
    async fn commit_counted(&self, uncounted: &[Uncounted]) -> Result<bool, CountError> {
        let mut batch = Batch::progress();
        if !self.leases.fence_partitions(&mut batch, uncounted.iter().map(|one| one.partition)) {
            return Ok(false);
        }
        let slice = Slice::read(&self.store, uncounted).await?;
        let exported = self.exporter().is_some().then(|| self.clock.now());
        let conversions = slice.book(&self.store, &self.entropy, exported, &mut batch).await?;
        uncounted.iter().for_each(|one| one.counted(&mut batch));
        self.store.commit(batch).await?;
        if conversions > 0 {
            metrics::counter!("postrider_conversions_total").increment(conversions);
            self.exports.notify_one();
        }
        Ok(true)
    }
}
