//! Reconciliation of a draft: before approval the current state of its charges is fetched from the processor, however
//! recently that was done. Refunded or disputed lines leave the draft as they would by an event. Works in batches at
//! the pace of [`crate::reconciliation`]; the cursor is in the run's row.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use model::affiliate::commission::Commission;
use model::affiliate::payout::{PayoutRun, PayoutRunPhase, ReconciliationCursor};
use model::id::{AccountId, PayoutRunId};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{commission, payout, payout_run};
use store::engine::Batch;

use super::runs::DraftResult;
use super::step::lease_until;
use crate::context::Context;
use crate::error::{AffiliateError, LedgerResult as Result};
use crate::reconciliation::{ReconcileAnswers, Reconciler, reconcile_all};

/// Lines that are reconciled per step.
const LINES_AT_ONCE: usize = 100;
/// Payouts whose lines one step reads.
const PAYOUTS_AT_ONCE: usize = 50;
/// Retry delays in seconds; after the last retry the charges count as uncompared.
const AGAIN_S: [i64; 2] = [2, 10];
/// Wait limit of the request that drafts a run, for its reconciliation.
const WAIT: SignedDuration = SignedDuration::from_secs(20);

/// Input of the next step.
struct ReconcileBatch {
    invoices: BTreeSet<String>,
    /// Cursor after this step.
    after: ReconciliationCursor,
    is_last: bool,
}

/// Reconciles the next batch of a draft. Returns the time of the next step, if there is one.
pub(crate) async fn reconcile_step(
    context: &Context,
    account: AccountId,
    id: PayoutRunId,
    client: &dyn Reconciler,
) -> Result<Option<Timestamp>> {
    let Some(before) = payout_run::get(&context.store, account, id).await? else { return Ok(None) };
    let Some(PayoutRunPhase::Comparing { after, tries }) = before.phase else { return Ok(None) };
    let portion = next_batch(context, &before, after).await?;
    let ReconcileAnswers { unanswered, .. } = reconcile_all(client, account, &portion.invoices, &|| false).await?;
    let now = context.now();
    let retry_delay = usize::try_from(tries).ok().and_then(|tries| AGAIN_S.get(tries));
    let (phase, next) = match retry_delay {
        Some(seconds) if !unanswered.is_empty() => {
            let next = now.checked_add(SignedDuration::from_secs(*seconds)).unwrap_or(now);
            (Some(PayoutRunPhase::Comparing { after, tries: tries.saturating_add(1) }), Some(next))
        }
        _ if portion.is_last => (None, None),
        _ => (Some(PayoutRunPhase::Comparing { after: portion.after, tries: 0 }), Some(now)),
    };
    let gives_up = retry_delay.is_none() && !unanswered.is_empty();
    if let Some(reason) = unanswered.values().next().filter(|_| gives_up) {
        tracing::warn!(%account, run = %id, invoices = unanswered.len(), why = reason, "charges in a payout run not reconciled: no answer from the processor");
    }
    // Applying the answers may have changed the run's lines and totals, but not the cursor.
    let Some(held) = payout_run::get(&context.store, account, id).await? else { return Ok(None) };
    if held.phase != before.phase {
        return Ok(Some(now));
    }
    let left = if gives_up { u32::try_from(unanswered.len()).unwrap_or(u32::MAX) } else { 0 };
    let run = PayoutRun { phase, uncompared: held.uncompared.saturating_add(left), ..held.clone() };
    let mut batch = Batch::progress();
    payout_run::update(&mut batch, &held, &run);
    match next {
        Some(at) => payout_job::schedule(&mut batch, account, PayoutJob::Run(id), at.max(lease_until(now))),
        None if run.sifted.is_some() => payout_job::schedule(&mut batch, account, PayoutJob::Run(id), now),
        None => payout_job::delete(&mut batch, account, PayoutJob::Run(id)),
    }
    context.commit(batch).await?;
    Ok(next)
}

/// Returns the next invoices of a run to reconcile.
async fn next_batch(context: &Context, run: &PayoutRun, after: ReconciliationCursor) -> Result<ReconcileBatch> {
    let (store, account) = (&context.store, run.account);
    let mut portion = ReconcileBatch { invoices: BTreeSet::new(), after, is_last: false };
    let payouts = payout::list_by_run(store, account, run.id, after.payout, PAYOUTS_AT_ONCE).await?;
    let mut remaining = LINES_AT_ONCE;
    for payout in &payouts {
        let after = portion.after.line.filter(|_| portion.after.begun == Some(payout.id));
        let lines = commission::list_by_payout(store, account, payout.id, after, remaining).await?;
        let count = lines.len();
        portion.invoices.extend(lines.iter().filter_map(invoice));
        if count == remaining {
            portion.after.line = lines.last().map(|line| line.id);
            portion.after.begun = Some(payout.id);
            return Ok(portion);
        }
        remaining = remaining.saturating_sub(count);
        portion.after = ReconciliationCursor { payout: Some(payout.id), ..ReconciliationCursor::default() };
    }
    portion.is_last = payouts.len() < PAYOUTS_AT_ONCE;
    Ok(portion)
}

fn invoice(line: &Commission) -> Option<String> {
    line.sold_invoice().map(|sale| sale.invoice.clone())
}

/// Completes a draft and reconciles its charges, for at most 20 seconds; the rest is reconciled in the background.
pub(crate) async fn finish_and_reconcile(
    context: &Context,
    client: &dyn Reconciler,
    account: AccountId,
    id: PayoutRunId,
) -> Result<DraftResult, AffiliateError> {
    let end = context.now().checked_add(WAIT).unwrap_or(Timestamp::MAX);
    let mut drafted = context.finish_draft(account, id).await?;
    if drafted.run.is_none() {
        return Ok(drafted);
    }
    while let Some(next) = reconcile_step(context, account, id, client).await?
        && next < end
    {
        context.clock.sleep_until(next).await;
    }
    drafted.run = Some(context.get_run(account, id).await?);
    Ok(drafted)
}
