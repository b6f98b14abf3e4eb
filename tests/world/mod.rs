//! A complete postrider in the test's process: real listeners on port 0, a real store in a temporary directory, a name
//! server with a zone text, a scripted mail host, and a clock that the test advances.

#![allow(unreachable_pub, dead_code, reason = "shared by several test binaries, each using a part")]

pub mod authority;
pub mod dkim2;
pub mod sink;
pub mod submit;
pub mod tls;
pub mod zone;

use std::net::SocketAddr;
use std::sync::Once;
use std::time::Duration;

use mail::account::Plan;
use mail::address::DomainName;
use mail::credential::CredentialSecret;
use mail::id::{AccountId, EmailId};
use postrider::certificate::Certificate;
use postrider::config::{self, Config, SecretString, StoreEngine};
use postrider::reload;
use postrider::serve::{ActiveCertificates, Listeners};
use postrider::services::Services;
use queue::domains::NewDomain;
use sink::Sink;
use store::email::EmailWithRecipients;
use zone::NameServer;

/// Owner of the test's account.
pub const OWNER: &str = "owner@acme.example";
/// Sending domain of the test's account.
pub const DOMAIN: &str = "acme.example";
/// Timeout for anything that must happen, long enough for a busy machine. No test sleeps through it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A zone in which `dest.example`, `other.example` and `slow.example` use the sink as mail host.
pub const ZONE: &str = "
dest.example. MX 10 mx.dest.example.
mx.dest.example. A 127.0.0.1
other.example. MX 10 mx.other.example.
mx.other.example. A 127.0.0.1
slow.example. MX 10 mx.slow.example.
mx.slow.example. A 127.0.0.1
acme.example. MX 10 mx.acme.example.
mx.acme.example. A 127.0.0.1
null.example. MX 0 .
dead.example. MX 10 mx.dead.example.
mx.dead.example. A 127.0.0.2
";

/// A running postrider.
pub struct TestWorld {
    /// The services that the listeners share.
    pub world: Services,
    /// Mail host of all domains in the zone.
    pub sink: Sink,
    pub names: NameServer,
    /// Submission listener with STARTTLS.
    pub submission: SocketAddr,
    pub api: SocketAddr,
    pub relay: SocketAddr,
    pub mx: SocketAddr,
    pub account: AccountId,
    /// SMTP password of the account.
    pub password: CredentialSecret,
    /// API key of the account.
    pub api_key: CredentialSecret,
    doors: Listeners,
    running: std::sync::Mutex<Config>,
    _directory: Option<tempfile::TempDir>,
}

static PROVIDER: Once = Once::new();

/// The configuration of a test; `more` is appended to the section `[delivery]`.
pub fn configuration(directory: &std::path::Path, dns: SocketAddr, port: u16, more: &str) -> Config {
    let text = format!(
        "hostname = \"out.postrider.example\"\ndata_dir = {directory:?}\n[api]\nlisten = \"127.0.0.1:0\"\nrate_limit = \"off\"\n\
         [[relay]]\nlisten = \"127.0.0.1:0\"\nnetworks = [\"127.0.0.0/8\"]\naccount = \"{OWNER}\"\n\
         [dns]\nservers = [\"{dns}\"]\n[testing]\nclock_offset = \"0s\"\n\
         [delivery]\nport = {port}\nallow_private_destinations = true\n{more}"
    );
    config::from_text(&text, []).unwrap_or_else(|problems| panic!("{problems:?}"))
}

impl TestWorld {
    /// Starts a server with the default configuration.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a server with more lines in the section `[delivery]`.
    pub async fn start_with(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sink = Sink::start().await;
        let names = NameServer::start(ZONE).await;
        let config = configuration(directory.path(), names.address, sink.address.port(), more);
        Self::open(&config, sink, names, Some(directory)).await
    }

