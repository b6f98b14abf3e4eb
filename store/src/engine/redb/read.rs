//! Reads: data in memory is read on the runtime's threads; reads that wait for the disk continue on blocking threads.
//!
//! ```text
//! get_many   active > frozen > index  ──slow──► the remaining keys, on several threads concurrently
//! scan       the three, merged        ──slow──► the same merge, on a blocking thread
//! scan_each  the first of them        ──slow──► each of the others, concurrently
//! ```
//!
//! There is no way to ask whether a page of the index is in memory, so the elapsed time decides. If one step takes
//! longer than `RedbOptions::in_place`, the rest is expected to wait for the disk as well, and moves off the runtime's
//! threads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::Instant;

use super::index::IndexSnapshot;
use super::memtable::{MemTable, detached_copy};
use super::state::EngineState;
use crate::engine::{Key, ReadError, ScanOrder, Value};
use crate::key::successor;

/// Maximum number of threads that read the keys of one request: a disk serves several reads in the time of one.
const READERS: usize = 8;
/// Minimum number of keys per thread.
const KEYS_A_READER: usize = 6;
/// Scans with a larger limit start on a blocking thread: they take long even in memory.
const ROWS_IN_PLACE: usize = 256;
/// Maximum number of rows copied from the frozen memtable at once.
const FROZEN_ROWS: usize = 64;
/// Page size of an API list; larger results grow the buffer.
const SCAN_ROWS_TYPICAL: usize = 128;

/// Keys that are in no memtable, with their positions in the request.
type UnresolvedKeys = Vec<(usize, Key)>;
/// Rows, with their positions in the request.
type ResolvedRows = Vec<(usize, Option<Value>)>;

impl EngineState {
    /// Reads the rows of several keys from one snapshot.
    pub(crate) async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>, ReadError> {
        let (mut found, unresolved, base) = self.look_up_in_memory(keys);
        if unresolved.is_empty() {
            return Ok(found);
        }
        let mut put = |at: usize, value| {
            if let Some(slot) = found.get_mut(at) {
                *slot = value;
            }
        };
        let mut unresolved = unresolved.into_iter();
        for (at, key) in unresolved.by_ref() {
            let began = Instant::now();
            put(at, base.get(&key)?);
            if began.elapsed() >= self.in_place {
                break;
            }
        }
        let rest = unresolved.as_slice();
        if rest.is_empty() {
            return Ok(found);
        }
        let mut readers = spawn_readers(&base, rest);
        while let Some(part) = readers.join_next().await {
            part.map_err(ReadError::io)??.into_iter().for_each(|(at, value)| put(at, value));
        }
        Ok(found)
    }

    /// Looks up keys in the memtables. Returns also the keys that are in neither.
    fn look_up_in_memory(&self, keys: &[Key]) -> (Vec<Option<Value>>, UnresolvedKeys, Arc<IndexSnapshot>) {
        let (mut found, mut unresolved) = (Vec::with_capacity(keys.len()), Vec::new());
        let base = {
            let layers = self.layers();
            for (at, key) in keys.iter().enumerate() {
                let frozen = || layers.frozen.as_ref().and_then(|table| table.get(key));
                let row = layers.active.get(key).or_else(frozen);
                if row.is_none() {
                    unresolved.push((at, key.clone()));
                }
                found.push(row.flatten().cloned());
            }
            Arc::clone(&layers.base)
        };
        found.iter_mut().flatten().for_each(|value| *value = detached_copy(value));
        (found, unresolved, base)
    }

