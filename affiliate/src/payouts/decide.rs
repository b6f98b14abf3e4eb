//! What the owner says of a draft: it is paid, or it is not.

use std::collections::BTreeMap;

use mail::affiliate::money::Currency;
use mail::affiliate::payout::{PayoutRun, Phase, RunStatus};
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_run;
use store::affiliate::payout_work::{self, Work};
use store::engine::Batch;

use super::Step;
use super::draft::later;
use crate::ledger::Ledger;
use crate::office::{Beside, Seen};
use crate::refusal::{Noun, Obstacle, Refusal};

/// Commits tried, when something is changed meanwhile.
const TRIES_MAX: usize = 32;

impl Ledger {
    /// Approves a draft that is still as the owner saw it: its number of changes, and what it comes to.
    ///
    /// # Errors
    /// It is no draft, or another one than was seen, or nobody is left in it; [`Refusal`].
    pub async fn approve_run(
        &self,
        (account, id): (AccountId, PayoutRunId),
        (rev, totals): (u64, &BTreeMap<Currency, i64>),
        beside: Beside<'_, PayoutRun>,
    ) -> Result<PayoutRun, Refusal> {
        for _ in 0..TRIES_MAX {
            let before = self.run(account, id).await?;
            if before.status != RunStatus::Draft {
                return Err(Obstacle::NoDraft.into());
            }
            if !before.is_compared() {
                return Err(Obstacle::RunCompared.into());
            }
            if before.sifted.is_some() {
                // Whoever comes first helps.
                while self.sift_some((account, id)).await? == Step::More {}
                continue;
            }
            if before.rev != rev || before.totals != *totals {
                return Err(Obstacle::OtherRun.into());
            }
            if before.payouts == 0 {
                return Err(Obstacle::NobodyInRun.into());
            }
            let now = self.now();
            let after = PayoutRun {
                status: RunStatus::Approved,
                approved_at: Some(now),
                rev: before.rev.saturating_add(1),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &before, &after);
            payout_run::close(&mut batch, &before);
            if after.transfers > 0 {
                payout_work::put(&mut batch, account, Work::Run(id), now);
            }
            beside(&mut batch, &after);
            if self.commit(batch).await? {
                return Ok(after);
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// Cancels a draft: its payouts are gone, and its lines are free when this returns. Where it does not come to its
    /// end, the rest is done later.
    ///
    /// # Errors
    /// It is no draft; [`Refusal`].
    pub async fn cancel_run(
        &self,
        (account, id): (AccountId, PayoutRunId),
        seen: Option<&Seen>,
        beside: Beside<'_, PayoutRun>,
    ) -> Result<PayoutRun, Refusal> {
        for _ in 0..TRIES_MAX {
            let before = self.run(account, id).await?;
            Seen::check(seen, before.rev, before.created_at)?;
            if before.status != RunStatus::Draft {
                return Err(Obstacle::NoDraft.into());
            }
            let now = self.now();
            let after = PayoutRun {
                status: RunStatus::Cancelled,
                phase: Some(Phase::Sweeping),
                sifted: None,
                rev: before.rev.saturating_add(1),
                ..before.clone()
            };
            let mut batch = Batch::progress();
            payout_run::update(&mut batch, &before, &after);
            payout_work::put(&mut batch, account, Work::Run(id), later(now));
            beside(&mut batch, &after);
            if self.commit(batch).await? {
                while self.go_on_with_run(account, id).await? == Step::More {}
                return self.run(account, id).await;
            }
        }
        Err(Obstacle::Changed.into())
    }

    /// A run that is whole.
    ///
    /// # Errors
    /// There is none; the store cannot be read.
    pub async fn run(&self, account: AccountId, id: PayoutRunId) -> Result<PayoutRun, Refusal> {
        let found = payout_run::get(self.store(), account, id).await?;
        found.filter(PayoutRun::is_whole).ok_or(Refusal::Unknown(Noun::Run))
    }
}
