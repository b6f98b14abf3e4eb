//! Whom to ask: the authoritative servers of a zone where NS records lead to them, or the configured ones.
//!
//! ```text
//! domain ─► NS, up the tree (configured servers) ─► zone ─► addresses of its name servers ─► the question
//!                                                    ▲                                          │
//!                                                    └───────────── referral to a deeper zone ◄─┘
//! ```
//!
//! The way to a zone is kept for its time to live, answers never. Servers are asked in turn, the next one
//! when the one before fails or takes long; the first usable answer counts. The addresses of name servers
//! are chosen by whoever owns the zone, so only public ones are asked (unless allowed), and all questions
//! together are bounded in number ([`QUESTIONS_MAX`]), those of an inspection ([`QUESTIONS_OF_ONE_MAX`]), and those to
//! one server by the second ([`RATE_OF_SERVER`]). A server that is asked as much as it may be is not waited for: the
//! configured ones are asked instead at once ([`Trouble::Spent`]). Many accounts may be at one DNS provider, and a few of
//! them must not make the others' domains pending; an answer from a resolver's cache, at most a TTL old, is good enough
//! for that while.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name as WireName, RData, Record, RecordType};
use mail::egress;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::DomainCheckSettings;
use super::exchange::{DnsQuery, QueryError, send_query};
use super::kept::TtlCache;
use crate::ipv6::Ipv6Route;
use crate::limiter::{QueryLimiter, QueryRate};
use crate::lookup::{self, ResolverSetupError};

/// Questions under way at once, each with a socket: more wait, within their deadline. The receive buffer of a
/// server on this machine holds some 160.
const QUERIES_MAX: usize = 128;
/// Questions of one inspection. One whose name servers answer asks some thirty, and with the longest SPF record and slips
/// of the pen everywhere under two hundred.
const QUERIES_PER_CHECK_MAX: u32 = 300;
/// What one name server is asked, for all accounts together.
const SERVER_QUERY_RATE: QueryRate = QueryRate { per_second: 100, burst: 400 };
/// Name servers of a zone that are used.
const NAME_SERVERS_MAX: usize = 4;
/// Addresses of them that are asked.
const ADDRESSES_MAX: usize = 6;
/// Zones deeper than the one that was found: a `_domainkey` delegated elsewhere, say.
const REFERRALS_MAX: usize = 4;
/// Labels of a name that are tried on the way up to its zone.
const LABELS_MAX: usize = 12;
/// Zones and name servers to which the way is kept, half a kilobyte each; one more costs a question more.
const ZONES_CACHED_MAX: usize = 16_384;
const HOSTS_CACHED_MAX: usize = 16_384;

/// A zone and who serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZoneServers {
    /// The name at its top.
    pub(super) origin: WireName,
    hosts: Vec<WireName>,
}

/// Asks.
#[derive(Debug)]
pub(super) struct AuthoritativeResolver {
    configured: Vec<SocketAddr>,
    settings: DomainCheckSettings,
    turns: Semaphore,
    ipv6: Ipv6Route,
    zones: TtlCache<WireName, Arc<ZoneServers>>,
    hosts: TtlCache<WireName, Arc<[IpAddr]>>,
    /// What was asked of each name server.
    servers: QueryLimiter<IpAddr>,
    begun: Instant,
}

/// What an inspection may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryBudget<'a> {
    /// Until when.
    pub(super) until: Instant,
    /// How many questions it has asked, each to a server.
    pub(super) asked: &'a AtomicU32,
}

/// What an authoritative server's answer comes to.
enum AuthoritativeReply {
    Answer(Message),
    Referral(ZoneServers),
}

impl AuthoritativeResolver {
    pub(super) fn new(settings: DomainCheckSettings) -> Result<Self, ResolverSetupError> {
        Ok(Self {
            configured: lookup::configured_or_system_servers(&settings.servers)?,
            settings,
            turns: Semaphore::new(QUERIES_MAX),
            ipv6: Ipv6Route::new(false),
            zones: TtlCache::new(ZONES_CACHED_MAX),
            hosts: TtlCache::new(HOSTS_CACHED_MAX),
            servers: QueryLimiter::default(),
            begun: Instant::now(),
        })
    }

