//! `postrider serve`: starts the services, opens the listeners, notifies systemd, and shuts down in order.
//!
//! ```text
//! build services ─► open all listeners ─► start delivery ─► SIGTERM: close listeners, finish attempts, close store
//! ```
//!
//! SIGHUP reloads the configuration and the certificates (reload.rs). Delivery starts after all listeners are open: a
//! port that is in use makes the start fail before anything is sent.

use parking_lot::Mutex;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api::serve::static_pages::Overlay;
use api::server::ApiServer;
use api::state::{ApiOptions, ConnectionOptions, OwnMtaStsPolicy, PageOptions, SubmissionEndpoint};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use model::cidr::IpNetwork;
use model::oauth::OAuthResource;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use queue::admin::hold_admin::HoldError;
use smtp::capacity::{Capacity, CapacityLimits};
use smtp::limits::SessionLimits;
use smtp::listener::{Listener, ListenerConfig, ServedHandler};
use smtp::mx::MxHandler;
use smtp::sending_handlers::{RelayHandler, SubmissionHandler};
use smtp::settings::{ListenerRole, SessionSettings};
use store::engine::StoreState;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::acme::{AcmeError, AcmeSettings, CertificateRenewer};
use crate::active_certificates::{ActiveCertificates, ServerConfigReceiver};
use crate::admin::console_access::ConsoleAccess;
use crate::admin::{self, Permissions};
use crate::certificate::{Certificate, CertificateError};
use crate::config::{Config, RelaySection, SecretString};
use crate::console::OperatorConsole;
use crate::dashboard::DashboardPages;
use crate::docs_pages::DocsPages;
use crate::mcp::McpEndpoint;
use crate::metrics::Scrape;
use crate::reload::{ConfigReloader, ReloadTargets};
use crate::services::{BuildError, Server};
use crate::start_wait;

/// Interval of the recorder's upkeep, the systemd watchdog, and the health check.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Default port of submission (RFC 6409 3.1).
const SUBMISSION_PORT: u16 = 587;

