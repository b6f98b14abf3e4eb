//! The ledger: what the payment processor tells becomes commissions, and referrals that pay.
//!
//! ```text
//! signed bytes ─► [hear] ─► fact ─► [facts]: rows of what was heard ─┐
//!                                     [attribution]: whose customer  ├─ one [book] ─► one commit: rows + events
//!                                     [settle]: recompute ─► lines   ┘                (conflict: from scratch)
//! clock ─► [holds]      owner, API ─► [moves]      new leads ─► [leads]
//! ```
//!
//! A fact says how things stand, not what changed. So each fact is first put to what was heard before ([`heard`]), where
//! the newest account wins, and then all that it touches is computed anew from what is known. Whoever hears the same facts
//! in another order, or twice, comes to the same ledger.
//!
//! # Limits
//!
//! What spans invoices or referrals goes by first arrival, and is frozen when a line is written: which invoice is the first
//! one (`once`), the month in which a customer converted, how many customers the partner had, which partner's claim comes
//! first, and the flag of a customer or a subscription that excludes. A referral's revenue is in the currency of the
//! invoice that was heard of first, and its address the first that was heard. Where an invoice names no address, a lead is
//! looked for by the newest one that its customer has by then.

mod attribution;
mod balances;
mod book;
mod facts;
mod hear;
pub(crate) mod heard;
mod holds;
mod leads;
mod moves;
mod settle;
mod suspicion;

use std::sync::Arc;

use jiff::Timestamp;
use mail::affiliate::arithmetic::ArithmeticError;
use queue::clock::Clock;
use queue::courier::http::ResponseBudgetError;
use queue::entropy::Entropy;
use store::engine::{Batch, CommitError, ReadError, Store};
use thiserror::Error;

pub(crate) use self::book::{ADJUSTMENTS_MAX, LINES_AT_ONCE, PayoutOutcome, UnitOfWork, is_paying, payout_event};
pub use self::hear::{EnrichedFact, Enricher, IngestOutcome, NoEnricher};
pub use self::heard::TooManyEntries;
pub use self::holds::HoldReleaseCounts;
pub(crate) use self::leads::{Prospect, ReferralCommit};
pub use self::moves::{CommissionReversal, ReferralDecision};
pub(crate) use self::settle::PaymentSource;
use crate::processor::JsonReadError;

/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 64;

/// Why the ledger cannot do what a fact asks for.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// What the processor sent cannot be read.
    #[error(transparent)]
    Unreadable(#[from] JsonReadError),
    /// Nothing can be computed from its figures.
    #[error(transparent)]
    Arithmetic(#[from] ArithmeticError),
    /// More is told of an object than is kept.
    #[error(transparent)]
    TooMany(#[from] TooManyEntries),
    /// The processor was asked for what an event leaves out, and did this instead of an answer.
    #[error("the processor {0}")]
    Unanswered(String),
    /// The processor was asked for what an event leaves out, and the program's key may not see it.
    #[error("the processor {0}")]
    Barred(String),
    /// The memory to read it in is not free.
    #[error(transparent)]
    Budget(#[from] ResponseBudgetError),
    /// There is no program, or none that is set up.
    #[error("the affiliate program is not set up")]
    NotSetUp,
    /// Others changed the same rows again and again.
    #[error("the same rows were changed by others, again and again")]
    Contended,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// The ledger. It needs a store, the time and chance, and nothing else of the server.
#[derive(Clone)]
pub struct Ledger {
    store: Store,
    clock: Clock,
    entropy: Entropy,
    /// Called after commits that have something to tell.
    committed: Arc<dyn Fn() + Send + Sync>,
    /// Nobody is told of what is written.
    suppresses_events: bool,
}

impl Ledger {
    /// The ledger in a store; `committed` is called after each commit, since there may be something to tell.
    #[must_use]
    pub fn new(store: Store, (clock, entropy): (Clock, Entropy), committed: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { store, clock, entropy, committed, suppresses_events: false }
    }

    /// The same, that tells nobody of what it writes.
    #[must_use]
    pub fn without_events(self) -> Self {
        Self { suppresses_events: true, ..self }
    }

    /// Whether nobody is told of what is written.
    pub(crate) fn suppresses_events(&self) -> bool {
        self.suppresses_events
    }

    /// The store.
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

    /// Commits; false when somebody else was quicker.
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
