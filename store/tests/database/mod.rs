//! A PostgreSQL server for tests: Debian's binaries, in a private directory, run as an ordinary user.
//!
//! It listens on a UNIX socket in its directory, and on a free loopback port. Tests can stop it as a failover does,
//! restart it, and create databases.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// A running server, stopped on drop.
pub struct Server {
    directory: TempDir,
    bin: PathBuf,
    user: Option<(u32, u32)>,
    settings: Vec<String>,
    port: u16,
    postmaster: Option<Child>,
    databases: AtomicU32,
}

/// The programs of the newest version that Debian installed.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max();
    newest.expect("PostgreSQL is missing: apt-get install postgresql")
}

/// The server refuses to run as root, so it then runs as Debian's user `postgres`.
fn ordinary_user() -> Option<(u32, u32)> {
    let id = |flag, name: &str| {
        let out = Command::new("id").args([flag, name]).output().ok()?;
        String::from_utf8(out.stdout).ok()?.trim().parse::<u32>().ok()
    };
    let me = Command::new("id").arg("-u").output().unwrap().stdout;
    (me.trim_ascii() == b"0").then(|| (id("-u", "postgres").unwrap(), id("-g", "postgres").unwrap()))
}

impl Server {
    /// Starts a server. Durability is off unless `settings` enable it, because no test interrupts the power
    /// supply. Each setting is `name=value`.
    pub fn start(settings: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (bin, user) = (programs(), ordinary_user());
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(directory.path(), Some(uid), Some(gid)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = settings.iter().map(ToString::to_string).collect();
        let databases = AtomicU32::new(0);
        let mut server = Self { directory, bin, user, settings, port, postmaster: None, databases };
        let data = server.data();
        let output = server
            .program("initdb")
            .args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        server.run();
        server
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A command for one of the server's programs, run as its user.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command.current_dir(self.directory.path()).stdin(Stdio::null()).env_remove("PGPORT");
        command
    }

    /// Starts the server process and waits until it answers.
    pub fn run(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(self.directory.path().join("log")).unwrap();
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        command.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        self.postmaster = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        loop {
            let ready = self
                .program("pg_isready")
                .args(["-q", "-h"])
                .arg(self.path())
                .args(["-p", &self.port.to_string()])
                .status();
            if ready.unwrap().success() {
                return;
            }
            let ended = self.postmaster.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {}", std::fs::read_to_string(self.path().join("log")).unwrap());
            std::thread::yield_now();
        }
    }

    /// Stops the server immediately: connections break, and memory is lost.
    pub fn crash(&mut self) {
        self.end("QUIT");
    }

    /// Shuts the server down without waiting for clients.
    pub fn stop(&mut self) {
        self.end("INT");
    }

    fn end(&mut self, signal: &str) {
        if let Some(mut postmaster) = self.postmaster.take() {
            let _ = Command::new("kill").args([&format!("-{signal}"), &postmaster.id().to_string()]).status();
            let _ = postmaster.wait();
        }
    }

    /// Runs a statement on a database; use `postgres` for server-wide statements.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let out = self
            .program("psql")
            .args(["-X", "-q", "-A", "-t", "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-h"])
            .arg(self.path())
            .args(["-p", &self.port.to_string(), "-d", database, "-c", statement])
            .output()
            .unwrap();
        assert!(out.status.success(), "{statement}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// Creates a file that only the server's user can read, as the server requires for keys.
    pub fn private_file(&self, name: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.data().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((uid, gid)) = self.user {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
        }
        path
    }

    /// Creates an empty database and returns its URL over the UNIX socket.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The URL of a database over the UNIX socket.
    pub fn url(&self, name: &str) -> String {
        let path = self.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{path}:{}/{name}", self.port)
    }

    /// The server's address on the loopback.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}
