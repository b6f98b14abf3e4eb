//! A real name server, Knot DNS, that accepts dynamic updates for one zone.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A key that may change everything.
pub(crate) const KEY: &str = "dXBkYXRlIHVwZGF0ZSB1cGRhdGUgdXBkYXRlIQ==";
/// A key that may change only names below `_domainkey` and the ownership label.
pub(crate) const NARROW_KEY: &str = "bmFycm93IG5hcnJvdyBuYXJyb3cgbmFycm93ISE=";

/// A running server; it is killed on drop.
pub(crate) struct Knot {
    pub(crate) address: SocketAddr,
    child: Child,
    _home: TempDir,
}

impl Drop for Knot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories =
        std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
    directories.map(|directory| directory.join("knotd")).find(|program| program.is_file())
}

impl Knot {
    /// Starts a server with a zone; `None`, with a message, if Knot is not installed.
    pub(crate) fn start(zone: &str, records: &str) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("skipped: Knot DNS is not installed (Debian: apt install knot)");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let at = home.path().display();
        // If another process takes the port meanwhile, the server fails to start and the next port is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let config = format!(
                "server:\n  rundir: \"{at}\"\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  \
                 background-workers: 1\n\
                 log:\n  - target: stderr\n    any: info\n\
                 database:\n  storage: \"{at}\"\n\
                 key:\n  - id: all-key\n    algorithm: hmac-sha256\n    secret: {KEY}\n  \
                 - id: narrow-key\n    algorithm: hmac-sha512\n    secret: {NARROW_KEY}\n\
                 acl:\n  - id: all\n    key: all-key\n    action: update\n  \
                 - id: narrow\n    key: narrow-key\n    action: update\n    update-owner: name\n    \
                 update-owner-match: sub-or-equal\n    update-owner-name: [_postrider, _domainkey]\n\
                 zone:\n  - domain: {zone}\n    storage: \"{at}\"\n    file: zone\n    acl: [all, narrow]\n"
            );
            std::fs::write(home.path().join("knot.conf"), config).unwrap();
            let soa = format!(
                "$ORIGIN {zone}.\n$TTL 300\n@ SOA ns.{zone}. hostmaster.{zone}. 1 3600 600 86400 60\n\
                 @ NS ns.{zone}.\nns A 192.0.2.53\n{records}\n"
            );
            std::fs::write(home.path().join("zone"), soa).unwrap();
            let mut child = Command::new(&program)
                .arg("-c")
                .arg(home.path().join("knot.conf"))
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
            let started = lines.any(|line| line.contains("server started") || line.contains("starting server"));
            let loaded = started && lines.by_ref().any(|line| line.contains("loaded"));
            if loaded {
                // Reads the further output, so that the server never blocks on a full pipe.
                std::thread::spawn(move || lines.for_each(|line| eprintln!("{line}")));
                let address = SocketAddr::from(([127, 0, 0, 1], port));
                return Some(Self { address, child, _home: home });
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("Knot does not start");
    }
}
