//! State shared by the writer, the checkpoint thread and all readers.
//!
//! ```text
//! readers ──► active > frozen > base       one lock, never held during I/O
//! writer ───► active                       publishes a group when it is durable
//!             active becomes frozen        between two groups
//! checkpoint  frozen ──► redb ──► base     then drops frozen
//! ```
//!
//! The three layers are replaced together under the lock, so a reader that clones them together has one snapshot.

use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::index::IndexSnapshot;
use super::memtable::{BodyLocation, MemTable};
use super::segments::{BodyReadError, Segments};
use crate::engine::{Health, Key, ReadError, StoreState};

#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) active: MemTable,
    pub(crate) frozen: Option<Arc<MemTable>>,
    pub(crate) base: Arc<IndexSnapshot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CheckpointState {
    /// No checkpoint is running: the writer may freeze the active memtable.
    #[default]
    Idle,
    Running,
    /// A checkpoint waits for free disk space.
    Stuck,
}

#[derive(Debug, Default)]
pub(crate) struct EngineCounters {
    pub(crate) groups: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) checkpoint_us: AtomicU64,
    pub(crate) index_bytes: AtomicU64,
    pub(crate) free_bytes: AtomicU64,
    pub(crate) live_bodies: AtomicU64,
    pub(crate) live_body_bytes: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct EngineState {
    layers: RwLock<Layers>,
    pub(crate) segments: Segments,
    /// Maximum duration of a read step on the runtime's threads.
    pub(crate) in_place: Duration,
    pub(crate) counters: EngineCounters,
    state: Mutex<StoreState>,
    is_full: AtomicBool,
    /// Why the free disk space is unknown.
    space_error: Mutex<Option<Arc<str>>>,
    checkpointing: Mutex<CheckpointState>,
    changed: Condvar,
    /// Number of backups and checks in progress; no segment is removed meanwhile.
    pub(crate) pins: AtomicUsize,
}

/// Maximum size of a body that is read inline if it is in one of the newest segments: it is in the page cache, and a
/// thread switch costs more than the copy.
const INLINE_BODY_BYTES_MAX: u32 = 64 << 10;
/// Number of lookups of a body that is relocated while it is read.
const BODY_TRIES: usize = 4;

impl EngineState {
    pub(crate) fn new(active: MemTable, base: IndexSnapshot, segments: Segments, in_place: Duration) -> Self {
        Self {
            layers: RwLock::new(Layers { active, frozen: None, base: Arc::new(base) }),
            segments,
            in_place,
            counters: EngineCounters::default(),
            state: Mutex::default(),
            is_full: AtomicBool::new(false),
            space_error: Mutex::default(),
            checkpointing: Mutex::default(),
            changed: Condvar::new(),
            pins: AtomicUsize::new(0),
        }
    }

