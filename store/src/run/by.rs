//! What runs of an automation are found by.
//!
//! ```text
//! RunBy · account · automation · 2 · status · run    every run
//!                              · 3 · person · run    every run, by user id and by address
//!                              · 4 · person · run    those that are not over
//!                              · 5 · run             those that are held
//!                              · 6 · person          ─►  the last run of a person
//!                              · 7 · person          ─►  the last run that answered a received email of theirs
//! ```
//!
//! The last two are read and checked where a person may have one run, or one answer, only: of two at the same time
//! one conflicts.

use jiff::Timestamp;
use mail::automation::person::{self, PersonKey};
use mail::automation::run::{AutomationRun, RunStatus};
use mail::id::{AccountId, AutomationId, RunId};
use serde::{Deserialize, Serialize};

use super::RunFilter;
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyBuilder, KeyReader, Space, key};
use crate::row::{self, stored};

pub(super) const TOTAL: u8 = 0;
pub(super) const CHANGE: u8 = 1;
const STATUS: u8 = 2;
const PERSON: u8 = 3;
const ACTIVE: u8 = 4;
const HELD: u8 = 5;
const LAST: u8 = 6;
const ANSWERED: u8 = 7;

pub(super) fn prefix((account, automation): (AccountId, AutomationId), kind: u8) -> KeyBuilder {
    key(Space::AutomationRunIndex).account(account).id(automation.to_bytes()).u8(kind)
}

fn automation_key(run: &AutomationRun) -> (AccountId, AutomationId) {
    (run.account, run.automation)
}

fn by_status(run: &AutomationRun) -> Key {
    prefix(automation_key(run), STATUS).u8(status_number(run.status)).id(run.id.to_bytes()).build()
}

fn by_person(run: &AutomationRun, kind: u8, person: PersonKey) -> Key {
    prefix(automation_key(run), kind).fixed(person).id(run.id.to_bytes()).build()
}

fn held_key(run: &AutomationRun) -> Key {
    prefix(automation_key(run), HELD).id(run.id.to_bytes()).build()
}

/// A state in a key. A number, once released, is never another's.
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
        batch.put_fresh(by_person(run, ACTIVE, person), Value::new());
    }
}

pub(super) fn update(batch: &mut Batch, before: &AutomationRun, after: &AutomationRun) {
    if before.status != after.status {
        batch.delete(by_status(before));
        batch.put(by_status(after), Value::new());
    }
    if before.held != after.held {
        if after.held {
            batch.put(held_key(after), Value::new());
        } else {
            batch.delete(held_key(after));
        }
    }
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

fn read(at: &Key, parts: usize) -> Result<RunId, ReadError> {
    let mut reader = KeyReader::new(Space::AutomationRunIndex, at).map_err(row::damaged)?;
    let mut skip = || -> Result<(), crate::key::KeyDecodeError> {
        reader.account()?;
        reader.id()?;
        reader.u8()?;
        match parts {
            1 => reader.u8().map(drop),
            16 => reader.id().map(drop),
            _ => Ok(()),
        }
    };
    skip().map_err(row::damaged)?;
    reader.id().map(RunId::from_bytes).map_err(row::damaged)
}

/// The ids of runs that a filter may pass, newest first, from before one on: by the person, else by the state,
/// else all.
pub(super) async fn list_ids(
    store: &Store,
    of: (AccountId, AutomationId),
    filter: &RunFilter,
    (before, limit): (Option<RunId>, usize),
) -> Result<Vec<RunId>, ReadError> {
    let user = filter.user_id.as_deref().map(person::user_key);
    let person = user.or_else(|| filter.email.as_deref().map(person::email_key));
    let (list, parts) = match (person, filter.statuses.as_slice()) {
        (Some(person), _) => (prefix(of, PERSON).fixed(person), 16),
        (None, [status]) => (prefix(of, STATUS).u8(status_number(*status)), 1),
        (None, _) => return super::list_ids(store, of, (before, limit)).await,
    };
    let mut range = list.clone().range();
    if let Some(before) = before {
        range.end = list.id(before.to_bytes()).build();
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(at, _)| read(at, parts)).collect()
}

/// The runs of a person that are not over, the oldest first, with their keys.
///
/// # Errors
/// The store cannot be read.
pub async fn list_active(
    store: &Store,
    of: (AccountId, AutomationId),
    person: PersonKey,
    limit: usize,
) -> Result<Vec<RunId>, ReadError> {
    let rows = store.scan(prefix(of, ACTIVE).fixed(person).range(), ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at, 16)).collect()
}

