//! Lookups: a thin room around one resolver.
//!
//! A [`Resolver`] asks the configured servers (none configured: the system's) over UDP, over TCP when
//! an answer does not fit, and keeps answers and refusals for as long as their owner said, within
//! bounds of time and memory (`answer_cache`).
//! Every answer says for how long it holds ([`Answer::ttl`]), so that a plan made of it can be kept.
//!
//! Aliases are followed (8 deep). "Nothing there" is an answer, not an error: an empty list, or a
//! variant of [`MailHosts`]. An error is only ever "ask again later" or "what stands there is no
//! answer". Limits: [`LOOKUPS_MAX`] at once, each within its deadline. When several lookups in a row get no answer
//! at all, the log says so, once a minute at most.
//!
//! Standards: RFC 1035, RFC 2181 10.3, RFC 2308, RFC 5321 5.1, RFC 7505.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::dnssec::{Proof, TrustAnchors};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::rdata::TLSA;
use hickory_resolver::proto::rr::{Name as WireName, RData, Record, RecordType};
use hickory_resolver::proto::serialize::txt::ParseError;
use mail::address::DomainName;
use mail::dane::Tlsa;
use mail::outage::Outage;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use crate::answer_cache::{AnswerCache, DnsAnswer};
use crate::ipv6::Ipv6Route;
use crate::mail_hosts::{MailHosts, MxHost, normalize_hosts};

/// Addresses used of one host, both families together.
pub const ADDRESSES_MAX: usize = 16;
/// Records of a TXT or PTR answer that are used.
pub const RECORDS_MAX: usize = 64;
/// Lookups under way at once: each may hold two sockets. More wait, within their own deadline.
pub const LOOKUPS_MAX: usize = 1_024;
/// Lookups that may be new to the server at once: its socket holds some 160 queries (the usual receive
/// buffer of 208 KiB); a larger burst is lost in part and comes again only after a timeout.
const BURST_MAX: usize = 128;
/// After so long a lookup counts as received, whether answered or not: a slow zone holds up no other.
const BURST_HOLD: Duration = Duration::from_millis(50);
/// How long a "nothing there" without a SOA record, or half an answer, is worth keeping.
const TTL_UNKNOWN: Duration = Duration::from_secs(60);
/// How long the addresses of one family wait for those of the other.
const FAMILY_GRACE: Duration = Duration::from_secs(2);
/// After so many lookups in a row without any answer the name servers are said not to answer: a single one may be the
/// fault of a zone.
const UNANSWERED_MIN: u64 = 3;
/// The port of a server written without one.
const PORT: u16 = 53;

/// How to ask.
#[derive(Debug, Clone)]
pub struct ResolverSettings {
    /// The servers to ask; empty means those of the system (`/etc/resolv.conf`).
    pub servers: Vec<SocketAddr>,
    /// How long one try may take.
    pub try_timeout: Duration,
    /// How often a server is asked again after a failure.
    pub retries: usize,
    /// How long a lookup may take, aliases, retries and waiting for its turn included.
    pub deadline: Duration,
    /// Memory for answers that are kept, good and bad, in bytes.
    pub cache_bytes_max: u64,
    /// Nothing is kept longer, whatever its owner says.
    pub ttl_max: Duration,
    /// No "nothing there" is kept longer (RFC 2308 5 suggests one to three hours as a bound; mail wants
    /// to notice a repaired zone sooner).
    pub negative_ttl_max: Duration,
    /// Whether signatures are checked (RFC 4035), and from which keys on.
    pub validation: DnssecMode,
    /// Where the machine has no way to the IPv6 internet, a host that has IPv4 addresses is not asked for
    /// others: they could not be used.
    pub ipv4_where_no_route: bool,
}

impl Default for ResolverSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            // A server that works on a slow zone goes on between tries and answers the later one.
            try_timeout: Duration::from_secs(3),
            retries: 4,
            deadline: Duration::from_secs(20),
            cache_bytes_max: 64 << 20,
            ttl_max: Duration::from_secs(86_400),
            negative_ttl_max: Duration::from_secs(900),
            validation: DnssecMode::Off,
            ipv4_where_no_route: false,
        }
    }
}

/// Whether the signatures of answers are checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DnssecMode {
    /// They are not asked for: whoever we ask is believed.
    #[default]
    Off,
    /// From the keys of the public root on.
    Root,
    /// From the keys in a file on: lines of DNSKEY records.
    Anchors(PathBuf),
}

