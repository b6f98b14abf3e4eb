//! What is under way goes on, whoever began it: on the node that owns its partition.

use std::ops::RangeInclusive;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_run;
use store::affiliate::payout_work::{self, Item, Work};
use store::engine::Batch;

use super::Step;
use super::transfers::Pays;
use crate::comparing::Compares;
use crate::ledger::{Fault, Ledger};
use crate::office::Office;

/// How often it is looked for.
const EVERY: SignedDuration = SignedDuration::from_secs(2);
/// Items that are looked at at once.
const ITEMS_AT_ONCE: usize = 200;
/// Items that are worked on side by side: one that waits for a slow processor does not keep the others waiting.
const SIDE_BY_SIDE: usize = 8;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worked {
    /// Items that went on.
    pub done: usize,
    /// Items that could not: they are tried again.
    pub failed: usize,
}

impl Ledger {
    /// Goes on with what is due in these partitions.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn go_on_with_payouts(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
        processor: &(impl Pays + Compares),
    ) -> Result<Worked, Fault> {
        let (mut worked, mut after) = (Worked::default(), None::<Item>);
        loop {
            let found =
                payout_work::list(self.store(), partitions.clone(), after.as_ref(), ITEMS_AT_ONCE).await?;
            let is_last = found.len() < ITEMS_AT_ONCE;
            after = found.last().cloned();
            let due: Vec<Item> = found.into_iter().filter(|item| item.due <= now).collect();
            for some in due.chunks(SIDE_BY_SIDE) {
                let done = join_all(some.iter().map(|item| self.go_on(item, processor))).await;
                for (item, done) in some.iter().zip(done) {
                    match done {
                        Ok(()) => worked.done += 1,
                        Err(fault) => {
                            tracing::warn!(account = %item.account, work = ?item.work, %fault, "payouts do not go on");
                            worked.failed += 1;
                        }
                    }
                }
            }
            if is_last {
                return Ok(worked);
            }
        }
    }

    async fn go_on(&self, item: &Item, processor: &(impl Pays + Compares)) -> Result<(), Fault> {
        let account = item.account;
        match item.work {
            Work::Run(id) => self.go_on_with(account, id, processor).await,
            Work::Payout(id) => {
                while self.follow_payout(account, id).await? == Step::More {}
                Ok(())
            }
            Work::Partner(id) => self.clear_after(account, id).await,
        }
    }

    async fn go_on_with(
        &self,
        account: AccountId,
        id: PayoutRunId,
        processor: &(impl Pays + Compares),
    ) -> Result<(), Fault> {
        let run = payout_run::get(self.store(), account, id).await?;
        match run {
            Some(run) if run.is_to_be_sifted() => {
                while self.sift_some((account, id)).await? == Step::More {}
                Ok(())
            }
            Some(run) if !run.is_compared() => {
                // Where there is no answer it waits for its next turn.
                while self
                    .compare_some((account, id), processor)
                    .await?
                    .is_some_and(|next| next <= self.now())
                {}
                Ok(())
            }
            Some(run) if run.phase.is_some() => {
                while self.go_on_with_run(account, id).await? == Step::More {}
                Ok(())
            }
            Some(run) if run.is_approved() => self.transfer_some((account, id), processor).await.map(|_| ()),
            run => {
                let mut batch = Batch::progress();
                // Nobody gave it other work meanwhile.
                run.iter().for_each(|run| payout_run::expect(&mut batch, run));
                payout_work::delete(&mut batch, account, Work::Run(id));
                self.commit(batch).await?;
                Ok(())
            }
        }
    }
}

impl Office {
    /// Goes on with what is due on this node.
    pub async fn go_on_with_payouts(&self, now: Timestamp) -> Worked {
        let mut worked = Worked::default();
        for partitions in self.hall.partitions() {
            match self.ledger().go_on_with_payouts(partitions, now, self).await {
                Ok(more) => {
                    worked.done += more.done;
                    worked.failed += more.failed;
                }
                Err(fault) => tracing::warn!(%fault, "work on payouts cannot be looked for"),
            }
        }
        worked
    }

    /// The same as long as it is polled.
    pub async fn keep_paying_out(&self) {
        loop {
            let now = self.now();
            self.go_on_with_payouts(now).await;
            self.hall.clock().sleep_until(now.checked_add(EVERY).unwrap_or(Timestamp::MAX)).await;
        }
    }
}