/// The runs in a state that are older than one, the oldest first.
///
/// # Errors
/// The store cannot be read.
pub async fn list_in_state(
    store: &Store,
    of: (AccountId, AutomationId),
    status: RunStatus,
    (before, limit): (RunId, usize),
) -> Result<Vec<RunId>, ReadError> {
    let list = prefix(of, STATUS).u8(status_number(status));
    let mut range = list.clone().range();
    range.end = list.id(before.to_bytes()).build();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at, 1)).collect()
}

/// The runs that are held.
///
/// # Errors
/// The store cannot be read.
pub async fn list_held(store: &Store, of: (AccountId, AutomationId), limit: usize) -> Result<Vec<RunId>, ReadError> {
    let rows = store.scan(prefix(of, HELD).range(), ScanOrder::Ascending, limit).await?;
    rows.iter().map(|(at, _)| read(at, 0)).collect()
}

/// The last run of a person, as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRun {
    /// The run, if there ever was one.
    pub run: Option<RunId>,
    row: Option<Value>,
}

/// The last run of a person.
///
/// # Errors
/// The store cannot be read.
pub async fn find_last(store: &Store, of: (AccountId, AutomationId), person: PersonKey) -> Result<LastRun, ReadError> {
    let row = store.get(&prefix(of, LAST).fixed(person).build()).await?;
    let run = row.as_ref().and_then(|row| row.first_chunk::<16>().copied()).map(RunId::from_bytes);
    Ok(LastRun { run, row })
}

/// A run is the last of a person; the commit conflicts when there is another since.
pub fn put_last(batch: &mut Batch, run: &AutomationRun, person: PersonKey, before: &LastRun) {
    let last = prefix(automation_key(run), LAST).fixed(person).build();
    batch.check(last.clone(), before.row.clone());
    batch.put(last, run.id.to_bytes().to_vec());
}

/// An answer to a received email: by which run, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAnswer {
    /// The run.
    pub run: RunId,
    /// When it was sent.
    pub at: Timestamp,
}
stored!(RunAnswer as RunAnswer);

/// The last answer to a person, as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastAnswer {
    /// The answer, if there ever was one.
    pub last: Option<RunAnswer>,
    row: Option<Value>,
}

fn answered_key(of: (AccountId, AutomationId), person: PersonKey) -> Key {
    prefix(of, ANSWERED).fixed(person).build()
}

/// The last answer of an automation to a person.
///
/// # Errors
/// The store cannot be read.
pub async fn find_last_answer(
    store: &Store,
    of: (AccountId, AutomationId),
    person: PersonKey,
) -> Result<LastAnswer, ReadError> {
    let row = store.get(&answered_key(of, person)).await?;
    let last = row.as_ref().map(|row| row::decode(row)).transpose()?;
    Ok(LastAnswer { last, row })
}

/// A run answers a person; the commit conflicts when there is another answer since ([`super::is_about_one`]).
pub fn put_last_answer(
    batch: &mut Batch,
    run: &AutomationRun,
    (person, at): (PersonKey, Timestamp),
    before: &LastAnswer,
) {
    let key = answered_key(automation_key(run), person);
    batch.check(key.clone(), before.row.clone());
    batch.put(key, row::encode(&RunAnswer { run: run.id, at }));
}

/// Forgets an answer, with the run that gave it.
pub fn delete_last_answer(batch: &mut Batch, run: &AutomationRun, person: PersonKey, found: &LastAnswer) {
    if found.last.is_some_and(|last| last.run == run.id) {
        let key = answered_key(automation_key(run), person);
        batch.check(key.clone(), found.row.clone());
        batch.delete(key);
    }
}

pub(super) fn is_answer_conflict(conflict: &Key) -> bool {
    let kind = || {
        let mut reader = KeyReader::new(Space::AutomationRunIndex, conflict).ok()?;
        reader.account().ok()?;
        reader.id().ok()?;
        reader.u8().ok()
    };
    kind() == Some(ANSWERED)
}

/// Deletes some of what is left of an automation's lists and counts; says whether there is more.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_indexes(
    store: &Store,
    batch: &mut Batch,
    (account, automation): (AccountId, AutomationId),
    limit: usize,
) -> Result<bool, ReadError> {
    let range = key(Space::AutomationRunIndex).account(account).id(automation.to_bytes()).range();
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let more = rows.len() == limit;
    for (at, _) in rows {
        batch.delete(at);
    }
    Ok(more)
}
