//! An installation: a directory with a configuration, and the real program run on it.
//!
//! Readiness is the program's own word: `READY=1` to the socket that systemd would listen on. What the
//! program says goes to a file per start, shown when something is not as wanted. A [`Server`] that is
//! dropped is killed, so that a test that fails leaves nothing running.

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

/// Who sends.
pub(crate) const OWNER: &str = "owner@acme.example";
/// From where.
pub(crate) const DOMAIN: &str = "acme.example";
/// How long anything is waited for that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Ports are taken from below those that the system gives to outgoing connections: while a server is
/// down, no connection of ours may happen to sit on its port.
const PORT_FIRST: u32 = 10_000;
/// How many there are.
const PORTS: u32 = 22_000;

/// A directory with a configuration.
pub(crate) struct Installation {
    directory: TempDir,
    /// The relay listener.
    pub(crate) relay: SocketAddr,
    /// The API.
    pub(crate) api: SocketAddr,
    smarthost: SocketAddr,
    starts: usize,
}

/// A program that ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    /// How.
    pub(crate) status: ExitStatus,
    /// All that it said.
    pub(crate) said: String,
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    said: PathBuf,
}

impl Installation {
    /// A new one that hands all mail to `smarthost`, with its account and domain.
    pub(crate) async fn found(smarthost: SocketAddr) -> (Self, Server, String) {
        let mut installation = Self::bare(smarthost);
        let server = installation.start().await;
        let create = ["account", "create", "--email", OWNER, "--plan", "dedicated", "--production"];
        let account = installation.admin(&create).await;
        installation.admin(&["domain", "create", DOMAIN, "--account", OWNER, "--verified"]).await;
        let api_key = account["api_key"]["secret"].as_str().expect("an API key").to_owned();
        (installation, server, api_key)
    }

    fn bare(smarthost: SocketAddr) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (relay, api) = (free_address(), free_address());
        let installation = Self { directory, relay, api, smarthost, starts: 0 };
        installation.configure("postrider.toml", relay, api, "");
        installation
    }

    /// Writes a configuration of this data directory.
    pub(crate) fn configure(&self, name: &str, relay: SocketAddr, api: SocketAddr, delivery: &str) -> PathBuf {
        let text = format!(
            "hostname = \"out.postrider.example\"\ndata_dir = {:?}\n[api]\nlisten = \"{api}\"\nrate_limit = \"off\"\n[[relay]]\n\
             listen = \"{relay}\"\nnetworks = [\"127.0.0.0/8\"]\naccount = \"{OWNER}\"\n[delivery]\n\
             smarthost = \"{}\"\nretry = [\"1s\"]\n{delivery}",
            self.data(),
            self.smarthost,
        );
        let file = self.directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Where the server keeps everything.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("postrider.toml")
    }

    fn spawn(&mut self, config: &Path, ready: &Path) -> Server {
        self.starts += 1;
        let said = self.directory.path().join(format!("said-{}", self.starts));
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("serve").arg("--config").arg(config);
        command.env_remove("CREDENTIALS_DIRECTORY").env("NO_COLOR", "1").env("NOTIFY_SOCKET", ready);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        let child = command.kill_on_drop(true).spawn().unwrap();
        Server { child, said }
    }

    /// Starts the server, says whom a signal goes to, and returns when it says that it is ready, or ends.
    pub(crate) async fn run(&mut self, config: &Path, spawned: impl FnOnce(Pid)) -> Result<Server, Ended> {
        let ready = self.directory.path().join(format!("ready-{}", self.starts));
        let socket = UnixDatagram::bind(&ready).unwrap();
        let mut server = self.spawn(config, &ready);
        spawned(server.pid());
        let mut word = [0; 256];
        let waiting = async {
            loop {
                let bytes = socket.recv(&mut word).await.unwrap();
                if String::from_utf8_lossy(&word[..bytes]).contains("READY=1") {
                    return;
                }
            }
        };
        tokio::select! {
            () = waiting => Ok(server),
            status = server.child.wait() => Err(Ended { status: status.unwrap(), said: server.said() }),
            () = tokio::time::sleep(PATIENCE) => panic!("it is not ready:\n{}", server.said()),
        }
    }

    /// Starts the server; returns when it says that it is ready.
    pub(crate) async fn start(&mut self) -> Server {
        let started = self.run(&self.config(), |_| ()).await;
        started.unwrap_or_else(|ended| panic!("it did not start: {}\n{}", ended.status, ended.said))
    }

    /// Runs a server that must not come to serve; gives its end.
    pub(crate) async fn refusal(&mut self, config: Option<&Path>) -> Ended {
        let config = config.map_or_else(|| self.config(), Path::to_owned);
        match self.run(&config, |_| ()).await {
            Ok(server) => panic!("it serves, where it must not:\n{}", server.said()),
            Err(ended) => ended,
        }
    }

    /// Asks as the operator; gives what was printed, and whether it went well.
    pub(crate) async fn ask(&self, words: &[&str]) -> (bool, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.arg("admin").args(words).arg("--config").arg(self.config()).arg("--json");
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("an answer").unwrap();
        let answer = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{words:?}: {error}: {}{}", text(&output.stdout), text(&output.stderr)));
        (output.status.success(), answer)
    }

    /// Asks as the operator, and it must go well.
    pub(crate) async fn admin(&self, words: &[&str]) -> Value {
        let (done, answer) = self.ask(words).await;
        assert!(done, "{words:?}: {answer}");
        answer
    }
}

impl Server {
    /// Whom a signal goes to.
    pub(crate) fn pid(&self) -> Pid {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        pid.expect("a process that was not waited for")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end, however that comes.
    pub(crate) async fn end(mut self) -> ExitStatus {
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("it does not end:\n{}", self.said()),
        }
    }

    /// Tells it to stop; it must do so with exit code 0.
    pub(crate) async fn stop(self) {
        self.signal(Signal::TERM);
        let said = self.said.clone();
        let status = self.end().await;
        assert_eq!(status.code(), Some(0), "{}", std::fs::read_to_string(said).unwrap());
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A loopback address that nobody listens on. Where the search begins depends on the process and on
/// how often it was asked, so that tests beside this one rarely meet.
pub(crate) fn free_address() -> SocketAddr {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(61).wrapping_add(ASKED.fetch_add(1, Ordering::Relaxed) * 7);
    (0..PORTS)
        .filter_map(|n| u16::try_from(PORT_FIRST + first.wrapping_add(n) % PORTS).ok())
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}
