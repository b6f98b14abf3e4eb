//! The storage surface: an ordered key-value store with checked batches, and the engines behind it.
//!
//! ```text
//! get_many(keys) · scan(range, order, limit)      rows of one snapshot
//! body(key)                                       raw bytes, whole
//! commit(batch)                                   checks, puts, deletes, bodies: atomic
//! ```
//!
//! An operation of a noun needs at most one `get_many`, one `scan` and one `commit`. A read on which a write depends is
//! passed as checks of the batch (optimistic concurrency); after [`CommitError::Conflict`], read again and decide
//! again. A commit returns when it is durable. Readers see only durable data.
//!
//! Engines: [`Store::open`] uses a commit log in front of redb (`engine/redb.rs`), for one node. [`Store::connect`]
//! uses PostgreSQL (`engine/postgres.rs`), for any number of nodes. [`Store::memory`] is the model against which the
//! others are tested.

mod batch;
mod check;
pub mod copy;
mod error;
pub mod fault_injection;
mod health;
mod memory;
mod postgres;
pub mod private_files;
mod redb;
pub mod start_wait;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use batch::{BATCH_BYTES_MAX, BODY_BYTES_MAX, Batch, BatchPurpose, Body, KEY_BYTES_MAX, TooLarge, VALUE_BYTES_MAX};
pub use check::{CheckError, Damage, Object, PROBLEMS_MAX, Report};
pub use error::{BackupError, CommitError, OpenError, ReadError, Result, StoreError};
pub use fault_injection::FaultInjector;
pub use health::{BackupProgress, Health, StoreState};
pub use postgres::PostgresOptions;
pub use redb::lock_with_retry;

use crate::queue_counts::{CommitResult, QueueCounts};

/// A row's key; built by `key.rs`.
pub type Key = Bytes;
pub type Value = Bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    Ascending,
    Descending,
}

#[derive(Debug, Clone)]
pub struct RedbOptions {
    /// Directory of all files; created if absent.
    pub directory: PathBuf,
    /// Size of the disk reserve, which lets delivery continue when the disk is full.
    pub reserve_bytes: u64,
    /// Size of a log segment. Bodies are freed by whole segments.
    pub segment_bytes: u64,
    /// Memtable size that starts a checkpoint; twice this size is the hard limit.
    pub table_bytes: u64,
    /// Amount of log to replay that starts a checkpoint.
    pub replay_bytes: u64,
    /// Maximum time between checkpoints while there is something to write.
    pub checkpoint_interval: Duration,
    /// Size of redb's cache.
    pub cache_bytes: usize,
    /// Maximum time that a step of a read may block a runtime thread: more than a read from memory takes, and less than
    /// a read from disk. A read that takes longer continues on a blocking thread.
    pub in_place: Duration,
    /// Interval at which free disk space is checked and timed work is started.
    pub tick: Duration,
    /// Injected disk errors, for tests.
    pub faults: Option<FaultInjector>,
}

impl RedbOptions {
    /// The default options for a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            reserve_bytes: 64 << 20,
            segment_bytes: 64 << 20,
            table_bytes: 32 << 20,
            // Replay reads this much in a few tenths of a second after a crash.
            replay_bytes: 256 << 20,
            checkpoint_interval: Duration::from_secs(10),
            cache_bytes: 96 << 20,
            in_place: Duration::from_micros(50),
            tick: Duration::from_secs(1),
            faults: None,
        }
    }
}

/// Format of a stored store, and the formats that this version reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreFormat {
    /// The newest format of the files; `None` if nothing is stored yet.
    pub stored: Option<u32>,
    pub oldest_readable: u32,
    /// Also the format that this version writes.
    pub newest_readable: u32,
}

/// The store. Clones share it.
#[derive(Clone)]
pub struct Store {
    engine: AnyEngine,
    counts: Arc<QueueCounts>,
}

impl fmt::Debug for Store {
    /// Prints only the engine's name, because the content is mail.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.engine {
            AnyEngine::Memory(_) => "Store(memory)",
            AnyEngine::Redb(_) => "Store(redb)",
            AnyEngine::Postgres(_) => "Store(postgres)",
        })
    }
}

#[derive(Clone)]
enum AnyEngine {
    Memory(Arc<memory::MemoryEngine>),
    Redb(Arc<redb::RedbEngine>),
    Postgres(Arc<postgres::PostgresEngine>),
}

impl Store {
    fn with_engine(engine: AnyEngine) -> Self {
        Self { engine, counts: Arc::default() }
    }

    /// Counts of queued recipients, as far as this process has counted them.
    pub fn queue_counts(&self) -> &Arc<QueueCounts> {
        &self.counts
    }

    /// Creates an empty store in memory.
    pub fn memory() -> Self {
        Self::with_engine(AnyEngine::Memory(Arc::default()))
    }

    /// Opens or creates a store in a directory.
    ///
    /// # Errors
    /// Another process has it open, its data is damaged or has a newer format, or the disk fails.
    pub fn open(options: &RedbOptions) -> Result<Self, OpenError> {
        Ok(Self::with_engine(AnyEngine::Redb(Arc::new(redb::RedbEngine::open(options)?))))
    }

