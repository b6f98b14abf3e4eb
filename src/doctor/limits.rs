//! `file_limit` and `memory`: compares the kernel's limits with what the configuration may require.
//!
//! The limit on open files is that of the running server (`/proc/PID/limits`, found by its socket), otherwise that of
//! its unit, otherwise that of this process. The server raises its soft limit to the hard limit.

use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};
use super::systemd;
use crate::admin::SOCKET;
use crate::config::Config;

/// Files besides sessions: two sockets per concurrent DNS lookup, connections to mail hosts, files of the store.
const OTHER_FILES: u64 = 2 * dns::resolver::LOOKUPS_MAX as u64 + 2_048 + 256;
/// The usual soft limit of a shell, which is too low for a server.
const FILES_MIN: u64 = 1_024;
/// Memory of an idle server with full caches.
const MEMORY_BASE: u64 = 256 << 20;
const SOCKET_TIMEOUT: Duration = Duration::from_secs(1);

/// Process id of the running server; none if it is not running or its directory is not accessible.
pub(super) async fn running_server_pid(data_dir: &Path) -> Option<i32> {
    let stream = timeout(SOCKET_TIMEOUT, UnixStream::connect(data_dir.join(SOCKET))).await.ok()?.ok()?;
    stream.peer_cred().ok()?.pid()
}

/// Origin of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitSource {
    Server,
    Unit,
    OwnProcess,
}

/// Checks the limit on open files.
pub(super) async fn check_file_limit(context: &CheckContext) -> DoctorFinding {
    let running = running_server_pid(&context.config.data_dir).await.and_then(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        parse_soft_limit(&text).map(|limit| (limit, LimitSource::Server))
    });
    let (limit, source) = match running {
        Some(running) => running,
        None => match systemd::load_unit().await.and_then(|unit| unit.files_max) {
            Some(limit) => (limit, LimitSource::Unit),
            None => (own_file_limit(), LimitSource::OwnProcess),
        },
    };
    evaluate_files(&context.config, limit, source)
}

fn own_file_limit() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Parses the soft limit from `Max open files    1024    524288    files`, or `unlimited`.
fn parse_soft_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn evaluate_files(config: &Config, limit: u64, source: LimitSource) -> DoctorFinding {
    let sessions = config.submission.sessions_max as u64;
    let api = if config.api.listen.is_empty() { 0 } else { api::state::CONNECTIONS_MAX as u64 };
    let needed = sessions.saturating_add(api).saturating_add(OTHER_FILES);
    let owner = match source {
        LimitSource::Server => "the running server",
        LimitSource::Unit => "the service",
        LimitSource::OwnProcess => "a server started from here",
    };
    let found = format!("{owner} can open {limit} files, and may need {needed} (sessions_max = {sessions})");
    let fix = format!(
        "systemctl edit postrider\n[Service]\nLimitNOFILE={}\nor lower `sessions_max` in [submission].",
        needed.max(65_536).next_power_of_two()
    );
    let mut notes = Observations::default();
    if limit >= needed {
        notes.good(found);
    } else if limit > FILES_MIN {
        notes.warn(format!("{found}: under load, connections will fail"), fix);
    } else {
        notes.fail(format!("{found}: too low for a mail server"), fix);
    }
    notes.into_finding("file_limit")
}

/// Checks that the configured memory limits fit into this machine's memory.
pub(super) async fn check_memory(context: &CheckContext) -> DoctorFinding {
    match std::fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(parse_mem_total) {
        None => DoctorFinding::skipped("memory", "the memory of this machine is unknown (no /proc/meminfo)"),
        Some(total) => evaluate_memory(&context.config, total),
    }
}

/// Parses `MemTotal:        8039156 kB`, in bytes.
fn parse_mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn evaluate_memory(config: &Config, total: u64) -> DoctorFinding {
    let incoming = config.submission.bytes_in_flight_max as u64;
    let outgoing = config.delivery.body_bytes_in_memory_max as u64;
    let needed = incoming.saturating_add(outgoing).saturating_add(MEMORY_BASE);
    let mib = |bytes: u64| bytes >> 20;
    let found = format!("{} MiB of memory; the server may use about {} MiB", mib(total), mib(needed));
    let mut notes = Observations::default();
    // The page cache for the store's files needs memory too.
    if needed <= total / 4 * 3 {
        notes.good(found);
    } else {
        let half = |bytes: u64| bytes.min(total / 8);
        notes.warn(
            format!("{found} (bytes_in_flight_max and body_bytes_in_memory_max): under load, the kernel may kill it"),
            format!(
                "[submission]\nbytes_in_flight_max = {}\n[delivery]\nbody_bytes_in_memory_max = {}",
                half(incoming).max(config.submission.message_bytes_max),
                half(outgoing)
            ),
        );
    }
    notes.into_finding("memory")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::*;
    use crate::config;

    fn config() -> Config {
        config::from_text("hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n", []).unwrap()
    }

    #[test]
    fn the_file_limit_is_parsed_and_evaluated() {
        assert_eq!(
            parse_soft_limit(
                "Max cpu time\nMax open files            1024                 524288               files \n"
            ),
            Some(1024)
        );
        assert_eq!(parse_soft_limit("Max open files  unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(parse_soft_limit("nonsense"), None);
        assert_eq!(evaluate_files(&config(), 65_536, LimitSource::Server).status, CheckStatus::Ok);
        assert_eq!(evaluate_files(&config(), 8_192, LimitSource::Unit).status, CheckStatus::Warning);
        let low_limit = evaluate_files(&config(), 1_024, LimitSource::OwnProcess);
        assert_eq!(low_limit.status, CheckStatus::Failed);
        assert!(low_limit.fix.unwrap().contains("LimitNOFILE=65536"));
        assert!(own_file_limit() > 0);
    }

    #[test]
    fn memory_is_evaluated() {
        assert_eq!(parse_mem_total("MemTotal:        8039156 kB\nMemFree: 1 kB"), Some(8_039_156 << 10));
        assert_eq!(evaluate_memory(&config(), 4 << 30).status, CheckStatus::Ok);
        let small = evaluate_memory(&config(), 512 << 20);
        assert!(
            small.status == CheckStatus::Warning && small.fix.as_ref().unwrap().contains("= 67108864"),
            "{small:#?}"
        );
    }

    #[tokio::test]
    async fn the_server_is_found_by_its_socket() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(running_server_pid(directory.path()).await, None);
        let _listener = tokio::net::UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let own_pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(running_server_pid(directory.path()).await, Some(own_pid));
    }
}
