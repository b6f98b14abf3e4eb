//! Dialling: from a site to an open connection, host by host, and to the smarthost that steps in where none can be
//! reached.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dns::lookup::Dane;
use jiff::Timestamp;
use mail::address::Name;
use mail::attempt::TlsPolicy;
use mail::mta_sts::Mode;
use mail::outage::Outage;
use mail::outcome::{Outcome, Phase};
use mail::reply::{Enhanced, Reply};
use mail::task::{Task, TlsDemand};
use tokio::sync::OwnedSemaphorePermit;

use super::{Line, NoLine, facts};
use crate::courier::smtp::{Connection, DialFailure, DialReason, Target, TlsMode};
use crate::guard::Protection;
use crate::plan::{Destination, NoRoute};
use crate::pools::Source;
use crate::settle::Attempted;
use crate::site::Site;
use crate::smarthosts::{Smarthost, SmarthostAt};
use crate::tls_sessions::{self, Meeting};
use crate::worker::Worker;

/// Addresses tried for one connection (Postfix: smtp_mx_address_limit 5).
const ADDRESSES_MAX: usize = 5;
/// Of a host that was tried before, so much is told.
const TOLD_BEFORE_CHARS_MAX: usize = 400;
/// A host that takes longer to greet keeps others waiting for the connection.
const SOON: Duration = Duration::from_secs(5);

/// A host that may take a site's mail.
struct Candidate<'r> {
    host: Name,
    address: SocketAddr,
    /// The smarthost that it belongs to, if it does.
    of: Option<&'r Smarthost>,
}

impl Candidate<'_> {
    /// Its name; the address, as RFC 5321 4.1.3 writes it, of one that has none.
    fn shown(&self) -> String {
        let is_nameless =
            self.of.is_some_and(|smarthost| smarthost.at.contains(&SmarthostAt::Address(self.address)));
        match self.address.ip() {
            _ if !is_nameless => self.host.to_string(),
            IpAddr::V4(ip) => format!("[{ip}]"),
            IpAddr::V6(ip) => format!("[IPv6:{ip}]"),
        }
    }
}

/// Opens a connection to the first host that takes one (RFC 5321 5.1); where none can be reached, to the smarthost that
/// steps in, if there is one.
pub(super) async fn dial(worker: &Arc<Worker>, site: &Arc<Site>, task: &Task) -> Result<Line, NoLine> {
    let began_at = worker.clock.now();
    let seed = worker.entropy.u64();
    let Ok(permit) = Arc::clone(&worker.connections).acquire_owned().await else {
        let text = "no more connections are opened".to_owned();
        let attempted = worker.not_dialled(Outcome::Unreachable(text), Phase::Connect, began_at);
        return Err(NoLine { attempted, unreachable: false });
    };
    let route = site.route();
    let of = match &route.to {
        Destination::Smarthost(smarthost) => Some(&**smarthost),
        Destination::Hosts { .. } => None,
    };
    let addresses = worker.planner.addresses(route, seed, ADDRESSES_MAX).await;
    let dials_at = worker.clock.now();
    let dialled = dial_any(worker, site, (addresses, of), seed, task).await;
    let is_reached = dialled.as_ref().err().is_none_or(|failed| !failed.unreachable);
    site.dialled(is_reached && took_less(SOON, dials_at, worker.clock.now()));
    if let Some(smarthost) = of {
        worker.note_smarthost(smarthost, dialled.as_ref().err());
    }
    let failed = match dialled {
        Ok(open) => return Ok(open.line(permit)),
        Err(failed) => failed,
    };
    let Some(smarthost) = route.fail_over.as_deref().filter(|_| failed.unreachable) else {
        return Err(failed);
    };
    let addresses = worker.planner.smarthost_addresses(smarthost, ADDRESSES_MAX).await;
    let dialled = dial_any(worker, site, (addresses, Some(smarthost)), seed, task).await;
    worker.note_smarthost(smarthost, dialled.as_ref().err());
    match dialled {
        Ok(open) => Ok(open.line(permit)),
        // What is wrong with the recipient's own hosts is what the sender is told.
        Err(_) => Err(failed),
    }
}

