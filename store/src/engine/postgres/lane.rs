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

use super::fault::Fault;
use super::group::{Judged, Needs, judge};
use super::line::connect;
use super::shared::{Shared, Streak};
use super::url::Target;
use crate::engine::{Batch, CommitError, Key, Purpose};

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
pub(crate) struct Pending {
    pub(crate) batch: Batch,
    pub(crate) answer: oneshot::Sender<Result<(), CommitError>>,
    pub(crate) since: Instant,
}

struct Line {
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
enum Stop {
    /// It is certainly not stored.
    Not(Fault),
    /// COMMIT was on its way.
    Lost(Arc<str>, Judged),
}

impl From<tokio_postgres::Error> for Stop {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Not(error.into())
    }
}

/// A connection that writes.
pub(crate) struct Lane {
    pub(crate) target: Target,
    pub(crate) inbox: Arc<Mutex<Receiver<Pending>>>,
    pub(crate) shared: Arc<Shared>,
    /// Its name in the table of writers: new with every doubt, so that no late transaction of a former
    /// life is taken for one of this.
    pub(crate) id: [u8; 16],
    line: Option<Line>,
    groups: i64,
}

impl Lane {
    pub(crate) fn new(target: Target, inbox: Arc<Mutex<Receiver<Pending>>>, shared: Arc<Shared>) -> Self {
        let id = shared.unique();
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
            self.settle(&mut group).await;
            group.clear();
        }
    }

    /// Brings a group to its end, whatever happens on the way.
    async fn settle(&mut self, group: &mut Vec<Pending>) {
        let (mut retries, mut streak) = (0, Streak::new());
        while !group.is_empty() {
            match self.write(group).await {
                Ok(judged) => return self.answer(group, judged),
                Err(Stop::Not(Fault::Retry(why))) if retries < RETRIES_MAX => {
                    retries += 1;
                    tracing::debug!(%why, "a group of commits is written again");
                    // Not in step with whoever stood in the way.
                    sleep(Duration::from_millis(u64::from(retries.min(20)) * u64::from(self.id[0] % 4)))
                        .await;
                }
                Err(Stop::Not(Fault::Full)) => {
                    self.shared.is_full();
                    refuse(group, |_| true, &CommitError::Full);
                    sleep(FULL_PAUSE).await;
                }
                Err(Stop::Not(Fault::Retry(why) | Fault::Away(why))) => {
                    self.line = None;
                    self.away(group, &why, &mut streak).await;
                }
                Err(Stop::Lost(why, judged)) => {
                    self.line = None;
                    self.shared.is_away(&why, &streak);
                    match self.was_committed().await {
                        Some(true) => return self.answer(group, judged),
                        Some(false) => streak.pause(&self.shared).await,
                        None => return self.unknown(group, &why),
                    }
                }
            }
        }
    }

    async fn away(&self, group: &mut Vec<Pending>, why: &Arc<str>, streak: &mut Streak) {
        let is_node_away = self.shared.is_away(why, streak);
        // Whoever still waits for a lane is told now: nobody else would, unless others commit.
        let mut size_bytes: usize = group.iter().map(|pending| pending.batch.size_bytes()).sum();
        if is_node_away && let Ok(mut inbox) = self.inbox.try_lock() {
            while size_bytes < GROUP_BYTES
                && let Ok(pending) = inbox.try_recv()
            {
                if pending.batch.purpose == Purpose::Intake {
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
        let patient = |pending: &Pending| {
            pending.batch.purpose == Purpose::Intake && pending.since.elapsed() > INTAKE_PATIENCE
        };
        refuse(group, patient, &CommitError::Away(Arc::clone(why)));
        streak.pause(&self.shared).await;
    }

    fn unknown(&mut self, group: &mut Vec<Pending>, why: &Arc<str>) {
        tracing::error!(%why, batches = group.len(), "it stays unknown whether a group of commits is stored");
        self.id = self.shared.unique();
        self.groups = 0;
        refuse(group, |_| true, &CommitError::Unknown(Arc::clone(why)));
    }

    fn answer(&self, group: &mut Vec<Pending>, judged: Judged) {
        let conflicts = judged.verdicts.iter().filter(|verdict| verdict.is_err()).count();
        self.shared.committed(group.len() - conflicts.min(group.len()), conflicts);
        for (pending, verdict) in group.drain(..).zip(judged.verdicts) {
            let _ = pending.answer.send(verdict);
        }
    }

    /// One try.
    async fn write(&mut self, group: &[Pending]) -> Result<Judged, Stop> {
        // One that broke while nothing was written says nothing about the database of now.
        if self.line.as_ref().is_none_or(|line| line.client.is_closed()) {
            self.line = None;
            let opened = timeout(HALF_MAX, Line::open(&self.target)).await;
            self.line =
                Some(opened.unwrap_or_else(|_| Err(Fault::away("it does not answer"))).map_err(Stop::Not)?);
        }
        let Some(line) = &self.line else { return Err(Stop::Not(Fault::away("no line"))) };
        self.groups += 1;
        let batches = group.iter().map(|pending| &pending.batch);
        let needs = Needs::of(batches.clone());
        let held = timeout(HALF_MAX, line.hold(&self.id, self.groups, &needs)).await;
        let (held, claimed) = match held {
            Ok(Ok(held)) => held,
            Ok(Err(fault)) => return Err(self.give_up(fault).await),
            Err(_) => return Err(Stop::Not(Fault::away("it does not answer"))),
        };
        let judged = judge(batches, held, &claimed);
        match timeout(HALF_MAX, line.write(&judged)).await {
            Ok(Ok(())) => Ok(judged),
            Ok(Err(Wrong::Refused(fault))) => Err(self.give_up(fault).await),
            Ok(Err(Wrong::Lost(why))) => Err(Stop::Lost(why, judged)),
            Err(_) => Err(Stop::Lost("it does not answer".into(), judged)),
        }
    }

    /// Ends a transaction that failed half-way; a line on which even that fails is given up.
    async fn give_up(&mut self, fault: Fault) -> Stop {
        if let Some(line) = &self.line {
            let rolled_back = timeout(HALF_MAX, line.client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                self.line = None;
            }
        }
        Stop::Not(fault)
    }

    /// Whether the last group is stored; none when that cannot be learned.
    async fn was_committed(&mut self) -> Option<bool> {
        let asked = timeout(UNKNOWN_AFTER, async {
            let mut streak = Streak::new();
            loop {
                match self.mark().await {
                    Ok(groups) => return groups == Some(self.groups),
                    Err(fault) => {
                        self.shared.is_away(&format!("{fault:?}").into(), &streak);
                        streak.pause(&self.shared).await;
                    }
                }
            }
        });
        asked.await.ok()
    }

    /// The last group that the mark names: waits for the transaction that may still be writing it.
    async fn mark(&self) -> Result<Option<i64>, Fault> {
        let client = connect(&self.target).await?;
        let rows = client.query(MARKED, &[&self.id.as_slice()]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// What waits, as far as one transaction may hold it; nothing when the inbox is closed and empty.
async fn collect(inbox: &mut Receiver<Pending>, group: &mut Vec<Pending>) {
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
fn refuse(group: &mut Vec<Pending>, meant: impl Fn(&Pending) -> bool, error: &CommitError) {
    let (refused, kept): (Vec<_>, Vec<_>) = group.drain(..).partition(meant);
    group.extend(kept);
    for pending in refused {
        let _ = pending.answer.send(Err(error.clone()));
    }
}

/// What went wrong while the second half was written.
enum Wrong {
    /// The server said no: nothing is stored.
    Refused(Fault),
    /// Nobody said anything.
    Lost(Arc<str>),
}

impl Line {
    async fn open(target: &Target) -> Result<Self, Fault> {
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
    async fn hold(
        &self,
        id: &[u8; 16],
        groups: i64,
        needs: &Needs,
    ) -> Result<(BTreeMap<Key, Bytes>, HashSet<Key>), Fault> {
        let client = &self.client;
        let list = |keys: &std::collections::BTreeSet<Key>| -> Vec<Vec<u8>> {
            keys.iter().map(|key| key.to_vec()).collect()
        };
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
        let claimed: HashSet<Key> = claimed?.iter().map(|row| bytes(row, 0)).collect();
        let rows = locked?.into_iter().chain(shared?);
        let held: BTreeMap<Key, Bytes> = rows.map(|row| (bytes(&row, 0), bytes(&row, 1))).collect();
        // A row that stood in the way of the claim and was gone a moment later: nobody holds it still.
        if needs.claim.iter().any(|key| !claimed.contains(key) && !held.contains_key(key)) {
            return Err(Fault::Retry("a row went away while it was claimed".into()));
        }
        Ok((held, claimed))
    }

    /// The second half: writes and commits. One round trip.
    async fn write(&self, judged: &Judged) -> Result<(), Wrong> {
        let client = &self.client;
        let (keys, values) = judged.puts();
        let deletes = judged.deletes();
        let (body_keys, bodies) = judged.body_puts();
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
        let body_deletes = judged.body_deletes();
        let rows = async {
            if keys.is_empty() { Ok(0) } else { client.execute(&self.put, &[&keys, &values]).await }
        };
        let row_deletes = async {
            if deletes.is_empty() { Ok(0) } else { client.execute(&self.delete, &[&deletes]).await }
        };
        let body_puts = async {
            if body_keys.is_empty() {
                Ok(0)
            } else {
                client.execute(&self.put_body, &[&body_keys, &bodies]).await
            }
        };
        let body_gone = async {
            if body_deletes.is_empty() {
                Ok(0)
            } else {
                client.execute(&self.delete_body, &[&body_deletes]).await
            }
        };
        let written =
            join3(row_deletes, rows, join3(body_puts, body_gone, client.batch_execute("COMMIT"))).await;
        let (row_deletes, rows, (body_puts, body_gone, committed)) = written;
        let mut lost = None;
        // A COMMIT behind a statement that failed is a ROLLBACK, and says so of no error.
        for result in [row_deletes, rows, body_puts, body_gone, committed.map(|()| 0)] {
            match result {
                Ok(_) => {}
                Err(error) if error.as_db_error().is_some_and(|db| !ends_the_session(db.code().code())) => {
                    return Err(Wrong::Refused(error.into()));
                }
                Err(error) => lost = Some(super::url::reason(&error).into()),
            }
        }
        lost.map_or(Ok(()), |why| Err(Wrong::Lost(why)))
    }
}

/// Operator intervention, connection trouble, and a completion that the server itself does not know of
/// (CockroachDB's 40003): they may be said after it has committed.
fn ends_the_session(code: &str) -> bool {
    code.starts_with("57P") || code.starts_with("08") || code == "40003"
}

fn bytes(row: &tokio_postgres::Row, column: usize) -> Bytes {
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
            assert!(sender.send(Pending { batch, answer, since: Instant::now() }).await.is_ok());
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
