//! Memory budget of message bodies. A body is shared by its recipients, and counted while it is in memory.
//!
//! A fresh message stays in memory only while half of the budget is free. Others are read back from the store when they
//! are delivered, after waiting for a permit (back-pressure).

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Granularity of the budget in bytes.
const PERMIT_BYTES: usize = 4096;

/// A message body in memory, with its share of the budget.
#[derive(Debug)]
pub struct BufferedBody {
    chunks: Vec<Bytes>,
    _permits: OwnedSemaphorePermit,
}

impl BufferedBody {
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}

/// Limit on the bytes of message bodies in memory.
#[derive(Debug)]
pub struct BodyBudget {
    permits: Arc<Semaphore>,
    permits_max: usize,
}

impl BodyBudget {
    /// Creates a budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        let permits_max = (bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(permits_max)), permits_max }
    }

    /// Permits for a body; one that is larger than the budget takes all of it.
    fn permits_for(&self, size_bytes: usize) -> u32 {
        u32::try_from((size_bytes / PERMIT_BYTES + 1).min(self.permits_max)).unwrap_or(u32::MAX)
    }

    /// Keeps a fresh message in memory if the budget allows it.
    pub fn try_buffer(&self, chunks: &[Bytes]) -> Option<Arc<BufferedBody>> {
        let size_bytes = chunks.iter().map(Bytes::len).sum();
        let pieces = self.permits_for(size_bytes);
        // Half is reserved for messages in delivery: bodies that wait for a slow destination must not block reading
        // others.
        if self.permits.available_permits() < self.permits_max / 2 + pieces as usize {
            return None;
        }
        let permits = Arc::clone(&self.permits).try_acquire_many_owned(pieces).ok()?;
        Some(Arc::new(BufferedBody { chunks: chunks.to_vec(), _permits: permits }))
    }

    /// Waits for the permits of a message that is read from the store.
    pub async fn acquire(&self, size_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        Arc::clone(&self.permits).acquire_many_owned(self.permits_for(size_bytes)).await.ok()
    }

    /// Like [`acquire`](Self::acquire), without waiting.
    #[must_use]
    pub fn try_acquire(&self, size_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        Arc::clone(&self.permits).try_acquire_many_owned(self.permits_for(size_bytes)).ok()
    }

    /// Wraps a body that was read, with the permits acquired for it.
    pub fn buffer(&self, bytes: Bytes, permits: OwnedSemaphorePermit) -> Arc<BufferedBody> {
        Arc::new(BufferedBody { chunks: vec![bytes], _permits: permits })
    }

    /// Approximate bytes in memory.
    pub fn buffered_bytes(&self) -> usize {
        (self.permits_max - self.permits.available_permits()) * PERMIT_BYTES
    }
}
