//! Builds the server from the configuration: its store, subsystems and keys; the listeners are in `serve.rs`.

use std::path::Path;
use std::sync::Arc;

use accounts::domains::DomainsParts;
use accounts::provisioning::AccountProvisioning;
use accounts::subsystems::{AccountParts, AccountSubsystems, SubsystemParts, Subsystems};
use affiliate::service::AffiliateService;
use dns::domain_check::DomainChecker;
use dns::resolver::{DnssecMode, Resolver};
use dns::secrets::Vault;
use dns::signing_pool::SigningPool;
use events::automations::SmsProvider;
use events::product_events::{ConversionExportSettings, ConversionTarget};
use events::webhooks::WebhooksParts;
use inbound::service::{InboundService, RspamdClient, RspamdSettings, SpamScanner};
use message::address::DomainName;
use message::classify::ReplyRules;
use model::domain_setup::ServiceHosts;
use model::signed_token::TokenKey;
use model::verp::VerpKey;
use net::clock::Clock;
use net::entropy::Entropy;
use net::http_client::{HttpClient, HttpClientSettings, UrlRules, UrlTarget};
use provider::{Publisher, RequestKey};
use queue::delivery::client::smtp::SmtpDialer;
use queue::delivery::delivery_policy::DeliveryPolicy;
use queue::delivery::keys::DeliveryKeys;
use queue::delivery::retry_schedule::RetrySchedule;
use queue::delivery::tls_reporter::TlsReportSettings;
use queue::intake::dkim_signing::DkimSigning;
use queue::routing::local_domains::LocalDomains;
use queue::routing::mta_sts::StsPolicies;
use queue::routing::own_hostnames::OwnHostnames;
use queue::routing::smarthosts::Smarthosts;
use queue::routing::transport_security::{DnssecResolver, TransportSecurityPolicies};
use queue::routing::{MxRouter, RouterSettings};
use queue::subsystems::SubsystemSettings;
use rustls::RootCertStore;
use smtp::sending_handlers::SubmissionHandler;
use smtp::submission::MessageSubmitter;
use store::engine::{PostgresOptions, ReadError, RedbOptions, Store, StoreError, Value, private_files};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::config::mx::SpamFilter;
use crate::config::{Config, DaneMode, OnOff, StoreEngine};
use crate::node::NodeIdentity;
use crate::store_references::{StoreReferences, relay_account_missing};
use crate::{certificate, clock_shift, start_wait};

/// File of the key that seals all stored secrets.
pub const KEY_FILE: &str = "secret.key";
/// Directory of the store, within the data directory.
pub const STORE_DIRECTORY: &str = "store";

/// Rules for URLs that the operator configures: private addresses and plain HTTP are permitted.
pub const OPERATORS_URLS: UrlRules = UrlRules { allow_private: true, allow_http: true };

/// Setting with the key that signs return paths; the first setting that is sealed in a new store.
const RETURN_PATH_KEY: &str = "return path key";
/// Setting with the key that signs links in mail.
const LINK_KEY: &str = "link key";

/// Errors of building the services. Their texts name the remedy.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] store::engine::OpenError),
    /// The open store failed.
    #[error("the store: {0}")]
    Store(String),
    /// The data directory or the key file is unusable.
    #[error("{0}")]
    Files(String),
    /// The data directory is not writable, or another process uses it.
    #[error("{path}: {error}")]
    Directory { path: String, error: std::io::Error },
    /// The resolver cannot be configured.
    #[error("[dns] {0}")]
    Dns(String),
    /// The conversion export cannot be configured.
    #[error("[conversions] {0}")]
    Conversions(String),
    /// The Domain Connect key cannot be loaded.
    #[error("[service] domain_connect_key: {0}")]
    RequestKey(String),
    /// The SMS provider cannot be configured.
    #[error("[sms] {0}")]
    Sms(String),
    /// The file of CA certificates cannot be loaded.
    #[error("[delivery] roots: {0}")]
    Roots(String),
    /// TLS of outgoing connections cannot be configured.
    #[error("[delivery] tls: {0}")]
    Tls(String),
}

/// Everything that is built once from the configuration and shared. Clones share it.
#[derive(Clone)]
pub struct Server {
    pub store: Store,
    pub clock: Clock,
    /// Source of randomness.
    pub entropy: Entropy,
    /// Subsystems of delivery and events.
    pub queue: Arc<Subsystems>,
    pub accounts: AccountSubsystems,
    /// The affiliate program.
    pub affiliate: AffiliateService,
    /// Receives mail for local domains.
    pub inbound: InboundService,
    /// Creates and changes accounts.
    pub provisioning: AccountProvisioning,
    /// `None` if no TLS reports are sent.
    tls_reports: Option<TlsReportSettings>,
    /// Holds the lock of the data directory.
    _identity: NodeIdentity,
}

