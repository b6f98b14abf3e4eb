//! Before a draft can be approved the processor is asked what became of the charges in it, whenever it was asked about them
//! before: lines whose money is gone leave it as they would by an event. That goes batch by batch, at the pace of
//! [`crate::comparing`]; how far it is stands in the run's row.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use mail::affiliate::commission::Commission;
use mail::affiliate::payout::{PayoutRun, PayoutRunPhase, ReconciliationCursor};
use mail::id::{AccountId, PayoutRunId};
use store::affiliate::payout_work::{self, PayoutJob};
use store::affiliate::{commission, payout, payout_run};
use store::engine::Batch;

use super::draft::lease_until;
use crate::comparing::{ReconcileAnswers, Reconciler, reconcile_all};
use crate::ledger::{Ledger, LedgerError};
use crate::office::AffiliateService;
use crate::refusal::AffiliateError;

/// Lines that are compared before that is written down.
const LINES_AT_ONCE: usize = 100;
/// Payouts that are looked at for them.
const PAYOUTS_AT_ONCE: usize = 50;
/// How long it takes until the same is asked again; afterwards it is left.
const AGAIN_S: [i64; 2] = [2, 10];
/// How long who drafts waits for the end of it.
const WAIT: SignedDuration = SignedDuration::from_secs(20);

/// What the next step looks at.
struct ReconcileBatch {
    invoices: BTreeSet<String>,
    /// How far it is then.
    after: ReconciliationCursor,
    is_last: bool,
}

impl Ledger {
    /// Compares some more of a draft. When the next step may be taken, if there is one.
    pub(super) async fn reconcile_step(
        &self,
        (account, id): (AccountId, PayoutRunId),
        asker: &impl Reconciler,
    ) -> Result<Option<Timestamp>, LedgerError> {
        let Some(before) = payout_run::get(self.store(), account, id).await? else { return Ok(None) };
        let Some(PayoutRunPhase::Comparing { after, tries }) = before.phase else { return Ok(None) };
        let portion = self.next_batch(&before, after).await?;
        let ReconcileAnswers { unanswered, .. } = reconcile_all(asker, (account, &portion.invoices), || false).await?;
        let now = self.now();
        let again = usize::try_from(tries).ok().and_then(|tries| AGAIN_S.get(tries));
        let (phase, next) = match again {
            Some(seconds) if !unanswered.is_empty() => {
                let next = now.checked_add(SignedDuration::from_secs(*seconds)).unwrap_or(now);
                (Some(PayoutRunPhase::Comparing { after, tries: tries.saturating_add(1) }), Some(next))
            }
            _ if portion.is_last => (None, None),
            _ => (Some(PayoutRunPhase::Comparing { after: portion.after, tries: 0 }), Some(now)),
        };
        let is_left = again.is_none() && !unanswered.is_empty();
        if let Some(why) = unanswered.values().next().filter(|_| is_left) {
            tracing::warn!(%account, run = %id, invoices = unanswered.len(), why, "charges in a payout run are not compared");
        }
        // What was heard may have changed it: its lines and sums, but not how far this is.
        let Some(held) = payout_run::get(self.store(), account, id).await? else { return Ok(None) };
        if held.phase != before.phase {
            return Ok(Some(now));
        }
        let left = if is_left { u32::try_from(unanswered.len()).unwrap_or(u32::MAX) } else { 0 };
        let run = PayoutRun { phase, uncompared: held.uncompared.saturating_add(left), ..held.clone() };
        let mut batch = Batch::progress();
        payout_run::update(&mut batch, &held, &run);
        match next {
            Some(at) => payout_work::schedule(&mut batch, account, PayoutJob::Run(id), at.max(lease_until(now))),
            None if run.sifted.is_some() => payout_work::schedule(&mut batch, account, PayoutJob::Run(id), now),
            None => payout_work::delete(&mut batch, account, PayoutJob::Run(id)),
        }
        self.commit(batch).await?;
        Ok(next)
    }

    /// The next invoices of a run that are to be asked about.
    async fn next_batch(&self, run: &PayoutRun, after: ReconciliationCursor) -> Result<ReconcileBatch, LedgerError> {
        let (store, account) = (self.store(), run.account);
        let mut portion = ReconcileBatch { invoices: BTreeSet::new(), after, is_last: false };
        let payouts = payout::list_by_run(store, (account, run.id), after.payout, PAYOUTS_AT_ONCE).await?;
        let mut room = LINES_AT_ONCE;
        for payout in &payouts {
            let of = (account, payout.id);
            let after = portion.after.line.filter(|_| portion.after.begun == Some(payout.id));
            let lines = commission::list_by_payout(store, of, after, room).await?;
            let count = lines.len();
            portion.invoices.extend(lines.iter().filter_map(invoice));
            if count == room {
                portion.after.line = lines.last().map(|line| line.id);
                portion.after.begun = Some(payout.id);
                return Ok(portion);
            }
            room = room.saturating_sub(count);
            portion.after = ReconciliationCursor { payout: Some(payout.id), ..ReconciliationCursor::default() };
        }
        portion.is_last = payouts.len() < PAYOUTS_AT_ONCE;
        Ok(portion)
    }
}

fn invoice(line: &Commission) -> Option<String> {
    line.sold_invoice().map(|sold| sold.invoice.clone())
}

impl AffiliateService {
    /// Drafts a run that was begun, and compares its charges with the processor's: to the end, where that takes not too
    /// long. The rest is compared afterwards.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn finish_draft(
        &self,
        account: AccountId,
        id: PayoutRunId,
    ) -> Result<super::DraftResult, AffiliateError> {
        let (ledger, end) = (self.ledger(), self.now().checked_add(WAIT).unwrap_or(Timestamp::MAX));
        let mut drafted = ledger.finish_draft(account, id).await?;
        if drafted.run.is_none() {
            return Ok(drafted);
        }
        while let Some(next) = ledger.reconcile_step((account, id), self).await?
            && next < end
        {
            self.hall.clock().sleep_until(next).await;
        }
        drafted.run = Some(ledger.get_run(account, id).await?);
        Ok(drafted)
    }
}