/// Errors of starting or running the server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The services could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The certificate files are invalid.
    #[error("[tls] {0}")]
    Certificate(#[from] CertificateError),
    /// ACME could not be started.
    #[error("[tls.acme] {0}")]
    Acme(#[from] AcmeError),
    /// A listener cannot be opened.
    #[error("{address}: {error}")]
    Bind { address: String, error: std::io::Error },
    /// The queue hold cannot be lifted.
    #[error("--send: {0}")]
    Send(#[from] HoldError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// The metrics recorder cannot be installed.
    #[error("metrics: {0}")]
    Metrics(String),
    /// The disk failed, and the store stopped writing.
    #[error("disk failure ({0}): nothing has been acknowledged since; fix the disk, then restart")]
    Fenced(Arc<str>),
    /// A bug ended delivery.
    #[error("delivery stopped because of a bug (see the log); after a restart, it continues from disk")]
    Panicked,
}

/// Open listeners and their tasks.
pub struct Listeners {
    /// Stops all listeners.
    pub stop: CancellationToken,
    tasks: TaskTracker,
    /// Limits that SMTP listeners share, by kind.
    capacity: Capacity,
    /// Settings of new sessions.
    submission: watch::Sender<Arc<SessionSettings>>,
    relay: watch::Sender<Arc<SessionSettings>>,
    mx: watch::Sender<Arc<SessionSettings>>,
    relays: Mutex<Vec<RelayListener>>,
    proxies: TrustedProxies,
    /// The server of the first API listener. The admin socket calls the same operations through it.
    api_server: OnceLock<Arc<ApiServer>>,
}

/// An open relay listener: its address, permitted networks and account.
struct RelayListener {
    address: SocketAddr,
    networks: watch::Sender<Vec<IpNetwork>>,
    account: watch::Sender<String>,
}

impl Listeners {
    /// Creates the shared state, without a listener.
    pub fn new(config: &Config, first_session: u64) -> Self {
        // Session numbers appear in Received fields, so a restart does not begin with 1.
        let capacity = Capacity::new(capacity_limits(config), first_session);
        let [submission, relay, mx] = session_settings(config, &capacity).map(watch::Sender::new);
        Self {
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            capacity,
            submission,
            relay,
            mx,
            relays: Mutex::default(),
            proxies: TrustedProxies::new(&config.proxy.networks),
            api_server: OnceLock::new(),
        }
    }

    /// Applies a configuration as far as possible without a restart. Open sessions keep their settings.
    pub fn reload(&self, config: &Config) {
        self.capacity.resize(capacity_limits(config));
        let [submission, relay, mx] = session_settings(config, &self.capacity);
        self.mx.send_replace(mx);
        self.submission.send_replace(submission);
        self.relay.send_replace(relay);
        for listener in self.relays.lock().iter() {
            if let Some(section) = config.relay.iter().find(|relay| relay.listen.contains(&listener.address)) {
                // The account first: no new client may submit for the old account.
                listener.account.send_replace(section.account.clone());
                listener.networks.send_replace(section.networks.clone());
            }
        }
    }

    /// Spawns a task that `shut_down` waits for. Boxed, so that the runtime's code is compiled once for all of them.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
        self.tasks.spawn(task);
    }

    /// Stops all listeners and waits for their tasks.
    pub async fn shut_down(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Opens a submission listener, with STARTTLS or implicit TLS.
    pub fn listen_submission(
        &self,
        config: &Config,
        server: &Server,
        address: SocketAddr,
        tls: ServerConfigReceiver,
        implicit_tls: bool,
    ) -> Result<SocketAddr, ServeError> {
        let (listener_config, handler) = self.submission_listener_config(config, server, tls, implicit_tls);
        self.listen_smtp(address, listener_config, handler)
    }

    /// Opens submission with STARTTLS on a bound socket.
    pub fn listen_submission_on(
        &self,
        config: &Config,
        server: &Server,
        socket: TcpListener,
        tls: ServerConfigReceiver,
    ) -> Result<SocketAddr, ServeError> {
        let (listener_config, handler) = self.submission_listener_config(config, server, tls, false);
        self.listen_smtp_on(socket, listener_config, handler)
    }

    fn submission_listener_config(
        &self,
        config: &Config,
        server: &Server,
        tls: ServerConfigReceiver,
        implicit_tls: bool,
    ) -> (ListenerConfig, SubmissionHandler) {
        let listener_config = ListenerConfig { implicit_tls, ..self.listener_config(&self.submission, Some(tls)) };
        (listener_config, server.submission_handler(&config.submission.username))
    }

    /// Opens a listener for trusted hosts.
    pub fn listen_relay(
        &self,
        server: &Server,
        relay: &RelaySection,
        address: SocketAddr,
    ) -> Result<SocketAddr, ServeError> {
        let networks = watch::Sender::new(relay.networks.clone());
        let account = watch::Sender::new(relay.account.clone());
        let listener_config =
            ListenerConfig { networks: networks.subscribe(), ..self.listener_config(&self.relay, None) };
        let local = self.listen_smtp(
            address,
            listener_config,
            RelayHandler::new(server.message_submitter(), account.subscribe()),
        )?;
        let mut relays = self.relays.lock();
        relays.push(RelayListener { address, networks, account });
        Ok(local)
    }

    /// Opens a listener for mail from other servers, with STARTTLS.
    pub fn listen_mx(
        &self,
        config: &Config,
        server: &Server,
        address: SocketAddr,
        tls: ServerConfigReceiver,
    ) -> Result<SocketAddr, ServeError> {
        self.listen_smtp(
            address,
            self.listener_config(&self.mx, Some(tls)),
            MxHandler::new(server.inbound.clone(), server.clock.clone(), config.mx.abuse_limits()),
        )
    }

    fn listener_config(
        &self,
        settings: &watch::Sender<Arc<SessionSettings>>,
        tls: Option<ServerConfigReceiver>,
    ) -> ListenerConfig {
        let networks = watch::Sender::new(Vec::new()).subscribe();
        let proxies = self.proxies.clone();
        ListenerConfig { settings: settings.subscribe(), networks, proxies, tls, implicit_tls: false }
    }

    /// Builds the settings of a listener's sessions.
    pub fn settings(
        &self,
        config: &Config,
        role: ListenerRole,
        limits: SessionLimits,
        tls: bool,
    ) -> Arc<SessionSettings> {
        build_session_settings(config, role, tls, limits, &self.capacity)
    }

    /// Opens an SMTP listener.
    pub fn listen_smtp(
        &self,
        address: SocketAddr,
        listener_config: ListenerConfig,
        handler: impl ServedHandler,
    ) -> Result<SocketAddr, ServeError> {
        let listener =
            Listener::bind(address, listener_config, Arc::new(handler), Arc::clone(&self.capacity.connections));
        self.spawn_listener(listener.map_err(|error| ServeError::Bind { address: address.to_string(), error })?)
    }

    /// Opens an SMTP listener on a bound socket.
    pub fn listen_smtp_on(
        &self,
        socket: TcpListener,
        listener_config: ListenerConfig,
        handler: impl ServedHandler,
    ) -> Result<SocketAddr, ServeError> {
        self.spawn_listener(Listener::from_socket(
            socket,
            listener_config,
            Arc::new(handler),
            Arc::clone(&self.capacity.connections),
        )?)
    }

    fn spawn_listener<A: ServedHandler>(&self, listener: Listener<A>) -> Result<SocketAddr, ServeError> {
        let local = listener.local_addr()?;
        self.capacity.add_listener(listener.role());
        let stop = self.stop.clone();
        self.spawn(async move {
            if !A::serve(listener, stop).await {
                tracing::warn!(address = %local, "sessions were cut off at the end of the shutdown timeout");
            }
        });
        Ok(local)
    }

    /// The API with its state and router, and the API reference; `default_base_url` is used unless the configuration
    /// names another.
    fn api_server(
        &self,
        server: &Server,
        config: &Config,
        default_base_url: &str,
        further_pages: Option<Arc<dyn Overlay>>,
    ) -> Arc<ApiServer> {
        let base_url = config.api.base_url.as_deref().unwrap_or(default_base_url);
        let secrets = config.billing.stripe_webhook_secrets.iter();
        let mcp_metadata = api::oauth::metadata::resource_metadata_url(base_url, OAuthResource::Mcp);
        let options = ApiOptions {
            upgrade_url: config.billing.upgrade_url.clone(),
            billing_secrets: secrets.map(|SecretString(secret)| secret.clone()).collect(),
            submission: submission_endpoint(config),
            sandbox_sender: config.service.sandbox_sender.clone(),
            receives_mail: !config.mx.listen.is_empty(),
            connections: ConnectionOptions {
                proxies: self.proxies.clone(),
                forwarding_networks: config.api.forwarding_networks.clone(),
                per_address_max: config.api.connections_per_address_max,
                ..ConnectionOptions::default()
            },
            mta_sts: config
                .mx
                .mta_sts_mode()
                .filter(|_| !config.mx.listen.is_empty())
                .map(|mode| OwnMtaStsPolicy { mode, mx: config.hostname.clone() }),
            pages: PageOptions {
                with_sessions: Some(Arc::new(DashboardPages { has_root: further_pages.is_none() })),
                mounted_service: Some(Arc::new(McpEndpoint::new(base_url).with_resource_metadata(mcp_metadata))),
                overlay: Some(Arc::new(DocsPages::new(base_url, further_pages))),
            },
            ..ApiOptions::new(base_url)
        };
        let Server { queue, accounts, affiliate, .. } = server.clone();
        ApiServer::new(queue, accounts, affiliate, options)
    }

    /// Opens an API listener.
    pub async fn listen_api(
        &self,
        server: &Server,
        address: SocketAddr,
        config: &Config,
        tls: Option<httpd::listener::TlsConfigReceiver>,
    ) -> Result<SocketAddr, ServeError> {
        let (listener, local) = bind(address).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let api_server = self.api_server(server, config, &format!("{scheme}://{local}"), None);
        self.api_on(listener, tls, api_server);
        Ok(local)
    }

    /// Opens the API without TLS on a bound socket, with further pages.
    pub fn listen_api_on(
        &self,
        server: &Server,
        socket: TcpListener,
        config: &Config,
        overlay: Arc<dyn Overlay>,
    ) -> Result<SocketAddr, ServeError> {
        let local = socket.local_addr()?;
        let api_server = self.api_server(server, config, &format!("http://{local}"), Some(overlay));
        self.api_on(socket, None, api_server);
        Ok(local)
    }

    fn api_on(&self, listener: TcpListener, tls: Option<httpd::listener::TlsConfigReceiver>, server: Arc<ApiServer>) {
        let _ = self.api_server.set(Arc::clone(&server));
        let stop = self.stop.clone();
        self.spawn(async move {
            if let Err(error) = api::serve::serve_api(listener, tls, server, stop).await {
                tracing::error!(%error, "the API's listener failed");
            }
        });
    }

    /// Opens the listener for HTTP-01 challenges.
    pub async fn listen_challenges(
        &self,
        renewer: &Arc<CertificateRenewer>,
        address: SocketAddr,
    ) -> Result<SocketAddr, ServeError> {
        let (listener, local) = bind(address).await?;
        let (renewer, stop) = (Arc::clone(renewer), self.stop.clone());
        let respond = move |host: String, token: String| {
            let renewer = Arc::clone(&renewer);
            async move { renewer.http_challenge_response(&host, &token).await }
        };
        self.spawn(async move {
            if let Err(error) = api::serve::serve_acme_challenges(listener, respond, stop).await {
                tracing::error!(%error, "ACME HTTP-01 listener failed");
            }
        });
        Ok(local)
    }
}

/// Binds a TCP listener.
pub async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error| ServeError::Bind { address: address.to_string(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

/// Submission endpoint that customers are shown: the first listener with STARTTLS, otherwise one with implicit TLS.
fn submission_endpoint(config: &Config) -> SubmissionEndpoint {
    let submission = &config.submission;
    let (starttls, implicit) = (submission.listen.first(), submission.implicit_tls.first());
    SubmissionEndpoint {
        host: config.hostname.to_string(),
        port: starttls.or(implicit).map_or(SUBMISSION_PORT, SocketAddr::port),
        implicit_tls: starttls.is_none() && implicit.is_some(),
        username: submission.username.clone(),
    }
}

/// Session settings of submission, relay and MX listeners.
fn session_settings(config: &Config, capacity: &Capacity) -> [Arc<SessionSettings>; 3] {
    let budget = Arc::clone(capacity.content_budget(ListenerRole::Mx));
    let mx = SessionSettings::new(ListenerRole::Mx, config.hostname.clone(), config.mx.session_limits(), budget, true);
    [
        build_session_settings(config, ListenerRole::Submission, true, SessionLimits::default(), capacity),
        build_session_settings(config, ListenerRole::Relay, false, SessionLimits::for_relay(), capacity),
        Arc::new(mx),
    ]
}

fn capacity_limits(config: &Config) -> CapacityLimits {
    CapacityLimits {
        sessions_max: config.submission.sessions_max,
        bytes_max: config.submission.bytes_in_flight_max,
        message_bytes_max: config.submission.message_bytes_max,
        mx_message_bytes_max: config.mx.message_bytes_max,
    }
}

fn build_session_settings(
    config: &Config,
    role: ListenerRole,
    tls: bool,
    limits: SessionLimits,
    capacity: &Capacity,
) -> Arc<SessionSettings> {
    let limits = effective_limits(config, role, limits);
    let budget = Arc::clone(capacity.content_budget(role));
    Arc::new(SessionSettings::new(role, config.hostname.clone(), limits, budget, tls))
}

fn effective_limits(config: &Config, role: ListenerRole, limits: SessionLimits) -> SessionLimits {
    let submission = &config.submission;
    let sessions_per_address_max = match role {
        // Trusted hosts are few and busy: one address may use all sessions.
        ListenerRole::Relay => limits.sessions_per_address_max,
        ListenerRole::Submission | ListenerRole::Mx => submission.sessions_per_address_max,
    };
    SessionLimits {
        message_bytes_max: submission.message_bytes_max,
        recipients_max: submission.recipients_max,
        sessions_per_address_max,
        ..limits
    }
}

/// Runs the server until SIGTERM or SIGINT. `file` is the configuration file, which SIGHUP reloads. With `send`, the
/// hold that a restore set on the queue is lifted.
pub async fn serve(config: Config, file: PathBuf, send: bool) -> Result<(), ServeError> {
    // Handles signals from the start: an earlier signal would kill the process.
    let mut signals = ServiceSignals::new()?;
    let recorder =
        PrometheusBuilder::new().install_recorder().map_err(|error| ServeError::Metrics(error.to_string()))?;
    crate::metric_help::describe_metrics();
    let certificates = Certificate::from_config(&config)?.as_ref().map(ActiveCertificates::new).transpose()?;
    let Some((server, renewer)) = build_server(&config, send, &mut signals.stop).await? else { return Ok(()) };
    let certificates =
        renewer.as_ref().map(|renewer| Arc::clone(renewer.certificates())).or(certificates.map(Arc::new));
    let listeners = Listeners::new(&config, server.entropy.u64());
    let operator = admin::bind(&config.data_dir)?;
    let operators_socket = config.data_dir.join(admin::SOCKET);
    let active = certificates.as_deref();
    let opened = async {
        open_listeners(&config, &server, &listeners, active, renewer.as_ref()).await?;
        let permissions = admin_permissions(&config, &server, &listeners, renewer.clone());
        open_ops_listeners(&config, &server, &listeners, &permissions, &recorder).await?;
        Ok(permissions)
    };
    let permissions = match opened.await {
        Ok(permissions) => permissions,
        Err(error) => {
            tokio::join!(listeners.shut_down(), server.queue.drain());
            server.close().await;
            return Err(error);
        }
    };
    server.warn_if_sandbox_unusable().await;
    server.warn_of_missing_relay_accounts(&config).await;
    server.start();
    listeners.spawn(server.run_affiliate_jobs(listeners.stop.clone()));
    listeners.spawn(admin::serve(operator, server.clone(), permissions, listeners.stop.clone()));
    // Fails without systemd, which is no error.
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Ready]);
    tracing::info!(hostname = %config.hostname, "ready");
    let mut reloader = ConfigReloader::new(file, config);
    let targets = ReloadTargets { server: &server, listeners: &listeners, certificates: certificates.as_deref() };
    let result = run_until_stopped(&targets, &mut reloader, &recorder, &mut signals).await;
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Stopping]);
    tracing::info!("shutting down, draining");
    // Both have timeouts; together they stay within the service manager's timeout.
    tokio::join!(listeners.shut_down(), server.queue.drain());
    // A disk failure during the shutdown is an error too.
    let state = server.store.health().state;
    server.close().await;
    let _ = std::fs::remove_file(operators_socket);
    match state {
        StoreState::Fenced(reason) => Err(ServeError::Fenced(reason)),
        _ => result,
    }
}

