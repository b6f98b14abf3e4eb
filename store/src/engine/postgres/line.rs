//! Lines: connections to the database with their statements prepared, and the few of them that all reads
//! share.
//!
//! A line carries many questions at once (the protocol is pipelined), so a handful serves all readers;
//! one that breaks is made anew by whoever needs it next. Reads wait a bounded time, and while the
//! database is known to be away they fail at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::DatabaseError;
use super::shared::{DatabaseState, pause_after};
use super::url::ConnectionTarget;

/// A read that takes longer has failed.
const READ_MAX: Duration = Duration::from_secs(10);
/// Making a connection and preparing its statements takes no longer.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Reads under way at once; more wait, within [`READ_MAX`].
const READS_MAX: usize = 1_024;

const GET: &str = "SELECT k, v FROM postrider_rows WHERE k = ANY($1::bytea[])";
const UP: &str = "SELECT k, v FROM postrider_rows WHERE k >= $1 AND k < $2 ORDER BY k LIMIT $3";
const DOWN: &str = "SELECT k, v FROM postrider_rows WHERE k >= $1 AND k < $2 ORDER BY k DESC LIMIT $3";
const BODY: &str = "SELECT v FROM postrider_bodies WHERE k = $1";

/// Makes a connection. What it says goes on until the client is dropped.
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

/// A line for reads.
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
        opened.await.unwrap_or_else(|_| Err(DatabaseError::unavailable("it does not answer")))
    }
}

#[derive(Default)]
struct PoolSlot {
    line: Option<Arc<ReadConnection>>,
    /// The last try, if it failed.
    failed: Option<Failed>,
}

/// A try to connect that failed. Until the next one, all who want to read share this failure.
struct Failed {
    at: Instant,
    fault: DatabaseError,
    /// How many failed, one after the other.
    failures: u32,
    /// How often the database had come back by then.
    returns: u64,
}

/// The lines that reads share.
pub(crate) struct ReadPool {
    target: ConnectionTarget,
    shared: Arc<DatabaseState>,
    slots: Vec<Mutex<PoolSlot>>,
    next: AtomicUsize,
    turns: Semaphore,
}

impl ReadPool {
    pub(crate) fn new(target: ConnectionTarget, count: usize, shared: Arc<DatabaseState>) -> Self {
        let slots = (0..count.max(1)).map(|_| Mutex::default()).collect();
        Self { target, shared, slots, next: AtomicUsize::new(0), turns: Semaphore::new(READS_MAX) }
    }

    async fn acquire(&self) -> Result<Arc<ReadConnection>, DatabaseError> {
        let n = self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        let Some(slot) = self.slots.get(n) else { return Err(DatabaseError::unavailable("no line")) };
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
                let failed =
                    Failed { at: Instant::now(), fault: fault.clone(), failures: failures.saturating_add(1), returns };
                *slot = PoolSlot { line: None, failed: Some(failed) };
                Err(fault)
            }
        }
    }

    /// Asks something; once more on another line when the first one broke under the question.
    pub(crate) async fn query<T, F>(&self, question: impl Fn(Arc<ReadConnection>) -> F) -> Result<T, DatabaseError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let asked = timeout(READ_MAX, async {
            // Never closed; if it were, we would ask without waiting.
            let _turn = self.turns.acquire().await;
            let mut tries = 0;
            loop {
                tries += 1;
                let line = self.acquire().await.map_err(Unanswered::Gone)?;
                match question(line).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) if !error.is_closed() && !is_connection_lost(&error) => {
                        return Err(Unanswered::Refused(error.into()));
                    }
                    Err(_) if tries <= self.slots.len() => {}
                    Err(error) => return Err(Unanswered::Gone(error.into())),
                }
            }
        });
        let asked =
            asked.await.unwrap_or_else(|_| Err(Unanswered::Gone(DatabaseError::unavailable("it does not answer"))));
        match asked {
            Ok(answer) => {
                self.shared.was_read();
                Ok(answer)
            }
            Err(Unanswered::Refused(fault)) => Err(fault),
            Err(Unanswered::Gone(fault)) => {
                match &fault {
                    DatabaseError::Unavailable(why) | DatabaseError::Retry(why) => self.shared.read_failed(why),
                    DatabaseError::Full => {}
                }
                Err(fault)
            }
        }
    }
}

/// Why a question got no answer.
enum Unanswered {
    /// The server answered with an error.
    Refused(DatabaseError),
    /// No connection could be made, or all broke.
    Gone(DatabaseError),
}

/// The connection broke, or the server ends it.
fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|db| db.code().code().starts_with("57P"))
}
