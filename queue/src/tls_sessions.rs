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

use dns::lookup::{Dane, LookupError};
use mail::address::Name;
use mail::task::Task;
use mail::tls_report::{Applied, Counts, Day, Failure, Fault, PolicyKind, ResultType};
use store::engine::{Batch, CommitError, ReadError};
use tokio::sync::Notify;

use crate::worker::Worker;

/// How often is written what was counted.
const EVERY: Duration = Duration::from_secs(30);
/// Domains counted between two writes.
const DOMAINS_MAX: usize = 20_000;
/// Rows of one commit.
const BATCH_ROWS: usize = 200;
/// Commits tried, when other nodes count for the same domains.
const TRIES_MAX: usize = 20;

type Counted = HashMap<(Day, Name), Counts>;

/// What was counted and is not on disk yet.
#[derive(Debug, Default)]
pub(crate) struct TlsSessions {
    counted: Mutex<Counted>,
    much: Notify,
}

/// A mail host that was met, and what is to be said of its TLS.
#[derive(Debug)]
pub(crate) struct Meeting {
    host: (Name, IpAddr),
    dane: Option<Applied>,
    local: Option<IpAddr>,
    fault: Option<Fault>,
    /// The domains that it was counted for.
    counted: HashSet<Name>,
}

impl Meeting {
    /// With a host, of whose certificate this was said.
    pub(crate) fn new(host: (Name, IpAddr), dane: &Result<Dane, LookupError>) -> Self {
        let of_the_host = |lines| {
            let mx = vec![host.0.to_string()];
            Some(Applied { kind: PolicyKind::Tlsa, lines, mx })
        };
        let dane = match dane {
            Ok(Dane::None) => None,
            Ok(Dane::Records { records, .. }) => {
                of_the_host(records.iter().map(ToString::to_string).collect())
            }
            Ok(Dane::Unusable) | Err(_) => of_the_host(Vec::new()),
        };
        Self { host, dane, local: None, fault: None, counted: HashSet::new() }
    }

    /// As it went. An address of ours behind a translator is nobody's business.
    pub(crate) fn went(self, fault: Option<Fault>, local: Option<IpAddr>) -> Self {
        Self { local: local.filter(|ip| mail::egress::is_public(*ip)), fault, ..self }
    }
}

/// What is wrong where a host's TLSA records are not to be had.
pub(crate) fn unanswered(error: &LookupError) -> Fault {
    Fault::new(ResultType::DnssecInvalid, error.to_string())
}

impl TlsSessions {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, at: (Day, Name), more: impl FnOnce(&mut Counts)) {
        let mut counted = self.lock();
        if counted.len() >= DOMAINS_MAX && !counted.contains_key(&at) {
            metrics::counter!("postrider_tls_sessions_dropped_total").increment(1);
            return;
        }
        more(counted.entry(at).or_default());
        if counted.len() >= DOMAINS_MAX / 2 {
            self.much.notify_one();
        }
    }
}

impl Worker {
    /// Counts a meeting for the domain of a task, once.
    pub(crate) fn count_session(&self, task: &Task, meeting: &mut Meeting) {
        let domain = task.address.domain();
        // Reports are not themselves reported about (RFC 8460 5.3).
        if task.tls_optional || meeting.counted.contains(domain) {
            return;
        }
        meeting.counted.insert(domain.clone());
        let published = self.planner.published(domain);
        let fault = meeting.fault.as_ref();
        let outside = || Fault::new(ResultType::ValidationFailure, "the host does not stand in the policy");
        let (applied, fault) = match (&meeting.dane, &published) {
            (Some(dane), _) => (dane.clone(), fault.cloned()),
            (None, Some(published)) => {
                let stray = (!published.covers(&meeting.host.0)).then(outside);
                (published.applied.clone(), published.trouble.clone().or(stray).or_else(|| fault.cloned()))
            }
            (None, None) => (Applied::nothing(), fault.cloned()),
        };
        let failure = fault.map(|fault| Failure::new(&fault, meeting.local, Some(meeting.host.clone())));
        let result = if failure.is_none() { "succeeded" } else { "failed" };
        metrics::counter!("postrider_tls_sessions_total", "result" => result).increment(1);
        let at = (Day::of(self.clock.now()), domain.clone());
        self.tls_sessions.note(at, |counts| counts.note(&applied, failure));
    }

    /// Counts a session that came to no host: what was published about the way to the domain does not let any be met.
    pub(crate) fn count_outside(&self, domain: &Name, applied: &Applied, fault: Fault) {
        let failure = Failure::new(&fault, None, None);
        metrics::counter!("postrider_tls_sessions_total", "result" => "failed").increment(1);
        let at = (Day::of(self.clock.now()), domain.clone());
        self.tls_sessions.note(at, |counts| counts.note(applied, Some(failure)));
    }

    /// Keeps writing what was counted until the worker stops.
    pub(crate) async fn keep_writing_sessions(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = self.tls_sessions.much.notified() => {}
                () = self.stop.cancelled() => return,
            }
            self.write_sessions().await;
        }
    }

    /// Writes what was counted. What the store does not take now is written the next time.
    pub(crate) async fn write_sessions(&self) {
        let taken = std::mem::take(&mut *self.tls_sessions.lock());
        let taken: Vec<_> = taken.into_iter().collect();
        for some in taken.chunks(BATCH_ROWS) {
            if let Err(error) = self.write_some_sessions(some).await {
                store::warn_unless_away!(self.store, %error, "how TLS went cannot be written at the moment");
                for (at, counts) in some {
                    self.tls_sessions.note(at.clone(), |known| known.add(counts));
                }
            }
        }
    }

    async fn write_some_sessions(&self, some: &[((Day, Name), Counts)]) -> Result<(), WriteError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut batch = Batch::progress();
            store::tls_day::add(&self.store, &mut batch, some).await?;
            match self.store.commit(batch).await {
                Err(CommitError::Conflict { .. }) if tries < TRIES_MAX => {}
                // It may be written: counted twice would be worse than not at all.
                Err(CommitError::Unknown(_)) => return Ok(()),
                done => return Ok(done?),
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}