    pub(super) fn allows_private(&self) -> bool {
        self.settings.allow_private
    }

    /// When an inspection that begins now has to end.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.deadline
    }

    /// Asks the configured servers. A failure that goes away when signatures are not checked is
    /// [`Trouble::Bogus`].
    pub(super) async fn query_configured(
        &self,
        name: &WireName,
        kind: RecordType,
        bounds: QueryBudget<'_>,
    ) -> Result<Message, QueryError> {
        let question = DnsQuery { name, kind, recursive: true, unchecked: false };
        let asked = self.query_configured_servers(question, bounds).await;
        if asked.as_ref().err() != Some(&QueryError::ServerFailure) {
            return asked;
        }
        match self.query_configured_servers(DnsQuery { unchecked: true, ..question }, bounds).await {
            Ok(_) => Err(QueryError::Bogus),
            Err(_) => Err(QueryError::ServerFailure),
        }
    }

    async fn query_configured_servers(
        &self,
        question: DnsQuery<'_>,
        bounds: QueryBudget<'_>,
    ) -> Result<Message, QueryError> {
        // Twice each: a packet may be lost.
        let servers: Vec<SocketAddr> = self.configured.iter().chain(&self.configured).copied().collect();
        let accept = |reply: Message| check_response_code(&reply).map(|()| reply);
        self.first_answer(&servers, question, accept, bounds).await
    }

    /// The zone that a name is in; `None` when no NS records lead to it.
    pub(super) async fn find_zone(&self, name: &WireName, bounds: QueryBudget<'_>) -> Option<Arc<ZoneServers>> {
        if let Some(zone) = self.zones.get(name, Instant::now()) {
            return Some(zone);
        }
        let mut above = name.clone();
        for _ in 0..LABELS_MAX {
            if above.is_root() {
                break;
            }
            // Whether the signatures hold is another question.
            let question = DnsQuery { name: &above, kind: RecordType::NS, recursive: true, unchecked: true };
            let reply = self.query_configured_servers(question, bounds).await.ok()?;
            if let Some((zone, ttl)) = zone_from_records(&reply.answers, &above) {
                let zone = Arc::new(zone);
                self.zones.put(name.clone(), Arc::clone(&zone), (ttl, Instant::now()));
                return Some(zone);
            }
            above = above.base_name();
        }
        None
    }

    /// Asks the servers of a zone, and those of the deeper zones that they point at.
    pub(super) async fn query_authoritative(
        &self,
        zone: &ZoneServers,
        name: &WireName,
        kind: RecordType,
        bounds: QueryBudget<'_>,
    ) -> Result<Message, QueryError> {
        let mut zone = zone.clone();
        for _ in 0..REFERRALS_MAX {
            let servers = self.zone_server_addresses(&zone, bounds).await;
            let question = DnsQuery { name, kind, recursive: false, unchecked: false };
            let accept = |reply: Message| classify_reply(reply, name, &zone);
            match self.first_answer(&servers, question, accept, bounds).await? {
                AuthoritativeReply::Answer(reply) => return Ok(reply),
                AuthoritativeReply::Referral(deeper) => zone = deeper,
            }
        }
        Err(QueryError::Lame)
    }

    async fn zone_server_addresses(&self, zone: &ZoneServers, bounds: QueryBudget<'_>) -> Vec<SocketAddr> {
        let lists = join_all(zone.hosts.iter().map(|host| self.host_addresses(host, bounds))).await;
        // One of each host first, so that a host of many addresses does not stand for all.
        let longest = lists.iter().map(|list| list.len()).max().unwrap_or(0);
        let mut servers = Vec::new();
        for n in 0..longest {
            for &ip in lists.iter().filter_map(|list| list.get(n)) {
                let server = SocketAddr::new(ip, self.settings.authority_port);
                if (self.settings.allow_private || egress::is_public(ip)) && !servers.contains(&server) {
                    servers.push(server);
                }
            }
        }
        servers.truncate(ADDRESSES_MAX);
        servers
    }

    async fn host_addresses(&self, host: &WireName, bounds: QueryBudget<'_>) -> Arc<[IpAddr]> {
        if let Some(known) = self.hosts.get(host, Instant::now()) {
            return known;
        }
        // A name server whose addresses are slow to come holds up nothing: there are others.
        let until = bounds.until.min(Instant::now() + self.settings.try_timeout);
        let bounds = QueryBudget { until, ..bounds };
        let ask = async |kind| {
            let question = DnsQuery { name: host, kind, recursive: true, unchecked: true };
            let reply = self.query_configured_servers(question, bounds).await;
            reply.map(|reply| reply.answers).unwrap_or_default()
        };
        let records = match self.ipv6.has_route() {
            true => {
                let (mut four, six) = tokio::join!(ask(RecordType::A), ask(RecordType::AAAA));
                four.extend(six);
                four
            }
            false => ask(RecordType::A).await,
        };
        let ips: Arc<[IpAddr]> =
            records.iter().filter_map(|record| record.data.ip_addr()).take(ADDRESSES_MAX).collect();
        if !ips.is_empty() {
            self.hosts.put(host.clone(), Arc::clone(&ips), (minimum_ttl(&records), Instant::now()));
        }
        ips
    }

    /// The first usable answer of some servers.
    async fn first_answer<T>(
        &self,
        servers: &[SocketAddr],
        question: DnsQuery<'_>,
        accept: impl Fn(Message) -> Result<T, QueryError>,
        bounds: QueryBudget<'_>,
    ) -> Result<T, QueryError> {
        let mut waiting = servers.iter();
        let mut under_way = FuturesUnordered::new();
        let mut worst = QueryError::Unreachable;
        let asked = timeout_at(bounds.until, async {
            loop {
                match waiting.next() {
                    Some(&server) => under_way.push(self.query_server(server, question, bounds)),
                    None if under_way.is_empty() => return Err(worst),
                    None => {}
                }
                let more = waiting.len() > 0;
                tokio::select! {
                    Some(reply) = under_way.next() => match reply.and_then(&accept) {
                        Ok(answer) => return Ok(answer),
                        Err(trouble) => worst = worst.max(trouble),
                    },
                    () = sleep(self.settings.next_after), if more => {}
                }
            }
        });
        asked.await.unwrap_or(Err(QueryError::TimedOut))
    }

    async fn query_server(
        &self,
        server: SocketAddr,
        question: DnsQuery<'_>,
        bounds: QueryBudget<'_>,
    ) -> Result<Message, QueryError> {
        if !self.acquire_query(server.ip()) {
            return Err(QueryError::RateLimited);
        }
        if bounds.asked.fetch_add(1, Ordering::Relaxed) >= QUERIES_PER_CHECK_MAX {
            return Err(QueryError::TimedOut);
        }
        // The semaphore is never closed; if it were, we would ask without waiting.
        let _turn = self.turns.acquire().await;
        send_query(server, question, self.settings.try_timeout).await
    }

    /// Whether a name server may be asked now that somebody else has named. Ours are asked as much as they are needed:
    /// what is asked of them is bounded by who has it asked.
    fn acquire_query(&self, ip: IpAddr) -> bool {
        let now_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.configured.iter().any(|server| server.ip() == ip)
            || self.servers.acquire(&ip, 1, (SERVER_QUERY_RATE, now_ns)).is_ok()
    }

    /// Forgets the way to a zone that led nowhere.
    pub(super) fn evict_zone(&self, name: &WireName) {
        self.zones.remove(name);
    }
}

