//! Backfills: one row each under the account, and one row in a partition while an account's backfill is running.
//!
//! ```text
//! Backfill     · account · id         ─►  the backfill
//! BackfillOpen · partition · account  ─►  its id
//! ```

use std::ops::RangeInclusive;

use jiff::Timestamp;
use model::affiliate::backfill::{Backfill, BackfillStatus};
use model::id::{AccountId, BackfillId};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, prefix_end, successor};
use crate::task::PARTITIONS;

/// Page size of a scan.
const PAGE_ROWS: usize = 100;

stored!(Backfill);

fn key_of(account: AccountId, id: BackfillId) -> Key {
    key(Space::Backfill).account(account).id(id.to_bytes()).build()
}

fn open_key(account: AccountId) -> Key {
    let [.., last] = account.to_bytes();
    key(Space::BackfillOpen).u16(u16::from(last) % PARTITIONS).account(account).build()
}

/// Writes a new backfill. The commit conflicts if the account has one that is running.
pub fn create(batch: &mut Batch, new: &Backfill) {
    batch.check(open_key(new.account), None);
    batch.put(open_key(new.account), new.id.to_string().into_bytes());
    batch.put(key_of(new.account, new.id), codec::encode(new));
}

/// Updates a backfill that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &Backfill, after: &Backfill) {
    let at = key_of(before.account, before.id);
    batch.check(at.clone(), Some(codec::encode(before)));
    batch.put(at, codec::encode(after));
    if after.status != BackfillStatus::Running {
        batch.delete(open_key(before.account));
    }
}

pub async fn get(store: &Store, account: AccountId, id: BackfillId) -> Result<Option<Backfill>> {
    store.get(&key_of(account, id)).await?.map(|row| codec::decode(&row)).transpose()
}

/// Lists an account's backfills before one, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<BackfillId>,
    limit: usize,
) -> Result<Vec<Backfill>> {
    let mut range = key(Space::Backfill).account(account).range();
    if let Some(before) = before {
        range.end = key_of(account, before);
    }
    let rows = store.scan(range, ScanOrder::Descending, limit).await?;
    rows.iter().map(|(_, row)| codec::decode(row)).collect()
}

/// Lists the running backfills of these partitions, at most `limit`.
pub async fn list_running(store: &Store, partitions: RangeInclusive<u16>, limit: usize) -> Result<Vec<Backfill>> {
    let start = key(Space::BackfillOpen).u16(*partitions.start()).build();
    let end = prefix_end(&key(Space::BackfillOpen).u16(*partitions.end()).build());
    let mut found = Vec::new();
    for (row_key, row) in store.scan(start..end, ScanOrder::Ascending, limit).await? {
        let mut reader = KeyReader::new(Space::BackfillOpen, &row_key).map_err(codec::damaged)?;
        let account = reader.u16().and_then(|_| reader.account()).map_err(codec::damaged)?;
        let id = std::str::from_utf8(&row).ok().and_then(|text| text.parse().ok());
        let id = id.ok_or_else(|| codec::damaged("an invalid backfill id"))?;
        found.extend(get(store, account, id).await?);
    }
    Ok(found)
}

/// Creation time of the account's first silent backfill, that is, one whose changes emit no events.
pub async fn silent_since(store: &Store, account: AccountId) -> Result<Option<Timestamp>> {
    let mut range = key(Space::Backfill).account(account).range();
    loop {
        let rows = store.scan(range.clone(), ScanOrder::Ascending, PAGE_ROWS).await?;
        for (_, row) in &rows {
            let found: Backfill = codec::decode(row)?;
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
