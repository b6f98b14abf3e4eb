//! The index: a redb file with all rows and body locations as of the last checkpoint.
//!
//! ```text
//! index.redb, tables
//!   rows      key -> value, which may be compressed (row_compression.rs)
//!   bodies    key -> segment u64, offset u64, size u32, checksum u32 (little-endian)
//!   segments  segment u64 -> live bodies u64, their bytes u64
//!   meta      "format" u64 (1, or 2: with compressed values) · "segment" u64, "offset" u64, "sequence" u64: replay position
//!             "store" -> the store id, two u64 ("store_high", "store_low")
//! ```
//!
//! Only checkpoints write it, one transaction each, durable and with quick repair, so after a crash it opens within
//! milliseconds at the last checkpoint, whatever its size. One read snapshot, an [`IndexSnapshot`], serves all readers
//! until the next checkpoint.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ::redb::{Builder, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use bytes::Bytes;

use super::caught::caught;
use super::disk::{Disk, is_no_space};
use super::memtable::{BODY_LOCATION_BYTES, BodyLocation, MemTable};
use super::record::StoreId;
use super::row_compression::{from_stored, to_stored, value_from_stored};
use crate::engine::{Key, OpenError, ReadError, ScanOrder, Value};

pub(crate) const INDEX_FILE: &str = "index.redb";
/// The format that this version writes, and the newest that it reads. It reads the earlier ones, too.
const INDEX_FORMAT: u64 = 2;
const INDEX_FORMAT_OLDEST: u64 = 1;

const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");
const BODIES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("bodies");
const SEGMENTS: TableDefinition<'static, u64, (u64, u64)> = TableDefinition::new("segments");
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

/// A position in the log; everything before it is in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogPosition {
    /// Zero if no segment was ever created.
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    /// Sequence number of the next group.
    pub(crate) sequence: u64,
}

/// Number and size of a segment's live bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LiveBodies {
    pub(crate) bodies: u64,
    pub(crate) bytes: u64,
}

pub(crate) type LiveBySegment = BTreeMap<u64, LiveBodies>;

/// Why a checkpoint failed.
#[derive(Debug)]
pub(crate) enum CheckpointError {
    /// The disk is full; retry later.
    Full,
    /// The disk or the index is broken.
    Broken(String),
}