impl Worker {
    /// Logs that a smarthost does not answer, once a minute at most, or does again.
    fn note_smarthost(&self, smarthost: &Smarthost, failed: Option<&NoLine>) {
        let now = self.clock.now();
        let since_1970 = Duration::from_millis(u64::try_from(now.as_millisecond()).unwrap_or(0));
        let mut outages = self.smarthost_outages.lock().unwrap_or_else(PoisonError::into_inner);
        let name = &smarthost.name;
        match failed {
            Some(failed) => {
                let outage = outages.entry(name.clone()).or_insert(Outage::after(1));
                if let Some(notice) = outage.failed(since_1970) {
                    let (error, since_s) = (failed.attempted.error(), notice.lasts.as_secs());
                    tracing::warn!(smarthost = %name, error, since_s, "the smarthost does not answer");
                }
            }
            None => {
                if let Some(ended) = outages.get_mut(name).and_then(|outage| outage.answered(since_1970)) {
                    let lasted_s = ended.lasts.as_secs();
                    tracing::info!(smarthost = %name, lasted_s, "the smarthost answers again");
                }
            }
        }
    }
}

fn took_less(than: Duration, began_at: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(began_at)).is_ok_and(|took| took < than)
}

/// A connection that was opened.
struct Opened {
    connection: Connection,
    host: String,
    ip: IpAddr,
    policy: TlsPolicy,
    meeting: Option<Meeting>,
    /// It leads to ourselves.
    leads_here: bool,
}

impl Opened {
    fn line(self, permit: OwnedSemaphorePermit) -> Line {
        let Self { connection, host, ip, policy, meeting, leads_here } = self;
        Line { connection, host, ip, policy, meeting, leads_here, carried: 0, _permit: permit }
    }
}

/// Where hosts are, or why that is not known.
type Found = Result<Vec<(Name, SocketAddr)>, NoRoute>;

/// Opens a connection to the first of these that takes one.
async fn dial_any(
    worker: &Arc<Worker>,
    site: &Arc<Site>,
    (addresses, of): (Found, Option<&Smarthost>),
    seed: u64,
    task: &Task,
) -> Result<Opened, NoLine> {
    let began_at = worker.clock.now();
    let addresses = addresses.map_err(|why| {
        let unreachable = matches!(why, NoRoute::NotNow(_));
        NoLine { attempted: worker.no_route(why, began_at), unreachable }
    })?;
    let (mut last, mut before, mut is_of_no_family) = (None, String::new(), false);
    for (host, address) in addresses {
        let candidate = Candidate { host, address, of };
        let Some(target) = target(worker, site, &candidate, seed) else {
            is_of_no_family = true;
            continue;
        };
        let Dialled { dialled, policy, meeting } = dial_host(worker, site, (target, of), began_at).await;
        let host = candidate.shown();
        match dialled {
            Ok(mut connection) => {
                connection.stop_by(worker.cut.clone());
                if of.is_none()
                    && let Err(why) =
                        worker.planner.meets(task.address.domain(), &candidate.host, connection.name()).await
                {
                    connection.quit().await;
                    if last.is_some() {
                        // What better hosts were silent about they may say later; those behind us do not count.
                        break;
                    }
                    return Err(NoLine { attempted: worker.no_route(why, began_at), unreachable: false });
                }
                site.opened();
                let leads_here = of.is_none() && worker.planner.is_us(&candidate.host, connection.name());
                return Ok(Opened { connection, host, ip: address.ip(), policy, meeting, leads_here });
            }
            Err(failure) => {
                meeting.into_iter().for_each(|mut meeting| worker.count_session(task, &mut meeting));
                if let Some((host, address, failure)) = last.replace((host, address, (failure, policy))) {
                    before += &told_before(&host, address, &failure.0);
                }
            }
        }
    }
    Err(match last {
        Some((host, address, failure)) => {
            let mut no_line = no_line(&host, address, failure, began_at);
            no_line.attempted.transcript.insert_str(0, &before);
            no_line
        }
        None => {
            let (text, phase) = match is_of_no_family {
                true => (no_family(worker, site, of), Phase::Connect),
                false => ("none of the mail hosts has an address".to_owned(), Phase::Dns),
            };
            let attempted = worker.not_dialled(Outcome::Unreachable(text), phase, began_at);
            NoLine { attempted, unreachable: true }
        }
    })
}