/// A server, and the renewal of its certificate if ACME is configured.
type ServerWithRenewer = (Server, Option<Arc<CertificateRenewer>>);

/// Builds the server and the certificate renewal. With `send`, lifts the hold on the queue. Returns `None` if the stop
/// signal came first: waiting for other nodes or a database can take long.
async fn build_server(
    config: &Config,
    send: bool,
    stop: &mut StopSignals,
) -> Result<Option<ServerWithRenewer>, ServeError> {
    let server = tokio::select! {
        built = Server::build(config) => built?,
        () = stop.wait() => return Ok(None),
    };
    let prepared = tokio::select! {
        prepared = prepare_server(config, &server, send) => prepared.map(Some),
        () = stop.wait() => Ok(None),
    };
    match prepared {
        Ok(Some(renewer)) => Ok(Some((server, renewer))),
        // The server has leases of partitions, which other nodes could not take before they expire.
        stopped => {
            server.close().await;
            stopped.map(|_| None)
        }
    }
}

/// Lifts the hold on the queue if `send` is set, and opens the certificate renewal.
async fn prepare_server(
    config: &Config,
    server: &Server,
    send: bool,
) -> Result<Option<Arc<CertificateRenewer>>, ServeError> {
    if send {
        let queues = &server.queue.delivery.queues;
        start_wait::retry_step(|| queues.lift_queue_hold(), HoldError::is_away).await?;
    }
    match AcmeSettings::from_config(config) {
        Some(settings) => Ok(Some(CertificateRenewer::open(settings, server).await?)),
        None => Ok(None),
    }
}

