//! Due work of automations by partition and due time: steps of runs, and jobs.
//!
//! ```text
//! AutomationDue · partition · due · kind · account · automation · id  ─►  (empty), or the job
//! ```

use std::collections::HashSet;

use jiff::Timestamp;
use model::automation::job::AutomationJob;
use model::automation::run::AutomationRun;
use model::id::{AutomationId, RunId};

use super::RunKey;
use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyDecodeError, KeyReader, Space, key, successor};

const STEP: u8 = 0;
const JOB: u8 = 1;
/// Rows per read, after the first read of a scan.
const SCAN_ROWS: usize = 256;
/// Number of rows after which a scan ends, whatever it has found.
const SCANNED_MAX: usize = 2_048;

stored!(AutomationJob);

fn step_key(run: &AutomationRun, at: Timestamp) -> Key {
    step_key_of(run.partition, at, (run.account, run.automation, run.id))
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

/// Returns whether a run's due keys at two times are the same. Keys hold microseconds, and rows nanoseconds.
pub(super) fn is_same_step_key(run: &AutomationRun, one: Timestamp, other: Timestamp) -> bool {
    step_key(run, one) == step_key(run, other)
}

pub(super) fn put_step(batch: &mut Batch, run: &AutomationRun, at: Timestamp) {
    batch.put(step_key(run, at), Value::new());
}

pub(super) fn remove_step(batch: &mut Batch, run: &AutomationRun, at: Timestamp) {
    batch.delete(step_key(run, at));
}

pub fn put_job(batch: &mut Batch, job: &AutomationJob) {
    batch.put(job_key(job), codec::encode(job));
}

/// A job with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    pub job: AutomationJob,
    row: Value,
}

/// Deletes a job, or replaces it if there is more to do. The commit conflicts if the job has changed since it was read.
pub fn replace_job(batch: &mut Batch, before: &StoredJob, after: Option<&AutomationJob>) {
    let at = job_key(&before.job);
    batch.remove(at, before.row.clone());
    if let Some(after) = after {
        put_job(batch, after);
    }
}

/// An item of due work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueWork {
    /// A run whose next step is due.
    Step(RunKey),
    Job(Box<StoredJob>),
    /// A row whose key cannot be decoded.
    Damaged(Key),
}

/// Due work of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueWorkBatch {
    /// Due times and items, ordered by time.
    pub due: Vec<(Timestamp, DueWork)>,
    /// True if there may be more due items than `limit`.
    pub has_more: bool,
    /// The last row read, if the scan ended early because it read many rows that this release cannot decode. The next
    /// scan continues after it.
    pub read_until: Option<Key>,
    /// The next due time in the future, if known.
    pub later: Option<Timestamp>,
}

/// Lists the due work of a partition, longest due first, at most `limit`. Jobs that this release cannot decode stay
/// where they are, for a newer node.
pub async fn list_due(store: &Store, partition: u16, now: Timestamp, limit: usize) -> Result<DueWorkBatch> {
    Ok(scan_due(store, partition, now, limit, None).await?.0)
}

/// Like [`list_due`], but only rows after a key; also returns the last key of due work that was read.
async fn scan_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
    after: Option<&Key>,
) -> Result<(DueWorkBatch, Option<Key>)> {
    let mut range = key(Space::AutomationDue).u16(partition).range();
    if let Some(after) = after {
        range.start = successor(after);
    }
    let (mut first, mut last) = (DueWorkBatch::default(), None);
    let (mut wanted, mut scanned) = (limit, 0);
    loop {
        let rows = store.scan(range.clone(), ScanOrder::Ascending, wanted).await?;
        let is_end = rows.len() < wanted;
        scanned += rows.len();
        for (at, value) in rows {
            match read(&at, &value) {
                Ok((due, _)) if due > now => {
                    first.later = Some(due);
                    return Ok((first, last));
                }
                Ok((due, Some(work))) => first.due.push((due, work)),
                Ok((_, None)) => {}
                Err(_) => first.due.push((now, DueWork::Damaged(at.clone()))),
            }
            last = Some(at);
            if first.due.len() == limit {
                first.has_more = true;
                return Ok((first, last));
            }
        }
        if is_end {
            return Ok((first, last));
        }
        if scanned >= SCANNED_MAX {
            first.read_until.clone_from(&last);
            return Ok((first, last));
        }
        if let Some(last) = &last {
            range.start = successor(last);
        }
        wanted = SCAN_ROWS;
    }
}

