//! What partners have, and whom they brought: sums, and keeping the changes that lie beside them few.

use std::collections::BTreeMap;

use mail::affiliate::balance::Balance;
use mail::affiliate::money::Currency;
use store::affiliate::balance::Balances;
use store::affiliate::brought::ReferralCountsByLink;
use store::affiliate::sums::{self, FoldedSums, PartnerKey};
use store::engine::{Batch, ReadError};

use super::{Ledger, LedgerError};

/// Changes that may lie beside the sums before they are folded.
pub(super) const FOLD_AT: usize = 1_000;
/// One change in so many has its partner's sums looked at.
pub(super) const FOLD_LOOK: u128 = 500;
/// Rounds of folding in a row: others may fold, and write, meanwhile.
const ROUNDS_MAX: usize = 10_000;

impl Ledger {
    /// What a partner has, by currency.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn balances(&self, whose: PartnerKey) -> Result<BTreeMap<Currency, Balance>, LedgerError> {
        let Balances(mut balances) = self.read_sums(whose).await?;
        balances.retain(|_, balance| *balance != Balance::default());
        Ok(balances)
    }

    /// Whom a partner has brought, by link.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn referral_counts(&self, whose: PartnerKey) -> Result<ReferralCountsByLink, LedgerError> {
        self.read_sums(whose).await
    }

    async fn read_sums<S: FoldedSums>(&self, whose: PartnerKey) -> Result<S, LedgerError> {
        for _ in 0..ROUNDS_MAX {
            let kept = sums::read::<S>(self.store(), whose).await?;
            if !kept.more && kept.changes() < FOLD_AT {
                return Ok(kept.sums);
            }
            let (more, mut batch) = (kept.more, Batch::progress());
            let sums = kept.fold(&mut batch, whose);
            // Who was beaten to it looks again.
            if self.commit(batch).await? && !more {
                return Ok(sums);
            }
        }
        Err(LedgerError::Contended)
    }

    /// Folds what a partner has, if there is much to fold.
    pub(super) async fn fold_balance(&self, whose: PartnerKey) -> Result<(), ReadError> {
        let kept = sums::read::<Balances>(self.store(), whose).await?;
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
