//! Memtable: the rows and body locations that are newer than the index, in an ordered map.
//!
//! The writer changes the active memtable; a checkpoint freezes it, writes it to redb and drops it. Deletes are stored
//! as tombstones, because an older row may be in a lower layer. A row that was put as fresh and is deleted before the
//! checkpoint leaves nothing.
//!
//! Memory is counted to bound memtables. Keys and values are slices of a batch's buffer (prepared_batch.rs), which is
//! freed with its last slice, so a batch counts until the memtable is dropped. Values returned to readers are copied
//! ([`detached_copy`]), so that a reader does not retain a whole batch.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::engine::{Key, ScanOrder, Value};

/// Location of a body in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyLocation {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) size_bytes: u32,
    pub(crate) checksum: u32,
}

/// Size of an encoded location.
pub(crate) const BODY_LOCATION_BYTES: usize = 24;

impl BodyLocation {
    pub(crate) fn encode(&self) -> [u8; BODY_LOCATION_BYTES] {
        let mut out = [0; BODY_LOCATION_BYTES];
        let parts = [self.segment.to_le_bytes(), self.offset.to_le_bytes()].concat();
        let tail = [self.size_bytes.to_le_bytes(), self.checksum.to_le_bytes()].concat();
        for (to, from) in out.iter_mut().zip(parts.into_iter().chain(tail)) {
            *to = from;
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (segment, rest) = bytes.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (size_bytes, rest) = rest.split_first_chunk()?;
        let checksum: &[u8; 4] = rest.first_chunk()?;
        Some(Self {
            segment: u64::from_le_bytes(*segment),
            offset: u64::from_le_bytes(*offset),
            size_bytes: u32::from_le_bytes(*size_bytes),
            checksum: u32::from_le_bytes(*checksum),
        })
    }
}

/// The newest state of a row.
#[derive(Debug, Clone)]
pub(crate) struct MemTableRow {
    /// `None` is a tombstone.
    pub(crate) value: Option<Value>,
    /// No lower layer has a row with this key.
    pub(crate) fresh: bool,
}

/// Rows and body locations newer than the index.
#[derive(Default)]
pub(crate) struct MemTable {
    pub(crate) rows: BTreeMap<Key, MemTableRow>,
    pub(crate) bodies: BTreeMap<Key, Option<BodyLocation>>,
    /// Size of the buffers that were added, and the overhead of the entries.
    bytes: u64,
}

impl fmt::Debug for MemTable {
    /// Prints sizes only, because rows contain mail, which must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemTable").field("len", &self.len()).field("bytes", &self.bytes).finish()
    }
}

/// Overhead of an entry: two handles in a tree node that is rarely full.
const ROW_BYTES: u64 = 128;

impl MemTable {
    /// Upper estimate of the memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Size of the entries as they will be stored in the index.
    pub(crate) fn entry_bytes(&self) -> u64 {
        let of_row = |(key, row): (&Key, &MemTableRow)| key.len() + row.value.as_ref().map_or(0, Value::len);
        let rows: usize = self.rows.iter().map(of_row).sum();
        let bodies: usize = self.bodies.keys().map(|key| key.len() + BODY_LOCATION_BYTES).sum();
        (rows + bodies) as u64
    }

    /// Counts a buffer, of which the keys and values of the following `set` calls are slices.
    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        if self.is_empty() {
            // No slice of an earlier buffer remains.
            self.bytes = 0;
        }
        self.bytes += bytes as u64;
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.bodies.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bodies.is_empty()
    }

    /// `None` if the key is not in this memtable; `Some(None)` if it is deleted.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&Value>> {
        self.rows.get(key).map(|row| row.value.as_ref())
    }

    pub(crate) fn body_location(&self, key: &[u8]) -> Option<Option<BodyLocation>> {
        self.bodies.get(key).copied()
    }

    /// Applies a change of a row.
    pub(crate) fn set(&mut self, key: Key, row: MemTableRow) {
        match self.rows.entry(key) {
            Entry::Vacant(vacant) => {
                self.bytes += ROW_BYTES;
                vacant.insert(row);
            }
            Entry::Occupied(old) if row.value.is_none() && old.get().fresh => {
                old.remove();
                self.bytes = self.bytes.saturating_sub(ROW_BYTES);
            }
            Entry::Occupied(mut old) => {
                let fresh = old.get().fresh;
                old.insert(MemTableRow { value: row.value, fresh });
            }
        }
    }

    pub(crate) fn set_body(&mut self, key: Key, location: Option<BodyLocation>) {
        let added = key.len() as u64 + ROW_BYTES;
        if self.bodies.insert(key, location).is_none() {
            self.bytes += added;
        }
    }

    /// Iterates over a range in order, including tombstones.
    pub(crate) fn iter_range<'a>(
        &'a self,
        range: &Range<Key>,
        order: ScanOrder,
    ) -> impl Iterator<Item = (Key, Option<Value>)> + use<'a> {
        let mut rows = self.rows.range(range.clone());
        std::iter::from_fn(move || {
            let (key, row) = match order {
                ScanOrder::Ascending => rows.next(),
                ScanOrder::Descending => rows.next_back(),
            }?;
            Some((key.clone(), row.value.clone()))
        })
    }

    /// Collects a range up to `limit` live rows. That suffices for the top layer: nothing hides its rows, so a merged
    /// result reaches `limit` no later.
    pub(crate) fn range_up_to(&self, range: &Range<Key>, order: ScanOrder, limit: usize) -> Vec<(Key, Option<Value>)> {
        let mut live = 0;
        let is_wanted = |row: &(Key, Option<Value>)| {
            let is_wanted = live < limit;
            live += usize::from(row.1.is_some());
            is_wanted
        };
        self.iter_range(range, order).take_while(is_wanted).collect()
    }
}

/// Copies a key or value, so that it does not retain its batch's buffer. Call it without holding a lock.
pub(crate) fn detached_copy(part: &Bytes) -> Bytes {
    Bytes::copy_from_slice(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Option<&'static [u8]>, fresh: bool) -> MemTableRow {
        MemTableRow { value: value.map(Bytes::from_static), fresh }
    }

    #[test]
    fn a_fresh_row_leaves_nothing_and_an_older_one_a_tombstone() {
        let mut table = MemTable::default();
        let key = Bytes::from_static(b"k");
        table.add_bytes(2);
        table.set(key.clone(), row(Some(b"1"), true));
        table.add_bytes(3);
        table.set(key.clone(), row(Some(b"22"), false));
        assert_eq!(table.bytes(), 2 + 3 + ROW_BYTES, "older keys are slices of their own buffer");
        assert_eq!(table.entry_bytes(), 3);
        table.set(key.clone(), row(None, false));
        assert!(table.is_empty());
        assert_eq!(table.bytes(), 2 + 3, "later keys may be slices of the last buffer");
        table.add_bytes(4);
        assert_eq!(table.bytes(), 4);
        table.set(key.clone(), row(Some(b"1"), false));
        table.set(key.clone(), row(None, false));
        assert_eq!(table.get(b"k"), Some(None));
        // A fresh row over a tombstone: the older row is still in a lower layer.
        table.set(key.clone(), row(Some(b"1"), true));
        table.set(key, row(None, false));
        assert_eq!(table.get(b"k"), Some(None));
    }

    #[test]
    fn locations_round_trip() {
        let location = BodyLocation { segment: u64::MAX - 1, offset: 2, size_bytes: 3, checksum: u32::MAX };
        assert_eq!(BodyLocation::decode(&location.encode()), Some(location));
        assert_eq!(BodyLocation::decode(&location.encode()[1..]), None);
    }
}
