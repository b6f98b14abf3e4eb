//! Settlement of payouts in a unit of work: what follows when a payout is paid, failed or dropped, and when a line leaves
//! its draft.
//!
//! ```text
//! a line leaves its draft ─► payout and run are reduced ─► below the minimum: the payout is dropped
//! paid, failed, dropped ───► [`propagate_to_lines`]: [`LINES_AT_ONCE`] lines in this commit, the rest in jobs
//! ```
//!
//! Totals are never recomputed from their parts: each commit that moves a line changes the payout's amount and the
//! run's total by the same amount.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use model::affiliate::arithmetic::ArithmeticError;
use model::affiliate::commission::{Commission, CommissionState};
use model::affiliate::partner::{Partner, PayoutDestination};
use model::affiliate::partner_email::PartnerEmailKind;
use model::affiliate::payout::{LineCursor, Payout, PayoutRunPhase, PayoutState, SkipReason, SkippedPartner};
use model::event::EventKind;
use model::id::{CommissionId, PartnerId, PayoutId, PayoutRunId};
use store::affiliate::commission;
use store::affiliate::payout_job::PayoutJob;

use super::recompute::recompute_bounty;
use super::unit_of_work::{PendingEvent, UnitOfWork};
use crate::error::LedgerResult as Result;

/// Maximum lines of a payout that one commit updates.
pub(crate) const LINES_AT_ONCE: usize = 100;
/// Consecutive failed payouts after which a destination is disabled.
const FAILURES_MAX: u8 = 2;

/// Final result of a payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PayoutOutcome {
    Paid {
        /// The owner's proof of payment, e.g. the id of a bank transfer.
        reference: Option<String>,
        /// The processor's transfer id.
        transfer: Option<String>,
    },
    Failed {
        reason: String,
        /// The processor's id of the transfer that was reversed.
        transfer: Option<String>,
    },
}

/// Settles a payout as paid, failed, or reversed after payment, and updates as many of its lines as one commit
/// takes.
pub(crate) fn settle_payout(work: &mut UnitOfWork, id: PayoutId, outcome: PayoutOutcome) -> BoxFuture<'_, Result<()>> {
    Box::pin(async move {
        let now = work.now;
        let Some(found) = work.payouts.load(id).await? else { return Ok(()) };
        let was_open = found.state == PayoutState::Open;
        let is_failed = matches!(outcome, PayoutOutcome::Failed { .. });
        match outcome {
            PayoutOutcome::Paid { reference, transfer } => {
                found.state = PayoutState::Paid;
                found.paid_at = Some(now);
                found.reference = reference;
                found.transfer = transfer;
            }
            PayoutOutcome::Failed { reason, transfer } => {
                found.state = PayoutState::Failed;
                found.paid_at = None;
                found.failure_reason = Some(reason);
                found.transfer = transfer.or(found.transfer.take());
            }
        }
        found.asking.not_before = None;
        found.trail = Some(LineCursor::default());
        found.touch(now);
        let payout = found.clone();
        if let Some(run) = work.payouts.run(payout.run).await? {
            if was_open {
                run.record_settlement(is_failed, now);
            } else {
                run.is_partial |= is_failed;
                run.rev = run.rev.saturating_add(1);
            }
        }
        work.emit(PendingEvent::Payout(if is_failed { EventKind::PayoutFailed } else { EventKind::PayoutPaid }, id));
        update_destination_health(work, &payout, is_failed).await?;
        propagate_to_lines(work, id).await
    })
}

/// Updates the failure count of the partner's destination; after [`FAILURES_MAX`] consecutive failures the
/// destination is disabled.
async fn update_destination_health(work: &mut UnitOfWork, payout: &Payout, is_failed: bool) -> Result<()> {
    let Some(partner) = work.partner_mut(payout.partner).await? else { return Ok(()) };
    let is_same = |to: &PayoutDestination| to.method == payout.method && to.destination == payout.destination;
    let is_current = partner.payout.as_ref().is_some_and(is_same);
    partner.was_paid |= !is_failed;
    if !is_failed {
        work.partner_emails.push((payout.partner, PartnerEmailKind::PayoutPaid { payout: payout.id }));
    }
    let Some(partner) = work.partner_mut(payout.partner).await? else { return Ok(()) };
    if !is_current {
        return Ok(());
    }
    partner.payouts_failed = if is_failed { partner.payouts_failed.saturating_add(1) } else { 0 };
    if partner.payouts_failed >= FAILURES_MAX
        && let Some(to) = partner.payout.as_mut().filter(|to| to.is_able)
    {
        to.is_able = false;
        let partner = partner.clone();
        work.partner_emails.push((partner.id, PartnerEmailKind::PayoutFailed { payout: payout.id }));
        work.emit(PendingEvent::Partner(partner.id));
        redirect_payouts(work, &partner).await?;
    }
    Ok(())
}

