//! Faults on purpose: a plan of disk errors, and images of the directory at a chosen moment.
//!
//! The redb engine makes every change on disk through `redb/disk.rs`, which asks here first when a
//! store is opened with [`super::Options::faults`]. A test says "the third sync fails with EIO" or
//! "the disk is full from now on", or has the directory copied just before an operation: that copy is
//! what a kill leaves behind. With the list of ranges that no sync had covered, a test turns the copy
//! into what a power loss leaves behind: those ranges cut off, zeroed or garbled.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A kind of change on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskOperation {
    /// A file is made.
    Create,
    /// Bytes are appended to the log.
    Write,
    /// The log is made durable.
    Sync,
    /// Room for the log is set aside.
    Allocate,
    /// A log file is cut.
    Truncate,
    /// A file is removed.
    Remove,
    /// The index writes a page.
    IndexWrite,
    /// The index is made durable.
    IndexSync,
    /// The index grows.
    IndexGrow,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// Nothing is done; this raw OS error.
    Error(i32),
    /// Only so many bytes are written, then "no space left".
    Short(usize),
}

/// "No space left on device", as the operating system numbers it.
pub const NO_SPACE: i32 = 28;
/// "Input/output error", as the operating system numbers it.
pub const INPUT_OUTPUT: i32 = 5;

/// A range of a file that no sync has covered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsyncedRange {
    /// The file's name in the directory.
    pub file: PathBuf,
    /// Where the range starts.
    pub offset: u64,
    /// How long it is.
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
    /// A plan without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn plan(&self) -> MutexGuard<'_, FaultPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `nth` operation of this kind from now on (1 is the next) goes wrong.
    pub fn fail(&self, operation: DiskOperation, nth: u64, fault: InjectedFault) {
        let mut plan = self.plan();
        let at = plan.counts.get(&operation).copied().unwrap_or(0) + nth;
        plan.single.push((operation, at, fault));
    }

    /// From now on the disk has no room (or has it again): log and index cannot grow.
    pub fn set_full(&self, full: bool) {
        self.plan().full = full;
    }

    /// What the disk says it has free; none: the truth.
    pub fn set_free_bytes(&self, free_bytes: Option<u64>) {
        self.plan().free_bytes = free_bytes;
    }

    /// Copies the directory to `target` just before the `nth` operation of this kind from now on.
    pub fn snapshot_before(&self, operation: DiskOperation, nth: u64, target: impl Into<PathBuf>) {
        let mut plan = self.plan();
        let at = plan.counts.get(&operation).copied().unwrap_or(0) + nth;
        plan.imaged = None;
        plan.image = Some((operation, at, target.into()));
    }

    /// The ranges that were not yet durable when the image was taken; none: no image yet.
    #[must_use]
    pub fn unsynced_in_snapshot(&self) -> Option<Vec<UnsyncedRange>> {
        self.plan().imaged.clone()
    }

    /// How many operations of this kind there were.
    #[must_use]
    pub fn count(&self, operation: DiskOperation) -> u64 {
        self.plan().counts.get(&operation).copied().unwrap_or(0)
    }

    /// Counts an operation, takes an image if it is time, and says what goes wrong.
    pub(crate) fn check_operation(&self, operation: DiskOperation, file: &Path) -> io::Result<Option<usize>> {
        let mut plan = self.plan();
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
        self.plan().unsynced.push(UnsyncedRange { file: name, offset, size_bytes });
    }

    pub(crate) fn record_sync(&self, file: &Path) {
        let name = file.file_name().unwrap_or_default();
        self.plan().unsynced.retain(|range| range.file.as_os_str() != name);
    }

    pub(crate) fn free_bytes(&self) -> Option<u64> {
        self.plan().free_bytes
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
