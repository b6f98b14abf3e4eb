//! Room on the disk: when to refuse new mail, and the reserve that delivery lives on meanwhile.
//!
//! The reserve is a file of set-aside room. The disk counts as full when a write met its end or when
//! less than [`FREE_BYTES_MIN`] is free; intake is refused from then on. Delivery goes on: it makes
//! little log and, by deleting, frees whole segments. When even that meets the end of the disk, the
//! reserve is given up, and the last few megabytes are the checkpoint's. With room again the reserve is set aside first, then intake comes back.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::Disk;

/// The reserve file's name.
pub(crate) const RESERVE_FILE: &str = "reserve";
/// Less than this free, and the disk is full: a checkpoint and the next steps of the log must fit.
pub(crate) const FREE_BYTES_MIN: u64 = 8 << 20;
/// It stays full until this much is free, so that it does not flutter.
const FREE_BYTES_AGAIN: u64 = 16 << 20;

/// The disk under one directory.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    directory: PathBuf,
    disk: Disk,
    reserve_bytes: u64,
    is_held: Mutex<bool>,
}

impl DiskSpace {
    /// Sets the reserve aside, if there is room.
    pub(crate) fn new(directory: &Path, disk: &Disk, reserve_bytes: u64) -> Self {
        let space =
            Self { directory: directory.to_owned(), disk: disk.clone(), reserve_bytes, is_held: Mutex::new(false) };
        let path = directory.join(RESERVE_FILE);
        let held = std::fs::metadata(&path).is_ok_and(|found| found.len() == reserve_bytes);
        *space.reserve_held() = held;
        if !held {
            // What an interrupted try or another setting left.
            drop(std::fs::remove_file(&path));
            space.allocate_reserve();
        }
        space
    }

    fn reserve_held(&self) -> MutexGuard<'_, bool> {
        self.is_held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// What is free; nothing, if the disk does not say.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.disk.free_bytes(&self.directory).unwrap_or(0)
    }

    /// Sets the reserve aside again, if there is room. Is it held now?
    fn allocate_reserve(&self) -> bool {
        let mut held = self.reserve_held();
        if *held || self.reserve_bytes == 0 {
            return true;
        }
        if self.free_bytes() < self.reserve_bytes.saturating_add(FREE_BYTES_MIN) {
            return false;
        }
        let path = self.directory.join(RESERVE_FILE);
        let made = self.disk.create(&path).and_then(|file| file.allocate(0, self.reserve_bytes));
        if made.is_err() {
            drop(std::fs::remove_file(&path));
        }
        *held = made.is_ok();
        *held
    }

    /// Gives the reserve up. Was there one?
    pub(crate) fn release_reserve(&self) -> bool {
        let mut held = self.reserve_held();
        if !*held {
            return false;
        }
        *held = false;
        let released = std::fs::remove_file(self.directory.join(RESERVE_FILE));
        if let Err(error) = &released {
            tracing::warn!(%error, "the reserve could not be given up");
        }
        released.is_ok()
    }

    /// Is the disk full, given that it was or was not?
    pub(crate) fn is_full(&self, was_full: bool) -> bool {
        if was_full {
            !self.allocate_reserve() || self.free_bytes() < FREE_BYTES_AGAIN
        } else {
            self.free_bytes() < FREE_BYTES_MIN
        }
    }
}
