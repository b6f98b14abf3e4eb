//! Queries the authoritative servers of a zone, or the configured recursive servers if NS records lead to no zone.
//!
//! ```text
//! domain ─► NS, up the tree (configured servers) ─► zone ─► addresses of its name servers ─► query
//!                                                    ▲                                         │
//!                                                    └──────────── referral to a deeper zone ◄─┘
//! ```
//!
//! Delegations and server addresses are cached for their TTL, answers never. Servers are queried in order, the next one
//! if the previous one fails or is slow; the first usable answer is taken.
//!
//! The owner of a zone chooses the addresses of its name servers. Therefore only public addresses are queried unless
//! private ones are allowed. Further limits are the concurrent queries ([`QUERIES_MAX`]), the queries of one check
//! ([`QUERIES_PER_CHECK_MAX`]), and the queries per second to one server ([`SERVER_QUERY_RATE`]).
//!
//! A check does not wait for a server that is at its limit. It gets [`QueryError::RateLimited`], and the configured
//! servers are queried instead. Many accounts can use the same DNS provider, and a few of them must not make the
//! domains of others pending. Meanwhile an answer from a resolver's cache is good enough, as it is at most one TTL old.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name as WireName, RData, Record, RecordType};
use model::public_ip;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::DomainCheckSettings;
use super::query::{DnsQuery, QueryError, send_query};
use super::ttl_cache::TtlCache;
use crate::ipv6::Ipv6Route;
use crate::query_limiter::{QueryLimiter, QueryRate};
use crate::resolver::{self, ResolverSetupError};

/// Maximum concurrent queries, each with its own socket. Others wait, within their deadline. The receive buffer of a
/// server on this host holds some 160 queries.
const QUERIES_MAX: usize = 128;
/// Maximum queries of one check. A check whose name servers answer needs some thirty, and with the longest SPF record
/// and many mistakes fewer than two hundred.
const QUERIES_PER_CHECK_MAX: u32 = 300;
/// Rate limit of one name server, for all accounts together.
const SERVER_QUERY_RATE: QueryRate = QueryRate { per_second: 100, burst: 400 };
/// Maximum name servers used of a zone.
const NAME_SERVERS_MAX: usize = 4;
/// Maximum addresses queried of a zone's name servers.
const ADDRESSES_MAX: usize = 6;
/// Maximum referrals to deeper zones, such as a `_domainkey` that is delegated elsewhere.
const REFERRALS_MAX: usize = 4;
/// Maximum labels removed from a name to find its zone.
const LABELS_MAX: usize = 12;
/// Maximum cached zones and name servers, of half a kilobyte each. An uncached one costs one more query.
const ZONES_CACHED_MAX: usize = 16_384;
const HOSTS_CACHED_MAX: usize = 16_384;

/// A zone and its name servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZoneServers {
    /// The zone's apex.
    pub(super) origin: WireName,
    hosts: Vec<WireName>,
}

/// Sends the queries of domain checks.
#[derive(Debug)]
pub(super) struct AuthoritativeResolver {
    configured: Vec<SocketAddr>,
    settings: DomainCheckSettings,
    permits: Semaphore,
    ipv6: Ipv6Route,
    zones: TtlCache<WireName, Arc<ZoneServers>>,
    hosts: TtlCache<WireName, Arc<[IpAddr]>>,
    /// Rate limits by name server.
    servers: QueryLimiter<IpAddr>,
    began: Instant,
}

/// The limits of a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryBudget<'a> {
    pub(super) until: Instant,
    /// Number of queries sent so far, one per server.
    pub(super) query_count: &'a AtomicU32,
}

/// An answer of an authoritative server.
enum AuthoritativeReply {
    Answer(Message),
    Referral(ZoneServers),
}

impl AuthoritativeResolver {
    pub(super) fn new(settings: DomainCheckSettings) -> Result<Self, ResolverSetupError> {
        Ok(Self {
            configured: resolver::configured_or_system_servers(&settings.servers)?,
            settings,
            permits: Semaphore::new(QUERIES_MAX),
            ipv6: Ipv6Route::new(false),
            zones: TtlCache::new(ZONES_CACHED_MAX),
            hosts: TtlCache::new(HOSTS_CACHED_MAX),
            servers: QueryLimiter::default(),
            began: Instant::now(),
        })
    }

