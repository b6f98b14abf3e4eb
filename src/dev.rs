//! `postrider dev`: everything on loopback, nothing to set up, no mail leaves the machine. (The senders of mail that comes
//! in for a domain here are looked up in the DNS, and webhooks go to the URLs that they are given.)
//!
//! ```text
//! submission, API ─► queue ─► SMTP with TLS ─► the smarthost: capture ─► inbox
//! 1025, no login ─► mail_host ─► received for a domain here, and ─────► inbox ─► page, at / on the API's port
//! ```
//!
//! The services and listeners are those of production; the smarthost is a mail host of its own that catches everything
//! ([`capture`]). So every message takes the real path: accepted, on disk, signed, queued, sent over SMTP with TLS. The
//! mail, the keys and the inbox are in a [`directory`] of the user's, and survive a restart.

pub mod capture;
pub mod directory;
pub mod inbox;
pub mod mail_host;
pub mod page;
pub mod simulator;
pub mod terminal;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mail::account::{Account, Plan};
use mail::credential::SecretHash;
use proxy::proxies::TrustedProxies;
use queue::domains::{DomainError, NewDomain};
use queue::enrol::{ProvisionError, ProvisionedAccount};
use queue::smarthosts::SmarthostEndpoint;
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
use self::mail_host::MailHost;
use self::page::InboxPages;
use self::terminal::Terminal;
use crate::admin;
use crate::affairs;
use crate::certificate::Certificate;
use crate::cli::DevArguments;
use crate::config::log::LogSection;
use crate::config::{self, Config, SmarthostAddress};
use crate::serve::{self, ActiveCertificates, Listeners, ServeError, ServerConfigReceiver, StopSignals, bind};
use crate::world::{BuildError, Services};

/// The account that everything is sent from.
const OWNER: &str = "dev@example.com";
/// Its verified domain (RFC 2606: nobody's).
const DOMAIN: &str = "example.com";
/// How long a lookup may take: without a network, mail is received all the same, after two of these.
const LOOKUP_MAX: Duration = Duration::from_secs(1);
/// SMTP sessions of one address: all of them come from this machine.
const SESSIONS_MAX: usize = 1_000;

/// The configuration. The listeners are opened by `dev` itself, where the arguments say. Variables of the environment
/// override it, as they do for `serve`.
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

/// What is logged: warnings, unless the environment says otherwise.
#[must_use]
pub fn log_section() -> LogSection {
    // What is wrong in the environment is told by `run`.
    config::from_text(CONFIGURATION, config::environment()).map(|config| config.log).unwrap_or_default()
}

/// Why the development server did not start.
#[derive(Debug, Error)]
pub enum DevError {
    /// As in production.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Another program listens there.
    #[error(
        "{address} is in use by another program, perhaps another `postrider dev`: stop it, or choose another address \
         with {option}"
    )]
    Taken {
        /// Where.
        address: SocketAddr,
        /// The option that chooses another.
        option: &'static str,
    },
    /// The data directory.
    #[error("{path}: {error}; --data-dir DIR chooses another directory")]
    Directory {
        /// Which.
        path: String,
        /// Why it cannot be used.
        error: std::io::Error,
    },
    /// The services could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Account or secrets.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The certificate.
    #[error(transparent)]
    Certificate(#[from] crate::certificate::CertificateError),
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// A variable of the environment is wrong.
    #[error("{0}")]
    Config(String),
    /// Development servers stay on this machine.
    #[error("{0} is not a loopback address; for others write a configuration and run `postrider serve`")]
    NotLoopback(SocketAddr),
}

/// The listeners' sockets: bound before anything is opened or written, so that a port that is taken changes nothing.
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

/// What is printed when everything runs.
struct StartReport {
    api: SocketAddr,
    submission: SocketAddr,
    mx: SocketAddr,
    account: Account,
    secrets: Secrets,
    directory: Directory,
}

