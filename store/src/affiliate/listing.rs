//! Paged lists, newest first, over all rows or the rows of an index.
//!
//! ```text
//! …By · account · field · value · id  ─┐
//! …By · account · field · value · id  ─┼─► merged by id, descending ─► rows ─► remaining filters ─► a page
//! ```
//!
//! A list by two values of one field merges two ranges. Conditions without an index are checked row by row. A page ends
//! after [`SCANNED_MAX`] rows (more if its limit is larger), even if it is not full, and the next page continues there.

use std::ops::Range;

use jiff::{Span, Timestamp};
use model::id::{AccountId, PayoutId};

use crate::codec::{self, RowCodec};
use crate::engine::{Batch, Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key};

/// Maximum number of rows scanned for one page. Each may cost a read, and a page should take at most 20 ms.
pub const SCANNED_MAX: usize = 600;
/// Rows per read, after the first read of a page.
const SCAN_ROWS: usize = 200;

/// Position and size of the requested page.
#[derive(Debug, Clone, Copy)]
pub struct ListPageRequest {
    /// Last id of the previous page; only smaller ids are listed.
    pub before: Option<[u8; 16]>,
    /// Maximum number of rows; at least one.
    pub limit: usize,
    /// Lower bound of the list: smaller ids are not read.
    pub from: Option<[u8; 16]>,
}

impl ListPageRequest {
    /// Restricts the page to rows created within these times. Ids are ordered by time, so rows outside are not read.
    pub fn created_between(self, after: Option<Timestamp>, before: Option<Timestamp>) -> Self {
        let first_at = |time: Timestamp| PayoutId::new(time, 0).to_bytes();
        // Ids have a resolution of a millisecond: include ids of the millisecond that contains `before`.
        let end = before.map(|time| first_at(time.checked_add(Span::new().milliseconds(1)).unwrap_or(time)));
        let sooner = |one: [u8; 16], other: [u8; 16]| one.min(other);
        let before = match (self.before, end) {
            (Some(one), Some(other)) => Some(sooner(one, other)),
            (one, other) => one.or(other),
        };
        Self { before, from: after.map(first_at), ..self }
    }
}

#[derive(Debug)]
pub struct ListPage<T> {
    /// Newest first.
    pub rows: Vec<T>,
    /// Position of the next page, if there may be one.
    pub next: Option<[u8; 16]>,
}

/// The index and the account that a list reads.
pub(super) struct ListQuery {
    /// Space of the nouns' rows.
    pub(super) rows: Space,
    /// Space of the index.
    pub(super) by: Space,
    pub(super) account: AccountId,
    /// Index values to merge; empty lists all rows of the account.
    pub(super) values: Vec<super::IndexValue>,
}

impl ListQuery {
    fn ranges(&self) -> Vec<Range<Key>> {
        if self.values.is_empty() {
            return vec![key(self.rows).account(self.account).range()];
        }
        let range =
            |(field, value): &super::IndexValue| key(self.by).account(self.account).u8(*field).bytes(value).range();
        self.values.iter().map(range).collect()
    }

    fn key_of(&self, id: [u8; 16]) -> Key {
        key(self.rows).account(self.account).id(id).build()
    }

    /// Loads the rows of index entries. Without an index, the entries are the rows.
    async fn load_rows(&self, store: &Store, entries: Vec<IndexEntry>) -> Result<Vec<([u8; 16], Option<Value>)>> {
        if self.values.is_empty() {
            return Ok(entries.into_iter().map(|(id, row)| (id, Some(row))).collect());
        }
        let keys: Vec<Key> = entries.iter().map(|(id, _)| self.key_of(*id)).collect();
        let rows = store.get_many(&keys).await?;
        Ok(entries.into_iter().map(|(id, _)| id).zip(rows).collect())
    }
}

/// The id at the end of a key.
fn id_of(key: &Key) -> Result<[u8; 16]> {
    key.last_chunk::<16>().copied().ok_or_else(|| codec::damaged("a key without an id"))
}

