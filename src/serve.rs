//! `postrider serve`: opens the doors, says so to systemd, and closes them in order.
//!
//! ```text
//! build the world ─► open every door ─► start delivery ─► SIGTERM: doors closed, attempts finished, store closed
//! ```
//!
//! SIGHUP reads the configuration and the certificates again (reload.rs). Delivery begins when every door is
//! open: a port that is taken stops the start before anything is sent.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use api::mta_sts::OwnMtaStsPolicy;
use api::room::AppState;
use api::serve::pages::Overlay;
use mail::network::IpNetwork;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use proxy::proxies::TrustedProxies;
use queue::holds::HoldError;
use rustls::ServerConfig;
use smtp::answers::SessionHandler;
use smtp::capacity::{Capacity, CapacityLimits};
use smtp::limits::SessionLimits;
use smtp::listener::{Listener, ListenerConfig};
use smtp::mx::MxHandler;
use smtp::policy::{RelayHandler, SubmissionHandler};
use smtp::settings::{ListenerRole, SessionSettings};
use store::engine::StoreState;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::acme::challenge::ActiveChallenges;
use crate::acme::{AcmeError, AcmeSettings, CertificateRenewer, CertificateStatus};
use crate::admin::{self, Permissions};
use crate::affairs;
use crate::certificate::{Certificate, CertificateError};
use crate::config::{Config, RelaySection, SecretString};
use crate::metrics::Scrape;
use crate::reload::{ConfigReloader, ReloadTargets};
use crate::world::{BuildError, Services};

/// How often the recorder tidies up, and the watchdog is told that we live.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Where submission is unless the configuration says otherwise (RFC 6409 3.1).
const SUBMISSION_PORT: u16 = 587;

/// Why the server did not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The world could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The certificate.
    #[error("[tls] {0}")]
    Certificate(#[from] CertificateError),
    /// Certificates by ACME.
    #[error("[tls.acme] {0}")]
    Acme(#[from] AcmeError),
    /// An address cannot be listened on.
    #[error("{address}: {error}")]
    Bind {
        /// Which.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// The queue cannot be let go.
    #[error("--send: {0}")]
    Send(#[from] HoldError),
    /// The system refuses something else.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// The figures.
    #[error("metrics: {0}")]
    Metrics(String),
    /// The disk failed.
    #[error("the disk failed ({0}): nothing was acknowledged since; start again when it is well")]
    Fenced(Arc<str>),
    /// A bug ended delivery.
    #[error("delivery ended by a bug (see the log); a restart goes on from disk")]
    Panicked,
}

/// What TLS shows, as it is replaced.
pub type ServerConfigReceiver = watch::Receiver<Arc<ServerConfig>>;

/// The certificates in use: for SMTP, and for HTTP with its ALPN.
pub struct ActiveCertificates {
    smtp: watch::Sender<Arc<ServerConfig>>,
    http: watch::Sender<Arc<ServerConfig>>,
    /// What the HTTP door proves to a certificate authority, if it does.
    challenges: Option<Arc<ActiveChallenges>>,
}

impl ActiveCertificates {
    /// Shows this certificate.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn new(certificate: &Certificate) -> Result<Self, CertificateError> {
        let [smtp, http] = tls_configs(certificate, None)?.map(watch::Sender::new);
        Ok(Self { smtp, http, challenges: None })
    }

    /// The same, and proofs to the authority.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn with_challenges(
        certificate: &Certificate,
        challenges: Arc<ActiveChallenges>,
    ) -> Result<Self, CertificateError> {
        let [smtp, http] = tls_configs(certificate, Some(&challenges))?.map(watch::Sender::new);
        Ok(Self { smtp, http, challenges: Some(challenges) })
    }

    /// Shows another from now on; open connections keep the old one.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn replace(&self, certificate: &Certificate) -> Result<(), CertificateError> {
        let [smtp, http] = tls_configs(certificate, self.challenges.as_ref())?;
        self.smtp.send_replace(smtp);
        self.http.send_replace(http);
        Ok(())
    }

    /// What SMTP listeners show.
    #[must_use]
    pub fn smtp(&self) -> ServerConfigReceiver {
        self.smtp.subscribe()
    }

    /// What HTTP listeners show.
    #[must_use]
    pub fn http(&self) -> ServerConfigReceiver {
        self.http.subscribe()
    }
}

