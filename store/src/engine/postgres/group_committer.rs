//! Group committer: one connection that writes, group by group.
//!
//! ```text
//! inbox ─► group ─► BEGIN, marker, lock rows ─► evaluate ─► write, COMMIT ─► answers
//!   ▲                                                          │ connection lost
//!   └── not committed ◄── what does the marker say? ◄──────────┘
//! ```
//!
//! All waiting batches form the next group, so the more there is to write, the more batches share one commit. The
//! marker is a row of this committer, written first in every transaction. If the connection is lost between COMMIT and
//! its answer, a new connection reads the marker, which waits until the old transaction has ended. Only if that fails
//! for [`UNKNOWN_AFTER`] are the batches answered with `Unknown`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join3, join5};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, Statement};

use super::connection::connect;
use super::error::DatabaseError;
use super::group::{GroupOutcome, RowLocks, evaluate};
use super::state::{DatabaseState, Streak};
use super::url::ConnectionTarget;
use crate::engine::{Batch, BatchPurpose, CommitError, Key};

const GROUP_BATCHES: usize = 256;
/// A group that reaches this size accepts no more batches. One transaction then stays within [`TRANSACTION_HALF_TIMEOUT`], and far
/// below PostgreSQL's limit of 1 GiB per statement.
const GROUP_BYTES: usize = 16 << 20;
/// Timeout of each half of a transaction; the connection is dropped afterwards.
const TRANSACTION_HALF_TIMEOUT: Duration = Duration::from_secs(15);
/// How long intake waits for an unavailable database before it is refused.
const INTAKE_PATIENCE: Duration = Duration::from_secs(3);
/// How long the result of a lost commit is looked up.
const UNKNOWN_AFTER: Duration = Duration::from_secs(30);
/// Pause of a group committer when the database's disk is full.
const FULL_PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of retries after serialization failures and deadlocks; after that the database counts as unavailable.
const RETRIES_MAX: u32 = 100;

/// Longest pause before such a retry, reached at the seventh one.
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(64);

const MARK: &str = "INSERT INTO postrider_writers (id, groups) VALUES ($1, $2) \
     ON CONFLICT (id) DO UPDATE SET groups = excluded.groups, seen = now()";
/// Reads the marker by an upsert. The marker of a transaction in progress is invisible to a read, but an insert of the
/// same key waits for that transaction.
const MARKED: &str = "INSERT INTO postrider_writers (id, groups) VALUES ($1, 0) \
     ON CONFLICT (id) DO UPDATE SET seen = now() RETURNING groups";
/// Forces synchronous commit, because an acknowledgement before the write would make a 250 reply false. The timeouts
/// release the row locks of a node that freezes or loses the network within a transaction. They also end waits at the
/// server that this side has given up.
const SESSION: &str = "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '10s'; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";
const CLAIM: &str = "INSERT INTO postrider_rows (k, v) SELECT k, ''::bytea FROM unnest($1::bytea[]) AS k ORDER BY k \
     ON CONFLICT (k) DO NOTHING RETURNING k";
const LOCK: &str = "SELECT k, v FROM postrider_rows WHERE k = ANY($1::bytea[]) ORDER BY k FOR UPDATE";
const SHARE: &str = "SELECT k, v FROM postrider_rows WHERE k = ANY($1::bytea[]) ORDER BY k FOR SHARE";
const PUT: &str = "INSERT INTO postrider_rows (k, v) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
     ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const DELETE: &str = "DELETE FROM postrider_rows WHERE k = ANY($1::bytea[])";
const PUT_BODY: &str = "INSERT INTO postrider_bodies (k, v) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
     ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const DELETE_BODY: &str = "DELETE FROM postrider_bodies WHERE k = ANY($1::bytea[])";

/// A batch that waits for its result.
pub(crate) struct PendingCommit {
    pub(crate) batch: Batch,
    pub(crate) answer: oneshot::Sender<Result<(), CommitError>>,
    pub(crate) since: Instant,
}

