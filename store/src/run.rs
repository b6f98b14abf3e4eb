//! Runs of automations: a row each, with all that is found by it in the commits that change it.
//!
//! ```text
//! Run · account · automation · run           ─►  the run
//! RunSealed · account · automation · run     ─►  what it knows, sealed, while it goes on
//! RunBy, RunWait, AutomationDue              ─►  [`by`], [`wait`], [`due`], [`counts`]
//! ```
//!
//! Every change checks the row as it was read: of two that move a run one wins, so that each step is done
//! once in the books.

pub mod by;
pub mod counts;
pub mod due;
pub mod wait;

use jiff::Timestamp;
use mail::automation::run::{AutomationRun, CancelSource, CompletionReason, RunStatus, RunWait, StepState};
use mail::id::{AccountId, AutomationId, RunId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "AutomationRun")]
struct RunRow {
    id: RunId,
    account: AccountId,
    automation: AutomationId,
    automation_name: String,
    version: u32,
    partition: u16,
    status: RunStatus,
    source: String,
    event_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    index: usize,
    steps: Vec<StepState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<RunWait>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trying_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<CancelSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_by: Option<CompletionReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lineage: Vec<AutomationId>,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
}
stored!(AutomationRun as RunRow);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Whose run, of which automation, which.
pub type RunKey = (AccountId, AutomationId, RunId);

/// A run as it was read: what a change of it checks.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The run.
    pub run: AutomationRun,
    row: Value,
}

/// What a run is.
#[must_use]
pub fn run_key(run: &AutomationRun) -> RunKey {
    (run.account, run.automation, run.id)
}

fn key_of((account, automation, run): RunKey) -> Key {
    key(Space::AutomationRun).account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

fn sealed_key((account, automation, run): RunKey) -> Key {
    key(Space::AutomationRunSealed).account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

/// Writes a new run, and what it knows, sealed.
pub fn create(batch: &mut Batch, run: &AutomationRun, sealed: Vec<u8>) {
    batch.put_fresh(key_of(run_key(run)), row::encode(run));
    batch.put_fresh(sealed_key(run_key(run)), sealed);
    by::create(batch, run);
    counts::record_change(batch, run, (None, run.status));
    if let Some(at) = run.due {
        due::put_step(batch, run, at);
    }
}

/// Changes a run; the commit conflicts when it is no more as it was read. What it knows is forgotten when it
/// ends.
pub fn update(batch: &mut Batch, before: &StoredRun, after: &AutomationRun) {
    let was = &before.run;
    batch.check(key_of(run_key(was)), Some(before.row.clone()));
    batch.put(key_of(run_key(after)), row::encode(after));
    by::update(batch, was, after);
    if was.status != after.status {
        counts::record_change(batch, was, (Some(was.status), after.status));
    }
    if was.due != after.due {
        if let Some(at) = was.due {
            due::remove_step(batch, was, at);
        }
        if let Some(at) = after.due {
            due::put_step(batch, after, at);
        }
    }
    if was.waiting != after.waiting {
        wait::update(batch, was, after);
    }
    if !after.status.is_active() {
        batch.delete(sealed_key(run_key(after)));
    }
}

/// Writes anew what a run knows, sealed.
pub fn put_sealed(batch: &mut Batch, about: RunKey, sealed: Vec<u8>) {
    batch.put(sealed_key(about), sealed);
}

/// Whether a conflict was about a run, or about an answer that one gave.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::AutomationRun as u8)) || by::is_answer_conflict(conflict)
}

/// A run.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, about: RunKey) -> Result<Option<StoredRun>, ReadError> {
    store.get(&key_of(about)).await?.map(decode_stored).transpose()
}

fn decode_stored(row: Value) -> Result<StoredRun, ReadError> {
    Ok(StoredRun { run: row::decode(&row)?, row })
}

/// A run and what it knows, sealed, as of one moment.
///
/// # Errors
/// The store cannot be read.
pub async fn get_with_sealed(store: &Store, about: RunKey) -> Result<Option<(StoredRun, Option<Value>)>, ReadError> {
    let mut rows = store.get_many(&[key_of(about), sealed_key(about)]).await?;
    let sealed = rows.pop().flatten();
    rows.pop().flatten().map(|row| Ok((decode_stored(row)?, sealed))).transpose()
}

