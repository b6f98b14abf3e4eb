//! `postrider dev`: everything on loopback, nothing to set up, no mail leaves the machine. (Who sends what is
//! handed in at the MX door is looked up in the DNS, and webhooks go where they are told to.)
//!
//! The same world and the same doors as in production; the smarthost is a mail host of its own that
//! catches everything ([`capture`]) and shows it in a web inbox ([`inbox`], [`page`]). So every message
//! takes the real path: accepted, on disk, signed, queued, sent over SMTP with TLS.

pub mod capture;
pub mod inbox;
pub mod page;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mail::account::Plan;
use proxy::proxies::Proxies;
use queue::domains::{DomainError, NewDomain};
use queue::enrol::{EnrolError, Enrolled};
use serde_json::json;
use smtp::limits::Limits;
use smtp::listener::Door;
use smtp::settings::Role;
use thiserror::Error;
use tokio::sync::watch;

use self::capture::{Capture, Records};
use self::inbox::Inbox;
use crate::admin;
use crate::affairs;
use crate::certificate::Certificate;
use crate::cli::DevArguments;
use crate::config::{self, Config, SmarthostAddress, SubmissionSection};
use crate::serve::{self, Certificates, Doors, ServeError, StopSignals, bind};
use crate::world::{BuildError, World};

/// The account that everything is sent from.
const OWNER: &str = "dev@example.com";
/// How long a lookup may take: on a machine without a network mail is taken in all the same, after two of these.
const LOOKUP_MAX: Duration = Duration::from_secs(1);
/// Its verified domain (RFC 2606: nobody's).
const DOMAIN: &str = "example.com";

