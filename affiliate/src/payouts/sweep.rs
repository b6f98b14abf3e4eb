//! Taking a run apart: one that was cancelled, and one in which nobody is paid.

use mail::affiliate::payout::{Adjustment, PayoutRun};
use store::affiliate::payout_work::{self, PayoutJob};
use store::affiliate::{adjustment, commission, payout, payout_run};
use store::engine::Batch;

use super::LINES_AT_ONCE;
use super::draft::lease_until;
use crate::ledger::{ADJUSTMENTS_MAX, Ledger, LedgerError};

/// Payouts that one commit takes away.
const PAYOUTS_AT_ONCE: usize = 200;
/// Partners who were left out that one commit forgets.
const SKIPPED_AT_ONCE: usize = 1_000;

impl Ledger {
    /// Takes some payouts of a cancelled run away, and frees their lines. False: somebody else was quicker.
    pub(super) async fn release_run_payouts(&self, run: &PayoutRun) -> Result<bool, LedgerError> {
        let (store, account, now) = (self.store(), run.account, self.now());
        let mut batch = Batch::progress();
        let found = payout::list_by_run(store, (account, run.id), None, PAYOUTS_AT_ONCE).await?;
        let (mut room, is_last) = (LINES_AT_ONCE, found.is_empty());
        for one in found {
            let lines = commission::list_by_payout(store, (account, one.id), None, room + 1).await?;
            let is_whole = lines.len() <= room;
            for line in lines.iter().take(room) {
                let mut freed = line.clone();
                if freed.leave_payout(one.id, now).is_ok() {
                    commission::update(&mut batch, line, &freed);
                }
                payout::delete_item(&mut batch, account, (one.id, line.id));
            }
            if !is_whole {
                break;
            }
            room -= lines.len();
            for before in adjustment::list_by_payout(store, (account, one.id), ADJUSTMENTS_MAX).await? {
                adjustment::update(&mut batch, &before, &Adjustment { payout: None, ..before.clone() });
            }
            payout_work::delete(&mut batch, account, PayoutJob::Payout(one.id));
            payout::delete(&mut batch, &one);
            if room == 0 {
                break;
            }
        }
        payout_run::check_unchanged(&mut batch, run);
        if is_last {
            payout_run::update(&mut batch, run, &PayoutRun { phase: None, ..run.clone() });
            payout_run::close(&mut batch, run);
            payout_work::delete(&mut batch, account, PayoutJob::Run(run.id));
        } else {
            payout_work::schedule(&mut batch, account, PayoutJob::Run(run.id), lease_until(now));
        }
        Ok(self.commit(batch).await?)
    }

    /// Forgets some of what was noted of a run in which nobody is paid, and in the end the run. False: somebody else was
    /// quicker.
    pub(super) async fn delete_empty_run(&self, run: &PayoutRun) -> Result<bool, LedgerError> {
        let (store, account) = (self.store(), run.account);
        let mut batch = Batch::progress();
        let found = payout_run::list_skipped(store, (account, run.id), None, SKIPPED_AT_ONCE).await?;
        found.iter().for_each(|one| payout_run::delete_skipped(&mut batch, account, run.id, one));
        payout_run::check_unchanged(&mut batch, run);
        if found.len() < SKIPPED_AT_ONCE {
            payout_run::close(&mut batch, run);
            payout_run::delete(&mut batch, run);
            payout_work::delete(&mut batch, account, PayoutJob::Run(run.id));
        }
        Ok(self.commit(batch).await?)
    }
}
