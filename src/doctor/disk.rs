//! `disk` and `disk_sync`: where everything lies, how much room there is, and how long "on disk" takes.
//!
//! Every acknowledgement waits for one fdatasync, shared by all who wait at that moment: its time is the
//! shortest time that a message takes to be accepted. A disk that is through with it too soon has not done it.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use store::engine::private;
use tokio::time::Instant;

use super::finding::{DoctorFinding, Observations};
use super::place::CheckContext;
use crate::config::StoreEngine;

/// Writes measured, and the time in which they must be through.
const WRITES_MAX: usize = 48;
const TIME_MAX: Duration = Duration::from_secs(3);
/// A commit of one small message.
const WRITE_BYTES: usize = 8 << 10;
/// No disk with a journal of its own is through sooner; memory is.
const TOO_FAST: Duration = Duration::from_micros(10);
/// A disk of today takes less; more shows in every answer.
const SLOW: Duration = Duration::from_millis(20);
/// A mail server on it does a few commits a second.
const TOO_SLOW: Duration = Duration::from_millis(200);
/// Beyond the reserve: below it the server soon stops taking mail, or has stopped.
const FREE_BYTES_REQUIRED: u64 = 256 << 20;
/// Less is little for 30 days of mail.
const FREE_BYTES_RECOMMENDED: u64 = 4 << 30;

/// The file system that data lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileSystemKind {
    Disk,
    /// In memory (tmpfs, ramfs).
    Memory,
    /// On another machine (NFS, SMB).
    Network,
    /// The layers of a container.
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

/// What was seen of it.
struct DiskUsage {
    free: u64,
    total: u64,
    files_free: u64,
    files: u64,
    kind: FileSystemKind,
}

/// The directory, or the one in which it would be made.
fn nearest_existing_directory(data_dir: &Path) -> PathBuf {
    let found = data_dir.ancestors().find(|one| one.is_dir());
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
        // Its width and sign are each platform's own; the number is one of 32 bits.
        kind: FileSystemKind::from_magic(magic as u64),
    })
}

/// Whether there is room, and on what.
pub(super) async fn check_disk(place: &CheckContext) -> DoctorFinding {
    let (directory, reserve) = (nearest_existing_directory(&place.config.data_dir), place.config.store.reserve_bytes);
    let looked = tokio::task::spawn_blocking(move || disk_usage(&directory).map_err(|error| (directory, error)));
    match looked.await {
        Ok(Ok(room)) => judge_space(&place.config.data_dir, reserve, &room),
        Ok(Err((directory, error))) => DoctorFinding::skipped("disk", format!("{}: {error}", directory.display())),
        Err(_) => DoctorFinding::skipped("disk", "could not be looked at"),
    }
}

/// In the unit that people would say.
fn human_size(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{} GiB", bytes >> 30) } else { format!("{} MiB", bytes >> 20) }
}

fn judge_space(data_dir: &Path, reserve: u64, room: &DiskUsage) -> DoctorFinding {
    let mut notes = Observations::default();
    let at = data_dir.display();
    match room.kind {
        FileSystemKind::Memory => notes.fail(
            format!("{at} lies in memory (tmpfs): all mail is lost when the machine stops"),
            "Set `data_dir` to a directory on a disk, say /var/lib/postrider.",
        ),
        FileSystemKind::Network => notes.warn(
            format!(
                "{at} lies on another machine (NFS or SMB): locks and fdatasync are as good as that machine's word"
            ),
            "Set `data_dir` to a local disk; for several machines: engine = \"postgres\" in [store] (docs/CLUSTER.md).",
        ),
        FileSystemKind::Overlay => notes.warn(
            format!("{at} lies in a container's own layer: it goes when the container goes"),
            format!("Mount a volume there, say: -v postrider:{at}"),
        ),
        FileSystemKind::Disk => {}
    }
    let found = format!("{} of {} are free for {at}", human_size(room.free), human_size(room.total));
    let fix = format!(
        "Make room, or a larger disk: du -xh --max-depth=2 {at} | sort -h | tail; or a shorter `retention` in [store]."
    );
    if room.free < reserve.saturating_add(FREE_BYTES_REQUIRED) {
        notes.fail(format!("{found}: the server will soon take no mail"), fix);
    } else if room.free < FREE_BYTES_RECOMMENDED || room.free < room.total / 20 {
        notes.warn(format!("{found}, which is little"), fix);
    } else {
        notes.good(found);
    }
    if room.files > 0 && room.files_free < room.files / 50 {
        notes.warn(
            format!("{} of {} files (inodes) are left", room.files_free, room.files),
            "Something makes many small files: df -i; du --inodes -x / | sort -n | tail",
        );
    }
    notes.into_finding("disk")
}

