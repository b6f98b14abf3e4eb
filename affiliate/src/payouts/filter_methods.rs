//! Method filter: when the program no longer allows a payout method, payouts by it are removed from the draft.
//!
//! ```text
//! settings ─►[ program + mark on the draft ] ─► some payouts are removed ─► … ─► the mark is removed
//! ```

use mail::affiliate::payout::{MethodFilterCursor, PayoutRun, PayoutRunPhase, PayoutRunStatus, SkipReason};
use mail::affiliate::program::AffiliateProgram;
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{payout, payout_run};
use store::engine::Batch;

use super::draft::lease_until;
use super::{LINES_AT_ONCE, StepOutcome};
use crate::ledger::{self, Ledger, LedgerError, UnitOfWork};

/// Payouts that one commit checks.
const PAYOUTS_AT_ONCE: usize = 400;
/// Steps that the settings request waits for; a job does the rest.
const STEPS_MAX: usize = 10;
/// Attempts to commit after conflicts.
const TRIES_MAX: usize = 100;

impl Ledger {
    /// Marks the draft for the method filter, in the commit that removes an allowed method. Returns the run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn mark_draft(
        &self,
        batch: &mut Batch,
        before: &AffiliateProgram,
        after: &AffiliateProgram,
    ) -> Result<Option<PayoutRunId>, LedgerError> {
        let allowed = &after.settings.allowed_methods;
        if before.settings.allowed_methods.iter().all(|method| allowed.contains(method)) {
            return Ok(None);
        }
        let account = after.account;
        let open = payout_run::find_open(self.store(), account).await?;
        payout_run::check_open(batch, account, open.as_ref().map(|open| open.id));
        let is_draft =
            |run: &PayoutRun| run.status == PayoutRunStatus::Draft && run.phase != Some(PayoutRunPhase::Voiding);
        let Some(run) = open.filter(is_draft) else { return Ok(None) };
        payout_run::update(batch, &run, &PayoutRun { sifted: Some(MethodFilterCursor::default()), ..run.clone() });
        payout_job::schedule(batch, account, PayoutJob::Run(run.id), lease_until(self.now()));
        Ok(Some(run.id))
    }

    /// Removes payouts by methods that are no longer allowed, for at most `STEPS_MAX` steps.
    pub async fn filter_by_methods(&self, account: AccountId, run: PayoutRunId) {
        for _ in 0..STEPS_MAX {
            match self.filter_step(account, run).await {
                Ok(StepOutcome::More) => {}
                Ok(StepOutcome::Done) => return,
                Err(fault) => {
                    store::warn_unless_away!(self.store(), %account, %run, %fault, "cannot remove payouts by disallowed methods from the draft yet");
                    return;
                }
            }
        }
    }

    /// Runs one step of the method filter.
    pub(super) async fn filter_step(&self, account: AccountId, id: PayoutRunId) -> Result<StepOutcome, LedgerError> {
        for _ in 0..TRIES_MAX {
            let mut work = UnitOfWork::open(self, account).await?;
            work.require_no_drafting().await?;
            let run = work.run(id).await?.filter(|run| run.needs_method_filter());
            let Some(sifted) = run.and_then(|run| run.sifted) else { return Ok(StepOutcome::Done) };
            let next = self.filter_page(&mut work, account, id, sifted).await?;
            let now = work.now;
            let Some(run) = work.run(id).await? else { return Ok(StepOutcome::Done) };
            run.sifted = next;
            let due = match (next, run.is_reconciled()) {
                (Some(_), _) => Some(lease_until(now)),
                (None, false) => Some(now),
                (None, true) => None,
            };
            work.schedule_job(PayoutJob::Run(id), due);
            if self.commit(work.build_batch(Batch::progress()).await?).await? {
                return Ok(if next.is_some() { StepOutcome::More } else { StepOutcome::Done });
            }
        }
        Err(LedgerError::Contended)
    }

    /// Filters a page of payouts. Returns the new cursor; `None` at the end.
    async fn filter_page(
        &self,
        work: &mut UnitOfWork<'_>,
        account: AccountId,
        run: PayoutRunId,
        sifted: MethodFilterCursor,
    ) -> Result<Option<MethodFilterCursor>, LedgerError> {
        let found = payout::list_by_run(self.store(), account, run, sifted.after, PAYOUTS_AT_ONCE).await?;
        let (mut remaining, mut after) = (LINES_AT_ONCE, sifted.after);
        for payout in &found {
            if remaining == 0 {
                return Ok(Some(MethodFilterCursor { after }));
            }
            let allowed = work.program.settings.allowed_methods.clone();
            // The payout may have moved to an allowed method since the page was read.
            if !allowed.contains(&payout.method)
                && let Some(now) = work.payout(payout.id).await?
                && !allowed.contains(&now.method)
            {
                work.remove_from_draft(payout.id, SkipReason::NotReady).await?;
                let lines = usize::try_from(payout.lines).unwrap_or(usize::MAX);
                remaining = remaining.saturating_sub(lines.clamp(1, ledger::LINES_AT_ONCE));
            }
            after = Some(payout.id);
        }
        let is_last = found.len() < PAYOUTS_AT_ONCE;
        Ok((!is_last).then_some(MethodFilterCursor { after }))
    }
}