/// A certificate as SMTP and as HTTP show it.
fn tls_configs(
    certificate: &Certificate,
    challenges: Option<&Arc<ActiveChallenges>>,
) -> Result<[Arc<ServerConfig>; 2], CertificateError> {
    let alpn = api::serve::alpn_protocols();
    let http = match challenges {
        Some(challenges) => certificate.server_config_with_challenges(alpn, Arc::clone(challenges)),
        None => certificate.server_config(alpn),
    };
    Ok([certificate.server_config(Vec::new())?, http?])
}

/// The doors: listeners that are bound, and what runs behind them.
pub struct Listeners {
    /// Ends all of them.
    pub stop: CancellationToken,
    tasks: TaskTracker,
    /// What all SMTP listeners share, by kind.
    capacity: Capacity,
    /// What new sessions follow.
    submission: watch::Sender<Arc<SessionSettings>>,
    relay: watch::Sender<Arc<SessionSettings>>,
    mx: watch::Sender<Arc<SessionSettings>>,
    relays: Mutex<Vec<RelayListener>>,
    proxies: TrustedProxies,
    /// What the API's first listener shares; the operator asks there as well.
    api_state: OnceLock<Arc<AppState>>,
}

/// A relay listener that is open: where, for whom, and whose mail it is.
struct RelayListener {
    address: SocketAddr,
    networks: watch::Sender<Vec<IpNetwork>>,
    account: watch::Sender<String>,
}

