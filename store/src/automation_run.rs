//! Automation runs: one row each, with index entries that change in the same commits.
//!
//! ```text
//! AutomationRun       · account · automation · run  ─►  the run
//! AutomationRunSealed · account · automation · run  ─►  its sealed data, while it is active
//! AutomationRunIndex, AutomationRunWait, AutomationDue  ─►  see [`run_indexes`], [`wait`], [`due_work`], [`counts`]
//! ```
//!
//! Every change checks the row as it was read: of two concurrent changes one conflicts, so each step is recorded
//! exactly once.

pub mod counts;
pub mod due_work;
pub mod run_indexes;
pub mod wait;

use jiff::Timestamp;
use model::automation::run::{AutomationRun, RunStatus};
use model::id::{AccountId, AutomationId, RunId};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space, key};

stored!(AutomationRun);

/// Account, automation and run.
pub type RunKey = (AccountId, AutomationId, RunId);

/// A run with the row it was read from, which updates check.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    pub run: AutomationRun,
    row: Value,
    /// Time of a due key of the run that is not at the run's due time. Updates delete it.
    other_due_key: Option<Timestamp>,
}

impl StoredRun {
    /// Records the due key by which the run was found. It differs from the run's due time if the step was postponed
    /// ([`due_work::postpone_step`]).
    pub fn set_due_key(&mut self, at: Timestamp) {
        let is_own = self.run.due.is_some_and(|due| due_work::is_same_step_key(&self.run, due, at));
        self.other_due_key = (!is_own).then_some(at);
    }

    /// Returns whether the run was found by a due key that is not at the run's due time.
    pub fn has_other_due_key(&self) -> bool {
        self.other_due_key.is_some()
    }

    /// Deletes the due key by which the run was found, if it is not at the run's due time. The commit conflicts if the
    /// run has changed since it was read.
    pub fn remove_other_due_key(&self, batch: &mut Batch) {
        if let Some(at) = self.other_due_key {
            batch.check(key_of(run_key(&self.run)), Some(self.row.clone()));
            due_work::remove_step(batch, &self.run, at);
        }
    }
}

/// The key parts of a run.
pub fn run_key(run: &AutomationRun) -> RunKey {
    (run.account, run.automation, run.id)
}