/// Lists the ids of the rows with an index value, oldest first, after one of them, at most `limit`.
pub(super) async fn list_ids(
    store: &Store,
    space: Space,
    account: AccountId,
    (field, value): super::IndexValue,
    after: Option<[u8; 16]>,
    limit: usize,
) -> Result<Vec<[u8; 16]>> {
    let range = key(space).account(account).u8(field).bytes(&value).range_after(after);
    store.scan(range, ScanOrder::Ascending, limit).await?.iter().map(|(at, _)| id_of(at)).collect()
}

/// Reads a page of the rows that pass the filter.
pub(super) async fn list<T: RowCodec>(
    store: &Store,
    source: &ListQuery,
    wanted: ListPageRequest,
    passes: &(dyn Fn(&T) -> bool + Sync),
) -> Result<ListPage<T>> {
    let mut found: Vec<T> = Vec::new();
    let (mut before, mut last) = (wanted.before, None);
    // If every row passes, the first read is the page plus one row that shows whether there is another page.
    let mut at_once = SCAN_ROWS.min(wanted.limit.saturating_add(1));
    let looked_at_max = SCANNED_MAX.max(wanted.limit.saturating_add(2 * SCAN_ROWS));
    for _ in 0..looked_at_max / SCAN_ROWS {
        let (entries, has_more) = merge_entries(store, source, ListPageRequest { before, ..wanted }, at_once).await?;
        at_once = SCAN_ROWS;
        before = entries.last().map(|(id, _)| *id);
        for (id, row) in source.load_rows(store, entries).await? {
            // Deleted after its index entry was read.
            let Some(row) = row else { continue };
            let item: T = codec::decode(&row)?;
            if !passes(&item) {
                continue;
            }
            if found.len() == wanted.limit {
                return Ok(ListPage { rows: found, next: last });
            }
            found.push(item);
            last = Some(id);
        }
        if !has_more || before.is_none() {
            return Ok(ListPage { rows: found, next: None });
        }
    }
    Ok(ListPage { rows: found, next: before })
}

/// An id and the value stored at its key.
type IndexEntry = ([u8; 16], Value);

/// Reads up to `at_once` entries of each range, merges them in descending order, and returns whether there may be more.
async fn merge_entries(
    store: &Store,
    source: &ListQuery,
    wanted: ListPageRequest,
    at_once: usize,
) -> Result<(Vec<IndexEntry>, bool)> {
    let mut entries: Vec<IndexEntry> = Vec::new();
    // A range that was read only in part may have unread entries below this id.
    let mut floor: Option<[u8; 16]> = None;
    for mut range in source.ranges() {
        let at = |id: [u8; 16]| Key::from([&range.start[..], &id].concat());
        let (first, end) = (wanted.from.map(at), wanted.before.map(at));
        range.end = end.unwrap_or(range.end);
        range.start = first.unwrap_or(range.start);
        if range.start >= range.end {
            continue;
        }
        let rows = store.scan(range, ScanOrder::Descending, at_once).await?;
        let is_full = rows.len() == at_once;
        for (key, value) in rows {
            entries.push((id_of(&key)?, value));
        }
        if let Some((lowest, _)) = entries.last().filter(|_| is_full) {
            floor = Some(floor.map_or(*lowest, |floor| floor.max(*lowest)));
        }
    }
    entries.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    entries.dedup_by_key(|(id, _)| *id);
    if let Some(floor) = floor {
        entries.retain(|(id, _)| *id >= floor);
    }
    Ok((entries, floor.is_some()))
}

/// Names the index entries of one row.
pub(super) struct IndexRef {
    pub(super) space: Space,
    pub(super) account: AccountId,
    /// The row's id.
    pub(super) id: [u8; 16],
}

/// Writes the index entries that are new and deletes those that no longer apply.
pub(super) fn update_index(
    batch: &mut Batch,
    IndexRef { space, account, id }: IndexRef,
    before: &[super::IndexValue],
    after: &[super::IndexValue],
) {
    let at = |(field, value): &super::IndexValue| key(space).account(account).u8(*field).bytes(value).id(id).build();
    for old in before.iter().filter(|old| !after.contains(old)) {
        batch.delete(at(old));
    }
    for new in after.iter().filter(|new| !before.contains(new)) {
        batch.put(at(new), Vec::new());
    }
}
