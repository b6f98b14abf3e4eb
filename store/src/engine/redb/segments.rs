//! The log's files: names, sizes, and reads of bodies.
//!
//! A bounded number of files stays open. A body's checksum is verified at every read.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;

use super::disk::{Disk, DiskFile};
use super::memtable::BodyLocation;
use crate::engine::ReadError;

/// Maximum number of open segments, far below the usual limit of 1,024 files per process.
const OPEN_FILES_MAX: usize = 128;

pub(crate) fn segment_file(segment: u64) -> String {
    format!("log-{segment:016}.seg")
}

/// Parses a segment's file name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("log-")?.strip_suffix(".seg")?;
    if number.len() != 16 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

#[derive(Debug)]
pub(crate) struct Segments {
    directory: PathBuf,
    disk: Disk,
    inner: Mutex<SegmentFiles>,
    /// Number of the segment being written, whose data is in the page cache.
    pub(crate) newest: AtomicU64,
}

#[derive(Debug, Default)]
struct SegmentFiles {
    sizes: BTreeMap<u64, u64>,
    open: BTreeMap<u64, Arc<DiskFile>>,
}

/// Why a body could not be read.
#[derive(Debug)]
pub(crate) enum BodyReadError {
    /// The segment is missing or contains other bytes, as expected if the body was relocated or deleted meanwhile.
    Mismatch(String),
    Io(io::Error),
}

impl From<BodyReadError> for ReadError {
    fn from(fault: BodyReadError) -> Self {
        match fault {
            BodyReadError::Mismatch(reason) => Self::Corrupt(reason.into()),
            BodyReadError::Io(error) => Self::io(error),
        }
    }
}

impl Segments {
    pub(crate) fn list(directory: &Path, disk: &Disk) -> io::Result<Self> {
        let mut sizes = BTreeMap::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if let Some(segment) = entry.file_name().to_str().and_then(segment_number) {
                sizes.insert(segment, entry.metadata()?.len());
            }
        }
        let inner = Mutex::new(SegmentFiles { sizes, open: BTreeMap::new() });
        Ok(Self { directory: directory.to_owned(), disk: disk.clone(), inner, newest: AtomicU64::new(0) })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn path(&self, segment: u64) -> PathBuf {
        self.directory.join(segment_file(segment))
    }

    /// All segment numbers in order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.inner.lock().sizes.keys().copied().collect()
    }

    /// Size of a segment's file; `None` if it does not exist.
    pub(crate) fn size_bytes(&self, segment: u64) -> Option<u64> {
        self.inner.lock().sizes.get(&segment).copied()
    }

    /// Number and total size of the segments.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let inner = self.inner.lock();
        (inner.sizes.len() as u64, inner.sizes.values().sum())
    }

    pub(crate) fn set_size(&self, segment: u64, size_bytes: u64) {
        self.inner.lock().sizes.insert(segment, size_bytes);
    }

    /// Adds the writer's file, which readers share.
    pub(crate) fn add(&self, segment: u64, file: Arc<DiskFile>) {
        let mut inner = self.inner.lock();
        inner.sizes.insert(segment, 0);
        inner.cache_open_file(segment, file);
    }

    pub(crate) fn remove(&self, segment: u64) -> io::Result<()> {
        {
            let mut inner = self.inner.lock();
            inner.open.remove(&segment);
            inner.sizes.remove(&segment);
        }
        self.disk.remove(&self.path(segment))
    }

    pub(crate) fn file(&self, segment: u64) -> io::Result<Arc<DiskFile>> {
        if let Some(file) = self.inner.lock().open.get(&segment) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(self.disk.open(&self.path(segment))?);
        self.inner.lock().cache_open_file(segment, Arc::clone(&file));
        Ok(file)
    }

    /// Reads a body and verifies its checksum.
    pub(crate) fn read(&self, location: BodyLocation) -> Result<Bytes, BodyReadError> {
        let name = segment_file(location.segment);
        let file = self.file(location.segment).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                BodyReadError::Mismatch(format!("{name}, which contains a live body, is missing"))
            }
            _ => BodyReadError::Io(error),
        })?;
        let mut bytes = vec![0; location.size_bytes as usize];
        let at = location.offset;
        file.read_at(at, &mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                BodyReadError::Mismatch(format!("{name} ends within the body at byte {at}"))
            }
            _ => BodyReadError::Io(error),
        })?;
        if crc32fast::hash(&bytes) != location.checksum {
            return Err(BodyReadError::Mismatch(format!("the body at byte {at} of {name} fails its checksum")));
        }
        Ok(Bytes::from(bytes))
    }
}

impl SegmentFiles {
    fn cache_open_file(&mut self, segment: u64, file: Arc<DiskFile>) {
        if self.open.len() >= OPEN_FILES_MAX {
            // Evict the oldest segment, because recent mail is read most.
            self.open.pop_first();
        }
        self.open.insert(segment, file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_and_numbers_round_trip() {
        assert_eq!(segment_number(&segment_file(42)), Some(42));
        for wrong in ["log-42.seg", "log-+000000000000042.seg", "index.redb", "log-0000000000000042.seg.old"] {
            assert_eq!(segment_number(wrong), None, "{wrong}");
        }
    }
}