/// Store options of a configuration.
pub fn store_options(config: &Config) -> RedbOptions {
    let mut options = RedbOptions::new(config.data_dir.join(STORE_DIRECTORY));
    options.reserve_bytes = config.store.reserve_bytes;
    options
}

impl Server {
    /// Builds the server. Opens no listener and starts no delivery.
    ///
    /// # Errors
    /// A part cannot be built, or the data directory or the store is unusable.
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
        let parts = SubsystemParts {
            store: store.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            router: build_mx_router(config, &store, &resolver)?,
            dialer: build_dialer(config)?,
            keys: DeliveryKeys { verp, vault: Arc::clone(&vault) },
            webhooks: WebhooksParts {
                client: build_http_client(config, resolver.clone())?,
                vault: Arc::clone(&vault),
                retry_schedule: config.webhooks.retry.clone(),
            },
            node: identity.name.clone(),
            predecessor_node: identity.previous_name.clone(),
        };
        let queue = Arc::new(Subsystems::new(parts, subsystem_settings(config)));
        // Before any listener opens: accepted mail is stored in a partition that this node owns.
        let joined = start_wait::retry_step(|| queue.cluster.join(), StoreError::is_away).await;
        joined.map_err(|error| BuildError::Store(error.to_string()))?;
        let pool = SigningPool::start(None).map_err(|error| BuildError::Files(error.to_string()))?;
        let accounts = AccountSubsystems::new(
            &queue,
            AccountParts {
                vault: Arc::clone(&vault),
                signing_pool: pool,
                signing: dkim_signing(config),
                sandbox_sender: config.service.sandbox_sender.clone(),
                message_bytes_max: config.submission.message_bytes_max,
                plans: config.plans,
                rate_limit: config.api.rate_limit == OnOff::On,
                link_key: links,
                domains: DomainsParts {
                    vault,
                    inspector: build_domain_checker(config)?,
                    publisher: Publisher::new(resolver.clone(), config.delivery.allow_private_destinations)
                        .with_template(config.service.domain_connect_template.clone(), load_request_key(config)?),
                    facts: service_hosts(config),
                    auto_verify: config.service.auto_verify_domains,
                },
            },
        );
        if let Some(provider) = build_sms_provider(config)? {
            accounts.automations.engine.set_sms_provider(provider);
        }
        if let Some(base_url) = &config.api.base_url {
            accounts.links.set_base_url(base_url.trim_end_matches('/'));
        }
        if let Some(target) = build_conversion_target(config, resolver.clone())? {
            accounts.product_events.exporter.set_target(target);
        }
        let tls_reports = tls_report_settings(config, &resolver)?;
        let inbound = build_inbound(config, &accounts, &resolver)?;
        let (senders, queues) = (Arc::clone(&accounts.senders), Arc::clone(&queue.delivery.queues));
        Ok(Self {
            store,
            clock,
            entropy,
            affiliate: AffiliateService::new(&queue, &accounts),
            provisioning: AccountProvisioning::new(&queue.services, senders, queues),
            queue,
            accounts,
            inbound,
            tls_reports,
            _identity: identity,
        })
    }

    /// Logs a warning if accounts cannot send from the sandbox sender.
    pub async fn warn_if_sandbox_unusable(&self) {
        match self.accounts.senders.unverified_sandbox_domain().await {
            Ok(None) => {}
            Ok(Some(domain)) => tracing::warn!(domain.name = %domain, "{}", sandbox_not_set_up(domain)),
            Err(error) => tracing::warn!(%error, "cannot read the domain of `sandbox_sender`"),
        }
    }

    /// Logs a warning for each `[[relay]]` section whose account does not exist.
    pub async fn warn_of_missing_relay_accounts(&self, config: &Config) {
        let references = StoreReferences { sandbox_domain: None, ..StoreReferences::from_config(config) };
        match references.look_up(&self.store).await {
            Ok(facts) => {
                let missing = facts.missing_relay_accounts.into_iter();
                for account in missing.filter_map(|index| references.relay_accounts.get(index)) {
                    tracing::warn!("{}", relay_account_missing(account));
                }
            }
            Err(error) => tracing::warn!(%error, "cannot read the accounts of [[relay]]"),
        }
    }

    /// Starts delivery and background jobs.
    pub fn start(&self) {
        accounts::background_tasks::start(&self.queue, &self.accounts, self.tls_reports.clone());
    }

    /// Runs the jobs of the affiliate program until `stop`.
    pub fn run_affiliate_jobs(&self, stop: CancellationToken) -> impl Future<Output = ()> + use<> {
        let affiliate = self.affiliate.clone();
        async move { affiliate.run(|| stop.cancelled()).await }
    }

    /// Submits the messages of SMTP clients.
    pub fn message_submitter(&self) -> MessageSubmitter {
        let AccountSubsystems { intake, templates, idempotency, .. } = self.accounts.clone();
        MessageSubmitter { services: self.queue.services.clone(), intake, templates, idempotency }
    }

    /// The session handler of submission.
    pub fn submission_handler(&self, username: &str) -> SubmissionHandler {
        let AccountSubsystems { credentials, limits, .. } = self.accounts.clone();
        SubmissionHandler::new(self.message_submitter(), credentials, limits, username.to_owned())
    }

    /// Applies a configuration as far as possible without a restart.
    pub fn reload(&self, config: &Config) {
        self.queue.delivery.policy.reload(delivery_policy(config));
        self.accounts.intake.set_message_bytes_max(config.submission.message_bytes_max);
        self.accounts.limits.plans.replace(config.plans);
        match inbound_policy(config, self.inbound.resolver()) {
            Ok(policy) => self.inbound.reload(policy),
            Err(error) => tracing::error!(%error, "cannot apply the new inbound policy; the old one still applies"),
        }
        self.accounts.limits.requests.set_enabled(config.api.rate_limit == OnOff::On);
    }

    /// Stops delivery and closes the store. Queued mail stays on disk.
    pub async fn close(self) {
        self.queue.drain().await;
        self.store.close().await;
    }
}

