//! The storage surface: an ordered key-value store with checked batches, and the engines behind it.
//!
//! ```text
//! get_many(keys) · scan(range, order, limit)      rows, as of one moment
//! body(key)                                       raw bytes, whole
//! commit(batch)                                   checks, puts, deletes, bodies: whole or not at all
//! ```
//!
//! Every operation of the nouns is at most one `get_many`, one `scan` and one `commit`; a read that
//! decides a write comes back as the batch's checks, and a [`CommitError::Conflict`] means: read again.
//! A commit returns when it is durable. Readers see only what is durable.
//!
//! Engines: [`Store::open`] is the commit log in front of redb (see `engine/redb.rs`), for one machine;
//! [`Store::connect`] is PostgreSQL (see `engine/postgres.rs`), for any number of nodes; [`Store::memory`]
//! is the model that the others are measured against.

mod batch;
mod check;
pub mod copy;
mod fault;
pub mod faults;
mod health;
mod memory;
mod postgres;
pub mod private;
mod redb;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use batch::{BATCH_BYTES_MAX, BODY_BYTES_MAX, Batch, BatchPurpose, Body, KEY_BYTES_MAX, TooLarge, VALUE_BYTES_MAX};
pub use check::{CheckError, Damage, Object, PROBLEMS_MAX, Report};
pub use fault::{BackupError, CommitError, OpenError, ReadError};
pub use faults::FaultInjector;
pub use health::{BackupProgress, Health, StoreState};
pub use postgres::PostgresOptions;
pub use redb::lock_with_retry;

use crate::queue_counts::{Ended, QueueCounts};

/// A row's key; `key.rs` makes them.
pub type Key = Bytes;
/// A row's value.
pub type Value = Bytes;

/// Which end of a range comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// Smallest key first.
    Ascending,
    /// Greatest key first.
    Descending,
}

/// How the redb engine keeps its directory.
#[derive(Debug, Clone)]
pub struct RedbOptions {
    /// Where everything lives; made if absent.
    pub directory: PathBuf,
    /// Disk kept back so that delivery goes on when the disk is full.
    pub reserve_bytes: u64,
    /// A log segment's size; bodies are freed by whole segments.
    pub segment_bytes: u64,
    /// A checkpoint starts when the rows in memory take this much (the hard limit is twice it) …
    pub table_bytes: u64,
    /// … or when this much log would have to be replayed …
    pub replay_bytes: u64,
    /// … or after this time with something to write.
    pub checkpoint_interval: Duration,
    /// What redb may keep in memory.
    pub cache_bytes: usize,
    /// How long a step of a read may take on a thread of the runtime: longer than it does in memory, and less than a
    /// disk takes. What takes longer goes on beside the runtime.
    pub in_place: Duration,
    /// How often room on the disk is looked at, and what is due by time started.
    pub tick: Duration,
    /// Disk errors on purpose, for tests.
    pub faults: Option<FaultInjector>,
}

impl RedbOptions {
    /// The defaults, for this directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            reserve_bytes: 64 << 20,
            segment_bytes: 64 << 20,
            table_bytes: 32 << 20,
            // Replayed at the disk's reading speed after a crash: this much in a few tenths of a second.
            replay_bytes: 256 << 20,
            checkpoint_interval: Duration::from_secs(10),
            cache_bytes: 96 << 20,
            in_place: Duration::from_micros(50),
            tick: Duration::from_secs(1),
            faults: None,
        }
    }
}

/// The store. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    engine: AnyEngine,
    counts: Arc<QueueCounts>,
}

impl fmt::Debug for Store {
    /// The engine's name alone: what is stored is mail.
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
    fn over(engine: AnyEngine) -> Self {
        Self { engine, counts: Arc::default() }
    }

    /// How many recipients are queued, as far as they are counted here.
    #[must_use]
    pub fn queue_counts(&self) -> &Arc<QueueCounts> {
        &self.counts
    }