/// Several runs and what they know, in their order; those that are gone are left out.
///
/// # Errors
/// The store cannot be read.
pub async fn get_each(store: &Store, runs: &[RunKey]) -> Result<Vec<(StoredRun, Option<Value>)>, ReadError> {
    let keys: Vec<Key> = runs.iter().flat_map(|about| [key_of(*about), sealed_key(*about)]).collect();
    let rows = store.get_many(&keys).await?;
    let pairs = rows.chunks(2).filter_map(|pair| Some((pair.first()?.clone()?, pair.get(1).cloned().flatten())));
    pairs.map(|(row, sealed)| Ok((decode_stored(row)?, sealed))).collect()
}

/// The runs of an automation, the oldest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_oldest(
    store: &Store,
    (account, automation): (AccountId, AutomationId),
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<StoredRun>, ReadError> {
    let mut range = key(Space::AutomationRun).account(account).id(automation.to_bytes()).range();
    if let Some(after) = after {
        range.start = crate::key::successor(&key_of((account, automation, after)));
    }
    store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(|(_, row)| decode_stored(row)).collect()
}

/// Forgets a run, with its events. The counts of its automation stay.
pub fn delete(batch: &mut Batch, found: &StoredRun) {
    let run = &found.run;
    batch.check(key_of(run_key(run)), Some(found.row.clone()));
    batch.delete(key_of(run_key(run)));
    batch.delete(sealed_key(run_key(run)));
    by::delete(batch, run);
    if let Some(at) = run.due {
        due::remove_step(batch, run, at);
    }
    wait::delete(batch, run);
}

/// Which runs a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In one of these states; in any when there are none.
    pub statuses: Vec<RunStatus>,
    /// Of this person, by the product's own id.
    pub user_id: Option<String>,
    /// Of this person, by address.
    pub email: Option<String>,
}

impl RunFilter {
    fn passes(&self, run: &AutomationRun) -> bool {
        let same = |wanted: &Option<String>, key: fn(&str) -> _, has: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| has.as_deref().map(key) == Some(key(wanted)))
        };
        (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && same(&self.user_id, mail::automation::person::user_key, &run.user_id)
            && same(&self.email, mail::automation::person::email_key, &run.email)
    }
}

/// Rows that one call of [`list`] looks at.
const LOOKED_AT_MAX: usize = 2_000;
/// Rows read at once.
const SCAN_ROWS: usize = 100;

/// The runs of an automation before one, newest first, that pass; and where to go on.
///
/// # Errors
/// The store cannot be read.
pub async fn list(
    store: &Store,
    of: (AccountId, AutomationId),
    filter: &RunFilter,
    (before, limit): (Option<RunId>, usize),
) -> Result<(Vec<AutomationRun>, Option<RunId>), ReadError> {
    let (mut before, mut runs, mut last) = (before, Vec::new(), None);
    for _ in 0..LOOKED_AT_MAX / SCAN_ROWS {
        let ids = by::list_ids(store, of, filter, (before, SCAN_ROWS)).await?;
        let abouts: Vec<RunKey> = ids.iter().map(|id| (of.0, of.1, *id)).collect();
        let keys: Vec<Key> = abouts.iter().map(|about| key_of(*about)).collect();
        for row in store.get_many(&keys).await?.into_iter().flatten() {
            let run: AutomationRun = row::decode(&row)?;
            if !filter.passes(&run) {
                continue;
            }
            if runs.len() == limit {
                return Ok((runs, last));
            }
            last = Some(run.id);
            runs.push(run);
        }
        before = ids.last().copied();
        if ids.len() < SCAN_ROWS {
            return Ok((runs, None));
        }
        if runs.len() < limit {
            last = before;
        }
    }
    Ok((runs, last))
}

/// The ids of the runs of an automation before one, newest first.
async fn list_ids(
    store: &Store,
    (account, automation): (AccountId, AutomationId),
    (before, limit): (Option<RunId>, usize),
) -> Result<Vec<RunId>, ReadError> {
    let mut range = key(Space::AutomationRun).account(account).id(automation.to_bytes()).range();
    if let Some(before) = before {
        range.end = key_of((account, automation, before));
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(at, _)| read_key(at)).collect()
}

fn read_key(at: &Key) -> Result<RunId, ReadError> {
    let mut reader = KeyReader::new(Space::AutomationRun, at).map_err(row::damaged)?;
    reader.account().map_err(row::damaged)?;
    reader.id().map_err(row::damaged)?;
    reader.id().map(RunId::from_bytes).map_err(row::damaged)
}

#[cfg(test)]
mod tests;
