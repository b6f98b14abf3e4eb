//! Method filter: when the program no longer allows a payout method, payouts by it are removed from the draft.
//!
//! ```text
//! settings ─►[ program + mark on the draft ] ─► some payouts are removed ─► … ─► the mark is removed
//! ```

use model::affiliate::payout::{MethodFilterCursor, PayoutRun, PayoutRunPhase, PayoutRunStatus, SkipReason};
use model::affiliate::program::AffiliateProgram;
use model::id::{AccountId, PayoutRunId};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{payout, payout_run};
use store::engine::Batch;
use store::retry_on_conflict;

use super::step::{LINES_AT_ONCE, StepOutcome, lease_until};
use crate::context::Context;
use crate::error::LedgerResult as Result;
use crate::ledger::commit_batch::build_batch;
use crate::ledger::settlement::{self, remove_from_draft};
use crate::ledger::unit_of_work::UnitOfWork;

/// Payouts that one commit checks.
const PAYOUTS_AT_ONCE: usize = 400;
/// Steps that the settings request waits for; a job does the rest.
const STEPS_MAX: usize = 10;

/// Marks the draft for the method filter, in the commit that removes an allowed method. Returns the run.
pub async fn mark_draft(
    context: &Context,
    batch: &mut Batch,
    before: &AffiliateProgram,
    after: &AffiliateProgram,
) -> Result<Option<PayoutRunId>> {
    let allowed = &after.settings.allowed_methods;
    if before.settings.allowed_methods.iter().all(|method| allowed.contains(method)) {
        return Ok(None);
    }
    let account = after.account;
    let open = payout_run::find_open(&context.store, account).await?;
    payout_run::check_open(batch, account, open.as_ref().map(|open| open.id));
    let is_draft = |run: &PayoutRun| run.status == PayoutRunStatus::Draft && run.phase != Some(PayoutRunPhase::Voiding);
    let Some(run) = open.filter(is_draft) else { return Ok(None) };
    payout_run::update(batch, &run, &PayoutRun { sifted: Some(MethodFilterCursor::default()), ..run.clone() });
    payout_job::schedule(batch, account, PayoutJob::Run(run.id), lease_until(context.now()));
    Ok(Some(run.id))
}

/// Removes payouts by methods that are no longer allowed, for at most `STEPS_MAX` steps.
pub async fn filter_by_methods(context: &Context, account: AccountId, run: PayoutRunId) {
    for _ in 0..STEPS_MAX {
        match filter_step(context, account, run).await {
            Ok(StepOutcome::More) => {}
            Ok(StepOutcome::Done) => return,
            Err(fault) => {
                store::warn_unless_away!(context.store, %account, %run, %fault, "cannot remove payouts by disallowed methods from the draft yet");
                return;
            }
        }
    }
}

pub(super) async fn filter_step(context: &Context, account: AccountId, id: PayoutRunId) -> Result<StepOutcome> {
    retry_on_conflict(|| async {
        let mut work = UnitOfWork::open(context, account).await?;
        work.payouts.require_no_drafting().await?;
        let run = work.payouts.run(id).await?.filter(|run| run.needs_method_filter());
        let Some(sifted) = run.and_then(|run| run.sifted) else { return Ok(Some(StepOutcome::Done)) };
        let next = filter_page(context, &mut work, account, id, sifted).await?;
        let now = work.now;
        let Some(run) = work.payouts.run(id).await? else { return Ok(Some(StepOutcome::Done)) };
        run.sifted = next;
        let due = match (next, run.is_reconciled()) {
            (Some(_), _) => Some(lease_until(now)),
            (None, false) => Some(now),
            (None, true) => None,
        };
        work.payouts.schedule_job(PayoutJob::Run(id), due);
        Ok(context.commit(build_batch(work, Batch::progress()).await?).await?.then_some(if next.is_some() {
            StepOutcome::More
        } else {
            StepOutcome::Done
        }))
    })
    .await
}

/// Filters a page of payouts. Returns the new cursor; `None` at the end.
async fn filter_page(
    context: &Context,
    work: &mut UnitOfWork,
    account: AccountId,
    run: PayoutRunId,
    sifted: MethodFilterCursor,
) -> Result<Option<MethodFilterCursor>> {
    let found = payout::list_by_run(&context.store, account, run, sifted.after, PAYOUTS_AT_ONCE).await?;
    let (mut remaining, mut after) = (LINES_AT_ONCE, sifted.after);
    for payout in &found {
        if remaining == 0 {
            return Ok(Some(MethodFilterCursor { after }));
        }
        let allowed = work.program.settings.allowed_methods.clone();
        // The payout may have moved to an allowed method since the page was read.
        if !allowed.contains(&payout.method)
            && let Some(now) = work.payouts.load(payout.id).await?
            && !allowed.contains(&now.method)
        {
            remove_from_draft(work, payout.id, SkipReason::NotReady).await?;
            let lines = usize::try_from(payout.lines).unwrap_or(usize::MAX);
            remaining = remaining.saturating_sub(lines.clamp(1, settlement::LINES_AT_ONCE));
        }
        after = Some(payout.id);
    }
    let is_last = found.len() < PAYOUTS_AT_ONCE;
    Ok((!is_last).then_some(MethodFilterCursor { after }))
}
