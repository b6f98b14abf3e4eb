//! The resolver: DNS lookups over hickory, with a cache and limits.
//!
//! ```text
//! mx, addresses, txt, dane, ptr, … ─► AnswerCache ─ miss ─► query (LOOKUPS_MAX, deadline) ─► DNS servers
//! ```
//!
//! A [`Resolver`] queries the configured servers, or else the system's, over UDP, and over TCP if an answer is
//! truncated. Positive and negative answers are cached for their TTL, within limits of time and memory
//! (`answer_cache`). Every answer has a TTL ([`LookupAnswer::ttl`]), so that callers can cache what they derive from
//! it.
//!
//! CNAMEs are followed up to 8 deep. "No records" is an answer and not an error: an empty list, or a variant of
//! [`MailHosts`]. An error always means "retry later" or "the records are unusable". At most [`LOOKUPS_MAX`] lookups
//! run at once, each within its deadline. If several lookups in a row get no answer at all, this is logged at most once
//! a minute.
//!
//! Standards: RFC 1035, RFC 2181 10.3, RFC 2308, RFC 5321 5.1, RFC 7505.

use parking_lot::Mutex;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
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
use message::address::DomainName;
use message::dane::Tlsa;
use model::outage::Outage;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use crate::answer_cache::{AnswerCache, DnsAnswer};
use crate::ipv6::Ipv6Route;
use crate::mx::{MailHosts, MxHost, normalize_hosts};

/// Maximum addresses used of one host, both families together.
pub const ADDRESSES_MAX: usize = 16;
/// Maximum records used of a TXT or PTR answer.
pub const RECORDS_MAX: usize = 64;
/// Maximum concurrent lookups; each may hold two sockets. Others wait, within their own deadline.
pub const LOOKUPS_MAX: usize = 1_024;
/// Maximum lookups that were just sent. A server's socket buffers some 160 queries (the usual receive buffer of 208
/// KiB). Part of a larger burst is lost and retried only after a timeout.
const BURST_MAX: usize = 128;
/// After this time a lookup no longer counts as just sent, answered or not, so that a slow zone delays no other.
const BURST_HOLD: Duration = Duration::from_millis(50);
/// TTL of a negative answer without a SOA record, and of an answer with one address family only.
const TTL_UNKNOWN: Duration = Duration::from_secs(60);
/// How long the addresses of one family wait for those of the other.
const FAMILY_GRACE: Duration = Duration::from_secs(2);
/// After this many lookups in a row without any answer, the name servers are logged as not answering. A single one can
/// be the fault of a zone.
const UNANSWERED_MIN: u64 = 3;
/// The port of a server that is configured without one.
const PORT: u16 = 53;

#[derive(Debug, Clone)]
pub struct ResolverSettings {
    /// The servers to query; if empty, those of the system (`/etc/resolv.conf`).
    pub servers: Vec<SocketAddr>,
    /// Timeout of one attempt.
    pub try_timeout: Duration,
    /// Number of retries after a failure.
    pub retries: usize,
    /// Timeout of a lookup, including aliases, retries and waiting for a slot.
    pub deadline: Duration,
    /// Memory of the cache in bytes, positive and negative answers together.
    pub cache_bytes_max: u64,
    /// Upper bound of the TTL of cached answers.
    pub ttl_max: Duration,
    /// Upper bound of the TTL of cached negative answers. RFC 2308 5 suggests one to three hours; mail delivery should
    /// notice a repaired zone sooner.
    pub negative_ttl_max: Duration,
    /// Validation of DNSSEC signatures (RFC 4035), and its trust anchors.
    pub validation: DnssecMode,
    /// If the host has no route to the IPv6 internet, a host that has IPv4 addresses is not queried for IPv6 ones: they
    /// would be unusable.
    pub ipv4_where_no_route: bool,
}

impl Default for ResolverSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            // A server that is busy with a slow zone keeps working between attempts and answers a later one.
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

/// Validation of DNSSEC signatures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DnssecMode {
    /// No validation: the configured servers are trusted.
    #[default]
    Off,
    /// Validation with the public root's keys as trust anchors.
    Root,
    /// Validation with the trust anchors of a file with DNSKEY records.
    Anchors(PathBuf),
}

