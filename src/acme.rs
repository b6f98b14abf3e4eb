//! `[tls.acme]`: certificates from an authority that speaks ACME (RFC 8555), got and renewed by ourselves.
//!
//! ```text
//! kept in the store? ─► shown ─► when its authority advises, or two thirds of its life ─► order ─► kept ─► shown ─► …
//!                 └─ no: a self-signed one is shown, and the order made at once
//! ```
//!
//! Until the first certificate is there a self-signed one is shown: doors open at once, the challenge of
//! TLS-ALPN-01 has a listener to come to, and a client that verifies refuses it before it sends a password. A
//! renewal swaps the certificate as SIGHUP does; open connections keep theirs. What goes wrong is logged with
//! what to do, counted, shown by `admin certificate`, and tried again ever more rarely, while the certificate
//! that is there is shown on.
//!
//! Nodes that share a store share the account, and order one at a time, under a lease; those with the same
//! names share the certificate; and each shows the proofs of all.

mod advice;
pub mod challenge;
mod client;
mod facts;
mod kept;
mod order;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dns::lookup::Resolver;
use instant_acme::RetryPolicy;
use jiff::Timestamp;
use mail::address::DomainName;
use queue::clock::Clock;
use serde::Serialize;
use store::engine::{CommitError, ReadError};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::challenge::{ActiveChallenges, ChallengeMethod};
use self::client::AcmeHttpClient;
use self::facts::{Validity, retry_at};
use self::kept::CertificateStore;
use crate::certificate::{Certificate, CertificateError};
use crate::config::Config;
use crate::serve::ActiveCertificates;
use crate::world::Services;

/// How often a node looks for what other nodes left for it.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// For so long others leave the order to a node that has begun one.
const ORDER_LEASE: Duration = Duration::from_secs(10 * 60);
/// How long all of an order may take: less than its lease.
const WHOLE_ORDER_MAX: Duration = Duration::from_secs(9 * 60);
/// How long an order is waited for.
const ORDER_POLL_MAX: Duration = Duration::from_secs(3 * 60);
/// The port that TLS-ALPN-01 comes to (RFC 8737 3).
const TLS_PORT: u16 = 443;
/// The port that HTTP-01 comes to (RFC 8555 8.3).
const HTTP_PORT: u16 = 80;

/// Why there is no new certificate. The texts say what to do.
#[derive(Debug, Error)]
pub enum AcmeError {
    /// The store.
    #[error("the store: {0}")]
    Store(String),
    /// The file of roots.
    #[error("[tls.acme] roots: {0}")]
    Roots(String),
    /// Name servers.
    #[error("[dns] {0}")]
    Dns(String),
    /// The authority cannot be asked, or says no.
    #[error("{0}; see that this machine reaches `directory` in [tls.acme], and what the authority says")]
    Authority(#[from] instant_acme::Error),
    /// It did not see the proof.
    #[error("{name} was not proved by {}: {why}; {}", way.name(), advice(*way))]
    Refused {
        /// Which name.
        name: String,
        /// How it was to be proved.
        way: ChallengeMethod,
        /// What the authority says.
        why: String,
    },
    /// It refuses, and does not say why.
    #[error("the authority refused the order and gave no reason")]
    Invalid,
    /// It takes no proof that we can give.
    #[error(
        "the authority takes no proof for {name} that is configured: set `http_listen` in [tls.acme], or let \
         the API listen on port 443 with `tls = true`"
    )]
    NoChallengeMethod {
        /// Which name.
        name: String,
    },
    /// It takes too long.
    #[error("the authority was not done within {} minutes", WHOLE_ORDER_MAX.as_secs() / 60)]
    Timeout,
    /// What it gave is no certificate.
    #[error("the authority's certificate: {0}")]
    Certificate(String),
}

fn advice(way: ChallengeMethod) -> &'static str {
    match way {
        ChallengeMethod::TlsAlpn => "the name must resolve to this machine, and port 443 lead to the API's listener",
        ChallengeMethod::Http => {
            "the name must resolve to this machine, and port 80 lead to `http_listen` in [tls.acme]"
        }
    }
}

