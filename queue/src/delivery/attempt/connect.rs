//! Connecting: tries the hosts of a route in order, then the fallback smarthost if none can be reached. Every
//! third attempt begins at another preference.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dns::resolver::DaneRecords;
use jiff::Timestamp;
use message::address::DomainName;
use message::mta_sts::MtaStsMode;
use message::outcome::{AttemptPhase, Outcome};
use message::reply::{Enhanced, SmtpReply};
use model::attempt::TlsPolicy;
use model::outage::Outage;
use model::task::{Task, TaskTlsRequirement};
use tokio::sync::OwnedSemaphorePermit;

use super::{DeliveryAgent, HostConnectError, HostOrder, OpenConnection, attempt_tls};
use crate::delivery::client::smtp::{DialFailure, DialReason, DialTarget, SmtpConnection, TlsSecurityLevel};
use crate::delivery::outcome::AttemptResult;
use crate::delivery::tls_session_stats::{self, TlsSession};
use crate::routing::host_addresses::HostAddresses;
use crate::routing::smarthosts::{Smarthost, SmarthostEndpoint};
use crate::routing::transport_security::TransportSecurity;
use crate::routing::{NextHop, RouteError};
use crate::scheduler::ready_queue::ReadyQueue;
use crate::scheduler::source_pools::SourceAddresses;

/// Length limit of the transcript line about a host that failed earlier.
const EARLIER_FAILURE_CHARS_MAX: usize = 400;
/// A dial that takes longer counts as slow: a slow greeting makes other messages wait for the connection.
const PROMPT_WITHIN: Duration = Duration::from_secs(5);

/// A host that accepts mail of the route.
struct CandidateHost<'r> {
    host: DomainName,
    address: SocketAddr,
    /// The smarthost that the host belongs to, if any.
    smarthost: Option<&'r Smarthost>,
}

impl CandidateHost<'_> {
    /// Host name, or an address literal (RFC 5321 4.1.3) if it has no name.
    fn display_name(&self) -> String {
        let is_nameless = self
            .smarthost
            .is_some_and(|smarthost| smarthost.endpoints.contains(&SmarthostEndpoint::Address(self.address)));
        match self.address.ip() {
            _ if !is_nameless => self.host.to_string(),
            IpAddr::V4(ip) => format!("[{ip}]"),
            IpAddr::V6(ip) => format!("[IPv6:{ip}]"),
        }
    }
}

/// Connects to the first host that accepts a connection (RFC 5321 5.1). Falls back to the smarthost, if the route has
/// one and no host can be reached.
pub(super) async fn connect(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    task: &Task,
) -> Result<OpenConnection, HostConnectError> {
    let began_at = agent.services.clock.now();
    let seed = agent.services.entropy.u64();
    let Ok(permit) = Arc::clone(&agent.connections).acquire_owned().await else {
        let text = "shutting down: no new connections".to_owned();
        let attempted =
            agent.outcomes.no_connection_result(Outcome::Unreachable(text), AttemptPhase::Connect, began_at);
        return Err(HostConnectError { result: attempted, is_queue_unreachable: false });
    };
    // Shared, because the permit of a failed dial is needed for the fail-over.
    let permit = Arc::new(permit);
    let route = &site.route;
    let smarthost_hop = match &route.next_hop {
        NextHop::Smarthost(smarthost) => Some(&**smarthost),
        NextHop::Hosts { .. } => None,
    };
    let first = route.first_preference(task.attempts);
    let addresses = agent.queues.routes.router.host_addresses(route, first, seed).await;
    let dials_at = agent.services.clock.now();
    let dialled = connect_any(agent, site, &permit, addresses, smarthost_hop, seed, task).await;
    let is_reached = dialled.as_ref().err().is_none_or(|failed| !failed.is_queue_unreachable);
    // How fast a backup host answers says nothing about the queue's first attempts.
    if first == 0 {
        site.dials.record_dial(is_reached && is_faster_than(PROMPT_WITHIN, dials_at, agent.services.clock.now()));
    }
    if let Some(smarthost) = smarthost_hop {
        agent.note_smarthost(smarthost, dialled.as_ref().err());
    }
    let failed = match dialled {
        Ok(open) => return Ok(open),
        Err(failed) => failed,
    };
    let Some(smarthost) = route.fail_over.as_deref().filter(|_| failed.is_queue_unreachable) else {
        return Err(failed);
    };
    let addresses = agent.queues.routes.router.smarthost_addresses(smarthost).await;
    let dialled = connect_any(agent, site, &permit, addresses, Some(smarthost), seed, task).await;
    agent.note_smarthost(smarthost, dialled.as_ref().err());
    // Report the failure of the recipient's own hosts, not the smarthost's.
    dialled.map_err(|_| failed)
}