/// A file that goes when we do.
struct ScratchFile(PathBuf, File);

impl ScratchFile {
    fn new(directory: &Path) -> std::io::Result<Self> {
        let path = directory.join(format!(".doctor-{}", std::process::id()));
        let file = private::create_new_file(&path)?;
        Ok(Self(path, file))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // Nothing can be done about one that stays, and it hurts nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// How long each write took to be on disk.
fn measure_syncs(directory: &Path) -> std::io::Result<Vec<Duration>> {
    let mut scratch = ScratchFile::new(directory)?;
    let (block, began) = ([0x5a; WRITE_BYTES], Instant::now());
    let mut times = Vec::with_capacity(WRITES_MAX);
    while times.len() < WRITES_MAX && began.elapsed() < TIME_MAX {
        let start = Instant::now();
        scratch.1.write_all(&block)?;
        rustix::fs::fdatasync(scratch.1.as_fd())?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// How long the disk takes.
pub(super) async fn check_disk_sync(place: &CheckContext) -> DoctorFinding {
    if place.config.store.engine == StoreEngine::Postgres {
        return DoctorFinding::skipped("disk_sync", "the store is a database: its disk is what counts");
    }
    let directory = nearest_existing_directory(&place.config.data_dir);
    let measured = tokio::task::spawn_blocking(move || measure_syncs(&directory).map_err(|error| (directory, error)));
    match measured.await {
        Ok(Ok(times)) => judge_sync_times(times),
        Ok(Err((directory, error))) => DoctorFinding::skipped(
            "disk_sync",
            format!("{}: {error}. Run the doctor as root, or as the user that the server runs as", directory.display()),
        ),
        Err(_) => DoctorFinding::skipped("disk_sync", "could not be measured"),
    }
}

fn judge_sync_times(mut times: Vec<Duration>) -> DoctorFinding {
    let mut notes = Observations::default();
    times.sort_unstable();
    let (Some(&median), Some(&worst)) = (times.get(times.len() / 2), times.last()) else {
        return DoctorFinding::skipped("disk_sync", "could not be measured");
    };
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let found = format!("{} writes to disk took {} each (median), {} at most", times.len(), ms(median), ms(worst));
    if median < TOO_FAST {
        notes.warn(
            format!("{found}: no disk is so fast. Something on the way says \"on disk\" before it is, and a power cut would lose accepted mail"),
            "Is it a tmpfs, a file system mounted without barriers (nobarrier), a virtual disk with cache mode \"unsafe\", or eatmydata (LD_PRELOAD)?",
        );
    } else if median > TOO_SLOW {
        notes.fail(
            format!("{found}: each message waits so long to be accepted"),
            "Put `data_dir` on an SSD or NVMe disk of its own; network disks of small virtual machines are often throttled.",
        );
    } else if median > SLOW {
        notes.warn(
            format!("{found}: slow; each message waits so long to be accepted"),
            "An SSD with power-loss protection takes less than 1 ms. Does another program write much on this disk (iostat -x 1)?",
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
    fn times_are_judged_by_the_middle_one() {
        let judged = |micros: u64| judge_sync_times(vec![Duration::from_micros(micros); 9]).status;
        assert_eq!(judged(1), CheckStatus::Warning);
        assert_eq!(judged(50), CheckStatus::Ok);
        assert_eq!(judged(3_000), CheckStatus::Ok);
        assert_eq!(judged(40_000), CheckStatus::Warning);
        assert_eq!(judged(400_000), CheckStatus::Failed);
        assert_eq!(judge_sync_times(Vec::new()).status, CheckStatus::Skipped);
    }

    #[test]
    fn room_and_what_it_is_on_are_judged() {
        let judged = |free_mib: u64, kind| {
            let room = DiskUsage { free: free_mib << 20, total: 20 << 30, files_free: 9, files: 10, kind };
            judge_space(Path::new("/var/lib/postrider"), 64 << 20, &room).status
        };
        assert_eq!(judged(8_000, FileSystemKind::Disk), CheckStatus::Ok);
        assert_eq!(judged(2_000, FileSystemKind::Disk), CheckStatus::Warning);
        assert_eq!(judged(200, FileSystemKind::Disk), CheckStatus::Failed);
        assert_eq!(judged(8_000, FileSystemKind::Memory), CheckStatus::Failed);
        assert_eq!(judged(8_000, FileSystemKind::Network), CheckStatus::Warning);
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
