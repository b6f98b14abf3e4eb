//! A lane: one connection that writes, group by group.
//!
//! ```text
//! inbox ─► group ─► BEGIN, mark, hold the rows still ─► judge ─► write, COMMIT ─► answers
//!            ▲                                                       │ lost
//!            └── not committed ◄── what does the mark say? ◄─────────┘
//! ```
//!
//! Whatever waits becomes the next group, so that the more there is to write, the more shares one commit.
//! The mark is a row of the lane's own, written first in every transaction: when the connection is lost
//! between COMMIT and its answer, a new one reads the mark, which waits for the old transaction to end,
//! and knows. Only when that cannot be learned for [`UNKNOWN_AFTER`] are the batches answered as unknown.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join3, join5};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, Statement};

use super::fault::DatabaseError;
use super::group::{GroupOutcome, RowLocks, evaluate};
use super::line::connect;
use super::shared::{DatabaseState, Streak};
use super::url::ConnectionTarget;
use crate::engine::{Batch, BatchPurpose, CommitError, Key};

/// Batches of one group at most.
const GROUP_BATCHES: usize = 256;
/// A group that has come to so many bytes takes no more: one transaction stays within [`HALF_MAX`], and far
/// below the gigabyte that PostgreSQL takes in one statement.
const GROUP_BYTES: usize = 16 << 20;
/// One half of a transaction takes no longer, or its connection is given up.
const HALF_MAX: Duration = Duration::from_secs(15);
/// How long intake waits for a database that is away before it is refused.
const INTAKE_PATIENCE: Duration = Duration::from_secs(3);
/// How long the outcome of a lost commit is asked for.
const UNKNOWN_AFTER: Duration = Duration::from_secs(30);
/// How long a lane waits when the database's disk is full.
const FULL_PAUSE: Duration = Duration::from_millis(250);
/// How often a group that stands in others' way is done again before that counts as being away.
const RETRIES_MAX: u32 = 100;

const MARK: &str = "INSERT INTO postrider_writers (id, groups) VALUES ($1, $2) \
     ON CONFLICT (id) DO UPDATE SET groups = excluded.groups, seen = now()";
/// Writes the row where there is none: a mark that a transaction under way has just made is invisible, and
/// only who wants to make the same waits for it.
const MARKED: &str = "INSERT INTO postrider_writers (id, groups) VALUES ($1, 0) \
     ON CONFLICT (id) DO UPDATE SET seen = now() RETURNING groups";
/// A server that acknowledges before it has written would make a 250 a lie. A node that falls silent in the
/// middle of a transaction (frozen, cut off from the network) must not hold its rows still for the others,
/// and a wait that we have given up must end at the server too.
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

/// A batch that waits for its answer.
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

/// Why a group did not get through.
enum GroupError {
    /// It is certainly not stored.
    NotCommitted(DatabaseError),
    /// COMMIT was on its way.
    OutcomeUnknown(Arc<str>, GroupOutcome),
}

impl From<tokio_postgres::Error> for GroupError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::NotCommitted(error.into())
    }
}

/// A connection that writes.
pub(crate) struct GroupCommitter {
    pub(crate) target: ConnectionTarget,
    pub(crate) inbox: Arc<Mutex<Receiver<PendingCommit>>>,
    pub(crate) shared: Arc<DatabaseState>,
    /// Its name in the table of writers: new with every doubt, so that no late transaction of a former
    /// life is taken for one of this.
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

