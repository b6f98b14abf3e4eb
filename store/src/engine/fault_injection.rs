//! Fault injection for tests: planned disk errors, and snapshots of the directory at a chosen operation.
//!
//! The redb engine performs every disk operation through `redb/disk.rs`, which calls this module first if the store was
//! opened with [`super::RedbOptions::faults`]. A test can let the third sync fail with EIO, declare the disk full, or
//! have the directory copied just before an operation. That copy is what a killed process leaves behind. The list of
//! ranges that no sync had covered lets a test simulate a power loss: it truncates, zeroes or garbles those ranges of
//! the copy.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A type of disk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskOperation {
    /// A file is created.
    Create,
    /// Bytes are appended to the log.
    Write,
    Sync,
    /// Space for the log is allocated.
    Allocate,
    /// A log file is truncated.
    Truncate,
    /// A file is removed.
    Remove,
    /// The index writes a page.
    IndexWrite,
    IndexSync,
    /// The index file grows.
    IndexGrow,
}

/// The error of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// The operation does nothing and returns this raw OS error.
    Error(i32),
    /// Only this many bytes are written, then the disk is full.
    Short(usize),
}

/// ENOSPC, "no space left on device".
pub const NO_SPACE: i32 = 28;
/// EIO, "input/output error".
pub const INPUT_OUTPUT: i32 = 5;

/// A range of a file that no sync has covered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsyncedRange {
    /// File name in the directory.
    pub file: PathBuf,
    pub offset: u64,
    pub size_bytes: u64,
}

/// A plan of faults, shared with the store that was opened with it.
#[derive(Debug, Clone, Default)]
pub struct FaultInjector {
    plan: Arc<Mutex<FaultPlan>>,
}

#[derive(Debug, Default)]
struct FaultPlan {
    counts: BTreeMap<DiskOperation, u64>,
    single: Vec<(DiskOperation, u64, InjectedFault)>,
    full: bool,
    free_bytes: Option<u64>,
    unsynced: Vec<UnsyncedRange>,
    image: Option<(DiskOperation, u64, PathBuf)>,
    imaged: Option<Vec<UnsyncedRange>>,
}

impl FaultInjector {
    /// Creates a plan without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the `nth` operation of this type from now on fail; 1 is the next one.
    pub fn fail(&self, operation: DiskOperation, nth: u64, fault: InjectedFault) {
        let mut plan = self.plan.lock();
        let at = plan.counts.get(&operation).copied().unwrap_or(0) + nth;
        plan.single.push((operation, at, fault));
    }

    /// Makes the disk full, or not: log and index cannot grow.
    pub fn set_full(&self, full: bool) {
        self.plan.lock().full = full;
    }

    /// Overrides the reported free disk space; `None` reports the real value.
    pub fn set_free_bytes(&self, free_bytes: Option<u64>) {
        self.plan.lock().free_bytes = free_bytes;
    }

    /// Copies the directory to `target` just before the `nth` operation of this type from now on.
    pub fn snapshot_before(&self, operation: DiskOperation, nth: u64, target: impl Into<PathBuf>) {
        let mut plan = self.plan.lock();
        let at = plan.counts.get(&operation).copied().unwrap_or(0) + nth;
        plan.imaged = None;
        plan.image = Some((operation, at, target.into()));
    }

    /// The ranges that were not durable when the snapshot was taken; `None` if none was taken.
    pub fn unsynced_in_snapshot(&self) -> Option<Vec<UnsyncedRange>> {
        self.plan.lock().imaged.clone()
    }

    /// Number of operations of this type so far.
    pub fn count(&self, operation: DiskOperation) -> u64 {
        self.plan.lock().counts.get(&operation).copied().unwrap_or(0)
    }

    /// Counts an operation, takes a snapshot if planned, and returns the planned error or the length of a short write.
    pub(crate) fn check_operation(&self, operation: DiskOperation, file: &Path) -> io::Result<Option<usize>> {
        let mut plan = self.plan.lock();
        let count = plan.counts.entry(operation).or_insert(0);
        *count += 1;
        let now = *count;
        if plan.image.as_ref().is_some_and(|(kind, at, _)| *kind == operation && *at == now)
            && let Some((_, _, target)) = plan.image.take()
        {
            copy(file.parent().unwrap_or(file), &target)?;
            plan.imaged = Some(plan.unsynced.clone());
        }
        let hit = plan.single.iter().position(|(kind, at, _)| *kind == operation && *at == now);
        if let Some(hit) = hit {
            return match plan.single.swap_remove(hit).2 {
                InjectedFault::Error(code) => Err(io::Error::from_raw_os_error(code)),
                InjectedFault::Short(size_bytes) => Ok(Some(size_bytes)),
            };
        }
        let grows = matches!(operation, DiskOperation::Allocate | DiskOperation::IndexGrow | DiskOperation::Create);
        if plan.full && grows { Err(io::Error::from_raw_os_error(NO_SPACE)) } else { Ok(None) }
    }

    pub(crate) fn record_write(&self, file: &Path, offset: u64, size_bytes: u64) {
        let name = PathBuf::from(file.file_name().unwrap_or_default());
        self.plan.lock().unsynced.push(UnsyncedRange { file: name, offset, size_bytes });
    }

    pub(crate) fn record_sync(&self, file: &Path) {
        let name = file.file_name().unwrap_or_default();
        self.plan.lock().unsynced.retain(|range| range.file.as_os_str() != name);
    }

    pub(crate) fn free_bytes(&self) -> Option<u64> {
        self.plan.lock().free_bytes
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
