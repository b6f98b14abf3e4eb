//! Messages in memory: shared by their recipients, counted while they live, within a budget.
//!
//! Fresh messages are held if half of the budget allows it; what does not fit is read back from the store when
//! its turn comes, and then counted too: who reads waits for room.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages are counted in pieces of this many bytes.
const PIECE_BYTES: usize = 4096;

/// A message's bytes in memory.
#[derive(Debug)]
pub struct HeldBody {
    chunks: Vec<Bytes>,
    _share: OwnedSemaphorePermit,
}

impl HeldBody {
    /// The bytes, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}

/// How many bytes of messages may be in memory.
#[derive(Debug)]
pub struct BodyBudget {
    pieces: Arc<Semaphore>,
    pieces_max: usize,
}

impl BodyBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let pieces_max = (bytes_max / PIECE_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self { pieces: Arc::new(Semaphore::new(pieces_max)), pieces_max }
    }

    /// What a message counts; one larger than the whole budget counts as all of it.
    fn pieces_of(&self, size_bytes: usize) -> u32 {
        u32::try_from((size_bytes / PIECE_BYTES + 1).min(self.pieces_max)).unwrap_or(u32::MAX)
    }

    /// Keeps a fresh message in memory, if there is room.
    #[must_use]
    pub fn hold(&self, chunks: &[Bytes]) -> Option<Arc<HeldBody>> {
        let size_bytes = chunks.iter().map(Bytes::len).sum();
        let pieces = self.pieces_of(size_bytes);
        // Half is kept for messages whose turn has come: those that wait, for a slow destination say, must
        // not keep the others from being read.
        if self.pieces.available_permits() < self.pieces_max / 2 + pieces as usize {
            return None;
        }
        let share = Arc::clone(&self.pieces).try_acquire_many_owned(pieces).ok()?;
        Some(Arc::new(HeldBody { chunks: chunks.to_vec(), _share: share }))
    }

    /// Waits for room for a message that is to be read from the store.
    pub async fn room(&self, size_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        Arc::clone(&self.pieces).acquire_many_owned(self.pieces_of(size_bytes)).await.ok()
    }

    /// The same without waiting.
    #[must_use]
    pub fn room_now(&self, size_bytes: u64) -> Option<OwnedSemaphorePermit> {
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        Arc::clone(&self.pieces).try_acquire_many_owned(self.pieces_of(size_bytes)).ok()
    }

    /// A message that was read, in the room that was waited for.
    #[must_use]
    pub fn read(&self, bytes: Bytes, share: OwnedSemaphorePermit) -> Arc<HeldBody> {
        Arc::new(HeldBody { chunks: vec![bytes], _share: share })
    }

    /// How many bytes are held, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        (self.pieces_max - self.pieces.available_permits()) * PIECE_BYTES
    }
}
