//! How many runs an automation has in each state: exact, and no row that all its runs write.
//!
//! ```text
//! RunBy · account · automation · 0                                ─►  the total
//!                              · 1 · run · step · from · to       ─►  (nothing)
//! ```
//!
//! A run that goes from one state to another leaves a key of its own, which nobody else writes; they lie behind
//! the total, so that one scan sees both as of one moment. Now and then somebody folds them into it.

use mail::automation::RunCounts;
use mail::automation::run::{AutomationRun, RunStatus};
use mail::id::{AccountId, AutomationId};
use serde::{Deserialize, Serialize};

use super::by::{CHANGE, TOTAL, prefix, status_number};
use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space};
use crate::row::{self, stored};

/// Changes folded at once.
const FOLDED_MAX: usize = 5_000;
/// What stands for no state: the run is new.
const NEW: u8 = 0xFF;

#[derive(Serialize, Deserialize)]
#[serde(remote = "RunCounts")]
struct RunCountsRow {
    running: u64,
    waiting: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
}
stored!(RunCounts as RunCountsRow);

/// A run goes from one state to another.
pub(super) fn record_change(batch: &mut Batch, before: &AutomationRun, (from, to): (Option<RunStatus>, RunStatus)) {
    if from.map(counted_status) == Some(counted_status(to)) {
        return;
    }
    let change = prefix((before.account, before.automation), CHANGE)
        .id(before.id.to_bytes())
        .u16(u16::try_from(before.index).unwrap_or(u16::MAX))
        .u8(from.map_or(NEW, status_number))
        .u8(status_number(to))
        .build();
    batch.put_fresh(change, Value::new());
}

/// Which number a state is counted in.
fn counted_status(status: RunStatus) -> u8 {
    match status {
        RunStatus::Queued => status_number(RunStatus::Running),
        other => status_number(other),
    }
}

fn counter_mut(counts: &mut RunCounts, state: u8) -> Option<&mut u64> {
    match state {
        0 | 1 => Some(&mut counts.running),
        2 => Some(&mut counts.waiting),
        3 => Some(&mut counts.completed),
        4 => Some(&mut counts.failed),
        5 => Some(&mut counts.cancelled),
        _ => None,
    }
}

/// The counts as they were read.
#[derive(Debug, Default)]
pub struct StoredRunCounts {
    /// How many there are.
    pub counts: RunCounts,
    /// There may be changes that were not read.
    pub more: bool,
    total: Option<Value>,
    changes: Vec<Key>,
}

impl StoredRunCounts {
    /// How many changes lie beside the total.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Makes the changes that were read part of the total; the commit conflicts when somebody else did.
    pub fn fold(&self, batch: &mut Batch, of: (AccountId, AutomationId)) {
        let total = prefix(of, TOTAL).build();
        batch.check(total.clone(), self.total.clone());
        batch.put(total, row::encode(&self.counts));
        for change in &self.changes {
            batch.delete(change.clone());
        }
    }
}

/// Counts the runs of an automation.
///
/// # Errors
/// The store cannot be read.
pub async fn read(store: &Store, of: (AccountId, AutomationId)) -> Result<StoredRunCounts, ReadError> {
    let range = prefix(of, TOTAL).build()..prefix(of, CHANGE).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, FOLDED_MAX).await?;
    let mut counted = StoredRunCounts { more: rows.len() == FOLDED_MAX, ..StoredRunCounts::default() };
    for (at, value) in rows {
        match read_change(&at).map_err(row::damaged)? {
            None => {
                counted.counts = row::decode(&value)?;
                counted.total = Some(value);
            }
            Some((from, to)) => {
                // Sums come out whole in the end: a change may lie before the one that it follows.
                if let Some(number) = counter_mut(&mut counted.counts, to) {
                    *number = number.wrapping_add(1);
                }
                if let Some(number) = counter_mut(&mut counted.counts, from) {
                    *number = number.wrapping_sub(1);
                }
                counted.changes.push(at);
            }
        }
    }
    Ok(counted)
}

/// From which state to which; none for the total.
fn read_change(at: &Key) -> Result<Option<(u8, u8)>, crate::key::KeyDecodeError> {
    let mut reader = KeyReader::new(Space::AutomationRunIndex, at)?;
    reader.account()?;
    reader.id()?;
    if reader.u8()? == TOTAL {
        return Ok(None);
    }
    reader.id()?;
    reader.u16()?;
    Ok(Some((reader.u8()?, reader.u8()?)))
}
