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

use accounts::domains::NewDomain;
use message::address::DomainName;
use model::account::Plan;
use model::credential::CredentialSecret;
use model::id::{AccountId, EmailId};
use postrider::active_certificates::ActiveCertificates;
use postrider::certificate::Certificate;
use postrider::config::{self, Config, SecretString, StoreEngine};
use postrider::reload;
use postrider::serve::Listeners;
use postrider::services::Server;
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
    pub server: Server,
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
    listeners: Listeners,
    running: parking_lot::Mutex<Config>,
    _directory: Option<tempfile::TempDir>,
}

static PROVIDER: Once = Once::new();

/// The configuration of a test; `extra` is appended to the section `[delivery]`.
pub fn configuration(directory: &std::path::Path, dns: SocketAddr, port: u16, extra: &str) -> Config {
    let text = format!(
        "hostname = \"out.postrider.example\"\ndata_dir = {directory:?}\n[api]\nlisten = \"127.0.0.1:0\"\nrate_limit = \"off\"\n\
         [[relay]]\nlisten = \"127.0.0.1:0\"\nnetworks = [\"127.0.0.0/8\"]\naccount = \"{OWNER}\"\n\
         [dns]\nservers = [\"{dns}\"]\n[testing]\nclock_offset = \"0s\"\n\
         [delivery]\nport = {port}\nallow_private_destinations = true\n{extra}"
    );
    config::from_text(&text, []).unwrap_or_else(|problems| panic!("{problems:?}"))
}

impl TestWorld {
    /// Starts a server with the default configuration.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a server with more lines in the section `[delivery]`.
    pub async fn start_with(extra: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sink = Sink::start().await;
        let names = NameServer::start(ZONE).await;
        let config = configuration(directory.path(), names.address, sink.address.port(), extra);
        Self::open(&config, sink, names, Some(directory)).await
    }

