//! `[tls.acme]`: orders and renews certificates from an authority with ACME (RFC 8555).
//!
//! ```text
//! in the store? ─ yes ─► installed ─► renewal time ─► order ─► stored ─► installed ─► …
//!               └ no ──► self-signed certificate installed, order created at once
//!
//! renewal time: as advised by the authority (RFC 9773), or after two thirds of the lifetime
//! ```
//!
//! A self-signed certificate is presented until the first order succeeds. So listeners open at once and TLS-ALPN-01
//! has a listener to connect to, and a client that verifies certificates refuses it before it sends a password. A
//! renewal swaps the certificate as SIGHUP does; open connections are not affected. A failed order is logged with its
//! remedy, counted, shown by `admin certificate` and retried with growing delays. The old certificate stays installed.
//!
//! Nodes that share a store share the ACME account. A lease permits one order at a time. Nodes with the same names
//! share the certificate, and every node serves the challenge responses of all.

mod certificate_store;
pub mod challenge;
mod client;
mod order;
mod renewal_window;
mod validity;

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dns::resolver::Resolver;
use instant_acme::RetryPolicy;
use jiff::Timestamp;
use message::address::DomainName;
use net::clock::Clock;
use serde::Serialize;
use store::engine::{CommitError, ReadError};
use thiserror::Error;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::certificate_store::CertificateStore;
use self::challenge::{ActiveChallenges, ChallengeMethod};
use self::client::AcmeHttpClient;
use self::validity::{Validity, retry_at};
use crate::active_certificates::ActiveCertificates;
use crate::certificate::{Certificate, CertificateError};
use crate::config::Config;
use crate::services::Server;
use crate::start_wait;

/// Interval at which a node polls the store for certificates and challenge responses of other nodes.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Lifetime of the lease during which other nodes create no order.
const ORDER_LEASE: Duration = Duration::from_secs(10 * 60);
/// Timeout of a whole order. Shorter than its lease.
const WHOLE_ORDER_MAX: Duration = Duration::from_secs(9 * 60);
/// Timeout of polling an order's status.
const ORDER_POLL_MAX: Duration = Duration::from_secs(3 * 60);
/// Port of TLS-ALPN-01 validation (RFC 8737 3).
const TLS_PORT: u16 = 443;
/// Port of HTTP-01 validation (RFC 8555 8.3).
const HTTP_PORT: u16 = 80;

/// Errors of an order or of the store. Their texts name the remedy.
#[derive(Debug, Error)]
pub enum AcmeError {
    #[error("the store: {0}")]
    Read(#[from] ReadError),
    #[error("the store: {0}")]
    Commit(#[from] CommitError),
    /// A row cannot be sealed, opened, written or parsed.
    #[error("the store: {0}")]
    Store(String),
    /// The file of CA certificates cannot be loaded.
    #[error("[tls.acme] roots: {0}")]
    Roots(String),
    /// The resolver cannot be configured.
    #[error("[dns] {0}")]
    Dns(String),
    /// The authority cannot be reached, or refused a request.
    #[error("{0}; check that this machine can reach `directory` in [tls.acme]")]
    Authority(#[from] instant_acme::Error),
    /// The authority did not validate a challenge.
    #[error("{name} was not validated by {}: {reason}; {}", method.name(), advice(*method))]
    Refused {
        name: String,
        method: ChallengeMethod,
        /// Reason that the authority returned.
        reason: String,
    },
    /// The authority declared the order invalid without a reason.
    #[error("the authority refused the order and gave no reason")]
    Invalid,
    #[error(
        "the authority offers no configured challenge type for {name}: set `http_listen` in [tls.acme], or set \
         `tls = true` and port 443 for the API's listener"
    )]
    NoChallengeMethod { name: String },
    /// The order exceeded [`WHOLE_ORDER_MAX`].
    #[error("the authority did not complete the order within {} minutes", WHOLE_ORDER_MAX.as_secs() / 60)]
    Timeout,
    /// The issued certificate cannot be parsed or used.
    #[error("the authority's certificate: {0}")]
    Certificate(String),
}

fn advice(method: ChallengeMethod) -> &'static str {
    match method {
        ChallengeMethod::TlsAlpn => "the name must resolve to this machine, and port 443 must reach the API's listener",
        ChallengeMethod::Http => {
            "the name must resolve to this machine, and port 80 must reach `http_listen` in [tls.acme]"
        }
    }
}