/// Outages of a smarthost, as the log tells them.
#[derive(Debug)]
pub(crate) struct SmarthostOutages {
    /// It does not respond.
    silent: Outage,
    /// It responds, but no mail can be sent on its connections.
    unusable: Outage,
}

impl Default for SmarthostOutages {
    fn default() -> Self {
        Self { silent: Outage::after(1), unusable: Outage::after(1) }
    }
}

impl DeliveryAgent {
    /// Logs that a smarthost fails, at most once a minute, and that it is up again.
    fn note_smarthost(&self, smarthost: &Smarthost, failed: Option<&HostConnectError>) {
        let now = self.services.clock.now();
        let since_1970 = Duration::from_millis(u64::try_from(now.as_millisecond()).unwrap_or(0));
        let mut all = self.smarthost_outages.lock();
        let name = &smarthost.name;
        if failed.is_none() && !all.contains_key(name) {
            return;
        }
        let outages = all.entry(name.clone()).or_default();
        let allows_plaintext = smarthost.tls.unwrap_or(self.tls).allows_plaintext();
        match failed {
            Some(failed) if !has_responded(&failed.result) => {
                if let Some(notice) = outages.silent.failed(since_1970) {
                    let (error, since_s) = (failed.result.error_text(), notice.lasts.as_secs());
                    tracing::warn!(smarthost = %name, error, since_s, "the smarthost is not responding");
                }
                return;
            }
            // Only this message or its domain requires TLS.
            Some(failed) if failed.result.phase == AttemptPhase::Tls && allows_plaintext => {}
            Some(failed) => {
                if let Some(notice) = outages.unusable.failed(since_1970) {
                    let (error, since_s) = (failed.result.error_text(), notice.lasts.as_secs());
                    tracing::warn!(smarthost = %name, error, since_s, "the smarthost responds, but cannot be used");
                }
            }
            None => {
                if let Some(ended) = outages.unusable.answered(since_1970) {
                    let lasted_s = ended.lasts.as_secs();
                    tracing::info!(smarthost = %name, lasted_s, "the smarthost can be used again");
                }
            }
        }
        if let Some(ended) = outages.silent.answered(since_1970) {
            let lasted_s = ended.lasts.as_secs();
            tracing::info!(smarthost = %name, lasted_s, "the smarthost is responding again");
        }
    }
}

/// True if a host that could not be used has sent a reply.
fn has_responded(result: &AttemptResult) -> bool {
    result.outcome.reply().is_some() || matches!(result.phase, AttemptPhase::Tls | AttemptPhase::Auth)
}

fn is_faster_than(limit: Duration, began_at: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(began_at)).is_ok_and(|elapsed| elapsed < limit)
}

