//! Copies a store into another engine: from a directory into a database, or back.
//!
//! ```text
//! snapshot of the source ─► copy keys beyond the target's last key ─► compare row by row ─► done
//! ```
//!
//! No server may run on either. The target is marked until the copy is complete and compared, and cannot be opened
//! before. An interrupted copy continues where it stopped, because it proceeds in key order. Rows about nodes are
//! copied too; the servers of the copy will find those nodes dead.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use message::hexadecimal;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::runtime::Handle;

use super::postgres::{OpenMode, PostgresEngine, PostgresOptions};
use super::redb::backup::RowIterator;
use super::redb::{COPYING_FILE, RedbEngine};
use super::{
    AnyEngine, BackupProgress, Batch, CommitError, Key, OpenError, ReadError, RedbOptions, Store, private_files,
};

/// Limits of one commit.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 5_000;
/// How long a database is watched for heartbeats of running nodes: several heartbeat intervals.
const WATCH: Duration = Duration::from_secs(3);

/// A store to copy from or to.
#[derive(Clone)]
pub enum StoreLocation {
    Directory(RedbOptions),
    Database(PostgresOptions),
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(options) => options.directory.fmt(f),
            Self::Database(database) => database.fmt(f),
        }
    }
}

/// Why a copy is not complete.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The source or the target cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source or the target cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The target cannot be written. A later copy continues from there.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A node is running on the database.
    #[error("node `{0}` is running on this database: stop all nodes first")]
    NodeActive(String),
    /// The target directory contains other files.
    #[error("{0} is not empty: copy into an empty directory")]
    NotEmpty(String),
    /// The final comparison found a difference.
    #[error("the copy differs from its source ({0}): empty the target and copy again")]
    Differs(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyProgress {
    /// Rows and bodies in the target so far.
    Copied(BackupProgress),
    /// Rows and bodies compared so far.
    Compared(BackupProgress),
}

/// Copies all rows and bodies of a store into another one and compares both. Returns the totals and a SHA-256 sum over
/// all keys and values.
pub async fn copy(
    from: &StoreLocation,
    into: &StoreLocation,
    mut step: impl FnMut(CopyProgress) + Send + 'static,
) -> Result<(BackupProgress, String), CopyError> {
    let source = open_source(from).await?;
    let target = open_target(into).await?;
    let (rows, bodies) = read_all(&target).await?;
    // The copy proceeds in key order, so existing target rows are a prefix of the source.
    let last_keys = tokio::task::spawn_blocking(move || Ok::<_, ReadError>((last_key(rows)?, last_key(bodies)?)));
    let (row, body) = last_keys.await.map_err(std::io::Error::other)??;
    let (rows, bodies) = read_all(&source).await?;
    let writing = target.clone();
    let runtime = Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        let mut copy = CopyTask { target: &writing, runtime, done: BackupProgress::default(), step: &mut step };
        copy.run(rows, row.as_ref(), |batch, key, value| _ = batch.put(key, value), |done| &mut done.rows)?;
        copy.run(bodies, body.as_ref(), |batch, key, body| _ = batch.put_body(key, body), |done| &mut done.bodies)?;
        Ok::<_, CopyError>(step)
    });
    let mut step = work.await.map_err(std::io::Error::other)??;
    let (source_rows, target_rows) = (read_all(&source).await?, read_all(&target).await?);
    let work = tokio::task::spawn_blocking(move || compare(source_rows, target_rows, &mut step));
    let compared = work.await.map_err(std::io::Error::other)??;
    finish(into, &target).await?;
    source.close().await;
    Ok(compared)
}

async fn open_source(location: &StoreLocation) -> Result<Store, CopyError> {
    match location {
        StoreLocation::Directory(options) if !options.directory.is_dir() => {
            let error = std::io::Error::from(std::io::ErrorKind::NotFound);
            Err(OpenError::io(&options.directory, error).into())
        }
        StoreLocation::Directory(options) => Ok(Store::open(options)?),
        StoreLocation::Database(database) => {
            let store = PostgresEngine::open(database, OpenMode::CopyFrom).await?;
            let store = Store::with_engine(AnyEngine::Postgres(Arc::new(store)));
            let before = crate::lease::read_view(&store).await?;
            tokio::time::sleep(WATCH).await;
            let after = crate::lease::read_view(&store).await?;
            match after.nodes.iter().find(|node| !before.nodes.contains(node)) {
                Some(alive) => Err(CopyError::NodeActive(alive.node.name.clone())),
                None => Ok(store),
            }
        }
    }
}

async fn open_target(location: &StoreLocation) -> Result<Store, CopyError> {
    match location {
        StoreLocation::Directory(options) => {
            let marker = options.directory.join(COPYING_FILE);
            if !marker.exists() {
                let is_occupied = std::fs::read_dir(&options.directory).is_ok_and(|mut found| found.next().is_some());
                if is_occupied {
                    return Err(CopyError::NotEmpty(options.directory.display().to_string()));
                }
                private_files::create_directory(&options.directory)?;
                private_files::create_file(&marker)?.sync_all()?;
            }
            Ok(Store::with_engine(AnyEngine::Redb(Arc::new(RedbEngine::open_for_copy(options)?))))
        }
        StoreLocation::Database(database) => {
            let store = PostgresEngine::open(database, OpenMode::CopyInto).await?;
            Ok(Store::with_engine(AnyEngine::Postgres(Arc::new(store))))
        }
    }
}