/// Reads a server as the configuration has it: `192.0.2.53`, `127.0.0.1:5300`, `2001:db8::53`,
/// `[::1]:5300`.
#[must_use]
pub fn parse_server(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, PORT)))
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookupError {
    /// Refused, failed or timed out: try again later (a 4xx, never a 5xx).
    #[error("the DNS gave no answer for {name}: {reason}")]
    Temporary {
        /// The name asked for.
        name: String,
        /// What went wrong, for a person to read.
        reason: String,
    },
    /// The signatures do not hold (RFC 4035 5): a mistake of the zone's owner, or somebody in between.
    #[error("the DNSSEC signatures of {name} do not hold")]
    Bogus {
        /// The name asked for.
        name: String,
    },
    /// There are records, but none that can be used (an MX that names an address, say).
    #[error("the DNS records of {name} make no sense: {reason}")]
    Malformed {
        /// The name asked for.
        name: String,
        /// What is wrong with them.
        reason: &'static str,
    },
}

/// The resolver could not be set up: the system's settings are unreadable or name no server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no DNS resolver: {0}")]
pub struct ResolverSetupError(String);

/// What was found, and for how long it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupAnswer<T> {
    /// What was found.
    pub data: T,
    /// For how long it may be kept.
    pub ttl: Duration,
    /// Whether signatures up to a known key say so; never where they are not checked.
    pub is_secure: bool,
}

impl<T> LookupAnswer<T> {
    fn unsigned(data: T, ttl: Duration) -> Self {
        Self { data, ttl, is_secure: false }
    }
}

/// Asks the DNS; a clone asks the same servers through the same cache.
#[derive(Clone)]
pub struct Resolver(Arc<ResolverInner>);

struct ResolverInner {
    resolver: TokioResolver,
    cache: AnswerCache,
    turns: Semaphore,
    bursts: Semaphore,
    deadline: Duration,
    ipv6: Ipv6Route,
    outage: Mutex<Outage>,
    began: Instant,
}

impl ResolverInner {
    /// Logs that the name servers do not answer, or do again. An error code is an answer: it is the zone's fault.
    fn note_answer(&self, name: &WireName, kind: RecordType, asked: Option<&Result<Lookup, NetError>>) {
        let error: Option<&dyn std::fmt::Display> = match asked {
            Some(Ok(_) | Err(NetError::Dns(_))) => None,
            Some(Err(error)) => Some(error),
            None => Some(&"timed out"),
        };
        let now = self.began.elapsed();
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            None => {
                if let Some(ended) = outage.answered(now) {
                    let (lasted_s, unanswered) = (ended.lasts.as_secs(), ended.failures);
                    tracing::info!(lasted_s, unanswered, "the DNS servers answer again");
                }
            }
            Some(error) => {
                if let Some(notice) = outage.failed(now) {
                    let (since_s, unanswered) = (notice.lasts.as_secs(), notice.failures);
                    tracing::warn!(%error, %name, %kind, since_s, unanswered, "the DNS servers do not answer");
                }
            }
        }
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// What a host's name says of its certificate (RFC 7672 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaneRecords {
    /// Nothing, or nothing that is signed.
    None,
    /// Records of which none can be used: TLS, with any certificate.
    Unusable,
    /// Records of which one must name the certificate.
    Records {
        /// Whose they are: the host's, or those at the end of its alias. It is the name that a certificate is for.
        base: DomainName,
        /// They.
        records: Vec<Tlsa>,
    },
}

