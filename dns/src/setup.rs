//! A sending domain's records: whether they stand in its zone as they should, and what to do if not.
//!
//! ```text
//! inspect ─► look (asker ─► exchange) ─► evidence ─► judge ─► Finding
//!            no cache                    what else     a sentence for each
//!                                        helps to say  way to publish wrong
//! ```
//!
//! An [`Inspector`] is built once. [`Inspector::inspect`] looks for all records of a domain at once and
//! answers within its deadline: what could not be learnt by then is pending, with a sentence. Records are
//! asked of the zone's own servers, so that what was published a moment ago is seen; only the way to those
//! servers is kept. [`judge()`] is pure: from what was seen to what is said.
//!
//! Standards: RFC 1034, 1035, 2308, 4035, 4592 (wildcards), 5452, 6376 (DKIM), 6891, 7208 (SPF), 7489
//! (DMARC), 7505, 7766.

mod asker;
mod evidence;
mod exchange;
pub(crate) mod judge;
mod kept;
mod look;
pub(crate) mod spf;
mod tags;
mod text;

use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use hickory_proto::rr::RecordType as WireType;
use jiff::Timestamp;
use mail::address::DomainName;
use mail::setup::{DomainRecord, RecordFinding};
use tokio::sync::Semaphore;

pub use evidence::{RecordObservation, SpfObservation};
pub use exchange::QueryError;
pub use judge::apply_rules;
pub use look::{RecordData, RecordSet, RecordSetResult};
pub use spf::include_mechanisms;
pub use spf::walk::SpfLookups;

use crate::lookup::ResolverSetupError;
use asker::AuthoritativeResolver;
use look::{RecordFetcher, to_wire_name};

/// Inspections under way at once.
const INSPECTIONS_MAX: usize = 32;

/// How to look.
#[derive(Debug, Clone)]
pub struct DomainCheckSettings {
    /// The servers that know the way to a zone, and are asked where none leads there; empty means those of
    /// the system.
    pub servers: Vec<SocketAddr>,
    /// The port of authoritative servers.
    pub authority_port: u16,
    /// Whether name servers at private addresses are asked: who owns a zone chooses them.
    pub allow_private: bool,
    /// How long one server may take to answer.
    pub try_timeout: Duration,
    /// After how long without an answer the next server is asked too.
    pub next_after: Duration,
    /// How long an inspection may take.
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

/// Looks for the records of domains.
#[derive(Debug)]
pub struct DomainChecker {
    asker: AuthoritativeResolver,
    turns: Semaphore,
}

impl DomainChecker {
    /// Sets one up.
    ///
    /// # Errors
    /// [`SetupError`] when no server is configured and those of the system cannot be read.
    pub fn new(settings: DomainCheckSettings) -> Result<Self, ResolverSetupError> {
        Ok(Self { asker: AuthoritativeResolver::new(settings)?, turns: Semaphore::new(INSPECTIONS_MAX) })
    }

    /// One finding for each record, in their order. When many inspections are under way, this one waits for its
    /// turn before its time begins: a crowd makes nothing pending.
    pub fn check<'a>(
        &'a self,
        domain: &'a DomainName,
        records: &'a [DomainRecord],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<RecordFinding>> {
        Box::pin(async move {
            let asked = AtomicU32::new(0);
            self.check_counting((domain, records), now, &asked).await
        })
    }

    /// The same; `asked` counts the questions as they are asked, each to a server, so that who gives it up midway knows
    /// how many they were.
    pub fn check_counting<'a>(
        &'a self,
        (domain, records): (&'a DomainName, &'a [DomainRecord]),
        now: Timestamp,
        asked: &'a AtomicU32,
    ) -> BoxFuture<'a, Vec<RecordFinding>> {
        Box::pin(async move {
            let name = domain.as_str();
            let unknown = |record: &DomainRecord| {
                apply_rules(name, record, &RecordObservation::from_records(Err(QueryError::Garbled)), now)
            };
            let Some(wire) = to_wire_name(name) else { return records.iter().map(unknown).collect() };
            // The semaphore is never closed; if it were, we would look without waiting.
            let _turn = self.turns.acquire().await;
            let looker = RecordFetcher::new(&self.asker, wire, asked).await;
            let found = records.iter().map(async |record| {
                let answers = RecordObservation::observe(&looker, name, record).await;
                apply_rules(name, record, &answers, now)
            });
            join_all(found).await
        })
    }

    /// Whether domains of private networks are seen.
    #[must_use]
    pub fn allows_private(&self) -> bool {
        self.asker.allows_private()
    }

    /// The zone that a domain is in, and the texts at a label below the zone's own name; none when no NS records lead
    /// to a zone.
    pub async fn txt_below_zone(
        &self,
        domain: &DomainName,
        label: &str,
    ) -> Option<(DomainName, Result<Vec<String>, QueryError>)> {
        let _turn = self.turns.acquire().await;
        let asked = AtomicU32::new(0);
        let looker = RecordFetcher::new(&self.asker, to_wire_name(domain.as_str())?, &asked).await;
        let zone: DomainName = looker.zone().filter(|zone| zone.contains('.'))?.parse().ok()?;
        let look = looker.fetch(&format!("{label}.{zone}"), WireType::TXT).await;
        Some((zone, look.map(|look| look.texts().map(str::to_owned).collect())))
    }
}
