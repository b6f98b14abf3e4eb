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

use super::Settings;
use super::exchange::{Question, Trouble, ask};
use super::kept::Kept;
use crate::ipv6::Ipv6;
use crate::limiter::{Limiter, Rate};
use crate::lookup::{self, SetupError};

/// Questions under way at once, each with a socket: more wait, within their deadline. The receive buffer of a
/// server on this machine holds some 160.
const QUESTIONS_MAX: usize = 128;
/// Questions of one inspection. One whose name servers answer asks some thirty, and with the longest SPF record and slips
/// of the pen everywhere under two hundred.
const QUESTIONS_OF_ONE_MAX: u32 = 300;
/// What one name server is asked, for all accounts together.
const RATE_OF_SERVER: Rate = Rate { per_second: 100, burst: 400 };
/// Name servers of a zone that are used.
const NAME_SERVERS_MAX: usize = 4;
/// Addresses of them that are asked.
const ADDRESSES_MAX: usize = 6;
/// Zones deeper than the one that was found: a `_domainkey` delegated elsewhere, say.
const REFERRALS_MAX: usize = 4;
/// Labels of a name that are tried on the way up to its zone.
const LABELS_MAX: usize = 12;
/// Zones and name servers to which the way is kept, half a kilobyte each; one more costs a question more.
const ZONES_KEPT_MAX: usize = 16_384;
const HOSTS_KEPT_MAX: usize = 16_384;

/// A zone and who serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    /// The name at its top.
    pub(super) origin: WireName,
    hosts: Vec<WireName>,
}

/// Asks.
#[derive(Debug)]
pub(super) struct Asker {
    configured: Vec<SocketAddr>,
    settings: Settings,
    turns: Semaphore,
    ipv6: Ipv6,
    zones: Kept<WireName, Arc<Zone>>,
    hosts: Kept<WireName, Arc<[IpAddr]>>,
    /// What was asked of each name server.
    servers: Limiter<IpAddr>,
    begun: Instant,
}

/// What an inspection may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// Until when.
    pub(super) until: Instant,
    /// How many questions it has asked, each to a server.
    pub(super) asked: &'a AtomicU32,
}

/// What an authoritative server's answer comes to.
enum Step {
    Answer(Message),
    Referral(Zone),
}

impl Asker {
    pub(super) fn new(settings: Settings) -> Result<Self, SetupError> {
        Ok(Self {
            configured: lookup::servers(&settings.servers)?,
            settings,
            turns: Semaphore::new(QUESTIONS_MAX),
            ipv6: Ipv6::new(false),
            zones: Kept::new(ZONES_KEPT_MAX),
            hosts: Kept::new(HOSTS_KEPT_MAX),
            servers: Limiter::default(),
            begun: Instant::now(),
        })
    }

    pub(super) fn sees_private(&self) -> bool {
        self.settings.allow_private
    }