impl Listeners {
    /// No door yet.
    #[must_use]
    pub fn new(config: &Config, first_session: u64) -> Self {
        // Session numbers stand in Received fields: a restart does not begin at 1 again.
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
            api_state: OnceLock::new(),
        }
    }

    /// Goes on as this configuration says, as far as that is possible without a restart. Open sessions
    /// go on as they began.
    pub fn reload(&self, config: &Config) {
        self.capacity.resize(capacity_limits(config));
        let [submission, relay, mx] = session_settings(config, &self.capacity);
        self.mx.send_replace(mx);
        self.submission.send_replace(submission);
        self.relay.send_replace(relay);
        for open in self.relays.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(section) = config.relay.iter().find(|relay| relay.listen.contains(&open.address)) {
                // Whose mail it is first: nobody new comes in for the account that was.
                open.account.send_replace(section.account.clone());
                open.networks.send_replace(section.networks.clone());
            }
        }
    }

    /// Runs something until the doors close.
    pub fn spawn(&self, door: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(door);
    }

    /// Closes all doors and waits for what is under way.
    pub async fn shut_down(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Opens a submission door: with STARTTLS, or with TLS from the first byte.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub fn listen_submission(
        &self,
        config: &Config,
        world: &Services,
        address: SocketAddr,
        tls: (ServerConfigReceiver, bool),
    ) -> Result<SocketAddr, ServeError> {
        let (door, answers) = self.submission_door(config, world, tls);
        self.listen_smtp(address, door, answers)
    }

    /// Opens submission with STARTTLS on a socket that is bound already.
    ///
    /// # Errors
    /// [`ServeError::System`].
    pub fn submission_on(
        &self,
        config: &Config,
        world: &Services,
        socket: TcpListener,
        tls: ServerConfigReceiver,
    ) -> Result<SocketAddr, ServeError> {
        let (door, answers) = self.submission_door(config, world, (tls, false));
        self.listen_smtp_on(socket, door, answers)
    }

    fn submission_door(
        &self,
        config: &Config,
        world: &Services,
        (tls, implicit_tls): (ServerConfigReceiver, bool),
    ) -> (ListenerConfig, SubmissionHandler) {
        let session = self.submission.subscribe();
        let networks = watch::Sender::new(Vec::new()).subscribe();
        let proxies = self.proxies.clone();
        let door = ListenerConfig { settings: session, networks, proxies, tls: Some(tls), implicit_tls };
        (door, SubmissionHandler::new(world.intake.clone(), config.submission.username.clone()))
    }

    /// Opens a door for trusted hosts.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub fn listen_relay(
        &self,
        world: &Services,
        relay: &RelaySection,
        address: SocketAddr,
    ) -> Result<SocketAddr, ServeError> {
        let networks = watch::Sender::new(relay.networks.clone());
        let account = watch::Sender::new(relay.account.clone());
        let session = self.relay.subscribe();
        let proxies = self.proxies.clone();
        let door = ListenerConfig {
            settings: session,
            networks: networks.subscribe(),
            proxies,
            tls: None,
            implicit_tls: false,
        };
        let local = self.listen_smtp(address, door, RelayHandler::new(world.intake.clone(), account.subscribe()))?;
        let mut relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
        relays.push(RelayListener { address, networks, account });
        Ok(local)
    }

    /// Opens a door for the world: with STARTTLS, as mail hosts know it.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub fn listen_mx(
        &self,
        config: &Config,
        world: &Services,
        address: SocketAddr,
        tls: ServerConfigReceiver,
    ) -> Result<SocketAddr, ServeError> {
        let session = self.mx.subscribe();
        let networks = watch::Sender::new(Vec::new()).subscribe();
        let proxies = self.proxies.clone();
        let door = ListenerConfig { settings: session, networks, proxies, tls: Some(tls), implicit_tls: false };
        self.listen_smtp(address, door, MxHandler::new(world.inbound.clone(), config.mx.abuse_limits()))
    }

    /// What all sessions of a door share.
    #[must_use]
    pub fn settings(
        &self,
        config: &Config,
        role: ListenerRole,
        limits: SessionLimits,
        tls: bool,
    ) -> Arc<SessionSettings> {
        build_session_settings(config, (role, tls), limits, &self.capacity)
    }

    /// Opens any SMTP door.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub fn listen_smtp(
        &self,
        address: SocketAddr,
        door: ListenerConfig,
        answers: impl SessionHandler,
    ) -> Result<SocketAddr, ServeError> {
        let listener = Listener::bind(address, door, Arc::new(answers), Arc::clone(self.capacity.connection_limiter()));
        self.spawn_listener(listener.map_err(|error| ServeError::Bind { address: address.to_string(), error })?)
    }

    /// Opens an SMTP door on a socket that is bound already.
    ///
    /// # Errors
    /// [`ServeError::System`].
    pub fn listen_smtp_on(
        &self,
        socket: TcpListener,
        door: ListenerConfig,
        answers: impl SessionHandler,
    ) -> Result<SocketAddr, ServeError> {
        self.spawn_listener(Listener::from_socket(
            socket,
            door,
            Arc::new(answers),
            Arc::clone(self.capacity.connection_limiter()),
        )?)
    }

    fn spawn_listener<A: SessionHandler>(&self, listener: Listener<A>) -> Result<SocketAddr, ServeError> {
        let local = listener.local_addr()?;
        self.capacity.add_listener(listener.role());
        let stop = self.stop.clone();
        self.spawn(async move {
            if !listener.serve(stop).await {
                tracing::warn!(address = %local, "sessions that did not end in time were cut off");
            }
        });
        Ok(local)
    }

    /// What an API listener shares; it is reached here unless the configuration says otherwise.
    fn api_state(
        &self,
        world: &Services,
        config: &Config,
        reached_at: &str,
        overlay: Option<Arc<dyn Overlay>>,
    ) -> Arc<AppState> {
        let base_url = config.api.base_url.as_deref().unwrap_or(reached_at);
        let secrets = config.billing.stripe_webhook_secrets.iter();
        let options = api::room::ApiOptions {
            upgrade_url: config.billing.upgrade_url.clone(),
            billing_secrets: secrets.map(|SecretString(secret)| secret.clone()).collect(),
            proxies: self.proxies.clone(),
            forwarding_networks: config.api.forwarding_networks.clone(),
            submission: submission_endpoint(config),
            sandbox_sender: config.service.sandbox_sender.clone(),
            receives_mail: !config.mx.listen.is_empty(),
            connections_per_address_max: config.api.connections_per_address_max,
            mta_sts: config
                .mx
                .mta_sts_mode()
                .filter(|_| !config.mx.listen.is_empty())
                .map(|mode| OwnMtaStsPolicy { mode, mx: config.hostname.clone() }),
            overlay,
            ..api::room::ApiOptions::new(base_url)
        };
        AppState::new(world.intake.clone(), options)
    }

    /// Opens the API.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub async fn listen_api(
        &self,
        world: &Services,
        address: SocketAddr,
        config: &Config,
        tls: Option<api::serve::TlsConfigReceiver>,
    ) -> Result<SocketAddr, ServeError> {
        let (listener, local) = bind(address).await?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let room = self.api_state(world, config, &format!("{scheme}://{local}"), None);
        self.api_on(listener, tls, room);
        Ok(local)
    }

    /// Opens the API without TLS on a socket that is bound already, with pages beside it.
    ///
    /// # Errors
    /// [`ServeError::System`].
    pub fn api_with(
        &self,
        world: &Services,
        socket: TcpListener,
        config: &Config,
        overlay: Arc<dyn Overlay>,
    ) -> Result<SocketAddr, ServeError> {
        let local = socket.local_addr()?;
        let room = self.api_state(world, config, &format!("http://{local}"), Some(overlay));
        self.api_on(socket, None, room);
        Ok(local)
    }

    fn api_on(&self, listener: TcpListener, tls: Option<api::serve::TlsConfigReceiver>, room: Arc<AppState>) {
        let _ = self.api_state.set(Arc::clone(&room));
        let stop = self.stop.clone();
        self.spawn(async move {
            if let Err(error) = api::serve::serve_api(listener, tls, room, stop).await {
                tracing::error!(%error, "the API's listener failed");
            }
        });
    }

    /// Opens the door to which the authority comes for proofs by HTTP-01.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub async fn listen_challenges(
        &self,
        keeper: &Arc<CertificateRenewer>,
        address: SocketAddr,
    ) -> Result<SocketAddr, ServeError> {
        let (listener, local) = bind(address).await?;
        let (keeper, stop) = (Arc::clone(keeper), self.stop.clone());
        let answer = move |host: String, token: String| {
            let keeper = Arc::clone(&keeper);
            async move { keeper.http_challenge_response(&host, &token).await }
        };
        self.spawn(async move {
            if let Err(error) = api::serve::serve_acme_challenges(listener, answer, stop).await {
                tracing::error!(%error, "the listener for certificate authorities failed");
            }
        });
        Ok(local)
    }
}

