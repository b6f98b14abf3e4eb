//! The redb engine: a commit log in front of redb.
//!
//! ```text
//! commit ─► prepared ─► writer ─► log segment ─► one fdatasync ─► active table ─► answer
//!          (encoded by   (checks)                                     │ frozen
//!           its caller)                                               ▼
//! open ◄── recover ◄── index (redb) ◄──────────────────────────── checkpoint ─► reclaim segments
//! read ─── active > frozen > index; bodies by place from their segment            (redb/read.rs)
//! ```
//!
//! The log is the truth until the checkpoint: a commit is durable when its group's fdatasync returns.
//! redb is written by checkpoints only, so rows that come and go between two of them never reach it.
//! Bodies stay in the log's segments; the index knows their places. The directory:
//!
//! ```text
//! lock              held by the one process that has it open
//! index.redb        rows, places of bodies, where replay starts        (redb/index.rs)
//! log-N.seg         the log, by segment                                (redb/record.rs)
//! reserve           room set aside for a full disk                     (redb/space.rs)
//! restoring         there while a backup is taken in                   (redb/backup.rs)
//! copying           there while another store is copied into it        (copy.rs)
//! ```
//!
//! Limits: the two tables in memory take at most about four times `table_bytes`, redb its cache; one
//! writer thread, one checkpoint thread; the inbox holds [`INBOX_BATCHES`] batches, then commits wait.

mod ahead;
pub(crate) mod backup;
mod caught;
mod check;
mod checkpoint;
mod disk;
mod index;
mod log;
mod prepared;
mod read;
mod reclaim;
mod record;
mod recover;
mod segments;
mod shared;
mod space;
mod table;
mod walk;
mod writer;

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
pub(crate) use self::index::INDEX_FILE;
use self::index::{Index, IndexState};
use self::log::{AppendError, LogAppender};
use self::prepared::{PendingBatch, PreparedBatch};
use self::reclaim::SegmentReclaimer;
use self::record::StoreId;
use self::recover::ReplayResult;
use self::segments::Segments;
use self::shared::EngineState;
use self::space::DiskSpace;
use self::table::MemTable;
use self::writer::{FreezeLimits, GroupWriter, WriterCommand};
use super::{Batch, CommitError, Health, Key, OpenError, ReadError, RedbOptions, private};

/// Batches that wait for the writer; more committers than these wait for a place.
const INBOX_BATCHES: usize = 1024;
/// The file whose lock says that the directory is in use.
const LOCK_FILE: &str = "lock";
/// There while another store is copied into the directory: only that copy may go on with it.
pub(crate) const COPYING_FILE: &str = "copying";
/// Jobs under way: one checkpoint and one slice of moved bodies at most.
const JOBS: usize = 4;

/// An open directory.
#[derive(Debug)]
pub(crate) struct RedbEngine {
    pub(crate) shared: Arc<EngineState>,
    inbox: mpsc::Sender<WriterCommand>,
}

/// A directory read, nothing in it changed yet (but a new index made for a new one).
pub(crate) struct OpenDirectory {
    pub(crate) lock: File,
    pub(crate) disk: Disk,
    pub(crate) index: Index,
    pub(crate) opened: IndexState,
    pub(crate) segments: Segments,
    pub(crate) recovered: ReplayResult,
}

impl OpenDirectory {
    /// Locks a directory, opens its index and replays its log in memory.
    pub(crate) fn read(options: &RedbOptions) -> Result<Self, OpenError> {
        if options.directory.join(COPYING_FILE).exists() {
            return Err(OpenError::HalfCopied(options.directory.display().to_string()));
        }
        Self::read_unchecked(options)
    }