    /// Starts a server on a data directory.
    pub async fn start_in_directory(directory: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> Self {
        let sink = Sink::start().await;
        let names = NameServer::start(ZONE).await;
        let mut config = configuration(directory.path(), names.address, sink.address.port(), "");
        change(&mut config);
        Self::open(&config, sink, names, Some(directory)).await
    }

    /// Shuts down as on SIGTERM. Returns the data directory.
    pub async fn close(self) -> Option<tempfile::TempDir> {
        self.listeners.shut_down().await;
        self.server.close().await;
        self._directory
    }

    /// Starts a node over a database. With `other` it uses that node's secret key and mail host.
    pub async fn node(database: &str, other: Option<&Self>, change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sink = Sink::start().await;
        let names = NameServer::start(ZONE).await;
        if let Some(other) = other {
            let key = other.config().data_dir.join("secret.key");
            std::fs::copy(key, directory.path().join("secret.key")).unwrap();
        }
        let port = other.map_or(&sink, |other| &other.sink).address.port();
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
        let server = Server::build(config).await.unwrap();
        let listeners = Listeners::new(config, 1);
        let provisioning = &server.provisioning;
        let provisioned = match provisioning.create_account(OWNER.parse().unwrap(), Plan::Dedicated, true).await {
            Ok(provisioned) => {
                let (domains, name) = (&server.accounts.domains, DOMAIN.parse::<DomainName>().unwrap());
                let new = NewDomain::with_name(name.clone());
                domains.create(provisioned.account.id, new, None).await.unwrap();
                domains.force_verify(&name).await.unwrap();
                provisioned
            }
            Err(_) => provisioning.create_credentials(OWNER).await.unwrap(),
        };
        let certificates = ActiveCertificates::new(&Certificate::self_signed(&["localhost"]).unwrap()).unwrap();
        let any_port = "127.0.0.1:0".parse().unwrap();
        let submission = listeners.listen_submission(config, &server, any_port, certificates.smtp(), false).unwrap();
        let relay = listeners.listen_relay(&server, &config.relay[0], any_port).unwrap();
        let api = listeners.listen_api(&server, any_port, config, None).await.unwrap();
        let mx = listeners.listen_mx(config, &server, any_port, certificates.smtp()).unwrap();
        server.start();
        Self {
            sink,
            names,
            submission,
            api,
            relay,
            mx,
            account: provisioned.account.id,
            password: provisioned.smtp_password,
            api_key: provisioned.api_key,
            listeners,
            server,
            running: parking_lot::Mutex::new(config.clone()),
            _directory: directory,
        }
    }

    /// Shuts down as on SIGTERM and starts again on the same directory.
    pub async fn restart(mut self, extra: &str) -> Self {
        let directory = self._directory.take().unwrap();
        self.reopen(directory, extra).await
    }

    /// Restarts on another directory, with the secret key of this one.
    pub async fn restart_in_directory(self, directory: tempfile::TempDir) -> Self {
        std::fs::copy(self.config().data_dir.join("secret.key"), directory.path().join("secret.key")).unwrap();
        self.reopen(directory, "").await
    }

    async fn reopen(self, directory: tempfile::TempDir, extra: &str) -> Self {
        self.listeners.shut_down().await;
        self.server.close().await;
        let config = configuration(directory.path(), self.names.address, self.sink.address.port(), extra);
        Self::open(&config, self.sink, self.names, Some(directory)).await
    }

    /// Reloads as on SIGHUP, with other lines in the section `[delivery]`.
    pub fn reload(&self, extra: &str) -> reload::ConfigChanges {
        let directory = self.running.lock().data_dir.clone();
        let new = configuration(&directory, self.names.address, self.sink.address.port(), extra);
        self.reload_with(|config| *config = new)
    }

    /// Reloads as on SIGHUP, with a changed configuration.
    pub fn reload_with(&self, change: impl FnOnce(&mut Config)) -> reload::ConfigChanges {
        let mut running = self.running.lock();
        let mut new = running.clone();
        change(&mut new);
        let changes = reload::apply_changes(&mut running, &new);
        self.server.reload(&running);
        self.listeners.reload(&running);
        changes
    }

    /// The listeners.
    pub fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// The current configuration.
    pub fn config(&self) -> Config {
        self.running.lock().clone()
    }

    /// Suspends the account or lifts the suspension.
    pub async fn suspend(&self, suspended: bool) {
        let change = |account: &mut model::account::Account| account.suspended = suspended;
        self.server.provisioning.change_account(&self.account.to_string(), change).await.unwrap();
    }

    pub async fn email(&self, id: EmailId) -> EmailWithRecipients {
        store::email::get(&self.server.store, self.account, id).await.unwrap().unwrap()
    }

    /// Waits until an email satisfies the condition.
    pub async fn wait(&self, id: EmailId, condition: impl Fn(&EmailWithRecipients) -> bool) -> EmailWithRecipients {
        let poll = async {
            loop {
                // Subscribe before reading, so that no change in between is missed.
                let outcome = self.server.queue.services.outcome_recorded.notified();
                let email = self.email(id).await;
                if condition(&email) {
                    return email;
                }
                outcome.await;
            }
        };
        match tokio::time::timeout(PATIENCE, poll).await {
            Ok(email) => email,
            Err(_) => panic!("timed out: {:#?}", self.email(id).await),
        }
    }

    /// Waits until the account's emails satisfy the condition.
    pub async fn wait_for_emails(&self, condition: impl Fn(&[EmailWithRecipients]) -> bool) {
        let poll = async {
            loop {
                let outcome = self.server.queue.services.outcome_recorded.notified();
                let emails = store::email::list(&self.server.store, self.account, None, 100).await.unwrap();
                if condition(&emails) {
                    return;
                }
                outcome.await;
            }
        };
        tokio::time::timeout(PATIENCE, poll).await.expect("timed out");
    }

    /// Shuts down and checks for leaks: tasks in memory that are not stored, message bodies, connections.
    pub async fn end(self) {
        let queue = std::sync::Arc::clone(&self.server.queue);
        let poll = async {
            loop {
                let outcome = queue.services.outcome_recorded.notified();
                if queue.delivery.memory_load().0 == 0 {
                    return;
                }
                outcome.await;
            }
        };
        tokio::time::timeout(PATIENCE, poll).await.expect("tasks left in memory");
        self.listeners.shut_down().await;
        queue.drain().await;
        // A DSN may have been queued since then: its task is stored, too.
        let on_disk = store::task::list_all(&self.server.store, None, 1_000).await.unwrap().tasks.len();
        let (in_memory, body_bytes, _) = queue.delivery.memory_load();
        assert!(in_memory <= on_disk, "{in_memory} tasks in memory, {on_disk} on disk");
        assert!(in_memory > 0 || body_bytes == 0, "{body_bytes} bytes of bodies left over");
        assert!(
            queue.delivery.queues.ready_queue_statuses().iter().all(|site| site.connections.counted == 0),
            "connections left over"
        );
        self.server.close().await;
    }
}
