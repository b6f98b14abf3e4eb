//! The redb engine: a commit log in front of redb.
//!
//! ```text
//! commit ─► prepared ─► writer ─► log segment ─► one fdatasync ─► active memtable ─► answer
//!          (encoded by   (checks)                                     │ frozen
//!           its caller)                                               ▼
//! open ◄── recover ◄── index (redb) ◄──────────────────────────── checkpoint ─► reclaim segments
//! read ─── active > frozen > index; bodies by location from their segment            (redb/read.rs)
//! ```
//!
//! Between checkpoints the log is authoritative: a commit is durable when its group's fdatasync returns. Only
//! checkpoints write to redb, so rows that are inserted and deleted between two checkpoints never reach it. Bodies stay
//! in the log segments; the index stores their locations. Files in the directory:
//!
//! ```text
//! lock              locked by the process that has it open
//! index.redb        rows, body locations, replay position           (redb/index.rs)
//! log-N.seg         log segments                                    (redb/record.rs)
//! reserve           disk reserve for a full disk                    (redb/disk_space.rs)
//! restoring         exists while a backup is restored               (redb/backup.rs)
//! copying           exists while another store is copied into it    (copy.rs)
//! ```
//!
//! Limits: the two memtables take at most about four times `table_bytes`, and redb its cache. There is one writer
//! thread and one checkpoint thread. The inbox holds [`INBOX_BATCHES`] batches; further commits wait (back-pressure).

pub(crate) mod backup;
mod caught;
mod check;
mod checkpoint;
mod disk;
mod disk_space;
pub(crate) mod format;
mod index;
mod log;
mod lz77;
mod memtable;
mod prepared_batch;
mod read;
mod reclaim;
mod record;
mod recovery;
mod row_compression;
mod segment_reader;
mod segments;
mod state;
mod writer;
mod zero_fill;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::check::check;
use self::checkpoint::Checkpointer;
use self::disk::Disk;
use self::disk_space::DiskSpace;
pub(crate) use self::index::INDEX_FILE;
use self::index::{Index, IndexState};
use self::log::{AppendError, FIRST_GROUP_BYTES, LogAppender};
use self::memtable::MemTable;
use self::prepared_batch::{PendingBatch, PreparedBatch};
use self::reclaim::SegmentReclaimer;
use self::record::StoreId;
use self::recovery::ReplayResult;
pub(crate) use self::row_compression::is_damaged;
use self::segments::Segments;
use self::state::EngineState;
use self::writer::{FreezeLimits, GroupWriter, WriterCommand};
use super::{Batch, CommitError, Health, Key, OpenError, ReadError, RedbOptions, private_files};

/// Capacity of the inbox of batches; further commits wait.
const INBOX_BATCHES: usize = 1024;
/// The lock on this file marks the directory as in use.
const LOCK_FILE: &str = "lock";
/// Marker of a copy in progress: only that copy may open the directory.
pub(crate) const COPYING_FILE: &str = "copying";
/// Capacity of the checkpoint thread's queue: at most one checkpoint and one relocation slice are outstanding.
const JOBS: usize = 4;

#[derive(Debug)]
pub(crate) struct RedbEngine {
    pub(crate) shared: Arc<EngineState>,
    inbox: mpsc::Sender<WriterCommand>,
}

/// A directory that was locked and read. Nothing in it was changed, except that a new directory has a new index.
pub(crate) struct OpenDirectory {
    pub(crate) lock: File,
    pub(crate) disk: Disk,
    pub(crate) index: Index,
    pub(crate) opened: IndexState,
    pub(crate) segments: Segments,
    pub(crate) recovered: ReplayResult,
}

impl OpenDirectory {
    /// Locks a directory, opens its index and replays its log into memory.
    pub(crate) fn read(options: &RedbOptions) -> Result<Self, OpenError> {
        if options.directory.join(COPYING_FILE).exists() {
            return Err(OpenError::HalfCopied(options.directory.display().to_string()));
        }
        Self::read_unchecked(options)
    }

    fn read_unchecked(options: &RedbOptions) -> Result<Self, OpenError> {
        let directory = options.directory.as_path();
        private_files::create_directory(directory).map_err(|error| OpenError::io(directory, error))?;
        let lock = lock(directory)?;
        if directory.join(backup::RESTORING_FILE).exists() {
            return Err(OpenError::HalfRestored { directory: directory.to_owned() });
        }
        let disk = match &options.faults {
            Some(faults) => Disk::Faulty(faults.clone()),
            None => Disk::Real,
        };
        let segments = Segments::list(directory, &disk).map_err(|error| OpenError::io(directory, error))?;
        let index_file = directory.join(INDEX_FILE);
        let has_index = std::fs::metadata(&index_file).is_ok_and(|found| found.len() > 0);
        if !has_index && !segments.numbers().is_empty() {
            return Err(OpenError::corrupt(index_file, "the file is missing, but log segments exist"));
        }
        // Opening the index writes to its file: a newer format is refused before.
        if let Err(newer @ OpenError::Newer { .. }) = format::read(directory) {
            return Err(newer);
        }
        let (index, opened) = Index::open(directory, &disk, options.cache_bytes, store_id(&lock)?)?;
        let recovered = recovery::replay(&segments, &opened)?;
        Ok(Self { lock, disk, index, opened, segments, recovered })
    }
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK_FILE);
    let file = private_files::open_or_create_file(&path).map_err(|error| OpenError::io(&path, error))?;
    match lock_with_retry(&file) {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(OpenError::InUse { directory: directory.to_owned() })
        }
        Err(error) => Err(OpenError::io(path, error)),
    }
}

