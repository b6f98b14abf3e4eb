//! The PostgreSQL engine: the surface over two tables of bytes, for many nodes that share one truth.
//!
//! ```text
//! commit ─► inbox ─► lane ─► one transaction a group ─► answer          (postgres/lane.rs, group.rs)
//! read ───► line ──► one statement                                      (postgres/line.rs)
//! ```
//!
//! A handful of fixed statements, valid on any server that speaks the protocol (PostgreSQL with
//! synchronous replicas, CockroachDB, YugabyteDB): rows that a batch checks are locked in key order, judged
//! here, and written in the same transaction. A transaction that the server breaks off is done again.
//! While the database is away, intake is refused and progress waits.
//!
//! What is awaited is handed out boxed, its type unsaid: the client is compiled here once, and not in each room that
//! reads or writes. Beside a round trip to a server an allocation is nothing.
//!
//! Limits: [`Database::lanes`] and [`Database::lines`] connections; the inbox holds [`INBOX_BATCHES`]
//! batches, then commits wait.

mod fault;
mod group;
mod lane;
mod line;
mod pages;
mod schema;
mod shared;
mod url;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::lane::{GroupCommitter, PendingCommit};
use self::line::{ReadConnection, ReadPool};
pub(crate) use self::schema::OpenMode;
use self::shared::DatabaseState;
use self::url::ConnectionTarget;
use super::check::Check;
use super::redb::backup;
use super::{
    BackupError, BackupProgress, Batch, CheckError, CommitError, Health, Key, OpenError, ReadError, Report, ScanOrder,
    StoreState, TooLarge, Value,
};

/// Batches that wait for a lane; more committers than these wait for a place.
const INBOX_BATCHES: usize = 1_024;
/// The largest body: PostgreSQL keeps no value of a gigabyte, and needs room beside it.
const BODY_BYTES_MAX: usize = 512 << 20;
/// How often a database that is away is looked for, when nobody has anything to write.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// How long such a look may take.
const PROBE_MAX: Duration = Duration::from_secs(5);

/// A database, and how a node works with it.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/name`, several hosts by commas; `sslmode` and `sslrootcert`.
    pub url: String,
    /// The name of the cluster: a database belongs to one.
    pub cluster: String,
    /// This node, as the server shows it among its connections.
    pub application: String,
    /// Connections that write.
    pub write_connections: usize,
    /// Connections that read.
    pub read_connections: usize,
}

impl fmt::Debug for PostgresOptions {
    /// Without the URL, which holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// With the usual number of connections.
    #[must_use]
    pub fn new(url: impl Into<String>, cluster: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            cluster: cluster.into(),
            application: "postrider".to_owned(),
            write_connections: 2,
            read_connections: 4,
        }
    }
}

/// A database that is open.
pub(crate) struct PostgresEngine {
    target: ConnectionTarget,
    lines: ReadPool,
    shared: Arc<DatabaseState>,
    inbox: Mutex<Option<mpsc::Sender<PendingCommit>>>,
    lanes: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
}

