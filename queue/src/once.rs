//! Doing once what comes with an idempotency key, whichever door it comes by (completions-email.md 2.3).
//!
//! ```text
//! key + fingerprint ─► at work here? ─► used before? ─► Slot ─[ what is done + what came of it ]
//! ```
//!
//! What came of it lies in the commit of what was done, so there is no moment in which one is known without
//! the other: whoever has the same key at the same time on another node conflicts in the store. What was
//! refused leaves no trace, and the key is free again. What was done in part (a batch) is gone on with: the
//! slot says how far it is.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use mail::id::EmailId;
use mail::idempotency::{Operation, Outcome, Partly, Used};
use store::access::Tenant;
use store::engine::{Batch, ReadError, Store};
use store::idempotency::{Found, Name};

use crate::accept::Hall;

/// The keys at work on this node.
#[derive(Debug, Default)]
pub struct AtWork(Mutex<HashSet<Name>>);

/// A key at work, until this is dropped.
struct Held(Arc<AtWork>, Name);

impl AtWork {
    fn hold(self: &Arc<Self>, name: &Name) -> Option<Held> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.clone()).then(|| Held(Arc::clone(self), name.clone()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

/// What a client says that is to be done once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its key.
    pub key: String,
    /// SHA-256 of what it asks, in a canonical form, in hexadecimal.
    pub fingerprint: String,
}

/// A key that is free: what is done now is done under it.
pub struct Slot {
    name: Name,
    fingerprint: String,
    before: Option<Found>,
    begun: Option<Partly>,
    held: Holding,
}

/// Keeps a key at work, for as long as one of its clones lives.
#[derive(Clone)]
pub struct Holding(#[expect(dead_code, reason = "held for its drop")] Arc<Held>);

/// Whether something is to be done.
pub enum Turn {
    /// Do it, or what is left of it, and keep what came of it in the slot.
    Go(Box<Slot>),
    /// It was done: the answer's body, as it was given.
    Done(String),
    /// Whether it was done could not be learned; the email, should it exist.
    Unconfirmed(EmailId),
}

/// Why it may not be done.
#[derive(Debug)]
pub enum NotNow {
    /// It is being done this very moment.
    InProgress,
    /// The key was used for something else.
    Conflict,
    /// The store cannot be read.
    Unread(ReadError),
}

impl From<ReadError> for NotNow {
    fn from(error: ReadError) -> Self {
        Self::Unread(error)
    }
}

impl Slot {
    /// Looks at a key.
    ///
    /// # Errors
    /// [`NotNow`].
    pub async fn look(
        hall: &Hall,
        tenant: &Tenant,
        operation: Operation,
        claim: Claim,
    ) -> Result<Turn, NotNow> {
        let name = Name { account: tenant.account().id, operation, key: claim.key };
        let held = hall.at_work().hold(&name).ok_or(NotNow::InProgress)?;
        let before = store::idempotency::get(hall.store(), &name).await?;
        let now = hall.clock().now();
        let used = before.as_ref().map(|found| &found.used).filter(|used| used.holds(now));
        if used.is_some_and(|used| used.fingerprint != claim.fingerprint) {
            return Err(NotNow::Conflict);
        }
        let begun = match used.map(|used| &used.outcome) {
            Some(Outcome::Done(answer)) => return Ok(Turn::Done(answer.clone())),
            Some(Outcome::Unconfirmed(id)) => return Ok(Turn::Unconfirmed(*id)),
            Some(Outcome::Partly(begun)) => Some(begun.clone()),
            None => None,
        };
        Ok(Turn::Go(Box::new(Self {
            name,
            fingerprint: claim.fingerprint,
            before,
            begun,
            held: Holding(Arc::new(held)),
        })))
    }

    /// Keeps the key at work beyond the slot: for what is kept under it later.
    #[must_use]
    pub fn hold(&self) -> Holding {
        self.held.clone()
    }

    /// What was done with this key before, when it was done in part.
    #[must_use]
    pub fn begun(&self) -> Option<&Partly> {
        self.begun.as_ref()
    }

    /// Keeps what came of it, in the commit of what was done.
    pub fn keep(&self, batch: &mut Batch, outcome: Outcome, now: Timestamp) {
        let used = Used { fingerprint: self.fingerprint.clone(), outcome, created_at: now };
        store::idempotency::keep(batch, &self.name, &used, self.before.as_ref());
    }

    /// The answer that was given elsewhere, when another node was quicker with this key for the same.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn meanwhile(&self, store: &Store) -> Result<Option<String>, ReadError> {
        let found = store::idempotency::get(store, &self.name).await?;
        // What was there before, over already, is not what was done meanwhile.
        let found = found.filter(|found| self.before.as_ref() != Some(found));
        let same = found.filter(|found| found.used.fingerprint == self.fingerprint);
        Ok(same.and_then(|found| match found.used.outcome {
            Outcome::Done(answer) => Some(answer),
            Outcome::Partly(_) | Outcome::Unconfirmed(_) => None,
        }))
    }
}