    pub(super) fn allows_private(&self) -> bool {
        self.settings.allow_private
    }

    /// The deadline of a check that begins now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.deadline
    }

    /// Queries the configured servers. Returns [`QueryError::Bogus`] if the query fails with validation and succeeds
    /// without.
    pub(super) async fn query_configured(
        &self,
        name: &WireName,
        kind: RecordType,
        bounds: QueryBudget<'_>,
    ) -> Result<Message, QueryError> {
        let question = DnsQuery { name, kind, recursive: true, unchecked: false };
        let reply = self.query_configured_servers(question, bounds).await;
        if reply.as_ref().err() != Some(&QueryError::ServerFailure) {
            return reply;
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
        // Each server twice, because a packet can be lost.
        let servers: Vec<SocketAddr> = self.configured.iter().chain(&self.configured).copied().collect();
        let accept = |reply: Message| check_response_code(&reply).map(|()| reply);
        self.first_answer(&servers, question, accept, bounds).await
    }

    /// Finds the zone of a name; `None` if no NS records lead to it.
    pub(super) async fn find_zone(&self, name: &WireName, bounds: QueryBudget<'_>) -> Option<Arc<ZoneServers>> {
        if let Some(zone) = self.zones.get(name, Instant::now()) {
            return Some(zone);
        }
        let mut ancestor = name.clone();
        for _ in 0..LABELS_MAX {
            if ancestor.is_root() {
                break;
            }
            // Signatures are checked separately.
            let question = DnsQuery { name: &ancestor, kind: RecordType::NS, recursive: true, unchecked: true };
            let reply = self.query_configured_servers(question, bounds).await.ok()?;
            if let Some((zone, ttl)) = zone_from_records(&reply.answers, &ancestor) {
                let zone = Arc::new(zone);
                self.zones.put(name.clone(), Arc::clone(&zone), ttl, Instant::now());
                return Some(zone);
            }
            ancestor = ancestor.base_name();
        }
        None
    }

    /// Queries the servers of a zone, following referrals to deeper zones.
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
        // One address of each host first, so that a host with many addresses does not displace the others.
        let longest = lists.iter().map(|list| list.len()).max().unwrap_or(0);
        let mut servers = Vec::new();
        for n in 0..longest {
            for &ip in lists.iter().filter_map(|list| list.get(n)) {
                let server = SocketAddr::new(ip, self.settings.authority_port);
                if (self.settings.allow_private || public_ip::is_public(ip)) && !servers.contains(&server) {
                    servers.push(server);
                }
            }
        }
        servers.truncate(ADDRESSES_MAX);
        servers
    }

    async fn host_addresses(&self, host: &WireName, bounds: QueryBudget<'_>) -> Arc<[IpAddr]> {
        if let Some(cached) = self.hosts.get(host, Instant::now()) {
            return cached;
        }
        // A name server whose addresses are slow to resolve does not delay the check: there are others.
        let until = bounds.until.min(Instant::now() + self.settings.try_timeout);
        let bounds = QueryBudget { until, ..bounds };
        let ask = async |kind| {
            let question = DnsQuery { name: host, kind, recursive: true, unchecked: true };
            let reply = self.query_configured_servers(question, bounds).await;
            reply.map(|reply| reply.answers).unwrap_or_default()
        };
        let records = match self.ipv6.has_route() {
            true => {
                let (mut addresses, ipv6_addresses) = tokio::join!(ask(RecordType::A), ask(RecordType::AAAA));
                addresses.extend(ipv6_addresses);
                addresses
            }
            false => ask(RecordType::A).await,
        };
        let ips: Arc<[IpAddr]> =
            records.iter().filter_map(|record| record.data.ip_addr()).take(ADDRESSES_MAX).collect();
        if !ips.is_empty() {
            self.hosts.put(host.clone(), Arc::clone(&ips), minimum_ttl(&records), Instant::now());
        }
        ips
    }

    /// The first usable answer from a list of servers.
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
        let exchange = timeout_at(bounds.until, async {
            loop {
                match waiting.next() {
                    Some(&server) => under_way.push(self.query_server(server, question, bounds)),
                    None if under_way.is_empty() => return Err(worst),
                    None => {}
                }
                let has_more = waiting.len() > 0;
                tokio::select! {
                    Some(reply) = under_way.next() => match reply.and_then(&accept) {
                        Ok(answer) => return Ok(answer),
                        Err(error) => worst = worst.max(error),
                    },
                    () = sleep(self.settings.next_after), if has_more => {}
                }
            }
        });
        exchange.await.unwrap_or(Err(QueryError::TimedOut))
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
        if bounds.query_count.fetch_add(1, Ordering::Relaxed) >= QUERIES_PER_CHECK_MAX {
            return Err(QueryError::TimedOut);
        }
        // The semaphore is never closed. If it were, queries would run without a limit.
        let _permit = self.permits.acquire().await;
        send_query(server, question, self.settings.try_timeout).await
    }

    /// Returns whether a name server is within its rate limit. The configured servers have none: the queries to them
    /// are limited per account by the caller.
    fn acquire_query(&self, ip: IpAddr) -> bool {
        let now_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.configured.iter().any(|server| server.ip() == ip)
            || self.servers.acquire(&ip, 1, SERVER_QUERY_RATE, now_ns).is_ok()
    }

    /// Removes a zone from the cache whose servers did not answer.
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