/// Applies whether the processor's account can receive transfers to a partner who is paid there.
pub(crate) async fn set_destination_able(work: &mut UnitOfWork, id: PartnerId, is_able: bool) -> Result<()> {
    let Some(partner) = work.partner_mut(id).await? else { return Ok(()) };
    let is_below_limit = partner.payouts_failed < FAILURES_MAX;
    if let Some(to) = partner.payout.as_mut().filter(|to| to.is_able != (is_able && is_below_limit)) {
        to.is_able = is_able && is_below_limit;
        let partner = partner.clone();
        work.emit(PendingEvent::Partner(id));
        redirect_payouts(work, &partner).await?;
    }
    Ok(())
}

/// Moves a partner's payouts in the draft to its new destination, or drops them if the partner is no longer
/// payable. Either changes the run's `rev`.
pub(crate) async fn redirect_payouts(work: &mut UnitOfWork, partner: &Partner) -> Result<()> {
    let is_ready = partner.is_payout_ready(&work.program.settings.allowed_methods);
    for id in work.payouts.draft_payouts_of(partner.id).await? {
        match &partner.payout {
            Some(to) if is_ready => redirect_payout(work, id, to).await?,
            _ => remove_from_draft(work, id, SkipReason::NotReady).await?,
        }
    }
    Ok(())
}

async fn redirect_payout(work: &mut UnitOfWork, id: PayoutId, to: &PayoutDestination) -> Result<()> {
    let Some(payout) = work.payouts.payout_in_draft(id).await? else { return Ok(()) };
    if payout.method == to.method && payout.destination == to.destination {
        return Ok(());
    }
    if let Some(run) = work.payouts.run(payout.run).await? {
        let less = u32::from(!payout.method.is_manual());
        run.transfers = run.transfers.saturating_sub(less) + u32::from(!to.method.is_manual());
        run.rev = run.rev.saturating_add(1);
    }
    let now = work.now;
    if let Some(found) = work.payouts.load(id).await? {
        (found.method, found.destination) = (to.method, to.destination.clone());
        found.touch(now);
    }
    Ok(())
}

/// Updates up to [`LINES_AT_ONCE`] lines of a settled payout: paid with it, or released. Schedules a job for the
/// rest.
pub(crate) fn propagate_to_lines(work: &mut UnitOfWork, id: PayoutId) -> BoxFuture<'_, Result<()>> {
    Box::pin(async move {
        let (store, account) = (work.context.store.clone(), work.account());
        let Some(payout) = work.payouts.get(id).await? else { return Ok(()) };
        let Some(trail) = payout.trail else { return Ok(()) };
        let is_paid = payout.state == PayoutState::Paid;
        // Released lines leave the index by payout, so the scan starts at the beginning.
        let after = trail.after.filter(|_| is_paid);
        let lines = commission::list_by_payout(&store, account, id, after, LINES_AT_ONCE).await?;
        let last = lines.last().map(|line| line.id);
        let is_complete = lines.len() < LINES_AT_ONCE;
        for line in lines {
            let Some(line) = work.line(line.id).await? else { continue };
            if is_paid {
                pay_line(work, line, id);
            } else {
                release_line(work, line, &payout).await?;
            }
        }
        if !is_paid {
            work.payouts.release_adjustments(id).await?;
        }
        let now = work.now;
        if let Some(found) = work.payouts.load(id).await? {
            found.trail = (!is_complete).then_some(LineCursor { after: last });
            if payout.trail != found.trail {
                found.rev = found.rev.saturating_add(1);
            }
        }
        let is_known = payout.trail != Some(LineCursor::default());
        if !is_complete || is_known {
            work.payouts.schedule_job(PayoutJob::Payout(id), (!is_complete).then_some(now));
        }
        Ok(())
    })
}

fn pay_line(work: &mut UnitOfWork, mut line: Commission, id: PayoutId) {
    if matches!(line.status, CommissionState::InPayout { .. }) && line.pay(id, work.now).is_ok() {
        work.put_line(line, [EventKind::CommissionPaid]);
    }
}

/// Refunds and disputes that arrived while the payout was approved are applied now.
async fn release_line(work: &mut UnitOfWork, mut line: Commission, payout: &Payout) -> Result<()> {
    if line.leave_payout(payout.id, work.now).is_ok() {
        work.put_line(line.clone(), []);
    }
    if payout.state == PayoutState::Failed {
        match line.sold_invoice() {
            Some(sale) => {
                work.touched.invoices.insert(sale.invoice.clone());
            }
            None => recompute_bounty(work, line.referral).await?,
        }
    }
    Ok(())
}