impl<E: Into<::redb::Error>> From<E> for CheckpointError {
    fn from(error: E) -> Self {
        match error.into() {
            ::redb::Error::Io(error) if is_no_space(&error) => Self::Full,
            error => Self::Broken(error.to_string()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Index {
    database: Option<Database>,
    path: PathBuf,
    disk: Disk,
    cache_bytes: usize,
}

/// Contents of the meta tables when the index was opened.
#[derive(Debug, Clone)]
pub(crate) struct IndexState {
    pub(crate) store: StoreId,
    pub(crate) position: LogPosition,
    pub(crate) live: LiveBySegment,
}

fn closed() -> CheckpointError {
    CheckpointError::Broken("the index is closed".into())
}

impl Index {
    /// Opens the index file, or creates one for a store with the id `new_id`.
    pub(crate) fn open(
        directory: &Path,
        disk: &Disk,
        cache_bytes: usize,
        new_id: StoreId,
    ) -> Result<(Self, IndexState), OpenError> {
        let path = directory.join(INDEX_FILE);
        let mut index = Self { database: None, path, disk: disk.clone(), cache_bytes };
        let is_new = !index.path.exists();
        index.open_file(is_new)?;
        if is_new {
            disk.sync_directory(directory).map_err(|error| OpenError::io(directory, error))?;
        }
        let opened = index.read_meta(new_id)?;
        Ok((index, opened))
    }

    fn open_file(&mut self, is_new: bool) -> Result<(), OpenError> {
        let file = if is_new { self.disk.create(&self.path) } else { self.disk.open(&self.path) };
        let file = file.map_err(|error| OpenError::io(&self.path, error))?;
        let cache_bytes = self.cache_bytes;
        // redb may panic while it opens a file that was modified by something else.
        let database = caught(|| Builder::new().set_cache_size(cache_bytes).create_with_backend(file));
        match database {
            Ok(Ok(database)) => {
                self.database = Some(database);
                Ok(())
            }
            Ok(Err(::redb::DatabaseError::Storage(::redb::StorageError::Io(error))))
                if error.kind() != std::io::ErrorKind::InvalidData =>
            {
                Err(OpenError::io(&self.path, error))
            }
            Ok(Err(error)) => Err(OpenError::corrupt(&self.path, error.to_string())),
            Err(_) => Err(OpenError::corrupt(&self.path, "its pages are inconsistent")),
        }
    }

    fn database(&self) -> Result<&Database, CheckpointError> {
        self.database.as_ref().ok_or_else(closed)
    }

    fn read_meta(&self, new_id: StoreId) -> Result<IndexState, OpenError> {
        let opened = caught(|| self.read_or_start(new_id))
            .unwrap_or_else(|panic| Err(CheckpointError::Broken(format!("its pages are inconsistent: {panic}"))));
        let opened = opened.map_err(|fault| match fault {
            CheckpointError::Full => OpenError::io(&self.path, std::io::Error::from(std::io::ErrorKind::StorageFull)),
            CheckpointError::Broken(reason) => OpenError::corrupt(&self.path, reason),
        })?;
        match opened {
            (INDEX_FORMAT_OLDEST..=INDEX_FORMAT, opened) => Ok(opened),
            (found, _) => Err(OpenError::Newer {
                file: self.path.clone(),
                found: u32::try_from(found).unwrap_or(u32::MAX),
                known: u32::try_from(INDEX_FORMAT).unwrap_or(u32::MAX),
            }),
        }
    }

    /// Reads format and meta tables. A database without a format is new, and is initialised.
    fn read_or_start(&self, new_id: StoreId) -> Result<(u64, IndexState), CheckpointError> {
        let mut transaction = self.database()?.begin_write()?;
        transaction.set_durability(Durability::Immediate).map_err(::redb::Error::from)?;
        transaction.set_quick_repair(true);
        let mut live = LiveBySegment::new();
        let (format, store, position, is_new);
        {
            let mut meta = transaction.open_table(META)?;
            is_new = meta.get("format")?.is_none();
            if is_new {
                let (high, low) = split(new_id);
                let start = [("format", INDEX_FORMAT), ("segment", 0), ("offset", 0), ("sequence", 1)];
                for (name, number) in start.into_iter().chain([("store_high", high), ("store_low", low)]) {
                    meta.insert(name, number)?;
                }
                transaction.open_table(ROWS)?;
                transaction.open_table(BODIES)?;
            }
            let number = |name: &str| -> Result<u64, CheckpointError> {
                let missing = || CheckpointError::Broken(format!("its table `meta` has no `{name}`"));
                Ok(meta.get(name)?.ok_or_else(missing)?.value())
            };
            format = number("format")?;
            store = joined(number("store_high")?, number("store_low")?);
            position =
                LogPosition { segment: number("segment")?, offset: number("offset")?, sequence: number("sequence")? };
            for entry in transaction.open_table(SEGMENTS)?.iter()? {
                let (segment, counts) = entry?;
                let (bodies, bytes) = counts.value();
                live.insert(segment.value(), LiveBodies { bodies, bytes });
            }
        }
        if is_new {
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok((format, IndexState { store, position, live }))
    }

    /// Opens a read snapshot of the last checkpoint.
    pub(crate) fn index_snapshot(&self) -> Result<IndexSnapshot, CheckpointError> {
        let transaction = self.database()?.begin_read()?;
        let (rows, bodies) = (transaction.open_table(ROWS)?, transaction.open_table(BODIES)?);
        Ok(IndexSnapshot { rows, bodies, has_rows: [const { OnceLock::new() }; FIRST_BYTES] })
    }

    /// Writes a frozen memtable and the log position after it, durably. Updates `live` only on success.
    pub(crate) fn checkpoint(
        &self,
        table: &MemTable,
        position: LogPosition,
        live: &mut LiveBySegment,
    ) -> Result<IndexSnapshot, CheckpointError> {
        let mut transaction = self.database()?.begin_write()?;
        transaction.set_durability(Durability::Immediate).map_err(::redb::Error::from)?;
        transaction.set_quick_repair(true);
        let mut changed = LiveChanges::default();
        {
            let mut rows = transaction.open_table(ROWS)?;
            for (key, row) in in_two_passes(&table.rows) {
                match &row.value {
                    Some(value) => drop(rows.insert(key.as_ref(), &*to_stored(key, value))?),
                    None => drop(rows.remove(key.as_ref())?),
                }
            }
            let mut bodies = transaction.open_table(BODIES)?;
            for (key, location) in in_two_passes(&table.bodies) {
                let old = match location {
                    Some(location) => bodies.insert(key.as_ref(), location.encode().as_slice())?,
                    None => bodies.remove(key.as_ref())?,
                };
                changed.add(old.and_then(|old| BodyLocation::decode(old.value())), *location);
            }
        }
        let counts = changed.apply(live)?;
        {
            let mut segments = transaction.open_table(SEGMENTS)?;
            for (segment, live) in &counts {
                if live.bodies == 0 {
                    segments.remove(segment)?;
                } else {
                    segments.insert(segment, (live.bodies, live.bytes))?;
                }
            }
            let mut meta = transaction.open_table(META)?;
            meta.insert("format", INDEX_FORMAT)?;
            meta.insert("segment", position.segment)?;
            meta.insert("offset", position.offset)?;
            meta.insert("sequence", position.sequence)?;
        }
        transaction.commit()?;
        for (segment, counts) in counts {
            match counts.bodies {
                0 => live.remove(&segment),
                _ => live.insert(segment, counts),
            };
        }
        self.index_snapshot()
    }

    /// Reopens the file at its last checkpoint, after an I/O error.
    pub(crate) fn reopen(&mut self) -> Result<IndexSnapshot, CheckpointError> {
        drop(self.database.take());
        self.open_file(false).map_err(|error| CheckpointError::Broken(error.to_string()))?;
        self.index_snapshot()
    }

    /// Verifies the checksum of every page. No snapshot may be open. Returns false if a repair was needed.
    pub(crate) fn check(&mut self) -> Result<bool, String> {
        let database = self.database.as_mut().ok_or("the index is closed")?;
        match caught(|| database.check_integrity()) {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("its pages are inconsistent".into()),
        }
    }

    /// Size of the file.
    pub(crate) fn size_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }
}

/// Iterates over three of five entries, in order, and then over the others.
///
/// redb splits a full page into two halves, so that pages that are filled in order remain half empty. Here the second
/// pass fills those that the first one has left, and few of them are split again.
fn in_two_passes<K, V>(table: &BTreeMap<K, V>) -> impl Iterator<Item = (&K, &V)> {
    let pass = |is_first: bool| {
        table.iter().enumerate().filter(move |(number, _)| (number % 5 % 2 == 0) == is_first).map(|(_, entry)| entry)
    };
    pass(true).chain(pass(false))
}

fn split(id: StoreId) -> (u64, u64) {
    let number = u128::from_be_bytes(id);
    ((number >> 64) as u64, number as u64)
}

fn joined(high: u64, low: u64) -> StoreId {
    ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
}

/// Changes of the live body counts by a checkpoint.
#[derive(Debug, Default)]
struct LiveChanges {
    removed: LiveBySegment,
    added: LiveBySegment,
}

impl LiveChanges {
    fn add(&mut self, old: Option<BodyLocation>, new: Option<BodyLocation>) {
        for (location, counts) in [(old, &mut self.removed), (new, &mut self.added)] {
            if let Some(location) = location {
                let live = counts.entry(location.segment).or_default();
                live.bodies += 1;
                live.bytes += u64::from(location.size_bytes);
            }
        }
    }

    /// Returns the new counts of the changed segments.
    fn apply(self, live: &LiveBySegment) -> Result<LiveBySegment, CheckpointError> {
        let mut out = LiveBySegment::new();
        for (segment, added) in self.added {
            let live = out.entry(segment).or_insert_with(|| live.get(&segment).copied().unwrap_or_default());
            live.bodies += added.bodies;
            live.bytes += added.bytes;
        }
        for (segment, removed) in self.removed {
            let live = out.entry(segment).or_insert_with(|| live.get(&segment).copied().unwrap_or_default());
            let wrong = || CheckpointError::Broken(format!("the live body count of segment {segment} is negative"));
            live.bodies = live.bodies.checked_sub(removed.bodies).ok_or_else(wrong)?;
            live.bytes = live.bytes.checked_sub(removed.bytes).ok_or_else(wrong)?;
        }
        Ok(out)
    }
}

/// A read snapshot of all rows and body locations as of a checkpoint.
pub(crate) struct IndexSnapshot {
    rows: ReadOnlyTable<&'static [u8], &'static [u8]>,
    bodies: ReadOnlyTable<&'static [u8], &'static [u8]>,
    /// For each first byte of a key, that is, each key space: whether any row exists, cached on first use. It spares
    /// lookups in empty spaces, for example suppressions.
    has_rows: [OnceLock<bool>; FIRST_BYTES],
}

/// First bytes covered by the cache; larger ones are always looked up.
const FIRST_BYTES: usize = 64;

impl std::fmt::Debug for IndexSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IndexSnapshot")
    }
}

fn read_error(error: impl Into<::redb::Error>) -> ReadError {
    match error.into() {
        ::redb::Error::Corrupted(reason) => ReadError::Corrupt(reason.into()),
        error => ReadError::io(error),
    }
}

impl IndexSnapshot {
    /// Returns false if no row with the key's first byte exists.
    fn may_have_rows(&self, key: &[u8]) -> Result<bool, ReadError> {
        let Some((first, known)) =
            key.first().and_then(|first| Some((*first, self.has_rows.get(usize::from(*first))?)))
        else {
            return Ok(true);
        };
        if let Some(has_rows) = known.get() {
            return Ok(*has_rows);
        }
        let (start, end) = ([first], [first.saturating_add(1)]);
        let mut rows = self.rows.range::<&[u8]>(start.as_slice()..end.as_slice()).map_err(read_error)?;
        let has_rows = rows.next().transpose().map_err(read_error)?.is_some();
        Ok(*known.get_or_init(|| has_rows))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>, ReadError> {
        if !self.may_have_rows(key)? {
            return Ok(None);
        }
        let found = self.rows.get(key).map_err(read_error)?;
        Ok(found.map(|value| value_from_stored(key, value.value())))
    }

    /// Returns whether the row has exactly this value.
    pub(crate) fn holds(&self, key: &[u8], value: Option<&Value>) -> Result<bool, ReadError> {
        let found = self.rows.get(key).map_err(read_error)?;
        match (found, value) {
            (Some(found), Some(value)) => Ok(*from_stored(key, found.value()) == **value),
            (found, value) => Ok(found.is_none() && value.is_none()),
        }
    }

    pub(crate) fn body_location(&self, key: &[u8]) -> Result<Option<BodyLocation>, ReadError> {
        match self.bodies.get(key).map_err(read_error)? {
            Some(found) => decode_location(found.value()).map(Some),
            None => Ok(None),
        }
    }

    /// Iterates over the rows of a range.
    pub(crate) fn rows(
        &self,
        range: &Range<Key>,
        order: ScanOrder,
    ) -> Result<impl Iterator<Item = Result<(Key, Value), ReadError>> + use<>, ReadError> {
        let mut rows = self.rows.range::<&[u8]>(range.start.as_ref()..range.end.as_ref()).map_err(read_error)?;
        Ok(std::iter::from_fn(move || {
            let next = match order {
                ScanOrder::Ascending => rows.next(),
                ScanOrder::Descending => rows.next_back(),
            }?;
            Some(next.map_err(read_error).map(|(key, value)| {
                (Bytes::copy_from_slice(key.value()), value_from_stored(key.value(), value.value()))
            }))
        }))
    }

    /// Iterates over all body locations in key order.
    pub(crate) fn body_locations(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Key, BodyLocation), ReadError>> + use<>, ReadError> {
        let all = self.bodies.range::<&[u8]>(..).map_err(read_error)?;
        Ok(all.map(|entry| {
            let (key, location) = entry.map_err(read_error)?;
            Ok((Bytes::copy_from_slice(key.value()), decode_location(location.value())?))
        }))
    }
}

fn decode_location(bytes: &[u8]) -> Result<BodyLocation, ReadError> {
    BodyLocation::decode(bytes)
        .filter(|_| bytes.len() == BODY_LOCATION_BYTES)
        .ok_or_else(|| ReadError::Corrupt("cannot decode a body location in the index".into()))
}
