//! What partners have, and keeping the changes that lie beside the sums few.

use std::collections::BTreeMap;

use mail::affiliate::balance::Balance;
use mail::affiliate::money::Currency;
use store::affiliate::balance::{self, Whose};
use store::engine::{Batch, ReadError};

use super::{Fault, Ledger};

/// Changes that may lie beside the sums before they are folded.
const FOLD_AT: usize = 1_000;
/// Rounds of folding in a row: others may fold, and write, meanwhile.
const ROUNDS_MAX: usize = 10_000;

impl Ledger {
    /// What a partner has, by currency.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn balances(&self, whose: Whose) -> Result<BTreeMap<Currency, Balance>, Fault> {
        for _ in 0..ROUNDS_MAX {
            let kept = balance::read(self.store(), whose).await?;
            if kept.more || kept.changes() >= FOLD_AT {
                let mut batch = Batch::progress();
                kept.fold(&mut batch, whose);
                // Who was beaten to it looks again.
                let is_folded = self.commit(batch).await?;
                if kept.more || !is_folded {
                    continue;
                }
            }
            let mut balances = kept.balances;
            balances.retain(|_, balance| *balance != Balance::default());
            return Ok(balances);
        }
        Err(Fault::Contended)
    }

    /// Folds what a partner has, if there is much to fold.
    pub(super) async fn fold_balance(&self, whose: Whose) -> Result<(), ReadError> {
        let kept = balance::read(self.store(), whose).await?;
        if kept.changes() >= FOLD_AT {
            let mut batch = Batch::progress();
            kept.fold(&mut batch, whose);
            // Who was beaten to it, or cannot, leaves it to the next.
            if let Err(fault) = self.commit(batch).await {
                tracing::debug!(%fault, "a balance is not folded");
            }
        }
        Ok(())
    }
}