impl AcmeError {
    fn from_store(error: impl std::fmt::Display) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<ReadError> for AcmeError {
    fn from(error: ReadError) -> Self {
        Self::from_store(error)
    }
}

impl From<CommitError> for AcmeError {
    fn from(error: CommitError) -> Self {
        Self::from_store(error)
    }
}

impl From<CertificateError> for AcmeError {
    fn from(error: CertificateError) -> Self {
        Self::Certificate(error.to_string())
    }
}

/// What is asked for, of whom, and how it is proved.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// Where the authority's directory is.
    pub directory: String,
    /// Whom it may write to, as `mailto:…`.
    pub contact: Option<String>,
    /// For which names.
    pub names: Vec<String>,
    /// By which ways, the best first.
    pub challenge_methods: Vec<ChallengeMethod>,
    /// Who signs the directory's own certificate, where that is no public authority.
    pub roots: Option<PathBuf>,
    /// Who is asked for the authority's address; none means the system's name servers.
    pub servers: Vec<SocketAddr>,
    /// How an order is polled.
    pub retry_policy: RetryPolicy,
    /// How often a node looks for what other nodes left for it.
    pub poll_interval: Duration,
}

impl AcmeSettings {
    /// What a configuration asks for, if it does.
    #[must_use]
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
    /// What `check` says of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ways: Vec<&str> = self.challenge_methods.iter().map(|way| way.name()).collect();
        let port = match self.challenge_methods.first() {
            Some(ChallengeMethod::TlsAlpn) => TLS_PORT,
            _ => HTTP_PORT,
        };
        write!(
            f,
            "A certificate for {} comes from {} by {}; each of these names must lead here by port {port}.",
            self.names.join(", "),
            self.directory,
            ways.join(" or ")
        )
    }
}

/// The names of the certificate: our own, the API's, and what else is configured.
fn certificate_names(config: &Config) -> Vec<String> {
    let base_url = config.api.base_url.as_deref().and_then(|url| url.parse::<hyper::Uri>().ok());
    // An address is no name: the authority would refuse it.
    let api = base_url.and_then(|url| url.host()?.parse::<DomainName>().ok());
    let more = config.tls.acme.iter().flat_map(|acme| &acme.names).cloned();
    let mut names: Vec<String> = Vec::new();
    for name in std::iter::once(config.hostname.clone()).chain(api).chain(more) {
        if !names.iter().any(|known| *known == name.as_str()) {
            names.push(name.to_string());
        }
    }
    names
}

/// By which ways names can be proved: port 443 if the API has it, with TLS; else, or beside it, port 80.
pub(crate) fn challenge_methods(config: &Config) -> Vec<ChallengeMethod> {
    let tls = config.api.tls && config.api.listen.iter().any(|address| address.port() == TLS_PORT);
    let http = config.tls.acme.as_ref().is_some_and(|acme| !acme.http_listen.is_empty());
    [(tls, ChallengeMethod::TlsAlpn), (http, ChallengeMethod::Http)]
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, way)| way)
        .collect()
}

/// How it stands: for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateStatus {
    /// Who issues.
    pub directory: String,
    /// For which names.
    pub names: Vec<String>,
    /// How they are proved.
    pub proved_by: Vec<&'static str>,
    /// Until when the certificate holds; none while a self-signed one is shown.
    pub expires_at: Option<Timestamp>,
    /// When it is renewed.
    pub renews_at: Option<Timestamp>,
    /// When the authority is asked again whether it advises otherwise; none where it gives no advice.
    pub asks_again_at: Option<Timestamp>,
    /// Failures since it last went well.
    pub failures: u32,
    /// What went wrong then, and what to do.
    pub last_failure: Option<String>,
    /// When it is tried again.
    pub tries_again_at: Option<Timestamp>,
}

impl CertificateStatus {
    /// What came of a renewal. False: another node is at it, which is soon done, and it is looked at then.
    fn record_renewal(&mut self, renewed: &Result<bool, String>, now: Timestamp, look: Duration) {
        match renewed {
            Ok(true) => (self.failures, self.last_failure, self.tries_again_at) = (0, None, None),
            // What failed here has not gone well by that.
            Ok(false) => {
                self.tries_again_at = Some(now.checked_add(look * 2).unwrap_or(Timestamp::MAX));
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                self.tries_again_at = Some(retry_at(self.failures, now));
                self.last_failure = Some(error.clone());
            }
        }
    }
}