/// Binds a TCP listener.
///
/// # Errors
/// [`ServeError::Bind`].
pub async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error| ServeError::Bind { address: address.to_string(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

/// What SMTP clients are told: the first listener, with STARTTLS if there is one.
fn submission_endpoint(config: &Config) -> api::room::SubmissionEndpoint {
    let own = &config.submission;
    let (clear, implicit) = (own.listen.first(), own.implicit_tls.first());
    api::room::SubmissionEndpoint {
        host: config.hostname.to_string(),
        port: clear.or(implicit).map_or(SUBMISSION_PORT, SocketAddr::port),
        implicit_tls: clear.is_none() && implicit.is_some(),
        username: own.username.clone(),
    }
}

/// What sessions of submission and of relays follow.
fn session_settings(config: &Config, capacity: &Capacity) -> [Arc<SessionSettings>; 3] {
    let budget = Arc::clone(capacity.content_budget(ListenerRole::Mx));
    let mx = SessionSettings::new(ListenerRole::Mx, config.hostname.clone(), config.mx.session_limits(), budget, true);
    [
        build_session_settings(config, (ListenerRole::Submission, true), SessionLimits::default(), capacity),
        build_session_settings(config, (ListenerRole::Relay, false), SessionLimits::for_relay(), capacity),
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
    (role, tls): (ListenerRole, bool),
    limits: SessionLimits,
    capacity: &Capacity,
) -> Arc<SessionSettings> {
    let limits = effective_limits(config, role, limits);
    let budget = Arc::clone(capacity.content_budget(role));
    Arc::new(SessionSettings::new(role, config.hostname.clone(), limits, budget, tls))
}

fn effective_limits(config: &Config, role: ListenerRole, limits: SessionLimits) -> SessionLimits {
    let own = &config.submission;
    let sessions_per_address_max = match role {
        // Trusted hosts are few and busy: one address may have all sessions.
        ListenerRole::Relay => limits.sessions_per_address_max,
        ListenerRole::Submission | ListenerRole::Mx => own.sessions_per_address_max,
    };
    SessionLimits {
        message_bytes_max: own.message_bytes_max,
        recipients_max: own.recipients_max,
        sessions_per_address_max,
        ..limits
    }
}

/// Runs the server until SIGTERM or SIGINT. `file` is the configuration's, read again on SIGHUP. With `send` a queue that
/// is held since its store was restored is let go.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(config: Config, file: PathBuf, send: bool) -> Result<(), ServeError> {
    // Heard from the first moment: a signal before that would end the process where it stands.
    let mut signals = ServiceSignals::new()?;
    let figures =
        PrometheusBuilder::new().install_recorder().map_err(|error| ServeError::Metrics(error.to_string()))?;
    crate::metric_help::describe_metrics();
    let certificates = Certificate::from_config(&config)?.as_ref().map(ActiveCertificates::new).transpose()?;
    let world = tokio::select! {
        built = Services::build(&config) => built?,
        // Other nodes, or a database, may keep us waiting for long.
        () = signals.stop.wait() => return Ok(()),
    };
    if send {
        world.worker.lift_queue_hold().await?;
    }
    let keeper = match AcmeSettings::from_config(&config) {
        Some(wish) => Some(CertificateRenewer::open(wish, &world).await?),
        None => None,
    };
    let certificates = keeper.as_ref().map(|keeper| Arc::clone(keeper.certificates())).or(certificates.map(Arc::new));
    let doors = Listeners::new(&config, world.entropy.u64());
    let operator = admin::bind(&config.data_dir)?;
    let operators_socket = config.data_dir.join(admin::SOCKET);
    let shown = (certificates.as_deref(), keeper.as_ref());
    let opened = open_listeners(&config, &world, &doors, shown, figures.clone()).await;
    if let Err(error) = opened {
        tokio::join!(doors.shut_down(), world.worker.drain());
        world.close().await;
        return Err(error);
    }
    world.warn_if_sandbox_unusable().await;
    world.start();
    doors.spawn(affairs::run(world.intake.clone(), doors.stop.clone()));
    let standing = keeper.as_ref().map(|keeper| keeper.status());
    open_admin_socket(&config, &world, &doors, (operator, standing));
    // Without systemd there is nobody to tell.
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Ready]);
    tracing::info!(hostname = %config.hostname, "ready");
    let mut reload = ConfigReloader::new(file, config);
    let inside = ReloadTargets { services: &world, listeners: &doors, certificates: certificates.as_deref() };
    let ended = run_until_stopped(&inside, &mut reload, &figures, &mut signals).await;
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Stopping]);
    tracing::info!("closing: no new mail is taken, attempts under way are finished");
    // Both have their own bound; together they stay within what a service manager waits.
    tokio::join!(doors.shut_down(), world.worker.drain());
    // A disk that failed on the way out is no good end either.
    let state = world.store.health().state;
    world.close().await;
    let _ = std::fs::remove_file(operators_socket);
    match state {
        StoreState::Fenced(why) => Err(ServeError::Fenced(why)),
        _ => ended,
    }
}