async fn open_listeners(
    config: &Config,
    server: &Server,
    listeners: &Listeners,
    certificates: Option<&ActiveCertificates>,
    renewer: Option<&Arc<CertificateRenewer>>,
) -> Result<(), ServeError> {
    if let Some(certificates) = certificates {
        for address in &config.submission.listen {
            listeners.listen_submission(config, server, *address, certificates.smtp(), false)?;
        }
        for address in &config.submission.implicit_tls {
            listeners.listen_submission(config, server, *address, certificates.smtp(), true)?;
        }
        for address in &config.mx.listen {
            listeners.listen_mx(config, server, *address, certificates.smtp())?;
        }
    }
    for relay in &config.relay {
        for address in &relay.listen {
            listeners.listen_relay(server, relay, *address)?;
        }
    }
    for address in &config.api.listen {
        let tls = certificates.filter(|_| config.api.tls).map(ActiveCertificates::http);
        listeners.listen_api(server, *address, config, tls).await?;
    }
    if let Some(renewer) = renewer {
        for address in config.tls.acme.iter().flat_map(|acme| &acme.http_listen) {
            listeners.listen_challenges(renewer, *address).await?;
        }
        // The first order needs an open listener for its challenge.
        listeners.spawn(Arc::clone(renewer).run(listeners.stop.clone()));
    }
    Ok(())
}