    /// When an inspection that begins now has to end.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.deadline
    }

    /// Asks the configured servers. A failure that goes away when signatures are not checked is
    /// [`Trouble::Bogus`].
    pub(super) async fn configured(
        &self,
        name: &WireName,
        kind: RecordType,
        bounds: Bounds<'_>,
    ) -> Result<Message, Trouble> {
        let question = Question { name, kind, recursive: true, unchecked: false };
        let asked = self.configured_by(question, bounds).await;
        if asked.as_ref().err() != Some(&Trouble::ServerFailure) {
            return asked;
        }
        match self.configured_by(Question { unchecked: true, ..question }, bounds).await {
            Ok(_) => Err(Trouble::Bogus),
            Err(_) => Err(Trouble::ServerFailure),
        }
    }

    async fn configured_by(&self, question: Question<'_>, bounds: Bounds<'_>) -> Result<Message, Trouble> {
        // Twice each: a packet may be lost.
        let servers: Vec<SocketAddr> = self.configured.iter().chain(&self.configured).copied().collect();
        let accept = |reply: Message| usable(&reply).map(|()| reply);
        self.first(&servers, question, accept, bounds).await
    }

    /// The zone that a name is in; `None` when no NS records lead to it.
    pub(super) async fn zone_of(&self, name: &WireName, bounds: Bounds<'_>) -> Option<Arc<Zone>> {
        if let Some(zone) = self.zones.get(name, Instant::now()) {
            return Some(zone);
        }
        let mut above = name.clone();
        for _ in 0..LABELS_MAX {
            if above.is_root() {
                break;
            }
            // Whether the signatures hold is another question.
            let question = Question { name: &above, kind: RecordType::NS, recursive: true, unchecked: true };
            let reply = self.configured_by(question, bounds).await.ok()?;
            if let Some((zone, ttl)) = zone_in(&reply.answers, &above) {
                let zone = Arc::new(zone);
                self.zones.put(name.clone(), Arc::clone(&zone), (ttl, Instant::now()));
                return Some(zone);
            }
            above = above.base_name();
        }
        None
    }

    /// Asks the servers of a zone, and those of the deeper zones that they point at.
    pub(super) async fn authoritative(
        &self,
        zone: &Zone,
        name: &WireName,
        kind: RecordType,
        bounds: Bounds<'_>,
    ) -> Result<Message, Trouble> {
        let mut zone = zone.clone();
        for _ in 0..REFERRALS_MAX {
            let servers = self.servers_of(&zone, bounds).await;
            let question = Question { name, kind, recursive: false, unchecked: false };
            let accept = |reply: Message| step(reply, name, &zone);
            match self.first(&servers, question, accept, bounds).await? {
                Step::Answer(reply) => return Ok(reply),
                Step::Referral(deeper) => zone = deeper,
            }
        }
        Err(Trouble::Lame)
    }

    async fn servers_of(&self, zone: &Zone, bounds: Bounds<'_>) -> Vec<SocketAddr> {
        let lists = join_all(zone.hosts.iter().map(|host| self.addresses(host, bounds))).await;
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

    async fn addresses(&self, host: &WireName, bounds: Bounds<'_>) -> Arc<[IpAddr]> {
        if let Some(known) = self.hosts.get(host, Instant::now()) {
            return known;
        }
        // A name server whose addresses are slow to come holds up nothing: there are others.
        let until = bounds.until.min(Instant::now() + self.settings.try_timeout);
        let bounds = Bounds { until, ..bounds };
        let ask = async |kind| {
            let question = Question { name: host, kind, recursive: true, unchecked: true };
            let reply = self.configured_by(question, bounds).await;
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
            self.hosts.put(host.clone(), Arc::clone(&ips), (ttl_of(&records), Instant::now()));
        }
        ips
    }

    /// The first usable answer of some servers.
    async fn first<T>(
        &self,
        servers: &[SocketAddr],
        question: Question<'_>,
        accept: impl Fn(Message) -> Result<T, Trouble>,
        bounds: Bounds<'_>,
    ) -> Result<T, Trouble> {
        let mut waiting = servers.iter();
        let mut under_way = FuturesUnordered::new();
        let mut worst = Trouble::Unreachable;
        let asked = timeout_at(bounds.until, async {
            loop {
                match waiting.next() {
                    Some(&server) => under_way.push(self.one(server, question, bounds)),
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
        asked.await.unwrap_or(Err(Trouble::TimedOut))
    }

    async fn one(
        &self,
        server: SocketAddr,
        question: Question<'_>,
        bounds: Bounds<'_>,
    ) -> Result<Message, Trouble> {
        if !self.may_ask(server.ip()) {
            return Err(Trouble::Spent);
        }
        if bounds.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_OF_ONE_MAX {
            return Err(Trouble::TimedOut);
        }
        // The semaphore is never closed; if it were, we would ask without waiting.
        let _turn = self.turns.acquire().await;
        ask(server, question, self.settings.try_timeout).await
    }

    /// Whether a name server may be asked now that somebody else has named. Ours are asked as much as they are needed:
    /// what is asked of them is bounded by who has it asked.
    fn may_ask(&self, ip: IpAddr) -> bool {
        let now_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.configured.iter().any(|server| server.ip() == ip)
            || self.servers.take(&ip, 1, (RATE_OF_SERVER, now_ns)).is_ok()
    }

    /// Forgets the way to a zone that led nowhere.
    pub(super) fn lost(&self, name: &WireName) {
        self.zones.remove(name);
    }
}

fn usable(reply: &Message) -> Result<(), Trouble> {
    match reply.metadata.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => Ok(()),
        ResponseCode::ServFail => Err(Trouble::ServerFailure),
        ResponseCode::Refused | ResponseCode::NotAuth => Err(Trouble::Refused),
        _ => Err(Trouble::Garbled),
    }
}

/// An answer counts when the server says that it is its own to give (RFC 1035 4.1.1, AA); else it may name
/// the servers of a zone between this one and the name.
fn step(reply: Message, name: &WireName, zone: &Zone) -> Result<Step, Trouble> {
    usable(&reply)?;
    if reply.metadata.authoritative {
        return Ok(Step::Answer(reply));
    }
    let deeper = reply.authorities.iter().map(|record| &record.name).find(|owner| {
        owner.zone_of(name) && zone.origin.zone_of(owner) && owner.num_labels() > zone.origin.num_labels()
    });
    let deeper = deeper.and_then(|owner| zone_in(&reply.authorities, owner));
    deeper.map(|(zone, _)| Step::Referral(zone)).ok_or(Trouble::Lame)
}

fn zone_in(records: &[Record], origin: &WireName) -> Option<(Zone, Duration)> {
    let of_it = |record: &&Record| record.name == *origin && record.record_type() == RecordType::NS;
    let ttl = records.iter().filter(of_it).map(|record| record.ttl).min()?;
    let hosts = records.iter().filter(of_it).filter_map(|record| match &record.data {
        RData::NS(host) => Some(host.0.clone()),
        _ => None,
    });
    let zone = Zone { origin: origin.clone(), hosts: hosts.take(NAME_SERVERS_MAX).collect() };
    Some((zone, Duration::from_secs(u64::from(ttl))))
}

fn ttl_of(records: &[Record]) -> Duration {
    Duration::from_secs(u64::from(records.iter().map(|record| record.ttl).min().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_server_that_others_name_is_asked_so_much() {
        let ours: SocketAddr = "192.0.2.53:53".parse().unwrap();
        let asker = Asker::new(Settings { servers: vec![ours], ..Settings::default() }).unwrap();
        let asked = |ip: &str| {
            let ip = ip.parse().unwrap();
            (0..10_000).take_while(|_| asker.may_ask(ip)).count()
        };
        let begun = Instant::now();
        let at_once = asked("198.51.100.1");
        let since = usize::try_from(begun.elapsed().as_millis()).unwrap() / 10 + 1;
        assert!((400..=400 + since).contains(&at_once), "{at_once}");
        assert!(asked("198.51.100.2") >= 400, "another server");
        assert_eq!(asked("192.0.2.53"), 10_000, "ours is bounded by who has it asked");
        let (count, name) = (AtomicU32::new(0), WireName::root());
        let bounds = Bounds { until: asker.deadline(), asked: &count };
        let question = Question { name: &name, kind: RecordType::NS, recursive: false, unchecked: false };
        asker.servers.spend("198.51.100.1".parse().unwrap(), 1_000, RATE_OF_SERVER, 0);
        let refused = asker.one(([198, 51, 100, 1], 9).into(), question, bounds).now_or_never();
        assert_eq!(refused.map(|answer| answer.err()), Some(Some(Trouble::Spent)), "nobody waits");
        assert_eq!(count.into_inner(), 0, "nobody was asked");
    }

    #[tokio::test]
    async fn an_inspection_asks_so_many_questions() {
        let asker = Asker::new(Settings { servers: vec![([127, 0, 0, 1], 9).into()], ..Settings::default() })
            .unwrap();
        let (asked, name) = (AtomicU32::new(QUESTIONS_OF_ONE_MAX), WireName::root());
        let bounds = Bounds { until: asker.deadline(), asked: &asked };
        let question = Question { name: &name, kind: RecordType::NS, recursive: true, unchecked: true };
        let refused = asker.one(([127, 0, 0, 1], 9).into(), question, bounds).now_or_never();
        assert_eq!(refused.map(|answer| answer.err()), Some(Some(Trouble::TimedOut)), "nobody is asked");
    }
}