async fn finish(location: &StoreLocation, target: &Store) -> Result<(), CopyError> {
    match (location, &target.engine) {
        (StoreLocation::Database(_), AnyEngine::Postgres(postgres)) => postgres.finish_copy().await?,
        (StoreLocation::Directory(options), _) => {
            target.flush().await?;
            target.close().await;
            std::fs::remove_file(options.directory.join(COPYING_FILE))?;
            std::fs::File::open(&options.directory)?.sync_all()?;
        }
        _ => {}
    }
    target.close().await;
    Ok(())
}

async fn read_all(store: &Store) -> Result<(RowIterator, RowIterator), CopyError> {
    match &store.engine {
        AnyEngine::Redb(redb) => {
            let everything = redb.read_all().await?;
            let read = tokio::task::spawn_blocking(everything);
            Ok(read.await.map_err(std::io::Error::other)??)
        }
        AnyEngine::Postgres(postgres) => Ok(postgres.read_all().await?),
        AnyEngine::Memory(memory) => {
            let (rows, bodies) = memory.read_all();
            Ok((Box::new(rows.into_iter().map(Ok)), Box::new(bodies.into_iter().map(Ok))))
        }
    }
}

fn last_key(rows: RowIterator) -> Result<Option<Key>, ReadError> {
    let mut last = None;
    for row in rows {
        last = Some(row?.0);
    }
    Ok(last)
}

/// A copy in progress, on a blocking thread.
struct CopyTask<'a, F> {
    target: &'a Store,
    runtime: Handle,
    done: BackupProgress,
    step: &'a mut F,
}

impl<F: FnMut(CopyProgress)> CopyTask<'_, F> {
    /// Copies the rows after `last`, the target's last key.
    fn run(
        &mut self,
        rows: RowIterator,
        last: Option<&Key>,
        put: impl Fn(&mut Batch, Key, Bytes),
        count: impl Fn(&mut BackupProgress) -> &mut u64,
    ) -> Result<(), CopyError> {
        let mut batch = Batch::progress();
        let (mut size_bytes, mut batch_rows) = (0, 0);
        for row in rows {
            let (key, value) = row?;
            *count(&mut self.done) += 1;
            if last.is_some_and(|last| key <= *last) {
                continue;
            }
            size_bytes += key.len() + value.len();
            batch_rows += 1;
            put(&mut batch, key, value);
            if size_bytes >= BATCH_BYTES || batch_rows >= BATCH_ROWS {
                self.done.bytes += size_bytes as u64;
                (size_bytes, batch_rows) = (0, 0);
                self.commit(std::mem::replace(&mut batch, Batch::progress()))?;
            }
        }
        self.done.bytes += size_bytes as u64;
        self.commit(batch)
    }

    fn commit(&mut self, batch: Batch) -> Result<(), CopyError> {
        self.runtime.block_on(self.target.commit(batch))?;
        (self.step)(CopyProgress::Copied(self.done));
        Ok(())
    }
}

/// Number of rows between two progress reports of the comparison.
const PROGRESS_ROWS: u64 = 20_000;

fn compare(
    source_rows: (RowIterator, RowIterator),
    target_rows: (RowIterator, RowIterator),
    step: &mut impl FnMut(CopyProgress),
) -> Result<(BackupProgress, String), CopyError> {
    let mut done = BackupProgress::default();
    let mut sum = Sha256::new();
    for (bodies, source_rows, mut target_rows) in
        [(false, source_rows.0, target_rows.0), (true, source_rows.1, target_rows.1)]
    {
        for row in source_rows {
            let (key, value) = row?;
            match target_rows.next().transpose()? {
                Some((their_key, their_value)) if their_key == key && their_value == value => {}
                Some((their_key, _)) if their_key == key => {
                    return Err(CopyError::Differs(format!("the content of {key:02x?}")));
                }
                _ => return Err(CopyError::Differs(format!("{key:02x?} is missing"))),
            }
            for part in [&key, &value] {
                sum.update((part.len() as u64).to_le_bytes());
                sum.update(part);
            }
            done.bytes += (key.len() + value.len()) as u64;
            *(if bodies { &mut done.bodies } else { &mut done.rows }) += 1;
            if (done.rows + done.bodies).is_multiple_of(PROGRESS_ROWS) {
                step(CopyProgress::Compared(done));
            }
        }
        if let Some((key, _)) = target_rows.next().transpose()? {
            return Err(CopyError::Differs(format!("{key:02x?} is not in the source")));
        }
    }
    step(CopyProgress::Compared(done));
    Ok((done, hexadecimal::encode(sum.finalize())))
}