    /// Starts a server on a data directory.
    pub async fn start_in(directory: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> Self {
        let sink = Sink::start().await;
        let names = NameServer::start(ZONE).await;
        let mut config = configuration(directory.path(), names.address, sink.address.port(), "");
        change(&mut config);
        Self::open(&config, sink, names, Some(directory)).await
    }

    /// Shuts down as on SIGTERM. Returns the data directory.
    pub async fn close(self) -> Option<tempfile::TempDir> {
        self.doors.shut_down().await;
        self.world.close().await;
        self._directory
    }

    /// Starts a node over a database. With `beside` it uses that node's secret key and mail host.
    pub async fn node(database: &str, beside: Option<&Self>, change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sink = Sink::start().await;
        let names = NameServer::start(ZONE).await;
        if let Some(other) = beside {
            let key = other.config().data_dir.join("secret.key");
            std::fs::copy(key, directory.path().join("secret.key")).unwrap();
        }
        let port = beside.map_or(&sink, |other| &other.sink).address.port();
        let mut config = configuration(directory.path(), names.address, port, "");
        config.store.engine = StoreEngine::Postgres;
        config.store.url = Some(SecretString(database.to_owned()));
        change(&mut config);
        Self::open(&config, sink, names, Some(directory)).await
    }

    async fn open(config: &Config, sink: Sink, names: NameServer, directory: Option<tempfile::TempDir>) -> Self {
        PROVIDER.call_once(|| {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        });
        let world = Services::build(config).await.unwrap();
        let doors = Listeners::new(config, 1);
        let enrolment = &world.provisioning;
        let enrolled = match enrolment.create_account(OWNER.parse().unwrap(), Plan::Dedicated, true).await {
            Ok(enrolled) => {
                let (domains, name) = (world.intake.domains(), DOMAIN.parse::<DomainName>().unwrap());
                let new = NewDomain::with_name(name.clone());
                domains.create(enrolled.account.id, new, None).await.unwrap();
                domains.force_verify(&name).await.unwrap();
                enrolled
            }
            Err(_) => enrolment.create_credentials(OWNER).await.unwrap(),
        };
        let certificates = ActiveCertificates::new(&Certificate::self_signed(&["localhost"]).unwrap()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let submission = doors.listen_submission(config, &world, any, (certificates.smtp(), false)).unwrap();
        let relay = doors.listen_relay(&world, &config.relay[0], any).unwrap();
        let api = doors.listen_api(&world, any, config, None).await.unwrap();
        let mx = doors.listen_mx(config, &world, any, certificates.smtp()).unwrap();
        world.start();
        Self {
            sink,
            names,
            submission,
            api,
            relay,
            mx,
            account: enrolled.account.id,
            password: enrolled.smtp_password,
            api_key: enrolled.api_key,
            doors,
            world,
            running: std::sync::Mutex::new(config.clone()),
            _directory: directory,
        }
    }

    /// Shuts down as on SIGTERM and starts again on the same directory.
    pub async fn restart(mut self, more: &str) -> Self {
        let directory = self._directory.take().unwrap();
        self.open_in(directory, more).await
    }

    /// Restarts on another directory, with the secret key of this one.
    pub async fn move_to(self, directory: tempfile::TempDir) -> Self {
        std::fs::copy(self.config().data_dir.join("secret.key"), directory.path().join("secret.key")).unwrap();
        self.open_in(directory, "").await
    }

    async fn open_in(self, directory: tempfile::TempDir, more: &str) -> Self {
        self.doors.shut_down().await;
        self.world.close().await;
        let config = configuration(directory.path(), self.names.address, self.sink.address.port(), more);
        Self::open(&config, self.sink, self.names, Some(directory)).await
    }

    /// Reloads as on SIGHUP, with other lines in the section `[delivery]`.
    pub fn reload(&self, more: &str) -> reload::ConfigChanges {
        let directory = self.running.lock().unwrap().data_dir.clone();
        let new = configuration(&directory, self.names.address, self.sink.address.port(), more);
        self.reload_with(|config| *config = new)
    }

    /// Reloads as on SIGHUP, with a changed configuration.
    pub fn reload_with(&self, change: impl FnOnce(&mut Config)) -> reload::ConfigChanges {
        let mut running = self.running.lock().unwrap();
        let mut new = running.clone();
        change(&mut new);
        let changes = reload::apply_changes(&mut running, &new);
        self.world.reload(&running);
        self.doors.reload(&running);
        changes
    }

    /// The listeners.
    pub fn doors(&self) -> &Listeners {
        &self.doors
    }

    /// The current configuration.
    pub fn config(&self) -> Config {
        self.running.lock().unwrap().clone()
    }

    /// Suspends the account or lifts the suspension.
    pub async fn suspend(&self, suspended: bool) {
        let change = |account: &mut mail::account::Account| account.suspended = suspended;
        self.world.provisioning.change_account(&self.account.to_string(), change).await.unwrap();
    }

    pub async fn email(&self, id: EmailId) -> EmailWithRecipients {
        store::email::get(&self.world.store, self.account, id).await.unwrap().unwrap()
    }

    /// Waits until an email satisfies the condition.
    pub async fn wait(&self, id: EmailId, wanted: impl Fn(&EmailWithRecipients) -> bool) -> EmailWithRecipients {
        let waiting = async {
            loop {
                // Subscribe before reading, so that no change in between is missed.
                let changed = self.world.worker.next_outcome();
                let email = self.email(id).await;
                if wanted(&email) {
                    return email;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(email) => email,
            Err(_) => panic!("timed out: {:#?}", self.email(id).await),
        }
    }

    /// Waits until the account's emails satisfy the condition.
    pub async fn wait_for_emails(&self, wanted: impl Fn(&[EmailWithRecipients]) -> bool) {
        let waiting = async {
            loop {
                let changed = self.world.worker.next_outcome();
                let emails = store::email::list(&self.world.store, self.account, None, 100).await.unwrap();
                if wanted(&emails) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("timed out");
    }

    /// Shuts down and checks for leaks: tasks in memory that are not stored, message bodies, connections.
    pub async fn end(self) {
        let worker = std::sync::Arc::clone(&self.world.worker);
        let idle = async {
            loop {
                let changed = worker.next_outcome();
                if worker.memory_load().0 == 0 {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, idle).await.expect("tasks left in memory");
        self.doors.shut_down().await;
        worker.drain().await;
        // A DSN may have been queued since then: its task is stored, too.
        let on_disk = store::task::list_all(&self.world.store, None, 1_000).await.unwrap().tasks.len();
        let (in_memory, body_bytes, _) = worker.memory_load();
        assert!(in_memory <= on_disk, "{in_memory} tasks in memory, {on_disk} on disk");
        assert!(in_memory > 0 || body_bytes == 0, "{body_bytes} bytes of bodies left over");
        assert!(worker.ready_queue_statuses().iter().all(|site| site.connections == 0), "connections left over");
        self.world.close().await;
    }
}
