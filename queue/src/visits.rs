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
use mail::tracking::Tracked;
use mail::tracking::machine::{self, Visitor};
use mail::tracking::tally::{self, Counted, Visit};
use serde_json::{Value, json};
use store::engine::{Batch, CommitError, ReadError};
use store::tracking::Found;
use thiserror::Error;
use tokio::sync::{Mutex, Semaphore};

use crate::worker::Worker;

/// How often is tried, should other nodes be first.
const TRIES_MAX: usize = 5;
/// Visits that are booked at once, or wait for that; more are not booked.
const AT_ONCE_MAX: usize = 512;
/// Emails of which one at a time is booked.
const LANES: usize = 64;

/// Why a visit was not booked.
#[derive(Debug, Error)]
pub enum VisitError {
    /// Too many at once, other nodes were first again and again, or no partition is ours this moment.
    #[error("too many visits at once")]
    Crowded,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A pixel or a link that was fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Whose.
    pub of: Tracked,
    /// The link's number and where it leads; none for the pixel.
    pub link: Option<(u16, String)>,
    /// From where.
    pub ip: IpAddr,
    /// What the visitor calls itself.
    pub user_agent: String,
    /// It asked for no more than the header, or said that it fetches in advance.
    pub in_advance: bool,
}

/// Books visits.
pub struct Visits {
    worker: Arc<Worker>,
    places: Semaphore,
    lanes: [Mutex<()>; LANES],
}

impl Visits {
    /// Books with this worker.
    #[must_use]
    pub fn new(worker: Arc<Worker>) -> Self {
        Self { worker, places: Semaphore::new(AT_ONCE_MAX), lanes: std::array::from_fn(|_| Mutex::default()) }
    }

    /// Books a visit. Nothing is booked of an email that is not kept any more, nor what comes too often
    /// (see [`mail::tracking::tally`]). Says what it was booked as.
    ///
    /// # Errors
    /// [`VisitError`].
    pub async fn book(&self, fetched: &Fetched) -> Result<Option<Counted>, VisitError> {
        let _place = self.places.try_acquire().map_err(|_| VisitError::Crowded)?;
        let lane = usize::from(fetched.of.email.to_bytes()[15]) % LANES;
        let _turn = self.lanes[lane].lock().await;
        for _ in 0..TRIES_MAX {
            let Some(found) = store::tracking::look(&self.worker.store, fetched.of).await? else {
                return Ok(None);
            };
            match self.book_as_found(fetched, &found).await {
                Err(VisitError::Commit(CommitError::Conflict { .. })) => {}
                outcome => return outcome,
            }
        }
        Err(VisitError::Crowded)
    }

    async fn book_as_found(&self, fetched: &Fetched, found: &Found) -> Result<Option<Counted>, VisitError> {
        let now = self.worker.clock.now();
        let since_delivery =
            found.delivered_at.map(|at| Duration::try_from(now.duration_since(at)).unwrap_or_default());
        let visitor = machine::judge(&machine::Request {
            ip: fetched.ip,
            user_agent: &fetched.user_agent,
            in_advance: fetched.in_advance,
            is_click: fetched.link.is_some(),
            since_delivery,
        });
        let named = fetched.of.recipient.is_some();
        let visit = Visit {
            link: fetched.link.as_ref().map(|(number, _)| *number),
            visitor: if named { 0 } else { tally::visitor(fetched.ip, &fetched.user_agent) },
            machine: visitor.machine,
            at: now,
        };
        let mut tally = found.tally.clone();
        let Some(counted) = tally.count(&visit) else { return Ok(None) };
        let partition = self.worker.leases.any().ok_or(VisitError::Crowded)?;
        let mut batch = Batch::intake();
        if !self.worker.leases.fence_partitions(&mut batch, std::iter::once(partition)) {
            return Err(VisitError::Crowded);
        }
        store::tracking::keep(&mut batch, fetched.of, found, &tally);
        let event = Event {
            id: EventId::new(now, self.worker.entropy.id()),
            account: fetched.of.account,
            subject: fetched.of.email.into(),
            kind: if fetched.link.is_some() { EventKind::Clicked } else { EventKind::Opened },
            recipient: found.recipient.as_ref().map(|recipient| recipient.address.clone()),
            created_at: now,
            detail: detail(fetched, visitor, counted),
        };
        store::event::record(&mut batch, &event, partition);
        self.worker.store.commit(batch).await?;
        self.worker.untold.notify_one();
        Ok(Some(counted))
    }
}

/// The particulars of the event (completions-email.md 2.10).
fn detail(fetched: &Fetched, visitor: Visitor, counted: Counted) -> Value {
    let (ip, user_agent) = (fetched.ip.to_canonical(), &fetched.user_agent);
    let Counted { machine, first } = counted;
    match &fetched.link {
        Some((_, url)) => json!({"click": {
            "url": url, "ip": ip, "user_agent": user_agent, "machine": machine, "first": first,
        }}),
        None => json!({"open": {
            "ip": ip, "user_agent": user_agent, "machine": machine, "proxy": visitor.proxy, "first": first,
        }}),
    }
}
