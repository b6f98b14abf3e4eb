//! Checks whether the DNS records of a sending domain are published correctly, and explains what to change if not.
//!
//! ```text
//! check ─► RecordFetcher (AuthoritativeResolver ─► query) ─► RecordObservation ─► apply_rules ─► RecordFinding
//!          not cached                                        evidence for the      one sentence for
//!                                                            explanation           each mistake
//! ```
//!
//! A [`DomainChecker`] is created once. [`DomainChecker::check`] looks up all records of a domain in parallel and
//! returns within its deadline. A record whose query is not answered by then is pending, with a sentence. Records are
//! queried from the zone's authoritative servers, so that a change is visible at once; only the delegation is cached.
//! [`apply_rules`] is pure and derives a finding from an observation.
//!
//! Standards: RFC 1034, 1035, 2308, 4035, 4592 (wildcards), 5452, 6376 (DKIM), 6891, 7208 (SPF), 7489 (DMARC), 7505,
//! 7766.

mod authoritative_resolver;
mod display_text;
mod observation;
mod query;
mod record_set;
pub(crate) mod rules;
pub(crate) mod spf_check;
mod tag_list;
mod ttl_cache;

use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use hickory_proto::rr::RecordType as WireType;
use jiff::Timestamp;
use message::address::DomainName;
use model::domain_setup::{DomainRecord, RecordFinding};
use tokio::sync::Semaphore;

pub use observation::{RecordObservation, SpfObservation};
pub use query::QueryError;
pub use record_set::{RecordData, RecordSet, RecordSetResult};
pub use rules::apply_rules;
pub use spf_check::include_mechanisms;
pub use spf_check::lookup_count::SpfLookups;

use crate::resolver::ResolverSetupError;
use authoritative_resolver::AuthoritativeResolver;
use record_set::{RecordFetcher, to_wire_name};

/// Maximum concurrent checks.
const INSPECTIONS_MAX: usize = 32;

/// Settings of a domain checker.
#[derive(Debug, Clone)]
pub struct DomainCheckSettings {
    /// The recursive servers that find the authoritative servers of a zone, and that are queried if none of those is
    /// known. If empty, those of the system.
    pub servers: Vec<SocketAddr>,
    pub authority_port: u16,
    /// True if name servers at private addresses may be queried. The owner of a zone chooses these addresses.
    pub allow_private: bool,
    /// Timeout of one server.
    pub try_timeout: Duration,
    /// Delay after which the next server is queried in parallel.
    pub next_after: Duration,
    /// Timeout of a check.
    pub deadline: Duration,
}

impl Default for DomainCheckSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            authority_port: 53,
            allow_private: false,
            try_timeout: Duration::from_millis(1_500),
            next_after: Duration::from_millis(400),
            deadline: Duration::from_secs(5),
        }
    }
}

/// Record types of [`DomainChecker::lookup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupType {
    A,
    Aaaa,
    Mx,
    Ptr,
    Txt,
}

impl LookupType {
    fn to_wire(self) -> WireType {
        match self {
            Self::A => WireType::A,
            Self::Aaaa => WireType::AAAA,
            Self::Mx => WireType::MX,
            Self::Ptr => WireType::PTR,
            Self::Txt => WireType::TXT,
        }
    }
}

/// Checks the DNS records of domains.
#[derive(Debug)]
pub struct DomainChecker {
    resolver: AuthoritativeResolver,
    permits: Semaphore,
}

impl DomainChecker {
    /// Creates a checker.
    pub fn new(settings: DomainCheckSettings) -> Result<Self, ResolverSetupError> {
        Ok(Self { resolver: AuthoritativeResolver::new(settings)?, permits: Semaphore::new(INSPECTIONS_MAX) })
    }

    /// Returns one finding for each record, in their order. If many checks are in progress, this one waits before its
    /// timeout starts, so that load alone makes no record pending.
    pub fn check<'a>(
        &'a self,
        domain: &'a DomainName,
        records: &'a [DomainRecord],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<RecordFinding>> {
        Box::pin(async move {
            let query_count = AtomicU32::new(0);
            self.check_counting(domain, records, now, &query_count).await
        })
    }

    /// Like [`Self::check`], and counts the queries in `query_count` as they are sent, one for each server. A caller that
    /// cancels the check can still read the count.
    pub fn check_counting<'a>(
        &'a self,
        domain: &'a DomainName,
        records: &'a [DomainRecord],
        now: Timestamp,
        query_count: &'a AtomicU32,
    ) -> BoxFuture<'a, Vec<RecordFinding>> {
        Box::pin(async move {
            let name = domain.as_str();
            let unknown = |record: &DomainRecord| {
                apply_rules(name, record, &RecordObservation::from_records(Err(QueryError::Garbled)), now)
            };
            let Some(wire) = to_wire_name(name) else { return records.iter().map(unknown).collect() };
            // The semaphore is never closed. If it were, checks would run without a limit.
            let _permit = self.permits.acquire().await;
            let fetcher = RecordFetcher::new(&self.resolver, wire, query_count).await;
            let found = records.iter().map(async |record| {
                let answers = RecordObservation::observe(&fetcher, name, record).await;
                apply_rules(name, record, &answers, now)
            });
            join_all(found).await
        })
    }

    /// Returns whether name servers at private addresses are queried.
    pub fn allows_private(&self) -> bool {
        self.resolver.allows_private()
    }

    /// Looks up the records of a type at a name below `domain`, as a check does: from the zone's authoritative servers.
    /// Recursive servers are asked about `domain` only, so a name that does not exist yet does not enter their caches.
    ///
    /// # Errors
    /// No server answered the query.
    pub fn lookup<'a>(&'a self, domain: &'a str, name: &'a str, kind: LookupType) -> BoxFuture<'a, RecordSetResult> {
        Box::pin(async move {
            let Some(wire) = to_wire_name(domain) else { return Err(QueryError::Garbled) };
            let _permit = self.permits.acquire().await;
            let query_count = AtomicU32::new(0);
            let fetcher = RecordFetcher::new(&self.resolver, wire, &query_count).await;
            fetcher.fetch(name, kind.to_wire()).await
        })
    }

    /// Returns the zone of a domain, and the TXT records at `label` below the zone's apex. `None` if no zone is found
    /// below the top-level domain.
    pub async fn txt_below_zone(
        &self,
        domain: &DomainName,
        label: &str,
    ) -> Option<(DomainName, Result<Vec<String>, QueryError>)> {
        let _permit = self.permits.acquire().await;
        let query_count = AtomicU32::new(0);
        let fetcher = RecordFetcher::new(&self.resolver, to_wire_name(domain.as_str())?, &query_count).await;
        let zone: DomainName = fetcher.zone().filter(|zone| zone.contains('.'))?.parse().ok()?;
        let record_set = fetcher.fetch(&format!("{label}.{zone}"), WireType::TXT).await;
        Some((zone, record_set.map(|record_set| record_set.texts().map(str::to_owned).collect())))
    }
}
