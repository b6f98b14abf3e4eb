//! Idempotency keys: a row each, in the commit of what was done with the key; and a row by time, by which
//! they are forgotten.
//!
//! The row is its own lock: of two commits with one key the second conflicts, on whatever node.

use jiff::Timestamp;
use mail::id::{AccountId, EmailId};
use mail::idempotency::{IdempotencyRecord, IdempotencyScope, IdempotentResult, PartialResult};
use serde::{Deserialize, Serialize};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, stored};

#[derive(Serialize, Deserialize)]
#[serde(remote = "PartialResult")]
struct PartlyRow {
    answer: String,
    open: Vec<u16>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "IdempotentResult", rename_all = "snake_case")]
enum OutcomeRow {
    Done(String),
    Partly(#[serde(with = "PartlyRow")] PartialResult),
    Unconfirmed(EmailId),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "IdempotencyRecord")]
struct UsedRow {
    fingerprint: String,
    #[serde(with = "OutcomeRow")]
    outcome: IdempotentResult,
    created_at: Timestamp,
}
stored!(IdempotencyRecord as UsedRow);

/// A key of an account for an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopedIdempotencyKey {
    /// Whose.
    pub account: AccountId,
    /// For what.
    pub operation: IdempotencyScope,
    /// The key, as the client chose it.
    pub key: String,
}

impl ScopedIdempotencyKey {
    fn row_key(&self) -> Key {
        key(Space::Idempotency).account(self.account).u8(self.operation as u8).text(&self.key).build()
    }
}

/// What a key was used for, with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIdempotencyRecord {
    /// What it was used for.
    pub used: IdempotencyRecord,
    row: Value,
}

/// What a key was used for; perhaps longer ago than it is kept.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, name: &ScopedIdempotencyKey) -> Result<Option<StoredIdempotencyRecord>, ReadError> {
    let row = store.get(&name.row_key()).await?;
    row.map(|row| Ok(StoredIdempotencyRecord { used: row::decode(&row)?, row })).transpose()
}

/// Keeps what a key was used for, in the commit of what was done; it conflicts when the key is no more as
/// it was found. What was found before is replaced.
pub fn save(
    batch: &mut Batch,
    name: &ScopedIdempotencyKey,
    used: &IdempotencyRecord,
    before: Option<&StoredIdempotencyRecord>,
) {
    let row_key = name.row_key();
    batch.check(row_key.clone(), before.map(|found| found.row.clone()));
    batch.put(by_time(used.created_at, &row_key), row_key.clone());
    batch.put(row_key, row::encode(used));
}

fn by_time(at: Timestamp, row_key: &Key) -> Key {
    key(Space::IdempotencyByTime).time(at).bytes(row_key).build()
}

/// Whether a conflict was about an idempotency key.
#[must_use]
pub fn caused_conflict(conflict: &Key) -> bool {
    conflict.first() == Some(&(Space::Idempotency as u8))
}

/// Forgets keys that were used before a time, the oldest first, at most `limit`. Says how many.
///
/// # Errors
/// The store cannot be read.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    before: Timestamp,
    limit: usize,
) -> Result<usize, ReadError> {
    let range = key(Space::IdempotencyByTime).build()..key(Space::IdempotencyByTime).time(before).build();
    let old = store.scan(range, ScanOrder::Ascending, limit).await?;
    let rows: Vec<Key> = old.iter().map(|(_, row_key)| row_key.clone()).collect();
    let found = store.get_many(&rows).await?;
    let count = old.len();
    for ((by_time, row_key), row) in old.into_iter().zip(found) {
        batch.delete(by_time);
        // Used again since, the key stays until that is old, too.
        let used = row.as_deref().and_then(|row| row::decode::<IdempotencyRecord>(row).ok());
        if used.is_some_and(|used| used.created_at < before) {
            batch.check(row_key.clone(), row).delete(row_key);
        }
    }
    Ok(count)
}