/// Lists the due work of a partition: up to `limit` items that are due longest, and if there are more, up to `limit`
/// items that became due last, oldest first. `after` is the last row that an earlier scan read
/// ([`DueWorkBatch::read_until`]).
pub async fn list_oldest_and_newest_due(
    store: &Store,
    partition: u16,
    now: Timestamp,
    limit: usize,
    after: Option<&Key>,
) -> Result<DueWorkBatch> {
    let (mut first, last) = scan_due(store, partition, now, limit, after).await?;
    // The end of everything that is due now, of either kind.
    let end = key(Space::AutomationDue).u16(partition).time(now).u8(u8::MAX).build();
    let start = last.filter(|_| first.has_more || first.read_until.is_some()).map(|last| successor(&last));
    let Some(start) = start.filter(|start| *start < end) else { return Ok(first) };
    let mut last = store.scan(start..end, ScanOrder::Descending, limit).await?;
    last.reverse();
    for (at, value) in last {
        match read(&at, &value) {
            Ok((due, work)) => first.due.extend(work.map(|work| (due, work))),
            Err(_) => first.due.push((now, DueWork::Damaged(at))),
        }
    }
    Ok(first)
}

/// The partitions in which a batch adds due work.
pub fn partitions_of(batch: &Batch) -> HashSet<u16> {
    let written = batch.rows.iter().filter(|row| row.value.is_some());
    written.filter_map(|row| KeyReader::new(Space::AutomationDue, &row.key).ok()?.u16().ok()).collect()
}

/// Deletes a row whose key cannot be decoded.
pub fn remove_damaged(batch: &mut Batch, at: Key) {
    batch.delete(at);
}

fn step_key_of(partition: u16, at: Timestamp, (account, automation, run): RunKey) -> Key {
    let due = key(Space::AutomationDue).u16(partition).time(at).u8(STEP);
    due.account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

/// Deletes the due key of a run that is not due at that time.
pub fn remove_stale_step(batch: &mut Batch, partition: u16, at: Timestamp, run: RunKey) {
    batch.delete(step_key_of(partition, at, run));
}

/// Moves the due key of a run that cannot be decoded. The run keeps its own due time.
pub fn postpone_step(batch: &mut Batch, partition: u16, at: Timestamp, run: RunKey, until: Timestamp) {
    batch.delete(step_key_of(partition, at, run));
    batch.put(step_key_of(partition, until, run), Value::new());
}

/// Reads a row: its due time, and its work unless it is a job that this release cannot decode.
fn read(at: &Key, value: &Value) -> Result<(Timestamp, Option<DueWork>), KeyDecodeError> {
    let parts = |at: &Key| -> Result<_, KeyDecodeError> {
        let mut reader = KeyReader::new(Space::AutomationDue, at)?;
        reader.u16()?;
        let (due, kind, account) = (reader.time()?, reader.u8()?, reader.account()?);
        let automation = AutomationId::from_bytes(reader.id()?);
        Ok((due, kind, (account, automation, RunId::from_bytes(reader.id()?))))
    };
    let (due, kind, about) = parts(at)?;
    let job = || codec::decode_or_leave(at, value).map(|job| StoredJob { job, row: value.clone() });
    match kind {
        STEP => Ok((due, Some(DueWork::Step(about)))),
        _ => Ok((due, job().map(|job| DueWork::Job(Box::new(job))))),
    }
}
