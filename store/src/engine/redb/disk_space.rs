//! Disk space: when to refuse new mail, and the reserve that delivery uses meanwhile.
//!
//! The reserve is a preallocated file. The disk counts as full when a write fails for lack of space or when less than
//! [`FREE_BYTES_MIN`] is free; intake is refused then. Delivery continues: it writes little log and, by deleting, frees
//! whole segments. If it runs out of space too, the reserve is released, and the last few megabytes are left to
//! checkpoints. When space is available again, first the reserve is allocated, then intake resumes. A start without the
//! reserve also starts as full.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};

use super::disk::Disk;

pub(crate) const RESERVE_FILE: &str = "reserve";
/// Free space below which the disk counts as full: a checkpoint and the next allocations of the log must fit.
pub(crate) const FREE_BYTES_MIN: u64 = 8 << 20;
/// Free space from which a full disk counts as available again (hysteresis).
const FREE_BYTES_AGAIN: u64 = 16 << 20;

/// Space management of one directory.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    directory: PathBuf,
    disk: Disk,
    reserve_bytes: u64,
    is_held: Mutex<bool>,
}

impl DiskSpace {
    /// Allocates the reserve, if there is enough space.
    pub(crate) fn new(directory: &Path, disk: &Disk, reserve_bytes: u64) -> Self {
        let space =
            Self { directory: directory.to_owned(), disk: disk.clone(), reserve_bytes, is_held: Mutex::new(false) };
        let path = directory.join(RESERVE_FILE);
        let is_reserved = std::fs::metadata(&path).is_ok_and(|found| found.len() == reserve_bytes);
        *space.is_held.lock() = is_reserved;
        if !is_reserved {
            // Left by an interrupted attempt or another `reserve_bytes`.
            drop(std::fs::remove_file(&path));
            space.allocate_reserve();
        }
        space
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Free space; 0 if it cannot be determined.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.read_free_bytes().unwrap_or(0)
    }

    /// Free space, or why it cannot be determined, with the directory.
    pub(crate) fn read_free_bytes(&self) -> Result<u64, String> {
        self.disk.free_bytes(&self.directory).map_err(|error| format!("{}: {error}", self.directory.display()))
    }

    /// Allocates the reserve if it is missing and there is enough space. Returns whether it exists now.
    fn allocate_reserve(&self) -> bool {
        let mut is_reserved = self.is_held.lock();
        if *is_reserved || self.reserve_bytes == 0 {
            return true;
        }
        if self.free_bytes() < self.reserve_bytes.saturating_add(FREE_BYTES_MIN) {
            return false;
        }
        let path = self.directory.join(RESERVE_FILE);
        let allocated = self.disk.create(&path).and_then(|file| file.allocate(0, self.reserve_bytes));
        if allocated.is_err() {
            drop(std::fs::remove_file(&path));
        }
        *is_reserved = allocated.is_ok();
        *is_reserved
    }

    /// Returns whether the reserve exists, or none is wanted.
    pub(crate) fn has_reserve(&self) -> bool {
        self.reserve_bytes == 0 || *self.is_held.lock()
    }

    /// Releases the reserve. Returns whether space was freed.
    pub(crate) fn release_reserve(&self) -> bool {
        let mut is_reserved = self.is_held.lock();
        if !*is_reserved {
            return false;
        }
        *is_reserved = false;
        let released = std::fs::remove_file(self.directory.join(RESERVE_FILE));
        if let Err(error) = &released {
            tracing::warn!(%error, "cannot release the disk reserve");
        }
        released.is_ok()
    }

    /// Returns whether the disk is full, with hysteresis depending on the previous result.
    pub(crate) fn is_full(&self, was_full: bool) -> bool {
        if was_full {
            !self.allocate_reserve() || self.free_bytes() < FREE_BYTES_AGAIN
        } else {
            self.free_bytes() < FREE_BYTES_MIN
        }
    }
}
