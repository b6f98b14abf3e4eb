//! Lists, newest first, by one field or by none.
//!
//! ```text
//! …By · account · field · value · id  ─┐
//! …By · account · field · value · id  ─┼─► merged by id, downwards ─► rows ─► what else is asked for ─► a page
//! ```
//!
//! A list by two values of one field reads two ranges side by side. What no range stands for is looked at row by row;
//! a page ends after [`LOOKED_AT_MAX`] of them (more where it may hold as many), full or not, and the next one goes on there.

use std::ops::Range;

use jiff::{Span, Timestamp};
use mail::id::{AccountId, PayoutId};

use crate::engine::{Batch, Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key};
use crate::row::{self, RowCodec};

/// Rows that one page looks at: among millions each is a read of its own, and a page is to take 20 ms at most.
pub const SCANNED_MAX: usize = 600;
/// Rows read at once, after the first of a page.
const SCAN_ROWS: usize = 200;

/// A page that is asked for: rows before this id, at most so many.
#[derive(Debug, Clone, Copy)]
pub struct ListPageRequest {
    /// The last id of the page before.
    pub before: Option<[u8; 16]>,
    /// Rows of a page; at least one.
    pub limit: usize,
    /// Where the list ends: ids before this one are not looked at.
    pub from: Option<[u8; 16]>,
}

impl ListPageRequest {
    /// The same, of rows that were born within these times: ids are by time, so that what is out of them is not even
    /// read.
    #[must_use]
    pub fn created_between(self, after: Option<Timestamp>, before: Option<Timestamp>) -> Self {
        let first_at = |time: Timestamp| PayoutId::new(time, 0).to_bytes();
        // A time within a millisecond is after the ids of that millisecond's beginning.
        let end = before.map(|time| first_at(time.checked_add(Span::new().milliseconds(1)).unwrap_or(time)));
        let sooner = |one: [u8; 16], other: [u8; 16]| one.min(other);
        let before = match (self.before, end) {
            (Some(one), Some(other)) => Some(sooner(one, other)),
            (one, other) => one.or(other),
        };
        Self { before, from: after.map(first_at), ..self }
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The rows, newest first.
    pub rows: Vec<T>,
    /// After which id the next page begins, if there may be one.
    pub next: Option<[u8; 16]>,
}

/// Which rows a list goes through.
pub(super) struct ListQuery {
    /// The nouns' space.
    pub(super) rows: Space,
    /// The space of what they are listed by.
    pub(super) by: Space,
    /// Whose they are.
    pub(super) account: AccountId,
    /// The field and its values; all rows when there is none.
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

    /// The rows of entries: where all are gone through, these are the rows.
    async fn load_rows(
        &self,
        store: &Store,
        entries: Vec<IndexEntry>,
    ) -> Result<Vec<([u8; 16], Option<Value>)>, ReadError> {
        if self.values.is_empty() {
            return Ok(entries.into_iter().map(|(id, row)| (id, Some(row))).collect());
        }
        let keys: Vec<Key> = entries.iter().map(|(id, _)| self.key_of(*id)).collect();
        let rows = store.get_many(&keys).await?;
        Ok(entries.into_iter().map(|(id, _)| id).zip(rows).collect())
    }
}

/// The id that a key ends with.
fn id_of(key: &Key) -> Result<[u8; 16], ReadError> {
    key.last_chunk::<16>().copied().ok_or_else(|| row::damaged("a key that ends before its id"))
}

/// A page of those that pass.
pub(super) async fn list<T: RowCodec>(
    store: &Store,
    source: &ListQuery,
    wanted: ListPageRequest,
    passes: &(dyn Fn(&T) -> bool + Sync),
) -> Result<ListPage<T>, ReadError> {
    let mut found: Vec<T> = Vec::new();
    let (mut before, mut last) = (wanted.before, None);
    // Where all pass, as many are the page, and one more says whether there is another.
    let mut at_once = SCAN_ROWS.min(wanted.limit.saturating_add(1));
    let looked_at_max = SCANNED_MAX.max(wanted.limit.saturating_add(2 * SCAN_ROWS));
    for _ in 0..looked_at_max / SCAN_ROWS {
        let (entries, goes_on) = merge_entries(store, source, (ListPageRequest { before, ..wanted }, at_once)).await?;
        at_once = SCAN_ROWS;
        before = entries.last().map(|(id, _)| *id);
        for (id, row) in source.load_rows(store, entries).await? {
            // Gone since the key that led to it was read.
            let Some(row) = row else { continue };
            let one: T = row::decode(&row)?;
            if !passes(&one) {
                continue;
            }
            if found.len() == wanted.limit {
                return Ok(ListPage { rows: found, next: last });
            }
            found.push(one);
            last = Some(id);
        }
        if !goes_on || before.is_none() {
            return Ok(ListPage { rows: found, next: None });
        }
    }
    Ok(ListPage { rows: found, next: before })
}

/// An id, and what stands there.
type IndexEntry = ([u8; 16], Value);

/// The next entries of all ranges, downwards, so many of each read; and whether there may be more.
async fn merge_entries(
    store: &Store,
    source: &ListQuery,
    (wanted, at_once): (ListPageRequest, usize),
) -> Result<(Vec<IndexEntry>, bool), ReadError> {
    let mut entries: Vec<IndexEntry> = Vec::new();
    // Below this one a range that has more may have some that were not read.
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

/// Lists a row by what is new, and no more by what is not.
pub(super) fn update_index(
    batch: &mut Batch,
    (space, account, id): (Space, AccountId, [u8; 16]),
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