/// The hosts have addresses, and we have none that reaches them.
fn no_family(worker: &Worker, site: &Site, of: Option<&Smarthost>) -> String {
    let from = if of.is_some() { worker.pools.to_smarthosts() } else { site.source() };
    let has_four = from.addresses.iter().any(IpAddr::is_ipv4);
    let (ours, theirs) = if has_four { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
    format!(
        "the mail hosts have {theirs} addresses alone, and the source addresses of pool `{}` are {ours}",
        from.pool
    )
}

/// What came of dialling a host.
struct Dialled {
    dialled: Result<Connection, DialFailure>,
    policy: TlsPolicy,
    /// What is to be counted of its TLS, if something is.
    meeting: Option<Meeting>,
}

/// Dials a host, as it says itself that it is to be protected.
async fn dial_host(
    worker: &Worker,
    site: &Site,
    (target, of): (Target, Option<&Smarthost>),
    began_at: Timestamp,
) -> Dialled {
    let (host, address) = (target.host.clone(), target.address);
    // A smarthost is asked for by the operator, not by the DNS.
    let dane = match of {
        Some(_) => Ok(Dane::None),
        None => worker.planner.dane(site.route(), (&host, address.port()), began_at).await,
    };
    let meeting = Meeting::new((host, address.ip()), &dane);
    let (dialled, policy) = match dane {
        Ok(dane) => {
            let (target, policy) = guarded(target, dane, site.route().protection);
            (worker.dialer.dial(&target).await, policy)
        }
        Err(error) => {
            let fault = tls_sessions::unanswered(&error);
            (Err(DialFailure::unasked(DialReason::Tls(fault))), TlsPolicy::Dane)
        }
    };
    let (fault, local, tls) = match &dialled {
        Ok(connection) => (connection.tls_fault(), connection.local(), connection.tls().is_some()),
        Err(failure) => (failure.fault.as_ref(), failure.local, false),
    };
    // The recipient's own hosts alone, and where TLS was tried or was not to be had.
    let counts = of.is_none() && (tls || fault.is_some());
    let meeting = counts.then(|| meeting.went(fault.cloned(), local));
    Dialled { dialled, policy, meeting }
}

/// A host that was tried before the one whose failure is told, in a line of the transcript.
fn told_before(host: &str, address: SocketAddr, failure: &DialFailure) -> String {
    let said = failure.reply.as_ref().map(|reply| format!(": {reply}")).unwrap_or_default();
    let line = format!("{host} [{}]: {}{said}", address.ip(), failure.reason);
    let line: String = line.chars().filter(|c| !c.is_control()).take(TOLD_BEFORE_CHARS_MAX).collect();
    format!("{line}\n")
}

/// What to dial; none for an address of a family of which we have no source, where sources were named:
/// mail must not leave from an address that no SPF record lists.
fn target(worker: &Worker, site: &Site, candidate: &Candidate<'_>, seed: u64) -> Option<Target> {
    let Candidate { host, address, of } = candidate;
    let from = if of.is_some() { worker.pools.to_smarthosts() } else { site.source() };
    let Source { addresses: named, helo, .. } = from;
    let fitting: Vec<_> = named.iter().filter(|s| s.is_ipv4() == address.is_ipv4()).copied().collect();
    if fitting.is_empty() && !named.is_empty() && !address.ip().is_loopback() {
        return None;
    }
    let count = u64::try_from(fitting.len()).unwrap_or(1).max(1);
    let source = usize::try_from(seed % count).ok().and_then(|n| fitting.get(n)).copied();
    let usual = of.and_then(|smarthost| smarthost.tls).unwrap_or(worker.settings.tls);
    let protection = site.route().protection;
    let tls = match (site.tls(), protection.sts, usual) {
        (TlsDemand::Verified, ..) | (_, Some(Mode::Enforce), _) => TlsMode::Verified,
        (TlsDemand::Enforced, _, usual) if usual.may_be_clear() => TlsMode::Required,
        // Hosts that may have TLSA records are not stepped in for in the clear.
        (_, _, usual) if of.is_some() && protection.is_signed && usual.may_be_clear() => TlsMode::Required,
        (_, Some(Mode::Testing), TlsMode::Opportunistic) => TlsMode::Testing,
        (_, _, usual) => usual,
    };
    let credentials = of.and_then(|smarthost| smarthost.credentials.clone());
    // To ourselves mail may go wherever we are.
    let is_trusted = of.is_some() || worker.planner.is_own(host);
    let (host, address) = (host.clone(), *address);
    Some(Target { host, address, is_trusted, source, helo: helo.clone(), tls, dane: None, credentials })
}

/// What the host says of its certificate goes before all else (RFC 8461 2); where none of it can be used, TLS alone is
/// asked for (RFC 7672 2.2).
fn guarded(target: Target, dane: Dane, protection: Protection) -> (Target, TlsPolicy) {
    let otherwise = if protection.sts.is_some() { TlsPolicy::MtaSts } else { TlsPolicy::Opportunistic };
    match dane {
        Dane::Records { base, records } => {
            (Target { host: base, dane: Some(records.into()), ..target }, TlsPolicy::Dane)
        }
        Dane::Unusable if target.tls.may_be_clear() => {
            (Target { tls: TlsMode::Required, ..target }, TlsPolicy::Dane)
        }
        Dane::None | Dane::Unusable => (target, otherwise),
    }
}

/// What a failed dial comes to. A host that refuses us at its greeting says nothing about the message
/// yet, whatever its code: another host, or another hour, may be kinder.
fn no_line(
    host: &str,
    address: SocketAddr,
    (failure, policy): (DialFailure, TlsPolicy),
    began_at: Timestamp,
) -> NoLine {
    let (phase, unreachable) = match &failure.reason {
        DialReason::Private(_) | DialReason::Connect(_) => (Phase::Connect, true),
        // That says nothing of the site.
        DialReason::Source(_) => (Phase::Connect, false),
        DialReason::Lost(_) => (Phase::Greeting, true),
        DialReason::Greeting => (Phase::Greeting, true),
        DialReason::LostAfterGreeting(_) | DialReason::Hello | DialReason::Closing => (Phase::Ehlo, true),
        DialReason::NoTls | DialReason::Tls(_) => (Phase::Tls, false),
        DialReason::NoAuth | DialReason::Auth => (Phase::Auth, true),
    };
    let outcome = match (&failure.reason, failure.reply) {
        // RFC 8689 5: TLS is asked for, and the host has none, or none now.
        (DialReason::NoTls, said) => {
            let text = match said {
                None => format!("{host} does not offer TLS, which is required here"),
                Some(said) => format!("{host} refused TLS, which is required here: {said}"),
            };
            Outcome::Withheld(Reply::new(450, Enhanced::new(4, 7, 30), text))
        }
        (_, Some(reply)) => Outcome::Deferred(reply),
        (reason, None) if host.starts_with('[') => Outcome::Unreachable(format!("{host}: {reason}")),
        (reason, None) => Outcome::Unreachable(format!("{host} [{}]: {reason}", address.ip())),
    };
    let attempted = Attempted {
        outcome,
        phase,
        began_at,
        duration: failure.duration,
        mx_host: Some(host.to_owned()),
        ip: Some(address.ip()),
        source: failure.local,
        tls: failure.tls.map(|tls| facts(tls, policy)),
        transcript: failure.transcript.to_string(),
        is_untried: false,
        answered_before: None,
    };
    NoLine { attempted, unreachable }
}
