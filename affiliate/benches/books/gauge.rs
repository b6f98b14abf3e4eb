//! Measurements of time, CPU, memory and disk, and their statistics.

use std::path::Path;
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// CPU time of all threads of the process so far; the kernel counts in hundredths of a second.
pub(crate) fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>);
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// Peak memory of the process in MB.
pub(crate) fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

pub(crate) fn disk_mb(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => disk_mb(&entry.path()),
        Ok(found) => found.blocks() / 2_048,
        Err(_) => 0,
    };
    entries.map(size).sum()
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Median, 99th percentile and maximum, in milliseconds.
pub(crate) fn spread_of(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let at = |hundredths: usize| times.get(times.len() * hundredths / 100).or(times.last());
    [at(50), at(99), times.last()].map(|time| time.copied().map_or(0.0, ms))
}