/// Runs the development server until SIGINT or SIGTERM.
///
/// # Errors
/// [`DevError`].
pub async fn run(arguments: &DevArguments) -> Result<(), DevError> {
    let mut stop = StopSignals::new()?;
    let sockets = Sockets::bind(arguments).await?;
    let directory = Directory::new(arguments.data_dir.as_deref())?;
    let unusable = |error| DevError::Directory { path: directory.path().display().to_string(), error };
    let config = dev_config(&directory, &sockets)?;
    if arguments.fresh {
        directory.clear().map_err(unusable)?;
    }
    directory.claim().map_err(unusable)?;
    let world = Services::build(&config).await.map_err(|error| match error {
        BuildError::Directory { error, .. } => unusable(error),
        other => other.into(),
    })?;
    let opened = open(arguments, sockets, (&config, &world, &directory)).await;
    let (doors, ready) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            world.close().await;
            return Err(error);
        }
    };
    print_ready(&ready, arguments.json);
    stop.wait().await;
    tokio::join!(doors.shut_down(), world.worker.drain());
    world.close().await;
    Ok(())
}

/// Opens the listeners and starts delivery.
async fn open(
    arguments: &DevArguments,
    sockets: Sockets,
    (config, world, directory): (&Config, &Services, &Directory),
) -> Result<(Listeners, StartReport), DevError> {
    let certificates = ActiveCertificates::new(&Certificate::self_signed(&["localhost"])?)?;
    let doors = Listeners::new(config, world.entropy.u64());
    let records: DkimRecords = Arc::new(RwLock::new(Vec::new()));
    let (account, secrets) = provision_account(world, directory, &records).await?;
    let operator = admin::bind(&config.data_dir)?;
    let terminal = Terminal::new(world.clock.clone(), arguments.json);
    let inbox = Arc::new(DevInbox::open(directory.inbox(), world.clock.now())?);
    let writer = InboxWriter { inbox: Arc::clone(&inbox), terminal: terminal.clone(), clock: world.clock.clone() };
    let (complaints, waiting) = mpsc::channel(simulator::COMPLAINTS_MAX);
    let capture = CaptureHandler {
        writer: writer.clone(),
        records: Arc::clone(&records),
        store: world.store.clone(),
        complaints,
    };
    doors.listen_smtp_on(sockets.capture, mail_host_door(&doors, config, Some(certificates.smtp())), capture)?;
    let mail_host =
        MailHost::new(world.inbound.clone(), MxHandler::new(world.inbound.clone(), config.mx.abuse_limits()), writer);
    // Without TLS: a client that finds STARTTLS uses it, and stops at a certificate that nobody signed.
    let mx = doors.listen_smtp_on(sockets.mx, mail_host_door(&doors, config, None), mail_host)?;
    doors.spawn(simulator::send_complaints(waiting, mx, terminal.clone(), doors.stop.clone()));
    let submission = doors.submission_on(config, world, sockets.submission, certificates.smtp())?;
    let mut told = config.clone();
    told.submission.listen = vec![submission];
    told.mx.listen = vec![mx];
    let pages = InboxPages { inbox, records, terminal };
    let api = doors.api_with(world, sockets.api, &told, Arc::new(pages))?;
    serve::open_admin_socket(&told, world, &doors, (operator, None));
    world.start();
    doors.spawn(affairs::run(world.intake.clone(), doors.stop.clone()));
    let directory = directory.clone();
    Ok((doors, StartReport { api, submission, mx, account, secrets, directory }))
}

/// A listener that takes mail without a login, with TLS if there is a certificate.
fn mail_host_door(doors: &Listeners, config: &Config, tls: Option<ServerConfigReceiver>) -> ListenerConfig {
    let limits = SessionLimits { sessions_per_address_max: SESSIONS_MAX, ..SessionLimits::default() };
    let session = watch::Sender::new(doors.settings(config, ListenerRole::Mx, limits, tls.is_some())).subscribe();
    let networks = watch::Sender::new(Vec::new()).subscribe();
    ListenerConfig { settings: session, networks, proxies: TrustedProxies::default(), tls, implicit_tls: false }
}

