//! `disk` and `disk_sync`: file system and free space of the data directory, and the time of fdatasync.
//!
//! Every accepted message waits for one fdatasync, shared by all messages that wait at that moment, so its duration is
//! the minimum latency of accepting a message. An implausibly fast disk does not write durably.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use store::engine::private_files;
use tokio::time::Instant;

use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};
use crate::config::StoreEngine;

/// Maximum number of writes measured, and the maximum time for them.
const WRITES_MAX: usize = 48;
const TIME_MAX: Duration = Duration::from_secs(3);
/// Size of a commit of one small message.
const WRITE_BYTES: usize = 8 << 10;
/// No disk syncs faster; memory does.
const TOO_FAST: Duration = Duration::from_micros(10);
/// Current disks are faster; a slower one delays every response.
const SLOW: Duration = Duration::from_millis(20);
/// With this, a mail server commits only a few times per second.
const TOO_SLOW: Duration = Duration::from_millis(200);
/// Free space required beyond the reserve; with less, the server soon refuses mail.
const FREE_BYTES_REQUIRED: u64 = 256 << 20;
/// Free space recommended for 30 days of mail.
const FREE_BYTES_RECOMMENDED: u64 = 4 << 30;

/// Type of the file system of the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileSystemKind {
    Disk,
    /// In memory (tmpfs, ramfs).
    Memory,
    /// On another machine (NFS, SMB).
    Network,
    /// A container's layers.
    Overlay,
}

impl FileSystemKind {
    fn from_magic(magic: u64) -> Self {
        match magic & 0xffff_ffff {
            0x0102_1994 | 0x8584_58f6 => Self::Memory,
            0x6969 | 0xff53_4d42 | 0xfe53_4d42 => Self::Network,
            0x794c_7630 => Self::Overlay,
            _ => Self::Disk,
        }
    }
}

struct DiskUsage {
    free: u64,
    total: u64,
    files_free: u64,
    files: u64,
    kind: FileSystemKind,
}

/// Returns the directory, or its nearest parent that exists.
fn nearest_existing_directory(data_dir: &Path) -> PathBuf {
    let found = data_dir.ancestors().find(|ancestor| ancestor.is_dir());
    found.unwrap_or_else(|| Path::new("/")).to_owned()
}

fn disk_usage(directory: &Path) -> std::io::Result<DiskUsage> {
    let space = rustix::fs::statvfs(directory)?;
    let magic = rustix::fs::statfs(directory)?.f_type;
    Ok(DiskUsage {
        free: space.f_bavail.saturating_mul(space.f_frsize),
        total: space.f_blocks.saturating_mul(space.f_frsize),
        files_free: space.f_favail,
        files: space.f_files,
        // Width and signedness differ by platform; the magic number has 32 bits.
        kind: FileSystemKind::from_magic(magic as u64),
    })
}

/// Checks free space and type of the file system.
pub(super) async fn check_disk(context: &CheckContext) -> DoctorFinding {
    let (directory, reserve) =
        (nearest_existing_directory(&context.config.data_dir), context.config.store.reserve_bytes);
    let usage = tokio::task::spawn_blocking(move || disk_usage(&directory).map_err(|error| (directory, error)));
    match usage.await {
        Ok(Ok(usage)) => evaluate_space(&context.config.data_dir, reserve, &usage),
        Ok(Err((directory, error))) => DoctorFinding::skipped("disk", format!("{}: {error}", directory.display())),
        Err(_) => DoctorFinding::skipped("disk", "could not be checked"),
    }
}

/// Formats a size in MiB or GiB.
fn human_size(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{} GiB", bytes >> 30) } else { format!("{} MiB", bytes >> 20) }
}

fn evaluate_space(data_dir: &Path, reserve: u64, usage: &DiskUsage) -> DoctorFinding {
    let mut notes = Observations::default();
    let at = data_dir.display();
    match usage.kind {
        FileSystemKind::Memory => notes.fail(
            format!("{at} is in memory (tmpfs): all mail is lost when the machine stops"),
            "Set `data_dir` to a directory on a disk, for example /var/lib/postrider.",
        ),
        FileSystemKind::Network => notes.warn(
            format!("{at} is on another machine (NFS or SMB), so locks and fdatasync depend on that machine"),
            "Set `data_dir` to a local disk; for several nodes: engine = \"postgres\" in [store] (docs/CLUSTER.md).",
        ),
        FileSystemKind::Overlay => notes.warn(
            format!("{at} is in the container's own layer: it is deleted with the container"),
            format!("Mount a volume there, for example: -v postrider:{at}"),
        ),
        FileSystemKind::Disk => {}
    }
    let found = format!("{} of {} free for {at}", human_size(usage.free), human_size(usage.total));
    let fix = format!(
        "Free space or use a larger disk: du -xh --max-depth=2 {at} | sort -h | tail; or lower `retention` in [store]."
    );
    if usage.free < reserve.saturating_add(FREE_BYTES_REQUIRED) {
        notes.fail(format!("{found}: the server will soon refuse mail"), fix);
    } else if usage.free < FREE_BYTES_RECOMMENDED || usage.free < usage.total / 20 {
        notes.warn(format!("{found}: low"), fix);
    } else {
        notes.good(found);
    }
    if usage.files > 0 && usage.files_free < usage.files / 50 {
        notes.warn(
            format!("{} of {} inodes are free", usage.files_free, usage.files),
            "Find out what creates many small files: df -i; du --inodes -x / | sort -n | tail",
        );
    }
    notes.into_finding("disk")
}