/// Gets certificates, and keeps them fresh.
pub struct CertificateRenewer {
    settings: AcmeSettings,
    store: CertificateStore,
    clock: Clock,
    node: String,
    client: AcmeHttpClient,
    challenges: Arc<ActiveChallenges>,
    certificates: Arc<ActiveCertificates>,
    status: watch::Sender<CertificateStatus>,
    /// The chain that is shown; empty while a self-signed one is.
    installed_chain: Mutex<Vec<u8>>,
    /// Which part of an authority's window passes before a renewal.
    window_share: u32,
}

impl CertificateRenewer {
    /// Shows what is kept, or a self-signed certificate. [`Keeper::keep`] does the rest.
    ///
    /// # Errors
    /// The store cannot be read, or the roots, or the system's name servers.
    pub async fn open(wish: AcmeSettings, world: &Services) -> Result<Arc<Self>, AcmeError> {
        let servers = wish.servers.clone();
        let asked = dns::lookup::ResolverSettings { servers, ipv4_where_no_route: true, ..Default::default() };
        let resolver = Resolver::new(&asked).map_err(|error| AcmeError::Dns(error.to_string()))?;
        let client = AcmeHttpClient::new(wish.roots.as_deref(), resolver).map_err(AcmeError::Roots)?;
        let challenges = Arc::<ActiveChallenges>::default();
        let kept = CertificateStore::new(world, &wish.directory, &wish.names);
        let names: Vec<&str> = wish.names.iter().map(String::as_str).collect();
        let first = Certificate::self_signed(&names)?;
        let standing = CertificateStatus {
            directory: wish.directory.clone(),
            names: wish.names.clone(),
            proved_by: wish.challenge_methods.iter().map(|way| way.name()).collect(),
            expires_at: None,
            renews_at: None,
            asks_again_at: None,
            failures: 0,
            last_failure: None,
            tries_again_at: None,
        };
        let certificates = Arc::new(ActiveCertificates::with_challenges(&first, Arc::clone(&challenges))?);
        let keeper = Self {
            store: kept,
            clock: world.clock.clone(),
            node: format!("{:032x}", world.entropy.u128()),
            client,
            challenges,
            certificates,
            status: watch::Sender::new(standing),
            installed_chain: Mutex::default(),
            window_share: u32::try_from(world.entropy.u64() >> 32).unwrap_or_default(),
            settings: wish,
        };
        if let Some(certificate) = keeper.store.read_certificate().await? {
            keeper.install(&certificate)?;
        }
        Ok(Arc::new(keeper))
    }

    /// What TLS shows.
    #[must_use]
    pub fn certificates(&self) -> &Arc<ActiveCertificates> {
        &self.certificates
    }

