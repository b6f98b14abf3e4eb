//! An installation: a data directory, its configuration, and the real program running on it.
//!
//! The program is ready when it sends `READY=1` to the socket that `NOTIFY_SOCKET` names (sd_notify). Its stderr is
//! written to one file per start and shown when a test fails. A [`Server`] is killed when it is dropped, so that a
//! failed test leaves no process running.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

/// Owner of the account that sends.
pub(crate) const OWNER: &str = "owner@acme.example";
/// Sending domain of the account.
pub(crate) const DOMAIN: &str = "acme.example";
/// Timeout for anything that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Lowest port used. All ports are below the ephemeral range: while a server is stopped, no outgoing connection can
/// take its port.
const PORT_FIRST: u32 = 10_000;
/// Number of ports to choose from.
const PORTS: u32 = 22_000;

/// A data directory with its configuration.
pub(crate) struct Installation {
    directory: TempDir,
    pub(crate) relay: SocketAddr,
    /// Address of the API listener.
    pub(crate) api: SocketAddr,
    smarthost: SocketAddr,
    starts: usize,
}

/// A server process that exited by itself.
#[derive(Debug)]
pub(crate) struct FailedStart {
    pub(crate) status: ExitStatus,
    /// Its stderr.
    pub(crate) log: String,
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
}

impl Installation {
    /// Creates an installation with an account and a domain that sends all mail to `smarthost`. Returns the API key.
    pub(crate) async fn create(smarthost: SocketAddr) -> (Self, Server, String) {
        let mut installation = Self::configure_new(smarthost);
        let server = installation.start().await;
        let create = ["account", "create", "--email", OWNER, "--plan", "dedicated", "--production"];
        let account = installation.admin(&create).await;
        installation.admin(&["domain", "create", DOMAIN, "--account", OWNER, "--verified"]).await;
        let api_key = account["api_key"]["secret"].as_str().expect("an API key").to_owned();
        (installation, server, api_key)
    }

    fn configure_new(smarthost: SocketAddr) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (relay, api) = (free_address(), free_address());
        let installation = Self { directory, relay, api, smarthost, starts: 0 };
        installation.configure("postrider.toml", relay, api, "");
        installation
    }

    /// Writes a configuration for this data directory.
    pub(crate) fn configure(&self, name: &str, relay: SocketAddr, api: SocketAddr, delivery: &str) -> PathBuf {
        let text = format!(
            "hostname = \"out.postrider.example\"\ndata_dir = {:?}\n[api]\nlisten = \"{api}\"\nrate_limit = \"off\"\n\
             [testing]\nclock_offset = \"0s\"\n[[relay]]\n\
             listen = \"{relay}\"\nnetworks = [\"127.0.0.0/8\"]\naccount = \"{OWNER}\"\n[delivery]\n\
             smarthost = \"{}\"\nretry = [\"1s\"]\n{delivery}",
            self.data(),
            self.smarthost,
        );
        let file = self.directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Path of the main configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("postrider.toml")
    }

    fn spawn(&mut self, config: &Path, ready: &Path) -> Server {
        self.starts += 1;
        let log = self.directory.path().join(format!("said-{}", self.starts));
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("serve").arg("--config").arg(config);
        command.env_remove("CREDENTIALS_DIRECTORY").env("NO_COLOR", "1").env("NOTIFY_SOCKET", ready);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let child = command.kill_on_drop(true).spawn().unwrap();
        Server { child, log }
    }

    /// Starts the server and passes its process id to `on_spawn`. Returns once the server is ready or has exited.
    pub(crate) async fn run(&mut self, config: &Path, on_spawn: impl FnOnce(Pid)) -> Result<Server, FailedStart> {
        let ready = self.directory.path().join(format!("ready-{}", self.starts));
        let socket = UnixDatagram::bind(&ready).unwrap();
        let mut server = self.spawn(config, &ready);
        on_spawn(server.pid());
        let mut word = [0; 256];
        let ready = async {
            loop {
                let bytes = socket.recv(&mut word).await.unwrap();
                if String::from_utf8_lossy(&word[..bytes]).contains("READY=1") {
                    return;
                }
            }
        };
        tokio::select! {
            () = ready => Ok(server),
            status = server.child.wait() => Err(FailedStart { status: status.unwrap(), log: server.log() }),
            () = tokio::time::sleep(PATIENCE) => panic!("the server is not ready:\n{}", server.log()),
        }
    }

    /// Starts the server and waits until it is ready.
    pub(crate) async fn start(&mut self) -> Server {
        let started = self.run(&self.config(), |_| ()).await;
        started.unwrap_or_else(|failure| panic!("the server did not start: {}\n{}", failure.status, failure.log))
    }

    /// Starts a server that must refuse to run. Returns its exit status and output.
    pub(crate) async fn expect_refusal(&mut self, config: Option<&Path>) -> FailedStart {
        let config = config.map_or_else(|| self.config(), Path::to_owned);
        match self.run(&config, |_| ()).await {
            Ok(server) => panic!("the server started although it must refuse:\n{}", server.log()),
            Err(failure) => failure,
        }
    }

    /// Runs an admin command. Returns whether it succeeded, and its JSON output.
    pub(crate) async fn run_admin(&self, arguments: &[&str]) -> (bool, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("admin").args(arguments).arg("--config").arg(self.config()).arg("--json");
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("an answer").unwrap();
        let result = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}{}", text(&output.stdout), text(&output.stderr)));
        (output.status.success(), result)
    }

    /// Runs an admin command that must succeed. Returns its JSON output.
    pub(crate) async fn admin(&self, arguments: &[&str]) -> Value {
        let (is_success, result) = self.run_admin(arguments).await;
        assert!(is_success, "{arguments:?}: {result}");
        result
    }
}

impl Server {
    pub(crate) fn pid(&self) -> Pid {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        pid.expect("a process that was not waited for")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the process to exit.
    pub(crate) async fn wait_for_exit(mut self) -> ExitStatus {
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("the server does not exit:\n{}", self.log()),
        }
    }

    /// Sends SIGTERM; the server must exit with code 0.
    pub(crate) async fn stop(self) {
        self.signal(Signal::TERM);
        let log = self.log.clone();
        let status = self.wait_for_exit().await;
        assert_eq!(status.code(), Some(0), "{}", std::fs::read_to_string(log).unwrap());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An unused loopback address. The search starts at a port that depends on the process id and the number of calls, so
/// that concurrent tests rarely try the same port.
pub(crate) fn free_address() -> SocketAddr {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(61).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed) * 7);
    (0..PORTS)
        .filter_map(|n| u16::try_from(PORT_FIRST + first.wrapping_add(n) % PORTS).ok())
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}
