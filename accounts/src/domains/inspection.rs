//! Bounded DNS inspection: a zone's owner names its servers, so a customer controls which servers are queried.
//! (docs/DOMAINS.md, "Query limits")
//!
//! ```text
//! account, domain ─► one inspection at a time ─► cached for ten seconds? ─► within the account's query limit? ─► query
//! ```

use net::limit::keyed_semaphore::KeyedSemaphore;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dns::domain_check::DomainChecker;
use dns::query_limiter::{QueryLimiter, QueryRate};
use jiff::Timestamp;
use message::address::DomainName;
use model::domain_setup::{DomainRecord, RecordFinding};
use model::id::AccountId;
use queue::services::Services;
use quick_cache::unsync::Cache;

use super::DomainError;

/// Concurrent checks of one account: the periodic ones ([`super::check_queue`]), and some on request.
const CHECKS_PER_ACCOUNT_MAX: usize = 6;
const RESULT_TTL: Duration = Duration::from_secs(10);
/// DNS queries of one account, over all nodes.
const QUERY_RATE: QueryRate = QueryRate { per_second: 20, burst: 200 };
const TYPICAL_QUERIES: u32 = 20;
/// Time limit of a request's wait for the account's query limit.
const INTERACTIVE_WAIT_MAX: Duration = Duration::from_millis(500);
/// Time limit of a periodic check's wait for it.
const BACKGROUND_WAIT_MAX: Duration = Duration::from_secs(5);
/// Domains with cached results.
const CACHED_DOMAINS_MAX: usize = 10_000;
/// Cached results of one domain: for its owner's records, and for both accounts' records of a claim.
const CACHED_PER_DOMAIN_MAX: usize = 4;
/// Queries charged for finding a provider's page, or reading a zone before a change.
pub(super) const PROVIDER_QUERIES: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InspectionPriority {
    /// A request.
    Interactive,
    /// A periodic check.
    Background,
}

impl InspectionPriority {
    fn wait_max(self) -> Duration {
        match self {
            Self::Interactive => INTERACTIVE_WAIT_MAX,
            Self::Background => BACKGROUND_WAIT_MAX,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct InspectionResult {
    pub(super) at: Timestamp,
    pub(super) findings: Vec<(DomainRecord, RecordFinding)>,
}

impl InspectionResult {
    fn covers(&self, records: &[DomainRecord]) -> bool {
        self.findings.iter().map(|(record, _)| record).eq(records)
    }
}

#[derive(Debug)]
struct RecentInspections(Mutex<Cache<(AccountId, DomainName), Vec<InspectionResult>>>);

impl Default for RecentInspections {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(CACHED_DOMAINS_MAX)))
    }
}

impl RecentInspections {
    fn get(&self, key: &(AccountId, DomainName), records: &[DomainRecord], now: Timestamp) -> Option<InspectionResult> {
        let recent = self.0.lock();
        recent.get(key)?.iter().find(|found| is_fresh(found.at, now) && found.covers(records)).cloned()
    }

    fn put(&self, key: (AccountId, DomainName), records: &[DomainRecord], found: InspectionResult) {
        let mut recent = self.0.lock();
        let mut all = recent.remove(&key).map(|(_, all)| all).unwrap_or_default();
        all.retain(|other| is_fresh(other.at, found.at) && !other.covers(records));
        if all.len() >= CACHED_PER_DOMAIN_MAX {
            all.remove(0);
        }
        all.push(found);
        recent.insert(key, all);
    }
}

/// Returns whether a result is still fresh. A time in the future, after the clock was set back, is not.
pub(super) fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(at)).is_ok_and(|age| age < RESULT_TTL)
}

/// Charges the queries of an inspection to its account, even if it is cancelled. [`TYPICAL_QUERIES`] are acquired
/// before; the difference is charged or refunded on drop.
struct DnsQueryCounter<'a> {
    inspector: &'a DomainInspector,
    account: AccountId,
    queries: AtomicU32,
}

