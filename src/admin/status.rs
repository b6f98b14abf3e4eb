//! `postrider status`: health of this server on one screen.
//!
//! ```text
//! listeners (connected to) · store · queue (read up to a limit) · DNS (queried) · disk · certificate · last hour
//!     ─► problems, one sentence each
//! ```
//!
//! Limits: at most [`QUEUE_READ_MAX`] tasks are read; network checks time out after [`ASKED_WITHIN`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use mail::address::DomainName;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::handler::{AdminResult, error_text};
use super::{Permissions, queue, views};
use crate::config::Config;
use crate::doctor::x509;
use crate::services::Services;

/// Maximum number of tasks read.
const QUEUE_READ_MAX: usize = 100_000;
/// Number of tasks per read of the store.
const READ_AT_ONCE: usize = 1_000;
/// Timeout of connecting to a listener, and of the DNS query.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
/// A recipient that is due for longer than this without an attempt is reported: delivery does not keep up.
const OVERDUE: Duration = Duration::from_secs(15 * 60);
/// Free space required beyond the reserve; with less, the server soon refuses mail.
const ROOM_NEEDED: u64 = 256 << 20;
/// Remaining validity below which a certificate is reported. Renewal should have happened earlier.
const CERTIFICATE_LEFT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Settings that a status needs.
#[derive(Debug, Clone)]
pub struct StatusFacts {
    hostname: DomainName,
    /// Configured listen addresses, each with its section.
    listeners: Vec<(&'static str, SocketAddr)>,
    reserve_bytes: u64,
    /// File of the certificate chain, if configured.
    certificate: Option<PathBuf>,
}

impl StatusFacts {
    /// Reads the settings from the configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let named =
            |name: &'static str, listen: &[SocketAddr]| -> Vec<_> { listen.iter().map(|at| (name, *at)).collect() };
        let relays: Vec<SocketAddr> = config.relay.iter().flat_map(|relay| relay.listen.clone()).collect();
        let listeners = [
            named("submission", &config.submission.listen),
            named("submission (TLS)", &config.submission.implicit_tls),
            named("relay", &relays),
            named("mx", &config.mx.listen),
            named("api", &config.api.listen),
            named("ops", &config.ops.listen),
        ];
        Self {
            hostname: config.hostname.clone(),
            listeners: listeners.into_iter().flatten().collect(),
            reserve_bytes: config.store.reserve_bytes,
            certificate: config.tls.certificate.clone(),
        }
    }
}

/// Problems found so far, one sentence each.
type Problems = Vec<String>;

/// Runs all checks and returns their results.
pub(super) async fn status(world: &Services, permissions: &Permissions) -> AdminResult {
    let (facts, mut problems) = (&permissions.status, Problems::new());
    if let Err(why) = api::health::unhealthy_reason(&world.store.health()) {
        problems.push(format!("the store is {why}"));
    }
    let (open, answer, waiting) = tokio::join!(listeners(facts), dns(world, facts), waiting(world));
    let queue = match waiting {
        Ok(waiting) => waiting.shown(world, &mut problems).await?,
        Err(error) => {
            problems.push(format!("the queue cannot be read: {error}"));
            Value::Null
        }
    };
    let listeners = listeners_shown(open, &mut problems);
    let dns = dns_shown(answer, &mut problems);
    let disk = disk(permissions, &mut problems);
    let certificate = certificate(permissions, world.clock.machine_now(), &mut problems);
    Ok(json!({
        "ok": problems.is_empty(),
        "problems": problems,
        "hostname": facts.hostname,
        "version": env!("CARGO_PKG_VERSION"),
        "nodes": world.worker.leases().nodes(),
        "listeners": listeners,
        "queue": queue,
        "dns": dns,
        "disk": disk,
        "certificate": certificate,
        "last_hour": world.worker.last_hour(),
    }))
}

/// Replaces an unspecified address with loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