impl AcmeError {
    fn from_store(error: impl std::fmt::Display) -> Self {
        Self::Store(error.to_string())
    }

    /// Returns whether the database is unavailable. The store logs that itself.
    fn is_away(&self) -> bool {
        match self {
            Self::Read(error) => error.is_away(),
            Self::Commit(error) => error.is_away(),
            _ => false,
        }
    }
}

impl From<CertificateError> for AcmeError {
    fn from(error: CertificateError) -> Self {
        Self::Certificate(error.to_string())
    }
}

/// ACME settings of a node: authority, names and challenge methods.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// URL of the authority's directory (RFC 8555 7.1.1).
    pub directory: String,
    /// Contact of the ACME account, as `mailto:…`.
    pub contact: Option<String>,
    /// Names of the certificate.
    pub names: Vec<String>,
    /// Challenge methods in order of preference.
    pub challenge_methods: Vec<ChallengeMethod>,
    /// PEM file of CA certificates that sign the directory's certificate, if it is not signed by a public CA.
    pub roots: Option<PathBuf>,
    /// Name servers that resolve the authority's name; none means those of the system.
    pub servers: Vec<SocketAddr>,
    /// Backoff and timeout for polling an order.
    pub retry_policy: RetryPolicy,
    /// Interval at which a node polls the store for certificates and challenge responses of other nodes.
    pub poll_interval: Duration,
}

impl AcmeSettings {
    /// Reads the settings from the configuration. Returns none without `[tls.acme]`.
    pub fn from_config(config: &Config) -> Option<Self> {
        let acme = config.tls.acme.as_ref()?;
        let mailto = |contact: &String| match contact.contains(':') {
            true => contact.clone(),
            false => format!("mailto:{contact}"),
        };
        let poll = RetryPolicy::new().initial_delay(Duration::from_secs(1)).backoff(1.5).timeout(ORDER_POLL_MAX);
        Some(Self {
            directory: acme.directory.clone(),
            contact: acme.contact.as_ref().map(mailto),
            names: certificate_names(config),
            challenge_methods: challenge_methods(config),
            roots: acme.roots.clone(),
            servers: config.dns.servers.clone(),
            retry_policy: poll,
            poll_interval: POLL_INTERVAL,
        })
    }
}

impl std::fmt::Display for AcmeSettings {
    /// Prints the line of `postrider check`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let port_of = |method: &ChallengeMethod| match method {
            ChallengeMethod::TlsAlpn => format!("port {TLS_PORT} ({})", method.name()),
            ChallengeMethod::Http => format!("port {HTTP_PORT} ({})", method.name()),
        };
        let ports: Vec<String> = self.challenge_methods.iter().map(port_of).collect();
        write!(
            f,
            "ACME certificate for {} from {}; each of these names must reach this machine on {}.",
            self.names.join(", "),
            self.directory,
            // An order uses the first method that the authority offers.
            ports.join(", or if the authority does not offer that, on ")
        )
    }
}

/// Collects the names of the certificate: `hostname`, the host of the API's `base_url`, and `[tls.acme] names`.
fn certificate_names(config: &Config) -> Vec<String> {
    let base_url = config.api.base_url.as_deref().and_then(|url| url.parse::<hyper::Uri>().ok());
    // An IP address is not a DNS name, and the authority would refuse it.
    let api = base_url.and_then(|url| url.host()?.parse::<DomainName>().ok());
    let additional = config.tls.acme.iter().flat_map(|acme| &acme.names).cloned();
    let mut names: Vec<String> = Vec::new();
    for name in std::iter::once(config.hostname.clone()).chain(api).chain(additional) {
        if !names.iter().any(|known| *known == name.as_str()) {
            names.push(name.to_string());
        }
    }
    names
}

