//! TLS session statistics by recipient domain and day (TLS-RPT, RFC 8460): the data of TLS reports, stored with or without a
//! reporter.
//!
//! ```text
//! dial ─► TlsSession ─► first message for a domain over it: one session more ─► every half minute ─►[ rows by day ]
//! ```
//!
//! A session is one connection for one recipient domain: it counts once for each domain whose mail it carries. A
//! session that TLS stopped counts for the domain for which it was dialled. Connections that failed for other reasons
//! are not counted. A crash loses half a minute of counts. Memory holds at most [`DOMAINS_MAX`] domains; further
//! sessions are counted as dropped.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use dns::resolver::{DaneRecords, LookupError};
use message::address::DomainName;
use message::tls_report::{AppliedTlsPolicy, Day, DomainTlsCounts, TlsFailure, TlsFault, TlsPolicyType, TlsResultType};
use model::task::Task;
use store::engine::{Batch, CommitError, StoreError};
use tokio::sync::Notify;

use crate::routing::MxRouter;
use crate::services::Services;

/// Interval between writes.
const FLUSH_INTERVAL: Duration = Duration::from_secs(30);
/// Domains counted between two writes.
const DOMAINS_MAX: usize = 20_000;
/// Rows per commit.
const BATCH_ROWS: usize = 200;
/// Commit tries when other nodes count for the same domains.
const COMMIT_TRIES_MAX: usize = 20;

type PendingTlsCounts = HashMap<(Day, DomainName), DomainTlsCounts>;

/// Counts TLS sessions in memory and writes the counts.
pub(crate) struct TlsSessionStats {
    services: Services,
    router: Arc<MxRouter>,
    /// Counts that are not on disk yet.
    counts: Mutex<PendingTlsCounts>,
    is_large: Notify,
}

/// A connection to a mail host, with its TLS result.
#[derive(Debug)]
pub(crate) struct TlsSession {
    host: DomainName,
    address: IpAddr,
    dane: Option<AppliedTlsPolicy>,
    local: Option<IpAddr>,
    fault: Option<TlsFault>,
    /// Domains for which the session was counted.
    counted_domains: HashSet<DomainName>,
}

impl TlsSession {
    /// Creates a session with a host whose TLSA lookup had this result.
    pub(crate) fn new(host: DomainName, address: IpAddr, dane: &Result<DaneRecords, LookupError>) -> Self {
        let of_the_host = |lines| {
            let mx = vec![host.to_string()];
            Some(AppliedTlsPolicy { kind: TlsPolicyType::Tlsa, lines, mx })
        };
        let dane = match dane {
            Ok(DaneRecords::None) => None,
            Ok(DaneRecords::Records { records, .. }) => of_the_host(records.iter().map(ToString::to_string).collect()),
            Ok(DaneRecords::Unusable) | Err(_) => of_the_host(Vec::new()),
        };
        Self { host, address, dane, local: None, fault: None, counted_domains: HashSet::new() }
    }

    /// Sets the TLS result. A private source address (behind NAT) is not reported.
    pub(crate) fn with_result(self, fault: Option<TlsFault>, local: Option<IpAddr>) -> Self {
        Self { local: local.filter(|ip| model::public_ip::is_public(*ip)), fault, ..self }
    }
}

/// Fault of a host whose TLSA records could not be looked up.
pub(crate) fn tlsa_lookup_fault(error: &LookupError) -> TlsFault {
    TlsFault::new(TlsResultType::DnssecInvalid, error.to_string())
}

impl TlsSessionStats {
    pub(crate) fn new(services: Services, router: Arc<MxRouter>) -> Self {
        Self { services, router, counts: Mutex::default(), is_large: Notify::new() }
    }

    fn add(&self, at: (Day, DomainName), update: impl FnOnce(&mut DomainTlsCounts)) {
        let mut counted = self.counts.lock();
        if counted.len() >= DOMAINS_MAX && !counted.contains_key(&at) {
            metrics::counter!("postrider_tls_sessions_dropped_total").increment(1);
            return;
        }
        update(counted.entry(at).or_default());
        if counted.len() >= DOMAINS_MAX / 2 {
            self.is_large.notify_one();
        }
    }

    /// Counts a session for the domain of a task, once.
    pub(crate) fn count_session(&self, task: &Task, session: &mut TlsSession) {
        let domain = task.address.domain();
        // Sessions that carry TLS reports are not counted (RFC 8460 5.3).
        if task.tls_optional || session.counted_domains.contains(domain) {
            return;
        }
        session.counted_domains.insert(domain.clone());
        let published = self.router.tls_policy(domain);
        let fault = session.fault.as_ref();
        let unlisted_host = || TlsFault::new(TlsResultType::ValidationFailure, "the host is not listed in the policy");
        let (applied, fault) = match (&session.dane, &published) {
            (Some(dane), _) => (dane.clone(), fault.cloned()),
            (None, Some(published)) => {
                let stray = (!published.covers(&session.host)).then(unlisted_host);
                (published.applied.clone(), published.fault.clone().or(stray).or_else(|| fault.cloned()))
            }
            (None, None) => (AppliedTlsPolicy::no_policy(), fault.cloned()),
        };
        let failure =
            fault.map(|fault| TlsFailure::new(&fault, session.local, Some((session.host.clone(), session.address))));
        let result = if failure.is_none() { "succeeded" } else { "failed" };
        metrics::counter!("postrider_tls_sessions_total", "result" => result).increment(1);
        let at = (Day::containing(self.services.clock.now()), domain.clone());
        self.add(at, |counts| counts.record_session(&applied, failure));
    }

    /// Counts a failed session without a host: the domain's published policy leaves no host to dial.
    pub(crate) fn count_unreached(&self, domain: &DomainName, applied: &AppliedTlsPolicy, fault: TlsFault) {
        let failure = TlsFailure::new(&fault, None, None);
        metrics::counter!("postrider_tls_sessions_total", "result" => "failed").increment(1);
        let at = (Day::containing(self.services.clock.now()), domain.clone());
        self.add(at, |counts| counts.record_session(applied, Some(failure)));
    }

    /// Writes the counts periodically until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        while !self.services.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(FLUSH_INTERVAL) => {}
                () = self.is_large.notified() => {}
                () = self.services.stop.cancelled() => return,
            }
            self.flush().await;
        }
    }

    /// Writes the counts. Counts that the store does not accept are written the next time.
    pub(crate) async fn flush(&self) {
        let stats = std::mem::take(&mut *self.counts.lock());
        let stats: Vec<_> = stats.into_iter().collect();
        for rows in stats.chunks(BATCH_ROWS) {
            if let Err(error) = self.write(rows).await {
                store::warn_unless_away!(self.services.store, %error, "cannot write TLS session counts; retrying");
                for (at, counts) in rows {
                    self.add(at.clone(), |existing| existing.add(counts));
                }
            }
        }
    }

    async fn write(&self, rows: &[((Day, DomainName), DomainTlsCounts)]) -> Result<(), StoreError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut batch = Batch::progress();
            store::tls_daily_stats::add(&self.services.store, &mut batch, rows).await?;
            match self.services.store.commit(batch).await {
                Err(CommitError::Conflict { .. }) if attempts < COMMIT_TRIES_MAX => {}
                // The commit may have succeeded: losing counts is better than counting twice.
                Err(CommitError::Unknown(_)) => return Ok(()),
                done => return Ok(done?),
            }
        }
    }
}