    /// Opens or creates a store for a server, whose first commit must succeed. If the disk is full, the reserve is
    /// released; no log segment is created if that is not enough.
    ///
    /// # Errors
    /// Like [`Self::open`]; also if there is no space for the first commit.
    pub fn open_writable(options: &RedbOptions) -> Result<Self, OpenError> {
        Ok(Self::with_engine(AnyEngine::Redb(Arc::new(redb::RedbEngine::open_writable(options)?))))
    }

    /// Connects to a PostgreSQL database, which any number of nodes may share, and creates its tables if needed.
    ///
    /// # Errors
    /// The database cannot be reached or used, or belongs to another cluster or a newer version. Nothing is written
    /// then.
    pub async fn connect(database: &PostgresOptions) -> Result<Self, OpenError> {
        let open = postgres::PostgresEngine::open(database, postgres::OpenMode::Serve);
        Ok(Self::with_engine(AnyEngine::Postgres(Arc::new(open.await?))))
    }

    /// Connects to the store in a PostgreSQL database; `None` if the database contains none. Nothing is written.
    ///
    /// # Errors
    /// Like [`Self::connect`].
    pub async fn connect_existing(database: &PostgresOptions) -> Result<Option<Self>, OpenError> {
        if postgres::read_format(database).await?.stored.is_none() {
            return Ok(None);
        }
        let open = postgres::PostgresEngine::open(database, postgres::OpenMode::Existing);
        Ok(Some(Self::with_engine(AnyEngine::Postgres(Arc::new(open.await?)))))
    }

    /// Reads the format of a directory without opening it: a server may run on it.
    ///
    /// # Errors
    /// It has a newer format than this version reads, or cannot be read.
    pub fn format(options: &RedbOptions) -> Result<StoreFormat, OpenError> {
        redb::format::read(&options.directory)
    }

    /// Reads the format of a database, and writes nothing.
    ///
    /// # Errors
    /// It has a newer format than this version reads, belongs to another cluster, or cannot be reached.
    pub async fn database_format(database: &PostgresOptions) -> Result<StoreFormat, OpenError> {
        postgres::read_format(database).await
    }

    /// Returns whether other processes can use the same store concurrently.
    pub fn is_shared(&self) -> bool {
        matches!(self.engine, AnyEngine::Postgres(_))
    }