async fn open_listeners(
    config: &Config,
    world: &Services,
    doors: &Listeners,
    (certificates, keeper): (Option<&ActiveCertificates>, Option<&Arc<CertificateRenewer>>),
    figures: PrometheusHandle,
) -> Result<(), ServeError> {
    if let Some(certificates) = certificates {
        for address in &config.submission.listen {
            doors.listen_submission(config, world, *address, (certificates.smtp(), false))?;
        }
        for address in &config.submission.implicit_tls {
            doors.listen_submission(config, world, *address, (certificates.smtp(), true))?;
        }
        for address in &config.mx.listen {
            doors.listen_mx(config, world, *address, certificates.smtp())?;
        }
    }
    for relay in &config.relay {
        for address in &relay.listen {
            doors.listen_relay(world, relay, *address)?;
        }
    }
    for address in &config.api.listen {
        let tls = certificates.filter(|_| config.api.tls).map(ActiveCertificates::http);
        doors.listen_api(world, *address, config, tls).await?;
    }
    if let Some(keeper) = keeper {
        for address in config.tls.acme.iter().flat_map(|acme| &acme.http_listen) {
            doors.listen_challenges(keeper, *address).await?;
        }
        // The authority comes when it is asked: by now somebody is at the door.
        doors.spawn(Arc::clone(keeper).run(doors.stop.clone()));
    }
    for address in &config.ops.listen {
        let (listener, _) = bind(*address).await?;
        let scrape = Scrape::new(world.clone(), figures.clone(), config.data_dir.clone());
        let (store, stop) = (world.store.clone(), doors.stop.clone());
        doors.spawn(async move {
            let health = move || api::health::unhealthy_reason(&store.health());
            if let Err(error) = api::serve::serve_ops(listener, move || scrape.render(), health, stop).await {
                tracing::error!(%error, "the operator's listener failed");
            }
        });
    }
    Ok(())
}

