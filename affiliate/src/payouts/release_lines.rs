//! Clean-up of runs: one that was cancelled, and one without payouts.

use model::affiliate::payout::{Adjustment, PayoutRun};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{adjustment, commission, payout, payout_run};
use store::engine::Batch;

use super::step::{LINES_AT_ONCE, lease_until};
use crate::context::Context;
use crate::error::LedgerResult as Result;
use crate::ledger::unit_of_work::ADJUSTMENTS_MAX;

/// Maximum payouts that one commit deletes.
const PAYOUTS_AT_ONCE: usize = 200;
/// Maximum skipped partners that one commit deletes.
const SKIPPED_AT_ONCE: usize = 1_000;

/// Deletes some payouts of a cancelled run and releases their lines. Returns false on a conflict.
pub(super) async fn release_run_payouts(context: &Context, run: &PayoutRun) -> Result<bool> {
    let (store, account, now) = (&context.store, run.account, context.now());
    let mut batch = Batch::progress();
    let found = payout::list_by_run(store, account, run.id, None, PAYOUTS_AT_ONCE).await?;
    let (mut remaining, is_last) = (LINES_AT_ONCE, found.is_empty());
    for payout in found {
        let lines = commission::list_by_payout(store, account, payout.id, None, remaining + 1).await?;
        let is_complete = lines.len() <= remaining;
        for line in lines.iter().take(remaining) {
            let mut released = line.clone();
            if released.leave_payout(payout.id, now).is_ok() {
                commission::update(&mut batch, line, &released);
            }
            payout::delete_item(&mut batch, account, payout.id, line.id);
        }
        if !is_complete {
            break;
        }
        remaining -= lines.len();
        for before in adjustment::list_by_payout(store, account, payout.id, ADJUSTMENTS_MAX).await? {
            adjustment::update(&mut batch, &before, &Adjustment { payout: None, ..before.clone() });
        }
        payout_job::delete(&mut batch, account, PayoutJob::Payout(payout.id));
        payout::delete(&mut batch, &payout);
        if remaining == 0 {
            break;
        }
    }
    payout_run::check_unchanged(&mut batch, run);
    if is_last {
        payout_run::update(&mut batch, run, &PayoutRun { phase: None, ..run.clone() });
        payout_run::close(&mut batch, run);
        payout_job::delete(&mut batch, account, PayoutJob::Run(run.id));
    } else {
        payout_job::schedule(&mut batch, account, PayoutJob::Run(run.id), lease_until(now));
    }
    Ok(context.commit(batch).await?)
}

/// Deletes the skipped partners of a run without payouts, and at the end the run. Returns false on a conflict.
pub(super) async fn delete_empty_run(context: &Context, run: &PayoutRun) -> Result<bool> {
    let (store, account) = (&context.store, run.account);
    let mut batch = Batch::progress();
    let found = payout_run::list_skipped(store, account, run.id, None, SKIPPED_AT_ONCE).await?;
    found.iter().for_each(|row| payout_run::delete_skipped(&mut batch, account, run.id, row));
    payout_run::check_unchanged(&mut batch, run);
    if found.len() < SKIPPED_AT_ONCE {
        payout_run::close(&mut batch, run);
        payout_run::delete(&mut batch, run);
        payout_job::delete(&mut batch, account, PayoutJob::Run(run.id));
    }
    Ok(context.commit(batch).await?)
}