struct WriteConnection {
    client: Client,
    mark: Statement,
    claim: Statement,
    lock: Statement,
    share: Statement,
    put: Statement,
    delete: Statement,
    put_body: Statement,
    delete_body: Statement,
}

/// Why a group was not committed.
enum GroupError {
    /// It is certainly not stored.
    NotCommitted(DatabaseError),
    /// The connection failed while COMMIT was in progress.
    OutcomeUnknown(Arc<str>, GroupOutcome),
}

impl From<tokio_postgres::Error> for GroupError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::NotCommitted(error.into())
    }
}

/// A task that commits groups on one connection.
pub(crate) struct GroupCommitter {
    pub(crate) target: ConnectionTarget,
    pub(crate) inbox: Arc<Mutex<Receiver<PendingCommit>>>,
    pub(crate) shared: Arc<DatabaseState>,
    /// Key of the marker row. It is replaced after each unknown result, so that a late transaction of the old id is not
    /// taken for a current one.
    pub(crate) id: [u8; 16],
    line: Option<WriteConnection>,
    groups: i64,
}

impl GroupCommitter {
    pub(crate) fn new(
        target: ConnectionTarget,
        inbox: Arc<Mutex<Receiver<PendingCommit>>>,
        shared: Arc<DatabaseState>,
    ) -> Self {
        let id = shared.random_id();
        Self { target, inbox, shared, id, line: None, groups: 0 }
    }

