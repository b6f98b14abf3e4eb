//! `postrider status`: health of this server on one screen.
//!
//! ```text
//! listeners (connected to) · store · queue (counted in memory) · DNS (queried) · disk · certificate · last hour
//!     ─► problems, one sentence each
//! ```
//!
//! All recipients are counted in memory ([`store::queue_counts`]); the due ones are read from the store, at most
//! [`QUEUE_READ_MAX`] of at most [`QUEUES_READ_MAX`] queues, from a random partition on. Network checks time out after [`PROBE_TIMEOUT`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use message::address::DomainName;
use model::task::QueueName;
use model::task_filter::TaskFilter;
use serde_json::{Value, json};
use store::engine::{Health, StoreState};
use store::queue_counts::QueuedState;
use store::queue_walk::QueueWalk;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::error::{AdminResult, error_text};
use super::permissions::Permissions;
use super::{queue, views};
use crate::config::Config;
use crate::doctor::addresses::reachable_address;
use crate::doctor::x509;
use crate::services::Server;

/// Maximum number of tasks read from the store.
const QUEUE_READ_MAX: usize = 50_000;
/// Maximum number of queues (of a domain, class and account) looked at.
const QUEUES_READ_MAX: usize = 20_000;
/// Queues looked at before other work of the thread has its turn.
const QUEUES_AT_ONCE: usize = 100;
/// Maximum number of nodes listed.
const NODES_SHOWN_MAX: usize = 100;
/// Number of tasks per read of the store.
const READ_AT_ONCE: usize = 1_000;
/// Timeout of connecting to a listener, and of the DNS query.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// A recipient that is due for longer than this without an attempt is reported: delivery does not keep up.
const OVERDUE: Duration = Duration::from_secs(15 * 60);
/// Free space required beyond the reserve; with less, the server soon refuses mail.
const FREE_BYTES_MIN: u64 = 256 << 20;
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
    pub fn of(config: &Config) -> Self {
        let with_section =
            |name: &'static str, listen: &[SocketAddr]| -> Vec<_> { listen.iter().map(|at| (name, *at)).collect() };
        let relays: Vec<SocketAddr> = config.relay.iter().flat_map(|relay| relay.listen.clone()).collect();
        let listeners = [
            with_section("submission", &config.submission.listen),
            with_section("submission (TLS)", &config.submission.implicit_tls),
            with_section("relay", &relays),
            with_section("mx", &config.mx.listen),
            with_section("api", &config.api.listen),
            with_section("ops", &config.ops.listen),
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
pub(super) async fn status(server: &Server, permissions: &Permissions) -> AdminResult {
    let (facts, mut problems) = (&permissions.status, Problems::new());
    if let Err(reason) = api::health::unhealthy_reason(&server.store.health(), None) {
        problems.push(format!("the store is {reason}"));
    }
    let (listener_results, (dns_time, dns_result), queue_count) =
        tokio::join!(listeners(facts), dns(server, facts), count_queue(server));
    let queue = match queue_count {
        Ok(queue_count) => queue_count.view(server, &mut problems).await?,
        Err(error) => {
            problems.push(format!("the queue cannot be read: {error}"));
            Value::Null
        }
    };
    let damaged = server.queue.delivery.scheduler.damaged.count();
    if damaged > 0 {
        let recipients = views::recipients_text(damaged as u64);
        problems.push(format!(
            "{recipients} in the queue could not be read since the start: run `postrider admin store check`"
        ));
    }
    let listeners = listeners_view(listener_results, &mut problems);
    let dns = dns_view(dns_time, dns_result, &mut problems);
    let disk = disk(permissions, &mut problems);
    let certificate = certificate(permissions, server.clock.machine_now(), &mut problems);
    let nodes = nodes_view(server).await.unwrap_or_else(|error| {
        problems.push(format!("the nodes cannot be read: {error}"));
        Value::Null
    });
    Ok(json!({
        "ok": problems.is_empty(),
        "problems": problems,
        "hostname": facts.hostname,
        "version": env!("CARGO_PKG_VERSION"),
        "nodes": server.queue.services.leases.nodes(),
        "members": nodes,
        "partitions": server.queue.services.leases.len(),
        "store": store_view(&server.store.health()),
        "listeners": listeners,
        "queue": queue,
        "dns": dns,
        "disk": disk,
        "certificate": certificate,
        "last_hour": server.queue.delivery.last_hour(),
    }))
}

/// The nodes that have registered themselves, with the number of their partitions.
async fn nodes_view(server: &Server) -> Result<Value, String> {
    let cluster = store::lease::read_view(&server.store).await.map_err(error_text)?;
    let partitions_of =
        |name: &str| cluster.partitions.iter().filter(|stored| stored.tenure.node.as_deref() == Some(name)).count();
    let nodes = cluster.nodes.iter().take(NODES_SHOWN_MAX).map(|stored| {
        json!({
            "name": stored.node.name,
            "started_at": stored.node.started_at,
            "partitions": partitions_of(&stored.node.name),
        })
    });
    Ok(nodes.collect())
}

fn store_view(health: &Health) -> Value {
    let (state, reason) = match health.service_state() {
        StoreState::Healthy => ("healthy", None),
        StoreState::Full => ("full", None),
        StoreState::Away(reason) => ("away", Some(reason)),
        StoreState::Fenced(reason) => ("fenced", Some(reason)),
    };
    json!({
        "state": state,
        "reason": reason.as_deref(),
        "commits": health.commits,
        "log_bytes": health.segments_bytes,
        "live_bodies": health.live_bodies,
        "live_body_bytes": health.live_body_bytes,
        "index_bytes": health.index_bytes,
        "pending_rows": health.pending_rows,
        "last_checkpoint_us": health.last_checkpoint_us,
    })
}

type ListenerResult = (&'static str, SocketAddr, Result<(), String>);

/// Connects to all listeners concurrently.
async fn listeners(facts: &StatusFacts) -> Vec<ListenerResult> {
    // The port that the system chose for port 0 is not known here.
    let known = facts.listeners.iter().copied().filter(|(_, at)| at.port() != 0);
    let probes: Vec<_> = known.map(|(name, at)| (name, at, tokio::spawn(connect(at)))).collect();
    let mut results = Vec::with_capacity(probes.len());
    for (name, at, probe) in probes {
        results.push((name, at, probe.await.unwrap_or_else(|error| Err(error.to_string()))));
    }
    results
}

async fn connect(at: SocketAddr) -> Result<(), String> {
    match timeout(PROBE_TIMEOUT, TcpStream::connect(reachable_address(at))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no response within {} seconds", PROBE_TIMEOUT.as_secs())),
    }
}

fn listeners_view(results: Vec<ListenerResult>, problems: &mut Problems) -> Vec<Value> {
    results
        .into_iter()
        .map(|(name, at, result)| {
            if let Err(reason) = &result {
                problems.push(format!("cannot connect to the listener {name} {at}: {reason}"));
            }
            json!({"name": name, "address": at, "open": result.is_ok()})
        })
        .collect()
}

/// Queries a random name, which no cache can answer. Every response is a success, NXDOMAIN too.
async fn dns(server: &Server, facts: &StatusFacts) -> (Duration, Result<(), String>) {
    let started_at = Instant::now();
    let name = format!("{:016x}.{}", server.entropy.u64(), facts.hostname).parse::<DomainName>();
    let result = match name {
        Err(_) => Err("the hostname is too long for the test query".to_owned()),
        Ok(name) => match timeout(PROBE_TIMEOUT, server.inbound.resolver().txt(&name)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no response within {} seconds", PROBE_TIMEOUT.as_secs())),
        },
    };
    (started_at.elapsed(), result)
}

fn dns_view(duration: Duration, result: Result<(), String>, problems: &mut Problems) -> Value {
    if let Err(reason) = &result {
        problems.push(format!("DNS is not responding: {reason}"));
    }
    let took_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    json!({"answers": result.is_ok(), "took_ms": took_ms, "error": result.err()})
}

/// Counts of the queue: of this node's partitions while they are counted in memory, otherwise of the store.
#[derive(Debug, Default)]
struct QueueCount {
    recipients: u64,
    /// Held by the operator, or of a held account.
    held: u64,
    due: u64,
    overdue: u64,
    oldest: Option<Timestamp>,
    /// True if more recipients exist than were counted, because counting them in memory is not complete.
    has_more: bool,
    /// True if more recipients may be due, or of a held account, than were counted: the queue is long.
    has_more_due: bool,
}

/// Reads that are left for counting the due tasks.
struct ReadBudget {
    tasks: usize,
    queues: usize,
}

async fn count_queue(server: &Server) -> Result<QueueCount, String> {
    let counts = server.store.queue_counts();
    // Right after the start the counts are not complete.
    if counts.is_incomplete() {
        return count_stored_tasks(server).await;
    }
    let summary = counts.summary(0);
    let mut count = QueueCount { oldest: summary.oldest_accepted_at, ..QueueCount::default() };
    for (state, _, recipients) in summary.recipients {
        count.recipients += recipients;
        count.held += if state == QueuedState::Held { recipients } else { 0 };
    }
    let mut budget = ReadBudget { tasks: QUEUE_READ_MAX, queues: QUEUES_READ_MAX };
    for partition in partitions_from_random(server) {
        let mut from = None;
        while let Some((queue, due, next)) =
            store::task::next_queue(&server.store, partition, from).await.map_err(error_text)?
        {
            if budget.queues == 0 || budget.tasks == 0 {
                count.has_more_due = true;
                return Ok(count);
            }
            budget.queues -= 1;
            if budget.queues.is_multiple_of(QUEUES_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            if due <= server.clock.now() || server.queue.delivery.queues.is_account_held(queue.account) {
                count_due_tasks(server, (&queue, due), (&mut count, &mut budget.tasks)).await?;
            }
            from = Some(next);
        }
    }
    Ok(count)
}

/// The partitions of this node, from a random one on: if a count cannot look at all queues, others are looked at the
/// next time.
fn partitions_from_random(server: &Server) -> Vec<u16> {
    let mut partitions = server.queue.services.leases.held();
    let start = server.entropy.u64() % partitions.len().max(1) as u64;
    partitions.rotate_left(usize::try_from(start).unwrap_or(0));
    partitions
}

/// Counts the due tasks of a queue and, if its account is held, all its tasks as held. Reads at most `left` tasks.
async fn count_due_tasks(
    server: &Server,
    (queue, due): (&QueueName, Timestamp),
    (count, left): (&mut QueueCount, &mut usize),
) -> Result<(), String> {
    let now = server.clock.now();
    let overdue_since = now.checked_sub(OVERDUE).unwrap_or(Timestamp::MIN);
    let is_account_held = server.queue.delivery.queues.is_account_held(queue.account);
    if !is_account_held && server.queue.delivery.scheduler.is_deferred(queue) {
        return Ok(());
    }
    let mut from = Some(store::task::due_start(queue, due));
    while let Some(start) = from.take() {
        if *left == 0 {
            count.has_more_due = true;
            return Ok(());
        }
        let page = store::task::list(&server.store, queue, start, READ_AT_ONCE.min(*left)).await.map_err(error_text)?;
        *left = left.saturating_sub(page.tasks.len());
        for (task, _) in page.tasks.iter().filter(|(task, _)| !task.held) {
            if is_account_held {
                count.held += 1;
            } else if task.due > now {
                return Ok(());
            } else {
                count.due += 1;
                count.overdue += u64::from(task.due < overdue_since);
            }
        }
        from = page.next;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Counts the tasks of the store, up to [`QUEUE_READ_MAX`].
async fn count_stored_tasks(server: &Server) -> Result<QueueCount, String> {
    let now = server.clock.now();
    let overdue_since = now.checked_sub(OVERDUE).unwrap_or(Timestamp::MIN);
    let mut count = QueueCount::default();
    let mut walk = QueueWalk::new(&server.store, TaskFilter::default(), QUEUE_READ_MAX);
    while let Some(page) = walk.next_page().await.map_err(error_text)? {
        for (task, _) in &page.tasks {
            count.recipients += 1;
            count.oldest = Some(count.oldest.map_or(task.accepted_at, |oldest| oldest.min(task.accepted_at)));
            if task.held || server.queue.delivery.queues.is_account_held(task.account) {
                count.held += 1;
            } else if task.due <= now && !server.queue.delivery.scheduler.is_deferred(&task.queue_name()) {
                count.due += 1;
                count.overdue += u64::from(task.due < overdue_since);
            }
        }
    }
    count.has_more = walk.rest().is_some();
    count.has_more_due = count.has_more;
    Ok(count)
}

impl QueueCount {
    async fn view(self, server: &Server, problems: &mut Problems) -> Result<Value, String> {
        let hold = queue::hold_view(server).await?;
        let paused = server.queue.delivery.policy.current().paused;
        let mut note = None;
        if hold.is_object() {
            problems.push("the queue is held after a restore: `queue release --all` resumes it".to_owned());
        } else if paused {
            problems.push("delivery is paused by `paused` in [delivery]".to_owned());
        } else if self.overdue > 0 {
            let minutes = OVERDUE.as_secs() / 60;
            problems.push(format!(
                "{}{} {} overdue by more than {minutes} minutes: `queue top` shows what limits delivery",
                if self.has_more_due { "at least " } else { "" },
                views::recipients_text(self.overdue),
                if self.overdue == 1 { "is" } else { "are" }
            ));
        } else if self.has_more_due {
            note = Some("not all queues were checked: some recipients may be overdue");
        }
        Ok(json!({
            "recipients": self.recipients,
            "has_more": self.has_more,
            "held": self.held,
            "due": self.due,
            "has_more_due": self.has_more_due,
            "oldest": self.oldest,
            "oldest_age": self.oldest.map(|oldest| views::age_text(oldest, server.clock.now())),
            "hold": hold,
            "paused": paused,
            "note": note,
        }))
    }
}

fn disk(permissions: &Permissions, problems: &mut Problems) -> Value {
    let reserve = permissions.status.reserve_bytes;
    match rustix::fs::statvfs(&permissions.data_dir) {
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            if free < reserve.saturating_add(FREE_BYTES_MIN) {
                problems.push(format!("the disk is almost full: {} MiB free", free >> 20));
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
    let (source, not_before, expires_at) = match (&permissions.certificate, &permissions.status.certificate) {
        (Some(renewer), _) => {
            let status = renewer.status();
            let status = status.borrow();
            if let Some(failure) = &status.last_failure {
                problems.push(format!("certificate renewal failed: {failure}"));
            }
            ("acme", None, status.expires_at)
        }
        (None, Some(file)) => match read_validity(file) {
            Ok((not_before, not_after)) => ("file", Some(not_before), Some(not_after)),
            Err(reason) => {
                problems.push(format!("{}: {reason}", file.display()));
                ("file", None, None)
            }
        },
        (None, None) => return Value::Null,
    };
    problems.extend(validity_problem(not_before, expires_at, now));
    if expires_at.is_none() && source == "acme" {
        problems.push("no certificate yet: a self-signed one is in use".to_owned());
    }
    json!({"source": source, "expires_at": expires_at})
}

/// Begin and end of the validity of a chain's first certificate.
fn read_validity(file: &Path) -> Result<(Timestamp, Timestamp), String> {
    let pem = std::fs::read(file).map_err(error_text)?;
    let leaf = x509::parse_first(&pem)?;
    Ok((leaf.not_before, leaf.not_after))
}

/// The problem of a certificate that is not valid now, or not for much longer.
fn validity_problem(not_before: Option<Timestamp>, expires_at: Option<Timestamp>, now: Timestamp) -> Option<String> {
    if let Some(at) = not_before.filter(|at| *at > now) {
        return Some(format!("the certificate is not valid before {at}"));
    }
    let at = expires_at?;
    match at.duration_since(now) {
        remaining if remaining.is_negative() => Some(format!("the certificate expired at {at}")),
        remaining if remaining < CERTIFICATE_LEFT => Some(format!("the certificate expires at {at}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_not_valid_now_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tls.crt");
        let mut params = rcgen::CertificateParams::new(["mx1.example.net".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 3, 1);
        params.not_after = rcgen::date_time_ymd(2026, 6, 1);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        std::fs::write(&file, certificate.pem()).unwrap();
        let (not_before, not_after) = read_validity(&file).unwrap();
        let problem = |now: &str| validity_problem(Some(not_before), Some(not_after), now.parse().unwrap());
        assert_eq!(
            problem("2026-02-28T00:00:00Z").unwrap(),
            "the certificate is not valid before 2026-03-01T00:00:00Z"
        );
        assert_eq!(problem("2026-03-01T00:00:00Z"), None);
        assert_eq!(problem("2026-05-30T00:00:00Z").unwrap(), "the certificate expires at 2026-06-01T00:00:00Z");
        assert_eq!(problem("2026-06-02T00:00:00Z").unwrap(), "the certificate expired at 2026-06-01T00:00:00Z");
    }
}
