//! `postrider dev`: a development server on loopback that needs no setup and sends no mail to other machines.
//! (It does query the DNS about senders of mail that is received for a domain here, and it posts webhooks to any URL.)
//!
//! ```text
//! submission, API ─► queue ─► SMTP with TLS ─► smarthost: capture ─► inbox
//! 1025, no login ─► mail_host ─► received for a domain here, and ─► inbox ─► page, at / on the API's port
//! ```
//!
//! Services and listeners are those of production. The smarthost is a built-in mail host that captures every message
//! ([`capture`]), so every message takes the real path: accepted, stored, signed, queued, sent over SMTP with TLS.
//! Mail, keys and inbox are in a [`directory`] of the user, and survive a restart.

pub mod capture;
pub mod directory;
pub mod inbox;
pub mod inbox_page;
mod inbox_queries;
pub mod mail_host;
pub mod simulator;
pub mod terminal;

use parking_lot::RwLock;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use accounts::domains::{DomainError, NewDomain};
use accounts::provisioning::{ProvisionError, ProvisionedAccount};
use metrics_exporter_prometheus::PrometheusBuilder;
use model::account::{Account, Plan};
use model::credential::SecretHash;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use queue::routing::smarthosts::SmarthostEndpoint;
use serde_json::json;
use smtp::limits::SessionLimits;
use smtp::listener::ListenerConfig;
use smtp::mx::MxHandler;
use smtp::settings::ListenerRole;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use self::capture::{CaptureHandler, DkimRecords, InboxWriter};
use self::directory::{Directory, Secrets};
use self::inbox::DevInbox;
use self::inbox_page::InboxPages;
use self::mail_host::MailHost;
use self::terminal::Terminal;
use crate::active_certificates::{ActiveCertificates, ServerConfigReceiver};
use crate::admin;
use crate::certificate::Certificate;
use crate::cli::DevArguments;
use crate::config::log::LogSection;
use crate::config::{self, Config, SmarthostAddress};
use crate::serve::{self, Listeners, ServeError, StopSignals, bind};
use crate::services::{BuildError, Server};

/// Owner of the account that sends everything.
const OWNER: &str = "dev@example.com";
/// Verified domain of the account (RFC 2606 reserves it).
const DOMAIN: &str = "example.com";
/// Timeout of a DNS lookup. Without a network, mail is received after two timeouts.
const LOOKUP_MAX: Duration = Duration::from_secs(1);
/// Maximum sessions of one client address: all clients are on this machine.
const SESSIONS_MAX: usize = 1_000;
/// Longest wait for attempts and webhook requests in progress at the end: a person waits for it.
const DRAIN_MAX: Duration = Duration::from_secs(8);

/// The configuration. `dev` opens the listeners itself, as the arguments specify. Environment variables override it, as
/// for `serve`.
const CONFIGURATION: &str = r#"
hostname = "localhost"
[log]
level = "warn"
[submission]
sessions_per_address_max = 1000
[mx]
sessions_per_address_max = 1000
[api]
listen = "127.0.0.1:0"
rate_limit = "off"
[webhooks]
allow_private_destinations = true
allow_http = true
[service]
auto_verify_domains = true
sandbox_sender = "sandbox@example.com"
[billing]
stripe_webhook_secrets = "whsec_dev"
[testing]
clock_offset = "0s"
"#;

/// `[log]` section: warnings, unless the environment sets another level.
pub fn log_section() -> LogSection {
    // `run` reports errors in the environment.
    config::from_text(CONFIGURATION, config::environment()).map(|config| config.log).unwrap_or_default()
}

/// Errors of starting the development server.
#[derive(Debug, Error)]
pub enum DevError {
    /// A listener cannot be opened.
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(
        "{address} is in use by another program, possibly another `postrider dev`: stop it, or choose another address \
         with {option}"
    )]
    Taken {
        address: SocketAddr,
        /// Option that sets another address.
        option: &'static str,
    },
    /// The data directory cannot be used.
    #[error("{path}: {error}; use another directory with --data-dir DIR")]
    Directory { path: String, error: std::io::Error },
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The account or its secrets could not be created.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The domain could not be created.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The certificate could not be created.
    #[error(transparent)]
    Certificate(#[from] crate::certificate::CertificateError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// An environment variable is invalid.
    #[error("{0}")]
    Config(String),
    /// A listener is not on loopback.
    #[error("{0} is not a loopback address; to accept remote clients, use a configuration and `postrider serve`")]
    NotLoopback(SocketAddr),
}

/// Sockets of the listeners. They are bound before any file is written: a port in use leaves no changes.
struct Sockets {
    api: TcpListener,
    submission: TcpListener,
    mx: TcpListener,
    capture: TcpListener,
}

