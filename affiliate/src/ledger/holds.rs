//! Holds end: lines whose time has come are their partners'.

use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp};
use mail::event::EventKind;
use mail::id::{AccountId, CommissionId};
use store::affiliate::commission;
use store::engine::Batch;

use super::balances::FOLD_LOOK;
use super::{Book, Fault, Ledger, TRIES_MAX};
use crate::office::Office;

/// How often holds are looked for.
const EVERY: SignedDuration = SignedDuration::from_secs(60);
/// Lines that are looked for at once.
const DUE_AT_ONCE: usize = 200;

/// What ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Lines that are earned now.
    pub earned: usize,
    /// Lines that could not be written; they are tried again the next time.
    pub failed: usize,
}

impl Ledger {
    /// Ends the holds that are over by now, of lines in these partitions. Each is a commit of its own with its event, and
    /// whoever is beaten to one passes it over: twice at once is once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn end_holds(&self, partitions: RangeInclusive<u16>, now: Timestamp) -> Result<Ended, Fault> {
        let mut ended = Ended::default();
        loop {
            let due = commission::due(&self.store, partitions.clone(), now, DUE_AT_ONCE).await?;
            let (found, before) = (due.len(), ended);
            for (account, id) in due {
                match self.end_hold(account, id).await {
                    Ok(is_earned) => ended.earned += usize::from(is_earned),
                    Err(fault) => {
                        tracing::warn!(%account, commission = %id, %fault, "a hold cannot be ended");
                        ended.failed += 1;
                    }
                }
            }
            // Those that fail are found again: without any other there is no point in going on.
            if found < DUE_AT_ONCE || ended.earned == before.earned {
                return Ok(ended);
            }
        }
    }

    /// Whether the line is earned now, by this.
    async fn end_hold(&self, account: AccountId, id: CommissionId) -> Result<bool, Fault> {
        for _ in 0..TRIES_MAX {
            let mut book = Book::open(self, account).await?;
            let Some(mut line) = book.line(id).await? else { return Ok(false) };
            if line.earn(book.now).is_err() {
                return Ok(false);
            }
            let whose = (account, line.partner);
            book.write_line(line, [EventKind::CommissionEarned]);
            if self.commit(book.close(Batch::progress()).await?).await? {
                if self.random().is_multiple_of(FOLD_LOOK) {
                    self.fold_balance(whose).await?;
                }
                return Ok(true);
            }
        }
        Err(Fault::Contended)
    }
}

impl Office {
    /// Ends holds as long as it is polled: those of this node's partitions, each when it is over by the clock, moved or
    /// not; holds that are written meanwhile are looked for each minute.
    pub async fn keep_ending_holds(&self) {
        loop {
            let now = self.now();
            let mut wake = now.checked_add(EVERY).unwrap_or(Timestamp::MAX);
            for partitions in self.hall.partitions() {
                match self.end_holds(partitions, now).await {
                    Ok(next) => wake = next.map_or(wake, |next| wake.min(next)),
                    Err(fault) => tracing::warn!(%fault, "holds cannot be looked for"),
                }
            }
            self.hall.clock().sleep_until(wake).await;
        }
    }

    /// Ends the holds of these partitions that are over; when the next one is.
    async fn end_holds(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Fault> {
        let ledger = self.ledger();
        ledger.compare_due(partitions.clone(), now, self).await?;
        let Ended { earned, failed } = ledger.end_holds(partitions.clone(), now).await?;
        if earned > 0 {
            tracing::debug!(earned, "holds ended");
        }
        // Those that failed, or were not compared, are due already: they wait for the next look.
        let next = commission::next_due(self.store(), partitions).await?;
        Ok(next.filter(|next| (failed == 0 && earned > 0) || *next > now))
    }
}
