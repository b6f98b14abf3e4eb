//! What the store says about itself: its state and its numbers.

use std::sync::Arc;

/// May the store be written?
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StoreState {
    /// Everything works.
    #[default]
    Healthy,
    /// The disk is full: intake is refused, progress goes on from the reserve.
    Full,
    /// The database cannot be reached: intake is refused, progress waits; it comes back by itself.
    Away(Arc<str>),
    /// The disk failed: nothing is acknowledged until the process is started anew.
    Fenced(Arc<str>),
}

/// State and numbers, for `/healthz` and the metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// May it be written?
    pub state: StoreState,
    /// Groups of batches made durable since the start; each cost one fdatasync.
    pub groups: u64,
    /// Batches made durable since the start.
    pub commits: u64,
    /// Batches refused by a check since the start.
    pub conflicts: u64,
    /// Bytes of groups written to the log since the start (zeros ahead of them do not count).
    pub log_bytes_written: u64,
    /// Log segments that exist.
    pub segments: u64,
    /// Bytes of all log segments.
    pub segments_bytes: u64,
    /// Bytes of bodies that are still referred to, as of the last checkpoint.
    pub live_body_bytes: u64,
    /// Bodies that are still referred to, as of the last checkpoint.
    pub live_bodies: u64,
    /// Rows and body references in memory that the next checkpoints take over.
    pub pending_rows: u64,
    /// Memory that they take, about, and what came in with them.
    pub pending_bytes: u64,
    /// Checkpoints since the start.
    pub checkpoints: u64,
    /// How long the last one took.
    pub last_checkpoint_us: u64,
    /// Bytes of the index file.
    pub index_bytes: u64,
    /// Free bytes on the disk, as last seen.
    pub free_bytes: u64,
}

/// How far a backup, a restore or a check has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    /// Rows written, or read.
    pub rows: u64,
    /// Bodies written, or read.
    pub bodies: u64,
    /// Bytes written; for a check, of the bodies read.
    pub bytes: u64,
}
