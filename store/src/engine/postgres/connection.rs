//! Read pool: a connection pool with prepared statements, shared by all reads.
//!
//! The protocol is pipelined, so a connection carries many queries at once and a few connections serve all readers. A
//! broken connection is replaced by the next query that needs it. Reads have a timeout, and fail immediately while
//! connection attempts are backing off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::DatabaseError;
use super::state::{DatabaseState, pause_after};
use super::url::ConnectionTarget;

/// Timeout of a read.
const READ_MAX: Duration = Duration::from_secs(10);
/// Timeout for connecting and preparing statements.
pub(super) const OPEN_MAX: Duration = Duration::from_secs(10);
/// Maximum number of concurrent reads; more wait, within [`READ_MAX`].
const READS_MAX: usize = 1_024;

const GET: &str = "SELECT k, v FROM postrider_rows WHERE k = ANY($1::bytea[])";
const UP: &str = "SELECT k, v FROM postrider_rows WHERE k >= $1 AND k < $2 ORDER BY k LIMIT $3";
const DOWN: &str = "SELECT k, v FROM postrider_rows WHERE k >= $1 AND k < $2 ORDER BY k DESC LIMIT $3";
const BODY: &str = "SELECT v FROM postrider_bodies WHERE k = $1";

/// Connects. A spawned task drives the connection until the client is dropped.
pub(crate) async fn connect(target: &ConnectionTarget) -> Result<Client, tokio_postgres::Error> {
    match &target.tls {
        None => {
            let (client, connection) = target.config.connect(NoTls).await?;
            tokio::spawn(async move { drop(connection.await) });
            Ok(client)
        }
        Some(tls) => {
            let (client, connection) = target.config.connect(MakeRustlsConnect::new(tls.clone())).await?;
            tokio::spawn(async move { drop(connection.await) });
            Ok(client)
        }
    }
}

pub(crate) struct ReadConnection {
    pub(crate) client: Client,
    pub(crate) get: Statement,
    pub(crate) up: Statement,
    pub(crate) down: Statement,
    pub(crate) body: Statement,
}

impl ReadConnection {
    async fn open(target: &ConnectionTarget) -> Result<Self, DatabaseError> {
        let opened = timeout(OPEN_MAX, async {
            let client = connect(target).await?;
            let (get, up, down, body) = futures_util::try_join!(
                client.prepare(GET),
                client.prepare(UP),
                client.prepare(DOWN),
                client.prepare(BODY),
            )?;
            Ok::<_, DatabaseError>(Self { client, get, up, down, body })
        });
        opened.await.unwrap_or_else(|_| Err(DatabaseError::unavailable("timeout while connecting")))
    }
}

#[derive(Default)]
struct PoolSlot {
    line: Option<Arc<ReadConnection>>,
    /// The last connection attempt, if it failed.
    failed: Option<ConnectAttemptError>,
}

/// A failed connection attempt. All reads fail with it until the next attempt.
struct ConnectAttemptError {
    at: Instant,
    fault: DatabaseError,
    /// Number of consecutive failures.
    failures: u32,
    /// Number of recoveries of the database at the time of the failure.
    returns: u64,
}

/// The shared read connections.
pub(crate) struct ReadPool {
    target: ConnectionTarget,
    shared: Arc<DatabaseState>,
    slots: Vec<Mutex<PoolSlot>>,
    next: AtomicUsize,
    permits: Semaphore,
}

impl ReadPool {
    pub(crate) fn new(target: ConnectionTarget, count: usize, shared: Arc<DatabaseState>) -> Self {
        let slots = (0..count.max(1)).map(|_| Mutex::default()).collect();
        Self { target, shared, slots, next: AtomicUsize::new(0), permits: Semaphore::new(READS_MAX) }
    }

    async fn acquire(&self) -> Result<Arc<ReadConnection>, DatabaseError> {
        let n = self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        let Some(slot) = self.slots.get(n) else { return Err(DatabaseError::unavailable("no connection")) };
        let mut slot = slot.lock().await;
        if let Some(line) = slot.line.as_ref().filter(|line| !line.client.is_closed()) {
            return Ok(Arc::clone(line));
        }
        let returns = self.shared.returns();
        let failures = match &slot.failed {
            Some(failed) if failed.returns == returns && failed.at.elapsed() < pause_after(failed.failures) => {
                return Err(failed.fault.clone());
            }
            Some(failed) => failed.failures,
            None => 0,
        };
        match ReadConnection::open(&self.target).await {
            Ok(line) => {
                let line = Arc::new(line);
                *slot = PoolSlot { line: Some(Arc::clone(&line)), failed: None };
                Ok(line)
            }
            Err(fault) => {
                let failed = ConnectAttemptError {
                    at: Instant::now(),
                    fault: fault.clone(),
                    failures: failures.saturating_add(1),
                    returns,
                };
                *slot = PoolSlot { line: None, failed: Some(failed) };
                Err(fault)
            }
        }
    }

    /// Runs a query, and retries it on another connection if the connection breaks.
    pub(crate) async fn query<T, F>(&self, question: impl Fn(Arc<ReadConnection>) -> F) -> Result<T, DatabaseError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let result = timeout(READ_MAX, async {
            // The semaphore is never closed; if it were, the query would run without a limit.
            let _permit = self.permits.acquire().await;
            let mut tries = 0;
            loop {
                tries += 1;
                let line = self.acquire().await.map_err(StatementError::Gone)?;
                match question(line).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) if !error.is_closed() && !is_connection_lost(&error) => {
                        return Err(StatementError::Refused(error.into()));
                    }
                    Err(_) if tries <= self.slots.len() => {}
                    Err(error) => return Err(StatementError::Gone(error.into())),
                }
            }
        });
        let result = result
            .await
            .unwrap_or_else(|_| Err(StatementError::Gone(DatabaseError::unavailable("the query timed out"))));
        match result {
            Ok(answer) => {
                self.shared.record_read();
                Ok(answer)
            }
            Err(StatementError::Refused(fault)) => Err(fault),
            Err(StatementError::Gone(fault)) => {
                match &fault {
                    DatabaseError::Unavailable(why) | DatabaseError::Retry(why) => self.shared.record_read_failure(why),
                    DatabaseError::Full => {}
                }
                Err(fault)
            }
        }
    }
}

/// Why a query failed.
enum StatementError {
    /// The server answered with an error.
    Refused(DatabaseError),
    /// No connection could be opened, or all broke.
    Gone(DatabaseError),
}

/// True if the connection broke or the server ends it.
fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|db| db.code().code().starts_with("57P"))
}