/// Checks that a file contains trust anchors: DNSKEY records (RFC 4034 2).
pub fn check_trust_anchors(file: &Path) -> Result<(), String> {
    match read_trust_anchors(file).map_err(|error| error.0)?.is_empty() {
        true => Err(format!("{} contains no DNSKEY record", file.display())),
        false => Ok(()),
    }
}

fn read_trust_anchors(file: &Path) -> Result<TrustAnchors, ResolverSetupError> {
    let unreadable =
        |error: ParseError| ResolverSetupError(format!("{} cannot be read as DNSKEY records: {error}", file.display()));
    TrustAnchors::from_file(file).map_err(unreadable)
}

/// Parses a server of the configuration: `192.0.2.53`, `127.0.0.1:5300`, `2001:db8::53`, `[::1]:5300`.
pub fn parse_server(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, PORT)))
}

/// The reason why a lookup has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookupError {
    /// The server refused, failed or timed out: retry later (a 4xx reply, never a 5xx).
    #[error("DNS did not answer for {name}: {reason}")]
    Temporary {
        name: String,
        /// The cause, for logs and messages.
        reason: String,
    },
    /// DNSSEC validation failed (RFC 4035 5): a mistake of the zone's owner, or an attack.
    #[error("the DNSSEC signatures of {name} are invalid")]
    Bogus { name: String },
    /// There are records, but none is usable (such as an MX record with an IP address).
    #[error("the DNS records of {name} are unusable: {reason}")]
    Malformed {
        name: String,
        /// The cause, for logs and messages.
        reason: &'static str,
    },
}

/// The resolver cannot be created: the system's configuration is unreadable or has no server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot create the DNS resolver: {0}")]
pub struct ResolverSetupError(String);

/// The result of a lookup with its TTL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupAnswer<T> {
    pub data: T,
    /// How long the result may be cached.
    pub ttl: Duration,
    /// True if the result is validated by DNSSEC; always false without validation.
    pub is_secure: bool,
}

impl<T> LookupAnswer<T> {
    fn unsigned(data: T, ttl: Duration) -> Self {
        Self { data, ttl, is_secure: false }
    }
}

/// The resolver. Clones share the servers, the cache and the limits.
#[derive(Clone)]
pub struct Resolver(Arc<ResolverInner>);

struct ResolverInner {
    resolver: TokioResolver,
    cache: AnswerCache,
    permits: Semaphore,
    bursts: Semaphore,
    deadline: Duration,
    ipv6: Ipv6Route,
    outage: Mutex<Outage>,
    began: Instant,
}