/// Opens the operator's listeners: metrics, health and console. Returns their addresses.
pub async fn open_ops_listeners(
    config: &Config,
    server: &Server,
    listeners: &Listeners,
    permissions: &Permissions,
    recorder: &PrometheusHandle,
) -> Result<Vec<SocketAddr>, ServeError> {
    let mut bound = Vec::new();
    for address in &config.ops.listen {
        bound.push(bind(*address).await?);
    }
    let addresses: Vec<SocketAddr> = bound.iter().map(|(_, local)| *local).collect();
    let loopback = addresses.iter().find(|local| local.ip().is_loopback());
    let console_url = config.ops.console_url.as_ref().map(|url| url.trim_end_matches('/').to_owned());
    let is_configured = console_url.is_some();
    if let Some(url) = console_url.or_else(|| loopback.map(|local| format!("http://{local}"))) {
        permissions.console.set_base_url(url);
    }
    let stop = listeners.stop.clone();
    let console = Arc::new(OperatorConsole::new(server.clone(), permissions.clone(), config.clone(), stop.clone()));
    if !bound.is_empty() {
        listeners.spawn(Arc::clone(&console).sample_queue(stop));
    }
    for (listener, local) in bound {
        let scrape = Scrape::new(server.clone(), recorder.clone(), config.data_dir.clone());
        let (services, stop) = (server.queue.services.clone(), listeners.stop.clone());
        let has_console = is_configured || local.ip().is_loopback();
        let pages = has_console.then(|| Arc::clone(&console) as Arc<dyn api::serve::ops::OpsPages>);
        listeners.spawn(async move {
            let health =
                move || api::health::unhealthy_reason(&services.store.health(), services.leases.no_partition_reason());
            if let Err(error) = api::serve::serve_ops(listener, move || scrape.render(), health, pages, stop).await {
                tracing::error!(%error, "ops listener failed");
            }
        });
    }
    Ok(addresses)
}

