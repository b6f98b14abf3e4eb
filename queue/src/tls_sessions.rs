//! Counting how TLS went, for each recipient's domain and day (RFC 8460): what reports are made of, and kept without them.
//!
//! ```text
//! dial ─► Meeting ─► the first message for a domain over it: one session more ─► every half minute ─►[ rows by day ]
//! ```
//!
//! A session is a connection as it was protected for one domain: it counts for each domain whose mail it carries, once;
//! one that TLS stopped, for the domain whose mail it was opened for. What another step than TLS stopped is no session.
//! A crash loses half a minute of counts; memory holds so many domains, and what finds no room is counted as dropped.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dns::lookup::{DaneRecords, LookupError};
use mail::address::DomainName;
use mail::task::Task;
use mail::tls_report::{AppliedTlsPolicy, Day, DomainTlsCounts, TlsFailure, TlsFault, TlsPolicyType, TlsResultType};
use store::engine::{Batch, CommitError, ReadError};
use tokio::sync::Notify;

use crate::worker::Worker;

/// How often is written what was counted.
const FLUSH_INTERVAL: Duration = Duration::from_secs(30);
/// Domains counted between two writes.
const DOMAINS_MAX: usize = 20_000;
/// Rows of one commit.
const BATCH_ROWS: usize = 200;
/// Commits tried, when other nodes count for the same domains.
const COMMIT_TRIES_MAX: usize = 20;

type PendingTlsCounts = HashMap<(Day, DomainName), DomainTlsCounts>;

/// What was counted and is not on disk yet.
#[derive(Debug, Default)]
pub(crate) struct TlsSessionStats {
    counts: Mutex<PendingTlsCounts>,
    is_large: Notify,
}

/// A mail host that was met, and what is to be said of its TLS.
#[derive(Debug)]
pub(crate) struct TlsSession {
    host: (DomainName, IpAddr),
    dane: Option<AppliedTlsPolicy>,
    local: Option<IpAddr>,
    fault: Option<TlsFault>,
    /// The domains that it was counted for.
    counted_domains: HashSet<DomainName>,
}

impl TlsSession {
    /// With a host, of whose certificate this was said.
    pub(crate) fn new(host: (DomainName, IpAddr), dane: &Result<DaneRecords, LookupError>) -> Self {
        let of_the_host = |lines| {
            let mx = vec![host.0.to_string()];
            Some(AppliedTlsPolicy { kind: TlsPolicyType::Tlsa, lines, mx })
        };
        let dane = match dane {
            Ok(DaneRecords::None) => None,
            Ok(DaneRecords::Records { records, .. }) => of_the_host(records.iter().map(ToString::to_string).collect()),
            Ok(DaneRecords::Unusable) | Err(_) => of_the_host(Vec::new()),
        };
        Self { host, dane, local: None, fault: None, counted_domains: HashSet::new() }
    }

    /// As it went. An address of ours behind a translator is nobody's business.
    pub(crate) fn with_result(self, fault: Option<TlsFault>, local: Option<IpAddr>) -> Self {
        Self { local: local.filter(|ip| mail::egress::is_public(*ip)), fault, ..self }
    }
}

/// What is wrong where a host's TLSA records are not to be had.
pub(crate) fn tlsa_lookup_fault(error: &LookupError) -> TlsFault {
    TlsFault::new(TlsResultType::DnssecInvalid, error.to_string())
}

impl TlsSessionStats {
    fn lock(&self) -> MutexGuard<'_, PendingTlsCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, at: (Day, DomainName), more: impl FnOnce(&mut DomainTlsCounts)) {
        let mut counted = self.lock();
        if counted.len() >= DOMAINS_MAX && !counted.contains_key(&at) {
            metrics::counter!("postrider_tls_sessions_dropped_total").increment(1);
            return;
        }
        more(counted.entry(at).or_default());
        if counted.len() >= DOMAINS_MAX / 2 {
            self.is_large.notify_one();
        }
    }
}

impl Worker {
    /// Counts a meeting for the domain of a task, once.
    pub(crate) fn count_tls_session(&self, task: &Task, meeting: &mut TlsSession) {
        let domain = task.address.domain();
        // Reports are not themselves reported about (RFC 8460 5.3).
        if task.tls_optional || meeting.counted_domains.contains(domain) {
            return;
        }
        meeting.counted_domains.insert(domain.clone());
        let published = self.router.tls_policy(domain);
        let fault = meeting.fault.as_ref();
        let outside = || TlsFault::new(TlsResultType::ValidationFailure, "the host does not stand in the policy");
        let (applied, fault) = match (&meeting.dane, &published) {
            (Some(dane), _) => (dane.clone(), fault.cloned()),
            (None, Some(published)) => {
                let stray = (!published.covers(&meeting.host.0)).then(outside);
                (published.applied.clone(), published.fault.clone().or(stray).or_else(|| fault.cloned()))
            }
            (None, None) => (AppliedTlsPolicy::no_policy(), fault.cloned()),
        };
        let failure = fault.map(|fault| TlsFailure::new(&fault, meeting.local, Some(meeting.host.clone())));
        let result = if failure.is_none() { "succeeded" } else { "failed" };
        metrics::counter!("postrider_tls_sessions_total", "result" => result).increment(1);
        let at = (Day::containing(self.clock.now()), domain.clone());
        self.tls_session_stats.add(at, |counts| counts.record_session(&applied, failure));
    }

    /// Counts a session that came to no host: what was published about the way to the domain does not let any be met.
    pub(crate) fn count_unreached(&self, domain: &DomainName, applied: &AppliedTlsPolicy, fault: TlsFault) {
        let failure = TlsFailure::new(&fault, None, None);
        metrics::counter!("postrider_tls_sessions_total", "result" => "failed").increment(1);
        let at = (Day::containing(self.clock.now()), domain.clone());
        self.tls_session_stats.add(at, |counts| counts.record_session(applied, Some(failure)));
    }

    /// Keeps writing what was counted until the worker stops.
    pub(crate) async fn run_tls_stats_writer(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(FLUSH_INTERVAL) => {}
                () = self.tls_session_stats.is_large.notified() => {}
                () = self.stop.cancelled() => return,
            }
            self.flush_tls_stats().await;
        }
    }

    /// Writes what was counted. What the store does not take now is written the next time.
    pub(crate) async fn flush_tls_stats(&self) {
        let taken = std::mem::take(&mut *self.tls_session_stats.lock());
        let taken: Vec<_> = taken.into_iter().collect();
        for some in taken.chunks(BATCH_ROWS) {
            if let Err(error) = self.write_tls_stats(some).await {
                store::warn_unless_away!(self.store, %error, "how TLS went cannot be written at the moment");
                for (at, counts) in some {
                    self.tls_session_stats.add(at.clone(), |known| known.add(counts));
                }
            }
        }
    }

    async fn write_tls_stats(&self, some: &[((Day, DomainName), DomainTlsCounts)]) -> Result<(), StatsWriteError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut batch = Batch::progress();
            store::tls_day::add(&self.store, &mut batch, some).await?;
            match self.store.commit(batch).await {
                Err(CommitError::Conflict { .. }) if tries < COMMIT_TRIES_MAX => {}
                // It may be written: counted twice would be worse than not at all.
                Err(CommitError::Unknown(_)) => return Ok(()),
                done => return Ok(done?),
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum StatsWriteError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}