fn dev_config(directory: &Directory, sockets: &Sockets) -> Result<Config, DevError> {
    let mut config = config::from_text(CONFIGURATION, config::environment()).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        DevError::Config(problems.join("\n"))
    })?;
    for variable in &config.ignored_variables {
        eprintln!("postrider: warning: {variable} in the environment is no setting, and is ignored");
    }
    directory.path().clone_into(&mut config.data_dir);
    let capture = SmarthostEndpoint::Address(sockets.capture.local_addr()?);
    config.delivery.smarthost = Some(SmarthostAddress(capture));
    config.dns.deadline = Some(LOOKUP_MAX);
    Ok(config)
}

/// The account with its secrets and its verified domain. The secrets of an earlier run are kept while they let in.
async fn provision_account(
    world: &Services,
    directory: &Directory,
    records: &DkimRecords,
) -> Result<(Account, Secrets), DevError> {
    let owner = OWNER.parse().map_err(|_| DevError::Config(OWNER.to_owned()))?;
    let name: mail::address::DomainName = DOMAIN.parse().map_err(|_| DevError::Config(DOMAIN.to_owned()))?;
    let (account, secrets) = match world.provisioning.create_account(owner, Plan::Dedicated, true).await {
        Err(ProvisionError::Taken(_)) => match known(world, directory).await {
            Some(known) => known,
            None => keep(directory, world.provisioning.create_credentials(OWNER).await?)?,
        },
        enrolled => keep(directory, enrolled?)?,
    };
    let domains = world.intake.domains();
    match domains.create(account.id, NewDomain::with_name(name.clone()), None).await {
        Ok(_) | Err(DomainError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let domain = domains.force_verify(&name).await?.domain;
    records.write().unwrap_or_else(PoisonError::into_inner).extend(capture::dkim_records(&domain));
    Ok((account, secrets))
}

/// The account and the secrets of an earlier run, if both secrets still let in.
async fn known(world: &Services, directory: &Directory) -> Option<(Account, Secrets)> {
    let secrets = directory.secrets()?;
    let tenant = world.intake.authenticate_api_key(&secrets.api_key, None).await.ok()?;
    let password = SecretHash::from_smtp_password(&secrets.smtp_password)?;
    world.intake.authenticate_smtp_password(&password, None).await.ok()?;
    Some((tenant.account().clone(), secrets))
}

fn keep(directory: &Directory, enrolled: ProvisionedAccount) -> Result<(Account, Secrets), DevError> {
    let secrets = Secrets {
        api_key: enrolled.api_key.expose().to_owned(),
        smtp_password: enrolled.smtp_password.expose().to_owned(),
    };
    directory.keep(&secrets)?;
    Ok((enrolled.account, secrets))
}

fn print_ready(ready: &StartReport, as_json: bool) {
    let StartReport { api, submission, mx, account, secrets, directory } = ready;
    let Secrets { api_key: key, smtp_password: password } = secrets;
    let text = if as_json {
        let line = json!({
            "api": format!("http://{api}"),
            "submission": submission.to_string(),
            "mx": mx.to_string(),
            "inbox": format!("http://{api}{}", page::PATH),
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
            "\n  postrider is running. No mail leaves this machine: every message arrives in the inbox.\n\n  \
             inbox       http://{api}\n  \
             SMTP        {mx}  without a login: takes mail for anybody\n\n  \
             API         http://{api}\n  \
             API key     {key}\n  \
             submission  {submission}  STARTTLS, with a self-signed certificate\n  \
             user name   postrider\n  \
             password    {password}\n  \
             domain      {DOMAIN}  may be sent from\n  \
             data        {}\n\n  Try it:\n\n\
             curl -s http://{api}/emails \\\n  -H 'Authorization: Bearer {key}' \\\n  \
             -H 'Content-Type: application/json' \\\n  \
             -d '{{\"from\":\"Ada <ada@{DOMAIN}>\",\"to\":\"you@example.net\",\"subject\":\"First light\",\"html\":\"<h1>It works</h1>\"}}'\n\n\
             swaks --server {mx} --from ada@{DOMAIN} --to you@example.net\n\n  \
             Recipients that behave: bounced@, deferred@, complained@, slow@{}\n  \
             Ctrl-C ends it; --fresh begins anew. Requests and deliveries:\n\n",
            directory.path().display(),
            mail::simulator::DOMAIN,
        )
    };
    let mut out = std::io::stdout();
    // Nobody may be reading.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
