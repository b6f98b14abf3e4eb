//! Ends a unit of work: builds one batch with the changed rows, checks of all rows that were read, and the events.

use futures_util::future::BoxFuture;
use store::affiliate::referral_counts::ReferralCountsByLink;
use store::affiliate::sums;
use store::engine::Batch;

use super::balances::{FOLD_AT, FOLD_LOOK};
use super::settlement::apply_removed_lines;
use super::unit_of_work::UnitOfWork;
use crate::error::LedgerResult as Result;

/// Builds the batch. Lines that left a draft reduce its payouts first.
pub(crate) fn build_batch<'a>(mut work: UnitOfWork, mut batch: Batch) -> BoxFuture<'a, Result<Batch>> {
    Box::pin(async move {
        apply_removed_lines(&mut work).await?;
        fold_referral_counts(&work, &mut batch).await?;
        work.write(&mut batch).await?;
        Ok(batch)
    })
}

/// One new referral in [`FOLD_LOOK`] checks whether its partner's count changes should be folded.
async fn fold_referral_counts(work: &UnitOfWork, batch: &mut Batch) -> Result<()> {
    for new in work.referrals.new_ones() {
        if work.context.random().is_multiple_of(FOLD_LOOK) {
            let partner = (new.account, new.partner);
            let stored = sums::read::<ReferralCountsByLink>(&work.context.store, partner).await?;
            if stored.changes() >= FOLD_AT {
                stored.fold(batch, partner);
                break;
            }
        }
    }
    Ok(())
}
