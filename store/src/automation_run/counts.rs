//! Run counts: the exact number of an automation's runs by status, without a row that all runs write.
//!
//! ```text
//! AutomationRunIndex · account · automation · 0                          ─►  the total
//!                                           · 1 · run · step · from · to  ─►  (empty): a status change
//! ```
//!
//! Each status change of a run writes a key of its own. These keys sort after the total, so one scan reads both from
//! one snapshot. A background job folds changes into the total.

use model::automation::RunCounts;
use model::automation::run::{AutomationRun, RunStatus};
use model::id::{AccountId, AutomationId};

use super::run_indexes::{CHANGE, TOTAL, prefix, status_number};
use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{KeyReader, Space};

/// Maximum number of changes read and folded at once.
const FOLDED_MAX: usize = 5_000;
/// Status number of a run before its creation.
const NEW: u8 = 0xFF;

stored!(RunCounts);

/// Records a change of a run's status.
pub(super) fn record_change(batch: &mut Batch, before: &AutomationRun, from: Option<RunStatus>, to: RunStatus) {
    if from.map(counted_status) == Some(counted_status(to)) {
        return;
    }
    let change = prefix(before.account, before.automation, CHANGE)
        .id(before.id.to_bytes())
        .u16(u16::try_from(before.index).unwrap_or(u16::MAX))
        .u8(from.map_or(NEW, status_number))
        .u8(status_number(to))
        .build();
    batch.put_fresh(change, Value::new());
}

/// The status under which a status is counted: queued runs count as running.
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

/// Run counts with the rows they were read from.
#[derive(Debug, Default)]
pub struct StoredRunCounts {
    /// Counts including the changes that were read.
    pub counts: RunCounts,
    /// True if there may be changes that were not read.
    pub has_more: bool,
    total: Option<Value>,
    changes: Vec<Key>,
}

impl StoredRunCounts {
    /// Number of changes not folded yet.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Writes the total and deletes the changes that were read. The commit conflicts if another fold did so first.
    pub fn fold(&self, batch: &mut Batch, account: AccountId, automation: AutomationId) {
        let total = prefix(account, automation, TOTAL).build();
        batch.replace(total, self.total.clone(), codec::encode(&self.counts));
        for change in &self.changes {
            batch.delete(change.clone());
        }
    }
}

pub async fn read(store: &Store, account: AccountId, automation: AutomationId) -> Result<StoredRunCounts> {
    let range = prefix(account, automation, TOTAL).build()..prefix(account, automation, CHANGE).range().end;
    let rows = store.scan(range, ScanOrder::Ascending, FOLDED_MAX).await?;
    let mut counted = StoredRunCounts { has_more: rows.len() == FOLDED_MAX, ..StoredRunCounts::default() };
    for (at, value) in rows {
        match read_change(&at)? {
            None => {
                counted.counts = codec::decode(&value)?;
                counted.total = Some(value);
            }
            Some((from, to)) => {
                // Changes can be read in another order than they were made, so intermediate counts may wrap; final ones
                // are exact.
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

/// The old and new status of a change; `None` for the total.
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