/// Connects to the first of the addresses that accepts a connection.
async fn connect_any(
    agent: &Arc<DeliveryAgent>,
    site: &Arc<ReadyQueue>,
    permit: &Arc<OwnedSemaphorePermit>,
    addresses: Result<HostAddresses<'_>, RouteError>,
    smarthost: Option<&Smarthost>,
    seed: u64,
    task: &Task,
) -> Result<OpenConnection, HostConnectError> {
    let began_at = agent.services.clock.now();
    let mut addresses = addresses.map_err(|error| {
        let unreachable = matches!(error, RouteError::Transient(_));
        HostConnectError {
            result: agent.outcomes.route_error_result(error, began_at),
            is_queue_unreachable: unreachable,
        }
    })?;
    let (mut last, mut earlier_failures, mut lacks_source_family) = (None, String::new(), false);
    let mut loop_found = None;
    while let Some((host, address)) = addresses.next().await {
        let candidate = CandidateHost { host, address, smarthost };
        let Some(target) = dial_target(agent, site, &candidate, seed) else {
            lacks_source_family = true;
            addresses.uncount_wait();
            continue;
        };
        let DialOutcome { result: dialled, policy, tls_session } =
            connect_host(agent, site, target, smarthost, began_at).await;
        let host = candidate.display_name();
        match dialled {
            Ok(mut connection) => {
                connection.cancel_with(agent.services.abort.clone());
                if smarthost.is_none()
                    && let Err(error) = agent
                        .queues
                        .routes
                        .router
                        .check_loop(task.address.domain(), &candidate.host, &connection.ehlo_name)
                        .await
                {
                    connection.quit().await;
                    // Hosts less preferred than ourselves do not count (RFC 5321 5.1).
                    addresses.retain_better(&site.route, &candidate.host);
                    loop_found = Some(error);
                    continue;
                }
                site.connection_opened();
                let is_self =
                    smarthost.is_none() && agent.queues.routes.router.is_self(&candidate.host, &connection.ehlo_name);
                let order = smarthost.is_none().then(|| HostOrder::of_attempt(&site.route, task, &candidate.host));
                let (_permit, ip, sent) = (Arc::clone(permit), address.ip(), 0);
                return Ok(OpenConnection { _permit, connection, host, ip, order, policy, tls_session, is_self, sent });
            }
            Err(failure) => {
                if failure.is_refused_at_once() {
                    addresses.uncount_wait();
                }
                tls_session.into_iter().for_each(|mut session| agent.tls_stats.count_session(task, &mut session));
                if let Some((host, address, failure, _)) = last.replace((host, address, failure, policy)) {
                    earlier_failures += &earlier_failure_line(&host, address, &failure);
                }
            }
        }
    }
    // Better hosts that did not answer now may later.
    Err(match (last, loop_found) {
        (Some((host, address, failure, policy)), _) => {
            let mut error = connect_error(&host, address, failure, policy, began_at);
            error.result.transcript.insert_str(0, &earlier_failures);
            error
        }
        (None, Some(error)) => loop_error(agent, &addresses, error, began_at),
        (None, None) => {
            let source_text = lacks_source_family.then(|| no_source_address_text(agent, site, smarthost));
            no_address_error(agent, source_text, began_at)
        }
    })
}

/// The error of a mail loop. It is temporary if the lookup of a better host failed: the host may have an address later.
fn loop_error(
    agent: &DeliveryAgent,
    addresses: &HostAddresses<'_>,
    error: RouteError,
    began_at: Timestamp,
) -> HostConnectError {
    let lookup_error = addresses.lookup_error().map(|text| RouteError::Transient(text.to_owned()));
    let result = agent.outcomes.route_error_result(lookup_error.unwrap_or(error), began_at);
    HostConnectError { result, is_queue_unreachable: false }
}

/// The error if no host could be dialled: no source address fits, as the text says, or the hosts have no addresses.
fn no_address_error(agent: &DeliveryAgent, source_text: Option<String>, began_at: Timestamp) -> HostConnectError {
    let (text, phase) = match source_text {
        Some(text) => (text, AttemptPhase::Connect),
        None => ("none of the mail hosts has an IP address".to_owned(), AttemptPhase::Dns),
    };
    let attempted = agent.outcomes.no_connection_result(Outcome::Unreachable(text), phase, began_at);
    HostConnectError { result: attempted, is_queue_unreachable: true }
}

