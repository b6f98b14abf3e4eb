//! The world: everything that is built once and shared, from the configuration.

use std::path::Path;
use std::sync::Arc;

use dns::lookup::{DnssecMode, Resolver};
use dns::seal::Vault;
use dns::setup::DomainChecker;
use dns::signing_pool::SigningPool;
use mail::address::DomainName;
use mail::classify::ReplyRules;
use mail::link::TokenKey;
use mail::setup::ServiceHosts;
use mail::verp::VerpKey;
use provider::{Publisher, RequestKey};
use queue::accept::{DkimSigning, Intake, IntakeParts};
use queue::automations::SmsProvider;
use queue::clock::Clock;
use queue::courier::http::{HttpClient, HttpClientSettings, UrlRules, UrlTarget};
use queue::courier::smtp::SmtpDialer;
use queue::domains::DomainsParts;
use queue::enrol::AccountProvisioning;
use queue::entropy::Entropy;
use queue::guard::{DnssecResolver, TransportSecurityPolicies};
use queue::inbound::{InboundService, OwnHostnames, RspamdClient, RspamdSettings, SpamScanner};
use queue::plan::{MxRouter, RouterSettings};
use queue::product_events::{ConversionExportSettings, ConversionExporter};
use queue::receiving::LocalDomains;
use queue::retry::RetrySchedule;
use queue::smarthosts::Smarthosts;
use queue::sts::StsPolicies;
use queue::tls_reports::TlsReporter;
use queue::webhooks::WebhooksParts;
use queue::worker::{DeliveryPolicy, Worker, WorkerParts, WorkerSettings};
use rustls::RootCertStore;
use store::engine::{PostgresOptions, RedbOptions, Store, Value, private};
use thiserror::Error;

use crate::certificate;
use crate::clock_shift;
use crate::config::mx::SpamFilter;
use crate::config::{Config, DaneMode, OnOff, StoreEngine};
use crate::node::NodeIdentity;

/// The file that holds the key which all stored secrets are sealed with.
pub const KEY_FILE: &str = "secret.key";
/// The directory of the store, in the data directory.
pub const STORE_DIRECTORY: &str = "store";

/// What the operator's own URLs may be: next door, and without TLS.
pub const OPERATORS_URLS: UrlRules = UrlRules { allow_private: true, allow_http: true };

/// The setting that signs return paths; the first thing that is sealed in a new store.
const RETURN_PATH_KEY: &str = "return path key";
/// The setting that signs links in mail.
const LINK_KEY: &str = "link key";

