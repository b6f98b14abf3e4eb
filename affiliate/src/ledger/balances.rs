//! Partner balances and referral counts: stored sums, plus the changes that are not folded into them yet.

use std::collections::BTreeMap;

use model::affiliate::balance::Balance;
use model::affiliate::money::Currency;
use store::affiliate::balance::Balances;
use store::affiliate::referral_counts::ReferralCountsByLink;
use store::affiliate::sums::{self, FoldedSums, PartnerKey};
use store::engine::{Batch, ReadError};

use crate::context::Context;
use crate::error::{LedgerError, LedgerResult as Result};

/// Number of unfolded changes from which they are folded into the sums.
pub(super) const FOLD_AT: usize = 1_000;
/// One change in this many triggers a check whether to fold.
pub(super) const FOLD_LOOK: u128 = 500;
/// Maximum rounds of folding in a row; other writers may fold and write meanwhile.
const ROUNDS_MAX: usize = 10_000;

impl Context {
    /// Returns a partner's balances by currency; zero balances are omitted.
    pub async fn balances(&self, partner: PartnerKey) -> Result<BTreeMap<Currency, Balance>> {
        let Balances(mut balances) = self.read_sums(partner).await?;
        balances.retain(|_, balance| *balance != Balance::default());
        Ok(balances)
    }

    pub async fn referral_counts(&self, partner: PartnerKey) -> Result<ReferralCountsByLink> {
        self.read_sums(partner).await
    }

    async fn read_sums<S: FoldedSums>(&self, partner: PartnerKey) -> Result<S> {
        for _ in 0..ROUNDS_MAX {
            let stored = sums::read::<S>(&self.store, partner).await?;
            if !stored.has_more && stored.changes() < FOLD_AT {
                return Ok(stored.sums);
            }
            let (has_more, mut batch) = (stored.has_more, Batch::progress());
            let sums = stored.fold(&mut batch, partner);
            // After a conflict, read again.
            if self.commit(batch).await? && !has_more {
                return Ok(sums);
            }
        }
        Err(LedgerError::RetriesExhausted)
    }
}

/// Folds a partner's balances if at least [`FOLD_AT`] changes are unfolded.
pub(super) async fn fold_balance(context: &Context, partner: PartnerKey) -> Result<(), ReadError> {
    let stored = sums::read::<Balances>(&context.store, partner).await?;
    if stored.changes() >= FOLD_AT {
        let mut batch = Batch::progress();
        stored.fold(&mut batch, partner);
        // A conflict or error is harmless: a later change folds.
        if let Err(fault) = context.commit(batch).await {
            tracing::debug!(%fault, "cannot fold balance changes");
        }
    }
    Ok(())
}