impl PostgresEngine {
    /// Connects, looks whose the database is, makes the tables where there are none.
    pub(crate) fn open<'a>(database: &'a PostgresOptions, purpose: OpenMode) -> BoxFuture<'a, Result<Self, OpenError>> {
        Box::pin(async move {
            let target = url::parse(&database.url, &database.application)?;
            schema::prepare(&target, &database.cluster, purpose).await?;
            let shared = Arc::<DatabaseState>::default();
            let (sender, receiver) = mpsc::channel(INBOX_BATCHES);
            let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
            let lanes = (0..database.write_connections.max(1)).map(|_| {
                let lane = GroupCommitter::new(target.clone(), Arc::clone(&receiver), Arc::clone(&shared));
                tokio::spawn(lane.run())
            });
            let lanes = tokio::sync::Mutex::new(lanes.collect());
            tokio::spawn(probe_until_available(target.clone(), Arc::downgrade(&shared)));
            tracing::info!(database = target.shown, cluster = database.cluster, "the store is open");
            let lines = ReadPool::new(target.clone(), database.read_connections, Arc::clone(&shared));
            Ok(Self { target, lines, shared, inbox: Mutex::new(Some(sender)), lanes })
        })
    }

    pub(crate) fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>, ReadError>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let wanted: &Vec<&[u8]> = &keys.iter().map(|key| &key[..]).collect();
            let get = |line: Arc<ReadConnection>| async move { line.client.query(&line.get, &[wanted]).await };
            let rows = self.lines.query(get).await?;
            let found: std::collections::HashMap<&[u8], &[u8]> =
                rows.iter().map(|row| (row.get::<_, &[u8]>(0), row.get::<_, &[u8]>(1))).collect();
            Ok(keys.iter().map(|key| found.get(&key[..]).map(|value| Bytes::copy_from_slice(value))).collect())
        })
    }

    pub(crate) fn scan(
        &self,
        range: Range<Key>,
        order: ScanOrder,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Key, Value)>, ReadError>> {
        Box::pin(async move {
            if range.start >= range.end || limit == 0 {
                return Ok(Vec::new());
            }
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let (from, to): (&[u8], &[u8]) = (&range.start, &range.end);
            let scan = |line: Arc<ReadConnection>| async move {
                let statement = match order {
                    ScanOrder::Ascending => &line.up,
                    ScanOrder::Descending => &line.down,
                };
                line.client.query(statement, &[&from, &to, &limit]).await
            };
            let rows = self.lines.query(scan).await?;
            let copy = |row: &tokio_postgres::Row, n| Bytes::copy_from_slice(row.get::<_, &[u8]>(n));
            Ok(rows.iter().map(|row| (copy(row, 0), copy(row, 1))).collect())
        })
    }

    pub(crate) fn body<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>, ReadError>> {
        Box::pin(async move {
            let wanted: &[u8] = key;
            let body = |line: Arc<ReadConnection>| async move { line.client.query(&line.body, &[&wanted]).await };
            let rows = self.lines.query(body).await?;
            Ok(rows.first().map(|row| Bytes::copy_from_slice(row.get::<_, &[u8]>(0))))
        })
    }

    pub(crate) fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            batch.check_size()?;
            let bodies = batch.bodies.iter().filter_map(|change| change.body.as_ref());
            if let Some(size_bytes) = bodies.map(super::Body::size_bytes).max().filter(|size| *size > BODY_BYTES_MAX) {
                return Err(TooLarge { part: "body", size_bytes, size_bytes_max: BODY_BYTES_MAX }.into());
            }
            let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let inbox = inbox.ok_or(CommitError::Closed)?;
            let (answer, answered) = oneshot::channel();
            inbox
                .send(PendingCommit { batch, answer, since: Instant::now() })
                .await
                .map_err(|_| CommitError::Closed)?;
            drop(inbox);
            // A lane that ends by a bug leaves what it had on its way in doubt.
            answered.await.map_err(|_| CommitError::Unknown("the writer ended".into()))?
        })
    }

    pub(crate) fn health(&self) -> Health {
        self.shared.health()
    }

    /// Whether the log tells of an outage: nobody can write, or nobody can read.
    pub(crate) fn has_outage(&self) -> bool {
        self.shared.has_outage()
    }

    /// Writes what waits and ends the lanes.
    pub(crate) fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.close();
            drop(self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take());
            for lane in self.lanes.lock().await.drain(..) {
                let _ = lane.await;
            }
        })
    }

    /// Reads all rows and bodies, as of one moment.
    pub(crate) fn verify(
        &self,
        progress: impl FnMut(BackupProgress) -> ControlFlow<()> + Send + 'static,
    ) -> BoxFuture<'_, Result<Report, CheckError>> {
        Box::pin(async move {
            let (rows, bodies) = self.read_all().await?;
            let work = tokio::task::spawn_blocking(move || Check::new(progress).all(rows, bodies));
            work.await.map_err(ReadError::io)?
        })
    }

    pub(crate) fn backup<'a>(
        &'a self,
        file: &'a Path,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> BoxFuture<'a, Result<BackupProgress, BackupError>> {
        Box::pin(async move {
            let (rows, bodies) = self.read_all().await?;
            let file = file.to_owned();
            let work = tokio::task::spawn_blocking(move || backup::write(&file, rows, bodies, progress));
            work.await.map_err(ReadError::io)?
        })
    }

    /// All rows and all bodies, in key order, as of one moment. To be read from a thread that may block.
    pub(crate) fn read_all(&self) -> BoxFuture<'_, Result<(backup::RowIterator, backup::RowIterator), ReadError>> {
        Box::pin(pages::read_all(&self.target))
    }

    /// A copy into it has come to its end: from now on it can be opened.
    pub(crate) fn finish_copy(&self) -> BoxFuture<'_, Result<(), ReadError>> {
        Box::pin(async move {
            let ended = async {
                let client = line::connect(&self.target).await?;
                schema::finish_copy(&client).await
            };
            ended.await.map_err(|error| ReadError::Away(url::reason(&error).into()))
        })
    }
}

/// A writer like another, so that its row goes when it is not seen any more.
const PROBE: &str = "INSERT INTO postrider_writers (id, groups) VALUES ($1, 0) \
     ON CONFLICT (id) DO UPDATE SET seen = now()";

/// Looks for a database that is away while nobody writes, so that intake opens again by itself. It is back
/// when a row can be written: one whose commits wait for a replica that is gone still answers questions.
async fn probe_until_available(target: ConnectionTarget, shared: Weak<DatabaseState>) {
    let Some(probe) = shared.upgrade().map(|shared| shared.random_id()) else { return };
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.tell_missed();
        let is_well = matches!(shared.health().state, StoreState::Healthy | StoreState::Fenced(_));
        if is_well && !shared.has_outage() {
            continue;
        }
        let written = async {
            let client = line::connect(&target).await?;
            client.execute(PROBE, &[&probe.as_slice()]).await
        };
        match tokio::time::timeout(PROBE_MAX, written).await {
            Ok(Ok(_)) => shared.mark_available(),
            Ok(Err(error)) => shared.is_still_away(&url::reason(&error)),
            Err(_) => shared.is_still_away("it does not answer"),
        }
    }
}
