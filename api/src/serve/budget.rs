//! The budget of bytes in flight: what all requests together may hold in memory.
//!
//! A request that says how large its body is takes its share before the first byte is read, and
//! waits a little when there is none; one that does not say takes it piece by piece and is turned
//! away when nothing is left (it must not wait for others that wait for it).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The grain: a semaphore counts to 2^29 or so on small machines, and a small request costs this
/// much anyhow.
const GRAIN_BYTES: usize = 1 << 10;
/// How long a request waits for its share.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The budget.
#[derive(Debug, Clone)]
pub struct Budget {
    grains: Arc<Semaphore>,
    wait_max: Duration,
}

/// A share of the budget; it goes back when this is dropped.
#[derive(Debug, Default)]
pub struct Share(Option<OwnedSemaphorePermit>);

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self::with_wait(bytes_max, WAIT_MAX)
    }

    fn with_wait(bytes_max: usize, wait_max: Duration) -> Self {
        let grains = Semaphore::new((bytes_max / GRAIN_BYTES).min(Semaphore::MAX_PERMITS));
        Self { grains: Arc::new(grains), wait_max }
    }

    /// Takes a share of `bytes`, waiting a little; `None` when it did not come.
    pub async fn take(&self, bytes: usize) -> Option<Share> {
        let taken = Arc::clone(&self.grains).acquire_many_owned(grains(bytes));
        Some(Share(Some(tokio::time::timeout(self.wait_max, taken).await.ok()?.ok()?)))
    }

    /// Makes a share larger by `bytes`, at once or not at all.
    #[must_use]
    pub fn enlarge(&self, share: &mut Share, bytes: usize) -> bool {
        let Ok(more) = Arc::clone(&self.grains).try_acquire_many_owned(grains(bytes)) else { return false };
        match &mut share.0 {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        true
    }

    /// What is left, in bytes.
    #[must_use]
    pub fn left_bytes(&self) -> usize {
        self.grains.available_permits() * GRAIN_BYTES
    }
}

fn grains(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(GRAIN_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shares_go_back() {
        let budget = Budget::new(10 << 10);
        let mut share = budget.take(8 << 10).await.unwrap();
        assert!(!budget.enlarge(&mut share, 4 << 10));
        assert!(budget.enlarge(&mut share, 1));
        assert_eq!(budget.left_bytes(), 1 << 10);
        drop(share);
        assert_eq!(budget.left_bytes(), 10 << 10);
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let budget = Budget::with_wait(1 << 10, Duration::ZERO);
        let _held = budget.take(1).await.unwrap();
        assert!(budget.take(1).await.is_none());
    }
}
