//! Payouts in the unit of work: effects of a line that leaves a draft, and of a payout that is paid, failed or dropped.
//!
//! ```text
//! a line leaves its draft ─► payout and run are reduced ─► below the minimum: the payout is dropped
//! paid, failed, dropped ───► `propagate_to_lines`: [`LINES_AT_ONCE`] lines in this commit, the rest in jobs
//! ```
//!
//! Totals are never recomputed from their parts: each commit that moves a line changes the payout's amount and the
//! run's total by the same amount.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::affiliate::arithmetic::ArithmeticError;
use mail::affiliate::commission::{Commission, CommissionState};
use mail::affiliate::partner::{Partner, PayoutDestination};
use mail::affiliate::partner_email::PartnerEmailKind;
use mail::affiliate::payout::{
    Adjustment, LineCursor, Payout, PayoutRun, PayoutRunPhase, PayoutState, SkipReason, SkippedPartner,
};
use mail::affiliate::recompute;
use mail::event::EventKind;
use mail::id::{AdjustmentId, CommissionId, PartnerId, PayoutId, PayoutRunId};
use store::affiliate::adjustment::{self, AdjustmentTotal};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{commission, payout, payout_run};
use store::engine::Batch;

use super::{PendingEvent, TrackedRow, UnitOfWork};
use crate::ledger::LedgerError;

/// Maximum lines of a payout that one commit updates.
pub(crate) const LINES_AT_ONCE: usize = 100;
/// Maximum adjustments that one payout nets; the rest is netted in the next payout.
pub(crate) const ADJUSTMENTS_MAX: usize = 500;
/// Page size when a partner's open payouts are listed.
const PAYOUTS_AT_ONCE: usize = 200;
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

/// Tracked rows of payouts, runs and adjustments.
#[derive(Default)]
pub(super) struct PayoutRows {
    /// `None` for a payout that was looked up and does not exist.
    payouts: BTreeMap<PayoutId, Option<TrackedRow<Payout>>>,
    runs: BTreeMap<PayoutRunId, TrackedRow<PayoutRun>>,
    /// The open run or its absence, as read; checked at commit. `None` if it was not read.
    open: Option<Option<PayoutRun>>,
    /// Totals of existing adjustments, by line.
    sums: BTreeMap<CommissionId, AdjustmentTotal>,
    /// New adjustments, at most one per line.
    new_adjustments: BTreeMap<CommissionId, Adjustment>,
    /// Adjustments that a payout releases.
    released_adjustments: Vec<Adjustment>,
    /// Lines to remove from the items of a payout.
    removed_items: Vec<(PayoutId, CommissionId)>,
    skipped: Vec<(PayoutRunId, SkippedPartner)>,
    /// Jobs to schedule, or to delete (`None`).
    jobs: BTreeMap<PayoutJob, Option<Timestamp>>,
}

impl PayoutRows {
    pub(super) fn payout(&self, id: PayoutId) -> Option<&Payout> {
        self.payouts.get(&id)?.as_ref().map(|held| &held.now)
    }

    pub(super) fn has_new_adjustments(&self) -> bool {
        !self.new_adjustments.is_empty()
    }
}