    /// Commits groups until the inbox is closed and empty.
    pub(crate) async fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP_BATCHES);
        loop {
            // One committer collects at a time; while it commits, the next one collects.
            collect(&mut *self.inbox.lock().await, &mut group).await;
            if group.is_empty() {
                return;
            }
            self.commit_group(&mut group).await;
            group.clear();
        }
    }

    /// Commits or refuses every batch of a group, with retries.
    async fn commit_group(&mut self, group: &mut Vec<PendingCommit>) {
        let (mut retries, mut streak) = (0, Streak::new());
        while !group.is_empty() {
            match self.try_commit(group).await {
                Ok(outcome) => return self.answer(group, outcome),
                Err(GroupError::NotCommitted(DatabaseError::Retry(why))) if retries < RETRIES_MAX => {
                    retries += 1;
                    tracing::debug!(%why, "retrying a group of commits");
                    sleep(retry_pause(retries, self.shared.random_id())).await;
                }
                Err(GroupError::NotCommitted(DatabaseError::Full)) => {
                    self.shared.mark_full();
                    refuse(group, |_| true, &CommitError::Full);
                    sleep(FULL_PAUSE).await;
                }
                Err(GroupError::NotCommitted(DatabaseError::Retry(why) | DatabaseError::Unavailable(why))) => {
                    self.line = None;
                    self.handle_unavailable(group, &why, &mut streak).await;
                }
                Err(GroupError::OutcomeUnknown(why, outcome)) => {
                    self.line = None;
                    self.shared.mark_unavailable(&why, &streak);
                    match self.was_committed().await {
                        Some(true) => return self.answer(group, outcome),
                        Some(false) => streak.pause(&self.shared).await,
                        None => return self.answer_unknown(group, &why),
                    }
                }
            }
        }
    }

    async fn handle_unavailable(&self, group: &mut Vec<PendingCommit>, why: &Arc<str>, streak: &mut Streak) {
        let is_node_away = self.shared.mark_unavailable(why, streak);
        // Also refuse intake that still waits in the inbox: otherwise it is refused only when other commits arrive.
        let mut size_bytes: usize = group.iter().map(|pending| pending.batch.size_bytes()).sum();
        if is_node_away && let Ok(mut inbox) = self.inbox.try_lock() {
            while size_bytes < GROUP_BYTES
                && let Ok(pending) = inbox.try_recv()
            {
                if pending.batch.purpose == BatchPurpose::Intake {
                    let _ = pending.answer.send(Err(CommitError::Away(Arc::clone(why))));
                } else {
                    size_bytes += pending.batch.size_bytes();
                    group.push(pending);
                }
            }
        }
        if self.shared.is_closing() {
            // Batches not stored now will not be stored by this process. The next start continues from the stored
            // state.
            return refuse(group, |_| true, &CommitError::Away(Arc::clone(why)));
        }
        let patient = |pending: &PendingCommit| {
            pending.batch.purpose == BatchPurpose::Intake && pending.since.elapsed() > INTAKE_PATIENCE
        };
        refuse(group, patient, &CommitError::Away(Arc::clone(why)));
        streak.pause(&self.shared).await;
    }

    fn answer_unknown(&mut self, group: &mut Vec<PendingCommit>, why: &Arc<str>) {
        tracing::error!(%why, batches = group.len(), "cannot determine whether a group of commits was stored");
        self.id = self.shared.random_id();
        self.groups = 0;
        refuse(group, |_| true, &CommitError::Unknown(Arc::clone(why)));
    }

    fn answer(&self, group: &mut Vec<PendingCommit>, outcome: GroupOutcome) {
        let conflicts = outcome.verdicts.iter().filter(|verdict| verdict.is_err()).count();
        self.shared.record_commits(group.len() - conflicts.min(group.len()), conflicts);
        for (pending, verdict) in group.drain(..).zip(outcome.verdicts) {
            let _ = pending.answer.send(verdict);
        }
    }

    /// Makes one attempt.
    async fn try_commit(&mut self, group: &[PendingCommit]) -> Result<GroupOutcome, GroupError> {
        // A connection that broke while idle is no evidence of the database's current state.
        if self.line.as_ref().is_none_or(|line| line.client.is_closed()) {
            self.line = None;
            let opened = timeout(TRANSACTION_HALF_TIMEOUT, WriteConnection::open(&self.target)).await;
            self.line = Some(
                opened
                    .unwrap_or_else(|_| Err(DatabaseError::unavailable("timeout while connecting")))
                    .map_err(GroupError::NotCommitted)?,
            );
        }
        let Some(line) = &self.line else {
            return Err(GroupError::NotCommitted(DatabaseError::unavailable("no connection")));
        };
        self.groups += 1;
        let batches = group.iter().map(|pending| &pending.batch);
        let needs = RowLocks::for_batches(batches.clone());
        let stored = timeout(TRANSACTION_HALF_TIMEOUT, line.lock_rows(&self.id, self.groups, &needs)).await;
        let (stored, claimed) = match stored {
            Ok(Ok(stored)) => stored,
            Ok(Err(fault)) => return Err(self.roll_back(fault).await),
            Err(_) => return Err(GroupError::NotCommitted(DatabaseError::unavailable("timeout while locking rows"))),
        };
        let outcome = evaluate(batches, stored, &claimed);
        match timeout(TRANSACTION_HALF_TIMEOUT, line.write(&outcome)).await {
            Ok(Ok(())) => Ok(outcome),
            Ok(Err(CommitFailure::Refused(fault))) => Err(self.roll_back(fault).await),
            Ok(Err(CommitFailure::OutcomeUnknown(why))) => Err(GroupError::OutcomeUnknown(why, outcome)),
            Err(_) => Err(GroupError::OutcomeUnknown("timeout during COMMIT".into(), outcome)),
        }
    }

    /// Rolls back a failed transaction; drops the connection if that fails too.
    async fn roll_back(&mut self, fault: DatabaseError) -> GroupError {
        if let Some(line) = &self.line {
            let rolled_back = timeout(TRANSACTION_HALF_TIMEOUT, line.client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                self.line = None;
            }
        }
        GroupError::NotCommitted(fault)
    }

    /// Returns whether the last group is stored; `None` if that cannot be determined.
    async fn was_committed(&mut self) -> Option<bool> {
        let result = timeout(UNKNOWN_AFTER, async {
            let mut streak = Streak::new();
            loop {
                match self.read_mark().await {
                    Ok(groups) => return groups == Some(self.groups),
                    Err(fault) => {
                        self.shared.mark_unavailable(&format!("{fault:?}").into(), &streak);
                        streak.pause(&self.shared).await;
                    }
                }
            }
        });
        result.await.ok()
    }

    /// Reads the number of the last committed group. Waits for a transaction that may still be writing it.
    async fn read_mark(&self) -> Result<Option<i64>, DatabaseError> {
        let client = connect(&self.target).await?;
        let rows = client.query(MARKED, &[&self.id.as_slice()]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// Pause before a retry: exponential backoff, of which the upper half is random, so that two committers do not retry in
/// step with each other. `retries` counts from 1.
fn retry_pause(retries: u32, random: [u8; 16]) -> Duration {
    let longest = Duration::from_millis(1 << retries.clamp(1, 16).saturating_sub(1)).min(RETRY_PAUSE_MAX);
    longest / 2 + longest / 2 * u32::from(random[0]) / u32::from(u8::MAX)
}

/// Collects waiting batches up to the limits of one transaction; none if the inbox is closed and empty.
async fn collect(inbox: &mut Receiver<PendingCommit>, group: &mut Vec<PendingCommit>) {
    let Some(first) = inbox.recv().await else { return };
    let mut size_bytes = first.batch.size_bytes();
    group.push(first);
    while group.len() < GROUP_BATCHES
        && size_bytes < GROUP_BYTES
        && let Ok(next) = inbox.try_recv()
    {
        size_bytes += next.batch.size_bytes();
        group.push(next);
    }
}

/// Answers the batches selected by `meant` with an error and leaves the others in the group.
fn refuse(group: &mut Vec<PendingCommit>, meant: impl Fn(&PendingCommit) -> bool, error: &CommitError) {
    let (refused, remaining): (Vec<_>, Vec<_>) = group.drain(..).partition(meant);
    group.extend(remaining);
    for pending in refused {
        let _ = pending.answer.send(Err(error.clone()));
    }
}

/// Error of the second half of a transaction.
enum CommitFailure {
    /// The server returned an error: nothing is stored.
    Refused(DatabaseError),
    /// There was no answer.
    OutcomeUnknown(Arc<str>),
}

impl WriteConnection {
    async fn open(target: &ConnectionTarget) -> Result<Self, DatabaseError> {
        let client = connect(target).await?;
        client.batch_execute(SESSION).await?;
        let (mark, claim, lock, share) = futures_util::try_join!(
            client.prepare(MARK),
            client.prepare(CLAIM),
            client.prepare(LOCK),
            client.prepare(SHARE),
        )?;
        let (put, delete, put_body, delete_body) = futures_util::try_join!(
            client.prepare(PUT),
            client.prepare(DELETE),
            client.prepare(PUT_BODY),
            client.prepare(DELETE_BODY),
        )?;
        Ok(Self { client, mark, claim, lock, share, put, delete, put_body, delete_body })
    }

    /// First half: begins, writes the marker, and locks rows, in one round trip.
    async fn lock_rows(
        &self,
        id: &[u8; 16],
        groups: i64,
        needs: &RowLocks,
    ) -> Result<(BTreeMap<Key, Bytes>, HashSet<Key>), DatabaseError> {
        let client = &self.client;
        let list =
            |keys: &std::collections::BTreeSet<Key>| -> Vec<Vec<u8>> { keys.iter().map(|key| key.to_vec()).collect() };
        let (claim, lock, share) = (list(&needs.claim), list(&needs.lock), list(&needs.share));
        let id = id.as_slice();
        let unless_empty = async |statement, keys: &Vec<Vec<u8>>| match keys.is_empty() {
            true => Ok(Vec::new()),
            false => client.query(statement, &[keys]).await,
        };
        // Joined futures are polled in order, so the statements are sent in order, pipelined.
        let (began, marked, claimed, locked, shared) = join5(
            client.batch_execute("BEGIN"),
            client.execute(&self.mark, &[&id, &groups]),
            unless_empty(&self.claim, &claim),
            unless_empty(&self.lock, &lock),
            unless_empty(&self.share, &share),
        )
        .await;
        began?;
        marked?;
        let claimed: HashSet<Key> = claimed?.iter().map(|row| column_bytes(row, 0)).collect();
        let rows = locked?.into_iter().chain(shared?);
        let stored: BTreeMap<Key, Bytes> = rows.map(|row| (column_bytes(&row, 0), column_bytes(&row, 1))).collect();
        // The row existed when it was claimed and was deleted a moment later, so it is not locked.
        if needs.claim.iter().any(|key| !claimed.contains(key) && !stored.contains_key(key)) {
            return Err(DatabaseError::Retry("a row was deleted while it was claimed".into()));
        }
        Ok((stored, claimed))
    }

    /// Second half: writes and commits, in one round trip.
    async fn write(&self, outcome: &GroupOutcome) -> Result<(), CommitFailure> {
        let client = &self.client;
        let (keys, values) = outcome.puts();
        let deletes = outcome.deletes();
        let (body_keys, bodies) = outcome.body_puts();
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
        let body_deletes = outcome.body_deletes();
        let rows = async { if keys.is_empty() { Ok(0) } else { client.execute(&self.put, &[&keys, &values]).await } };
        let row_deletes =
            async { if deletes.is_empty() { Ok(0) } else { client.execute(&self.delete, &[&deletes]).await } };
        let body_puts = async {
            if body_keys.is_empty() { Ok(0) } else { client.execute(&self.put_body, &[&body_keys, &bodies]).await }
        };
        let body_gone = async {
            if body_deletes.is_empty() { Ok(0) } else { client.execute(&self.delete_body, &[&body_deletes]).await }
        };
        let written = join3(row_deletes, rows, join3(body_puts, body_gone, client.batch_execute("COMMIT"))).await;
        let (row_deletes, rows, (body_puts, body_gone, committed)) = written;
        let mut unknown = None;
        // A COMMIT after a failed statement is a ROLLBACK and reports no error itself.
        for result in [row_deletes, rows, body_puts, body_gone, committed.map(|()| 0)] {
            match result {
                Ok(_) => {}
                Err(error) if error.as_db_error().is_some_and(|db| !is_session_end(db.code().code())) => {
                    return Err(CommitFailure::Refused(error.into()));
                }
                Err(error) => unknown = Some(super::url::reason(&error).into()),
            }
        }
        unknown.map_or(Ok(()), |why| Err(CommitFailure::OutcomeUnknown(why)))
    }
}

/// Operator intervention, connection failure, and CockroachDB's 40003 (statement completion unknown). The server may
/// send these after it has committed.
fn is_session_end(code: &str) -> bool {
    code.starts_with("57P") || code.starts_with("08") || code == "40003"
}

fn column_bytes(row: &tokio_postgres::Row, column: usize) -> Bytes {
    Bytes::copy_from_slice(row.get::<_, &[u8]>(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_committer_pauses_before_a_retry() {
        for retries in 1..=RETRIES_MAX {
            let (shortest, longest) = (retry_pause(retries, [0; 16]), retry_pause(retries, [u8::MAX; 16]));
            assert!(shortest > Duration::ZERO && shortest * 2 == longest, "{retries}: {shortest:?} {longest:?}");
            assert!(longest <= RETRY_PAUSE_MAX, "{retries}: {longest:?}");
        }
        let pauses: Vec<u128> = (1..9).map(|retries| retry_pause(retries, [u8::MAX; 16]).as_millis()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64]);
    }

    #[tokio::test]
    async fn a_group_is_bounded_in_batches_and_bytes() {
        let (sender, mut inbox) = tokio::sync::mpsc::channel(GROUP_BATCHES);
        for n in 0..4_u8 {
            let mut batch = Batch::intake();
            batch.put_body(Key::copy_from_slice(&[n]), vec![n; GROUP_BYTES / 2]);
            let (answer, _) = oneshot::channel();
            assert!(sender.send(PendingCommit { batch, answer, since: Instant::now() }).await.is_ok());
        }
        drop(sender);
        let mut sizes = Vec::new();
        loop {
            let mut group = Vec::new();
            collect(&mut inbox, &mut group).await;
            sizes.push(group.len());
            if group.is_empty() {
                break;
            }
        }
        assert_eq!(sizes, [2, 2, 0]);
    }
}
