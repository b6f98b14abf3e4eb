//! Inspecting a domain's records within bounds: who owns a zone names its servers, so that whoever asks for inspections
//! decides who is asked. (docs/DOMAINS.md, "How much is asked")
//!
//! ```text
//! what, for whom ─► one at a time of the same ─► found in the last ten seconds? ─► within the account's questions? ─► ask
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dns::limiter::QueryRate;
use jiff::Timestamp;
use mail::address::DomainName;
use mail::id::AccountId;
use mail::setup::{DomainRecord, RecordFinding};

use super::{DomainError, SendingDomains};

/// For so long what was found is found again, without a question.
const RESULT_TTL: Duration = Duration::from_secs(10);
/// Questions that an account may have asked, over all nodes.
const QUERY_RATE: QueryRate = QueryRate { per_second: 20, burst: 200 };
/// How many an inspection usually takes.
const TYPICAL_QUERIES: u32 = 20;
/// How long somebody who asks waits for the account's questions.
const INTERACTIVE_WAIT_MAX: Duration = Duration::from_millis(500);
/// How long a look that comes by itself does.
const BACKGROUND_WAIT_MAX: Duration = Duration::from_secs(5);
/// What was found that is kept in memory.
const CACHED_DOMAINS_MAX: usize = 10_000;
/// Of each domain: what its owner wants to stand there, and of a claim both accounts' records.
const CACHED_PER_DOMAIN_MAX: usize = 4;
/// What finding a provider's page, or reading a zone to change it, is counted as.
pub(super) const PROVIDER_QUERIES: u32 = 20;

/// Who has an inspection made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InspectionPriority {
    /// Somebody who waits.
    Interactive,
    /// It is due.
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

/// What was found, and when.
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

/// What inspections have found lately, by who had them made and of which domain.
#[derive(Debug, Default)]
pub(super) struct RecentInspections(Mutex<HashMap<(AccountId, DomainName), Vec<InspectionResult>>>);

impl RecentInspections {
    fn get(&self, of: &(AccountId, DomainName), records: &[DomainRecord], now: Timestamp) -> Option<InspectionResult> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.get(of)?.iter().find(|found| is_fresh(found.at, now) && found.covers(records)).cloned()
    }

    fn put(&self, of: (AccountId, DomainName), records: &[DomainRecord], found: InspectionResult) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= CACHED_DOMAINS_MAX {
            recent.retain(|_, all| all.iter().any(|other| is_fresh(other.at, found.at)));
            if recent.len() >= CACHED_DOMAINS_MAX {
                recent.clear();
            }
        }
        let all = recent.entry(of).or_default();
        all.retain(|other| is_fresh(other.at, found.at) && !other.covers(records));
        if all.len() >= CACHED_PER_DOMAIN_MAX {
            all.remove(0);
        }
        all.push(found);
    }
}

/// Whether what was found then is the answer still. Not from a future that a clock set back has made of it.
pub(super) fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(at)).is_ok_and(|age| age < RESULT_TTL)
}

/// Counts what an inspection asks for the account that has it made, also when it is given up midway. So much as it
/// usually asks is taken before.
struct DnsQueryCounter<'a> {
    domains: &'a SendingDomains,
    account: AccountId,
    asked: AtomicU32,
}

impl Drop for DnsQueryCounter<'_> {
    fn drop(&mut self) {
        let (asked, rate) = (self.asked.load(Ordering::Relaxed), self.domains.node_query_rate());
        if let Some(more) = asked.checked_sub(TYPICAL_QUERIES) {
            self.domains.dns_query_limiter.charge(self.account, more, rate, self.domains.nanoseconds());
        } else {
            self.domains.dns_query_limiter.refund(&self.account, TYPICAL_QUERIES - asked, rate);
        }
    }
}

impl SendingDomains {
    /// Looks for records of a domain, as questions of an account. Of the same records there is one look at a time, and
    /// what was found lately is found again.
    pub(super) async fn inspect(
        &self,
        (account, name): (AccountId, &DomainName),
        records: Vec<DomainRecord>,
        wish: InspectionPriority,
    ) -> Result<InspectionResult, DomainError> {
        let of = (account, name.clone());
        let _same = self.checks_by_domain.acquire(of.clone()).await;
        if let Some(found) = self.recent_inspections.get(&of, &records, self.worker.clock.now()) {
            return Ok(found);
        }
        let _turn = self.checks_by_account.acquire(account).await;
        self.acquire_queries(account, TYPICAL_QUERIES, wish).await?;
        let at = self.worker.clock.now();
        let count = DnsQueryCounter { domains: self, account, asked: AtomicU32::new(0) };
        let found = self.parts.inspector.check_counting((name, &records), at, &count.asked).await;
        drop(count);
        let found = InspectionResult { at, findings: records.iter().cloned().zip(found).collect() };
        self.recent_inspections.put(of, &records, found.clone());
        Ok(found)
    }

    /// An account has so many questions asked, as soon as it may.
    ///
    /// # Errors
    /// [`DomainError::TooManyQuestions`]: that is not soon.
    pub(super) async fn acquire_queries(
        &self,
        account: AccountId,
        questions: u32,
        wish: InspectionPriority,
    ) -> Result<(), DomainError> {
        let begun = self.worker.clock.now();
        loop {
            let Err(wait) =
                self.dns_query_limiter.acquire(&account, questions, (self.node_query_rate(), self.nanoseconds()))
            else {
                return Ok(());
            };
            let waited = Duration::try_from(self.worker.clock.now().duration_since(begun)).unwrap_or_default();
            if waited + wait > wish.wait_max() || self.worker.stop.is_cancelled() {
                return Err(DomainError::TooManyDnsQueries { retry_after: wait });
            }
            tokio::select! {
                () = self.worker.clock.sleep_until(self.worker.after(wait)) => {}
                () = self.worker.stop.cancelled() => {}
            }
        }
    }

    /// The same, without waiting: whether it may.
    #[must_use]
    pub fn try_acquire_queries(&self, account: AccountId, questions: usize) -> bool {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.dns_query_limiter.acquire(&account, questions, (self.node_query_rate(), self.nanoseconds())).is_ok()
    }

    /// What this node gives of the rate, so that all together keep to it.
    fn node_query_rate(&self) -> QueryRate {
        let nodes = self.worker.leases.nodes().max(1);
        QueryRate { per_second: QUERY_RATE.per_second.div_ceil(nodes), burst: QUERY_RATE.burst.div_ceil(nodes) }
    }

    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.worker.clock.now().as_nanosecond()).unwrap_or_default()
    }
}