/// Warning for an unverified domain of the sandbox sender.
pub fn sandbox_not_set_up(domain: &DomainName) -> String {
    format!(
        "the sandbox is not set up: {domain}, the domain of `sandbox_sender`, is not verified on this server, so no \
         account can send from it, and sign-in links and other system email are not sent. Add the domain to one of \
         your accounts (`postrider admin domain create {domain} --account …`) and publish its records"
    )
}

/// The machine's clock, or, with `clock_offset`, one that runs ahead by the offset and the stored shift.
fn build_clock(config: &Config) -> Result<Clock, BuildError> {
    let Some(offset) = config.testing.clock_offset else { return Ok(Clock::default()) };
    let shift = clock_shift::read(&config.data_dir)
        .map_err(|error| BuildError::Files(format!("{}: {error}", config.data_dir.display())))?;
    Ok(Clock::with_offset(offset.saturating_add(shift)))
}

/// Opens the configured storage engine. Waits for a database that is unavailable.
async fn open_store(config: &Config) -> Result<Store, BuildError> {
    match database(config) {
        Some(database) => Ok(start_wait::connect(&database).await?),
        None => {
            let options = store_options(config);
            let open = tokio::task::spawn_blocking(move || Store::open_writable(&options));
            Ok(open.await.map_err(|error| BuildError::Store(error.to_string()))??)
        }
    }
}

/// Options of the PostgreSQL database, if one is configured.
pub fn database(config: &Config) -> Option<PostgresOptions> {
    let store = &config.store;
    let url = store.url.as_ref().filter(|_| store.engine == StoreEngine::Postgres)?;
    let application = format!("postrider {}", config.hostname);
    Some(PostgresOptions { application, ..PostgresOptions::new(url.0.clone(), store.cluster.clone()) })
}

/// Creates the data directory, accessible only to its owner because it contains mail and secrets. Restricts the
/// permissions of an existing one and its contents.
fn private_directory(directory: &Path) -> std::io::Result<()> {
    private_files::create_directory(directory)?;
    for (path, error) in private_files::restrict_permissions(directory) {
        tracing::warn!(path = %path.display(), %error, "cannot restrict permissions: run chmod");
    }
    Ok(())
}