    fn read_unchecked(options: &RedbOptions) -> Result<Self, OpenError> {
        let directory = options.directory.as_path();
        private::create_directory(directory).map_err(|error| OpenError::io(directory, error))?;
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
            return Err(OpenError::corrupt(index_file, "it is missing, and segments of its log exist"));
        }
        let (index, opened) = Index::open(directory, &disk, options.cache_bytes, store_id(&lock)?)?;
        let recovered = recover::replay(&segments, &opened)?;
        Ok(Self { lock, disk, index, opened, segments, recovered })
    }
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK_FILE);
    let file = private::open_or_create_file(&path).map_err(|error| OpenError::io(&path, error))?;
    match lock_with_retry(&file) {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(OpenError::InUse { directory: directory.to_owned() })
        }
        Err(error) => Err(OpenError::io(path, error)),
    }
}

/// Locks a file for this process; waits a second for one that is being killed and has not let go yet. Blocks.
///
/// # Errors
/// `WouldBlock` when another process has it.
#[expect(clippy::disallowed_methods, reason = "nothing tells that a lock was let go; a second at most, at the start")]
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

/// A name that no other store has: made of the lock file's place on disk and time of birth.
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

fn append_error(directory: &Path, fault: AppendError) -> OpenError {
    let error = match fault {
        AppendError::Full => std::io::ErrorKind::StorageFull.into(),
        AppendError::Broken(what) => std::io::Error::other(what),
    };
    OpenError::io(directory, error)
}

impl RedbEngine {
    pub(crate) fn open(options: &RedbOptions) -> Result<Self, OpenError> {
        Self::start_engine(options, OpenDirectory::read(options)?)
    }

    /// Opens a directory that a copy goes into.
    pub(crate) fn open_for_copy(options: &RedbOptions) -> Result<Self, OpenError> {
        Self::start_engine(options, OpenDirectory::read_unchecked(options)?)
    }

    fn start_engine(options: &RedbOptions, opening: OpenDirectory) -> Result<Self, OpenError> {
        let directory = options.directory.as_path();
        let OpenDirectory { lock, disk, index, mut opened, segments, mut recovered } = opening;
        recovered.repair().map_err(|error| OpenError::io(directory, error))?;
        recover::remove_unfinished(&segments, &disk, recovered.end)?;
        let space = Arc::new(DiskSpace::new(directory, &disk, options.reserve_bytes));
        let start = || LogAppender::start(&segments, &space, opened.store, options.segment_bytes, recovered.end);
        let log = start()
            .or_else(|fault| match fault {
                // A server that was stopped by a full disk must come up to deliver.
                AppendError::Full if space.release_reserve() => start(),
                fault => Err(fault),
            })
            .map_err(|fault| append_error(directory, fault))?;
        if opened.position.segment == 0 {
            // From here on, the first segment must be there.
            let first = index.checkpoint(&MemTable::default(), log.position(), &mut opened.live);
            first.map_err(|fault| OpenError::corrupt(directory.join(INDEX_FILE), format!("{fault:?}")))?;
            opened.position = log.position();
        }
        let base = index
            .index_snapshot()
            .map_err(|fault| OpenError::corrupt(directory.join(INDEX_FILE), format!("it cannot be read: {fault:?}")))?;
        tracing::info!(
            directory = %directory.display(), groups = recovered.groups, bytes = recovered.bytes, "the store is open"
        );
        let table = std::mem::take(&mut recovered.table);
        let shared = Arc::new(EngineState::new(table, base, segments, options.in_place));
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

    /// The same for a thread of its own, outside any runtime.
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
        // No answer: a checkpoint is not possible now.
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

/// What the two threads own.
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
            // The writer, and with it the way to new jobs, is gone: the thread comes to its end.
            drop(checkpoints.join());
            drop(lock);
            if let Some(closer) = closer {
                let _ = closer.send(());
            }
        };
        spawn("store-writer", fence, run).map_err(failed)?;
        // What was replayed goes to the index while the server starts.
        drop(inbox.try_send(WriterCommand::Freeze));
        Ok(RedbEngine { shared, inbox })
    }
}

/// A thread whose panic, a bug, ends all writing instead of going unseen.
fn spawn(name: &str, shared: Arc<EngineState>, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            shared.fence("a thread of the store was stopped by a bug");
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(guarded)
}