fn check_response_code(reply: &Message) -> Result<(), QueryError> {
    match reply.metadata.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => Ok(()),
        ResponseCode::ServFail => Err(QueryError::ServerFailure),
        ResponseCode::Refused | ResponseCode::NotAuth => Err(QueryError::Refused),
        _ => Err(QueryError::Garbled),
    }
}

/// An answer counts when the server says that it is its own to give (RFC 1035 4.1.1, AA); else it may name
/// the servers of a zone between this one and the name.
fn classify_reply(reply: Message, name: &WireName, zone: &ZoneServers) -> Result<AuthoritativeReply, QueryError> {
    check_response_code(&reply)?;
    if reply.metadata.authoritative {
        return Ok(AuthoritativeReply::Answer(reply));
    }
    let deeper = reply.authorities.iter().map(|record| &record.name).find(|owner| {
        owner.zone_of(name) && zone.origin.zone_of(owner) && owner.num_labels() > zone.origin.num_labels()
    });
    let deeper = deeper.and_then(|owner| zone_from_records(&reply.authorities, owner));
    deeper.map(|(zone, _)| AuthoritativeReply::Referral(zone)).ok_or(QueryError::Lame)
}

fn zone_from_records(records: &[Record], origin: &WireName) -> Option<(ZoneServers, Duration)> {
    let of_it = |record: &&Record| record.name == *origin && record.record_type() == RecordType::NS;
    let ttl = records.iter().filter(of_it).map(|record| record.ttl).min()?;
    let hosts = records.iter().filter(of_it).filter_map(|record| match &record.data {
        RData::NS(host) => Some(host.0.clone()),
        _ => None,
    });
    let zone = ZoneServers { origin: origin.clone(), hosts: hosts.take(NAME_SERVERS_MAX).collect() };
    Some((zone, Duration::from_secs(u64::from(ttl))))
}