impl Drop for DnsQueryCounter<'_> {
    fn drop(&mut self) {
        let (sent, rate) = (self.queries.load(Ordering::Relaxed), self.inspector.node_query_rate());
        if let Some(extra) = sent.checked_sub(TYPICAL_QUERIES) {
            self.inspector.query_limiter.charge(self.account, extra, rate, self.inspector.nanoseconds());
        } else {
            self.inspector.query_limiter.refund(&self.account, TYPICAL_QUERIES - sent, rate);
        }
    }
}

/// Queries the DNS records of domains within the limits of each account.
pub struct DomainInspector {
    services: Services,
    pub(super) checker: DomainChecker,
    /// Checks in progress, by account.
    pub(super) checks_by_account: KeyedSemaphore<AccountId>,
    /// Checks in progress, by account and domain.
    checks_by_domain: KeyedSemaphore<(AccountId, DomainName)>,
    recent: RecentInspections,
    /// Rate limiter of DNS queries, by account.
    query_limiter: QueryLimiter<AccountId>,
}

impl DomainInspector {
    pub(super) fn new(services: Services, checker: DomainChecker) -> Self {
        Self {
            services,
            checker,
            checks_by_account: KeyedSemaphore::new(CHECKS_PER_ACCOUNT_MAX),
            checks_by_domain: KeyedSemaphore::new(1),
            recent: RecentInspections::default(),
            query_limiter: QueryLimiter::default(),
        }
    }

    pub(super) fn allows_private(&self) -> bool {
        self.checker.allows_private()
    }

    /// Inspects records of a domain on behalf of an account. Equal inspections run one at a time, and recent results
    /// are reused.
    pub(super) async fn inspect(
        &self,
        account: AccountId,
        name: &DomainName,
        records: Vec<DomainRecord>,
        priority: InspectionPriority,
    ) -> Result<InspectionResult, DomainError> {
        let key = (account, name.clone());
        let _domain_permit = self.checks_by_domain.acquire(key.clone()).await;
        if let Some(found) = self.recent.get(&key, &records, self.services.clock.now()) {
            return Ok(found);
        }
        let _account_permit = self.checks_by_account.acquire(account).await;
        self.acquire_queries(account, TYPICAL_QUERIES, priority).await?;
        let at = self.services.clock.now();
        let count = DnsQueryCounter { inspector: self, account, queries: AtomicU32::new(0) };
        let found = self.checker.check_counting(name, &records, at, &count.queries).await;
        drop(count);
        let found = InspectionResult { at, findings: records.iter().cloned().zip(found).collect() };
        self.recent.put(key, &records, found.clone());
        Ok(found)
    }

    /// Acquires DNS queries for an account, waiting for a bounded time.
    ///
    /// # Errors
    /// [`DomainError::TooManyDnsQueries`] if the wait would be too long.
    pub(super) async fn acquire_queries(
        &self,
        account: AccountId,
        questions: u32,
        priority: InspectionPriority,
    ) -> Result<(), DomainError> {
        let started_at = self.services.clock.now();
        loop {
            let Err(wait) = self.query_limiter.acquire(&account, questions, self.node_query_rate(), self.nanoseconds())
            else {
                return Ok(());
            };
            let waited = Duration::try_from(self.services.clock.now().duration_since(started_at)).unwrap_or_default();
            if waited + wait > priority.wait_max() || self.services.stop.is_cancelled() {
                return Err(DomainError::TooManyDnsQueries { retry_after: wait });
            }
            tokio::select! {
                () = self.services.clock.sleep_until(self.services.clock.after(wait)) => {}
                () = self.services.stop.cancelled() => {}
            }
        }
    }

    /// Acquires DNS queries without waiting; false if the limit is reached.
    #[must_use]
    pub fn try_acquire_queries(&self, account: AccountId, questions: usize) -> bool {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.query_limiter.acquire(&account, questions, self.node_query_rate(), self.nanoseconds()).is_ok()
    }

    /// This node's share of the rate.
    fn node_query_rate(&self) -> QueryRate {
        let nodes = self.services.leases.nodes().max(1);
        QueryRate { per_second: QUERY_RATE.per_second.div_ceil(nodes), burst: QUERY_RATE.burst.div_ceil(nodes) }
    }

    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.services.clock.now().as_nanosecond()).unwrap_or_default()
    }
}