/// Opens the key file: systemd's credential of that name, otherwise a file that the first start creates.
async fn open_vault(data_dir: &Path, store: &Store) -> Result<Vault, BuildError> {
    let credential_file = std::env::var_os("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(KEY_FILE));
    let file = credential_file.filter(|file| file.exists()).unwrap_or_else(|| data_dir.join(KEY_FILE));
    let stored_key = start_wait::retry_step(|| store::setting::get(store, RETURN_PATH_KEY), ReadError::is_away).await;
    if !file.exists() && stored_key.map_err(|error| BuildError::Store(error.to_string()))?.is_some() {
        // A new key could not open existing secrets, and would hide that the right key is missing.
        return Err(BuildError::Files(format!(
            "{} is missing, and the store needs it: copy it back from where you keep it (backups do not contain it), \
             or from another node of the cluster",
            file.display()
        )));
    }
    Vault::load_or_create(&file, private_files::create_file)
        .map_err(|error| BuildError::Files(format!("{}: {error}", file.display())))
}

/// Loads a sealed setting of 32 secret bytes, or creates it.
async fn load_or_create_secret(
    store: &Store,
    vault: &Vault,
    entropy: &Entropy,
    name: &'static str,
) -> Result<[u8; 32], BuildError> {
    let failed = |error: &dyn std::fmt::Display| BuildError::Store(format!("{name}: {error}"));
    let new_value = vault.seal(name.as_bytes(), &entropy.secret()).map_err(|error| failed(&error))?;
    let create = || Value::from(new_value.clone());
    let stored = start_wait::retry_step(|| store::setting::get_or_create(store, name, create), StoreError::is_away);
    let sealed = stored.await.map_err(|error| failed(&error))?;
    let secret = vault.open(name.as_bytes(), &sealed).map_err(|error| {
        BuildError::Files(format!("{error}: {KEY_FILE} is not the key with which this data directory was created"))
    })?;
    <[u8; 32]>::try_from(secret.as_slice()).map_err(|error| failed(&error))
}

/// Builds the target of the conversion export, if a URL is configured.
fn build_conversion_target(config: &Config, resolver: Resolver) -> Result<Option<ConversionTarget>, BuildError> {
    let section = &config.conversions;
    let Some(url) = section.url.clone() else { return Ok(None) };
    let settings = HttpClientSettings { rules: OPERATORS_URLS, ..HttpClientSettings::default() };
    let client = HttpClient::new(resolver, settings).map_err(|error| BuildError::Conversions(error.to_string()))?;
    let token = section.token.clone().map(|secret| secret.0);
    Ok(Some(ConversionTarget::new(ConversionExportSettings { url, token, email_hash: section.email_hash }, client)))
}

/// Signing mode. DKIM2 requires DKIM.
fn dkim_signing(config: &Config) -> DkimSigning {
    match (config.delivery.dkim, config.delivery.dkim2) {
        (false, _) => DkimSigning::Off,
        (true, OnOff::Off) => DkimSigning::Messages,
        (true, OnOff::On) => DkimSigning::MessagesAndTransactions,
    }
}

/// Host names of this installation that customers' DNS records contain.
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

pub(crate) fn build_domain_checker(config: &Config) -> Result<DomainChecker, BuildError> {
    let settings = dns::domain_check::DomainCheckSettings {
        servers: config.dns.servers.clone(),
        allow_private: config.delivery.allow_private_destinations,
        ..Default::default()
    };
    DomainChecker::new(settings).map_err(|error| BuildError::Dns(error.to_string()))
}

fn lookup_settings(config: &Config) -> dns::resolver::ResolverSettings {
    let servers = config.dns.servers.clone();
    let mut settings = dns::resolver::ResolverSettings { servers, ipv4_where_no_route: true, ..Default::default() };
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

/// Builds the SMS provider, if configured. Its URL may be private, because the operator sets it.
fn build_sms_provider(config: &Config) -> Result<Option<SmsProvider>, BuildError> {
    let sms = &config.sms;
    let Some(url) = &sms.url else { return Ok(None) };
    let settings = HttpClientSettings { rules: OPERATORS_URLS, ..HttpClientSettings::default() };
    let failed = |error: &dyn std::fmt::Display| BuildError::Sms(error.to_string());
    UrlTarget::parse(url, OPERATORS_URLS).map_err(|error| failed(&error))?;
    let client = HttpClient::new(build_resolver(config)?, settings).map_err(|error| failed(&error))?;
    let token = sms.token.as_ref().map(|secret| secret.0.clone()).unwrap_or_default();
    let from = sms.from.clone().unwrap_or_default();
    Ok(Some(SmsProvider { client, url: url.clone(), token, from }))
}

/// Client for web servers of recipient domains (MTA-STS policies, TLS reports): untrusted URLs, with the CA
/// certificates of delivery.
fn build_untrusted_http_client(config: &Config, resolver: &Resolver) -> Result<HttpClient, BuildError> {
    let rules = UrlRules { allow_private: config.delivery.allow_private_destinations, allow_http: false };
    let settings = HttpClientSettings { rules, roots: load_roots(config)?, ..HttpClientSettings::default() };
    HttpClient::new(resolver.clone(), settings).map_err(|error| BuildError::Tls(error.to_string()))
}

/// Settings of TLS reports (RFC 8460), if a contact is configured.
fn tls_report_settings(config: &Config, resolver: &Resolver) -> Result<Option<TlsReportSettings>, BuildError> {
    let Some(contact) = config.delivery.tls_report_contact.clone() else { return Ok(None) };
    Ok(Some(TlsReportSettings { contact, client: build_untrusted_http_client(config, resolver)? }))
}

/// Builds the sources of TLS policies for recipient domains: MTA-STS and DANE.
fn build_transport_security(
    config: &Config,
    store: &Store,
    resolver: &Resolver,
) -> Result<TransportSecurityPolicies, BuildError> {
    let sts = match config.delivery.mta_sts {
        OnOff::Off => None,
        OnOff::On => {
            let client = build_untrusted_http_client(config, resolver)?;
            let port = config.testing.mta_sts_port.unwrap_or(443);
            Some(StsPolicies::new(store.clone(), client, port))
        }
    };
    let build_validating_resolver = || {
        let validation = config.dns.trust_anchors.clone().map_or(DnssecMode::Root, DnssecMode::Anchors);
        let settings = dns::resolver::ResolverSettings { validation, ..lookup_settings(config) };
        Resolver::new(&settings).map_err(|error| BuildError::Dns(error.to_string()))
    };
    let signatures = match config.delivery.dane {
        DaneMode::Off => None,
        DaneMode::Auto => Some(DnssecResolver::once_validated(build_validating_resolver()?)),
        DaneMode::On => Some(DnssecResolver::strict(build_validating_resolver()?)),
    };
    Ok(TransportSecurityPolicies { sts, dnssec: signatures })
}

/// Loads the configured CA certificates; none means the public CAs.
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
    let router = MxRouter::new(resolver.clone(), settings)
        .with_security_policies(build_transport_security(config, store, resolver)?);
    Ok(match config.mx.listen.is_empty() {
        true => router,
        false => router.with_local_domains(LocalDomains::new(store.clone(), own_names(config))),
    })
}

/// Host names of this server.
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

/// Maximum outgoing connections: a third of the file descriptors; the rest is for sessions and files.
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

/// Builds the service that receives mail.
fn build_inbound(
    config: &Config,
    accounts: &AccountSubsystems,
    resolver: &Resolver,
) -> Result<InboundService, BuildError> {
    let (policy, names) = (inbound_policy(config, resolver)?, own_names(config));
    let (intake, bounces) = (Arc::clone(&accounts.intake), Arc::clone(&accounts.bounces));
    Ok(InboundService::new(intake, bounces, resolver.clone(), names, policy))
}

/// Policy for received mail.
fn inbound_policy(config: &Config, resolver: &Resolver) -> Result<inbound::service::InboundPolicy, BuildError> {
    let mx = &config.mx;
    let filter = match mx.spam_filter {
        SpamFilter::Off => SpamScanner::Off,
        SpamFilter::Rules => SpamScanner::Rules,
        SpamFilter::Rspamd => {
            let settings = RspamdSettings {
                url: mx.rspamd_url.clone(),
                on_failure: mx.rspamd_failure,
                mark_score: mx.rspamd_mark_score,
                reject_score: mx.rspamd_reject_score,
            };
            let rspamd = RspamdClient::new(settings, resolver.clone());
            SpamScanner::Rspamd(rspamd.map_err(|error| BuildError::Tls(error.to_string()))?)
        }
    };
    Ok(inbound::service::InboundPolicy {
        on_dmarc_fail: mx.dmarc_reject,
        on_dns_temp_error: mx.dns_failure,
        dnsbls: mx.dnsbl.clone(),
        on_dnsbl_listed: mx.dnsbl_action,
        spam_filter: filter,
        postmaster: mx.postmaster.clone(),
        reporters: mx.complaint_reporters.clone(),
    })
}

fn subsystem_settings(config: &Config) -> SubsystemSettings {
    let delivery = &config.delivery;
    SubsystemSettings {
        hostname: config.hostname.clone(),
        delivery_policy: delivery_policy(config),
        pace: delivery.pace.iter().map(|pace| (pace.mail_host.clone(), pace.to_pace_limits())).collect(),
        tls: delivery.tls,
        source_addresses: delivery.source_addresses.clone(),
        pools: delivery.pool_settings(),
        connections_max: outgoing_connections_max(),
        in_flight_max: delivery.tasks_in_memory_max,
        // An upper limit; a ready queue also leaves as much free space as it occupies.
        ready_max: (delivery.tasks_in_memory_max / 2).max(1),
        body_bytes_max: delivery.body_bytes_in_memory_max,
    }
}