impl Resolver {
    /// Sets up a resolver.
    ///
    /// # Errors
    /// [`SetupError`] when the system's settings cannot be read.
    pub fn new(settings: &ResolverSettings) -> Result<Self, ResolverSetupError> {
        let setup = |error: NetError| ResolverSetupError(error.to_string());
        let servers: Vec<NameServerConfig> = if settings.servers.is_empty() {
            system_servers()?
        } else {
            settings.servers.iter().map(|&server| name_server(server)).collect()
        };
        let mut options = ResolverOpts::default();
        options.timeout = settings.try_timeout;
        options.attempts = settings.retries;
        // Answers are kept by a cache of our own, which weighs them.
        options.cache_size = 0;
        options.positive_max_ttl = Some(settings.ttl_max);
        options.negative_max_ttl = Some(settings.negative_ttl_max);
        // The hosts file is for people at a keyboard; mail goes where the DNS says.
        options.use_hosts_file = ResolveHosts::Never;
        options.try_tcp_on_error = true;
        // Names are always asked whole, so no search list comes along.
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let resolver = resolver.with_options(options);
        let resolver = match &settings.validation {
            DnssecMode::Off => resolver,
            DnssecMode::Root => resolver.with_trust_anchor(Arc::new(TrustAnchors::default())),
            DnssecMode::Anchors(path) => {
                let unread = |error: ParseError| ResolverSetupError(format!("{}: {error}", path.display()));
                resolver.with_trust_anchor(Arc::new(TrustAnchors::from_file(path).map_err(unread)?))
            }
        };
        let resolver = resolver.build().map_err(setup)?;
        let turns = Semaphore::new(LOOKUPS_MAX);
        let bursts = Semaphore::new(BURST_MAX);
        let ipv6 = Ipv6Route::new(!settings.ipv4_where_no_route);
        let cache = AnswerCache::new(settings.cache_bytes_max, settings.negative_ttl_max);
        Ok(Self(Arc::new(ResolverInner {
            resolver,
            cache,
            turns,
            bursts,
            deadline: settings.deadline,
            ipv6,
            outage: Mutex::new(Outage::after(UNANSWERED_MIN)),
            began: Instant::now(),
        })))
    }

    /// Forgets every answer kept.
    pub fn clear_cache(&self) {
        self.0.cache.clear();
    }