/// Locks a file for this process. Waits up to a second for a killed process that still holds the lock. Blocks.
///
/// # Errors
/// `WouldBlock` if another process holds the lock.
#[expect(clippy::disallowed_methods, reason = "no event announces a released lock; one second at most, at startup")]
pub fn lock_with_retry(file: &File) -> std::io::Result<()> {
    const TRIES: u32 = 20;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
    let lock = || rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    for _ in 1..TRIES {
        match lock() {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            locked => return Ok(locked?),
        }
    }
    Ok(lock()?)
}

/// A unique store id, derived from the lock file's device, inode and change time.
fn store_id(lock: &File) -> Result<StoreId, OpenError> {
    use std::os::unix::fs::MetadataExt;
    let found = lock.metadata().map_err(|error| OpenError::io(LOCK_FILE, error))?;
    let mut digest = Sha256::new();
    for number in [found.dev(), found.ino(), found.ctime().cast_unsigned(), found.ctime_nsec().cast_unsigned()] {
        digest.update(number.to_le_bytes());
    }
    let digest: [u8; 32] = digest.finalize().into();
    Ok(digest.first_chunk().copied().unwrap_or_default())
}

fn append_error(directory: &Path, space: &DiskSpace, fault: AppendError) -> OpenError {
    match fault {
        AppendError::Full => OpenError::DiskFull {
            directory: directory.to_owned(),
            free_bytes: space.free_bytes(),
            needed_bytes: FIRST_GROUP_BYTES,
        },
        AppendError::Broken(reason) => OpenError::io(directory, std::io::Error::other(reason)),
    }
}

impl RedbEngine {
    pub(crate) fn open(options: &RedbOptions) -> Result<Self, OpenError> {
        Self::start_engine(options, OpenDirectory::read(options)?, 0)
    }

    /// Opens a directory that has space for the first commit.
    pub(crate) fn open_writable(options: &RedbOptions) -> Result<Self, OpenError> {
        Self::start_engine(options, OpenDirectory::read(options)?, FIRST_GROUP_BYTES)
    }

    /// Opens a directory that is the target of a copy.
    pub(crate) fn open_for_copy(options: &RedbOptions) -> Result<Self, OpenError> {
        Self::start_engine(options, OpenDirectory::read_unchecked(options)?, 0)
    }

    fn start_engine(options: &RedbOptions, opening: OpenDirectory, needed_bytes: u64) -> Result<Self, OpenError> {
        let directory = options.directory.as_path();
        let OpenDirectory { lock, disk, index, mut opened, segments, mut recovered } = opening;
        recovered.repair().map_err(|error| OpenError::io(directory, error))?;
        recovery::remove_unfinished(&segments, &disk, recovered.end)?;
        let space = Arc::new(DiskSpace::new(directory, &disk, options.reserve_bytes));
        let start = || match space.free_bytes() < needed_bytes {
            true => Err(AppendError::Full),
            false => LogAppender::start(&segments, &space, opened.store, options.segment_bytes, recovered.end),
        };
        let log = start()
            .or_else(|fault| match fault {
                // A server that a full disk stopped must be able to start, to deliver its queue.
                AppendError::Full if space.release_reserve() => start(),
                fault => Err(fault),
            })
            .map_err(|fault| append_error(directory, &space, fault))?;
        if opened.position.segment == 0 {
            // From now on, the first segment must exist.
            let first = index.checkpoint(&MemTable::default(), log.position(), &mut opened.live);
            first.map_err(|fault| OpenError::corrupt(directory.join(INDEX_FILE), format!("{fault:?}")))?;
            opened.position = log.position();
        }
        let base = index.index_snapshot().map_err(|fault| {
            OpenError::corrupt(directory.join(INDEX_FILE), format!("cannot read the index: {fault:?}"))
        })?;
        tracing::info!(
            directory = %directory.display(), groups = recovered.groups, bytes = recovered.bytes, "store opened"
        );
        let table = std::mem::take(&mut recovered.table);
        let shared = Arc::new(EngineState::new(table, base, segments, options.in_place));
        if !space.has_reserve() {
            tracing::warn!(
                free_bytes = space.free_bytes(),
                reserve_bytes = options.reserve_bytes,
                "the disk has no space for the reserve of the store: free some, or set a smaller `reserve_bytes`"
            );
            shared.set_full(true);
        }
        let parts = EngineParts { lock, index, opened, space, log, replayed_bytes: recovered.bytes };
        parts.start(options, shared)
    }

