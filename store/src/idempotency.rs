//! Idempotency keys (draft-ietf-httpapi-idempotency-key-header): one row each, written in the commit of the keyed
//! operation, and an index by time for the purge.
//!
//! The row is its own lock: of two commits with the same key, on any nodes, the second one conflicts.

use jiff::Timestamp;
use model::id::AccountId;
use model::idempotency::{IdempotencyRecord, IdempotencyScope};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};

stored!(IdempotencyRecord);

/// An account's idempotency key for one operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopedIdempotencyKey {
    pub account: AccountId,
    pub operation: IdempotencyScope,
    /// The key as the client chose it.
    pub key: String,
}

impl ScopedIdempotencyKey {
    fn row_key(&self) -> Key {
        key(Space::Idempotency).account(self.account).u8(self.operation as u8).text(&self.key).build()
    }
}

/// A used key with the row it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIdempotencyRecord {
    pub used: IdempotencyRecord,
    row: Value,
}

/// Reads what a key was used for. The record may be past its retention time.
pub async fn get(store: &Store, name: &ScopedIdempotencyKey) -> Result<Option<StoredIdempotencyRecord>> {
    let row = store.get(&name.row_key()).await?;
    row.map(|row| Ok(StoredIdempotencyRecord { used: codec::decode(&row)?, row })).transpose()
}

/// Records the use of a key, in the commit of the operation, and replaces the record in `before`. The commit conflicts
/// if the row has changed since it was read.
pub fn save(
    batch: &mut Batch,
    name: &ScopedIdempotencyKey,
    used: &IdempotencyRecord,
    before: Option<&StoredIdempotencyRecord>,
) {
    let row_key = name.row_key();
    batch.check(row_key.clone(), before.map(|found| found.row.clone()));
    batch.put(by_time(used.created_at, &row_key), row_key.clone());
    batch.put(row_key, codec::encode(used));
}

fn by_time(at: Timestamp, row_key: &Key) -> Key {
    key(Space::IdempotencyByTime).time(at).bytes(row_key).build()
}

pub fn caused_conflict(conflict: &Key) -> bool {
    Space::Idempotency.holds(conflict)
}

/// Deletes records older than a time, oldest first, at most `limit`. Returns the number of index entries deleted.
pub async fn purge_before(store: &Store, batch: &mut Batch, before: Timestamp, limit: usize) -> Result<usize> {
    let range = key(Space::IdempotencyByTime).build()..key(Space::IdempotencyByTime).time(before).build();
    let old = store.scan(range, ScanOrder::Ascending, limit).await?;
    let rows: Vec<Key> = old.iter().map(|(_, row_key)| row_key.clone()).collect();
    let found = store.get_many(&rows).await?;
    let count = old.len();
    for ((by_time, row_key), row) in old.into_iter().zip(found) {
        batch.delete(by_time);
        // A key that was used again is retained until its newer record is old as well.
        let used = row.as_deref().and_then(|row| codec::decode::<IdempotencyRecord>(row).ok());
        if used.is_some_and(|used| used.created_at < before) {
            batch.check(row_key.clone(), row).delete(row_key);
        }
    }
    Ok(count)
}