/// Opens the operator's door, when the API's are open: what an owner may ask is asked there. How certificates by ACME
/// stand is told there, too.
pub fn open_admin_socket(
    config: &Config,
    world: &Services,
    doors: &Listeners,
    (listener, certificate): (UnixListener, Option<watch::Receiver<CertificateStatus>>),
) {
    let rights = Permissions {
        default_plan: config.service.default_plan,
        submission_username: config.submission.username.clone(),
        may_advance_clock: config.testing.clock_offset.is_some(),
        data_dir: config.data_dir.clone(),
        certificate,
        api_state: doors
            .api_state
            .get()
            .cloned()
            .unwrap_or_else(|| doors.api_state(world, config, "http://localhost", None)),
        status: admin::StatusFacts::of(config),
        checking: Arc::new(Semaphore::new(1)),
    };
    doors.spawn(admin::serve(listener, world.clone(), rights, doors.stop.clone()));
}

/// SIGTERM and SIGINT: the end.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Hears them from now on.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns when one has come.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What the service manager says by signals.
struct ServiceSignals {
    stop: StopSignals,
    hang_up: Signal,
}

impl ServiceSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { stop: StopSignals::new()?, hang_up: signal(SignalKind::hangup())? })
    }
}

/// Waits for the signal to stop; meanwhile answers SIGHUP, the watchdog and the figures.
async fn run_until_stopped(
    inside: &ReloadTargets<'_>,
    reload: &mut ConfigReloader,
    figures: &PrometheusHandle,
    signals: &mut ServiceSignals,
) -> Result<(), ServeError> {
    let world = inside.services;
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    loop {
        tokio::select! {
            () = signals.stop.wait() => return Ok(()),
            _ = signals.hang_up.recv() => reload.reload(inside),
            _ = heartbeat.tick() => {
                // Both are over only with a restart: the service manager is to make one.
                if let StoreState::Fenced(why) = world.store.health().state {
                    return Err(ServeError::Fenced(why));
                }
                if world.worker.has_failed() {
                    return Err(ServeError::Panicked);
                }
                figures.run_upkeep();
                let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Watchdog]);
            }
        }
    }
}
