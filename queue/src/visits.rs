//! Visits: what was fetched of a tracked email, booked.
//!
//! ```text
//! Fetched ─► person or machine? ─► Tally ─►[ tally + event `email.opened` | `email.clicked` ]
//! ```
//!
//! Optimistic: the tally is read, changed and checked. Many readers of one email come at once, so those of
//! one email wait for each other in this process; only other nodes are left to conflict with.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mail::event::{Event, EventKind};
use mail::id::EventId;
use mail::tracking::TrackingTarget;
use mail::tracking::machine::{self, DetectedVisitor};
use mail::tracking::tally::{self, CountedHit, TrackingHit};
use serde_json::{Value, json};
use store::engine::{Batch, CommitError, ReadError};
use store::tracking::TrackingRecord;
use thiserror::Error;
use tokio::sync::{Mutex, Semaphore};

use crate::worker::Worker;

/// How often is tried, should other nodes be first.
const COMMIT_TRIES_MAX: usize = 5;
/// Visits that are booked at once, or wait for that; more are not booked.
const CONCURRENCY: usize = 512;
/// Emails of which one at a time is booked.
const LANES: usize = 64;

/// Why a visit was not booked.
#[derive(Debug, Error)]
pub enum TrackingError {
    /// Too many at once, other nodes were first again and again, or no partition is ours this moment.
    #[error("too many visits at once")]
    Busy,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A pixel or a link that was fetched.
#[derive(Debug, Clone)]
pub struct TrackedFetch {
    /// Whose.
    pub tracked: TrackingTarget,
    /// The link's number and where it leads; none for the pixel.
    pub link: Option<(u16, String)>,
    /// From where.
    pub ip: IpAddr,
    /// What the visitor calls itself.
    pub user_agent: String,
    /// It asked for no more than the header, or said that it fetches in advance.
    pub is_prefetch: bool,
}

/// Books visits.
pub struct EmailTracking {
    worker: Arc<Worker>,
    permits: Semaphore,
    lanes: [Mutex<()>; LANES],
}

impl EmailTracking {
    /// Books with this worker.
    #[must_use]
    pub fn new(worker: Arc<Worker>) -> Self {
        Self { worker, permits: Semaphore::new(CONCURRENCY), lanes: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Books a visit. Nothing is booked of an email that is not kept any more, nor what comes too often
    /// (see [`mail::tracking::tally`]). Says what it was booked as.
    ///
    /// # Errors
    /// [`VisitError`].
    pub async fn record(&self, fetched: &TrackedFetch) -> Result<Option<CountedHit>, TrackingError> {
        let _place = self.permits.try_acquire().map_err(|_| TrackingError::Busy)?;
        let lane = usize::from(fetched.tracked.email.to_bytes()[15]) % LANES;
        let _turn = self.lanes[lane].lock().await;
        for _ in 0..COMMIT_TRIES_MAX {
            let Some(found) = store::tracking::load(&self.worker.store, fetched.tracked).await? else {
                return Ok(None);
            };
            match self.try_record(fetched, &found).await {
                Err(TrackingError::Commit(CommitError::Conflict { .. })) => {}
                outcome => return outcome,
            }
        }
        Err(TrackingError::Busy)
    }

    async fn try_record(
        &self,
        fetched: &TrackedFetch,
        found: &TrackingRecord,
    ) -> Result<Option<CountedHit>, TrackingError> {
        let now = self.worker.clock.now();
        let since_delivery =
            found.delivered_at.map(|at| Duration::try_from(now.duration_since(at)).unwrap_or_default());
        let visitor = machine::detect_visitor(&machine::FetchSignals {
            ip: fetched.ip,
            user_agent: &fetched.user_agent,
            is_prefetch: fetched.is_prefetch,
            is_click: fetched.link.is_some(),
            since_delivery,
        });
        let named = fetched.tracked.recipient.is_some();
        let visit = TrackingHit {
            link: fetched.link.as_ref().map(|(number, _)| *number),
            visitor: if named { 0 } else { tally::visitor_hash(fetched.ip, &fetched.user_agent) },
            machine: visitor.machine,
            at: now,
        };
        let mut tally = found.tally.clone();
        let Some(counted) = tally.record(&visit) else { return Ok(None) };
        let partition = self.worker.leases.any().ok_or(TrackingError::Busy)?;
        let mut batch = Batch::intake();
        if !self.worker.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
            return Err(TrackingError::Busy);
        }
        store::tracking::save(&mut batch, fetched.tracked, found, &tally);
        let event = Event {
            id: EventId::new(now, self.worker.entropy.unique_bits()),
            account: fetched.tracked.account,
            subject: fetched.tracked.email.into(),
            kind: if fetched.link.is_some() { EventKind::Clicked } else { EventKind::Opened },
            recipient: found.recipient.as_ref().map(|recipient| recipient.address.clone()),
            created_at: now,
            detail: event_data(fetched, visitor, counted),
        };
        store::event::record(&mut batch, &event, partition);
        self.worker.store.commit(batch).await?;
        self.worker.outbox_wakeup.notify_one();
        Ok(Some(counted))
    }
}

/// The particulars of the event (completions-email.md 2.10).
fn event_data(fetched: &TrackedFetch, visitor: DetectedVisitor, counted: CountedHit) -> Value {
    let (ip, user_agent) = (fetched.ip.to_canonical(), &fetched.user_agent);
    let CountedHit { machine, first } = counted;
    match &fetched.link {
        Some((_, url)) => json!({"click": {
            "url": url, "ip": ip, "user_agent": user_agent, "machine": machine, "first": first,
        }}),
        None => json!({"open": {
            "ip": ip, "user_agent": user_agent, "machine": machine, "proxy": visitor.proxy, "first": first,
        }}),
    }
}
