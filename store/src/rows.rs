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

/// Maximum number of rows that one call of [`list_passing`] scans.
pub(crate) const LOOKED_AT_MAX: usize = 2_000;
/// Rows per read of [`list_passing`].
const SCAN_ROWS: usize = 200;

/// Lists the rows of a range that pass, newest first, at most `limit`; also returns the cursor of the next page. A page
/// that reaches [`LOOKED_AT_MAX`] is short and has a cursor.
pub(crate) async fn list_passing<T: RowCodec, I>(
    store: &Store,
    mut range: Range<Key>,
    limit: usize,
    passes: impl Fn(&T) -> bool,
    id_of: fn(&T) -> I,
) -> Result<(Vec<T>, Option<I>)> {
    let (mut found, mut last) = (Vec::new(), None);
    for _ in 0..LOOKED_AT_MAX / SCAN_ROWS {
        let rows = store.scan(range.clone(), ScanOrder::Descending, SCAN_ROWS).await?;
        let is_end = rows.len() < SCAN_ROWS;
        for (row_key, row) in rows {
            let noun: T = codec::decode(&row)?;
            range.end = row_key;
            if passes(&noun) {
                if found.len() == limit {
                    return Ok((found, last));
                }
                last = Some(id_of(&noun));
                found.push(noun);
            } else if found.len() < limit {
                // A page that is not full continues after the last row scanned.
                last = Some(id_of(&noun));
            }
        }
        if is_end {
            return Ok((found, None));
        }
    }
    Ok((found, last))
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

/// Rewrites a row that counts changes. The commit conflicts if it has changed since it was read as `before`.
pub(crate) fn bump_version(batch: &mut Batch, at: Key, before: Option<&Value>) {
    let count: u64 = before.and_then(|row| std::str::from_utf8(row).ok()?.parse().ok()).unwrap_or(0);
    batch.replace(at, before.cloned(), count.wrapping_add(1).to_string().into_bytes());
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