/// Selects the possible challenge methods: TLS-ALPN-01 if the API serves TLS on port 443, HTTP-01 with `http_listen`.
pub(crate) fn challenge_methods(config: &Config) -> Vec<ChallengeMethod> {
    let tls = config.api.tls && config.api.listen.iter().any(|address| address.port() == TLS_PORT);
    let http = config.tls.acme.as_ref().is_some_and(|acme| !acme.http_listen.is_empty());
    [(tls, ChallengeMethod::TlsAlpn), (http, ChallengeMethod::Http)]
        .into_iter()
        .filter(|(is_possible, _)| *is_possible)
        .map(|(_, method)| method)
        .collect()
}

/// Certificate status that `admin certificate` and `status` show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateStatus {
    /// URL of the authority's directory.
    pub directory: String,
    pub names: Vec<String>,
    /// Challenge types in order of preference.
    pub proved_by: Vec<&'static str>,
    /// When the certificate expires; none while a self-signed certificate is installed.
    pub expires_at: Option<Timestamp>,
    pub renews_at: Option<Timestamp>,
    /// When renewal information is fetched again (RFC 9773); none if the authority does not provide it.
    pub asks_again_at: Option<Timestamp>,
    /// Failed orders since the last success.
    pub failures: u32,
    /// Error of the last failed order, with its remedy.
    pub last_failure: Option<String>,
    /// When the next order is tried after a failure.
    pub tries_again_at: Option<Timestamp>,
}

impl CertificateStatus {
    /// Returns whether no valid certificate is installed, or the last order failed.
    fn needs_order(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at <= now) || self.tries_again_at.is_some()
    }

    /// Records the result of a renewal. `Ok(false)`: another node is ordering, so the store is polled again soon.
    fn record_renewal(&mut self, renewed: &Result<bool, String>, now: Timestamp, poll_interval: Duration) {
        match renewed {
            Ok(true) => (self.failures, self.last_failure, self.tries_again_at) = (0, None, None),
            // Another node's order does not reset the failures of this node.
            Ok(false) => {
                self.tries_again_at = Some(now.checked_add(poll_interval * 2).unwrap_or(Timestamp::MAX));
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                self.tries_again_at = Some(retry_at(self.failures, now));
                self.last_failure = Some(error.clone());
            }
        }
    }
}

/// Orders, renews and installs the certificate of a node.
pub struct CertificateRenewer {
    settings: AcmeSettings,
    store: CertificateStore,
    clock: Clock,
    node: String,
    client: AcmeHttpClient,
    challenges: Arc<ActiveChallenges>,
    certificates: Arc<ActiveCertificates>,
    status: watch::Sender<CertificateStatus>,
    /// Wakes [`run`](Self::run) for an order that the operator requested.
    requested: Notify,
    /// PEM chain of the installed certificate; empty while it is self-signed.
    installed_chain: Mutex<Vec<u8>>,
    /// Position in the authority's renewal window at which this process renews, in units of 2^-32.
    window_share: u32,
}

