//! Back-fills: a row each under the account, and a row for the one that goes on, in a partition.
//!
//! ```text
//! Backfill     · account · id         ─►  the back-fill
//! BackfillOpen · partition · account  ─►  its id
//! ```

use std::ops::RangeInclusive;

use jiff::Timestamp;
use mail::affiliate::backfill::{Backfill, BackfillStatus};
use mail::id::{AccountId, BackfillId};
use serde::{Deserialize as _, Serialize as _};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, prefix_end, successor};
use crate::row::{self, stored};
use crate::task::PARTITIONS;

/// Rows read at once.
const PAGE_ROWS: usize = 100;

stored!(Backfill as Backfill);

fn key_of(account: AccountId, id: BackfillId) -> Key {
    key(Space::Backfill).account(account).id(id.to_bytes()).build()
}

fn open_key(account: AccountId) -> Key {
    let [.., last] = account.to_bytes();
    key(Space::BackfillOpen).u16(u16::from(last) % PARTITIONS).account(account).build()
}

/// Writes a new one; the commit conflicts while another one goes on.
pub fn create(batch: &mut Batch, new: &Backfill) {
    batch.check(open_key(new.account), None);
    batch.put(open_key(new.account), new.id.to_string().into_bytes());
    batch.put(key_of(new.account, new.id), row::encode(new));
}

/// Changes one that was read as `before`; the commit conflicts when it is no more like that.
pub fn update(batch: &mut Batch, before: &Backfill, after: &Backfill) {
    let at = key_of(before.account, before.id);
    batch.check(at.clone(), Some(row::encode(before)));
    batch.put(at, row::encode(after));
    if after.status != BackfillStatus::Running {
        batch.delete(open_key(before.account));
    }
}

/// A back-fill.
///
/// # Errors
/// The store cannot be read.
pub async fn get(store: &Store, account: AccountId, id: BackfillId) -> Result<Option<Backfill>, ReadError> {
    store.get(&key_of(account, id)).await?.map(|row| row::decode(&row)).transpose()
}

/// Those of these partitions that go on, at most `limit`.
///
/// # Errors
/// The store cannot be read.
pub async fn list_running(
    store: &Store,
    partitions: RangeInclusive<u16>,
    limit: usize,
) -> Result<Vec<Backfill>, ReadError> {
    let start = key(Space::BackfillOpen).u16(*partitions.start()).build();
    let end = prefix_end(&key(Space::BackfillOpen).u16(*partitions.end()).build());
    let mut found = Vec::new();
    for (row_key, row) in store.scan(start..end, ScanOrder::Ascending, limit).await? {
        let mut reader = KeyReader::new(Space::BackfillOpen, &row_key).map_err(row::damaged)?;
        let account = reader.u16().and_then(|_| reader.account()).map_err(row::damaged)?;
        let id = std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok());
        let id = id.ok_or_else(|| row::damaged("a back-fill's id"))?;
        found.extend(get(store, account, id).await?);
    }
    Ok(found)
}

/// When the first of an account's back-fills was asked for of which nobody is told what it writes.
///
/// # Errors
/// The store cannot be read.
pub async fn silent_since(store: &Store, account: AccountId) -> Result<Option<Timestamp>, ReadError> {
    let mut range = key(Space::Backfill).account(account).range();
    loop {
        let rows = store.scan(range.clone(), ScanOrder::Ascending, PAGE_ROWS).await?;
        for (_, row) in &rows {
            let found: Backfill = row::decode(row)?;
            if found.silent {
                return Ok(Some(found.created_at));
            }
        }
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE_ROWS => range.start = successor(last),
            _ => return Ok(None),
        }
    }
}
