//! Messages in memory: shared by their recipients, counted while they live, within a budget.
//!
//! Fresh messages are held if half of the budget allows it; what does not fit is read back from the store when
//! its turn comes, and then counted too: who reads waits for room.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages are counted in pieces of this many bytes.
const PERMIT_BYTES: usize = 4096;

/// A message's bytes in memory.
#[derive(Debug)]
pub struct BufferedBody {
    chunks: Vec<Bytes>,
    _permits: OwnedSemaphorePermit,
}

impl BufferedBody {
    /// The bytes, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}

/// How many bytes of messages may be in memory.
#[derive(Debug)]
pub struct BodyBudget {
    permits: Arc<Semaphore>,
    permits_max: usize,
}

impl BodyBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let permits_max = (bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(permits_max)), permits_max }
    }

    /// What a message counts; one larger than the whole budget counts as all of it.
    fn permits_for(&self, size_bytes: usize) -> u32 {
        u32::try_from((size_bytes / PERMIT_BYTES + 1).min(self.permits_max)).unwrap_or(u32::MAX)
    }

    /// Keeps a fresh message in memory, if there is room.
    #[must_use]
    pub fn try_buffer(&self, chunks: &[Bytes]) -> Option<Arc<BufferedBody>> {
        let size_bytes = chunks.iter().map(Bytes::len).sum();
        let pieces = self.permits_for(size_bytes);
        // Half is kept for messages whose turn has come: those that wait, for a slow destination say, must
        // not keep the others from being read.
        if self.permits.available_permits() < self.permits_max / 2 + pieces as usize {
            return None;
        }
        let share = Arc::clone(&self.permits).try_acquire_many_owned(pieces).ok()?;
        Some(Arc::new(BufferedBody { chunks: chunks.to_vec(), _permits: share }))
    }

    /// Waits for room for a message that is to be read from the store.
    pub async fn acquire(&self, size_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        Arc::clone(&self.permits).acquire_many_owned(self.permits_for(size_bytes)).await.ok()
    }

    /// The same without waiting.
    #[must_use]
    pub fn try_acquire(&self, size_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        Arc::clone(&self.permits).try_acquire_many_owned(self.permits_for(size_bytes)).ok()
    }

    /// A message that was read, in the room that was waited for.
    #[must_use]
    pub fn buffer(&self, bytes: Bytes, share: OwnedSemaphorePermit) -> Arc<BufferedBody> {
        Arc::new(BufferedBody { chunks: vec![bytes], _permits: share })
    }

    /// How many bytes are held, about.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        (self.permits_max - self.permits.available_permits()) * PERMIT_BYTES
    }
}