fn minimum_ttl(records: &[Record]) -> Duration {
    Duration::from_secs(u64::from(records.iter().map(|record| record.ttl).min().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_server_that_others_name_is_asked_so_much() {
        let ours: SocketAddr = "192.0.2.53:53".parse().unwrap();
        let asker =
            AuthoritativeResolver::new(DomainCheckSettings { servers: vec![ours], ..DomainCheckSettings::default() })
                .unwrap();
        let asked = |ip: &str| {
            let ip = ip.parse().unwrap();
            (0..10_000).take_while(|_| asker.acquire_query(ip)).count()
        };
        let begun = Instant::now();
        let at_once = asked("198.51.100.1");
        let since = usize::try_from(begun.elapsed().as_millis()).unwrap() / 10 + 1;
        assert!((400..=400 + since).contains(&at_once), "{at_once}");
        assert!(asked("198.51.100.2") >= 400, "another server");
        assert_eq!(asked("192.0.2.53"), 10_000, "ours is bounded by who has it asked");
        let (count, name) = (AtomicU32::new(0), WireName::root());
        let bounds = QueryBudget { until: asker.deadline(), asked: &count };
        let question = DnsQuery { name: &name, kind: RecordType::NS, recursive: false, unchecked: false };
        asker.servers.charge("198.51.100.1".parse().unwrap(), 1_000, SERVER_QUERY_RATE, 0);
        let refused = asker.query_server(([198, 51, 100, 1], 9).into(), question, bounds).now_or_never();
        assert_eq!(refused.map(|answer| answer.err()), Some(Some(QueryError::RateLimited)), "nobody waits");
        assert_eq!(count.into_inner(), 0, "nobody was asked");
    }

    #[tokio::test]
    async fn an_inspection_asks_so_many_questions() {
        let asker = AuthoritativeResolver::new(DomainCheckSettings {
            servers: vec![([127, 0, 0, 1], 9).into()],
            ..DomainCheckSettings::default()
        })
        .unwrap();
        let (asked, name) = (AtomicU32::new(QUERIES_PER_CHECK_MAX), WireName::root());
        let bounds = QueryBudget { until: asker.deadline(), asked: &asked };
        let question = DnsQuery { name: &name, kind: RecordType::NS, recursive: true, unchecked: true };
        let refused = asker.query_server(([127, 0, 0, 1], 9).into(), question, bounds).now_or_never();
        assert_eq!(refused.map(|answer| answer.err()), Some(Some(QueryError::TimedOut)), "nobody is asked");
    }
}
