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
use mail::idempotency::{IdempotencyRecord, IdempotencyScope, IdempotentResult, PartialResult};
use store::access::Tenant;
use store::engine::{Batch, ReadError, Store};
use store::idempotency::{ScopedIdempotencyKey, StoredIdempotencyRecord};

use crate::accept::Intake;

/// The keys at work on this node.
#[derive(Debug, Default)]
pub struct InProgressKeys(Mutex<HashSet<ScopedIdempotencyKey>>);

/// A key at work, until this is dropped.
struct InProgressKey(Arc<InProgressKeys>, ScopedIdempotencyKey);

impl InProgressKeys {
    fn acquire(self: &Arc<Self>, name: &ScopedIdempotencyKey) -> Option<InProgressKey> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.clone()).then(|| InProgressKey(Arc::clone(self), name.clone()))
    }
}

impl Drop for InProgressKey {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

/// What a client says that is to be done once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Its key.
    pub key: String,
    /// SHA-256 of what it asks, in a canonical form, in hexadecimal.
    pub fingerprint: String,
}

/// A key that is free: what is done now is done under it.
pub struct IdempotencyGuard {
    name: ScopedIdempotencyKey,
    fingerprint: String,
    before: Option<StoredIdempotencyRecord>,
    partial: Option<PartialResult>,
    hold: InProgressHold,
}

/// Keeps a key at work, for as long as one of its clones lives.
#[derive(Clone)]
pub struct InProgressHold(#[expect(dead_code, reason = "held for its drop")] Arc<InProgressKey>);

/// Whether something is to be done.
pub enum IdempotencyDecision {
    /// Do it, or what is left of it, and keep what came of it in the slot.
    Proceed(Box<IdempotencyGuard>),
    /// It was done: the answer's body, as it was given.
    Replay(String),
    /// Whether it was done could not be learned; the email, should it exist.
    Unconfirmed(EmailId),
}

/// Why it may not be done.
#[derive(Debug)]
pub enum IdempotencyError {
    /// It is being done this very moment.
    InProgress,
    /// The key was used for something else.
    KeyReused,
    /// The store cannot be read.
    Read(ReadError),
}

impl From<ReadError> for IdempotencyError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl IdempotencyGuard {
    /// Looks at a key.
    ///
    /// # Errors
    /// [`NotNow`].
    pub async fn begin(
        hall: &Intake,
        tenant: &Tenant,
        operation: IdempotencyScope,
        claim: IdempotencyKey,
    ) -> Result<IdempotencyDecision, IdempotencyError> {
        let name = ScopedIdempotencyKey { account: tenant.account().id, operation, key: claim.key };
        let held = hall.in_progress_keys().acquire(&name).ok_or(IdempotencyError::InProgress)?;
        let before = store::idempotency::get(hall.store(), &name).await?;
        let now = hall.clock().now();
        let used = before.as_ref().map(|found| &found.used).filter(|used| used.is_valid(now));
        if used.is_some_and(|used| used.fingerprint != claim.fingerprint) {
            return Err(IdempotencyError::KeyReused);
        }
        let begun = match used.map(|used| &used.outcome) {
            Some(IdempotentResult::Done(answer)) => return Ok(IdempotencyDecision::Replay(answer.clone())),
            Some(IdempotentResult::Unconfirmed(id)) => return Ok(IdempotencyDecision::Unconfirmed(*id)),
            Some(IdempotentResult::Partly(begun)) => Some(begun.clone()),
            None => None,
        };
        Ok(IdempotencyDecision::Proceed(Box::new(Self {
            name,
            fingerprint: claim.fingerprint,
            before,
            partial: begun,
            hold: InProgressHold(Arc::new(held)),
        })))
    }

    /// Keeps the key at work beyond the slot: for what is kept under it later.
    #[must_use]
    pub fn hold_key(&self) -> InProgressHold {
        self.hold.clone()
    }

    /// What was done with this key before, when it was done in part.
    #[must_use]
    pub fn partial_outcome(&self) -> Option<&PartialResult> {
        self.partial.as_ref()
    }

    /// Keeps what came of it, in the commit of what was done.
    pub fn record_outcome(&self, batch: &mut Batch, outcome: IdempotentResult, now: Timestamp) {
        let used = IdempotencyRecord { fingerprint: self.fingerprint.clone(), outcome, created_at: now };
        store::idempotency::save(batch, &self.name, &used, self.before.as_ref());
    }

    /// The answer that was given elsewhere, when another node was quicker with this key for the same.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn concurrent_result(&self, store: &Store) -> Result<Option<String>, ReadError> {
        let found = store::idempotency::get(store, &self.name).await?;
        // What was there before, over already, is not what was done meanwhile.
        let found = found.filter(|found| self.before.as_ref() != Some(found));
        let same = found.filter(|found| found.used.fingerprint == self.fingerprint);
        Ok(same.and_then(|found| match found.used.outcome {
            IdempotentResult::Done(answer) => Some(answer),
            IdempotentResult::Partly(_) | IdempotentResult::Unconfirmed(_) => None,
        }))
    }
}
