//! What is under way goes on, whoever began it: on the node that owns its partition.

use std::future::pending;
use std::ops::RangeInclusive;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mail::id::{AccountId, PayoutId, PayoutRunId};
use store::affiliate::payout_run;
use store::affiliate::payout_work::{self, Item, Work};
use store::engine::Batch;

use super::Step;
use super::transfers::Pays;
use crate::comparing::Compares;
use crate::lanes::{Job, Lanes};
use crate::ledger::{Fault, Ledger};
use crate::office::Office;

/// How often it is looked for.
const EVERY: SignedDuration = SignedDuration::from_secs(2);
/// Items that are looked at at once.
const ITEMS_AT_ONCE: usize = 200;
/// Items that are worked on side by side: one that waits for a slow processor does not keep the others waiting.
const LANES: usize = 32;
/// Those of one account.
const LANES_OF_EACH: usize = 2;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worked {
    /// Items that went on.
    pub done: usize,
    /// Items that could not: they are tried again.
    pub failed: usize,
}

impl Worked {
    fn of(done: Vec<bool>) -> Self {
        let failed = done.iter().filter(|is_done| !**is_done).count();
        Self { done: done.len().saturating_sub(failed), failed }
    }
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
        let due = self.due_work(partitions, now).await?;
        let begin = |job| self.go_on(job, processor);
        Ok(Worked::of(Lanes::new(LANES, LANES_OF_EACH).run(due, begin, pending()).await))
    }

    async fn due_work(
        &self,
        partitions: RangeInclusive<u16>,
        now: Timestamp,
    ) -> Result<Vec<Job<Work>>, Fault> {
        let (mut due, mut after) = (Vec::new(), None::<Item>);
        loop {
            let found =
                payout_work::list(self.store(), partitions.clone(), after.as_ref(), ITEMS_AT_ONCE).await?;
            let is_last = found.len() < ITEMS_AT_ONCE;
            due.extend(found.iter().filter(|item| item.due <= now).map(|item| (item.account, item.work)));
            after = found.into_iter().next_back();
            if is_last {
                return Ok(due);
            }
        }
    }

    /// Goes on with it. Whether it could.
    async fn go_on(&self, (account, work): Job<Work>, processor: &(impl Pays + Compares)) -> bool {
        let done = match work {
            Work::Run(id) => self.go_on_with(account, id, processor).await,
            Work::Payout(id) => self.follow_to_the_end(account, id).await,
            Work::Partner(id) => self.clear_after(account, id).await,
        };
        done.inspect_err(
            |fault| store::warn_unless_away!(self.store(), %account, ?work, %fault, "payouts do not go on"),
        )
        .is_ok()
    }

    async fn follow_to_the_end(&self, account: AccountId, id: PayoutId) -> Result<(), Fault> {
        while self.follow_payout(account, id).await? == Step::More {}
        Ok(())
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
    /// Goes on with what is due on this node, as long as it is polled.
    pub fn keep_paying_out(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut lanes = Lanes::new(LANES, LANES_OF_EACH);
            loop {
                let now = self.now();
                let mut due = Vec::new();
                for partitions in self.hall.partitions() {
                    match self.ledger().due_work(partitions, now).await {
                        Ok(more) => due.extend(more),
                        Err(fault) => {
                            store::warn_unless_away!(self.store(), %fault, "work on payouts cannot be looked for")
                        }
                    }
                }
                let next = now.checked_add(EVERY).unwrap_or(Timestamp::MAX);
                let begin = |job| async move { self.ledger().go_on(job, self).await };
                lanes.run(due, begin, self.hall.clock().sleep_until(next)).await;
                if lanes.are_free() {
                    self.hall.clock().sleep_until(next).await;
                }
            }
        })
    }
}
