//! The PostgreSQL engine: implements the store on two tables of bytes, shared by many nodes.
//!
//! ```text
//! commit ─► inbox ─► group committer ─► one transaction per group ─► answer    (postgres/group_committer.rs)
//! read ───► read pool ─► connection ─► one statement                            (postgres/connection.rs)
//! ```
//!
//! It uses a few fixed statements that are valid on any server with the PostgreSQL protocol (PostgreSQL with
//! synchronous replicas, CockroachDB, YugabyteDB). Rows that a batch checks are locked in key order, evaluated in this
//! process, and written in the same transaction. A transaction that the server aborts is retried. While the database is
//! unavailable, intake is refused and progress waits.
//!
//! Async entry points return boxed futures, so that the client is compiled in this crate only and not again in each
//! crate that reads or writes. An allocation costs little compared with a round trip.
//!
//! Limits: [`PostgresOptions::write_connections`] and [`PostgresOptions::read_connections`]. The inbox holds
//! [`INBOX_BATCHES`] batches; further commits wait (back-pressure).

mod connection;
mod error;
mod group;
mod group_committer;
mod schema;
mod snapshot;
mod state;
mod url;

use parking_lot::Mutex;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::connection::{OPEN_MAX, ReadConnection, ReadPool};
use self::group_committer::{GroupCommitter, PendingCommit};
pub(crate) use self::schema::OpenMode;
use self::state::DatabaseState;
use self::url::ConnectionTarget;
use super::check::Check;
use super::redb::backup;
use super::{
    BackupError, BackupProgress, Batch, CheckError, CommitError, Health, Key, OpenError, ReadError, Report, ScanOrder,
    StoreFormat, StoreState, TooLarge, Value,
};

/// Capacity of the inbox of batches; further commits wait.
const INBOX_BATCHES: usize = 1_024;
/// Maximum size of a body. PostgreSQL stores no value of 1 GiB, and needs some of it for itself.
const BODY_BYTES_MAX: usize = 512 << 20;
/// Interval of probes while the database is unavailable, when there is nothing to write.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of connecting, and checking or creating the tables.
const PREPARE_MAX: Duration = Duration::from_secs(30);
/// Timeout of a probe, which may have to try several hosts.
const PROBE_MAX: Duration = OPEN_MAX;

/// Location of a database, and how a node uses it.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/name`, with several hosts separated by commas; supports `sslmode` and
    /// `sslrootcert`.
    pub url: String,
    /// Name of the cluster to which the database belongs.
    pub cluster: String,
    /// Name of this node, shown by the server as `application_name`.
    pub application: String,
    pub write_connections: usize,
    pub read_connections: usize,
}

