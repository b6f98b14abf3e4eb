//! The budget of bytes in flight: what all requests together may hold in memory.
//!
//! Two purses, one for ordinary requests and one for large ones, so that a few slow uploads of
//! attachments never keep an ordinary send waiting. A request that says how large its body is takes
//! its share before the first byte is read, and waits a little when there is none; one that does not
//! say takes it piece by piece and is turned away when nothing is left (it must not wait for others
//! that wait for it).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A small request costs about this much anyhow.
const GRAIN_BYTES: usize = 1 << 10;
/// What is larger is paid from the purse for large requests.
const ORDINARY_BYTES_MAX: usize = 1 << 20;
/// The purse for ordinary requests is this part of the whole.
const ORDINARY_PART: usize = 5;
/// How long a request waits for its share.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The budget.
#[derive(Debug, Clone)]
pub struct Budget {
    ordinary: Arc<Semaphore>,
    large: Arc<Semaphore>,
    wait_max: Duration,
}

/// A share of the budget; it goes back when this is dropped.
#[derive(Debug, Default)]
pub struct Share {
    bytes: usize,
    ordinary: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// A budget of about this many bytes; the purse for large requests holds `large_bytes_min` at least.
    #[must_use]
    pub fn new(bytes_max: usize, large_bytes_min: usize) -> Self {
        Self::with_wait(bytes_max, large_bytes_min, WAIT_MAX)
    }

    fn with_wait(bytes_max: usize, large_bytes_min: usize, wait_max: Duration) -> Self {
        let ordinary = bytes_max / ORDINARY_PART;
        let large = (bytes_max - ordinary).max(large_bytes_min);
        let purse =
            |bytes: usize| Arc::new(Semaphore::new(bytes.div_ceil(GRAIN_BYTES).min(Semaphore::MAX_PERMITS)));
        Self { ordinary: purse(ordinary), large: purse(large), wait_max }
    }

    /// Takes a share of `bytes`, waiting a little; `None` when it did not come.
    pub async fn take(&self, bytes: usize) -> Option<Share> {
        let mut share = Share { bytes, ..Share::default() };
        let (purse, place) = self.purse(&mut share);
        let taken = Arc::clone(purse).acquire_many_owned(grains(bytes));
        *place = Some(tokio::time::timeout(self.wait_max, taken).await.ok()?.ok()?);
        Some(share)
    }

    /// Makes a share larger by `bytes`, at once or not at all.
    #[must_use]
    pub fn enlarge(&self, share: &mut Share, bytes: usize) -> bool {
        share.bytes += bytes;
        let (purse, place) = self.purse(share);
        let Ok(more) = Arc::clone(purse).try_acquire_many_owned(grains(bytes)) else { return false };
        match place {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        true
    }

    /// The purse that pays for a share of this size, and where the share keeps what comes of it.
    fn purse<'a>(
        &'a self,
        share: &'a mut Share,
    ) -> (&'a Arc<Semaphore>, &'a mut Option<OwnedSemaphorePermit>) {
        if share.bytes <= ORDINARY_BYTES_MAX {
            (&self.ordinary, &mut share.ordinary)
        } else {
            (&self.large, &mut share.large)
        }
    }

    /// What is left, in bytes.
    #[must_use]
    pub fn left_bytes(&self) -> usize {
        (self.ordinary.available_permits() + self.large.available_permits()) * GRAIN_BYTES
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
        let budget = Budget::new(10 << 20, 0);
        let mut share = budget.take(1 << 20).await.unwrap();
        assert!(budget.enlarge(&mut share, 7 << 20));
        assert!(!budget.enlarge(&mut share, 2 << 20));
        assert_eq!(budget.left_bytes(), 2 << 20);
        drop(share);
        assert_eq!(budget.left_bytes(), 10 << 20);
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_and_large_ones_do_not_stop_ordinary_ones() {
        let budget = Budget::with_wait(10 << 20, 8 << 20, Duration::ZERO);
        let _held = budget.take(8 << 20).await.unwrap();
        assert!(budget.take(2 << 20).await.is_none());
        assert!(budget.take(10 << 10).await.is_some());
    }
}