/// Reduces the payouts and runs of lines that left a draft, and drops payouts that fall below the minimum. The run
/// skips lines that are still earned.
pub(super) async fn apply_removed_lines(work: &mut UnitOfWork) -> Result<()> {
    let mut changed = BTreeSet::new();
    for (id, Commission { id: line, amount, .. }) in work.lines.left_payouts() {
        let Some(payout) = work.payouts.load(id).await? else { continue };
        if payout.state == PayoutState::Failed {
            // A failed payout keeps its amount and lines.
            continue;
        }
        let (run, currency) = (payout.run, payout.currency);
        let is_open = payout.state == PayoutState::Open;
        let is_draft =
            is_open && work.payouts.run(run).await?.is_some_and(|run| run.phase != Some(PayoutRunPhase::Sweeping));
        work.payouts.removed_items.push((id, line));
        if !is_draft {
            continue;
        }
        if let Some(payout) = work.payouts.load(id).await? {
            payout.amount = payout.amount.checked_sub(amount).ok_or(ArithmeticError::TooLarge)?;
            payout.lines = payout.lines.saturating_sub(1);
        }
        if let Some(run) = work.payouts.run(run).await? {
            run.add_to_total(currency, amount.checked_neg().ok_or(ArithmeticError::TooLarge)?)?;
        }
        skip_removed_line(work, run, line).await?;
        changed.insert(id);
    }
    for id in changed {
        recheck_draft(work, id).await?;
    }
    Ok(())
}

/// Adds a line that left a draft to what its run skips, if it is still earned: no payout of the run includes it.
async fn skip_removed_line(work: &mut UnitOfWork, run: PayoutRunId, id: CommissionId) -> Result<()> {
    let Some(line) = work.line(id).await? else { return Ok(()) };
    let Commission { partner, currency, amount, status: CommissionState::Earned { frozen, .. }, .. } = line else {
        return Ok(());
    };
    let reason = match (frozen.inquiry, frozen.review) {
        (true, _) => SkipReason::Disputed,
        (false, true) => SkipReason::UnderReview,
        (false, false) => SkipReason::AmountChanged,
    };
    Ok(work.payouts.add_skipped(run, SkippedPartner { partner, currency, amount, reason }).await?)
}

/// After a draft payout was reduced: bumps the run's `rev`, and drops the payout if it is below the minimum.
async fn recheck_draft(work: &mut UnitOfWork, id: PayoutId) -> Result<()> {
    let now = work.now;
    let Some(payout) = work.payouts.get(id).await? else { return Ok(()) };
    let minimum = work.program.settings.min_payout.get(&payout.currency).copied().unwrap_or(0);
    let Some(run) = work.payouts.run(payout.run).await? else { return Ok(()) };
    run.rev = run.rev.saturating_add(1);
    let is_filling = matches!(
        &run.phase,
        Some(PayoutRunPhase::Drafting { filling: Some(filling), .. }) if filling.payout == id
    );
    let meets_minimum = payout.amount > 0 && payout.amount >= minimum;
    if !meets_minimum && !is_filling {
        return drop_payout(work, id, SkipReason::BelowMinimum).await;
    }
    if let Some(found) = work.payouts.load(id).await? {
        found.touch(now);
    }
    Ok(())
}

/// Drops a payout from its run, unless the run is approved.
pub(crate) async fn remove_from_draft(work: &mut UnitOfWork, id: PayoutId, reason: SkipReason) -> Result<()> {
    let Some(payout) = work.payouts.payout_in_draft(id).await? else { return Ok(()) };
    if let Some(run) = work.payouts.run(payout.run).await? {
        run.rev = run.rev.saturating_add(1);
    }
    drop_payout(work, id, reason).await
}

/// Drops all payouts of a partner that are in the draft.
pub(crate) async fn remove_from_drafts(work: &mut UnitOfWork, partner: PartnerId, reason: SkipReason) -> Result<()> {
    for id in work.payouts.draft_payouts_of(partner).await? {
        remove_from_draft(work, id, reason).await?;
    }
    Ok(())
}

/// Drops a payout from its draft and releases its lines.
async fn drop_payout(work: &mut UnitOfWork, id: PayoutId, reason: SkipReason) -> Result<()> {
    let now = work.now;
    let Some(found) = work.payouts.load(id).await? else { return Ok(()) };
    found.state = PayoutState::Dropped;
    found.trail = Some(LineCursor::default());
    found.touch(now);
    let payout = found.clone();
    // If all lines have left the payout, and nothing else is due, there is nothing to skip.
    if payout.lines > 0 || payout.amount > 0 {
        let amount = payout.amount.max(0);
        let skipped = SkippedPartner { partner: payout.partner, currency: payout.currency, amount, reason };
        work.payouts.add_skipped(payout.run, skipped).await?;
    }
    if let Some(run) = work.payouts.run(payout.run).await? {
        run.remove_payout(&payout)?;
    }
    propagate_to_lines(work, id).await?;
    // Lines that left the payout in this unit of work are removed from its items as well.
    let released = work.lines.left_payouts().into_iter().filter(|(payout, _)| *payout == id);
    work.payouts.removed_items.extend(released.map(|(payout, line)| (payout, line.id)));
    Ok(())
}