type Open = (&'static str, SocketAddr, Result<(), String>);

/// Connects to all listeners concurrently.
async fn listeners(facts: &StatusFacts) -> Vec<Open> {
    // The port that the system chose for port 0 is not known here.
    let named = facts.listeners.iter().copied().filter(|(_, at)| at.port() != 0);
    let asked: Vec<_> = named.map(|(name, at)| (name, at, tokio::spawn(connect(at)))).collect();
    let mut open = Vec::with_capacity(asked.len());
    for (name, at, connected) in asked {
        open.push((name, at, connected.await.unwrap_or_else(|error| Err(error.to_string()))));
    }
    open
}

async fn connect(at: SocketAddr) -> Result<(), String> {
    match timeout(ASKED_WITHIN, TcpStream::connect(reachable(at))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no response within {} seconds", ASKED_WITHIN.as_secs())),
    }
}

fn listeners_shown(open: Vec<Open>, problems: &mut Problems) -> Vec<Value> {
    open.into_iter()
        .map(|(name, at, open)| {
            if let Err(why) = &open {
                problems.push(format!("cannot connect to the listener {name} {at}: {why}"));
            }
            json!({"name": name, "address": at, "open": open.is_ok()})
        })
        .collect()
}

/// Queries a random name, which no cache can answer. Every response is a success, NXDOMAIN too.
async fn dns(world: &Services, facts: &StatusFacts) -> (Duration, Result<(), String>) {
    let began = Instant::now();
    let name = format!("{:016x}.{}", world.entropy.u64(), facts.hostname).parse::<DomainName>();
    let answer = match name {
        Err(_) => Err("the hostname is too long for the test query".to_owned()),
        Ok(name) => match timeout(ASKED_WITHIN, world.inbound.resolver().txt(&name)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no response within {} seconds", ASKED_WITHIN.as_secs())),
        },
    };
    (began.elapsed(), answer)
}

fn dns_shown((took, answer): (Duration, Result<(), String>), problems: &mut Problems) -> Value {
    if let Err(why) = &answer {
        problems.push(format!("DNS is not responding: {why}"));
    }
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    json!({"answers": answer.is_ok(), "took_ms": took_ms, "error": answer.err()})
}

/// Counts of the queue, up to [`QUEUE_READ_MAX`] tasks.
#[derive(Debug, Default)]
struct QueueCount {
    recipients: usize,
    held: usize,
    due: usize,
    overdue: usize,
    oldest: Option<Timestamp>,
    has_more: bool,
}

async fn waiting(world: &Services) -> Result<QueueCount, String> {
    let now = world.clock.now();
    let overdue = now.checked_sub(OVERDUE).unwrap_or(Timestamp::MIN);
    let (mut count, mut from) = (QueueCount::default(), None);
    loop {
        let slice = store::task::list_all(&world.store, from, READ_AT_ONCE).await.map_err(error_text)?;
        for (task, _) in &slice.tasks {
            count.recipients += 1;
            count.oldest = Some(count.oldest.map_or(task.accepted_at, |oldest| oldest.min(task.accepted_at)));
            if task.held || world.worker.is_account_held(task.account) {
                count.held += 1;
            } else if task.due <= now && !world.worker.is_deferred(&task.queue_name()) {
                count.due += 1;
                count.overdue += usize::from(task.due < overdue);
            }
        }
        from = slice.next;
        count.has_more = from.is_some();
        if from.is_none() || count.recipients >= QUEUE_READ_MAX {
            return Ok(count);
        }
        tokio::task::yield_now().await;
    }
}

impl QueueCount {
    async fn shown(self, world: &Services, problems: &mut Problems) -> Result<Value, String> {
        let hold = queue::hold_view(world).await?;
        let paused = world.worker.delivery_policy().paused;
        if hold.is_object() {
            problems.push("the queue is held after a restore: `queue release --all` resumes it".to_owned());
        } else if paused {
            problems.push("delivery is paused by `paused` in [delivery]".to_owned());
        } else if self.overdue > 0 {
            let minutes = OVERDUE.as_secs() / 60;
            problems.push(format!(
                "{} recipients are overdue by more than {minutes} minutes: `queue top` shows what limits them",
                self.overdue
            ));
        }
        Ok(json!({
            "recipients": self.recipients,
            "has_more": self.has_more,
            "held": self.held,
            "due": self.due,
            "oldest": self.oldest,
            "oldest_age": self.oldest.map(|oldest| views::age_text(oldest, world.clock.now())),
            "hold": hold,
            "paused": paused,
        }))
    }
}

fn disk(permissions: &Permissions, problems: &mut Problems) -> Value {
    let reserve = permissions.status.reserve_bytes;
    match rustix::fs::statvfs(&permissions.data_dir) {
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            if free < reserve.saturating_add(ROOM_NEEDED) {
                problems.push(format!("the disk is almost full: {} MiB are free", free >> 20));
            }
            json!({"free_bytes": free, "bytes": space.f_blocks.saturating_mul(space.f_frsize)})
        }
        Err(error) => {
            problems.push(format!("{}: {error}", permissions.data_dir.display()));
            Value::Null
        }
    }
}

/// Checks the installed certificate: of ACME, or of the configured file.
fn certificate(permissions: &Permissions, now: Timestamp, problems: &mut Problems) -> Value {
    let (source, expires_at) = match (&permissions.certificate, &permissions.status.certificate) {
        (Some(status), _) => {
            let status = status.borrow();
            if let Some(failure) = &status.last_failure {
                problems.push(format!("certificate renewal failed: {failure}"));
            }
            ("acme", status.expires_at)
        }
        (None, Some(file)) => match expires(file) {
            Ok(expires_at) => ("file", Some(expires_at)),
            Err(why) => {
                problems.push(format!("{}: {why}", file.display()));
                ("file", None)
            }
        },
        (None, None) => return Value::Null,
    };
    match expires_at.map(|at| (at, at.duration_since(now))) {
        Some((at, left)) if left.is_negative() => problems.push(format!("the certificate expired at {at}")),
        Some((at, left)) if left < CERTIFICATE_LEFT => {
            problems.push(format!("the certificate expires at {at}"));
        }
        Some(_) => {}
        None if source == "acme" => {
            problems.push("no certificate yet: a self-signed one is used".to_owned());
        }
        None => {}
    }
    json!({"source": source, "expires_at": expires_at})
}

fn expires(file: &Path) -> Result<Timestamp, String> {
    let pem = std::fs::read(file).map_err(error_text)?;
    let leaf = CertificateDer::pem_slice_iter(&pem).next().ok_or("contains no certificate")?;
    let leaf = leaf.map_err(error_text)?;
    x509::parse_certificate(&leaf).map(|facts| facts.not_after).ok_or_else(|| "cannot parse the certificate".to_owned())
}