/// Why the world could not be built. The texts say what to do.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The store.
    #[error(transparent)]
    Open(#[from] store::engine::OpenError),
    /// The store, once open.
    #[error("the store: {0}")]
    Store(String),
    /// The data directory or the key file.
    #[error("{0}")]
    Files(String),
    /// The data directory cannot be used: it cannot be written, or another process has it.
    #[error("{path}: {error}")]
    Directory {
        /// Which.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// Name servers.
    #[error("[dns] {0}")]
    Dns(String),
    /// What tells conversions.
    #[error("[conversions] {0}")]
    Conversions(String),
    /// What signs requests of Domain Connect.
    #[error("[service] domain_connect_key: {0}")]
    RequestKey(String),
    /// Text messages.
    #[error("[sms] {0}")]
    Sms(String),
    /// Whose certificates hold.
    #[error("[delivery] roots: {0}")]
    Roots(String),
    /// TLS for outgoing mail.
    #[error("[delivery] tls: {0}")]
    Tls(String),
}

/// Everything that is built once and shared.
#[derive(Clone)]
pub struct Services {
    /// Where everything lies.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
    /// The kitchen.
    pub worker: Arc<Worker>,
    /// The door of the kitchen.
    pub intake: Intake,
    /// Takes mail in.
    pub inbound: InboundService,
    /// Enrols accounts.
    pub provisioning: AccountProvisioning,
    /// Seals secrets.
    pub vault: Arc<Vault>,
    /// Holds the data directory.
    _identity: NodeIdentity,
}

/// The options of the store that a configuration asks for.
#[must_use]
pub fn store_options(config: &Config) -> RedbOptions {
    let mut options = RedbOptions::new(config.data_dir.join(STORE_DIRECTORY));
    options.reserve_bytes = config.store.reserve_bytes;
    options
}

impl Services {
    /// Builds the world. Nothing is listened on and nothing is sent yet.
    ///
    /// # Errors
    /// [`BuildError`].
    pub async fn build(config: &Config) -> Result<Self, BuildError> {
        let path = config.data_dir.display();
        let unusable = |error| BuildError::Directory { path: path.to_string(), error };
        private_directory(&config.data_dir).map_err(unusable)?;
        let entropy = Entropy::default();
        let identity =
            NodeIdentity::claim_directory(&config.data_dir, &config.hostname, entropy.u64()).map_err(unusable)?;
        let store = open_store(config).await?;
        identity.persist().map_err(unusable)?;
        let clock = build_clock(config)?;
        let vault = Arc::new(open_vault(&config.data_dir, &store).await?);
        let verp = VerpKey::new(load_or_create_secret(&store, &vault, &entropy, RETURN_PATH_KEY).await?);
        let links = TokenKey::new(load_or_create_secret(&store, &vault, &entropy, LINK_KEY).await?);
        let resolver = build_resolver(config)?;
        let parts = WorkerParts {
            store: store.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            router: build_mx_router(config, &store, &resolver)?,
            dialer: build_dialer(config)?,
            verp,
            webhooks: WebhooksParts {
                client: build_http_client(config, resolver.clone())?,
                vault: Arc::clone(&vault),
                retry_schedule: config.webhooks.retry.clone(),
            },
            node: identity.name.clone(),
            predecessor_node: identity.previous_name.clone(),
        };
        let worker = Worker::new(parts, build_worker_settings(config));
        // Before any door opens: what is accepted needs a partition of ours to lie in.
        worker.join_cluster().await.map_err(|error| BuildError::Store(error.to_string()))?;
        let pool = SigningPool::start(None).map_err(|error| BuildError::Files(error.to_string()))?;
        let hall = Intake::new(
            Arc::clone(&worker),
            IntakeParts {
                vault: Arc::clone(&vault),
                signing_pool: pool,
                signing: dkim_signing(config),
                sandbox_sender: config.service.sandbox_sender.clone(),
                message_bytes_max: config.submission.message_bytes_max,
                plans: config.plans,
                rate_limit: config.api.rate_limit == OnOff::On,
                link_key: links,
                domains: DomainsParts {
                    vault: Arc::clone(&vault),
                    inspector: build_domain_checker(config)?,
                    publisher: Publisher::new(resolver.clone(), config.delivery.allow_private_destinations)
                        .with_template(config.service.domain_connect_template.clone(), load_request_key(config)?),
                    facts: service_hosts(config),
                    auto_verify: config.service.auto_verify_domains,
                },
            },
        );
        if let Some(gate) = build_sms_provider(config)? {
            hall.automations().set_sms_provider(gate);
        }
        if let Some(base_url) = &config.api.base_url {
            hall.set_base_url(base_url.trim_end_matches('/'));
        }
        if let Some(exporter) = build_exporter(config, resolver.clone())? {
            worker.set_conversion_exporter(exporter);
        }
        start_tls_reporting(config, &worker, &resolver)?;
        let inbound = build_inbound(config, &hall, &resolver)?;
        let enrolment = hall.account_provisioning();
        Ok(Self {
            store,
            clock,
            entropy,
            worker,
            intake: hall,
            inbound,
            provisioning: enrolment,
            vault,
            _identity: identity,
        })
    }

    /// Tells the operator when nobody can send from the sandbox sender.
    pub async fn warn_if_sandbox_unusable(&self) {
        match self.intake.unverified_sandbox_domain().await {
            Ok(None) => {}
            Ok(Some(domain)) => tracing::warn!(domain.name = %domain, "{}", sandbox_not_set_up(domain)),
            Err(error) => tracing::warn!(%error, "the domain of `sandbox_sender` cannot be read"),
        }
    }

    /// Begins delivery.
    pub fn start(&self) {
        self.worker.start();
        self.intake.start_jobs();
    }

    /// Goes on as this configuration says, as far as that is possible without a restart.
    pub fn reload(&self, config: &Config) {
        self.worker.reload_policy(delivery_policy(config));
        self.intake.set_message_bytes_max(config.submission.message_bytes_max);
        self.intake.set_plans(config.plans);
        match inbound_policy(config, self.inbound.resolver()) {
            Ok(manners) => self.inbound.reload(manners),
            Err(error) => tracing::error!(%error, "mail is taken in as before"),
        }
        self.intake.rate_limiter().set_enabled(config.api.rate_limit == OnOff::On);
    }

    /// Ends delivery and closes the store. What is queued stays on disk.
    pub async fn close(self) {
        self.worker.drain().await;
        self.store.close().await;
    }
}

/// What the operator is told when the domain of the sandbox sender is not verified here.
#[must_use]
pub fn sandbox_not_set_up(domain: &DomainName) -> String {
    format!(
        "the sandbox is not set up on this server: {domain}, the domain of `sandbox_sender`, is not verified here, so no \
         account can send from it, and sign-in links and other mail of the service do not go out; add the domain to an \
         account of yours (`postrider admin domain create {domain} --account …`) and publish its records"
    )
}

/// The machine's clock; where it may be moved, as far ahead as it was moved and as the configuration says.
fn build_clock(config: &Config) -> Result<Clock, BuildError> {
    let Some(offset) = config.testing.clock_offset else { return Ok(Clock::default()) };
    let shift = clock_shift::read(&config.data_dir)
        .map_err(|error| BuildError::Files(format!("{}: {error}", config.data_dir.display())))?;
    Ok(Clock::with_offset(offset.saturating_add(shift)))
}

/// Opens the engine that the configuration names.
async fn open_store(config: &Config) -> Result<Store, BuildError> {
    match database(config) {
        Some(database) => Ok(Store::connect(&database).await?),
        None => {
            let options = store_options(config);
            let open = tokio::task::spawn_blocking(move || Store::open(&options));
            Ok(open.await.map_err(|error| BuildError::Store(error.to_string()))??)
        }
    }
}

/// The database of a configuration that names one.
#[must_use]
pub fn database(config: &Config) -> Option<PostgresOptions> {
    let store = &config.store;
    let url = store.url.as_ref().filter(|_| store.engine == StoreEngine::Postgres)?;
    let application = format!("postrider {}", config.hostname);
    Some(PostgresOptions { application, ..PostgresOptions::new(url.0.clone(), store.cluster.clone()) })
}

/// Makes the data directory, for its owner alone: mail and secrets lie in it. One that was there before is closed to
/// others too, with what is in it.
fn private_directory(directory: &Path) -> std::io::Result<()> {
    private::create_directory(directory)?;
    for (path, error) in private::restrict_permissions(directory) {
        tracing::warn!(path = %path.display(), %error, "others may read this, and it cannot be closed to them; chmod it by hand");
    }
    Ok(())
}

/// The key file: systemd's credential of that name, if there is one, else a file made at first start.
async fn open_vault(data_dir: &Path, store: &Store) -> Result<Vault, BuildError> {
    let handed_in = std::env::var_os("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(KEY_FILE));
    let file = handed_in.filter(|file| file.exists()).unwrap_or_else(|| data_dir.join(KEY_FILE));
    let known = store::setting::get(store, RETURN_PATH_KEY).await;
    if !file.exists() && known.map_err(|error| BuildError::Store(error.to_string()))?.is_some() {
        // A new key would open nothing of what is there, and would look like the right one.
        return Err(BuildError::Files(format!(
            "{} is missing, and this store was made with it: put it back from your backup, or copy it from \
             another node of the cluster",
            file.display()
        )));
    }
    Vault::load_or_create(&file, private::create_file)
        .map_err(|error| BuildError::Files(format!("{}: {error}", file.display())))
}

/// A sealed setting of 32 secret bytes, made when it is first asked for.
async fn load_or_create_secret(
    store: &Store,
    vault: &Vault,
    entropy: &Entropy,
    name: &'static str,
) -> Result<[u8; 32], BuildError> {
    let failed = |error: &dyn std::fmt::Display| BuildError::Store(format!("{name}: {error}"));
    let fresh = vault.seal(name.as_bytes(), &entropy.secret()).map_err(|error| failed(&error))?;
    let sealed = store::setting::get_or_create(store, name, || Value::from(fresh.clone()))
        .await
        .map_err(|error| failed(&error))?;
    let secret = vault.open(name.as_bytes(), &sealed).map_err(|error| {
        BuildError::Files(format!("{error}: {KEY_FILE} is not the key that this data directory was made with"))
    })?;
    <[u8; 32]>::try_from(secret.as_slice()).map_err(|error| failed(&error))
}

/// What tells conversions, if the operator has named whom.
fn build_exporter(config: &Config, resolver: Resolver) -> Result<Option<ConversionExporter>, BuildError> {
    let section = &config.conversions;
    let Some(url) = section.url.clone() else { return Ok(None) };
    let settings = HttpClientSettings { rules: OPERATORS_URLS, ..HttpClientSettings::default() };
    let poster = HttpClient::new(resolver, settings).map_err(|error| BuildError::Conversions(error.to_string()))?;
    let token = section.token.clone().map(|hidden| hidden.0);
    Ok(Some(ConversionExporter::new(ConversionExportSettings { url, token, email_hash: section.email_hash }, poster)))
}

/// What is signed: with DKIM off, nothing is for DKIM2 to build on.
fn dkim_signing(config: &Config) -> DkimSigning {
    match (config.delivery.dkim, config.delivery.dkim2) {
        (false, _) => DkimSigning::Off,
        (true, OnOff::Off) => DkimSigning::Messages,
        (true, OnOff::On) => DkimSigning::MessagesAndTransactions,
    }
}

/// What of this installation stands in its customers' records.
fn service_hosts(config: &Config) -> ServiceHosts {
    let pages = config.api.base_url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
    ServiceHosts {
        return_path_host: config.return_path_host(),
        spf_include_host: config.spf_include_host(),
        ownership_label: config.ownership_label().to_owned(),
        mail_host: config.hostname.clone(),
        pages_host: pages.and_then(|url| url.host()?.parse().ok()),
    }
}

fn load_request_key(config: &Config) -> Result<Option<RequestKey>, BuildError> {
    config.domain_connect_key().map_err(BuildError::RequestKey)
}

fn build_domain_checker(config: &Config) -> Result<DomainChecker, BuildError> {
    let settings = dns::setup::DomainCheckSettings {
        servers: config.dns.servers.clone(),
        allow_private: config.delivery.allow_private_destinations,
        ..Default::default()
    };
    DomainChecker::new(settings).map_err(|error| BuildError::Dns(error.to_string()))
}

fn lookup_settings(config: &Config) -> dns::lookup::ResolverSettings {
    let servers = config.dns.servers.clone();
    let mut settings = dns::lookup::ResolverSettings { servers, ipv4_where_no_route: true, ..Default::default() };
    if let Some(deadline) = config.dns.deadline {
        (settings.try_timeout, settings.retries, settings.deadline) = (deadline, 0, deadline);
    }
    settings
}

fn build_resolver(config: &Config) -> Result<Resolver, BuildError> {
    Resolver::new(&lookup_settings(config)).map_err(|error| BuildError::Dns(error.to_string()))
}

fn build_http_client(config: &Config, resolver: Resolver) -> Result<HttpClient, BuildError> {
    let rules =
        UrlRules { allow_private: config.webhooks.allow_private_destinations, allow_http: config.webhooks.allow_http };
    let settings = HttpClientSettings { rules, ..HttpClientSettings::default() };
    HttpClient::new(resolver, settings).map_err(|error| BuildError::Tls(error.to_string()))
}

/// Who sends text messages: the operator's own choice, which may be next door.
fn build_sms_provider(config: &Config) -> Result<Option<SmsProvider>, BuildError> {
    let sms = &config.sms;
    let Some(url) = &sms.url else { return Ok(None) };
    let rules = UrlRules { allow_private: true, allow_http: true };
    let settings = HttpClientSettings { rules, ..HttpClientSettings::default() };
    let failed = |error: &dyn std::fmt::Display| BuildError::Sms(error.to_string());
    UrlTarget::parse(url, rules).map_err(|error| failed(&error))?;
    let poster = HttpClient::new(build_resolver(config)?, settings).map_err(|error| failed(&error))?;
    let token = sms.token.as_ref().map(|hidden| hidden.0.clone()).unwrap_or_default();
    let from = sms.from.clone().unwrap_or_default();
    Ok(Some(SmsProvider { client: poster, url: url.clone(), token, from }))
}

/// Asks, and tells, the web servers of those who get mail from here: whatever they name, trusted like mail hosts.
fn build_untrusted_http_client(config: &Config, resolver: &Resolver) -> Result<HttpClient, BuildError> {
    let rules = UrlRules { allow_private: config.delivery.allow_private_destinations, allow_http: false };
    let settings = HttpClientSettings { rules, roots: load_roots(config)?, ..HttpClientSettings::default() };
    HttpClient::new(resolver.clone(), settings).map_err(|error| BuildError::Tls(error.to_string()))
}

/// Has reports made of how TLS went, if the operator has named who can be asked about them.
fn start_tls_reporting(config: &Config, worker: &Worker, resolver: &Resolver) -> Result<(), BuildError> {
    if let Some(contact) = config.delivery.tls_report_contact.clone() {
        worker.set_tls_reporter(TlsReporter { contact, client: build_untrusted_http_client(config, resolver)? });
    }
    Ok(())
}

/// Who says how mail to a domain is to be protected.
fn build_transport_security(
    config: &Config,
    store: &Store,
    resolver: &Resolver,
) -> Result<TransportSecurityPolicies, BuildError> {
    let sts = match config.delivery.mta_sts {
        OnOff::Off => None,
        OnOff::On => {
            let poster = build_untrusted_http_client(config, resolver)?;
            let port = config.testing.mta_sts_port.unwrap_or(443);
            Some(StsPolicies::new(store.clone(), poster, port))
        }
    };
    let checking = || {
        let validation = config.dns.trust_anchors.clone().map_or(DnssecMode::Root, DnssecMode::Anchors);
        let settings = dns::lookup::ResolverSettings { validation, ..lookup_settings(config) };
        Resolver::new(&settings).map_err(|error| BuildError::Dns(error.to_string()))
    };
    let signatures = match config.delivery.dane {
        DaneMode::Off => None,
        DaneMode::Auto => Some(DnssecResolver::once_validated(checking()?)),
        DaneMode::On => Some(DnssecResolver::strict(checking()?)),
    };
    Ok(TransportSecurityPolicies { sts, dnssec: signatures })
}

/// Whose certificates hold, if the operator has named them.
fn load_roots(config: &Config) -> Result<Option<RootCertStore>, BuildError> {
    let file = config.delivery.roots.as_deref();
    file.map(certificate::load_roots).transpose().map_err(BuildError::Roots)
}

fn build_mx_router(config: &Config, store: &Store, resolver: &Resolver) -> Result<MxRouter, BuildError> {
    let delivery = &config.delivery;
    let settings = RouterSettings {
        port: delivery.port,
        smarthosts: Smarthosts::new(delivery.all_smarthosts()),
        own_names: vec![config.hostname.clone()],
    };
    let planner = MxRouter::new(resolver.clone(), settings)
        .with_security_policies(build_transport_security(config, store, resolver)?);
    Ok(match config.mx.listen.is_empty() {
        true => planner,
        false => planner.with_local_domains(LocalDomains::new(store.clone(), own_names(config))),
    })
}

/// What we are called.
fn own_names(config: &Config) -> OwnHostnames {
    OwnHostnames { hostname: config.hostname.clone(), return_path_host: config.return_path_host() }
}

fn build_dialer(config: &Config) -> Result<SmtpDialer, BuildError> {
    let allow_private = config.delivery.allow_private_destinations;
    let failed = |error: rustls::Error| BuildError::Tls(error.to_string());
    let dialer = SmtpDialer::new(config.hostname.clone()).map_err(failed)?.with_private_addresses(allow_private);
    match load_roots(config)? {
        Some(roots) => dialer.with_roots(roots).map_err(failed),
        None => Ok(dialer),
    }
}

/// Outgoing connections take a third of the file descriptors that we may have; the rest is for sessions
/// and files.
fn outgoing_connections_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    usize::try_from(limit.unwrap_or(65_536) / 3).unwrap_or(usize::MAX).clamp(16, 20_000)
}

fn delivery_policy(config: &Config) -> DeliveryPolicy {
    let delivery = &config.delivery;
    DeliveryPolicy {
        schedule: RetrySchedule { waits: delivery.retry.clone(), give_up_after: delivery.give_up_after },
        paused: delivery.paused,
        retention: config.store.retention,
        shaping: ReplyRules::new(delivery.replies.iter().filter_map(|section| section.to_rule().ok())),
    }
}

/// Takes mail in.
fn build_inbound(config: &Config, hall: &Intake, resolver: &Resolver) -> Result<InboundService, BuildError> {
    let manners = inbound_policy(config, resolver)?;
    Ok(InboundService::new(hall.clone(), resolver.clone(), own_names(config), manners))
}

/// How mail is taken in.
fn inbound_policy(config: &Config, resolver: &Resolver) -> Result<queue::inbound::InboundPolicy, BuildError> {
    let mx = &config.mx;
    let filter = match mx.spam_filter {
        SpamFilter::Off => SpamScanner::Off,
        SpamFilter::Rules => SpamScanner::Rules,
        SpamFilter::Rspamd => {
            let settings = RspamdSettings {
                url: mx.rspamd_url.clone(),
                on_failure: mx.rspamd_failure.into(),
                mark_score: mx.rspamd_mark_score,
                reject_score: mx.rspamd_reject_score,
            };
            let rspamd = RspamdClient::new(settings, resolver.clone());
            SpamScanner::Rspamd(rspamd.map_err(|error| BuildError::Tls(error.to_string()))?)
        }
    };
    Ok(queue::inbound::InboundPolicy {
        on_dmarc_fail: mx.dmarc_reject.into(),
        on_dns_temp_error: mx.dns_failure.into(),
        dnsbls: mx.dnsbl.clone(),
        on_dnsbl_listed: mx.dnsbl_action.into(),
        spam_filter: filter,
        postmaster: mx.postmaster.clone(),
        reporters: mx.complaint_reporters.clone(),
    })
}

fn build_worker_settings(config: &Config) -> WorkerSettings {
    let delivery = &config.delivery;
    WorkerSettings {
        hostname: config.hostname.clone(),
        delivery_policy: delivery_policy(config),
        pace: delivery.pace.iter().map(|pace| (pace.mail_host.clone(), pace.to_pace_limits())).collect(),
        tls: delivery.tls.into(),
        source_addresses: delivery.source_addresses.clone(),
        pools: delivery.pool_settings(),
        connections_max: outgoing_connections_max(),
        in_flight_max: delivery.tasks_in_memory_max,
        // At most; a site also leaves as many places as it takes (see `Site::push`).
        ready_max: (delivery.tasks_in_memory_max / 2).max(1),
        body_bytes_max: delivery.body_bytes_in_memory_max,
    }
}
