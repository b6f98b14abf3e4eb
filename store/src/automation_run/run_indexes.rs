//! Secondary indexes of automation runs.
//!
//! ```text
//! AutomationRunIndex · account · automation · 2 · status · run  every run, by status
//!                                           · 3 · person · run  every run, by user id and by address
//!                                           · 4 · person · run  active runs, by user id and by address
//!                                           · 5 · run           held runs
//!                                           · 6 · person        ─►  the person's last run
//!                                           · 7 · person        ─►  the last run that answered their email
//! ```
//!
//! The last two are read and checked where a person may have only one run, or one answer, at a time: of two concurrent
//! ones, one conflicts.

use jiff::Timestamp;
use model::automation::person_key::{self, PersonKey};
use model::automation::run::{AutomationRun, RunStatus};
use model::id::{AccountId, AutomationId, RunId};
use serde::{Deserialize, Serialize};

use super::RunFilter;
use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::rows;

pub(super) const TOTAL: u8 = 0;
pub(super) const CHANGE: u8 = 1;
const STATUS: u8 = 2;
const PERSON: u8 = 3;
const ACTIVE: u8 = 4;
const HELD: u8 = 5;
const LAST: u8 = 6;
const ANSWERED: u8 = 7;

pub(super) fn prefix(account: AccountId, automation: AutomationId, kind: u8) -> KeyBuilder {
    key(Space::AutomationRunIndex).account(account).id(automation.to_bytes()).u8(kind)
}

fn run_prefix(run: &AutomationRun, kind: u8) -> KeyBuilder {
    prefix(run.account, run.automation, kind)
}

fn by_status(run: &AutomationRun) -> Key {
    run_prefix(run, STATUS).u8(status_number(run.status)).id(run.id.to_bytes()).build()
}

fn by_person(run: &AutomationRun, kind: u8, person: PersonKey) -> Key {
    run_prefix(run, kind).fixed(person).id(run.id.to_bytes()).build()
}

fn held_key(run: &AutomationRun) -> Key {
    run_prefix(run, HELD).id(run.id.to_bytes()).build()
}

/// Number of a status in keys; never reused once released.
pub(super) fn status_number(status: RunStatus) -> u8 {
    match status {
        RunStatus::Queued => 0,
        RunStatus::Running => 1,
        RunStatus::Waiting => 2,
        RunStatus::Completed => 3,
        RunStatus::Failed => 4,
        RunStatus::Cancelled => 5,
    }
}

pub(super) fn create(batch: &mut Batch, run: &AutomationRun) {
    batch.put_fresh(by_status(run), Value::new());
    for person in run.persons().into_iter().flatten() {
        batch.put_fresh(by_person(run, PERSON, person), Value::new());
        if run.status.is_active() {
            batch.put_fresh(by_person(run, ACTIVE, person), Value::new());
        }
    }
}

pub(super) fn update(batch: &mut Batch, before: &AutomationRun, after: &AutomationRun) {
    let held_entry = |run: &AutomationRun| run.held.then(|| held_key(run));
    rows::move_entry(batch, Some(by_status(before)), Some(by_status(after)));
    rows::move_entry(batch, held_entry(before), held_entry(after));
    if before.status.is_active() && !after.status.is_active() {
        for person in after.persons().into_iter().flatten() {
            batch.delete(by_person(after, ACTIVE, person));
        }
    }
}

pub(super) fn delete(batch: &mut Batch, run: &AutomationRun) {
    batch.delete(by_status(run));
    batch.delete(held_key(run));
    for person in run.persons().into_iter().flatten() {
        batch.delete(by_person(run, PERSON, person));
        batch.delete(by_person(run, ACTIVE, person));
    }
}

fn read(at: &Key, parts: usize) -> Result<RunId> {
    let mut reader = KeyReader::new(Space::AutomationRunIndex, at)?;
    reader.account().and_then(|_| reader.id()).and_then(|_| reader.u8())?;
    match parts {
        1 => _ = reader.u8()?,
        16 => _ = reader.id()?,
        _ => {}
    }
    Ok(RunId::from_bytes(reader.id()?))
}

/// Lists the ids of runs before one that may match a filter, newest first. Uses the index by person if the filter has
/// one, else the one by status if it has exactly one, else all runs.
pub(super) async fn list_ids(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    filter: &RunFilter,
    before: Option<RunId>,
    limit: usize,
) -> Result<Vec<RunId>> {
    let user = filter.user_id.as_deref().map(person_key::user_key);
    let person = user.or_else(|| filter.email.as_deref().map(person_key::email_key));
    let (list, parts) = match (person, filter.statuses.as_slice()) {
        (Some(person), _) => (prefix(account, automation, PERSON).fixed(person), 16),
        (None, [status]) => (prefix(account, automation, STATUS).u8(status_number(*status)), 1),
        (None, _) => return super::list_ids(store, account, automation, before, limit).await,
    };
    let range = list.clone().range_before(before.map(RunId::to_bytes));
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(at, _)| read(at, parts)).collect()
}

