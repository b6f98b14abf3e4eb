//! Automations: what follows, step by step, from what happens in a customer's product.

use mail::signal::Signal;
use store::engine::{Batch, ReadError, Store};

/// What a signal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaction {
    /// Automations whose trigger it matched: each has a new run.
    pub matched: u64,
    /// Runs that waited for it and go on.
    pub resumed: u64,
    /// Runs that it ended.
    pub cancelled: u64,
}

/// The automations of all accounts.
#[derive(Clone)]
pub struct Automations {
    #[expect(dead_code, reason = "read by what matches signals")]
    store: Store,
}

impl Automations {
    /// The automations that lie in this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Writes into `batch` what a signal does. The batch checks what was read: when its commit conflicts, it
    /// is built anew, from a new reaction.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn react(&self, _signal: &Signal<'_>, _batch: &mut Batch) -> Result<Reaction, ReadError> {
        Ok(Reaction::default())
    }

    /// Says that a reaction was committed: its runs begin.
    pub fn wake(&self) {}
}