    /// Writes until the inbox is closed and empty.
    pub(crate) async fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP_BATCHES);
        loop {
            // One lane collects at a time; while it commits, the next collects.
            collect(&mut *self.inbox.lock().await, &mut group).await;
            if group.is_empty() {
                return;
            }
            self.commit_group(&mut group).await;
            group.clear();
        }
    }

    /// Brings a group to its end, whatever happens on the way.
    async fn commit_group(&mut self, group: &mut Vec<PendingCommit>) {
        let (mut retries, mut streak) = (0, Streak::new());
        while !group.is_empty() {
            match self.try_commit(group).await {
                Ok(judged) => return self.answer(group, judged),
                Err(GroupError::NotCommitted(DatabaseError::Retry(why))) if retries < RETRIES_MAX => {
                    retries += 1;
                    tracing::debug!(%why, "a group of commits is written again");
                    // Not in step with whoever stood in the way.
                    sleep(Duration::from_millis(u64::from(retries.min(20)) * u64::from(self.id[0] % 4))).await;
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
                Err(GroupError::OutcomeUnknown(why, judged)) => {
                    self.line = None;
                    self.shared.mark_unavailable(&why, &streak);
                    match self.was_committed().await {
                        Some(true) => return self.answer(group, judged),
                        Some(false) => streak.pause(&self.shared).await,
                        None => return self.answer_unknown(group, &why),
                    }
                }
            }
        }
    }

    async fn handle_unavailable(&self, group: &mut Vec<PendingCommit>, why: &Arc<str>, streak: &mut Streak) {
        let is_node_away = self.shared.mark_unavailable(why, streak);
        // Whoever still waits for a lane is told now: nobody else would, unless others commit.
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
            // What is not stored now is not stored by us: whoever starts next goes on from what is.
            return refuse(group, |_| true, &CommitError::Away(Arc::clone(why)));
        }
        let patient = |pending: &PendingCommit| {
            pending.batch.purpose == BatchPurpose::Intake && pending.since.elapsed() > INTAKE_PATIENCE
        };
        refuse(group, patient, &CommitError::Away(Arc::clone(why)));
        streak.pause(&self.shared).await;
    }

    fn answer_unknown(&mut self, group: &mut Vec<PendingCommit>, why: &Arc<str>) {
        tracing::error!(%why, batches = group.len(), "it stays unknown whether a group of commits is stored");
        self.id = self.shared.random_id();
        self.groups = 0;
        refuse(group, |_| true, &CommitError::Unknown(Arc::clone(why)));
    }

    fn answer(&self, group: &mut Vec<PendingCommit>, judged: GroupOutcome) {
        let conflicts = judged.verdicts.iter().filter(|verdict| verdict.is_err()).count();
        self.shared.record_commits(group.len() - conflicts.min(group.len()), conflicts);
        for (pending, verdict) in group.drain(..).zip(judged.verdicts) {
            let _ = pending.answer.send(verdict);
        }
    }

    /// One try.
    async fn try_commit(&mut self, group: &[PendingCommit]) -> Result<GroupOutcome, GroupError> {
        // One that broke while nothing was written says nothing about the database of now.
        if self.line.as_ref().is_none_or(|line| line.client.is_closed()) {
            self.line = None;
            let opened = timeout(HALF_MAX, WriteConnection::open(&self.target)).await;
            self.line = Some(
                opened
                    .unwrap_or_else(|_| Err(DatabaseError::unavailable("it does not answer")))
                    .map_err(GroupError::NotCommitted)?,
            );
        }
        let Some(line) = &self.line else {
            return Err(GroupError::NotCommitted(DatabaseError::unavailable("no line")));
        };
        self.groups += 1;
        let batches = group.iter().map(|pending| &pending.batch);
        let needs = RowLocks::for_batches(batches.clone());
        let held = timeout(HALF_MAX, line.lock_rows(&self.id, self.groups, &needs)).await;
        let (held, claimed) = match held {
            Ok(Ok(held)) => held,
            Ok(Err(fault)) => return Err(self.roll_back(fault).await),
            Err(_) => return Err(GroupError::NotCommitted(DatabaseError::unavailable("it does not answer"))),
        };
        let judged = evaluate(batches, held, &claimed);
        match timeout(HALF_MAX, line.write(&judged)).await {
            Ok(Ok(())) => Ok(judged),
            Ok(Err(CommitFailure::Refused(fault))) => Err(self.roll_back(fault).await),
            Ok(Err(CommitFailure::OutcomeUnknown(why))) => Err(GroupError::OutcomeUnknown(why, judged)),
            Err(_) => Err(GroupError::OutcomeUnknown("it does not answer".into(), judged)),
        }
    }

    /// Ends a transaction that failed half-way; a line on which even that fails is given up.
    async fn roll_back(&mut self, fault: DatabaseError) -> GroupError {
        if let Some(line) = &self.line {
            let rolled_back = timeout(HALF_MAX, line.client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                self.line = None;
            }
        }
        GroupError::NotCommitted(fault)
    }

    /// Whether the last group is stored; none when that cannot be learned.
    async fn was_committed(&mut self) -> Option<bool> {
        let asked = timeout(UNKNOWN_AFTER, async {
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
        asked.await.ok()
    }

    /// The last group that the mark names: waits for the transaction that may still be writing it.
    async fn read_mark(&self) -> Result<Option<i64>, DatabaseError> {
        let client = connect(&self.target).await?;
        let rows = client.query(MARKED, &[&self.id.as_slice()]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// What waits, as far as one transaction may hold it; nothing when the inbox is closed and empty.
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

/// Answers those of a group that are meant with an error, and leaves the others.
fn refuse(group: &mut Vec<PendingCommit>, meant: impl Fn(&PendingCommit) -> bool, error: &CommitError) {
    let (refused, kept): (Vec<_>, Vec<_>) = group.drain(..).partition(meant);
    group.extend(kept);
    for pending in refused {
        let _ = pending.answer.send(Err(error.clone()));
    }
}

/// What went wrong while the second half was written.
enum CommitFailure {
    /// The server said no: nothing is stored.
    Refused(DatabaseError),
    /// Nobody said anything.
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

    /// The first half: begins, marks, and holds rows still. One round trip.
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
        // Joined futures are polled in their order, so the questions leave in their order, together.
        let (begun, marked, claimed, locked, shared) = join5(
            client.batch_execute("BEGIN"),
            client.execute(&self.mark, &[&id, &groups]),
            unless_empty(&self.claim, &claim),
            unless_empty(&self.lock, &lock),
            unless_empty(&self.share, &share),
        )
        .await;
        begun?;
        marked?;
        let claimed: HashSet<Key> = claimed?.iter().map(|row| column_bytes(row, 0)).collect();
        let rows = locked?.into_iter().chain(shared?);
        let held: BTreeMap<Key, Bytes> = rows.map(|row| (column_bytes(&row, 0), column_bytes(&row, 1))).collect();
        // A row that stood in the way of the claim and was gone a moment later: nobody holds it still.
        if needs.claim.iter().any(|key| !claimed.contains(key) && !held.contains_key(key)) {
            return Err(DatabaseError::Retry("a row went away while it was claimed".into()));
        }
        Ok((held, claimed))
    }

    /// The second half: writes and commits. One round trip.
    async fn write(&self, judged: &GroupOutcome) -> Result<(), CommitFailure> {
        let client = &self.client;
        let (keys, values) = judged.puts();
        let deletes = judged.deletes();
        let (body_keys, bodies) = judged.body_puts();
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
        let body_deletes = judged.body_deletes();
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
        let mut lost = None;
        // A COMMIT behind a statement that failed is a ROLLBACK, and says so of no error.
        for result in [row_deletes, rows, body_puts, body_gone, committed.map(|()| 0)] {
            match result {
                Ok(_) => {}
                Err(error) if error.as_db_error().is_some_and(|db| !is_session_end(db.code().code())) => {
                    return Err(CommitFailure::Refused(error.into()));
                }
                Err(error) => lost = Some(super::url::reason(&error).into()),
            }
        }
        lost.map_or(Ok(()), |why| Err(CommitFailure::OutcomeUnknown(why)))
    }
}

/// Operator intervention, connection trouble, and a completion that the server itself does not know of
/// (CockroachDB's 40003): they may be said after it has committed.
fn is_session_end(code: &str) -> bool {
    code.starts_with("57P") || code.starts_with("08") || code == "40003"
}

fn column_bytes(row: &tokio_postgres::Row, column: usize) -> Bytes {
    Bytes::copy_from_slice(row.get::<_, &[u8]>(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_group_holds_no_more_than_one_transaction_may() {
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
