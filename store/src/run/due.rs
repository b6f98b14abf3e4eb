//! What automations have to do, by partition and due time: the steps of runs, and jobs.
//!
//! ```text
//! AutomationDue · partition · due · kind · account · automation · id  ─►  (nothing), or the job
//! ```

use std::collections::HashSet;

use jiff::Timestamp;
use mail::automation::job::{AutomationJob, AutomationJobKind};
use mail::automation::run::AutomationRun;
use mail::id::{AccountId, AutomationId, EventId, RunId};
use serde::{Deserialize, Serialize};

use super::RunKey;
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key};
use crate::row::{self, stored};

const STEP: u8 = 0;
const JOB: u8 = 1;

#[derive(Serialize, Deserialize)]
#[serde(remote = "AutomationJob")]
struct AutomationJobRow {
    id: EventId,
    account: AccountId,
    partition: u16,
    due: Timestamp,
    work: AutomationJobKind,
}
stored!(AutomationJob as AutomationJobRow);

fn step_key(run: &AutomationRun, at: Timestamp) -> Key {
    key(Space::AutomationDue)
        .u16(run.partition)
        .time(at)
        .u8(STEP)
        .account(run.account)
        .id(run.automation.to_bytes())
        .id(run.id.to_bytes())
        .build()
}

fn job_key(job: &AutomationJob) -> Key {
    key(Space::AutomationDue)
        .u16(job.partition)
        .time(job.due)
        .u8(JOB)
        .account(job.account)
        .id([0; 16])
        .id(job.id.to_bytes())
        .build()
}

pub(super) fn put_step(batch: &mut Batch, run: &AutomationRun, at: Timestamp) {
    batch.put(step_key(run, at), Value::new());
}

pub(super) fn remove_step(batch: &mut Batch, run: &AutomationRun, at: Timestamp) {
    batch.delete(step_key(run, at));
}

/// Writes a new job.
pub fn put_job(batch: &mut Batch, job: &AutomationJob) {
    batch.put(job_key(job), row::encode(job));
}

/// A job with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The job.
    pub job: AutomationJob,
    row: Value,
}

/// Takes a job away, and puts another in its place when there is more to do; the commit conflicts when somebody
/// else did it.
pub fn replace_job(batch: &mut Batch, before: &StoredJob, after: Option<&AutomationJob>) {
    let at = job_key(&before.job);
    batch.check(at.clone(), Some(before.row.clone()));
    batch.delete(at);
    if let Some(after) = after {
        put_job(batch, after);
    }
}

/// Something that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueWork {
    /// A run goes on.
    Step(RunKey),
    /// A job.
    Job(Box<StoredJob>),
    /// A row that is neither.
    Damaged(Key),
}

/// What of a partition is due first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueWorkBatch {
    /// What is due and since when, in the order of time.
    pub due: Vec<(Timestamp, DueWork)>,
    /// There may be more.
    pub more: bool,
    /// When the next is due, of what is not yet.
    pub later: Option<Timestamp>,
}

/// What of a partition is due first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_due(store: &Store, partition: u16, now: Timestamp, limit: usize) -> Result<DueWorkBatch, ReadError> {
    Ok(scan_due(store, partition, now, limit).await?.0)
}

/// What is due first, and the last key that was looked at.
async fn scan_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<(DueWorkBatch, Option<Key>), ReadError> {
    let range = key(Space::AutomationDue).u16(partition).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let last = rows.last().map(|(at, _)| at.clone());
    let mut first = DueWorkBatch { more: rows.len() == limit, ..DueWorkBatch::default() };
    for (at, value) in rows {
        match read(&at, &value) {
            Ok((due, _)) if due > now => {
                return Ok((DueWorkBatch { later: Some(due), more: false, ..first }, last));
            }
            Ok(due) => first.due.push(due),
            Err(_) => first.due.push((now, DueWork::Damaged(at))),
        }
    }
    Ok((first, last))
}

/// What of a partition is at hand: what is due the longest and, where that is more than `limit`, what became due
/// last, as many again, oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list_oldest_and_newest_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
) -> Result<DueWorkBatch, ReadError> {
    let (mut first, last) = scan_due(store, partition, now, limit).await?;
    // Behind all that is due now, whatever it is.
    let end = key(Space::AutomationDue).u16(partition).time(now).u8(u8::MAX).build();
    let start = last.filter(|_| first.more).map(|last| crate::key::successor(&last));
    let Some(start) = start.filter(|start| *start < end) else { return Ok(first) };
    let mut last = store.scan(start..end, ScanOrder::Descending, limit).await?;
    last.reverse();
    for (at, value) in last {
        first.due.push(read(&at, &value).unwrap_or((now, DueWork::Damaged(at))));
    }
    Ok(first)
}

/// The partitions in which a batch brings something to do.
#[must_use]
pub fn partitions_of(batch: &Batch) -> HashSet<u16> {
    let brought = batch.rows.iter().filter(|row| row.value.is_some());
    brought.filter_map(|row| KeyReader::new(Space::AutomationDue, &row.key).ok()?.u16().ok()).collect()
}

/// Takes a row away that nobody can do anything with.
pub fn remove_damaged(batch: &mut Batch, at: Key) {
    batch.delete(at);
}

/// Takes the key of a run away that is not due then.
pub fn remove_stale_step(batch: &mut Batch, partition: u16, at: Timestamp, (account, automation, run): RunKey) {
    let stale = key(Space::AutomationDue).u16(partition).time(at).u8(STEP);
    batch.delete(stale.account(account).id(automation.to_bytes()).id(run.to_bytes()).build());
}

fn read(at: &Key, value: &Value) -> Result<(Timestamp, DueWork), ReadError> {
    let parts = |at: &Key| -> Result<_, KeyDecodeError> {
        let mut reader = KeyReader::new(Space::AutomationDue, at)?;
        reader.u16()?;
        let (due, kind, account) = (reader.time()?, reader.u8()?, reader.account()?);
        let automation = AutomationId::from_bytes(reader.id()?);
        Ok((due, kind, (account, automation, RunId::from_bytes(reader.id()?))))
    };
    let (due, kind, about) = parts(at).map_err(row::damaged)?;
    match kind {
        STEP => Ok((due, DueWork::Step(about))),
        _ => Ok((due, DueWork::Job(Box::new(StoredJob { job: row::decode(value)?, row: value.clone() })))),
    }
}
