//! Hold release: lines whose hold time has ended become earned.

use std::ops::RangeInclusive;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::affiliate::commission::ReconciliationState;
use model::event::EventKind;
use model::id::{AccountId, CommissionId};
use store::affiliate::commission::{self, DueCommission};
use store::engine::Batch;
use store::retry_on_conflict;

use super::balances::{FOLD_LOOK, fold_balance};
use super::commit_batch::build_batch;
use super::unit_of_work::UnitOfWork;
use crate::context::Context;
use crate::error::LedgerResult as Result;

const POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// Page size of the query for due lines.
const DUE_AT_ONCE: usize = 200;

/// Result of a hold release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldReleaseCounts {
    /// Lines that became earned.
    pub earned: usize,
    /// Lines that failed; they are retried at the next poll.
    pub failed: usize,
}

impl HoldReleaseCounts {
    pub(crate) fn count(&mut self, line: CommissionId, earned: Result<bool>) {
        match earned {
            Ok(is_earned) => self.earned += usize::from(is_earned),
            Err(fault) => {
                tracing::warn!(commission = %line, %fault, "cannot release a hold");
                self.failed += 1;
            }
        }
    }
}

impl Context {
    /// Releases the holds of these partitions that have ended. Each line is one commit with its event. A line that
    /// another process released first is skipped, so concurrent runs are harmless. Lines that must be reconciled first
    /// are skipped as well.
    pub async fn release_holds(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<HoldReleaseCounts> {
        let (mut counts, mut after) = (HoldReleaseCounts::default(), None::<DueCommission>);
        loop {
            let due = commission::list_due(&self.store, partitions.clone(), now, after.as_ref(), DUE_AT_ONCE).await?;
            let mut lines = commission::get_due(&self.store, &due).await?;
            lines.retain(|line| !matches!(line.comparison, ReconciliationState::Due(_)));
            for line in lines {
                counts.count(line.id, self.release_hold(line.account, line.id).await);
            }
            if due.len() < DUE_AT_ONCE {
                return Ok(counts);
            }
            after = due.into_iter().next_back();
        }
    }

    /// Releases the hold of a line. Returns true if this call made it earned.
    pub(crate) async fn release_hold(&self, account: AccountId, id: CommissionId) -> Result<bool> {
        retry_on_conflict(|| async {
            let mut work = UnitOfWork::open(self, account).await?;
            let Some(mut line) = work.line(id).await? else { return Ok(Some(false)) };
            if line.earn(work.now).is_err() {
                return Ok(Some(false));
            }
            let partner_key = (account, line.partner);
            work.put_line(line, [EventKind::CommissionEarned]);
            if self.commit(build_batch(work, Batch::progress()).await?).await? {
                if self.random().is_multiple_of(FOLD_LOOK) {
                    fold_balance(self, partner_key).await?;
                }
                return Ok(Some(true));
            }
            Ok(None)
        })
        .await
    }

    /// Releases the holds of this node's partitions until dropped, each at its time by the service's clock. New holds
    /// and failed ones are picked up within a minute.
    pub(crate) fn run_hold_release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let now = self.now();
                for partitions in self.leases.owned_ranges() {
                    match self.release_holds(partitions, now).await {
                        Ok(HoldReleaseCounts { earned: 0, .. }) => {}
                        Ok(HoldReleaseCounts { earned, .. }) => tracing::debug!(earned, "holds released"),
                        Err(fault) => tracing::warn!(%fault, "cannot list holds to release"),
                    }
                }
                self.clock.sleep_until(next_due(self, now).await).await;
            }
        })
    }
}

/// Returns the time of the next due line after `now`, at most one minute later.
pub(crate) async fn next_due(context: &Context, now: Timestamp) -> Timestamp {
    let mut next = now.checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
    for partitions in context.leases.owned_ranges() {
        match commission::next_due(&context.store, partitions, now).await {
            Ok(found) => next = found.map_or(next, |found| next.min(found)),
            Err(error) => tracing::warn!(%error, "cannot read the time of the next hold to release"),
        }
    }
    next
}