/// Error text: the hosts have addresses of one family only, and the source pool has only the other.
fn no_source_address_text(agent: &DeliveryAgent, site: &ReadyQueue, smarthost: Option<&Smarthost>) -> String {
    let from = if smarthost.is_some() { agent.queues.pools.smarthost_source() } else { &*site.source };
    let has_ipv4 = from.addresses.iter().any(IpAddr::is_ipv4);
    let (source_family, host_family) = if has_ipv4 { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
    format!(
        "the mail hosts have only {host_family} addresses, and source pool `{}` has only {source_family} addresses",
        from.pool
    )
}

/// Result of dialling one host.
struct DialOutcome {
    result: Result<SmtpConnection, DialFailure>,
    policy: TlsPolicy,
    /// TLS session to be counted for TLS reports, if it counts.
    tls_session: Option<TlsSession>,
}

/// Dials a host under its own DANE records.
async fn connect_host(
    agent: &DeliveryAgent,
    site: &ReadyQueue,
    target: DialTarget,
    smarthost: Option<&Smarthost>,
    began_at: Timestamp,
) -> DialOutcome {
    let (host, address) = (target.host.clone(), target.address);
    // A smarthost is protected as the operator configured, not by its DNS records.
    let dane = match smarthost {
        Some(_) => Ok(DaneRecords::None),
        None => agent.queues.routes.router.lookup_dane(&site.route, &host, address.port(), began_at).await,
    };
    let session = TlsSession::new(host, address.ip(), &dane);
    let (dialled, policy) = match dane {
        Ok(dane) => {
            let (target, policy) = apply_tls_policy(target, dane, site.route.security);
            (agent.dialer.connect(&target).await, policy)
        }
        Err(error) => {
            let fault = tls_session_stats::tlsa_lookup_fault(&error);
            (Err(DialFailure::not_attempted(DialReason::Tls(fault))), TlsPolicy::Dane)
        }
    };
    let (fault, local, tls) = match &dialled {
        Ok(connection) => (connection.tls_fault(), connection.source_ip, connection.tls().is_some()),
        Err(failure) => (failure.fault.as_ref(), failure.local, false),
    };
    // TLS reports count the recipient's own hosts only, and only where TLS was tried or missing.
    let counts = smarthost.is_none() && (tls || fault.is_some());
    let session = counts.then(|| session.with_result(fault.cloned(), local));
    DialOutcome { result: dialled, policy, tls_session: session }
}

/// Transcript line about a host that failed before the reported one.
fn earlier_failure_line(host: &str, address: SocketAddr, failure: &DialFailure) -> String {
    let reply_text = failure.reply.as_ref().map(|reply| format!(": {reply}")).unwrap_or_default();
    let line = format!("{host} [{}]: {}{reply_text}", address.ip(), failure.reason);
    let line: String = line.chars().filter(|c| !c.is_control()).take(EARLIER_FAILURE_CHARS_MAX).collect();
    format!("{line}\n")
}

/// Builds the dial target. Returns `None` if sources are configured and none is of the address's family: mail must not
/// leave from an address that no SPF record lists.
fn dial_target(
    agent: &DeliveryAgent,
    site: &ReadyQueue,
    candidate: &CandidateHost<'_>,
    seed: u64,
) -> Option<DialTarget> {
    let CandidateHost { host, address, smarthost } = candidate;
    let from = if smarthost.is_some() { agent.queues.pools.smarthost_source() } else { &*site.source };
    let SourceAddresses { addresses: sources, helo, .. } = from;
    let fitting: Vec<_> = sources.iter().filter(|s| s.is_ipv4() == address.is_ipv4()).copied().collect();
    if fitting.is_empty() && !sources.is_empty() && !address.ip().is_loopback() {
        return None;
    }
    let count = u64::try_from(fitting.len()).unwrap_or(1).max(1);
    let source = usize::try_from(seed % count).ok().and_then(|n| fitting.get(n)).copied();
    let configured = smarthost.and_then(|smarthost| smarthost.tls).unwrap_or(agent.tls);
    let protection = site.route.security;
    let tls = match (site.tls, protection.sts, configured) {
        (TaskTlsRequirement::Verified, ..) | (_, Some(MtaStsMode::Enforce), _) => TlsSecurityLevel::Verified,
        (TaskTlsRequirement::Enforced, _, configured) if configured.allows_plaintext() => TlsSecurityLevel::Required,
        // A smarthost does not replace hosts that may have TLSA records without TLS.
        (_, _, configured) if smarthost.is_some() && protection.is_dnssec_signed && configured.allows_plaintext() => {
            TlsSecurityLevel::Required
        }
        (_, Some(MtaStsMode::Testing), TlsSecurityLevel::Opportunistic) => TlsSecurityLevel::Testing,
        (_, _, configured) => configured,
    };
    let credentials = smarthost.and_then(|smarthost| smarthost.credentials.clone());
    // Connections to ourselves may use private addresses.
    let is_trusted = smarthost.is_some() || agent.queues.routes.router.is_own_host(host);
    let (host, address) = (host.clone(), *address);
    Some(DialTarget { host, address, is_trusted, source, helo: helo.clone(), tls, dane: None, credentials })
}

/// Applies DANE, which takes precedence over MTA-STS (RFC 8461 2). If none of the TLSA records is usable, TLS is
/// required without verification (RFC 7672 2.2).
fn apply_tls_policy(target: DialTarget, dane: DaneRecords, protection: TransportSecurity) -> (DialTarget, TlsPolicy) {
    let policy = if protection.sts.is_some() { TlsPolicy::MtaSts } else { TlsPolicy::Opportunistic };
    match dane {
        DaneRecords::Records { base, records } => {
            (DialTarget { host: base, dane: Some(records.into()), ..target }, TlsPolicy::Dane)
        }
        DaneRecords::Unusable if target.tls.allows_plaintext() => {
            (DialTarget { tls: TlsSecurityLevel::Required, ..target }, TlsPolicy::Dane)
        }
        DaneRecords::None | DaneRecords::Unusable => (target, policy),
    }
}

/// Converts a failed dial into an attempt result. A refusal at the greeting, whatever its code, does not fail the
/// message: another host, or a later attempt, may accept it.
fn connect_error(
    host: &str,
    address: SocketAddr,
    failure: DialFailure,
    policy: TlsPolicy,
    began_at: Timestamp,
) -> HostConnectError {
    let (phase, unreachable) = match &failure.reason {
        DialReason::Private(_) | DialReason::Connect(_) => (AttemptPhase::Connect, true),
        // A local source address failed: the destination is not at fault.
        DialReason::Source(_) => (AttemptPhase::Connect, false),
        DialReason::ConnectionLost(_) => (AttemptPhase::Greeting, true),
        DialReason::Greeting => (AttemptPhase::Greeting, true),
        DialReason::ConnectionLostAfterGreeting(_) | DialReason::Hello | DialReason::Closing => {
            (AttemptPhase::Ehlo, true)
        }
        DialReason::NoTls | DialReason::Tls(_) => (AttemptPhase::Tls, false),
        DialReason::NoAuth | DialReason::Auth => (AttemptPhase::Auth, true),
    };
    let outcome = match (&failure.reason, failure.reply) {
        // RFC 8689 5: TLS is required and the host does not offer it, or refuses it now.
        (DialReason::NoTls, reply) => {
            let text = match reply {
                None => format!("{host} does not offer TLS, which is required here"),
                Some(reply) => format!("{host} refused TLS, which is required here: {reply}"),
            };
            Outcome::Withheld(SmtpReply::new(450, Enhanced::new(4, 7, 30), text))
        }
        (_, Some(reply)) => Outcome::Deferred(reply),
        (reason, None) if host.starts_with('[') => Outcome::Unreachable(format!("{host}: {reason}")),
        (reason, None) => Outcome::Unreachable(format!("{host} [{}]: {reason}", address.ip())),
    };
    let attempted = AttemptResult {
        outcome,
        phase,
        began_at,
        duration: failure.duration,
        mx_host: Some(host.to_owned()),
        ip: Some(address.ip()),
        source: failure.local,
        tls: failure.tls.map(|tls| attempt_tls(tls, policy)),
        transcript: failure.transcript.to_string(),
        is_untried: false,
        earlier_reply: None,
    };
    HostConnectError { result: attempted, is_queue_unreachable: unreachable }
}
