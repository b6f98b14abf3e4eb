//! `file_limit` and `memory`: what the kernel lets the server have, against what its configuration promises.
//!
//! The limit on open files is the running server's own where it runs (`/proc/PID/limits`; who it is says its
//! socket), else its unit's, else that of who asks. The server raises the soft limit to the hard one.

use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::finding::{Finding, Notes};
use super::place::Place;
use super::systemd;
use crate::admin::SOCKET;
use crate::config::Config;

/// Two sockets for each look-up under way, connections to mail hosts, files of the store.
const OTHERS: u64 = 2 * dns::lookup::LOOKUPS_MAX as u64 + 2_048 + 256;
/// Nothing can be served with so few: the usual limit of a shell.
const FILES_TOO_FEW: u64 = 1_024;
/// What a server takes that has nothing to do, its caches filled.
const MEMORY_BASE: u64 = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(1);

/// The process of the running server; none when it does not run, or we may not enter its directory.
pub(super) async fn server(data_dir: &Path) -> Option<i32> {
    let stream = timeout(PATIENCE, UnixStream::connect(data_dir.join(SOCKET))).await.ok()?.ok()?;
    stream.peer_cred().ok()?.pid()
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Server,
    Unit,
    Ours,
}

/// Whether there are files enough.
pub(super) async fn file_limit(place: &Place) -> Finding {
    let running = server(&place.config.data_dir).await.and_then(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        soft_limit(&text).map(|limit| (limit, Whose::Server))
    });
    let (limit, whose) = match running {
        Some(running) => running,
        None => match systemd::unit().await.and_then(|unit| unit.files_max) {
            Some(limit) => (limit, Whose::Unit),
            None => (ours(), Whose::Ours),
        },
    };
    judge_files(&place.config, limit, whose)
}

fn ours() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// `Max open files    1024    524288    files`, or `unlimited`.
fn soft_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn judge_files(config: &Config, limit: u64, whose: Whose) -> Finding {
    let sessions = config.submission.sessions_max as u64;
    let api = if config.api.listen.is_empty() { 0 } else { api::room::CONNECTIONS_MAX as u64 };
    let needed = sessions.saturating_add(api).saturating_add(OTHERS);
    let owner = match whose {
        Whose::Server => "the running server",
        Whose::Unit => "the service",
        Whose::Ours => "a server started from here",
    };
    let found =
        format!("{owner} may have {limit} files open, and may need {needed} (sessions_max = {sessions})");
    let fix = format!(
        "systemctl edit postrider\n[Service]\nLimitNOFILE={}\nor lower `sessions_max` in [submission].",
        needed.max(65_536).next_power_of_two()
    );
    let mut notes = Notes::default();
    if limit >= needed {
        notes.good(found);
    } else if limit > FILES_TOO_FEW {
        notes.warn(format!("{found}: connections beyond that are lost under load"), fix);
    } else {
        notes.fail(format!("{found}: too few for a mail server"), fix);
    }
    notes.settle("file_limit")
}

/// Whether what may lie in memory has room there.
pub(super) async fn memory(place: &Place) -> Finding {
    match std::fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(total) {
        None => {
            Finding::skipped("memory", "how much memory this machine has is not known (no /proc/meminfo)")
        }
        Some(total) => judge_memory(&place.config, total),
    }
}

/// `MemTotal:        8039156 kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn judge_memory(config: &Config, total: u64) -> Finding {
    let incoming = config.submission.bytes_in_flight_max as u64;
    let outgoing = config.delivery.body_bytes_in_memory_max as u64;
    let needed = incoming.saturating_add(outgoing).saturating_add(MEMORY_BASE);
    let mib = |bytes: u64| bytes >> 20;
    let found = format!("{} MiB of memory; the server may take some {} MiB", mib(total), mib(needed));
    let mut notes = Notes::default();
    // The kernel's cache of the store's files wants some too.
    if needed <= total / 4 * 3 {
        notes.good(found);
    } else {
        let half = |bytes: u64| bytes.min(total / 8);
        notes.warn(
            format!("{found} (bytes_in_flight_max and body_bytes_in_memory_max): under load the kernel may kill it"),
            format!(
                "[submission]\nbytes_in_flight_max = {}\n[delivery]\nbody_bytes_in_memory_max = {}",
                half(incoming).max(config.submission.message_bytes_max),
                half(outgoing)
            ),
        );
    }
    notes.settle("memory")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;
    use crate::config;

    fn config() -> Config {
        config::from_text("hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n", []).unwrap()
    }

    #[test]
    fn files_are_counted() {
        assert_eq!(
            soft_limit(
                "Max cpu time\nMax open files            1024                 524288               files \n"
            ),
            Some(1024)
        );
        assert_eq!(soft_limit("Max open files  unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(soft_limit("nonsense"), None);
        assert_eq!(judge_files(&config(), 65_536, Whose::Server).status, Status::Ok);
        assert_eq!(judge_files(&config(), 8_192, Whose::Unit).status, Status::Warning);
        let few = judge_files(&config(), 1_024, Whose::Ours);
        assert_eq!(few.status, Status::Failed);
        assert!(few.fix.unwrap().contains("LimitNOFILE=65536"));
        assert!(ours() > 0);
    }

    #[test]
    fn memory_is_weighed() {
        assert_eq!(total("MemTotal:        8039156 kB\nMemFree: 1 kB"), Some(8_039_156 << 10));
        assert_eq!(judge_memory(&config(), 4 << 30).status, Status::Ok);
        let small = judge_memory(&config(), 512 << 20);
        assert!(
            small.status == Status::Warning && small.fix.as_ref().unwrap().contains("= 67108864"),
            "{small:#?}"
        );
    }

    #[tokio::test]
    async fn the_server_is_found_by_its_socket() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(server(directory.path()).await, None);
        let _listener = tokio::net::UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(server(directory.path()).await, Some(own));
    }
}
