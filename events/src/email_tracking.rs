//! Email tracking: records opens and clicks.
//!
//! ```text
//! TrackedFetch ─► person or machine? ─► counters ─►[ counters + event `email.opened` | `email.clicked` ]
//! ```
//!
//! Concurrency is optimistic: the counters are read, changed and checked at commit. Fetches of one email often arrive
//! together, so they are serialised in this process; only other nodes can cause conflicts.

use std::net::IpAddr;
use std::time::Duration;

use model::event::{Event, EventKind};
use model::id::EventId;
use model::tracking::TrackingTarget;
use model::tracking::bot_detection::{self, DetectedVisitor};
use model::tracking::counters::{self, CountedHit, TrackingHit};
use queue::services::Services;
use serde_json::{Value, json};
use store::engine::{Batch, CommitError, ReadError};
use store::tracking::TrackingRecord;
use thiserror::Error;
use tokio::sync::{Mutex, Semaphore};

/// Commit tries when other nodes write the same counters.
const COMMIT_TRIES_MAX: usize = 5;
/// Fetches recorded or waiting concurrently; further ones are not recorded.
const CONCURRENCY: usize = 512;
/// Number of locks; fetches of one email share a lock.
const LOCKS: usize = 64;

/// Error of recording a fetch.
#[derive(Debug, Error)]
pub enum TrackingError {
    /// Too many concurrent fetches, repeated conflicts, or no owned partition.
    #[error("too many opens and clicks at once")]
    Busy,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A fetch of a tracking pixel or link.
#[derive(Debug, Clone)]
pub struct TrackedFetch {
    /// Account, email and recipient of the link.
    pub tracked: TrackingTarget,
    /// Number and target of the link; `None` for the pixel.
    pub link: Option<(u16, String)>,
    /// Source address.
    pub ip: IpAddr,
    /// `User-Agent` header.
    pub user_agent: String,
    /// The request was HEAD or declared itself as prefetch.
    pub is_prefetch: bool,
}

/// Records opens and clicks.
pub struct EmailTracking {
    services: Services,
    permits: Semaphore,
    locks: [Mutex<()>; LOCKS],
}

impl EmailTracking {
    /// Creates the service.
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self { services, permits: Semaphore::new(CONCURRENCY), locks: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Records a fetch and returns how it was counted. `None` if the email was purged, or for repetitions (see
    /// [`model::tracking::counters`]).
    ///
    /// # Errors
    /// `Busy` when too many fetches are in progress or conflicts persist; the store cannot be read or written.
    pub async fn record(&self, fetched: &TrackedFetch) -> Result<Option<CountedHit>, TrackingError> {
        let _permit = self.permits.try_acquire().map_err(|_| TrackingError::Busy)?;
        let index = usize::from(fetched.tracked.email.to_bytes()[15]) % LOCKS;
        let _lock = self.locks[index].lock().await;
        for _ in 0..COMMIT_TRIES_MAX {
            let Some(found) = store::tracking::load(&self.services.store, fetched.tracked).await? else {
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
        let now = self.services.clock.now();
        let since_delivery =
            found.delivered_at.map(|at| Duration::try_from(now.duration_since(at)).unwrap_or_default());
        let visitor = bot_detection::detect_visitor(&bot_detection::FetchSignals {
            ip: fetched.ip,
            user_agent: &fetched.user_agent,
            is_prefetch: fetched.is_prefetch,
            is_click: fetched.link.is_some(),
            since_delivery,
        });
        let named = fetched.tracked.recipient.is_some();
        let visit = TrackingHit {
            link: fetched.link.as_ref().map(|(number, _)| *number),
            visitor: if named { 0 } else { counters::visitor_hash(fetched.ip, &fetched.user_agent) },
            machine: visitor.machine,
            at: now,
        };
        let mut tally = found.tally.clone();
        let Some(counted) = tally.record(&visit) else { return Ok(None) };
        let partition = self.services.leases.any().ok_or(TrackingError::Busy)?;
        let mut batch = Batch::intake();
        if !self.services.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
            return Err(TrackingError::Busy);
        }
        store::tracking::save(&mut batch, fetched.tracked, found, &tally);
        let kind = if fetched.link.is_some() { EventKind::Clicked } else { EventKind::Opened };
        let (id, detail) =
            (EventId::new(now, self.services.entropy.unique_bits()), event_data(fetched, visitor, counted));
        let event = Event::new(id, fetched.tracked.account, fetched.tracked.email, kind, now, detail);
        let recipient = found.recipient.as_ref().map(|recipient| recipient.address.clone());
        let event = Event { recipient, ..event };
        store::event::record(&mut batch, &event, partition);
        self.services.store.commit(batch).await?;
        self.services.outbox_wakeup.notify_one();
        Ok(Some(counted))
    }
}

/// Builds the event's data.
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