/// Why the development server did not start.
#[derive(Debug, Error)]
pub enum DevError {
    /// As in production.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The world could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Account, secrets or domain.
    #[error(transparent)]
    Enrol(#[from] EnrolError),
    /// The domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The certificate.
    #[error(transparent)]
    Certificate(#[from] crate::certificate::CertificateError),
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// What cannot be: the development configuration is wrong.
    #[error("the development configuration: {0}")]
    Config(String),
    /// Development servers stay on this machine.
    #[error("{0} is not a loopback address; for others write a configuration and run `postrider serve`")]
    NotLoopback(SocketAddr),
}

/// Where everything is, once it is.
struct Ready {
    api: SocketAddr,
    submission: SocketAddr,
    mx: SocketAddr,
    inbox: SocketAddr,
    enrolled: Enrolled,
}

/// A directory that is removed at the end, unless it was given.
struct DataDir {
    path: PathBuf,
    ours: bool,
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Runs the development server until SIGINT or SIGTERM.
///
/// # Errors
/// [`DevError`].
pub async fn run(arguments: &DevArguments) -> Result<(), DevError> {
    let mut stop = StopSignals::new()?;
    let inbox_wanted =
        arguments.inbox.unwrap_or_else(|| behind(arguments.api, [arguments.submission, arguments.mx]));
    for address in [arguments.api, arguments.submission, arguments.mx, inbox_wanted] {
        if !address.ip().is_loopback() {
            return Err(DevError::NotLoopback(address));
        }
    }
    let data_dir = match &arguments.data_dir {
        Some(path) => DataDir { path: path.clone(), ours: false },
        None => DataDir { path: own_directory()?, ours: true },
    };
    // The doors' addresses are known before the world is built: the smarthost is one of them.
    let any_port = SocketAddr::new(arguments.mx.ip(), 0);
    let (capture_socket, capture_address) = bind(any_port).await?;
    let config = configuration(&data_dir, capture_address)?;
    let certificates = Certificates::new(&Certificate::self_signed(&["localhost"])?)?;
    let world = World::build(&config).await?;
    let doors = Doors::new(&config, world.entropy.u64());
    let inbox = Arc::new(Inbox::default());
    let records: Records = Arc::new(RwLock::new(Vec::new()));
    let enrolled = enrol(&world, &records).await?;
    let operator = admin::bind(&config.data_dir)?;
    let capture = Capture {
        inbox: Arc::clone(&inbox),
        records: Arc::clone(&records),
        store: world.store.clone(),
        clock: world.clock.clone(),
    };
    let session =
        doors.settings(&config, Role::Mx, Limits { sessions_per_address_max: 1_000, ..Limits::default() });
    let session = watch::Sender::new(session).subscribe();
    let networks = watch::Sender::new(Vec::new()).subscribe();
    let (proxies, tls) = (Proxies::default(), Some(certificates.smtp()));
    let door = Door { session, networks, proxies, tls, implicit_tls: false };
    doors.smtp_on(capture_socket, door, capture)?;
    let mx = doors.mx(&config, &world, arguments.mx, certificates.smtp())?;
    let submission = doors.submission(&config, &world, arguments.submission, (certificates.smtp(), false))?;
    let told = Config {
        submission: SubmissionSection { listen: vec![submission], ..config.submission.clone() },
        ..config.clone()
    };
    let api = doors.api(&world, arguments.api, &told, None).await?;
    serve::open_operators(&told, &world, &doors, (operator, None));
    world.start();
    doors.run(affairs::run(world.hall.clone(), doors.stop.clone()));
    let inbox = open_inbox(&doors, inbox_wanted, inbox, records).await?;
    tell(&Ready { api, submission, mx, inbox, enrolled }, arguments.json);
    stop.asked().await;
    tokio::join!(doors.close(), world.worker.drain());
    world.close().await;
    drop(data_dir);
    Ok(())
}

/// A new directory under a name that nobody can have guessed and taken before.
fn own_directory() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let name = format!("postrider-dev-{:016x}", queue::entropy::Entropy::default().u64());
    let path = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// The first port behind the API's that no other door was given; any port when the API takes any.
fn behind(api: SocketAddr, others: [SocketAddr; 2]) -> SocketAddr {
    let is_free = |port: &u16| others.iter().all(|other| other.port() != *port);
    let next = (api.port()..=u16::MAX).skip(1).find(is_free);
    SocketAddr::new(api.ip(), next.filter(|_| api.port() != 0).unwrap_or(0))
}

fn configuration(data_dir: &DataDir, capture: SocketAddr) -> Result<Config, DevError> {
    // A relay that is never opened: the file must listen on something, and dev opens its own doors.
    let text = "hostname = \"localhost\"\n[api]\nlisten = \"127.0.0.1:0\"\nrate_limit = \"off\"\n\
                [webhooks]\nallow_private_destinations = true\nallow_http = true\n\
                [service]\nauto_verify_domains = true\n\
                sandbox_sender = \"sandbox@example.com\"\n[testing]\nclock_offset = \"0s\"\n";
    let mut config = config::from_text(text, std::iter::empty())
        .map_err(|problems| DevError::Config(problems.iter().map(ToString::to_string).collect()))?;
    config.data_dir.clone_from(&data_dir.path);
    config.delivery.smarthost = Some(SmarthostAddress(queue::smarthosts::SmarthostAt::Address(capture)));
    config.dns.deadline = Some(LOOKUP_MAX);
    config.submission.sessions_per_address_max = 1_000;
    config.mx.sessions_per_address_max = 1_000;
    Ok(config)
}

/// The account with new secrets, and its verified domain. A directory that was used before has the
/// account already: it gets another pair of secrets, since the old ones are known to nobody here.
async fn enrol(world: &World, records: &Records) -> Result<Enrolled, DevError> {
    let owner = OWNER.parse().map_err(|_| DevError::Config(OWNER.to_owned()))?;
    let name: mail::address::Name = DOMAIN.parse().map_err(|_| DevError::Config(DOMAIN.to_owned()))?;
    let enrolled = match world.enrolment.account(owner, Plan::Dedicated, true).await {
        Err(EnrolError::Taken(_)) => world.enrolment.secrets(OWNER).await?,
        other => other?,
    };
    let domains = world.hall.domains();
    match domains.create(enrolled.account.id, NewDomain::named(name.clone()), None).await {
        Ok(_) | Err(DomainError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let domain = domains.force(&name).await?.domain;
    records.write().unwrap_or_else(PoisonError::into_inner).extend(capture::records_of(&domain));
    Ok(enrolled)
}

async fn open_inbox(
    doors: &Doors,
    wanted: SocketAddr,
    inbox: Arc<Inbox>,
    records: Records,
) -> Result<SocketAddr, DevError> {
    let (listener, address) = bind(wanted).await?;
    let stop = doors.stop.clone();
    let answer = move |method: &http::Method, path: &str| {
        let records = records.read().unwrap_or_else(PoisonError::into_inner).clone();
        page::answer(&inbox, &records, method, path)
    };
    doors.run(async move {
        if let Err(error) = api::serve::pages::pages(listener, answer, stop).await {
            tracing::error!(%error, "the inbox's listener failed");
        }
    });
    Ok(address)
}

fn tell(ready: &Ready, as_json: bool) {
    let Ready { api, submission, mx, inbox, enrolled } = ready;
    let (key, password) = (enrolled.api_key.expose(), enrolled.smtp_password.expose());
    if as_json {
        let line = json!({
            "api": format!("http://{api}"),
            "submission": submission.to_string(),
            "mx": mx.to_string(),
            "inbox": format!("http://{inbox}"),
            "account_id": enrolled.account.id,
            "account_email": enrolled.account.email,
            "api_key": key,
            "smtp_username": "postrider",
            "smtp_password": password,
            "domain": DOMAIN,
        });
        println!("{line}");
        return;
    }
    println!(
        "\n  postrider is running. Nothing leaves this machine; every message arrives in the inbox.\n\n  \
         inbox       http://{inbox}\n  \
         API         http://{api}\n  \
         API key     {key}\n  \
         submission  {submission}  (STARTTLS; the certificate is self-signed)\n  \
         user name   postrider\n  \
         password    {password}\n  \
         mail host   {mx}\n  \
         domain      {DOMAIN}\n\n  Try it:\n\n\
         curl -s http://{api}/emails \\\n  -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"from\":\"Ada <ada@{DOMAIN}>\",\"to\":\"you@example.net\",\"subject\":\"First light\",\"html\":\"<h1>It works</h1>\"}}'\n\n\
         swaks --server {submission} --tls --auth PLAIN --auth-user postrider \\\n  \
         --auth-password {password} --from ada@{DOMAIN} --to you@example.net\n\n  Ctrl-C ends it.\n"
    );
}
