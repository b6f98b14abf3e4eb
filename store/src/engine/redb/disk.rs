//! The disk: every file operation of the engine, so that tests can inject errors.
//!
//! A thin layer: complete vectored positional writes, `fdatasync`, `fallocate`, `ftruncate`, and the sync of the
//! directory, without which a power loss can lose the name of a new file.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use crate::engine::fault_injection::{DiskOperation, FaultInjector, NO_SPACE};
use crate::engine::private_files;

/// The real disk, or one with injected errors.
#[derive(Debug, Clone)]
pub(crate) enum Disk {
    Real,
    Faulty(FaultInjector),
}

/// File systems that overwrite in place: ext2 to ext4 and XFS, by the magic numbers of statfs(2).
const IN_PLACE: [i64; 2] = [0xef53, 0x5846_5342];

/// Maximum number of slices in one vectored write (IOV_MAX on Linux).
const SLICES_MAX: usize = 1024;

/// Returns whether an error means a full disk, which is temporary, rather than a broken one.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    // Quotas and file size limits are treated like a full disk.
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
        || error.raw_os_error() == Some(NO_SPACE)
}

impl Disk {
    fn ask(&self, operation: DiskOperation, path: &Path) -> io::Result<Option<usize>> {
        match self {
            Self::Real => Ok(None),
            Self::Faulty(faults) => faults.check_operation(operation, path),
        }
    }

    /// Creates a new file for reading and writing. Fails if it exists.
    pub(crate) fn create(&self, path: &Path) -> io::Result<DiskFile> {
        self.ask(DiskOperation::Create, path)?;
        let file = private_files::create_new_file(path)?;
        Ok(DiskFile { file, path: path.to_owned(), disk: self.clone() })
    }

    /// Opens a file for reading and writing.
    pub(crate) fn open(&self, path: &Path) -> io::Result<DiskFile> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(DiskFile { file, path: path.to_owned(), disk: self.clone() })
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(DiskOperation::Remove, path)?;
        std::fs::remove_file(path)
    }

    /// Makes created and removed names in a directory durable.
    pub(crate) fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    /// Disk space available to an unprivileged process.
    pub(crate) fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        if let Self::Faulty(faults) = self
            && let Some(free_bytes) = faults.free_bytes()
        {
            return Ok(free_bytes);
        }
        let stat = rustix::fs::statvfs(directory)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    path: PathBuf,
    disk: Disk,
}

impl DiskFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns whether overwriting reuses the same blocks. This is false on copy-on-write file systems; only known file
    /// systems count. It is true for a disk with injected errors.
    pub(crate) fn is_overwritten_in_place(&self) -> bool {
        match &self.disk {
            Disk::Faulty(_) => true,
            Disk::Real => rustix::fs::fstatfs(&self.file).is_ok_and(|found| IN_PLACE.contains(&found.f_type)),
        }
    }

    /// Reads exactly `out.len()` bytes, or fails with `UnexpectedEof`.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    /// Writes all slices back to back.
    pub(crate) fn write_at(&self, offset: u64, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        let short = self.disk.ask(DiskOperation::Write, &self.path)?;
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let size_bytes = short.map_or(wanted, |short| short.min(wanted));
        if let Disk::Faulty(faults) = &self.disk {
            faults.record_write(&self.path, offset, size_bytes as u64);
        }
        if short.is_some() {
            let mut joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            joined.truncate(size_bytes);
            self.file.write_all_at(&joined, offset)?;
            return Err(io::Error::from_raw_os_error(NO_SPACE));
        }
        self.write_all(offset, pieces)
    }

    fn write_all(&self, offset: u64, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut at = offset;
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let now = pieces.get(..SLICES_MAX).unwrap_or(pieces);
            match rustix::io::pwritev(&self.file, now, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += written as u64;
                    IoSlice::advance_slices(&mut pieces, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Makes written data durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.ask(DiskOperation::Sync, &self.path)?;
        self.file.sync_data()?;
        if let Disk::Faulty(faults) = &self.disk {
            faults.record_sync(&self.path);
        }
        Ok(())
    }

    /// Allocates space, so that later writes to it cannot find the disk full.
    pub(crate) fn allocate(&self, offset: u64, size_bytes: u64) -> io::Result<()> {
        self.disk.ask(DiskOperation::Allocate, &self.path)?;
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, size_bytes) {
            // The file system does not support it; writes will report a full disk.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }

    pub(crate) fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.disk.ask(DiskOperation::Truncate, &self.path)?;
        self.file.set_len(size_bytes)
    }
}

/// The index file as redb's storage backend.
impl ::redb::StorageBackend for DiskFile {
    fn len(&self) -> io::Result<u64> {
        self.size_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, out)
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.disk.ask(DiskOperation::IndexGrow, &self.path)?;
        self.file.set_len(size_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.ask(DiskOperation::IndexSync, &self.path)?;
        self.file.sync_data()?;
        if let Disk::Faulty(faults) = &self.disk {
            faults.record_sync(&self.path);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.ask(DiskOperation::IndexWrite, &self.path)?;
        if let Disk::Faulty(faults) = &self.disk {
            faults.record_write(&self.path, offset, data.len() as u64);
        }
        self.file.write_all_at(data, offset)
    }
}