/// Settings and handles of the admin requests. To be called after the API's listeners are open, whose state it shares.
pub fn admin_permissions(
    config: &Config,
    server: &Server,
    listeners: &Listeners,
    certificate: Option<Arc<CertificateRenewer>>,
) -> Permissions {
    Permissions {
        default_plan: config.service.default_plan,
        submission_username: config.submission.username.clone(),
        may_advance_clock: config.testing.clock_offset.is_some(),
        data_dir: config.data_dir.clone(),
        certificate,
        api_server: listeners
            .api_server
            .get()
            .cloned()
            .unwrap_or_else(|| listeners.api_server(server, config, "http://localhost", None)),
        status: admin::StatusFacts::of(config),
        check_permit: Arc::new(Semaphore::new(1)),
        console: Arc::new(ConsoleAccess::new(server.clock.clone(), server.entropy.clone())),
    }
}

/// SIGTERM and SIGINT, which stop the server.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the signal handlers.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Signals of the service manager.
struct ServiceSignals {
    stop: StopSignals,
    reload: Signal,
}

impl ServiceSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { stop: StopSignals::new()?, reload: signal(SignalKind::hangup())? })
    }
}

/// Waits for the stop signal; meanwhile handles SIGHUP, the watchdog and the recorder's upkeep.
async fn run_until_stopped(
    targets: &ReloadTargets<'_>,
    reloader: &mut ConfigReloader,
    recorder: &PrometheusHandle,
    signals: &mut ServiceSignals,
) -> Result<(), ServeError> {
    let server = targets.server;
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    loop {
        tokio::select! {
            () = signals.stop.wait() => return Ok(()),
            _ = signals.reload.recv() => reloader.reload(targets),
            _ = heartbeat.tick() => {
                // Only a restart recovers from both, so the process ends and the service manager restarts it.
                if let StoreState::Fenced(reason) = server.store.health().state {
                    return Err(ServeError::Fenced(reason));
                }
                if server.queue.services.has_failed() {
                    return Err(ServeError::Panicked);
                }
                recorder.run_upkeep();
                let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Watchdog]);
            }
        }
    }
}
