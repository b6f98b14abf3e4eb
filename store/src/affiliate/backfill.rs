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

use crate::codec::{self, account_rows};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyReader, Space, key, partitions_range};
use crate::rows::{self, RowPages};
use crate::task::PARTITIONS;

/// Page size of a scan.
const PAGE_ROWS: usize = 100;

account_rows!(Backfill, BackfillId, Backfill, list);

fn open_key(account: AccountId) -> Key {
    let [.., last] = account.to_bytes();
    key(Space::BackfillOpen).u16(u16::from(last) % PARTITIONS).account(account).build()
}

/// Writes a new backfill. The commit conflicts if the account has one that is running.
pub fn create(batch: &mut Batch, new: &Backfill) {
    batch.replace(open_key(new.account), None, new.id.to_string().into_bytes());
    batch.put(key_of(new.account, new.id), codec::encode(new));
}

/// Updates a backfill that was read as `before`. The commit conflicts if the stored row has changed since.
pub fn update(batch: &mut Batch, before: &Backfill, after: &Backfill) {
    rows::update(batch, key_of(before.account, before.id), before, after);
    if after.status != BackfillStatus::Running {
        batch.delete(open_key(before.account));
    }
}

/// Lists the running backfills of these partitions, at most `limit`.
pub async fn list_running(store: &Store, partitions: RangeInclusive<u16>, limit: usize) -> Result<Vec<Backfill>> {
    let range = partitions_range(Space::BackfillOpen, &partitions);
    let mut found = Vec::new();
    for (row_key, row) in store.scan(range, ScanOrder::Ascending, limit).await? {
        let mut reader = KeyReader::new(Space::BackfillOpen, &row_key)?;
        let account = reader.u16().and_then(|_| reader.account())?;
        found.extend(get(store, account, rows::parse_text(&row, "an invalid backfill id")?).await?);
    }
    Ok(found)
}

/// Creation time of the account's first silent backfill, that is, one whose changes emit no events.
pub async fn silent_since(store: &Store, account: AccountId) -> Result<Option<Timestamp>> {
    let mut pages = RowPages::new(store, key(Space::Backfill).account(account).range(), PAGE_ROWS);
    while let Some(page) = pages.next_page().await? {
        for (_, row) in &page {
            let found: Backfill = codec::decode(row)?;
            if found.silent {
                return Ok(Some(found.created_at));
            }
        }
    }
    Ok(None)
}