impl ResolverInner {
    /// Logs when the name servers stop answering and when they answer again. An error code counts as an answer, because
    /// it can be the zone's fault.
    fn note_answer(&self, name: &WireName, kind: RecordType, result: Option<&Result<Lookup, NetError>>) {
        let error: Option<&dyn std::fmt::Display> = match result {
            Some(Ok(_) | Err(NetError::Dns(_))) => None,
            Some(Err(error)) => Some(error),
            None => Some(&"timed out"),
        };
        let now = self.began.elapsed();
        let mut outage = self.outage.lock();
        match error {
            None => {
                if let Some(ended) = outage.answered(now) {
                    let (lasted_s, unanswered) = (ended.lasts.as_secs(), ended.failures);
                    tracing::info!(lasted_s, unanswered, "the DNS servers are responding again");
                }
            }
            Some(error) => {
                if let Some(notice) = outage.failed(now) {
                    let (since_s, unanswered) = (notice.lasts.as_secs(), notice.failures);
                    tracing::warn!(%error, %name, %kind, since_s, unanswered, "the DNS servers are not responding");
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

/// The TLSA records of a mail host (RFC 7672 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaneRecords {
    /// There are none that are validated by DNSSEC.
    None,
    /// There are records, but none is usable: TLS is required, without verification of the certificate.
    Unusable,
    /// One of the records must match the certificate.
    Records {
        /// The TLSA base domain: the host, or the target of its CNAME. The certificate must be for this name.
        base: DomainName,
        records: Vec<Tlsa>,
    },
}

impl Resolver {
    /// Creates a resolver.
    pub fn new(settings: &ResolverSettings) -> Result<Self, ResolverSetupError> {
        fn setup(error: impl fmt::Display) -> ResolverSetupError {
            ResolverSetupError(error.to_string())
        }
        let servers: Vec<NameServerConfig> = if settings.servers.is_empty() {
            system_servers()?
        } else {
            settings.servers.iter().map(|&server| name_server(server)).collect()
        };
        let mut options = ResolverOpts::default();
        options.timeout = settings.try_timeout;
        options.attempts = settings.retries;
        // Answers are cached in [`AnswerCache`], which weighs them.
        options.cache_size = 0;
        options.positive_max_ttl = Some(settings.ttl_max);
        options.negative_max_ttl = Some(settings.negative_ttl_max);
        // Mail routing follows the DNS only, not the hosts file.
        options.use_hosts_file = ResolveHosts::Never;
        options.try_tcp_on_error = true;
        // All queried names are fully qualified, so there is no search list.
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let resolver = resolver.with_options(options).with_tls_config(no_tls().map_err(setup)?);
        let resolver = match &settings.validation {
            DnssecMode::Off => resolver,
            DnssecMode::Root => resolver.with_trust_anchor(Arc::new(TrustAnchors::default())),
            DnssecMode::Anchors(path) => resolver.with_trust_anchor(Arc::new(read_trust_anchors(path)?)),
        };
        let resolver = resolver.build().map_err(setup)?;
        let permits = Semaphore::new(LOOKUPS_MAX);
        let bursts = Semaphore::new(BURST_MAX);
        let ipv6 = Ipv6Route::new(!settings.ipv4_where_no_route);
        let cache = AnswerCache::new(settings.cache_bytes_max, settings.negative_ttl_max);
        Ok(Self(Arc::new(ResolverInner {
            resolver,
            cache,
            permits,
            bursts,
            deadline: settings.deadline,
            ipv6,
            outage: Mutex::new(Outage::after(UNANSWERED_MIN)),
            began: Instant::now(),
        })))
    }

    /// Removes all cached answers.
    pub fn clear_cache(&self) {
        self.0.cache.clear();
    }

    /// Looks up the mail hosts of `domain`.
    ///
    /// # Errors
    /// The lookup failed, or the MX records are unusable.
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
                        reason: "its MX records have no valid host (an MX record must name a host, not an address)",
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

    /// Looks up the addresses of a host, IPv6 and IPv4 alternating, at most [`ADDRESSES_MAX`]. The list is empty if
    /// there are none. Both families are queried at once; if only one is answered, it is used. If the host has no IPv6
    /// route, IPv4 addresses alone are sufficient ([`ResolverSettings::ipv4_where_no_route`]).
    pub async fn addresses(&self, host: &DomainName) -> Result<LookupAnswer<Vec<IpAddr>>, LookupError> {
        let name = to_wire_name(host)?;
        if !self.0.ipv6.has_route() {
            let ipv4 = self.cached_query(&name, RecordType::A).await.map(|found| ip_addresses(&found));
            if let Ok(ipv4) = ipv4
                && !ipv4.data.is_empty()
            {
                return Ok(ipv4);
            }
        }
        let mut ipv6 = pin!(self.cached_query(&name, RecordType::AAAA));
        let mut ipv4 = pin!(self.cached_query(&name, RecordType::A));
        let (v6, v4) = tokio::select! {
            v6 = &mut ipv6 => {
                let v4 = await_other_family(&v6, ipv4, host).await;
                (v6, v4)
            }
            v4 = &mut ipv4 => {
                let v6 = await_other_family(&v4, ipv6, host).await;
                (v6, v4)
            }
        };
        let missing = v6.is_err() || v4.is_err();
        let (ipv6, ipv4) = match (v6, v4) {
            (Err(error), Err(_)) => return Err(error),
            (Ok(found), Err(error)) | (Err(error), Ok(found)) => {
                let parsed = ip_addresses(&found);
                if parsed.data.is_empty() {
                    return Err(error);
                }
                (parsed, LookupAnswer::unsigned(Vec::new(), TTL_UNKNOWN))
            }
            (Ok(ipv6), Ok(ipv4)) => (ip_addresses(&ipv6), ip_addresses(&ipv4)),
        };
        // The absence of one family does not shorten the TTL of the other.
        let ttl = match (ipv6.data.is_empty(), ipv4.data.is_empty()) {
            (true, false) if !missing => ipv4.ttl,
            (false, true) if !missing => ipv6.ttl,
            _ => ipv6.ttl.min(ipv4.ttl),
        };
        let is_secure = [&ipv6, &ipv4].iter().all(|parsed| parsed.data.is_empty() || parsed.is_secure);
        Ok(LookupAnswer { data: interleave(&ipv6.data, &ipv4.data), ttl, is_secure })
    }

    /// Looks up the TXT records of a name, each with its strings joined.
    pub async fn txt(&self, name: &DomainName) -> Result<LookupAnswer<Vec<String>>, LookupError> {
        let found = self.cached_query(&to_wire_name(name)?, RecordType::TXT).await?;
        Ok(collect_records(&found, RECORDS_MAX, txt_string))
    }

    /// Looks up the TLSA records of a mail host (RFC 7672 3.1) that are validated by DNSSEC.
    ///
    /// TLSA records are queried only if the host's addresses are signed (RFC 7672 2.2.2), because name servers of
    /// unsigned zones sometimes fail on such queries. For a CNAME that is signed to its end, the records at its target
    /// take precedence. For a signed CNAME into an unsigned zone, the records at the alias itself are used.
    /// # Errors
    /// [`LookupError`]: the host must not be used now.
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

    /// The TLSA base domains of a host, in order of precedence. The host's addresses are already cached.
    async fn tlsa_bases(&self, host: &DomainName, is_secure: bool) -> Result<Vec<DomainName>, LookupError> {
        let wire_name = to_wire_name(host)?;
        let mut found = self.cached_query(&wire_name, RecordType::A).await;
        if !matches!(found, Ok(DnsAnswer::Records(_))) {
            found = self.cached_query(&wire_name, RecordType::AAAA).await;
        }
        let Ok(DnsAnswer::Records(lookup)) = found else {
            return Ok(if is_secure { vec![host.clone()] } else { Vec::new() });
        };
        let records = lookup.answers();
        if !is_secure {
            let begins = |record: &&Record| {
                record.record_type() == RecordType::CNAME && record.name == wire_name && record.proof.is_secure()
            };
            return Ok(records.iter().find(begins).map(|_| host.clone()).into_iter().collect());
        }
        let ends = records.iter().find(|record| matches!(record.data, RData::A(_) | RData::AAAA(_)));
        let end: Option<DomainName> = ends.and_then(|record| record.name.to_ascii().parse().ok());
        Ok(end.into_iter().filter(|end| end != host).chain([host.clone()]).collect())
    }

    /// Looks up the PTR records of an address.
    pub async fn ptr(&self, address: IpAddr) -> Result<LookupAnswer<Vec<DomainName>>, LookupError> {
        let found = self.cached_query(&WireName::from(address), RecordType::PTR).await?;
        Ok(collect_records(&found, RECORDS_MAX, |data| match data {
            RData::PTR(ptr) => ptr.to_ascii().parse().ok(),
            _ => None,
        }))
    }

    /// Looks up the records of one type at a name, preceded by the CNAMEs that were followed. `None` if there are none.
    pub(crate) async fn records(&self, name: &WireName, kind: RecordType) -> Result<Option<Arc<Lookup>>, LookupError> {
        Ok(match self.cached_query(name, kind).await? {
            DnsAnswer::Records(lookup) => Some(lookup),
            DnsAnswer::NoData(_) | DnsAnswer::NxDomain(_) => None,
        })
    }

    /// Returns whether a name exists (RFC 8020).
    pub(crate) async fn exists(&self, name: &DomainName) -> Result<bool, LookupError> {
        Ok(!matches!(self.cached_query(&to_wire_name(name)?, RecordType::A).await?, DnsAnswer::NxDomain(_)))
    }

    /// Returns whether the configured server validates and passes signatures on: the signatures of the root are valid
    /// here, and the server sets the AD bit (RFC 4035 3.2.3).
    pub async fn is_validating(&self) -> bool {
        let found = self.cached_query(&WireName::root(), RecordType::NS).await;
        matches!(found, Ok(ref found @ DnsAnswer::Records(ref lookup))
            if found.is_secure() && lookup.message().metadata.authentic_data)
    }

    /// Finds the zone of a name: the closest ancestor with NS records, the name itself included. `None` if there is
    /// none below the top-level domain.
    pub async fn find_zone(&self, name: &DomainName) -> Result<Option<DomainName>, LookupError> {
        let mut candidate = name.clone();
        while let Some(parent) = candidate.parent() {
            let wire = to_wire_name(&candidate)?;
            if let DnsAnswer::Records(lookup) = self.cached_query(&wire, RecordType::NS).await?
                // NS records behind a CNAME are those of another zone.
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

    /// Boxed with an opaque type, so that callers do not recompile the DNS client.
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

    /// Queries the servers. Returns also whether the answer may be cached. A negative answer without a SOA record may
    /// not (RFC 2308 5), and neither may a negative answer that the validator gave no TTL.
    async fn query(&self, name: &WireName, kind: RecordType) -> Result<(DnsAnswer, bool), LookupError> {
        let lookup_result = timeout(self.0.deadline, async {
            // The semaphores are never closed. If they were, lookups would run without a limit.
            let _permit = self.0.permits.acquire().await;
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
        let began = Instant::now();
        let lookup_result = lookup_result.await;
        self.0.note_answer(name, kind, lookup_result.as_ref().ok());
        let answer = self.read_answer(name, lookup_result);
        count_lookup(&answer, began.elapsed());
        answer
    }

    fn read_answer(
        &self,
        name: &WireName,
        result: Result<Result<Lookup, NetError>, Elapsed>,
    ) -> Result<(DnsAnswer, bool), LookupError> {
        let temporary = |reason: String| LookupError::Temporary { name: name.to_ascii(), reason };
        match result {
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

/// Counts a lookup that was not served from the cache.
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

/// Awaits the other address family. If the first one has addresses, the wait is short, since some servers never answer
/// AAAA queries.
async fn await_other_family(
    first: &Result<DnsAnswer, LookupError>,
    other: impl Future<Output = Result<DnsAnswer, LookupError>>,
    host: &DomainName,
) -> Result<DnsAnswer, LookupError> {
    if !first.as_ref().is_ok_and(|found| !ip_addresses(found).data.is_empty()) {
        return other.await;
    }
    timeout(FAMILY_GRACE, other).await.unwrap_or_else(|_| {
        Err(LookupError::Temporary {
            name: host.to_string(),
            reason: "lookup of one address family timed out".to_owned(),
        })
    })
}

/// TLS settings without authorities: the resolver asks over UDP and TCP only. Without them hickory reads the machine's
/// authorities, and a machine that has none could not start.
fn no_tls() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn system_servers() -> Result<Vec<NameServerConfig>, ResolverSetupError> {
    let (system, _) =
        hickory_resolver::system_conf::read_system_conf().map_err(|error| ResolverSetupError(error.to_string()))?;
    Ok(system.name_servers().to_vec())
}

/// The configured servers, or else those of the system.
pub(crate) fn configured_or_system_servers(configured: &[SocketAddr]) -> Result<Vec<SocketAddr>, ResolverSetupError> {
    if !configured.is_empty() {
        return Ok(configured.to_vec());
    }
    let port = |server: &NameServerConfig| server.connections.first().map_or(PORT, |first| first.port);
    let servers: Vec<SocketAddr> =
        system_servers()?.iter().map(|server| SocketAddr::new(server.ip, port(server))).collect();
    if servers.is_empty() {
        return Err(ResolverSetupError("the system configuration has no DNS server".to_owned()));
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
        .map_err(|_| LookupError::Malformed { name: name.to_string(), reason: "not a valid DNS name" })?;
    wire.set_fqdn(true);
    Ok(wire)
}

/// Parses a name with arbitrary bytes, as found in records of other domains. `None` if a label is empty or too long.
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

/// Alternates the families, so that a long list of one family does not displace the other.
fn interleave(ipv6: &[IpAddr], ipv4: &[IpAddr]) -> Vec<IpAddr> {
    (0..ipv6.len().max(ipv4.len()))
        .flat_map(|n| [ipv6.get(n), ipv4.get(n)])
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

/// Classifies an MX answer. A root name as the only MX is a null MX (RFC 7505 3); next to others it is ignored.
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