    /// Where the mail of `domain` goes.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn mx(&self, domain: &DomainName) -> Result<LookupAnswer<MailHosts>, LookupError> {
        match self.cached_query(&to_wire_name(domain)?, RecordType::MX).await? {
            DnsAnswer::NxDomain(ttl) => Ok(LookupAnswer::unsigned(MailHosts::NoSuchDomain, ttl)),
            DnsAnswer::NoData(ttl) => self.implicit_mx(domain, ttl).await,
            ref found @ DnsAnswer::Records(ref lookup) => {
                let (ttl, is_secure) = (minimum_ttl(lookup), found.is_secure());
                match classify_mx(lookup) {
                    MxAnswer::Absent => self.implicit_mx(domain, ttl).await,
                    MxAnswer::Null => Ok(LookupAnswer { data: MailHosts::NullMx, ttl, is_secure }),
                    MxAnswer::Hosts(hosts) => Ok(LookupAnswer { data: MailHosts::Mx(hosts), ttl, is_secure }),
                    MxAnswer::Unusable => Err(LookupError::Malformed {
                        name: domain.to_string(),
                        reason: "its MX records name no host (an MX must name a host, not an address)",
                    }),
                }
            }
        }
    }

    /// RFC 5321 5.1: without MX records the domain's own address is an implicit MX of preference 0.
    async fn implicit_mx(&self, domain: &DomainName, ttl: Duration) -> Result<LookupAnswer<MailHosts>, LookupError> {
        let addresses = self.addresses(domain).await?;
        let data = if addresses.data.is_empty() { MailHosts::NoMail } else { MailHosts::ImplicitMx(domain.clone()) };
        Ok(LookupAnswer { data, ttl: ttl.min(addresses.ttl), is_secure: addresses.is_secure })
    }

    /// The addresses of a host, IPv6 and IPv4 in turns, at most [`ADDRESSES_MAX`]; none when there are
    /// none. Both families are asked for at once; when only one of them answers, it is used. Where the
    /// machine cannot reach IPv6 addresses, IPv4 ones alone will do ([`Settings::ipv4_where_no_route`]).
    ///
    /// # Errors
    /// [`LookupError::Temporary`] when no address is known and at least one family gave no answer.
    pub async fn addresses(&self, host: &DomainName) -> Result<LookupAnswer<Vec<IpAddr>>, LookupError> {
        let name = to_wire_name(host)?;
        if !self.0.ipv6.has_route() {
            let four = self.cached_query(&name, RecordType::A).await.map(|found| ip_addresses(&found));
            if let Ok(four) = four
                && !four.data.is_empty()
            {
                return Ok(four);
            }
        }
        let mut six = pin!(self.cached_query(&name, RecordType::AAAA));
        let mut four = pin!(self.cached_query(&name, RecordType::A));
        let (v6, v4) = tokio::select! {
            v6 = &mut six => {
                let v4 = await_other_family(&v6, four, host).await;
                (v6, v4)
            }
            v4 = &mut four => {
                let v6 = await_other_family(&v4, six, host).await;
                (v6, v4)
            }
        };
        let missing = v6.is_err() || v4.is_err();
        let (six, four) = match (v6, v4) {
            (Err(error), Err(_)) => return Err(error),
            (Ok(found), Err(error)) | (Err(error), Ok(found)) => {
                let one = ip_addresses(&found);
                if one.data.is_empty() {
                    return Err(error);
                }
                (one, LookupAnswer::unsigned(Vec::new(), TTL_UNKNOWN))
            }
            (Ok(six), Ok(four)) => (ip_addresses(&six), ip_addresses(&four)),
        };
        // The lack of one family is no reason to forget the other early.
        let ttl = match (six.data.is_empty(), four.data.is_empty()) {
            (true, false) if !missing => four.ttl,
            (false, true) if !missing => six.ttl,
            _ => six.ttl.min(four.ttl),
        };
        let is_secure = [&six, &four].iter().all(|one| one.data.is_empty() || one.is_secure);
        Ok(LookupAnswer { data: interleave(&six.data, &four.data), ttl, is_secure })
    }

    /// The TXT records of a name, each with its strings joined; none when there are none.
    ///
    /// # Errors
    /// [`LookupError::Temporary`].
    pub async fn txt(&self, name: &DomainName) -> Result<LookupAnswer<Vec<String>>, LookupError> {
        let found = self.cached_query(&to_wire_name(name)?, RecordType::TXT).await?;
        Ok(collect_records(&found, RECORDS_MAX, txt_string))
    }

    /// The TLSA records for mail at a host (RFC 7672 3.1), as far as signatures say that they are its own.
    ///
    /// They are asked for only where the host's addresses are signed (RFC 7672 2.2.2): name servers of unsigned zones
    /// that fall over the question do no harm. Of an alias that is signed to its end, the records there come first; of
    /// one into an unsigned zone, those at its beginning count all the same.
    ///
    /// # Errors
    /// [`LookupError::Temporary`] and [`LookupError::Bogus`]: the host is not to be used now.
    pub async fn dane(&self, host: &DomainName, port: u16) -> Result<LookupAnswer<DaneRecords>, LookupError> {
        let addresses = self.addresses(host).await?;
        let mut ttl = addresses.ttl;
        if addresses.data.is_empty() {
            return Ok(LookupAnswer::unsigned(DaneRecords::None, ttl));
        }
        for base in self.tlsa_bases(host, addresses.is_secure).await? {
            let Ok(name) = base.child(&format!("_{port}._tcp")) else { continue };
            let found = self.cached_query(&to_wire_name(&name)?, RecordType::TLSA).await?;
            let records = collect_records(&found, RECORDS_MAX, |data| match data {
                RData::TLSA(tlsa) => Some(parse_tlsa(tlsa)),
                _ => None,
            });
            ttl = ttl.min(records.ttl);
            if !records.is_secure || records.data.is_empty() {
                continue;
            }
            let records: Vec<Tlsa> = records.data.into_iter().flatten().collect();
            let data = if records.is_empty() { DaneRecords::Unusable } else { DaneRecords::Records { base, records } };
            return Ok(LookupAnswer { data, ttl, is_secure: true });
        }
        Ok(LookupAnswer::unsigned(DaneRecords::None, ttl))
    }

    /// The names whose TLSA records count for a host, in order. Its addresses are in the cache by now.
    async fn tlsa_bases(&self, host: &DomainName, is_secure: bool) -> Result<Vec<DomainName>, LookupError> {
        let wired = to_wire_name(host)?;
        let mut found = self.cached_query(&wired, RecordType::A).await;
        if !matches!(found, Ok(DnsAnswer::Records(_))) {
            found = self.cached_query(&wired, RecordType::AAAA).await;
        }
        let Ok(DnsAnswer::Records(lookup)) = found else {
            return Ok(if is_secure { vec![host.clone()] } else { Vec::new() });
        };
        let records = lookup.answers();
        if !is_secure {
            let begins = |record: &&Record| {
                record.record_type() == RecordType::CNAME && record.name == wired && record.proof.is_secure()
            };
            return Ok(records.iter().find(begins).map(|_| host.clone()).into_iter().collect());
        }
        let ends = records.iter().find(|record| matches!(record.data, RData::A(_) | RData::AAAA(_)));
        let end: Option<DomainName> = ends.and_then(|record| record.name.to_ascii().parse().ok());
        Ok(end.into_iter().filter(|end| end != host).chain([host.clone()]).collect())
    }

    /// The names that an address says it has; none when it says none.
    ///
    /// # Errors
    /// [`LookupError::Temporary`].
    pub async fn ptr(&self, address: IpAddr) -> Result<LookupAnswer<Vec<DomainName>>, LookupError> {
        let found = self.cached_query(&WireName::from(address), RecordType::PTR).await?;
        Ok(collect_records(&found, RECORDS_MAX, |data| match data {
            RData::PTR(ptr) => ptr.to_ascii().parse().ok(),
            _ => None,
        }))
    }

    /// The records of one kind at a name, as they stand, what they are aliases of before them; none when there are
    /// none.
    ///
    /// # Errors
    /// [`LookupError::Temporary`].
    pub(crate) async fn records(&self, name: &WireName, kind: RecordType) -> Result<Option<Arc<Lookup>>, LookupError> {
        Ok(match self.cached_query(name, kind).await? {
            DnsAnswer::Records(lookup) => Some(lookup),
            DnsAnswer::NoData(_) | DnsAnswer::NxDomain(_) => None,
        })
    }

    /// Whether a name is there at all (RFC 8020).
    ///
    /// # Errors
    /// [`LookupError`].
    pub(crate) async fn exists(&self, name: &DomainName) -> Result<bool, LookupError> {
        Ok(!matches!(self.cached_query(&to_wire_name(name)?, RecordType::A).await?, DnsAnswer::NxDomain(_)))
    }

    /// Whether the server that we ask validates, and passes signatures on: those of the root hold here too, and it says of
    /// its answer that it has checked it (RFC 4035 3.2.3, AD).
    pub async fn is_validating(&self) -> bool {
        let found = self.cached_query(&WireName::root(), RecordType::NS).await;
        matches!(found, Ok(ref found @ DnsAnswer::Records(ref lookup))
            if found.is_secure() && lookup.message().metadata.authentic_data)
    }

    /// The zone that a name is in: the nearest name upwards that has name servers of its own. `None` when there
    /// is none below the top.
    ///
    /// # Errors
    /// [`LookupError::Temporary`].
    pub async fn find_zone(&self, name: &DomainName) -> Result<Option<DomainName>, LookupError> {
        let mut candidate = name.clone();
        while let Some(parent) = candidate.parent() {
            let wire = to_wire_name(&candidate)?;
            if let DnsAnswer::Records(lookup) = self.cached_query(&wire, RecordType::NS).await?
                // An alias may lead to a zone; the name itself is none then.
                && lookup.answers().iter().any(|record| {
                    record.record_type() == RecordType::NS && record.name == wire
                })
            {
                return Ok(Some(candidate));
            }
            candidate = parent;
        }
        Ok(None)
    }

    /// Boxed, its type unsaid: the client is compiled here once, and not in each room that asks.
    fn cached_query<'a>(
        &'a self,
        name: &'a WireName,
        kind: RecordType,
    ) -> BoxFuture<'a, Result<DnsAnswer, LookupError>> {
        Box::pin(self.cached_query_with_deadline(name, kind))
    }

    async fn cached_query_with_deadline(&self, name: &WireName, kind: RecordType) -> Result<DnsAnswer, LookupError> {
        if let Some(answer) = self.0.cache.get(name, kind) {
            return Ok(answer);
        }
        let (answer, may_be_kept) = self.query(name, kind).await?;
        if may_be_kept {
            self.0.cache.put(name, kind, answer.clone());
        }
        Ok(answer)
    }

    /// Asks, and says whether the answer may be kept: a refusal without a SOA record may not (RFC 2308 5), nor may one that
    /// the validator has not tied to a TTL.
    async fn query(&self, name: &WireName, kind: RecordType) -> Result<(DnsAnswer, bool), LookupError> {
        let asked = timeout(self.0.deadline, async {
            // The semaphores are never closed; if they were, we would ask without waiting.
            let _turn = self.0.turns.acquire().await;
            let burst = self.0.bursts.acquire().await;
            let mut lookup = pin!(self.0.resolver.lookup(name.clone(), kind));
            match timeout(BURST_HOLD, lookup.as_mut()).await {
                Ok(answer) => answer,
                Err(_) => {
                    drop(burst);
                    lookup.await
                }
            }
        });
        let asked_at = Instant::now();
        let asked = asked.await;
        self.0.note_answer(name, kind, asked.as_ref().ok());
        let answer = self.read_answer(name, asked);
        count_lookup(&answer, asked_at.elapsed());
        answer
    }

    fn read_answer(
        &self,
        name: &WireName,
        asked: Result<Result<Lookup, NetError>, Elapsed>,
    ) -> Result<(DnsAnswer, bool), LookupError> {
        let temporary = |reason: String| LookupError::Temporary { name: name.to_ascii(), reason };
        match asked {
            Err(_) => Err(temporary("timed out".to_owned())),
            Ok(Ok(lookup)) => Ok((DnsAnswer::Records(Arc::new(lookup)), true)),
            Ok(Err(NetError::Dns(DnsError::NoRecordsFound(none)))) => {
                let ttl = none.negative_ttl.map_or(TTL_UNKNOWN, |s| Duration::from_secs(u64::from(s)));
                let is_timed = none.negative_ttl.is_some();
                match none.response_code {
                    ResponseCode::NXDomain => Ok((DnsAnswer::NxDomain(ttl), is_timed)),
                    ResponseCode::NoError => Ok((DnsAnswer::NoData(ttl), is_timed)),
                    code => Err(temporary(code.to_string())),
                }
            }
            Ok(Err(NetError::Dns(DnsError::DnssecBogus))) => Err(LookupError::Bogus { name: name.to_ascii() }),
            Ok(Err(NetError::Dns(DnsError::Nsec { proof: Proof::Bogus, .. }))) => {
                Err(LookupError::Bogus { name: name.to_ascii() })
            }
            Ok(Err(NetError::Dns(DnsError::ResponseCode(code)))) => Err(temporary(code.to_string())),
            Ok(Err(error)) => Err(temporary(error.to_string())),
        }
    }
}