impl Sockets {
    async fn bind(arguments: &DevArguments) -> Result<Self, DevError> {
        let open = async |address: SocketAddr, option: &'static str| {
            if !address.ip().is_loopback() {
                return Err(DevError::NotLoopback(address));
            }
            match bind(address).await {
                Ok((socket, _)) => Ok(socket),
                Err(ServeError::Bind { error, .. }) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    Err(DevError::Taken { address, option })
                }
                Err(error) => Err(error.into()),
            }
        };
        Ok(Self {
            api: open(arguments.api, "--api").await?,
            submission: open(arguments.submission, "--submission").await?,
            mx: open(arguments.mx, "--mx").await?,
            capture: open(SocketAddr::new(arguments.mx.ip(), 0), "--mx").await?,
        })
    }
}

/// Facts printed when the server is ready.
struct StartReport {
    api: SocketAddr,
    submission: SocketAddr,
    mx: SocketAddr,
    account: Account,
    secrets: Secrets,
    directory: Directory,
}

/// Runs the development server until SIGINT or SIGTERM.
pub async fn run(arguments: &DevArguments) -> Result<(), DevError> {
    let mut signals = StopSignals::new()?;
    let sockets = Sockets::bind(arguments).await?;
    let directory = Directory::new(arguments.data_dir.as_deref())?;
    let directory_error = |error| DevError::Directory { path: directory.path().display().to_string(), error };
    let config = dev_config(&directory, &sockets)?;
    if arguments.fresh {
        directory.clear().map_err(directory_error)?;
    }
    directory.claim().map_err(directory_error)?;
    let server = Server::build(&config).await.map_err(|error| match error {
        BuildError::Directory { error, .. } => directory_error(error),
        error => error.into(),
    })?;
    let opened = open(arguments, sockets, &config, &server, &directory).await;
    let (listeners, ready) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            server.close().await;
            return Err(error);
        }
    };
    print_ready(&ready, arguments.json);
    signals.wait().await;
    tokio::join!(listeners.shut_down(), server.queue.drain_within(DRAIN_MAX));
    server.close().await;
    Ok(())
}

/// Opens the listeners and starts delivery.
async fn open(
    arguments: &DevArguments,
    sockets: Sockets,
    config: &Config,
    server: &Server,
    directory: &Directory,
) -> Result<(Listeners, StartReport), DevError> {
    let certificates = ActiveCertificates::new(&Certificate::self_signed(&["localhost"])?)?;
    let listeners = Listeners::new(config, server.entropy.u64());
    let records: DkimRecords = Arc::new(RwLock::new(Vec::new()));
    let (account, secrets) = provision_account(server, directory, &records).await?;
    let operator = admin::bind(&config.data_dir)?;
    let terminal = Terminal::new(server.clock.clone(), arguments.json);
    let inbox = Arc::new(DevInbox::open(directory.inbox(), server.clock.now())?);
    let writer = InboxWriter { inbox: Arc::clone(&inbox), terminal: terminal.clone(), clock: server.clock.clone() };
    let (complaints, complaint_receiver) = mpsc::channel(simulator::COMPLAINTS_MAX);
    let capture = CaptureHandler {
        writer: writer.clone(),
        records: Arc::clone(&records),
        store: server.store.clone(),
        complaints,
    };
    listeners.listen_smtp_on(
        sockets.capture,
        listener_config(&listeners, config, Some(certificates.smtp())),
        capture,
    )?;
    let mail_host = MailHost::new(
        server.inbound.clone(),
        MxHandler::new(server.inbound.clone(), server.clock.clone(), config.mx.abuse_limits()),
        writer,
    );
    // No TLS: a client that sees STARTTLS would use it, and fail at the self-signed certificate.
    let mx = listeners.listen_smtp_on(sockets.mx, listener_config(&listeners, config, None), mail_host)?;
    listeners.spawn(simulator::send_complaints(complaint_receiver, mx, terminal.clone(), listeners.stop.clone()));
    let submission = listeners.listen_submission_on(config, server, sockets.submission, certificates.smtp())?;
    let mut bound_config = config.clone();
    bound_config.submission.listen = vec![submission];
    bound_config.mx.listen = vec![mx];
    let pages = InboxPages { inbox, records, terminal };
    let api = listeners.listen_api_on(server, sockets.api, &bound_config, Arc::new(pages))?;
    let permissions = serve::admin_permissions(&bound_config, server, &listeners, None);
    if !config.ops.listen.is_empty() {
        let recorder = PrometheusBuilder::new().install_recorder();
        let recorder = recorder.map_err(|error| ServeError::Metrics(error.to_string()))?;
        serve::open_ops_listeners(&bound_config, server, &listeners, &permissions, &recorder).await?;
    }
    listeners.spawn(admin::serve(operator, server.clone(), permissions, listeners.stop.clone()));
    server.start();
    listeners.spawn(server.run_affiliate_jobs(listeners.stop.clone()));
    let directory = directory.clone();
    Ok((listeners, StartReport { api, submission, mx, account, secrets, directory }))
}

/// Settings of a listener without login; with TLS if there is a certificate.
fn listener_config(listeners: &Listeners, config: &Config, tls: Option<ServerConfigReceiver>) -> ListenerConfig {
    let limits = SessionLimits { sessions_per_address_max: SESSIONS_MAX, ..SessionLimits::default() };
    let session = watch::Sender::new(listeners.settings(config, ListenerRole::Mx, limits, tls.is_some())).subscribe();
    let networks = watch::Sender::new(Vec::new()).subscribe();
    ListenerConfig { settings: session, networks, proxies: TrustedProxies::default(), tls, implicit_tls: false }
}