impl CertificateRenewer {
    /// Installs the stored certificate, or a self-signed one. [`run`](Self::run) orders and renews.
    ///
    /// # Errors
    /// The store, the file of CA certificates or the system's resolver configuration cannot be read.
    pub async fn open(settings: AcmeSettings, server: &Server) -> Result<Arc<Self>, AcmeError> {
        let servers = settings.servers.clone();
        let resolver_settings =
            dns::resolver::ResolverSettings { servers, ipv4_where_no_route: true, ..Default::default() };
        let resolver = Resolver::new(&resolver_settings).map_err(|error| AcmeError::Dns(error.to_string()))?;
        let client = AcmeHttpClient::new(settings.roots.as_deref(), resolver).map_err(AcmeError::Roots)?;
        let challenges = Arc::<ActiveChallenges>::default();
        let store = CertificateStore::new(server, &settings.directory, &settings.names);
        let names: Vec<&str> = settings.names.iter().map(String::as_str).collect();
        let self_signed = Certificate::self_signed(&names)?;
        let status = CertificateStatus {
            directory: settings.directory.clone(),
            names: settings.names.clone(),
            proved_by: settings.challenge_methods.iter().map(|method| method.name()).collect(),
            expires_at: None,
            renews_at: None,
            asks_again_at: None,
            failures: 0,
            last_failure: None,
            tries_again_at: None,
        };
        let certificates = Arc::new(ActiveCertificates::with_challenges(&self_signed, Arc::clone(&challenges))?);
        let renewer = Self {
            store,
            clock: server.clock.clone(),
            node: format!("{:032x}", server.entropy.u128()),
            client,
            challenges,
            certificates,
            status: watch::Sender::new(status),
            requested: Notify::new(),
            installed_chain: Mutex::default(),
            window_share: u32::try_from(server.entropy.u64() >> 32).unwrap_or_default(),
            settings,
        };
        let stored = start_wait::retry_step(|| renewer.store.read_certificate(), AcmeError::is_away).await?;
        if let Some(certificate) = stored {
            renewer.install(&certificate)?;
        }
        Ok(Arc::new(renewer))
    }

    /// Certificates for TLS listeners.
    pub fn certificates(&self) -> &Arc<ActiveCertificates> {
        &self.certificates
    }

    /// Subscribes to the status.
    pub fn status(&self) -> watch::Receiver<CertificateStatus> {
        self.status.subscribe()
    }

    /// Orders a certificate now instead of at the time of the next try, for example after DNS was corrected. Returns
    /// false and orders nothing if a valid certificate is installed and its last renewal did not fail.
    pub fn request_order(&self) -> bool {
        let needs_order = self.status.borrow().needs_order(self.clock.now());
        if needs_order {
            self.requested.notify_one();
        }
        needs_order
    }

    /// Returns the key authorization for an HTTP-01 request. Reads the store for challenges of other nodes.
    pub async fn http_challenge_response(&self, host: &str, token: &str) -> Option<String> {
        let name = host.to_ascii_lowercase();
        let answer = self.challenges.http_response(&name, token);
        if answer.is_some() || !self.store.is_shared() {
            return answer;
        }
        let proof = self.store.read_responses().await.ok()?.remove(&name)?;
        (proof.token == token).then_some(proof.key_authorization)
    }