/// Counts a lookup that the cache did not answer.
fn count_lookup(answer: &Result<(DnsAnswer, bool), LookupError>, took: Duration) {
    let outcome = match answer {
        Ok((DnsAnswer::Records(_), _)) => "records",
        Ok((DnsAnswer::NoData(_), _)) => "no_data",
        Ok((DnsAnswer::NxDomain(_), _)) => "no_name",
        Err(LookupError::Temporary { .. }) => "failed",
        Err(LookupError::Bogus { .. }) => "bogus",
        Err(LookupError::Malformed { .. }) => "malformed",
    };
    metrics::counter!("postrider_dns_lookups_total", "outcome" => outcome).increment(1);
    metrics::histogram!("postrider_dns_lookup_seconds").record(took.as_secs_f64());
}

/// The answer for the other family: with addresses in hand it is not waited for long, for there are
/// servers that never answer a question for AAAA.
async fn await_other_family(
    first: &Result<DnsAnswer, LookupError>,
    other: impl Future<Output = Result<DnsAnswer, LookupError>>,
    host: &DomainName,
) -> Result<DnsAnswer, LookupError> {
    if !first.as_ref().is_ok_and(|found| !ip_addresses(found).data.is_empty()) {
        return other.await;
    }
    timeout(FAMILY_GRACE, other).await.unwrap_or_else(|_| {
        Err(LookupError::Temporary { name: host.to_string(), reason: "one family is slow".to_owned() })
    })
}