    /// How it stands, as it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<CertificateStatus> {
        self.status.subscribe()
    }

    /// The answer to HTTP-01: what another node proves is in the store.
    pub async fn http_challenge_response(&self, host: &str, token: &str) -> Option<String> {
        let name = host.to_ascii_lowercase();
        let answer = self.challenges.http_response(&name, token);
        if answer.is_some() || !self.store.is_shared() {
            return answer;
        }
        let proof = self.store.read_responses().await.ok()?.remove(&name)?;
        (proof.token == token).then_some(proof.key_authorization)
    }

    /// Keeps the certificate fresh until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let (due, asks) = {
                let standing = self.status.borrow();
                let due = standing.tries_again_at.or(standing.renews_at).unwrap_or(Timestamp::UNIX_EPOCH);
                (due, standing.asks_again_at)
            };
            tokio::select! {
                biased;
                () = self.clock.sleep_until(due) => {}
                () = self.clock.sleep_until(asks.unwrap_or_default()), if asks.is_some() => {
                    tokio::select! {
                        () = self.refresh_renewal_info() => continue,
                        () = stop.cancelled() => return,
                    }
                }
                () = tokio::time::sleep(self.settings.poll_interval), if self.store.is_shared() => {
                    if let Err(error) = self.sync_from_store().await {
                        tracing::debug!(%error, "what other nodes left cannot be seen");
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

    /// Shows what another node got, and proves what another node is asked.
    async fn sync_from_store(&self) -> Result<(), AcmeError> {
        self.challenges.set_responses(self.store.read_responses().await?);
        match self.store.read_certificate().await? {
            Some(certificate) => self.install(&certificate),
            None => Ok(()),
        }
    }

    /// Renews, unless another node has, or orders at the moment.
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
        // Looked at under the lease: what another node got is there by now.
        let renewed = match self.has_newer_certificate(now).await {
            Ok(true) => Ok(()),
            Ok(false) => self.order_and_install().await,
            Err(error) => Err(error),
        };
        if let Err(error) = self.store.release_lease(&self.node).await {
            tracing::debug!(%error, "the lease is left to its end");
        }
        renewed.map(|()| true)
    }

    /// Whether the store has another certificate than the one that is shown, which is not to be renewed yet.
    async fn has_newer_certificate(&self, now: Timestamp) -> Result<bool, AcmeError> {
        let Some(kept) = self.store.read_certificate().await? else { return Ok(false) };
        if kept.chain == self.installed_chain() {
            return Ok(false);
        }
        self.install(&kept)?;
        Ok(Validity::from_chain(&kept.chain).is_ok_and(|validity| validity.renew_at() > now))
    }

    async fn order_and_install(&self) -> Result<(), AcmeError> {
        let obtained = tokio::time::timeout(WHOLE_ORDER_MAX, self.order_certificate()).await;
        let (chain, key) = obtained.map_err(|_| AcmeError::Timeout)??;
        // What cannot be shown, or is to be renewed at once, is not kept.
        Certificate { chain: chain.clone().into(), key: key.clone().into() }.server_config(Vec::new())?;
        let validity = Validity::from_chain(chain.as_bytes()).map_err(AcmeError::Certificate)?;
        if validity.renew_at() <= self.clock.now() {
            let old = format!("it is old: it holds until {}; is this machine's clock right?", validity.not_after);
            return Err(AcmeError::Certificate(old));
        }
        let certificate = self.store.store_certificate(chain, key).await?;
        self.install(&certificate)?;
        tracing::info!(names = self.settings.names.join(" "), "a new certificate is shown");
        Ok(())
    }

    /// The chain that is shown; empty while a self-signed one is.
    fn installed_chain(&self) -> Vec<u8> {
        self.installed_chain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows a certificate, if it is another than the one that is shown.
    fn install(&self, certificate: &Certificate) -> Result<(), AcmeError> {
        if self.installed_chain() == certificate.chain {
            return Ok(());
        }
        let validity = Validity::from_chain(&certificate.chain).map_err(AcmeError::Certificate)?;
        self.certificates.replace(certificate)?;
        self.installed_chain.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&certificate.chain);
        #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
        metrics::gauge!("postrider_certificate_expires_timestamp_seconds").set(validity.not_after.as_second() as f64);
        self.status.send_modify(|standing| {
            (standing.expires_at, standing.renews_at) = (Some(validity.not_after), Some(validity.renew_at()));
            (standing.asks_again_at, standing.tries_again_at) = (Some(Timestamp::UNIX_EPOCH), None);
            // Whoever got it: it went well.
            (standing.failures, standing.last_failure) = (0, None);
        });
        Ok(())
    }

    /// Says what came of a renewal. False: another node is at it.
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
        self.status.send_modify(|standing| {
            standing.record_renewal(&renewed, now, self.settings.poll_interval);
            if let Err(error) = &renewed {
                tracing::error!(
                    error,
                    directory = self.settings.directory,
                    expires_at = standing.expires_at.map(tracing::field::display),
                    tries_again_at = standing.tries_again_at.map(tracing::field::display),
                    "no certificate by ACME"
                );
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_another_node_is_no_success_of_this_one() {
        let mut standing = CertificateStatus {
            directory: String::new(),
            names: Vec::new(),
            proved_by: Vec::new(),
            expires_at: None,
            renews_at: None,
            asks_again_at: None,
            failures: 0,
            last_failure: None,
            tries_again_at: None,
        };
        let (now, look) = (Timestamp::UNIX_EPOCH, Duration::from_secs(5));
        let mut book = |renewed: Result<bool, String>| {
            standing.record_renewal(&renewed, now, look);
            let again = standing.tries_again_at.map(Timestamp::as_second);
            (standing.failures, standing.last_failure.clone(), again)
        };
        let failed = || Err("refused".to_owned());
        assert_eq!(book(failed()), (1, Some("refused".to_owned()), Some(60)));
        assert_eq!(book(failed()), (2, Some("refused".to_owned()), Some(900)));
        assert_eq!(book(Ok(false)), (2, Some("refused".to_owned()), Some(10)));
        assert_eq!(book(failed()), (3, Some("refused".to_owned()), Some(3_600)));
        assert_eq!(book(Ok(true)), (0, None, None));
    }
}