/// Lists a person's active runs, oldest first.
pub async fn list_active(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    person: PersonKey,
    limit: usize,
) -> Result<Vec<RunId>> {
    let rows =
        store.scan(prefix(account, automation, ACTIVE).fixed(person).range(), ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at, 16)).collect()
}

/// Lists the runs in a status that are older than one, oldest first.
pub async fn list_in_state(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    status: RunStatus,
    before: RunId,
    limit: usize,
) -> Result<Vec<RunId>> {
    let list = prefix(account, automation, STATUS).u8(status_number(status));
    let mut range = list.clone().range();
    range.end = list.id(before.to_bytes()).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at, 1)).collect()
}

/// Lists the held runs, oldest first.
pub async fn list_held(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    limit: usize,
) -> Result<Vec<RunId>> {
    let rows = store.scan(prefix(account, automation, HELD).range(), ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at, 0)).collect()
}

/// A person's last run, with the row it was read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRun {
    /// `None` if the person never had a run.
    pub run: Option<RunId>,
    row: Option<Value>,
}

/// Reads a person's last run.
pub async fn find_last(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    person: PersonKey,
) -> Result<LastRun> {
    let row = store.get(&prefix(account, automation, LAST).fixed(person).build()).await?;
    let run = row.as_ref().and_then(|row| row.first_chunk::<16>().copied()).map(RunId::from_bytes);
    Ok(LastRun { run, row })
}

/// Makes a run the person's last one. The commit conflicts if the last run has changed since it was read.
pub fn put_last(batch: &mut Batch, run: &AutomationRun, person: PersonKey, before: &LastRun) {
    let last = run_prefix(run, LAST).fixed(person).build();
    batch.replace(last, before.row.clone(), run.id.to_bytes().to_vec());
}

/// An automatic reply to a received email, sent by a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAnswer {
    pub run: RunId,
    pub at: Timestamp,
}
stored!(RunAnswer);

/// The last reply to a person, with the row it was read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastAnswer {
    /// `None` if there never was one.
    pub last: Option<RunAnswer>,
    row: Option<Value>,
}

fn answered_key(account: AccountId, automation: AutomationId, person: PersonKey) -> Key {
    prefix(account, automation, ANSWERED).fixed(person).build()
}

/// Reads the last reply of an automation to a person.
pub async fn find_last_answer(
    store: &Store,
    account: AccountId,
    automation: AutomationId,
    person: PersonKey,
) -> Result<LastAnswer> {
    let row = store.get(&answered_key(account, automation, person)).await?;
    let last = row.as_deref().map(codec::decode).transpose()?;
    Ok(LastAnswer { last, row })
}

/// Makes a run's reply the last one to a person. The commit conflicts if the last reply has changed since it was read
/// ([`super::caused_conflict`]).
pub fn put_last_answer(batch: &mut Batch, run: &AutomationRun, person: PersonKey, at: Timestamp, before: &LastAnswer) {
    let key = answered_key(run.account, run.automation, person);
    batch.replace(key, before.row.clone(), codec::encode(&RunAnswer { run: run.id, at }));
}

/// Deletes the last reply to a person if it was sent by this run.
pub fn delete_last_answer(batch: &mut Batch, run: &AutomationRun, person: PersonKey, found: &LastAnswer) {
    if found.last.is_some_and(|last| last.run == run.id) {
        let key = answered_key(run.account, run.automation, person);
        batch.check(key.clone(), found.row.clone());
        batch.delete(key);
    }
}

pub(super) fn is_answer_conflict(conflict: &Key) -> bool {
    let kind = || {
        let mut reader = KeyReader::new(Space::AutomationRunIndex, conflict).ok()?;
        reader.account().and_then(|_| reader.id()).and_then(|_| reader.u8()).ok()
    };
    kind() == Some(ANSWERED)
}

/// Deletes up to `limit` index and count rows of an automation. Returns whether more may remain.
pub async fn purge_indexes(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    automation: AutomationId,
    limit: usize,
) -> Result<bool> {
    let range = key(Space::AutomationRunIndex).account(account).id(automation.to_bytes()).range();
    Ok(rows::delete_range(store, batch, range, limit).await? == limit)
}