impl fmt::Debug for PostgresOptions {
    /// Omits the URL, which contains a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// Default options with the default number of connections.
    pub fn new(url: impl Into<String>, cluster: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            cluster: cluster.into(),
            application: "postrider".to_owned(),
            write_connections: 2,
            read_connections: 4,
        }
    }

    /// Checks the URL and the file of root certificates that it names, without connecting.
    ///
    /// # Errors
    /// Returns what is wrong with it, without the password.
    pub fn check_url(&self) -> Result<(), String> {
        match url::parse(&self.url, &self.application) {
            Ok(_) => Ok(()),
            Err(OpenError::Url(reason)) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads the format of a database, and writes nothing.
pub(crate) async fn read_format(database: &PostgresOptions) -> Result<StoreFormat, OpenError> {
    let target = url::parse(&database.url, &database.application)?;
    schema::read_format(&target, &database.cluster).await
}

/// An open database.
pub(crate) struct PostgresEngine {
    target: ConnectionTarget,
    lines: ReadPool,
    shared: Arc<DatabaseState>,
    inbox: Mutex<Option<mpsc::Sender<PendingCommit>>>,
    lanes: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
}

impl PostgresEngine {
    /// Connects, checks to which cluster the database belongs, and creates the tables if there are none and the purpose
    /// allows it.
    pub(crate) fn open<'a>(database: &'a PostgresOptions, purpose: OpenMode) -> BoxFuture<'a, Result<Self, OpenError>> {
        Box::pin(async move {
            let target = url::parse(&database.url, &database.application)?;
            let prepared = tokio::time::timeout(PREPARE_MAX, schema::prepare(&target, &database.cluster, purpose));
            prepared.await.unwrap_or_else(|_| {
                let reason = "timeout while the tables were checked".to_owned();
                Err(OpenError::Away { database: target.display_name.clone(), reason })
            })?;
            let shared = Arc::<DatabaseState>::default();
            let (sender, receiver) = mpsc::channel(INBOX_BATCHES);
            let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
            let lanes = (0..database.write_connections.max(1)).map(|_| {
                let lane = GroupCommitter::new(target.clone(), Arc::clone(&receiver), Arc::clone(&shared));
                tokio::spawn(lane.run())
            });
            let lanes = tokio::sync::Mutex::new(lanes.collect());
            tokio::spawn(probe_until_available(target.clone(), Arc::downgrade(&shared)));
            tracing::info!(database = target.display_name, cluster = database.cluster, "store opened");
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
            let inbox = self.inbox.lock().clone();
            let inbox = inbox.ok_or(CommitError::Closed)?;
            let (answer, answered) = oneshot::channel();
            inbox
                .send(PendingCommit { batch, answer, since: Instant::now() })
                .await
                .map_err(|_| CommitError::Closed)?;
            drop(inbox);
            // A group committer that ends by a bug leaves the result of its batches unknown.
            answered.await.map_err(|_| CommitError::Unknown("the writer task ended".into()))?
        })
    }

    pub(crate) fn health(&self) -> Health {
        self.shared.health()
    }

    /// Returns whether there is an outage: no writes or no reads succeed.
    pub(crate) fn has_outage(&self) -> bool {
        self.shared.has_outage()
    }

    /// Writes the waiting batches and ends the group committers.
    pub(crate) fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.close();
            drop(self.inbox.lock().take());
            for lane in self.lanes.lock().await.drain(..) {
                let _ = lane.await;
            }
        })
    }

    /// Checks all rows and bodies of one snapshot.
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

    /// Reads all rows and all bodies in key order, from one snapshot. The iterators must be used on a blocking thread.
    pub(crate) fn read_all(&self) -> BoxFuture<'_, Result<(backup::RowIterator, backup::RowIterator), ReadError>> {
        Box::pin(snapshot::read_all(&self.target))
    }

    /// Marks a copy into the database as complete, so that the database can be opened.
    pub(crate) fn finish_copy(&self) -> BoxFuture<'_, Result<(), ReadError>> {
        Box::pin(async move {
            let ended = async {
                let client = connection::connect(&self.target).await?;
                schema::finish_copy(&client).await
            };
            ended.await.map_err(|error| ReadError::Away(url::reason(&error).into()))
        })
    }
}

/// Registers as a writer, so that the row is deleted later like that of any writer that is no longer seen.
const PROBE: &str = "INSERT INTO postrider_writers (id, groups) VALUES ($1, 0) \
     ON CONFLICT (id) DO UPDATE SET seen = now()";

/// Probes an unavailable database while there is nothing to write, so that intake resumes by itself. It counts as
/// available when a row can be written: a server whose commits wait for a lost replica still answers queries.
async fn probe_until_available(target: ConnectionTarget, shared: Weak<DatabaseState>) {
    let Some(probe) = shared.upgrade().map(|shared| shared.random_id()) else { return };
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.log_missed_outage();
        let is_usable = matches!(shared.health().state, StoreState::Healthy | StoreState::Fenced(_));
        if is_usable && !shared.has_outage() {
            continue;
        }
        let written = async {
            let client = connection::connect(&target).await?;
            client.execute(PROBE, &[&probe.as_slice()]).await
        };
        match tokio::time::timeout(PROBE_MAX, written).await {
            Ok(Ok(_)) => shared.mark_available(),
            Ok(Err(error)) => shared.record_probe_failure(&url::reason(&error)),
            Err(_) => shared.record_probe_failure("the probe timed out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_database_that_does_not_answer_is_reported_soon() {
        // The system accepts connections for the listener; nobody reads them.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://user@{}/name", listener.local_addr().unwrap());
        let started = Instant::now();
        let refused = PostgresEngine::open(&PostgresOptions::new(url, "test"), OpenMode::Serve).await.err();
        assert!(
            matches!(&refused, Some(OpenError::Away { reason, .. }) if reason == "timeout while connecting"),
            "{refused:?}"
        );
        assert!(started.elapsed() < PREPARE_MAX, "{:?}", started.elapsed());
    }
}