impl UnitOfWork<'_> {
    /// Returns a payout for reading and changing.
    pub(crate) async fn payout(&mut self, id: PayoutId) -> Result<Option<&mut Payout>, LedgerError> {
        if !self.payout_rows.payouts.contains_key(&id) {
            let found = payout::get(&self.ledger.store, self.account(), id).await?;
            let held = found.map(|found| TrackedRow { before: Some(found.clone()), now: found });
            self.payout_rows.payouts.insert(id, held);
        }
        Ok(self.payout_rows.payouts.get_mut(&id).and_then(Option::as_mut).map(|held| &mut held.now))
    }

    /// Returns a run for reading and changing.
    pub(crate) async fn run(&mut self, id: PayoutRunId) -> Result<Option<&mut PayoutRun>, LedgerError> {
        if !self.payout_rows.runs.contains_key(&id)
            && let Some(found) = payout_run::get(&self.ledger.store, self.account(), id).await?
        {
            self.payout_rows.runs.insert(id, TrackedRow { before: Some(found.clone()), now: found });
        }
        Ok(self.payout_rows.runs.get_mut(&id).map(|held| &mut held.now))
    }

    /// Makes the commit depend on the open run being unchanged, so that no payout is added to a draft concurrently.
    pub(crate) async fn require_no_drafting(&mut self) -> Result<(), LedgerError> {
        if self.payout_rows.open.is_none() {
            self.payout_rows.open = Some(payout_run::find_open(&self.ledger.store, self.account()).await?);
        }
        Ok(())
    }

    /// Schedules a job, or deletes it (`None`).
    pub(crate) fn schedule_job(&mut self, work: PayoutJob, due: Option<Timestamp>) {
        self.payout_rows.jobs.insert(work, due);
    }

    /// True if a payout has released its lines, though their rows may not be updated yet.
    pub(super) async fn has_released_lines(&mut self, id: PayoutId) -> Result<bool, LedgerError> {
        let Some(payout) = self.payout(id).await? else { return Ok(true) };
        let (state, run) = (payout.state, payout.run);
        Ok(match state {
            PayoutState::Failed | PayoutState::Dropped => true,
            PayoutState::Paid => false,
            PayoutState::Open => self.run(run).await?.is_none_or(|run| run.phase == Some(PayoutRunPhase::Sweeping)),
        })
    }

    /// Returns the lines that cannot leave their payouts, because these are paid or their runs approved.
    pub(crate) async fn locked_lines(&mut self, lines: &[Commission]) -> Result<BTreeSet<CommissionId>, LedgerError> {
        let mut locked = BTreeSet::new();
        for line in lines {
            let CommissionState::InPayout { payout, .. } = line.status else { continue };
            let Some(payout) = self.payout(payout).await? else { continue };
            let (state, run) = (payout.state, payout.run);
            if state == PayoutState::Paid || self.run(run).await?.is_some_and(|run| run.is_approved()) {
                locked.insert(line.id);
            }
        }
        Ok(locked)
    }

    /// Returns the sum of each line's adjustments, including new ones.
    pub(crate) async fn adjustment_totals(
        &mut self,
        lines: &[Commission],
    ) -> Result<BTreeMap<CommissionId, i64>, LedgerError> {
        let unread = lines.iter().map(|line| line.id).filter(|id| !self.payout_rows.sums.contains_key(id));
        let unread: Vec<CommissionId> = unread.collect();
        let found = adjustment::line_totals(&self.ledger.store, self.account(), &unread).await?;
        self.payout_rows.sums.extend(unread.into_iter().zip(found));
        let amount_of =
            |id: &CommissionId| self.payout_rows.new_adjustments.get(id).map_or(0, |adjustment| adjustment.amount);
        let sum = |id: CommissionId| {
            let before = self.payout_rows.sums.get(&id).map_or(0, |sum| sum.amount);
            (id, before.saturating_add(amount_of(&id)))
        };
        Ok(lines.iter().map(|line| sum(line.id)).collect())
    }

    /// Changes what a partner is owed. All adjustments of one line in one commit are merged into one.
    pub(crate) fn add_adjustment(&mut self, wanted: &recompute::AdjustmentDue) -> Result<(), LedgerError> {
        let recompute::AdjustmentDue { line, partner, amount, currency } = *wanted;
        let id = AdjustmentId::new(self.now, self.ledger.random());
        let (account, created_at) = (self.program.account, self.now);
        let new = Adjustment { id, account, partner, line, amount: 0, currency, payout: None, created_at };
        let adjustment = self.payout_rows.new_adjustments.entry(line).or_insert(new);
        adjustment.amount = adjustment.amount.checked_add(amount).ok_or(ArithmeticError::TooLarge)?;
        if adjustment.amount == 0 {
            self.payout_rows.new_adjustments.remove(&line);
        }
        Ok(())
    }

    /// Settles a payout as paid, failed, or reversed after payment, and updates as many of its lines as one commit
    /// takes.
    pub(crate) fn settle_payout(
        &mut self,
        id: PayoutId,
        outcome: PayoutOutcome,
    ) -> BoxFuture<'_, Result<(), LedgerError>> {
        Box::pin(async move {
            let now = self.now;
            let Some(found) = self.payout(id).await? else { return Ok(()) };
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
            if let Some(run) = self.run(payout.run).await? {
                if was_open {
                    run.record_settlement(is_failed, now);
                } else {
                    run.is_partial |= is_failed;
                    run.rev = run.rev.saturating_add(1);
                }
            }
            self.emit(PendingEvent::Payout(
                if is_failed { EventKind::PayoutFailed } else { EventKind::PayoutPaid },
                id,
            ));
            self.update_destination_health(&payout, is_failed).await?;
            self.propagate_to_lines(id).await
        })
    }

    /// Updates the failure count of the partner's destination; after [`FAILURES_MAX`] consecutive failures the
    /// destination is disabled.
    async fn update_destination_health(&mut self, payout: &Payout, is_failed: bool) -> Result<(), LedgerError> {
        let Some(partner) = self.partner_mut(payout.partner).await? else { return Ok(()) };
        let is_same = |to: &PayoutDestination| to.method == payout.method && to.destination == payout.destination;
        let is_current = partner.payout.as_ref().is_some_and(is_same);
        partner.was_paid |= !is_failed;
        if !is_failed {
            self.partner_emails.push((payout.partner, PartnerEmailKind::PayoutPaid { payout: payout.id }));
        }
        let Some(partner) = self.partner_mut(payout.partner).await? else { return Ok(()) };
        if !is_current {
            return Ok(());
        }
        partner.payouts_failed = if is_failed { partner.payouts_failed.saturating_add(1) } else { 0 };
        if partner.payouts_failed >= FAILURES_MAX
            && let Some(to) = partner.payout.as_mut().filter(|to| to.is_able)
        {
            to.is_able = false;
            let partner = partner.clone();
            self.partner_emails.push((partner.id, PartnerEmailKind::PayoutFailed { payout: payout.id }));
            self.emit(PendingEvent::Partner(partner.id));
            self.redirect_payouts(&partner).await?;
        }
        Ok(())
    }

    /// Applies whether the processor's account can receive transfers to a partner who is paid there.
    pub(crate) async fn set_destination_able(&mut self, id: PartnerId, is_able: bool) -> Result<(), LedgerError> {
        let Some(partner) = self.partner_mut(id).await? else { return Ok(()) };
        let is_below_limit = partner.payouts_failed < FAILURES_MAX;
        if let Some(to) = partner.payout.as_mut().filter(|to| to.is_able != (is_able && is_below_limit)) {
            to.is_able = is_able && is_below_limit;
            let partner = partner.clone();
            self.emit(PendingEvent::Partner(id));
            self.redirect_payouts(&partner).await?;
        }
        Ok(())
    }

    /// Moves a partner's payouts in the draft to its new destination, or drops them if the partner is no longer
    /// payable. Either changes the run's `rev`.
    pub(crate) async fn redirect_payouts(&mut self, partner: &Partner) -> Result<(), LedgerError> {
        let is_ready = partner.is_payout_ready(&self.program.settings.allowed_methods);
        for id in self.draft_payouts_of(partner.id).await? {
            match &partner.payout {
                Some(to) if is_ready => self.redirect_payout(id, to).await?,
                _ => self.remove_from_draft(id, SkipReason::NotReady).await?,
            }
        }
        Ok(())
    }

    /// Returns a partner's payouts in the draft, one per currency. Payouts of earlier runs are older than the draft run
    /// and are skipped by their id.
    async fn draft_payouts_of(&mut self, partner: PartnerId) -> Result<Vec<PayoutId>, LedgerError> {
        self.require_no_drafting().await?;
        let Some(run) = self.payout_rows.open.iter().flatten().next() else { return Ok(Vec::new()) };
        let (mut payouts, mut after) = (Vec::new(), Some(PayoutId::new(run.created_at, 0)));
        while let Some(last) = after {
            let found =
                payout::list_open_by_partner(&self.ledger.store, self.account(), partner, Some(last), PAYOUTS_AT_ONCE)
                    .await?;
            after = found.last().map(|last| last.id).filter(|_| found.len() == PAYOUTS_AT_ONCE);
            payouts.extend(found.into_iter().map(|open| open.id));
        }
        Ok(payouts)
    }

    async fn redirect_payout(&mut self, id: PayoutId, to: &PayoutDestination) -> Result<(), LedgerError> {
        let Some(payout) = self.payout_in_draft(id).await? else { return Ok(()) };
        if payout.method == to.method && payout.destination == to.destination {
            return Ok(());
        }
        if let Some(run) = self.run(payout.run).await? {
            let less = u32::from(!payout.method.is_manual());
            run.transfers = run.transfers.saturating_sub(less) + u32::from(!to.method.is_manual());
            run.rev = run.rev.saturating_add(1);
        }
        let now = self.now;
        if let Some(found) = self.payout(id).await? {
            (found.method, found.destination) = (to.method, to.destination.clone());
            found.touch(now);
        }
        Ok(())
    }

    /// Updates up to [`LINES_AT_ONCE`] lines of a settled payout: paid with it, or released. Schedules a job for the
    /// rest.
    pub(crate) fn propagate_to_lines(&mut self, id: PayoutId) -> BoxFuture<'_, Result<(), LedgerError>> {
        Box::pin(async move {
            let (store, account) = (self.ledger.store.clone(), self.account());
            let Some(payout) = self.payout(id).await?.map(|found| found.clone()) else { return Ok(()) };
            let Some(trail) = payout.trail else { return Ok(()) };
            let is_paid = payout.state == PayoutState::Paid;
            // Released lines leave the index by payout, so the scan starts at the beginning.
            let after = trail.after.filter(|_| is_paid);
            let lines = commission::list_by_payout(&store, account, id, after, LINES_AT_ONCE).await?;
            let last = lines.last().map(|line| line.id);
            let is_complete = lines.len() < LINES_AT_ONCE;
            for line in lines {
                let Some(line) = self.line(line.id).await? else { continue };
                if is_paid {
                    self.pay_line(line, id);
                } else {
                    self.release_line(line, &payout).await?;
                }
            }
            if !is_paid {
                let adjustments = adjustment::list_by_payout(&store, account, id, ADJUSTMENTS_MAX).await?;
                let is_released = |adjustment: &Adjustment| {
                    self.payout_rows.released_adjustments.iter().any(|freed| freed.id == adjustment.id)
                };
                let adjustments: Vec<_> =
                    adjustments.into_iter().filter(|adjustment| !is_released(adjustment)).collect();
                self.payout_rows.released_adjustments.extend(adjustments);
            }
            let now = self.now;
            if let Some(found) = self.payout(id).await? {
                found.trail = (!is_complete).then_some(LineCursor { after: last });
                if payout.trail != found.trail {
                    found.rev = found.rev.saturating_add(1);
                }
            }
            let is_known = payout.trail != Some(LineCursor::default());
            if !is_complete || is_known {
                self.schedule_job(PayoutJob::Payout(id), (!is_complete).then_some(now));
            }
            Ok(())
        })
    }

    fn pay_line(&mut self, mut line: Commission, id: PayoutId) {
        if matches!(line.status, CommissionState::InPayout { .. }) && line.pay(id, self.now).is_ok() {
            self.put_line(line, [EventKind::CommissionPaid]);
        }
    }

    /// Refunds and disputes that arrived while the payout was approved are applied now.
    async fn release_line(&mut self, mut line: Commission, payout: &Payout) -> Result<(), LedgerError> {
        if line.leave_payout(payout.id, self.now).is_ok() {
            self.put_line(line.clone(), []);
        }
        if payout.state == PayoutState::Failed {
            match line.sold_invoice() {
                Some(sale) => {
                    self.touched.invoices.insert(sale.invoice.clone());
                }
                None => self.recompute_bounty(line.referral).await?,
            }
        }
        Ok(())
    }

    /// Reduces the payouts and runs of lines that left a draft, and drops payouts that fall below the minimum.
    pub(super) async fn apply_removed_lines(&mut self) -> Result<(), LedgerError> {
        let left = |held: &TrackedRow<Commission>| {
            let before = held.before.as_ref()?;
            let payout = before.status.payout()?;
            (held.now.status.payout() != Some(payout)).then_some((payout, before.id, before.amount))
        };
        let left: Vec<_> = self.lines.values().filter_map(left).collect();
        let mut changed = BTreeSet::new();
        for (id, line, amount) in left {
            let Some(payout) = self.payout(id).await? else { continue };
            if payout.state == PayoutState::Failed {
                // A failed payout keeps its amount and lines.
                continue;
            }
            let (run, currency) = (payout.run, payout.currency);
            let is_open = payout.state == PayoutState::Open;
            let is_draft =
                is_open && self.run(run).await?.is_some_and(|run| run.phase != Some(PayoutRunPhase::Sweeping));
            self.payout_rows.removed_items.push((id, line));
            if !is_draft {
                continue;
            }
            if let Some(payout) = self.payout(id).await? {
                payout.amount = payout.amount.checked_sub(amount).ok_or(ArithmeticError::TooLarge)?;
                payout.lines = payout.lines.saturating_sub(1);
            }
            if let Some(run) = self.run(run).await? {
                let less = amount.checked_neg().ok_or(ArithmeticError::TooLarge)?;
                run.add_to_total(currency, less).then_some(()).ok_or(ArithmeticError::TooLarge)?;
            }
            changed.insert(id);
        }
        for id in changed {
            self.recheck_draft(id).await?;
        }
        Ok(())
    }

    /// After a draft payout was reduced: bumps the run's `rev`, and drops the payout if it is below the minimum.
    async fn recheck_draft(&mut self, id: PayoutId) -> Result<(), LedgerError> {
        let now = self.now;
        let Some(payout) = self.payout(id).await?.map(|found| found.clone()) else { return Ok(()) };
        let minimum = self.program.settings.min_payout.get(&payout.currency).copied().unwrap_or(0);
        let Some(run) = self.run(payout.run).await? else { return Ok(()) };
        run.rev = run.rev.saturating_add(1);
        let is_filling = matches!(
            &run.phase,
            Some(PayoutRunPhase::Drafting { filling: Some(filling), .. }) if filling.payout == id
        );
        let meets_minimum = payout.lines > 0 && payout.amount > 0 && payout.amount >= minimum;
        if !meets_minimum && !is_filling {
            return self.drop_payout(id, SkipReason::BelowMinimum).await;
        }
        if let Some(found) = self.payout(id).await? {
            found.touch(now);
        }
        Ok(())
    }

    /// Returns the payout if it is open and its run neither approved nor cancelled.
    async fn payout_in_draft(&mut self, id: PayoutId) -> Result<Option<Payout>, LedgerError> {
        let Some(payout) = self.payout(id).await?.map(|found| found.clone()) else { return Ok(None) };
        let Some(run) = self.run(payout.run).await? else { return Ok(None) };
        let is_in_draft =
            payout.state == PayoutState::Open && !run.is_approved() && run.phase != Some(PayoutRunPhase::Sweeping);
        Ok(is_in_draft.then_some(payout))
    }

    /// Drops a payout from its run, unless the run is approved.
    pub(crate) async fn remove_from_draft(&mut self, id: PayoutId, reason: SkipReason) -> Result<(), LedgerError> {
        let Some(payout) = self.payout_in_draft(id).await? else { return Ok(()) };
        if let Some(run) = self.run(payout.run).await? {
            run.rev = run.rev.saturating_add(1);
        }
        self.drop_payout(id, reason).await
    }

    /// Drops all payouts of a partner that are in the draft.
    pub(crate) async fn remove_from_drafts(
        &mut self,
        partner: PartnerId,
        reason: SkipReason,
    ) -> Result<(), LedgerError> {
        for id in self.draft_payouts_of(partner).await? {
            self.remove_from_draft(id, reason).await?;
        }
        Ok(())
    }

    /// Drops a payout from its draft and releases its lines.
    async fn drop_payout(&mut self, id: PayoutId, reason: SkipReason) -> Result<(), LedgerError> {
        let now = self.now;
        let Some(found) = self.payout(id).await? else { return Ok(()) };
        found.state = PayoutState::Dropped;
        found.trail = Some(LineCursor::default());
        found.touch(now);
        let payout = found.clone();
        if payout.lines > 0 && payout.amount > 0 {
            let skipped =
                SkippedPartner { partner: payout.partner, currency: payout.currency, amount: payout.amount, reason };
            self.payout_rows.skipped.push((payout.run, skipped));
        }
        if let Some(run) = self.run(payout.run).await? {
            let less = payout.amount.checked_neg().ok_or(ArithmeticError::TooLarge)?;
            run.add_to_total(payout.currency, less).then_some(()).ok_or(ArithmeticError::TooLarge)?;
            run.payouts = run.payouts.saturating_sub(1);
            run.open = run.open.saturating_sub(1);
            run.transfers = run.transfers.saturating_sub(u32::from(!payout.method.is_manual()));
        }
        self.propagate_to_lines(id).await?;
        // Lines that left the payout in this unit of work are removed from its items as well.
        let released: Vec<_> = self.lines.values().filter(|held| has_left(held, id)).map(|held| held.now.id).collect();
        self.payout_rows.removed_items.extend(released.into_iter().map(|line| (id, line)));
        Ok(())
    }

    pub(super) fn write_payouts(&self, batch: &mut Batch) {
        let account = self.account();
        for held in self.payout_rows.payouts.values().flatten() {
            let Some(before) = &held.before else { continue };
            if *before == held.now {
                payout::check_unchanged(batch, before);
            } else if held.now.state == PayoutState::Dropped && held.now.trail.is_none() {
                payout::delete(batch, before);
            } else {
                payout::update(batch, before, &held.now);
            }
        }
        for TrackedRow { before, now } in self.payout_rows.runs.values() {
            let Some(before) = before else { continue };
            if before != now {
                payout_run::update(batch, before, now);
            } else if !before.is_approved() {
                // An approved run never becomes a draft again; its other changes do not matter here.
                payout_run::check_unchanged(batch, before);
            }
        }
        if let Some(open) = &self.payout_rows.open {
            payout_run::check_open(batch, account, open.as_ref().map(|open| open.id));
            open.iter().for_each(|open| payout_run::check_unchanged(batch, open));
        }
        for (line, sum) in &self.payout_rows.sums {
            match self.payout_rows.new_adjustments.get(line) {
                Some(adjustment) => adjustment::create(batch, adjustment, sum),
                None => adjustment::check_total(batch, account, *line, sum),
            }
        }
        for before in &self.payout_rows.released_adjustments {
            adjustment::update(batch, before, &Adjustment { payout: None, ..before.clone() });
        }
        for (payout, line) in &self.payout_rows.removed_items {
            payout::delete_item(batch, account, *payout, *line);
        }
        for (run, skipped) in &self.payout_rows.skipped {
            payout_run::put_skipped(batch, account, *run, skipped);
        }
        for (work, due) in &self.payout_rows.jobs {
            match due {
                Some(due) => payout_job::schedule(batch, account, *work, *due),
                None => payout_job::delete(batch, account, *work),
            }
        }
    }
}

/// True if a line was in this payout when it was read, and no longer is.
fn has_left(held: &TrackedRow<Commission>, id: PayoutId) -> bool {
    let was_member = held.before.as_ref().is_some_and(|before| before.status.payout() == Some(id));
    was_member && held.now.status.payout() != Some(id)
}
