//! Copying a store into another engine: from a directory into a database, and back.
//!
//! ```text
//! source, as of one moment ─► what the target lacks, in key order ─► compare both, row by row ─► done
//! ```
//!
//! No server works on either. The target is marked until the copy is whole and compared, and cannot be
//! opened before; a copy that was cut off goes on where it stopped, since it goes by key. Rows about nodes
//! come along: whoever serves the copy finds that they are dead.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::runtime::Handle;

use super::postgres::{Database, Postgres, Use};
use super::redb::backup::Rows;
use super::redb::{COPYING_FILE, Redb};
use super::{Batch, CommitError, Engine, Key, OpenError, Options, Progress, ReadError, Store, private};

/// What is written in one commit.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 5_000;
/// How long a database is watched for nodes that are at work on it: several times what they take to show.
const WATCH: Duration = Duration::from_secs(3);

/// A store to copy from or into.
#[derive(Clone)]
pub enum Place {
    /// A directory of the redb engine.
    Directory(Options),
    /// A PostgreSQL database.
    Database(Database),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(options) => options.directory.fmt(f),
            Self::Database(database) => database.fmt(f),
        }
    }
}

/// Why a copy is not whole.
#[derive(Debug, Error)]
pub enum CopyError {
    /// One of the two cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The target cannot be written. What is copied stays: the next copy goes on from there.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A server is at work.
    #[error("the node `{0}` is at work on it: stop all nodes first")]
    AtWork(String),
    /// The target directory holds something else.
    #[error("{0} is not empty: a copy goes into an empty directory")]
    NotEmpty(String),
    /// The two are not the same at the end.
    #[error("the copy differs from its source ({0}): empty the target and copy again")]
    Differs(String),
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rows and bodies that are in the target by now.
    Copied(Progress),
    /// Rows and bodies that were compared.
    Compared(Progress),
}

/// Copies everything in one store into another, and compares. The sum is over all keys and contents.
///
/// # Errors
/// [`CopyError`].
pub async fn copy(
    from: &Place,
    into: &Place,
    mut step: impl FnMut(Step) + Send + 'static,
) -> Result<(Progress, String), CopyError> {
    let source = open_source(from).await?;
    let target = open_target(into).await?;
    let (rows, bodies) = everything(&target).await?;
    // Keys go up, so what is there is the beginning of what must be.
    let there = tokio::task::spawn_blocking(move || Ok::<_, ReadError>((last(rows)?, last(bodies)?)));
    let (row, body) = there.await.map_err(std::io::Error::other)??;
    let (rows, bodies) = everything(&source).await?;
    let writing = target.clone();
    let runtime = Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        let mut copy = Copy { target: &writing, runtime, done: Progress::default(), step: &mut step };
        copy.run(rows, row.as_ref(), |batch, key, value| _ = batch.put(key, value), |done| &mut done.rows)?;
        copy.run(
            bodies,
            body.as_ref(),
            |batch, key, body| _ = batch.put_body(key, body),
            |done| &mut done.bodies,
        )?;
        Ok::<_, CopyError>(step)
    });
    let mut step = work.await.map_err(std::io::Error::other)??;
    let (ours, theirs) = (everything(&source).await?, everything(&target).await?);
    let work = tokio::task::spawn_blocking(move || compare(ours, theirs, &mut step));
    let compared = work.await.map_err(std::io::Error::other)??;
    finish(into, &target).await?;
    source.close().await;
    Ok(compared)
}

async fn open_source(place: &Place) -> Result<Store, CopyError> {
    match place {
        Place::Directory(options) if !options.directory.is_dir() => {
            let error = std::io::Error::from(std::io::ErrorKind::NotFound);
            Err(OpenError::io(&options.directory, error).into())
        }
        Place::Directory(options) => Ok(Store::open(options)?),
        Place::Database(database) => {
            let store = Postgres::open(database, Use::CopyFrom).await?;
            let store = Store::over(Engine::Postgres(Arc::new(store)));
            let before = crate::lease::view(&store).await?;
            tokio::time::sleep(WATCH).await;
            let after = crate::lease::view(&store).await?;
            match after.nodes.iter().find(|seen| !before.nodes.contains(seen)) {
                Some(alive) => Err(CopyError::AtWork(alive.node.name.clone())),
                None => Ok(store),
            }
        }
    }
}