fn system_servers() -> Result<Vec<NameServerConfig>, ResolverSetupError> {
    let (system, _) =
        hickory_resolver::system_conf::read_system_conf().map_err(|error| ResolverSetupError(error.to_string()))?;
    Ok(system.name_servers().to_vec())
}

/// The servers to ask: those configured, or else those of the system.
pub(crate) fn configured_or_system_servers(configured: &[SocketAddr]) -> Result<Vec<SocketAddr>, ResolverSetupError> {
    if !configured.is_empty() {
        return Ok(configured.to_vec());
    }
    let port = |server: &NameServerConfig| server.connections.first().map_or(PORT, |first| first.port);
    let servers: Vec<SocketAddr> =
        system_servers()?.iter().map(|server| SocketAddr::new(server.ip, port(server))).collect();
    if servers.is_empty() {
        return Err(ResolverSetupError("the system names no DNS server".to_owned()));
    }
    Ok(servers)
}

fn name_server(server: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    NameServerConfig::new(server.ip(), true, connections.into())
}

fn to_wire_name(name: &DomainName) -> Result<WireName, LookupError> {
    let mut wire = WireName::from_ascii(name.as_str())
        .map_err(|_| LookupError::Malformed { name: name.to_string(), reason: "it is no DNS name" })?;
    wire.set_fqdn(true);
    Ok(wire)
}

