//! Idempotency keys: an operation under a client's key is executed once, through whichever API or listener it
//! arrives. Repeats are deduplicated (dedupe).
//!
//! ```text
//! key + fingerprint ─► in progress here? ─► used before? ─► IdempotencyGuard ─[ the operation's rows + its result ]
//! ```
//!
//! The result is stored in the commit of the operation, so neither exists without the other. A concurrent use of the
//! key on another node ends in a commit conflict. A rejected operation stores nothing and leaves the key free. An
//! operation done in part (a batch) is resumed: the stored record holds its progress.

use net::clock::Clock;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use model::id::EmailId;
use model::idempotency::{IdempotencyRecord, IdempotencyScope, IdempotentResult, PartialResult};
use store::access::Tenant;
use store::engine::{Batch, ReadError, Store};
use store::idempotency::{ScopedIdempotencyKey, StoredIdempotencyRecord};

use crate::services::Services;

/// The idempotency keys of all accounts.
pub struct IdempotencyKeys {
    store: Store,
    clock: Clock,
    in_progress: Arc<InProgressKeys>,
}

/// Keys whose operation runs on this node now.
#[derive(Debug, Default)]
struct InProgressKeys(Mutex<HashSet<ScopedIdempotencyKey>>);

/// A key in progress; dropping it removes the key from the set.
struct InProgressKey(Arc<InProgressKeys>, ScopedIdempotencyKey);

impl InProgressKeys {
    fn acquire(self: &Arc<Self>, name: &ScopedIdempotencyKey) -> Option<InProgressKey> {
        let mut names = self.0.lock();
        names.insert(name.clone()).then(|| InProgressKey(Arc::clone(self), name.clone()))
    }
}

impl Drop for InProgressKey {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

/// An idempotency key as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    /// SHA-256 of the canonical request, in hexadecimal.
    pub fingerprint: String,
}

/// A key that was acquired: the operation runs under it.
pub struct IdempotencyGuard {
    name: ScopedIdempotencyKey,
    fingerprint: String,
    before: Option<StoredIdempotencyRecord>,
    /// The stored progress, when the operation was executed in part before.
    pub partial: Option<PartialResult>,
    /// Keeps the key in progress beyond the life of the guard, for a result that is recorded later.
    pub hold: InProgressHold,
}

/// Keeps a key in progress for as long as one of its clones exists.
#[derive(Clone)]
pub struct InProgressHold(#[expect(dead_code, reason = "held for its drop")] Arc<InProgressKey>);

/// Result of [`IdempotencyKeys::begin`].
pub enum IdempotencyDecision {
    /// Run the operation, or the rest of a partial one, and record its result with the guard.
    Proceed(Box<IdempotencyGuard>),
    /// The operation was executed before; this is the stored response body.
    Replay(String),
    /// A previous execution may or may not have been committed; this is the id that its email would have.
    Unconfirmed(EmailId),
}

/// Error of [`IdempotencyKeys::begin`].
#[derive(Debug)]
pub enum IdempotencyError {
    /// Another request with this key is in progress on this node.
    InProgress,
    /// The key was used with another fingerprint.
    KeyReused,
    Read(ReadError),
}

impl From<ReadError> for IdempotencyError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl IdempotencyKeys {
    pub fn new(services: &Services) -> Self {
        Self { store: services.store.clone(), clock: services.clock.clone(), in_progress: Arc::default() }
    }

    /// Acquires a key and looks up its stored record.
    ///
    /// # Errors
    /// `InProgress` when the key is used on this node now, `KeyReused` when it was used with another fingerprint; the
    /// store cannot be read.
    pub async fn begin(
        &self,
        tenant: &Tenant,
        operation: IdempotencyScope,
        claim: IdempotencyKey,
    ) -> Result<IdempotencyDecision, IdempotencyError> {
        let name = ScopedIdempotencyKey { account: tenant.account().id, operation, key: claim.key };
        let held = self.in_progress.acquire(&name).ok_or(IdempotencyError::InProgress)?;
        let before = store::idempotency::get(&self.store, &name).await?;
        let now = self.clock.now();
        let used = before.as_ref().map(|found| &found.used).filter(|used| used.is_valid(now));
        if used.is_some_and(|used| used.fingerprint != claim.fingerprint) {
            return Err(IdempotencyError::KeyReused);
        }
        let progress = match used.map(|used| &used.outcome) {
            Some(IdempotentResult::Done(answer)) => return Ok(IdempotencyDecision::Replay(answer.clone())),
            Some(IdempotentResult::Unconfirmed(id)) => return Ok(IdempotencyDecision::Unconfirmed(*id)),
            Some(IdempotentResult::Partly(progress)) => Some(progress.clone()),
            None => None,
        };
        Ok(IdempotencyDecision::Proceed(Box::new(IdempotencyGuard {
            name,
            fingerprint: claim.fingerprint,
            before,
            partial: progress,
            hold: InProgressHold(Arc::new(held)),
        })))
    }
}

impl IdempotencyGuard {
    /// Adds the result to the batch that commits the operation.
    pub fn record_outcome(&self, batch: &mut Batch, outcome: IdempotentResult, now: Timestamp) {
        let used = IdempotencyRecord { fingerprint: self.fingerprint.clone(), outcome, created_at: now };
        store::idempotency::save(batch, &self.name, &used, self.before.as_ref());
    }

    /// Returns the response that another node stored for the same key and fingerprint in the meantime.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn concurrent_result(&self, store: &Store) -> Result<Option<String>, ReadError> {
        let found = store::idempotency::get(store, &self.name).await?;
        // Ignore the expired record that was there before this operation.
        let found = found.filter(|found| self.before.as_ref() != Some(found));
        let matching = found.filter(|found| found.used.fingerprint == self.fingerprint);
        Ok(matching.and_then(|found| match found.used.outcome {
            IdempotentResult::Done(answer) => Some(answer),
            IdempotentResult::Partly(_) | IdempotentResult::Unconfirmed(_) => None,
        }))
    }
}