/// A temporary file that is deleted on drop.
struct ScratchFile(PathBuf, File);

impl ScratchFile {
    fn new(directory: &Path) -> std::io::Result<Self> {
        let path = directory.join(format!(".doctor-{}", std::process::id()));
        let file = private_files::create_new_file(&path)?;
        Ok(Self(path, file))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // A remaining file is harmless.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Measures the duration of each write with fdatasync.
fn measure_syncs(directory: &Path) -> std::io::Result<Vec<Duration>> {
    let mut scratch = ScratchFile::new(directory)?;
    let (block, started_at) = ([0x5a; WRITE_BYTES], Instant::now());
    let mut times = Vec::with_capacity(WRITES_MAX);
    while times.len() < WRITES_MAX && started_at.elapsed() < TIME_MAX {
        let start = Instant::now();
        scratch.1.write_all(&block)?;
        rustix::fs::fdatasync(scratch.1.as_fd())?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Measures the duration of fdatasync.
pub(super) async fn check_disk_sync(context: &CheckContext) -> DoctorFinding {
    if context.config.store.engine == StoreEngine::Postgres {
        return DoctorFinding::skipped(
            "disk_sync",
            "the store is a PostgreSQL database, so its disk is the one that matters",
        );
    }
    let directory = nearest_existing_directory(&context.config.data_dir);
    let measured = tokio::task::spawn_blocking(move || measure_syncs(&directory).map_err(|error| (directory, error)));
    match measured.await {
        Ok(Ok(times)) => evaluate_sync_times(times),
        Ok(Err((directory, error))) => DoctorFinding::skipped(
            "disk_sync",
            format!("{}: {error}. Run the doctor as root or as the server's user", directory.display()),
        ),
        Err(_) => DoctorFinding::skipped("disk_sync", "could not be measured"),
    }
}

fn evaluate_sync_times(mut times: Vec<Duration>) -> DoctorFinding {
    let mut notes = Observations::default();
    times.sort_unstable();
    let (Some(&median), Some(&worst)) = (times.get(times.len() / 2), times.last()) else {
        return DoctorFinding::skipped("disk_sync", "could not be measured");
    };
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let found = format!("{} synced writes took a median of {}, at most {}", times.len(), ms(median), ms(worst));
    if median < TOO_FAST {
        notes.warn(
            format!(
                "{found}: implausibly fast. A layer reports writes as durable before they are, so a power failure \
                 would lose accepted mail"
            ),
            "Check for a tmpfs, a file system mounted without barriers (nobarrier), a virtual disk with cache mode \
             \"unsafe\", or eatmydata (LD_PRELOAD).",
        );
    } else if median > TOO_SLOW {
        notes.fail(
            format!("{found}: each message waits this long to be accepted"),
            "Put `data_dir` on its own SSD or NVMe disk; network disks of small virtual machines are often throttled.",
        );
    } else if median > SLOW {
        notes.warn(
            format!("{found}: slow; each message waits this long to be accepted"),
            "An SSD with power-loss protection takes less than 1 ms. Check whether another program writes much to \
             this disk (iostat -x 1).",
        );
    } else {
        notes.good(found);
    }
    notes.into_finding("disk_sync")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::*;

    #[test]
    fn sync_times_are_evaluated_by_their_median() {
        let status_of = |micros: u64| evaluate_sync_times(vec![Duration::from_micros(micros); 9]).status;
        assert_eq!(status_of(1), CheckStatus::Warning);
        assert_eq!(status_of(50), CheckStatus::Ok);
        assert_eq!(status_of(3_000), CheckStatus::Ok);
        assert_eq!(status_of(40_000), CheckStatus::Warning);
        assert_eq!(status_of(400_000), CheckStatus::Failed);
        assert_eq!(evaluate_sync_times(Vec::new()).status, CheckStatus::Skipped);
    }

    #[test]
    fn free_space_and_file_system_are_evaluated() {
        let status_of = |free_mib: u64, kind| {
            let usage = DiskUsage { free: free_mib << 20, total: 20 << 30, files_free: 9, files: 10, kind };
            evaluate_space(Path::new("/var/lib/postrider"), 64 << 20, &usage).status
        };
        assert_eq!(status_of(8_000, FileSystemKind::Disk), CheckStatus::Ok);
        assert_eq!(status_of(2_000, FileSystemKind::Disk), CheckStatus::Warning);
        assert_eq!(status_of(200, FileSystemKind::Disk), CheckStatus::Failed);
        assert_eq!(status_of(8_000, FileSystemKind::Memory), CheckStatus::Failed);
        assert_eq!(status_of(8_000, FileSystemKind::Network), CheckStatus::Warning);
        assert_eq!(FileSystemKind::from_magic(0xef53), FileSystemKind::Disk);
    }

    #[test]
    fn measuring_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!measure_syncs(directory.path()).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(nearest_existing_directory(&directory.path().join("a/b")), directory.path());
        assert!(disk_usage(directory.path()).unwrap().total > 0);
    }
}