    /// Read lock on the layers. Ignoring a poisoned lock is safe, because the memtables change by single inserts only.
    pub(crate) fn layers(&self) -> RwLockReadGuard<'_, Layers> {
        self.layers.read()
    }

    pub(crate) fn layers_mut(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write()
    }

    pub(crate) fn index_snapshot(&self) -> Arc<IndexSnapshot> {
        Arc::clone(&self.layers().base)
    }

    /// The reason, if the store is fenced.
    pub(crate) fn fenced(&self) -> Option<Arc<str>> {
        match &*self.state.lock() {
            StoreState::Fenced(reason) => Some(Arc::clone(reason)),
            _ => None,
        }
    }

    /// Fences the store. Returns the first reason given.
    pub(crate) fn fence(&self, reason: &str) -> Arc<str> {
        let mut state = self.state.lock();
        if let StoreState::Fenced(reason) = &*state {
            return Arc::clone(reason);
        }
        let reason: Arc<str> = reason.into();
        tracing::error!(%reason, "disk failure: the store refuses all writes; repair the disk and restart the server");
        *state = StoreState::Fenced(Arc::clone(&reason));
        drop(state);
        self.set_checkpointing(CheckpointState::Idle);
        reason
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_full(&self, full: bool) {
        let mut state = self.state.lock();
        match (&*state, full) {
            (StoreState::Healthy, true) => {
                tracing::warn!("the disk is full: refusing new mail, delivery continues");
                *state = StoreState::Full;
            }
            (StoreState::Full, false) => {
                tracing::info!("disk space is available again");
                *state = StoreState::Healthy;
            }
            _ => {}
        }
        self.is_full.store(full, Ordering::Relaxed);
    }

    /// Records why the free disk space is unknown, or that it is known. The first error is logged.
    pub(crate) fn set_space_error(&self, error: Option<String>) {
        let mut space_error = self.space_error.lock();
        if let (None, Some(error)) = (&*space_error, &error) {
            tracing::error!(%error, "cannot read the free disk space: the disk counts as full");
        }
        *space_error = error.map(Arc::from);
    }

    pub(crate) fn checkpointing(&self) -> CheckpointState {
        *self.checkpointing.lock()
    }

    pub(crate) fn set_checkpointing(&self, now: CheckpointState) {
        *self.checkpointing.lock() = now;
        self.changed.notify_all();
    }

    /// Waits until no checkpoint is running; a stuck one is not running.
    pub(crate) fn wait_checkpoint(&self) -> CheckpointState {
        let mut guard = self.checkpointing.lock();
        self.changed.wait_while(&mut guard, |now| *now == CheckpointState::Running);
        *guard
    }

    /// The current location of a body.
    pub(crate) fn body_location(&self, key: &[u8]) -> Result<Option<BodyLocation>, ReadError> {
        let base = {
            let layers = self.layers();
            let found = layers
                .active
                .body_location(key)
                .or_else(|| layers.frozen.as_ref().and_then(|table| table.body_location(key)));
            if let Some(location) = found {
                return Ok(location);
            }
            Arc::clone(&layers.base)
        };
        base.body_location(key)
    }

    pub(crate) async fn body(self: &Arc<Self>, key: &Key) -> Result<Option<Bytes>, ReadError> {
        let Some(location) = self.body_location(key)? else { return Ok(None) };
        let is_recent = location.segment + 1 >= self.segments.newest.load(Ordering::Relaxed);
        if is_recent && location.size_bytes <= INLINE_BODY_BYTES_MAX {
            return self.read_body(key);
        }
        self.spawn_read_body(key).await.map_err(ReadError::io)?
    }

    fn spawn_read_body(self: &Arc<Self>, key: &Key) -> JoinHandle<Result<Option<Bytes>, ReadError>> {
        let (shared, key) = (Arc::clone(self), key.clone());
        tokio::task::spawn_blocking(move || shared.read_body(&key))
    }

    /// Reads a body. Blocks.
    pub(crate) fn read_body(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        let mut last = None;
        for _ in 0..BODY_TRIES {
            let Some(location) = self.body_location(key)? else { return Ok(None) };
            match self.segments.read(location) {
                Ok(bytes) => return Ok(Some(bytes)),
                // The same location failed twice: the body is damaged.
                Err(fault @ BodyReadError::Mismatch(_)) if last == Some(location) => return Err(fault.into()),
                Err(BodyReadError::Mismatch(_)) => last = Some(location),
                Err(fault @ BodyReadError::Io(_)) => return Err(fault.into()),
            }
        }
        Err(ReadError::Io("the body was relocated repeatedly while it was read".into()))
    }

    pub(crate) fn health(&self) -> Health {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let (segments, segments_bytes) = self.segments.totals();
        let (pending_rows, pending_bytes) = {
            let layers = self.layers();
            let frozen = layers.frozen.as_ref().map_or((0, 0), |table| (table.len(), table.bytes()));
            ((layers.active.len() + frozen.0) as u64, layers.active.bytes() + frozen.1)
        };
        Health {
            state: self.state.lock().clone(),
            reads_fail: false,
            space_error: self.space_error.lock().clone(),
            groups: number(&counters.groups),
            commits: number(&counters.commits),
            conflicts: number(&counters.conflicts),
            log_bytes_written: number(&counters.log_bytes),
            segments,
            segments_bytes,
            live_body_bytes: number(&counters.live_body_bytes),
            live_bodies: number(&counters.live_bodies),
            pending_rows,
            pending_bytes,
            checkpoints: number(&counters.checkpoints),
            last_checkpoint_us: number(&counters.checkpoint_us),
            index_bytes: number(&counters.index_bytes),
            free_bytes: number(&counters.free_bytes),
        }
    }
}
