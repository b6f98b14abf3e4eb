//! State and statistics of the store.

use std::sync::Arc;

/// Whether the store accepts writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StoreState {
    #[default]
    Healthy,
    /// The disk is full: intake is refused, progress uses the reserve.
    Full,
    /// The database is unreachable: intake is refused, progress waits. The store reconnects by itself.
    Away(Arc<str>),
    /// The disk failed: nothing is acknowledged until the process is restarted.
    Fenced(Arc<str>),
}

/// State and statistics for `/healthz` and the metrics. Counters start at the process start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Whether writes succeed: intake follows it.
    pub state: StoreState,
    /// Reads of the database have failed since the last one that succeeded.
    pub reads_fail: bool,
    /// Why the free disk space is unknown: the disk counts as full then.
    pub space_error: Option<Arc<str>>,
    /// Log groups made durable; each cost one fdatasync.
    pub groups: u64,
    /// Batches made durable.
    pub commits: u64,
    /// Batches refused by a check.
    pub conflicts: u64,
    /// Bytes of groups written to the log, without zero fill.
    pub log_bytes_written: u64,
    /// Number of log segments.
    pub segments: u64,
    /// Size of all log segments.
    pub segments_bytes: u64,
    /// Size of all live bodies, as of the last checkpoint.
    pub live_body_bytes: u64,
    /// Number of live bodies, as of the last checkpoint.
    pub live_bodies: u64,
    /// Rows and body locations in memtables, to be written by the next checkpoints.
    pub pending_rows: u64,
    /// Approximate memory of these, with the buffers that they keep alive.
    pub pending_bytes: u64,
    pub checkpoints: u64,
    /// Duration of the last checkpoint.
    pub last_checkpoint_us: u64,
    /// Size of the index file.
    pub index_bytes: u64,
    /// Free disk space, as last measured.
    pub free_bytes: u64,
}

impl Health {
    /// The state for health checks. Failing reads count as an outage: without them no client can log in, and no
    /// recipient is found.
    pub fn service_state(&self) -> StoreState {
        match &self.state {
            StoreState::Healthy if self.reads_fail => StoreState::Away("reads fail".into()),
            state => state.clone(),
        }
    }
}

/// Progress of a backup, a restore or an integrity check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    /// Rows written or read.
    pub rows: u64,
    /// Bodies written or read.
    pub bodies: u64,
    /// Bytes written; for an integrity check, bytes of the bodies read.
    pub bytes: u64,
}