    /// An empty store in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::over(AnyEngine::Memory(Arc::default()))
    }

    /// Opens a directory, or starts one.
    ///
    /// # Errors
    /// Another process has it; its data is damaged or of a newer version; the disk refuses.
    pub fn open(options: &RedbOptions) -> Result<Self, OpenError> {
        Ok(Self::over(AnyEngine::Redb(Arc::new(redb::RedbEngine::open(options)?))))
    }

    /// Connects to a database that any number of nodes share, and makes its tables if there are none.
    ///
    /// # Errors
    /// It cannot be reached or used, or belongs to another cluster or a newer version; nothing is written
    /// then.
    pub async fn connect(database: &PostgresOptions) -> Result<Self, OpenError> {
        let open = postgres::PostgresEngine::open(database, postgres::OpenMode::Serve);
        Ok(Self::over(AnyEngine::Postgres(Arc::new(open.await?))))
    }

    /// Whether other processes may work on the same store at the same time.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.engine, AnyEngine::Postgres(_))
    }

    /// The rows of these keys, in their order, all as of one moment.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>, ReadError> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.get_many(keys)),
            AnyEngine::Redb(redb) => redb.shared.get_many(keys).await,
            AnyEngine::Postgres(postgres) => postgres.get_many(keys).await,
        }
    }

    /// The row of one key. (For several, [`Store::get_many`] asks once.)
    ///
    /// # Errors
    /// The disk fails.
    pub async fn get(&self, key: &Key) -> Result<Option<Value>, ReadError> {
        Ok(self.get_many(std::slice::from_ref(key)).await?.pop().flatten())
    }

    /// At most `limit` rows of a range (start included, end not), as of one moment.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn scan(
        &self,
        range: Range<Key>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Value)>, ReadError> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.scan(&range, order, limit)),
            AnyEngine::Redb(redb) => redb.shared.scan(range, order, limit).await,
            AnyEngine::Postgres(postgres) => postgres.scan(range, order, limit).await,
        }
    }

    /// At most `limit` rows of each of some ranges, one list each. Where [`Store::side_by_side`] is more than one, all
    /// as of one moment, and what has to come from the disk is read side by side.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn scan_each(
        &self,
        ranges: &[Range<Key>],
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<Vec<(Key, Value)>>, ReadError> {
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

    /// How many ranges it is worth to ask for at once: a database reads ahead by itself.
    #[must_use]
    pub fn parallel_scans(&self) -> usize {
        match &self.engine {
            AnyEngine::Memory(_) | AnyEngine::Redb(_) => 8,
            AnyEngine::Postgres(_) => 1,
        }
    }

    /// A body, whole.
    ///
    /// # Errors
    /// The disk fails, or the bytes are not those that were written.
    pub async fn body(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        match &self.engine {
            AnyEngine::Memory(memory) => Ok(memory.body(key)),
            AnyEngine::Redb(redb) => redb.body(key).await,
            AnyEngine::Postgres(postgres) => postgres.body(key).await,
        }
    }

    /// Applies a batch whole; returns when it is durable.
    ///
    /// # Errors
    /// A check failed, or the batch cannot be written now: see [`CommitError`].
    pub async fn commit(&self, mut batch: Batch) -> Result<(), CommitError> {
        let count = self.counts.begin(std::mem::take(&mut batch.tasks));
        let committed = match &self.engine {
            AnyEngine::Memory(memory) => memory.commit(batch),
            AnyEngine::Redb(redb) => redb.commit(batch).await,
            AnyEngine::Postgres(postgres) => postgres.commit(batch).await,
        };
        count.end(match &committed {
            Ok(()) => Ended::Stored,
            Err(CommitError::Unknown(_) | CommitError::Fenced(_)) => Ended::Unknown,
            Err(_) => Ended::Refused,
        });
        committed
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.engine {
            AnyEngine::Memory(memory) => memory.health(),
            AnyEngine::Redb(redb) => redb.health(),
            AnyEngine::Postgres(postgres) => postgres.health(),
        }
    }

    /// Whether the database does not answer those who write, or those who read. The store logs that itself, once a
    /// minute: whoever meets the outage need not.
    #[must_use]
    pub fn is_away(&self) -> bool {
        match &self.engine {
            AnyEngine::Memory(_) | AnyEngine::Redb(_) => false,
            AnyEngine::Postgres(postgres) => postgres.has_outage(),
        }
    }

    /// Writes everything to its place and lets the directory go. Commits after it are refused.
    pub async fn close(&self) {
        match &self.engine {
            AnyEngine::Memory(_) => {}
            AnyEngine::Redb(redb) => redb.close().await,
            AnyEngine::Postgres(postgres) => postgres.close().await,
        }
    }

    /// Writes all rows and bodies, as of one moment, to one checksummed file, while work goes on.
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

    /// Returns when everything committed before is in its lasting place, and a restart has nothing to
    /// replay. Work goes on meanwhile.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub async fn flush(&self) -> Result<(), CommitError> {
        match &self.engine {
            // What PostgreSQL has committed is in its lasting place.
            AnyEngine::Memory(_) | AnyEngine::Postgres(_) => Ok(()),
            AnyEngine::Redb(redb) => redb.flush().await,
        }
    }

    /// Reads every row and every body of the running store and says what is wrong.
    ///
    /// # Errors
    /// As [`Store::verify_watched`].
    pub async fn verify(&self) -> Result<Report, CheckError> {
        self.verify_watched(|_| ControlFlow::Continue(())).await
    }

    /// The same, of one moment, while work goes on. `progress` is told how far it is, and ends it by
    /// [`ControlFlow::Break`]; that is also how to end it after this future was dropped. Until it ends, the embedded
    /// store frees no room on the disk.
    ///
    /// # Errors
    /// As [`Store::flush`], which comes first; the database cannot be read; `progress` ended it.
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

    /// Makes a directory from a backup. Blocks; the directory must be empty or absent.
    ///
    /// # Errors
    /// The backup is damaged (then nothing was written), or the directory cannot be.
    pub fn restore(
        file: &Path,
        options: &RedbOptions,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackupProgress, BackupError> {
        Self::restore_with(file, options, Batch::progress(), progress)
    }

    /// The same, with more rows: they are there before anybody can open the directory.
    ///
    /// # Errors
    /// As [`Store::restore`].
    pub fn restore_with(
        file: &Path,
        options: &RedbOptions,
        also: Batch,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackupProgress, BackupError> {
        redb::backup::restore(file, options, also, progress)
    }

    /// Reads everything in a directory that no process has open and says what is wrong with it. Blocks.
    ///
    /// # Errors
    /// The directory cannot be opened at all.
    pub fn check(options: &RedbOptions) -> Result<Report, OpenError> {
        Self::check_watched(options, |_| {})
    }

    /// The same; `progress` is told how far it is.
    ///
    /// # Errors
    /// As [`Store::check`].
    pub fn check_watched(options: &RedbOptions, progress: impl FnMut(BackupProgress)) -> Result<Report, OpenError> {
        redb::check(options, progress)
    }
}