fn key_of((account, automation, run): RunKey) -> Key {
    key(Space::AutomationRun).account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

fn sealed_key((account, automation, run): RunKey) -> Key {
    key(Space::AutomationRunSealed).account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

/// Writes a new run, with its sealed data if it has not ended, and its index entries.
pub fn create(batch: &mut Batch, run: &AutomationRun, sealed: Vec<u8>) {
    batch.put_fresh(key_of(run_key(run)), codec::encode(run));
    if run.status.is_active() {
        batch.put_fresh(sealed_key(run_key(run)), sealed);
    }
    run_indexes::create(batch, run);
    wait::create(batch, run);
    counts::record_change(batch, run, None, run.status);
    if let Some(at) = run.due {
        due_work::put_step(batch, run, at);
    }
}

/// Updates a run and its index entries, and deletes the due key by which it was found. The commit conflicts if the row
/// has changed since it was read. The sealed data is deleted when the run ends.
pub fn update(batch: &mut Batch, before: &StoredRun, after: &AutomationRun) {
    let run_before = &before.run;
    batch.check(key_of(run_key(run_before)), Some(before.row.clone()));
    batch.put(key_of(run_key(after)), codec::encode(after));
    run_indexes::update(batch, run_before, after);
    if run_before.status != after.status {
        counts::record_change(batch, run_before, Some(run_before.status), after.status);
    }
    if run_before.due != after.due || before.has_other_due_key() {
        for at in run_before.due.into_iter().chain(before.other_due_key) {
            due_work::remove_step(batch, run_before, at);
        }
        if let Some(at) = after.due {
            due_work::put_step(batch, after, at);
        }
    }
    if run_before.waiting != after.waiting {
        wait::update(batch, run_before, after);
    }
    if !after.status.is_active() {
        batch.delete(sealed_key(run_key(after)));
    }
}

/// Replaces a run's sealed data.
pub fn put_sealed(batch: &mut Batch, about: RunKey, sealed: Vec<u8>) {
    batch.put(sealed_key(about), sealed);
}

/// Returns whether the conflicting key is a run, or an answer sent by one.
pub fn caused_conflict(conflict: &Key) -> bool {
    Space::AutomationRun.holds(conflict) || run_indexes::is_answer_conflict(conflict)
}

pub async fn get(store: &Store, about: RunKey) -> Result<Option<StoredRun>> {
    store.get(&key_of(about)).await?.map(decode_stored).transpose()
}

fn decode_stored(row: Value) -> Result<StoredRun> {
    Ok(StoredRun { run: codec::decode(&row)?, row, other_due_key: None })
}

/// Reads a run and its sealed data from one snapshot.
pub async fn get_with_sealed(store: &Store, about: RunKey) -> Result<Option<(StoredRun, Option<Value>)>> {
    let mut rows = store.get_many(&[key_of(about), sealed_key(about)]).await?;
    let sealed = rows.pop().flatten();
    rows.pop().flatten().map(|row| Ok((decode_stored(row)?, sealed))).transpose()
}

/// Reads several runs with their sealed data, in the order of `runs`; missing ones are left out.
pub async fn get_each(store: &Store, runs: &[RunKey]) -> Result<Vec<(StoredRun, Option<Value>)>> {
    let keys: Vec<Key> = runs.iter().flat_map(|about| [key_of(*about), sealed_key(*about)]).collect();
    let rows = store.get_many(&keys).await?;
    let pairs = rows.chunks(2).filter_map(|pair| Some((pair.first()?.clone()?, pair.get(1).cloned().flatten())));
    pairs.map(|(row, sealed)| Ok((decode_stored(row)?, sealed))).collect()
}

/// Lists the runs of an automation after one of them, oldest first, at most `limit`.
pub async fn list_oldest(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<StoredRun>> {
    let range =
        key(Space::AutomationRun).account(account).id(automation.to_bytes()).range_after(after.map(RunId::to_bytes));
    store.scan(range, ScanOrder::Ascending, limit).await?.into_iter().map(|(_, row)| decode_stored(row)).collect()
}

/// Deletes a run and its index entries. The automation's counts do not change.
pub fn delete(batch: &mut Batch, found: &StoredRun) {
    let run = &found.run;
    batch.remove(key_of(run_key(run)), found.row.clone());
    batch.delete(sealed_key(run_key(run)));
    run_indexes::delete(batch, run);
    if let Some(at) = run.due {
        due_work::remove_step(batch, run, at);
    }
    wait::delete(batch, run);
}

/// Filter of a list of runs; all conditions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Any of these; all statuses if empty.
    pub statuses: Vec<RunStatus>,
    /// The person's id in the product.
    pub user_id: Option<String>,
    /// The person's email address.
    pub email: Option<String>,
}

impl RunFilter {
    fn passes(&self, run: &AutomationRun) -> bool {
        let same = |wanted: &Option<String>, key: fn(&str) -> _, has: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| has.as_deref().map(key) == Some(key(wanted)))
        };
        (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && same(&self.user_id, model::automation::person_key::user_key, &run.user_id)
            && same(&self.email, model::automation::person_key::email_key, &run.email)
    }
}

/// Maximum number of rows that one call of [`list`] scans.
const LOOKED_AT_MAX: usize = 2_000;
/// Rows per read.
const SCAN_ROWS: usize = 100;

/// Lists the runs of an automation before one, newest first, that match; also returns the cursor of the next page.
pub async fn list(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    filter: &RunFilter,
    before: Option<RunId>,
    limit: usize,
) -> Result<(Vec<AutomationRun>, Option<RunId>)> {
    let (mut before, mut runs, mut last) = (before, Vec::new(), None);
    for _ in 0..LOOKED_AT_MAX / SCAN_ROWS {
        let ids = run_indexes::list_ids(store, account, automation, filter, before, SCAN_ROWS).await?;
        let abouts: Vec<RunKey> = ids.iter().map(|id| (account, automation, *id)).collect();
        let keys: Vec<Key> = abouts.iter().map(|about| key_of(*about)).collect();
        for row in store.get_many(&keys).await?.into_iter().flatten() {
            let run: AutomationRun = codec::decode(&row)?;
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

/// Lists the newest runs of an automation, at most `limit`, newest first.
pub async fn list_newest(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    limit: usize,
) -> Result<Vec<AutomationRun>> {
    let mut range = key(Space::AutomationRun).account(account).id(automation.to_bytes()).range();
    let mut runs: Vec<AutomationRun> = Vec::new();
    while runs.len() < limit {
        let page = SCAN_ROWS.min(limit - runs.len());
        let rows = store.scan(range.clone(), ScanOrder::Descending, page).await?;
        for (_, row) in &rows {
            runs.push(codec::decode(row)?);
        }
        match rows.last() {
            Some((last, _)) if rows.len() == page => range.end = last.clone(),
            _ => break,
        }
        // Rows in memory are read without waiting, so let other tasks run.
        tokio::task::yield_now().await;
    }
    Ok(runs)
}

/// Lists the ids of an automation's runs before one, newest first.
async fn list_ids(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    before: Option<RunId>,
    limit: usize,
) -> Result<Vec<RunId>> {
    let range =
        key(Space::AutomationRun).account(account).id(automation.to_bytes()).range_before(before.map(RunId::to_bytes));
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(at, _)| read_key(at)).collect()
}

fn read_key(at: &Key) -> Result<RunId> {
    let mut reader = KeyReader::new(Space::AutomationRun, at)?;
    reader.account().and_then(|_| reader.id())?;
    Ok(RunId::from_bytes(reader.id()?))
}

#[cfg(test)]
mod tests;