    pub(crate) async fn body(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        self.shared.body(key).await
    }

    pub(crate) async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let batch = PreparedBatch::new(batch)?;
        let (answer, answered) = oneshot::channel();
        let command = WriterCommand::Commit(PendingBatch { batch, answer: Some(answer) });
        self.inbox.send(command).await.map_err(|_| self.closed_error())?;
        answered.await.map_err(|_| self.closed_error())?
    }

    /// Like `commit`, for a thread outside the runtime.
    pub(crate) fn commit_blocking(&self, batch: Batch) -> Result<(), CommitError> {
        let batch = PreparedBatch::new(batch)?;
        let (answer, answered) = oneshot::channel();
        let command = WriterCommand::Commit(PendingBatch { batch, answer: Some(answer) });
        self.inbox.blocking_send(command).map_err(|_| self.closed_error())?;
        answered.blocking_recv().map_err(|_| self.closed_error())?
    }

    fn closed_error(&self) -> CommitError {
        self.shared.fenced().map_or(CommitError::Closed, CommitError::Fenced)
    }

    /// Returns when everything committed before is in the index.
    pub(crate) async fn flush(&self) -> Result<(), CommitError> {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(WriterCommand::Flush(answer)).await.map_err(|_| self.closed_error())?;
        // The sender was dropped: no checkpoint is possible now.
        answered.await.map_err(|_| self.shared.fenced().map_or(CommitError::Full, CommitError::Fenced))
    }

    pub(crate) async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        if self.inbox.send(WriterCommand::Close(answer)).await.is_ok() {
            drop(answered.await);
        }
    }

    pub(crate) fn close_blocking(&self) {
        let (answer, answered) = oneshot::channel();
        if self.inbox.blocking_send(WriterCommand::Close(answer)).is_ok() {
            drop(answered.blocking_recv());
        }
    }

    pub(crate) fn health(&self) -> Health {
        self.shared.health()
    }
}

/// State that moves to the writer and checkpoint threads.
struct EngineParts {
    lock: File,
    index: Index,
    opened: IndexState,
    space: Arc<DiskSpace>,
    log: LogAppender,
    replayed_bytes: u64,
}

impl EngineParts {
    fn start(self, options: &RedbOptions, shared: Arc<EngineState>) -> Result<RedbEngine, OpenError> {
        let (inbox, commands) = mpsc::channel(INBOX_BATCHES);
        let (jobs, todo) = sync_channel(JOBS);
        let interval_ticks = options.checkpoint_interval.as_millis() / options.tick.as_millis().max(1);
        let checkpointer = Checkpointer {
            shared: Arc::clone(&shared),
            space: Arc::clone(&self.space),
            index: self.index,
            live: self.opened.live,
            position: self.opened.position,
            reclaim: SegmentReclaimer::new(self.opened.store, options.segment_bytes),
            stuck: None,
            writer: inbox.downgrade(),
            tick: options.tick,
            interval_ticks: u32::try_from(interval_ticks).unwrap_or(u32::MAX).max(1),
            ticks: 0,
        };
        let writer = GroupWriter {
            shared: Arc::clone(&shared),
            space: self.space,
            log: self.log,
            limits: FreezeLimits { table_bytes: options.table_bytes, replay_bytes: options.replay_bytes },
            jobs,
            unfrozen_bytes: self.replayed_bytes,
            waiting: Vec::new(),
        };
        let failed = |error| OpenError::io(&options.directory, error);
        let fence = Arc::clone(&shared);
        let checkpoints = spawn("store-checkpoint", Arc::clone(&shared), move || checkpointer.run(&todo));
        let checkpoints = checkpoints.map_err(failed)?;
        let lock = self.lock;
        let run = move || {
            let closer = writer.run(commands);
            // The writer has ended and closed the job queue, so the checkpoint thread ends too.
            drop(checkpoints.join());
            drop(lock);
            if let Some(closer) = closer {
                let _ = closer.send(());
            }
        };
        spawn("store-writer", fence, run).map_err(failed)?;
        // Checkpoint the replayed rows while the server starts.
        drop(inbox.try_send(WriterCommand::Freeze));
        Ok(RedbEngine { shared, inbox })
    }
}

/// Spawns a thread. A panic, which is a bug, fences the store instead of going unnoticed.
fn spawn(name: &str, shared: Arc<EngineState>, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            shared.fence("a store thread panicked");
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(guarded)
}