/// An answer counts if it is authoritative (RFC 1035 4.1.1, AA). Otherwise it can be a referral to a zone between this
/// one and the name.
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
    async fn queries_to_a_foreign_name_server_are_rate_limited() {
        let configured: SocketAddr = "192.0.2.53:53".parse().unwrap();
        let resolver = AuthoritativeResolver::new(DomainCheckSettings {
            servers: vec![configured],
            ..DomainCheckSettings::default()
        })
        .unwrap();
        let acquire = |ip: &str| {
            let ip = ip.parse().unwrap();
            (0..10_000).take_while(|_| resolver.acquire_query(ip)).count()
        };
        let began = Instant::now();
        let at_once = acquire("198.51.100.1");
        let since = usize::try_from(began.elapsed().as_millis()).unwrap() / 10 + 1;
        assert!((400..=400 + since).contains(&at_once), "{at_once}");
        assert!(acquire("198.51.100.2") >= 400, "another server is not affected");
        assert_eq!(acquire("192.0.2.53"), 10_000, "the configured server has no limit");
        let (count, name) = (AtomicU32::new(0), WireName::root());
        let bounds = QueryBudget { until: resolver.deadline(), query_count: &count };
        let question = DnsQuery { name: &name, kind: RecordType::NS, recursive: false, unchecked: false };
        resolver.servers.charge("198.51.100.1".parse().unwrap(), 1_000, SERVER_QUERY_RATE, 0);
        let refused = resolver.query_server(([198, 51, 100, 1], 9).into(), question, bounds).now_or_never();
        assert_eq!(refused.map(|answer| answer.err()), Some(Some(QueryError::RateLimited)), "no waiting");
        assert_eq!(count.into_inner(), 0, "no query is sent");
    }

    #[tokio::test]
    async fn queries_per_check_are_limited() {
        let resolver = AuthoritativeResolver::new(DomainCheckSettings {
            servers: vec![([127, 0, 0, 1], 9).into()],
            ..DomainCheckSettings::default()
        })
        .unwrap();
        let (query_count, name) = (AtomicU32::new(QUERIES_PER_CHECK_MAX), WireName::root());
        let bounds = QueryBudget { until: resolver.deadline(), query_count: &query_count };
        let question = DnsQuery { name: &name, kind: RecordType::NS, recursive: true, unchecked: true };
        let refused = resolver.query_server(([127, 0, 0, 1], 9).into(), question, bounds).now_or_never();
        assert_eq!(refused.map(|answer| answer.err()), Some(Some(QueryError::TimedOut)), "no query is sent");
    }
}
