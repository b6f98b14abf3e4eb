//! Context of all operations: the store, the clock, a source of random ids, and how a change is committed. Operations
//! that need nothing else are its methods, each in the file of its subject.
//!
//! An operation reads rows, decides, and commits on the condition that the rows are unchanged; after a conflict it
//! starts again ([`store::retry_on_conflict`]). Each change is one commit together with its events.

use std::sync::Arc;

use jiff::Timestamp;
use net::clock::Clock;
use net::entropy::Entropy;
use queue::cluster::lease::Leases;
use queue::services::Services;
use store::engine::{Batch, CommitError, Key, Store};

use crate::error::{AffiliateError, ConflictReason, Result};

/// The store, clock and source of randomness of all subsystems. Clones share them.
#[derive(Clone)]
pub struct Context {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    /// Partitions that this node owns.
    pub(crate) leases: Arc<Leases>,
    /// Called after each commit: wakes the outbox dispatcher and the sender of partner emails.
    committed: Arc<dyn Fn() + Send + Sync>,
    /// True if changes emit no events (silent back-fill).
    pub(crate) suppresses_events: bool,
}

/// Rows that a caller adds to an operation's commit, e.g. its idempotency record.
pub type ExtendCommit<'a, T> = &'a (dyn Fn(&mut Batch, &T) + Send + Sync);

/// An [`ExtendCommit`] that adds nothing.
pub fn no_extension<T>(_: &mut Batch, _: &T) {}

impl Context {
    /// Creates the context; `committed` is called after each commit.
    pub fn new(services: &Services, committed: Arc<dyn Fn() + Send + Sync>) -> Self {
        let Services { store, clock, entropy, leases, .. } = services.clone();
        Self { store, clock, entropy, leases, committed, suppresses_events: false }
    }

    /// Returns a context whose changes emit no events.
    pub(crate) fn without_events(self) -> Self {
        Self { suppresses_events: true, ..self }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn random(&self) -> u128 {
        self.entropy.unique_bits()
    }

    /// Commits a batch. Returns false on a conflict.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<bool, CommitError> {
        Ok(self.find_conflict(batch).await?.is_none())
    }

    /// Commits a batch. Returns false on a conflict, except if `refusal` gives a reason for the row that another commit
    /// changed first.
    ///
    /// # Errors
    /// The reason that `refusal` gives; `Changed` if a concurrent request with the same idempotency key committed first:
    /// a retry of the request finds its response.
    pub(crate) async fn commit_unless<E: Into<AffiliateError>>(
        &self,
        batch: Batch,
        refusal: impl FnOnce(&Key) -> Option<E>,
    ) -> Result<bool> {
        match self.find_conflict(batch).await? {
            None => Ok(true),
            Some(key) if store::idempotency::caused_conflict(&key) => Err(ConflictReason::Changed.into()),
            Some(key) => refusal(&key).map_or(Ok(false), |reason| Err(reason.into())),
        }
    }

    /// Commits the batch of a request, which may hold its idempotency record. Returns false on a conflict.
    pub(crate) async fn commit_request(&self, batch: Batch) -> Result<bool, AffiliateError> {
        self.commit_unless(batch, |_| None::<ConflictReason>).await
    }

    async fn find_conflict(&self, batch: Batch) -> Result<Option<Key>, CommitError> {
        match self.store.commit(batch).await {
            Ok(()) => {
                (self.committed)();
                Ok(None)
            }
            Err(CommitError::Conflict { key }) => Ok(Some(key)),
            Err(error) => Err(error),
        }
    }
}
