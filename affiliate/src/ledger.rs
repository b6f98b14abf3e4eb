//! The ledger: computes commissions and paying referrals from the payment processor's facts.
//!
//! ```text
//! signed bytes ─► [ingest] ─► fact ─► [apply_facts]: processor state ──┐
//!                                     [attribution]: whose customer    ├─ [unit_of_work] ─► one commit: rows + events
//!                                     [recompute]: commission lines    ┘                    (conflict: from scratch)
//! clock ─► [hold_release]      owner, API ─► [manual_actions]      new leads ─► [leads]
//! ```
//!
//! A fact is the state of an object, not a change. It is merged into the stored processor state (module
//! `processor_state`), where the newest version wins; then everything that depends on it is recomputed. So the order
//! and repetition of facts do not change the ledger.
//!
//! # Limits
//!
//! Results that span invoices or referrals depend on arrival order, and are frozen when a line is written:
//! - which invoice is the first (`once`), in which month a customer converted, and how many customers the partner had;
//! - which partner's claim is first;
//! - a flag on a customer or subscription that excludes its sales.
//!
//! A referral's currency is that of the first invoice ingested, and its email the first that becomes known. If an
//! invoice has no email, the lead is matched by the newest email of its customer at that time.

mod apply_facts;
mod attribution;
mod balances;
mod fraud_review;
mod hold_release;
mod ingest;
mod leads;
mod manual_actions;
pub(crate) mod processor_state;
mod recompute;
mod unit_of_work;

use std::sync::Arc;

use jiff::Timestamp;
use mail::affiliate::arithmetic::ArithmeticError;
use queue::client::http::ResponseBudgetError;
use queue::clock::Clock;
use queue::entropy::Entropy;
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

pub use self::hold_release::HoldReleaseCounts;
pub use self::ingest::{EnrichedFact, Enricher, IngestOutcome, NoEnricher};
pub(crate) use self::leads::{Prospect, ReferralCommit};
pub use self::manual_actions::{CommissionReversal, ReferralDecision};
pub use self::processor_state::TooManyEntries;
pub(crate) use self::recompute::PaymentSource;
pub(crate) use self::unit_of_work::{
    ADJUSTMENTS_MAX, LINES_AT_ONCE, PayoutOutcome, UnitOfWork, is_paying, payout_event,
};
use crate::processor::JsonReadError;

/// Attempts to commit before [`LedgerError::Contended`].
const TRIES_MAX: usize = 64;

/// Why the ledger cannot apply a fact or perform an operation.
#[derive(Debug, Clone, Error)]
pub enum LedgerError {
    /// The processor's JSON is invalid.
    #[error(transparent)]
    Unreadable(#[from] JsonReadError),
    /// The amounts cannot be computed, e.g. because they overflow.
    #[error(transparent)]
    Arithmetic(#[from] ArithmeticError),
    /// An object has more entries than are stored.
    #[error(transparent)]
    TooMany(#[from] TooManyEntries),
    /// The processor did not answer the request that an event needs.
    #[error("the processor {0}")]
    Unanswered(String),
    /// The program's key lacks the permission for the request that an event needs.
    #[error("the processor {0}")]
    Barred(String),
    /// The memory budget for responses is used up.
    #[error(transparent)]
    Budget(#[from] ResponseBudgetError),
    /// The account has no program, or it is incomplete.
    #[error("the affiliate program is not set up")]
    NotSetUp,
    /// Concurrent changes to the same rows made every commit attempt conflict.
    #[error("concurrent changes to the same rows, retry later")]
    Contended,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// The affiliate ledger of a store. Depends only on the store, a clock and a source of random ids.
#[derive(Clone)]
pub struct Ledger {
    store: Store,
    clock: Clock,
    entropy: Entropy,
    /// Called after each commit: wakes the outbox dispatcher.
    committed: Arc<dyn Fn() + Send + Sync>,
    /// True if changes emit no events (silent back-fill).
    suppresses_events: bool,
}

impl Ledger {
    /// Opens the ledger of a store; `committed` is called after each commit.
    #[must_use]
    pub fn new(store: Store, clock: Clock, entropy: Entropy, committed: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { store, clock, entropy, committed, suppresses_events: false }
    }

    /// Returns a ledger whose changes emit no events.
    #[must_use]
    pub fn without_events(self) -> Self {
        Self { suppresses_events: true, ..self }
    }

    pub(crate) fn suppresses_events(&self) -> bool {
        self.suppresses_events
    }

    #[must_use]
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
        match self.store.commit(batch).await {
            Ok(()) => {
                (self.committed)();
                Ok(true)
            }
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