    /// Renews the certificate until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let (due, is_retry, refresh_at) = {
                let status = self.status.borrow();
                let due = status.tries_again_at.or(status.renews_at).unwrap_or(Timestamp::UNIX_EPOCH);
                (due, status.tries_again_at.is_some(), status.asks_again_at)
            };
            tokio::select! {
                biased;
                () = self.clock.sleep_until(due) => {
                    // The clock was set back. The time of a retry was counted from it, that of a renewal was not.
                    if !is_retry && self.clock.now() < due {
                        continue;
                    }
                }
                () = self.requested.notified() => {
                    // The order that was in progress at the request may have succeeded.
                    if !self.status.borrow().needs_order(self.clock.now()) {
                        continue;
                    }
                }
                () = self.clock.sleep_until(refresh_at.unwrap_or_default()), if refresh_at.is_some() => {
                    tokio::select! {
                        () = self.refresh_renewal_info() => continue,
                        () = stop.cancelled() => return,
                    }
                }
                () = tokio::time::sleep(self.settings.poll_interval), if self.store.is_shared() => {
                    if let Err(error) = self.sync_from_store().await {
                        tracing::debug!(%error, "certificates and challenges of other nodes cannot be read");
                    }
                    continue;
                }
                () = stop.cancelled() => return,
            }
            tokio::select! {
                renewed = self.renew() => self.record_renewal(renewed),
                () = stop.cancelled() => return,
            }
        }
    }

    /// Installs the stored certificate and the challenge responses of the node that orders.
    async fn sync_from_store(&self) -> Result<(), AcmeError> {
        self.challenges.set_responses(self.store.read_responses().await?);
        match self.store.read_certificate().await? {
            Some(certificate) => self.install(&certificate),
            None => Ok(()),
        }
    }

    /// Renews the certificate. Returns false if another node is ordering.
    async fn renew(&self) -> Result<bool, AcmeError> {
        if !self.store.is_shared() {
            return self.order_and_install().await.map(|()| true);
        }
        let now = self.clock.now();
        let until = now.checked_add(ORDER_LEASE).unwrap_or(Timestamp::MAX);
        if !self.store.acquire_lease(&self.node, now, until).await? {
            self.sync_from_store().await?;
            return Ok(false);
        }
        // Checked under the lease: another node may have stored a new certificate meanwhile.
        let renewed = match self.has_newer_certificate(now).await {
            Ok(true) => Ok(()),
            Ok(false) => self.order_and_install().await,
            Err(error) => Err(error),
        };
        if let Err(error) = self.store.release_lease(&self.node).await {
            tracing::debug!(%error, "the order lease was not released and expires by itself");
        }
        renewed.map(|()| true)
    }

    /// Installs the store's certificate if it differs from the installed one. Returns true if it needs no renewal yet.
    async fn has_newer_certificate(&self, now: Timestamp) -> Result<bool, AcmeError> {
        let Some(stored) = self.store.read_certificate().await? else { return Ok(false) };
        if stored.chain == self.installed_chain() {
            return Ok(false);
        }
        self.install(&stored)?;
        Ok(Validity::from_chain(&stored.chain).is_ok_and(|validity| validity.renew_at() > now))
    }

    async fn order_and_install(&self) -> Result<(), AcmeError> {
        let obtained = tokio::time::timeout(WHOLE_ORDER_MAX, self.order_certificate()).await;
        let (chain, key) = obtained.map_err(|_| AcmeError::Timeout)??;
        // A certificate that is unusable or needs immediate renewal is not stored.
        Certificate { chain: chain.clone().into(), key: key.clone().into() }.server_config(Vec::new())?;
        let validity = Validity::from_chain(chain.as_bytes()).map_err(AcmeError::Certificate)?;
        if validity.renew_at() <= self.clock.now() {
            let reason =
                format!("it expires at {} and needs renewal now; check this machine's clock", validity.not_after);
            return Err(AcmeError::Certificate(reason));
        }
        let certificate = self.store.store_certificate(chain, key).await?;
        self.install(&certificate)?;
        tracing::info!(names = self.settings.names.join(" "), "new certificate installed");
        Ok(())
    }

    /// PEM chain of the installed certificate; empty while it is self-signed.
    fn installed_chain(&self) -> Vec<u8> {
        self.installed_chain.lock().clone()
    }

    /// Installs a certificate, unless it is installed already.
    fn install(&self, certificate: &Certificate) -> Result<(), AcmeError> {
        if self.installed_chain() == certificate.chain {
            return Ok(());
        }
        let validity = Validity::from_chain(&certificate.chain).map_err(AcmeError::Certificate)?;
        self.certificates.replace(certificate)?;
        self.installed_chain.lock().clone_from(&certificate.chain);
        #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
        metrics::gauge!("postrider_certificate_expires_timestamp_seconds").set(validity.not_after.as_second() as f64);
        self.status.send_modify(|status| {
            (status.expires_at, status.renews_at) = (Some(validity.not_after), Some(validity.renew_at()));
            (status.asks_again_at, status.tries_again_at) = (Some(Timestamp::UNIX_EPOCH), None);
            // Also resets failures when another node ordered it.
            (status.failures, status.last_failure) = (0, None);
        });
        Ok(())
    }

    /// Counts, stores and logs the result of a renewal. `Ok(false)`: another node is ordering.
    fn record_renewal(&self, renewed: Result<bool, AcmeError>) {
        let now = self.clock.now();
        let outcome = match &renewed {
            Ok(true) => Some("done"),
            Ok(false) => None,
            Err(_) => Some("failed"),
        };
        if let Some(outcome) = outcome {
            metrics::counter!("postrider_acme_orders_total", "outcome" => outcome).increment(1);
        }
        let renewed = renewed.map_err(|error| error.to_string());
        self.status.send_modify(|status| {
            status.record_renewal(&renewed, now, self.settings.poll_interval);
            if let Err(error) = &renewed {
                tracing::error!(
                    error,
                    directory = self.settings.directory,
                    expires_at = status.expires_at.map(tracing::field::display),
                    tries_again_at = status.tries_again_at.map(tracing::field::display),
                    "ACME order failed"
                );
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unavailable_database_is_waited_for() {
        assert!(AcmeError::from(ReadError::Away("gone".into())).is_away());
        assert!(AcmeError::from(CommitError::Away("gone".into())).is_away());
        assert!(!AcmeError::from(ReadError::Corrupt("row".into())).is_away());
        assert!(!AcmeError::from(CommitError::Full).is_away());
        assert!(!AcmeError::from_store("not sealed with this key").is_away());
    }

    #[test]
    fn the_line_of_check_names_the_port_of_every_method() {
        let line_of = |sections: &str| {
            let text = format!("hostname = \"mx1.example.net\"\n{sections}");
            AcmeSettings::from_config(&crate::config::from_text(&text, []).unwrap()).unwrap().to_string()
        };
        let tls = "[api]\nlisten = \"127.0.0.1:443\"\ntls = true\n";
        let http = "[tls.acme]\nhttp_listen = \"127.0.0.1:80\"\n";
        let both = line_of(&format!("{tls}{http}"));
        assert!(
            both.contains("on port 443 (tls-alpn-01), or if the authority does not offer that, on port 80 (http-01).")
        );
        assert!(line_of(&format!("{tls}[tls.acme]\n")).contains("on port 443 (tls-alpn-01)."));
        assert!(line_of(http).contains("on port 80 (http-01)."));
    }

    fn self_signed_status() -> CertificateStatus {
        CertificateStatus {
            directory: String::new(),
            names: Vec::new(),
            proved_by: Vec::new(),
            expires_at: None,
            renews_at: None,
            asks_again_at: None,
            failures: 0,
            last_failure: None,
            tries_again_at: None,
        }
    }

    #[test]
    fn an_order_is_needed_without_a_certificate_and_after_a_failure() {
        let (now, later) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(1).unwrap());
        let mut status = self_signed_status();
        assert!(status.needs_order(now), "self-signed");
        status.expires_at = Some(later);
        assert!(!status.needs_order(now) && status.needs_order(later));
        status.tries_again_at = Some(later);
        assert!(status.needs_order(now), "the last order failed");
    }

    #[test]
    fn an_order_of_another_node_does_not_reset_failures() {
        let mut status = self_signed_status();
        let (now, poll_interval) = (Timestamp::UNIX_EPOCH, Duration::from_secs(5));
        let mut record = |renewed: Result<bool, String>| {
            status.record_renewal(&renewed, now, poll_interval);
            let retry_second = status.tries_again_at.map(Timestamp::as_second);
            (status.failures, status.last_failure.clone(), retry_second)
        };
        let failed = || Err("refused".to_owned());
        assert_eq!(record(failed()), (1, Some("refused".to_owned()), Some(60)));
        assert_eq!(record(failed()), (2, Some("refused".to_owned()), Some(900)));
        assert_eq!(record(Ok(false)), (2, Some("refused".to_owned()), Some(10)));
        assert_eq!(record(failed()), (3, Some("refused".to_owned()), Some(3_600)));
        assert_eq!(record(Ok(true)), (0, None, None));
    }
}
