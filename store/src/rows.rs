//! Reads and writes of encoded rows, as most nouns need them.

use std::ops::Range;
use std::str::FromStr;

use crate::codec::{self, RowCodec};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};

pub(crate) async fn get<T: RowCodec>(store: &Store, at: &Key) -> Result<Option<T>> {
    store.get(at).await?.map(|row| codec::decode(&row)).transpose()
}

/// Reads the row whose key is the value of an index entry.
pub(crate) async fn get_by_index<T: RowCodec>(store: &Store, entry: &Key) -> Result<Option<T>> {
    match store.get(entry).await? {
        Some(row_key) => get(store, &row_key).await,
        None => Ok(None),
    }
}

/// Reads several rows, in the order of `keys`.
pub(crate) async fn get_each<T: RowCodec>(store: &Store, keys: &[Key]) -> Result<Vec<Option<T>>> {
    let rows = store.get_many(keys).await?;
    rows.iter().map(|row| row.as_deref().map(codec::decode).transpose()).collect()
}

/// Reads several rows, in the order of `keys`; missing ones are left out.
pub(crate) async fn get_existing<T: RowCodec>(store: &Store, keys: &[Key]) -> Result<Vec<T>> {
    store.get_many(keys).await?.iter().flatten().map(|row| codec::decode(row)).collect()
}

pub(crate) async fn scan<T: RowCodec>(
    store: &Store,
    range: Range<Key>,
    order: ScanOrder,
    limit: usize,
) -> Result<Vec<T>> {
    store.scan(range, order, limit).await?.iter().map(|(_, row)| codec::decode(row)).collect()
}

/// Counts the rows of a range, up to `limit`.
pub(crate) async fn count(store: &Store, range: Range<Key>, limit: usize) -> Result<usize> {
    Ok(store.scan(range, ScanOrder::Ascending, limit).await?.len())
}

/// Updates a row that was read as `before`. The commit conflicts if the stored row has changed since.
pub(crate) fn update<T: RowCodec>(batch: &mut Batch, at: Key, before: &T, after: &T) {
    batch.replace(at, Some(codec::encode(before)), codec::encode(after));
}

/// Deletes a row that was read as `before`. The commit conflicts if the stored row has changed since.
pub(crate) fn delete<T: RowCodec>(batch: &mut Batch, at: Key, before: &T) {
    batch.remove(at, codec::encode(before));
}

/// Moves an index entry without a value. `None`: there was no entry, or there is none now.
pub(crate) fn move_entry(batch: &mut Batch, before: Option<Key>, after: Option<Key>) {
    if before == after {
        return;
    }
    if let Some(before) = before {
        batch.delete(before);
    }
    if let Some(after) = after {
        batch.put(after, Value::new());
    }
}

/// Deletes the rows of a range, at most `limit`. Returns their number.
pub(crate) async fn delete_range(store: &Store, batch: &mut Batch, range: Range<Key>, limit: usize) -> Result<usize> {
    let rows = store.scan(range, ScanOrder::Ascending, limit).await?;
    let count = rows.len();
    for (at, _) in rows {
        batch.delete(at);
    }
    Ok(count)
}

/// The start of the next page of an ascending scan, if the page is full.
pub(crate) fn next_page(rows: &[(Key, Value)], limit: usize) -> Option<Key> {
    rows.last().filter(|_| rows.len() == limit).map(|(last, _)| crate::key::successor(last))
}

/// Reads a range in ascending pages of at most `limit` rows.
pub(crate) struct RowPages<'a> {
    store: &'a Store,
    rest: Option<Range<Key>>,
    limit: usize,
}

impl<'a> RowPages<'a> {
    pub(crate) fn new(store: &'a Store, range: Range<Key>, limit: usize) -> Self {
        Self { store, rest: Some(range), limit }
    }

    /// Reads the next page; `None` after the last one.
    pub(crate) async fn next_page(&mut self) -> Result<Option<Vec<(Key, Value)>>> {
        let Some(range) = self.rest.take().filter(|range| range.start < range.end) else { return Ok(None) };
        let rows = self.store.scan(range.clone(), ScanOrder::Ascending, self.limit).await?;
        self.rest = next_page(&rows, self.limit).map(|start| start..range.end);
        Ok(Some(rows))
    }
}

/// Parses a value that is stored as text. `error` describes an invalid one.
pub(crate) fn parse_text<T: FromStr>(row: &[u8], error: &str) -> Result<T> {
    let value = std::str::from_utf8(row).ok().and_then(|text| text.parse().ok());
    value.ok_or_else(|| codec::damaged(error))
}

/// Parses a number that is stored as text; zero without a row.
pub(crate) fn parse_number<T: FromStr + Default>(row: Option<&Value>, error: &str) -> Result<T> {
    row.map_or_else(|| Ok(T::default()), |row| parse_text(row, error))
}