    /// Reads the rows of these keys, in their order, from one snapshot.
    pub async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.get_many(keys)),
            AnyEngine::Redb(redb) => redb.shared.get_many(keys).await,
            AnyEngine::Postgres(postgres) => postgres.get_many(keys).await,
        }
    }

    /// Reads one row. Use [`Store::get_many`] for several.
    pub async fn get(&self, key: &Key) -> Result<Option<Value>> {
        Ok(self.get_many(std::slice::from_ref(key)).await?.pop().flatten())
    }

    /// Reads at most `limit` rows of a range (start inclusive, end exclusive) from one snapshot.
    pub async fn scan(&self, range: Range<Key>, order: ScanOrder, limit: usize) -> Result<Vec<(Key, Value)>> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.scan(&range, order, limit)),
            AnyEngine::Redb(redb) => redb.shared.scan(range, order, limit).await,
            AnyEngine::Postgres(postgres) => postgres.scan(range, order, limit).await,
        }
    }

    /// Reads at most `limit` rows of each range. Where [`Store::parallel_scans`] is more than one, all ranges are read
    /// from one snapshot, and reads from disk run concurrently.
    pub async fn scan_each(
        &self,
        ranges: &[Range<Key>],
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<Vec<(Key, Value)>>> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.scan_each(ranges, order, limit)),
            AnyEngine::Redb(redb) => redb.shared.scan_each(ranges, order, limit).await,
            AnyEngine::Postgres(postgres) => {
                let mut found = Vec::with_capacity(ranges.len());
                for range in ranges {
                    found.push(postgres.scan(range.clone(), order, limit).await?);
                }
                Ok(found)
            }
        }
    }

    /// The useful number of concurrent ranges of a scan. PostgreSQL reads ahead by itself, so it is one there.
    pub fn parallel_scans(&self) -> usize {
        match &self.engine {
            AnyEngine::Memory(_) | AnyEngine::Redb(_) => 8,
            AnyEngine::Postgres(_) => 1,
        }
    }

    /// Reads a whole body.
    ///
    /// # Errors
    /// The disk or the database fails, or the bytes do not match their checksum.
    pub async fn body(&self, key: &Key) -> Result<Option<Bytes>> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.body(key)),
            AnyEngine::Redb(redb) => redb.body(key).await,
            AnyEngine::Postgres(postgres) => postgres.body(key).await,
        }
    }

    /// Applies a batch atomically and returns when it is durable.
    ///
    /// # Errors
    /// A check failed, or the batch cannot be written now; see [`CommitError`].
    pub async fn commit(&self, mut batch: Batch) -> Result<(), CommitError> {
        let count = self.counts.begin(std::mem::take(&mut batch.tasks));
        let committed = match &self.engine {
            AnyEngine::Memory(memory) => memory.commit(batch),
            AnyEngine::Redb(redb) => redb.commit(batch).await,
            AnyEngine::Postgres(postgres) => postgres.commit(batch).await,
        };
        count.end(match &committed {
            Ok(()) => CommitResult::Stored,
            Err(CommitError::Unknown(_) | CommitError::Fenced(_)) => CommitResult::Unknown,
            Err(_) => CommitResult::Refused,
        });
        committed
    }

    /// Like [`Self::commit`], but returns false after a conflict.
    ///
    /// # Errors
    /// The batch cannot be written now.
    pub async fn try_commit(&self, batch: Batch) -> Result<bool, CommitError> {
        match self.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// State and size of the store.
    pub fn health(&self) -> Health {
        match &self.engine {
            AnyEngine::Memory(memory) => memory.health(),
            AnyEngine::Redb(redb) => redb.health(),
            AnyEngine::Postgres(postgres) => postgres.health(),
        }
    }

    /// Returns whether the database is unavailable for writes or for reads. The store logs an outage itself, once a
    /// minute, so callers need not.
    pub fn is_away(&self) -> bool {
        match &self.engine {
            AnyEngine::Memory(_) | AnyEngine::Redb(_) => false,
            AnyEngine::Postgres(postgres) => postgres.has_outage(),
        }
    }

    /// Writes a last checkpoint and releases the directory. Later commits are refused.
    pub async fn close(&self) {
        match &self.engine {
            AnyEngine::Memory(_) => {}
            AnyEngine::Redb(redb) => redb.close().await,
            AnyEngine::Postgres(postgres) => postgres.close().await,
        }
    }

    /// Writes a snapshot of all rows and bodies to one checksummed file, without blocking other work.
    ///
    /// # Errors
    /// The file exists or cannot be written, or the store cannot be read.
    pub async fn backup(
        &self,
        file: &Path,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackupProgress, BackupError> {
        match &self.engine {
            AnyEngine::Memory(memory) => {
                let (rows, bodies) = memory.read_all();
                let (rows, bodies) = (rows.into_iter().map(Ok), bodies.into_iter().map(Ok));
                redb::backup::write(file, Box::new(rows), Box::new(bodies), progress)
            }
            AnyEngine::Redb(redb) => redb.backup(file, progress).await,
            AnyEngine::Postgres(postgres) => postgres.backup(file, progress).await,
        }
    }

    /// Returns when everything committed before is checkpointed, so that a restart has nothing to replay. Does not
    /// block other work.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub async fn flush(&self) -> Result<(), CommitError> {
        match &self.engine {
            // A commit in PostgreSQL is already in its final place.
            AnyEngine::Memory(_) | AnyEngine::Postgres(_) => Ok(()),
            AnyEngine::Redb(redb) => redb.flush().await,
        }
    }

    /// Runs an integrity check on the running store: reads every row and every body.
    pub async fn verify(&self) -> Result<Report, CheckError> {
        self.verify_watched(|_| ControlFlow::Continue(())).await
    }

    /// Runs an integrity check on a snapshot of the running store. `progress` is called regularly and cancels the check
    /// by returning [`ControlFlow::Break`], even after this future was dropped. Until the check ends, the embedded
    /// store frees no disk space.
    ///
    /// # Errors
    /// The flush before it failed ([`Store::flush`]), the database cannot be read, or `progress` cancelled the check.
    pub async fn verify_watched(
        &self,
        progress: impl FnMut(BackupProgress) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Report, CheckError> {
        match &self.engine {
            AnyEngine::Memory(memory) => {
                let (rows, bodies) = memory.read_all();
                let (rows, bodies) = (rows.into_iter().map(Ok), bodies.into_iter().map(Ok));
                check::Check::new(progress).all(Box::new(rows), Box::new(bodies))
            }
            AnyEngine::Redb(redb) => redb.verify(progress).await,
            AnyEngine::Postgres(postgres) => postgres.verify(progress).await,
        }
    }

    /// Restores a backup into a directory, which must be empty or absent. Blocks.
    ///
    /// # Errors
    /// The backup is damaged (nothing is written then), or the directory cannot be written.
    pub fn restore(
        file: &Path,
        options: &RedbOptions,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackupProgress, BackupError> {
        Self::restore_with(file, options, Batch::progress(), progress)
    }

    /// Like [`Store::restore`], and also writes the rows of `additional` before the directory can be opened.
    pub fn restore_with(
        file: &Path,
        options: &RedbOptions,
        additional: Batch,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackupProgress, BackupError> {
        redb::backup::restore(file, options, additional, progress)
    }

    /// Runs an integrity check on a directory that no process has open. Blocks.
    ///
    /// # Errors
    /// The directory cannot be opened at all.
    pub fn check(options: &RedbOptions) -> Result<Report, OpenError> {
        Self::check_watched(options, |_| {})
    }

    /// Like [`Store::check`], and calls `progress` regularly.
    pub fn check_watched(options: &RedbOptions, progress: impl FnMut(BackupProgress)) -> Result<Report, OpenError> {
        redb::check(options, progress)
    }
}
