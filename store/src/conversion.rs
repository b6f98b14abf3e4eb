//! Conversions: one row each, unique by kind and id, and an index by time.
//!
//! ```text
//! Conversion · account · 1 · kind · hash of the id  ─►  the conversion
//! Conversion · account · 2 · event                  ─►  key of its row
//! ```

use model::id::{AccountId, ProductEventId};
use model::product_event::conversion::{Conversion, ConversionKind};

use crate::codec::{self, stored};
use crate::engine::{Batch, Key, Result, ScanOrder, Store};
use crate::key::{KeyBuilder, Space, key};
use crate::product_event::hash;
use crate::rows;

const BY_ID: u8 = 1;
const BY_TIME: u8 = 2;

stored!(Conversion);

pub fn key_of(account: AccountId, kind: ConversionKind, subject: &str) -> Key {
    key(Space::Conversion).account(account).u8(BY_ID).u8(kind as u8).fixed(hash(subject)).build()
}

fn time_prefix(account: AccountId) -> KeyBuilder {
    key(Space::Conversion).account(account).u8(BY_TIME)
}

/// Returns which of these conversions are recorded.
pub async fn are_recorded(store: &Store, keys: &[Key]) -> Result<Vec<bool>> {
    Ok(store.get_many(keys).await?.iter().map(Option::is_some).collect())
}

/// Records a conversion. The commit conflicts if it is recorded already.
pub fn record(batch: &mut Batch, conversion: &Conversion) {
    let row_key = key_of(conversion.account, conversion.kind, &conversion.subject);
    batch.check(row_key.clone(), None);
    batch.put(time_prefix(conversion.account).id(conversion.event.to_bytes()).build(), row_key.clone());
    batch.put(row_key, codec::encode(conversion));
}

pub async fn get(store: &Store, row_key: &Key) -> Result<Option<Conversion>> {
    rows::get(store, row_key).await
}

/// Lists an account's conversions before an event, newest first, at most `limit`.
pub async fn list(
    store: &Store,
    account: AccountId,
    before: Option<ProductEventId>,
    limit: usize,
) -> Result<Vec<Conversion>> {
    let range = time_prefix(account).range_before(before.map(ProductEventId::to_bytes));
    let entries = store.scan(range, ScanOrder::Descending, limit).await?;
    let keys: Vec<Key> = entries.into_iter().map(|(_, row_key)| row_key).collect();
    rows::get_existing(store, &keys).await
}

/// Deletes an account's conversions before an event, oldest first, at most `limit`. Returns their number.
pub async fn purge_before(
    store: &Store,
    batch: &mut Batch,
    account: AccountId,
    before: ProductEventId,
    limit: usize,
) -> Result<usize> {
    let range = time_prefix(account).build()..time_prefix(account).id(before.to_bytes()).build();
    let entries = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = entries.len();
    for (entry, row_key) in entries {
        batch.delete(entry);
        batch.delete(row_key);
    }
    Ok(count)
}