/// A name of whatever bytes, as strangers write them where they name one; none where a label is empty or too long.
pub(crate) fn parse_wire_name(name: &str) -> Option<WireName> {
    let mut labels = name.strip_suffix('.').unwrap_or(name).split('.');
    let mut wire = WireName::from_labels(labels.clone().map(str::as_bytes)).ok()?;
    wire.set_fqdn(true);
    labels.all(|label| !label.is_empty()).then_some(wire)
}

/// The TXT records of an answer, each with its strings joined.
pub(crate) fn txt_strings(found: Option<&Lookup>) -> impl Iterator<Item = String> {
    found.into_iter().flat_map(Lookup::answers).filter_map(|record| txt_string(&record.data))
}

fn txt_string(data: &RData) -> Option<String> {
    match data {
        RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
        _ => None,
    }
}

fn minimum_ttl(lookup: &Lookup) -> Duration {
    Instant::from_std(lookup.valid_until()).saturating_duration_since(Instant::now())
}

fn collect_records<T>(found: &DnsAnswer, max: usize, pick: impl Fn(&RData) -> Option<T>) -> LookupAnswer<Vec<T>> {
    match found {
        DnsAnswer::NoData(ttl) | DnsAnswer::NxDomain(ttl) => LookupAnswer::unsigned(Vec::new(), *ttl),
        DnsAnswer::Records(lookup) => LookupAnswer {
            data: lookup.answers().iter().filter_map(|record| pick(&record.data)).take(max).collect(),
            ttl: minimum_ttl(lookup),
            is_secure: found.is_secure(),
        },
    }
}

fn ip_addresses(found: &DnsAnswer) -> LookupAnswer<Vec<IpAddr>> {
    collect_records(found, ADDRESSES_MAX, |data| match data {
        RData::A(a) => Some(IpAddr::V4(a.0)),
        RData::AAAA(aaaa) => Some(IpAddr::V6(aaaa.0)),
        _ => None,
    })
}

/// One of each in turns, so that a long list of one family never crowds out the other.
fn interleave(six: &[IpAddr], four: &[IpAddr]) -> Vec<IpAddr> {
    (0..six.len().max(four.len()))
        .flat_map(|n| [six.get(n), four.get(n)])
        .flatten()
        .copied()
        .take(ADDRESSES_MAX)
        .collect()
}

fn parse_tlsa(tlsa: &TLSA) -> Option<Tlsa> {
    Tlsa::from_fields(tlsa.cert_usage.into(), tlsa.selector.into(), tlsa.matching.into(), tlsa.cert_data.clone())
}

enum MxAnswer {
    Absent,
    Null,
    Hosts(Vec<MxHost>),
    Unusable,
}

/// A lone root name is a null MX (RFC 7505 3); beside others it is ignored.
fn classify_mx(lookup: &Lookup) -> MxAnswer {
    let records = || {
        lookup.answers().iter().filter_map(|record| match &record.data {
            RData::MX(mx) => Some(mx),
            _ => None,
        })
    };
    let hosts: Vec<MxHost> = records()
        .filter(|mx| !mx.exchange.is_root())
        .filter_map(|mx| Some(MxHost { preference: mx.preference, host: mx.exchange.to_ascii().parse().ok()? }))
        .collect();
    match hosts.is_empty() {
        false => MxAnswer::Hosts(normalize_hosts(hosts)),
        true if records().next().is_none() => MxAnswer::Absent,
        true if records().all(|mx| mx.exchange.is_root()) => MxAnswer::Null,
        true => MxAnswer::Unusable,
    }
}
