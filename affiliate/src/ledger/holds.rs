//! Holds end: lines whose time has come are their partners'.

use std::ops::RangeInclusive;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mail::affiliate::commission::ReconciliationState;
use mail::event::EventKind;
use mail::id::{AccountId, CommissionId};
use store::affiliate::commission::{self, DueCommission};
use store::engine::Batch;

use super::balances::FOLD_LOOK;
use super::{Ledger, LedgerError, TRIES_MAX, UnitOfWork};
use crate::office::AffiliateService;

/// How often holds are looked for.
const EVERY: SignedDuration = SignedDuration::from_secs(60);
/// Lines that are looked for at once.
const DUE_AT_ONCE: usize = 200;

/// What ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldReleaseCounts {
    /// Lines that are earned now.
    pub earned: usize,
    /// Lines that could not be written; they are tried again the next time.
    pub failed: usize,
}

impl HoldReleaseCounts {
    /// Counts what became of a line.
    pub(crate) fn count(&mut self, line: CommissionId, earned: Result<bool, LedgerError>) {
        match earned {
            Ok(is_earned) => self.earned += usize::from(is_earned),
            Err(fault) => {
                tracing::warn!(commission = %line, %fault, "a hold cannot be ended");
                self.failed += 1;
            }
        }
    }
}

impl Ledger {
    /// Ends the holds that are over by now, of lines in these partitions. Each is a commit of its own with its event, and
    /// whoever is beaten to one passes it over: twice at once is once. Lines whose charge is to be compared first are left:
    /// nobody waits for them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn release_holds(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<HoldReleaseCounts, LedgerError> {
        let (mut ended, mut after) = (HoldReleaseCounts::default(), None::<DueCommission>);
        loop {
            let due = commission::list_due(&self.store, partitions.clone(), now, after.as_ref(), DUE_AT_ONCE).await?;
            let mut lines = commission::get_due(&self.store, &due).await?;
            lines.retain(|line| !matches!(line.comparison, ReconciliationState::Due(_)));
            for line in lines {
                ended.count(line.id, self.release_hold(line.account, line.id).await);
            }
            if due.len() < DUE_AT_ONCE {
                return Ok(ended);
            }
            after = due.into_iter().next_back();
        }
    }

    /// Whether the line is earned now, by this.
    pub(crate) async fn release_hold(&self, account: AccountId, id: CommissionId) -> Result<bool, LedgerError> {
        for _ in 0..TRIES_MAX {
            let mut book = UnitOfWork::open(self, account).await?;
            let Some(mut line) = book.line(id).await? else { return Ok(false) };
            if line.earn(book.now).is_err() {
                return Ok(false);
            }
            let whose = (account, line.partner);
            book.put_line(line, [EventKind::CommissionEarned]);
            if self.commit(book.build_batch(Batch::progress()).await?).await? {
                if self.random().is_multiple_of(FOLD_LOOK) {
                    self.fold_balance(whose).await?;
                }
                return Ok(true);
            }
        }
        Err(LedgerError::Contended)
    }
}

impl AffiliateService {
    /// Ends holds as long as it is polled: those of this node's partitions, each when it is over by the clock, moved or
    /// not; holds that are written meanwhile, and those that failed, are looked for each minute.
    pub fn run_hold_release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let now = self.now();
                for partitions in self.hall.partition_ranges() {
                    match self.ledger().release_holds(partitions, now).await {
                        Ok(HoldReleaseCounts { earned: 0, .. }) => {}
                        Ok(HoldReleaseCounts { earned, .. }) => tracing::debug!(earned, "holds ended"),
                        Err(fault) => tracing::warn!(%fault, "holds cannot be looked for"),
                    }
                }
                self.hall.clock().sleep_until(self.next_due(now).await).await;
            }
        })
    }

    /// When a line is to be looked at next, after this time: in a minute at the latest.
    pub(crate) async fn next_due(&self, now: Timestamp) -> Timestamp {
        let mut next = now.checked_add(EVERY).unwrap_or(Timestamp::MAX);
        for partitions in self.hall.partition_ranges() {
            match commission::next_due(self.store(), partitions, now).await {
                Ok(found) => next = found.map_or(next, |found| next.min(found)),
                Err(error) => tracing::warn!(%error, "holds cannot be looked for"),
            }
        }
        next
    }
}
