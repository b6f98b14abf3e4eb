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
use mail::automation::run::{CancelledBy, EndedBy, Run, RunStatus, StepState, Waiting};
use mail::id::{AccountId, AutomationId, RunId};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, Order, ReadError, Store, Value};
use crate::key::{KeyReader, Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Run")]
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
    waiting: Option<Waiting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trying_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<CancelledBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_by: Option<EndedBy>,
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
stored!(Run as RunRow);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Whose run, of which automation, which.
pub type About = (AccountId, AutomationId, RunId);

/// A run as it was read: what a change of it checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The run.
    pub run: Run,
    row: Value,
}

/// What a run is.
#[must_use]
pub fn about(run: &Run) -> About {
    (run.account, run.automation, run.id)
}

fn key_of((account, automation, run): About) -> Key {
    key(Space::Run).account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

fn sealed_key((account, automation, run): About) -> Key {
    key(Space::RunSealed).account(account).id(automation.to_bytes()).id(run.to_bytes()).build()
}

/// Writes a new run, and what it knows, sealed.
pub fn create(batch: &mut Batch, run: &Run, sealed: Vec<u8>) {
    batch.put_fresh(key_of(about(run)), row::encode(run));
    batch.put_fresh(sealed_key(about(run)), sealed);
    by::create(batch, run);
    counts::note(batch, run, (None, run.status));
    if let Some(at) = run.due {
        due::put_step(batch, run, at);
    }
}

/// Changes a run; the commit conflicts when it is no more as it was read. What it knows is forgotten when it
/// ends.
pub fn update(batch: &mut Batch, before: &Found, after: &Run) {
    let was = &before.run;
    batch.check(key_of(about(was)), Some(before.row.clone()));
    batch.put(key_of(about(after)), row::encode(after));
    by::update(batch, was, after);
    if was.status != after.status {
        counts::note(batch, was, (Some(was.status), after.status));
    }
    if was.due != after.due {
        if let Some(at) = was.due {
            due::take_step(batch, was, at);
        }
        if let Some(at) = after.due {
            due::put_step(batch, after, at);
        }
    }
    if was.waiting != after.waiting {
        wait::update(batch, was, after);
    }
    if !after.status.is_active() {
        batch.delete(sealed_key(about(after)));
    }
}

/// Writes anew what a run knows, sealed.
pub fn put_sealed(batch: &mut Batch, about: About, sealed: Vec<u8>) {
    batch.put(sealed_key(about), sealed);
}

/// Whether a conflict was about a run, or about an answer that one gave.
#[must_use]
pub fn is_about_one(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::Run as u8)) || by::is_about_answer(conflict)
}

/// A run.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, about: About) -> Result<Option<Found>, ReadError> {
    store.get(&key_of(about)).await?.map(found).transpose()
}

fn found(row: Value) -> Result<Found, ReadError> {
    Ok(Found { run: row::decode(&row)?, row })
}

/// A run and what it knows, sealed, as of one moment.
///
/// # Errors
/// The store cannot be read.
pub async fn get_whole(store: &Store, about: About) -> Result<Option<(Found, Option<Value>)>, ReadError> {
    let mut rows = store.get_many(&[key_of(about), sealed_key(about)]).await?;
    let sealed = rows.pop().flatten();
    rows.pop().flatten().map(|row| Ok((found(row)?, sealed))).transpose()
}

/// Several runs and what they know, in their order; those that are gone are left out.
///
/// # Errors
/// The store cannot be read.
pub async fn get_each(store: &Store, runs: &[About]) -> Result<Vec<(Found, Option<Value>)>, ReadError> {
    let keys: Vec<Key> = runs.iter().flat_map(|about| [key_of(*about), sealed_key(*about)]).collect();
    let rows = store.get_many(&keys).await?;
    let pairs =
        rows.chunks(2).filter_map(|pair| Some((pair.first()?.clone()?, pair.get(1).cloned().flatten())));
    pairs.map(|(row, sealed)| Ok((found(row)?, sealed))).collect()
}

/// The runs of an automation, the oldest first, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn oldest(
    store: &Store,
    (account, automation): (AccountId, AutomationId),
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<Found>, ReadError> {
    let mut range = key(Space::Run).account(account).id(automation.to_bytes()).range();
    if let Some(after) = after {
        range.start = crate::key::after(&key_of((account, automation, after)));
    }
    store.scan(range, Order::Ascending, limit).await?.into_iter().map(|(_, row)| found(row)).collect()
}

/// Forgets a run, with its events. The counts of its automation stay.
pub fn forget(batch: &mut Batch, found: &Found) {
    let run = &found.run;
    batch.check(key_of(about(run)), Some(found.row.clone()));
    batch.delete(key_of(about(run)));
    batch.delete(sealed_key(about(run)));
    by::forget(batch, run);
    if let Some(at) = run.due {
        due::take_step(batch, run, at);
    }
    wait::forget(batch, run);
}

/// Which runs a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// In one of these states; in any when there are none.
    pub statuses: Vec<RunStatus>,
    /// Of this person, by the product's own id.
    pub user_id: Option<String>,
    /// Of this person, by address.
    pub email: Option<String>,
}

impl Filter {
    fn passes(&self, run: &Run) -> bool {
        let same = |wanted: &Option<String>, key: fn(&str) -> _, has: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| has.as_deref().map(key) == Some(key(wanted)))
        };
        (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && same(&self.user_id, mail::automation::person::of_user, &run.user_id)
            && same(&self.email, mail::automation::person::of_email, &run.email)
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
    filter: &Filter,
    (before, limit): (Option<RunId>, usize),
) -> Result<(Vec<Run>, Option<RunId>), ReadError> {
    let (mut before, mut runs, mut last) = (before, Vec::new(), None);
    for _ in 0..LOOKED_AT_MAX / SCAN_ROWS {
        let ids = by::ids(store, of, filter, (before, SCAN_ROWS)).await?;
        let abouts: Vec<About> = ids.iter().map(|id| (of.0, of.1, *id)).collect();
        let keys: Vec<Key> = abouts.iter().map(|about| key_of(*about)).collect();
        for row in store.get_many(&keys).await?.into_iter().flatten() {
            let run: Run = row::decode(&row)?;
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
async fn ids(
    store: &Store,
    (account, automation): (AccountId, AutomationId),
    (before, limit): (Option<RunId>, usize),
) -> Result<Vec<RunId>, ReadError> {
    let mut range = key(Space::Run).account(account).id(automation.to_bytes()).range();
    if let Some(before) = before {
        range.end = key_of((account, automation, before));
    }
    let rows = store.scan(range, Order::Descending, limit).await?;
    rows.iter().map(|(at, _)| read_key(at)).collect()
}

fn read_key(at: &Key) -> Result<RunId, ReadError> {
    let mut reader = KeyReader::new(Space::Run, at).map_err(row::damaged)?;
    reader.account().map_err(row::damaged)?;
    reader.id().map_err(row::damaged)?;
    reader.id().map(RunId::from_bytes).map_err(row::damaged)
}

#[cfg(test)]
mod tests;