    /// Reads at most `limit` rows of a range from one snapshot.
    pub(crate) async fn scan(
        self: &Arc<Self>,
        range: Range<Key>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Value)>, ReadError> {
        if limit > ROWS_IN_PLACE {
            return self.spawn_scan(range, order, limit).await.map_err(ReadError::io)?;
        }
        let found = self.scan_each(std::slice::from_ref(&range), order, limit).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Reads at most `limit` rows of each range, all from one snapshot.
    pub(crate) async fn scan_each(
        &self,
        ranges: &[Range<Key>],
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<Vec<(Key, Value)>>, ReadError> {
        let (mut found, mut waiting) = (Vec::with_capacity(ranges.len()), Vec::new());
        for mut scan in MergedScan::for_ranges(self, ranges, order, limit)? {
            match waiting.is_empty() && scan.advance(Some(self.in_place))? {
                true => found.push(scan.found),
                false => waiting.push(scan.spawn_finish()),
            }
        }
        for scan in waiting {
            found.push(scan.await.map_err(ReadError::io)??);
        }
        Ok(found)
    }

    fn spawn_scan(
        self: &Arc<Self>,
        range: Range<Key>,
        order: ScanOrder,
        limit: usize,
    ) -> JoinHandle<Result<Vec<(Key, Value)>, ReadError>> {
        let shared = Arc::clone(self);
        spawn_blocking(move || shared.scan_blocking(&range, order, limit))
    }

    /// Like [`EngineState::scan`], for a thread outside the runtime.
    pub(crate) fn scan_blocking(
        &self,
        range: &Range<Key>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Value)>, ReadError> {
        let scans = MergedScan::for_ranges(self, std::slice::from_ref(range), order, limit)?;
        scans.into_iter().next().map_or_else(|| Ok(Vec::new()), MergedScan::finish)
    }
}

/// Reads the remaining keys of a request on blocking threads. A plain function rather than an async one, so that
/// callers in other crates do not recompile it.
fn spawn_readers(base: &Arc<IndexSnapshot>, rest: &[(usize, Key)]) -> JoinSet<Result<ResolvedRows, ReadError>> {
    let mut readers = JoinSet::new();
    for part in rest.chunks(rest.len().div_ceil(READERS).max(KEYS_A_READER)) {
        let (base, part) = (Arc::clone(base), part.to_vec());
        let read = move |(at, key): (usize, Key)| Ok((at, base.get(&key)?));
        readers.spawn_blocking(move || part.into_iter().map(read).collect());
    }
    readers
}

/// Rows of a layer in order, including tombstones (`None`).
type LayerRows = Box<dyn Iterator<Item = Result<(Key, Option<Value>), ReadError>> + Send>;

/// Copies a row, so that it does not retain its batch's buffer.
fn copied_row((key, value): (Key, Option<Value>)) -> (Key, Option<Value>) {
    (detached_copy(&key), value.as_ref().map(detached_copy))
}

/// Merges the rows of the layers; an upper layer hides the same key in the layers below.
struct MergedScan {
    layers: [LayerRows; 3],
    heads: [Option<(Key, Option<Value>)>; 3],
    has_begun: bool,
    order: ScanOrder,
    limit: usize,
    found: Vec<(Key, Value)>,
}

impl MergedScan {
    /// Creates scans of several ranges on one snapshot.
    fn for_ranges(
        shared: &EngineState,
        ranges: &[Range<Key>],
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<Self>, ReadError> {
        let is_empty = |range: &Range<Key>| limit == 0 || range.start >= range.end;
        let (active, frozen, base) = {
            let layers = shared.layers();
            let part = |range| match is_empty(range) {
                true => Vec::new(),
                false => layers.active.range_up_to(range, order, limit),
            };
            let active: Vec<_> = ranges.iter().map(part).collect();
            (active, layers.frozen.clone(), Arc::clone(&layers.base))
        };
        let scan = |(range, active): (&Range<Key>, Vec<_>)| {
            if is_empty(range) {
                return Ok(Self::merging([(); 3].map(|()| Box::new(std::iter::empty()) as LayerRows), order, limit));
            }
            // The frozen memtable and the index do not change, so they are read lazily: rows that the active memtable
            // deletes do not count towards the limit.
            let frozen = frozen.clone().map(|table| frozen_rows(table, range.clone(), order, limit));
            let base = base.rows(range, order)?.map(|row| row.map(|(key, value)| (key, Some(value))));
            let frozen = frozen.into_iter().flatten().map(copied_row).map(Ok);
            let active = active.into_iter().map(copied_row).map(Ok);
            Ok(Self::merging([Box::new(active), Box::new(frozen), Box::new(base)], order, limit))
        };
        ranges.iter().zip(active).map(scan).collect()
    }

    fn merging(layers: [LayerRows; 3], order: ScanOrder, limit: usize) -> Self {
        let found = Vec::with_capacity(limit.min(SCAN_ROWS_TYPICAL));
        Self { layers, heads: [None, None, None], has_begun: false, order, limit, found }
    }

    /// Merges up to the end and returns true, or returns false as soon as a step takes longer than `patience`.
    fn advance(&mut self, patience: Option<Duration>) -> Result<bool, ReadError> {
        let mut step_began = patience.map(|_| Instant::now());
        loop {
            if !self.merge_next()? || self.found.len() >= self.limit {
                return Ok(true);
            }
            if let Some((began, patience)) = step_began.zip(patience) {
                let now = Instant::now();
                if now.duration_since(began) >= patience {
                    return Ok(false);
                }
                step_began = Some(now);
            }
        }
    }

    /// Merges up to the end. Blocks.
    fn finish(mut self) -> Result<Vec<(Key, Value)>, ReadError> {
        self.advance(None)?;
        Ok(self.found)
    }

    /// Like [`Self::finish`], on a blocking thread.
    fn spawn_finish(self) -> JoinHandle<Result<Vec<(Key, Value)>, ReadError>> {
        spawn_blocking(|| self.finish())
    }

    /// Takes the next key from all layers that have it. Returns false at the end.
    fn merge_next(&mut self) -> Result<bool, ReadError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            for (head, layer) in self.heads.iter_mut().zip(&mut self.layers) {
                *head = layer.next().transpose()?;
            }
        }
        let keys = self.heads.iter().flatten().map(|(key, _)| key);
        let next = match self.order {
            ScanOrder::Ascending => keys.min(),
            ScanOrder::Descending => keys.max(),
        };
        let Some(key) = next.cloned() else { return Ok(false) };
        let mut newest = None;
        for (head, layer) in self.heads.iter_mut().zip(&mut self.layers) {
            if let Some((_, value)) = head.take_if(|(other, _)| *other == key) {
                newest.get_or_insert(value);
                *head = layer.next().transpose()?;
            }
        }
        self.found.extend(newest.flatten().map(|value| (key, value)));
        Ok(true)
    }
}

/// Iterates over a range of the frozen memtable, copying a few rows at a time.
fn frozen_rows(
    table: Arc<MemTable>,
    mut range: Range<Key>,
    order: ScanOrder,
    limit: usize,
) -> impl Iterator<Item = (Key, Option<Value>)> + Send {
    let together = limit.min(FROZEN_ROWS);
    let mut read = Vec::new().into_iter();
    std::iter::from_fn(move || {
        if read.len() == 0 && range.start < range.end {
            let rows: Vec<_> = table.iter_range(&range, order).take(together).collect();
            match (rows.last().filter(|_| rows.len() == together), order) {
                (Some((last, _)), ScanOrder::Ascending) => range.start = successor(last),
                (Some((last, _)), ScanOrder::Descending) => range.end = last.clone(),
                (None, _) => range.end = range.start.clone(),
            }
            read = rows.into_iter();
        }
        read.next()
    })
}