fn dev_config(directory: &Directory, sockets: &Sockets) -> Result<Config, DevError> {
    let mut config = config::from_text(CONFIGURATION, config::environment()).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        DevError::Config(problems.join("\n"))
    })?;
    for variable in &config.ignored_variables {
        eprintln!("postrider: warning: the environment variable {variable} is not a setting and is ignored");
    }
    directory.path().clone_into(&mut config.data_dir);
    let capture = SmarthostEndpoint::Address(sockets.capture.local_addr()?);
    config.delivery.smarthost = Some(SmarthostAddress(capture));
    config.dns.deadline = Some(LOOKUP_MAX);
    Ok(config)
}

/// Creates the account, its secrets and its verified domain. Secrets of an earlier run are reused if they are valid.
async fn provision_account(
    server: &Server,
    directory: &Directory,
    records: &DkimRecords,
) -> Result<(Account, Secrets), DevError> {
    let owner = OWNER.parse().map_err(|_| DevError::Config(OWNER.to_owned()))?;
    let name: message::address::DomainName = DOMAIN.parse().map_err(|_| DevError::Config(DOMAIN.to_owned()))?;
    let (account, secrets) = match server.provisioning.create_account(owner, Plan::Dedicated, true).await {
        Err(ProvisionError::Taken(_)) => match load_valid_secrets(server, directory).await {
            Some(existing) => existing,
            None => store_secrets(directory, server.provisioning.create_credentials(OWNER).await?)?,
        },
        provisioned => store_secrets(directory, provisioned?)?,
    };
    let domains = &server.accounts.domains;
    match domains.create(account.id, NewDomain::with_name(name.clone()), None).await {
        Ok(_) | Err(DomainError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let domain = domains.force_verify(&name).await?.domain;
    records.write().extend(capture::dkim_records(&domain));
    Ok((account, secrets))
}

/// Account and secrets of an earlier run, if both secrets are valid.
async fn load_valid_secrets(server: &Server, directory: &Directory) -> Option<(Account, Secrets)> {
    let secrets = directory.secrets()?;
    let tenant = server.accounts.credentials.authenticate_api_key(&secrets.api_key, None).await.ok()?;
    let password = SecretHash::from_smtp_password(&secrets.smtp_password)?;
    server.accounts.credentials.authenticate_smtp_password(&password, None).await.ok()?;
    Some((tenant.account().clone(), secrets))
}

fn store_secrets(directory: &Directory, provisioned: ProvisionedAccount) -> Result<(Account, Secrets), DevError> {
    let secrets = Secrets {
        api_key: provisioned.api_key.expose().to_owned(),
        smtp_password: provisioned.smtp_password.expose().to_owned(),
    };
    directory.store_secrets(&secrets)?;
    Ok((provisioned.account, secrets))
}

fn print_ready(ready: &StartReport, as_json: bool) {
    let StartReport { api, submission, mx, account, secrets, directory } = ready;
    let Secrets { api_key: key, smtp_password: password } = secrets;
    let text = if as_json {
        let line = json!({
            "api": format!("http://{api}"),
            "submission": submission.to_string(),
            "mx": mx.to_string(),
            "inbox": format!("http://{api}{}", inbox_page::PATH),
            "account_id": account.id,
            "account_email": account.email,
            "api_key": key,
            "smtp_username": "postrider",
            "smtp_password": password,
            "domain": DOMAIN,
        });
        format!("{line}\n")
    } else {
        format!(
            "\n  postrider is running. No mail leaves this machine: every message is delivered to the inbox.\n\n  \
             inbox       http://{api}\n  \
             SMTP        {mx}  no login, accepts mail for any address\n\n  \
             API         http://{api}\n  \
             API key     {key}\n  \
             submission  {submission}  STARTTLS, with a self-signed certificate\n  \
             user name   postrider\n  \
             password    {password}\n  \
             domain      {DOMAIN}  verified for sending\n  \
             data        {}\n\n  Try it:\n\n\
             curl -s http://{api}/emails \\\n  -H 'Authorization: Bearer {key}' \\\n  \
             -H 'Content-Type: application/json' \\\n  \
             -d '{{\"from\":\"Ada <ada@{DOMAIN}>\",\"to\":\"you@example.net\",\"subject\":\"First light\",\"html\":\"<h1>It works</h1>\"}}'\n\n\
             swaks --server {mx} --from ada@{DOMAIN} --to you@example.net\n\n  \
             Test recipients: bounced@, deferred@, complained@, slow@{}\n  \
             Press Ctrl-C to stop; --fresh deletes all data. Requests and deliveries:\n\n",
            directory.path().display(),
            model::simulator::DOMAIN,
        )
    };
    let mut out = std::io::stdout();
    // Stdout may be closed.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