async fn open_target(place: &Place) -> Result<Store, CopyError> {
    match place {
        Place::Directory(options) => {
            let marker = options.directory.join(COPYING_FILE);
            if !marker.exists() {
                let taken =
                    std::fs::read_dir(&options.directory).is_ok_and(|mut found| found.next().is_some());
                if taken {
                    return Err(CopyError::NotEmpty(options.directory.display().to_string()));
                }
                private::create_directory(&options.directory)?;
                private::create_file(&marker)?.sync_all()?;
            }
            Ok(Store::over(Engine::Redb(Arc::new(Redb::open_for_copy(options)?))))
        }
        Place::Database(database) => {
            let store = Postgres::open(database, Use::CopyInto).await?;
            Ok(Store::over(Engine::Postgres(Arc::new(store))))
        }
    }
}

async fn finish(place: &Place, target: &Store) -> Result<(), CopyError> {
    match (place, &target.engine) {
        (Place::Database(_), Engine::Postgres(postgres)) => postgres.copied().await?,
        (Place::Directory(options), _) => {
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

async fn everything(store: &Store) -> Result<(Rows, Rows), CopyError> {
    match &store.engine {
        Engine::Redb(redb) => {
            let everything = redb.everything().await?;
            let read = tokio::task::spawn_blocking(everything);
            Ok(read.await.map_err(std::io::Error::other)??)
        }
        Engine::Postgres(postgres) => Ok(postgres.everything().await?),
        Engine::Memory(memory) => {
            let (rows, bodies) = memory.all();
            Ok((Box::new(rows.into_iter().map(Ok)), Box::new(bodies.into_iter().map(Ok))))
        }
    }
}

fn last(rows: Rows) -> Result<Option<Key>, ReadError> {
    let mut last = None;
    for row in rows {
        last = Some(row?.0);
    }
    Ok(last)
}

/// A copy under way, on a thread that may block.
struct Copy<'a, F> {
    target: &'a Store,
    runtime: Handle,
    done: Progress,
    step: &'a mut F,
}

impl<F: FnMut(Step)> Copy<'_, F> {
    /// Writes what comes after `there`.
    fn run(
        &mut self,
        rows: Rows,
        there: Option<&Key>,
        put: impl Fn(&mut Batch, Key, Bytes),
        count: impl Fn(&mut Progress) -> &mut u64,
    ) -> Result<(), CopyError> {
        let mut batch = Batch::progress();
        let (mut size_bytes, mut held) = (0, 0);
        for row in rows {
            let (key, value) = row?;
            *count(&mut self.done) += 1;
            if there.is_some_and(|there| key <= *there) {
                continue;
            }
            size_bytes += key.len() + value.len();
            held += 1;
            put(&mut batch, key, value);
            if size_bytes >= BATCH_BYTES || held >= BATCH_ROWS {
                self.done.bytes += size_bytes as u64;
                (size_bytes, held) = (0, 0);
                self.commit(std::mem::replace(&mut batch, Batch::progress()))?;
            }
        }
        self.done.bytes += size_bytes as u64;
        self.commit(batch)
    }

    fn commit(&mut self, batch: Batch) -> Result<(), CopyError> {
        self.runtime.block_on(self.target.commit(batch))?;
        (self.step)(Step::Copied(self.done));
        Ok(())
    }
}

/// How often a comparison tells how far it is.
const TELL_ROWS: u64 = 20_000;

fn compare(
    ours: (Rows, Rows),
    theirs: (Rows, Rows),
    step: &mut impl FnMut(Step),
) -> Result<(Progress, String), CopyError> {
    let mut done = Progress::default();
    let mut sum = Sha256::new();
    for (bodies, ours, mut theirs) in [(false, ours.0, theirs.0), (true, ours.1, theirs.1)] {
        for row in ours {
            let (key, value) = row?;
            match theirs.next().transpose()? {
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
            if (done.rows + done.bodies).is_multiple_of(TELL_ROWS) {
                step(Step::Compared(done));
            }
        }
        if let Some((key, _)) = theirs.next().transpose()? {
            return Err(CopyError::Differs(format!("{key:02x?} is too much")));
        }
    }
    step(Step::Compared(done));
    let sum = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((done, sum))
}
