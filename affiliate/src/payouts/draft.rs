//! Drafting of a run: which partners have earned by the cutoff and can be paid.
//!
//! Two indexes list the earned lines and the adjustments without a payout, by partner and currency. A step reads the
//! next of both, decides for each group, and commits payouts, lines, events, totals and the cursor at once. A group
//! with only adjustments is paid if deductions are to be paid back. A group with more lines than one step is summed up
//! first, and then drafted in several steps.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::affiliate::arithmetic::ArithmeticError;
use model::affiliate::commission::Commission;
use model::affiliate::money::Currency;
use model::affiliate::partner::Partner;
use model::affiliate::payout::{
    Adjustment, LineCursor, Payout, PayoutCandidate, PayoutFillCursor, PayoutRun, PayoutRunPhase, PayoutState,
    ReconciliationCursor, SUM_MAX, SkipReason, SkippedPartner, TransferAttempts,
};
use model::affiliate::program::{AffiliateProgram, PaymentProcessor};
use model::event::EventKind;
use model::id::{AccountId, CommissionId, EventId, PartnerId, PayoutId};
use store::affiliate::commission::PayableCommission;
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{adjustment, commission, partner, payout, payout_run, program};
use store::engine::Batch;

use super::step::{LINES_AT_ONCE, lease_until};
use crate::context::Context;
use crate::error::{LedgerError, LedgerResult as Result};
use crate::events::payout_event;
use crate::ledger::unit_of_work::ADJUSTMENTS_MAX;

/// Maximum adjustments read per step.
const ADJUSTMENTS_AT_ONCE: usize = 5_000;

pub(super) type PartnerCurrency = (PartnerId, Currency);

/// Lines and adjustments that a payout to one partner in one currency can include.
#[derive(Default)]
struct PayableGroup {
    lines: Vec<CommissionId>,
    adjustments: Vec<Adjustment>,
}

/// State of one step of drafting.
struct DraftStep<'c> {
    context: &'c Context,
    program: AffiliateProgram,
    before: PayoutRun,
    run: PayoutRun,
    batch: Batch,
    now: Timestamp,
}

/// Drafts the next partners of a run. Returns the batch to commit.
pub(super) async fn draft_step(
    context: &Context,
    run: PayoutRun,
    after: Option<PartnerCurrency>,
    filling: Option<PayoutFillCursor>,
) -> Result<Batch> {
    let program = program::get(&context.store, run.account).await?.ok_or(LedgerError::NotSetUp)?;
    let (batch, now) = (Batch::intake(), context.now());
    let step = DraftStep { context, program, before: run.clone(), run, batch, now };
    match filling {
        Some(filling) => step.continue_large_partner(filling).await,
        None => step.draft_next_partners(after).await,
    }
}

impl DraftStep<'_> {
    fn account(&self) -> AccountId {
        self.run.account
    }

    /// Drafts payouts for the next partners.
    async fn draft_next_partners(mut self, after: Option<PartnerCurrency>) -> Result<Batch> {
        let (store, account) = (&self.context.store, self.account());
        let found = commission::list_payable(store, account, after, LINES_AT_ONCE).await?;
        // The last group of a full page may continue beyond it.
        let cut_lines = found.last().filter(|_| found.len() == LINES_AT_ONCE).map(|line| (line.partner, line.currency));
        let adjustments =
            adjustment::list_unassigned_after(store, account, after, cut_lines, ADJUSTMENTS_AT_ONCE).await?;
        let cut_adjustments = adjustments.last().filter(|_| adjustments.len() == ADJUSTMENTS_AT_ONCE);
        let cut_adjustments = cut_adjustments.map(|adjustment| (adjustment.partner, adjustment.currency));
        let mut groups = grouped(&found, adjustments);
        let Some(first) = groups.keys().next().copied() else { return Ok(self.finish()) };
        if cut_lines == Some(first) {
            return self.start_large_partner(first).await;
        }
        if cut_adjustments == Some(first) {
            // More adjustments than one payout nets; all lines are known.
            groups.retain(|group, _| *group == first);
        } else if let Some(cut) = cut_lines.into_iter().chain(cut_adjustments).min() {
            groups.split_off(&cut);
        }
        // Groups of adjustments alone can be more than one commit takes.
        if let Some(beyond) = groups.keys().nth(LINES_AT_ONCE).copied() {
            groups.split_off(&beyond);
        }
        let last = groups.keys().next_back().copied();
        self.draft_groups(groups).await?;
        self.run.phase = Some(PayoutRunPhase::Drafting { after: last.or(after), filling: None });
        Ok(self.into_batch(true))
    }

    /// Drafts the payouts of groups whose lines are all known.
    async fn draft_groups(&mut self, mut groups: BTreeMap<PartnerCurrency, PayableGroup>) -> Result<()> {
        let (store, account) = (&self.context.store, self.account());
        // A partner without earned commissions who owes money stays as it is.
        groups.retain(|_, group| !group.lines.is_empty() || group.adjustments.iter().any(|given| given.amount > 0));
        let lines: Vec<_> = groups.values().flat_map(|group| group.lines.iter().copied()).collect();
        let mut lines_by_group: BTreeMap<PartnerCurrency, Vec<Commission>> = BTreeMap::new();
        for line in commission::get_each(store, account, &lines).await? {
            lines_by_group.entry((line.partner, line.currency)).or_default().push(line);
        }
        let partners: BTreeSet<PartnerId> = groups.keys().map(|(partner, _)| *partner).collect();
        let partners: Vec<PartnerId> = partners.into_iter().collect();
        let found = partner::get_each(store, account, &partners).await?;
        let found: BTreeMap<_, _> = found.into_iter().flatten().map(|partner| (partner.id, partner)).collect();
        for (group, PayableGroup { adjustments, .. }) in groups {
            // Lines of a deleted partner are reversed separately.
            let Some(partner) = found.get(&group.0) else { continue };
            self.draft_partner(partner, group.1, lines_by_group.remove(&group).unwrap_or_default(), adjustments)?;
        }
        found.values().for_each(|partner| partner::check_unchanged(&mut self.batch, partner));
        Ok(())
    }

    /// Drafts the payout of a partner in one currency, if it is to be paid.
    fn draft_partner(
        &mut self,
        partner: &Partner,
        currency: Currency,
        lines: Vec<Commission>,
        adjustments: Vec<Adjustment>,
    ) -> Result<()> {
        let mut group = PayoutCandidate { owed: sum(&adjustments)?, ..PayoutCandidate::default() };
        let mut fit = Vec::new();
        for line in lines {
            if group.add_line(&line, self.run.cutoff) {
                fit.push(line);
            }
        }
        let due = group.earned.saturating_add(group.owed.max(0));
        if !self.fits(0, currency, due) {
            tracing::warn!(partner = %partner.id, "payout run is full; the partner will be paid by the next run");
            let (amount, reason) = (due, SkipReason::RunFull);
            self.skip_partner(&SkippedPartner { partner: partner.id, currency, amount, reason });
            return Ok(());
        }
        let Some(amount) = self.evaluate_group(partner, currency, &group)? else { return Ok(()) };
        let mut payout = self.new_payout(partner, currency);
        for line in &fit {
            self.add_line(&mut payout, line)?;
        }
        self.net_adjustments(&mut payout, &adjustments)?;
        debug_assert_eq!(payout.amount, amount, "the payout has the decided amount");
        self.write_new(&payout)
    }

    /// Decides the amount of a group, and notes what is skipped with the reason.
    fn evaluate_group(
        &mut self,
        partner: &Partner,
        currency: Currency,
        group: &PayoutCandidate,
    ) -> Result<Option<i64>> {
        let settings = &self.program.settings;
        let minimum = settings.min_payout.get(&currency).copied().unwrap_or(0);
        let verdict = group.decide(partner, settings, minimum)?;
        for (reason, amount) in verdict.skipped {
            self.skip_partner(&SkippedPartner { partner: partner.id, currency, amount, reason });
        }
        Ok(verdict.pays)
    }

    fn skip_partner(&mut self, skipped: &SkippedPartner) {
        payout_run::put_skipped(&mut self.batch, self.run.account, self.run.id, skipped);
    }

    fn new_payout(&self, partner: &Partner, currency: Currency) -> Payout {
        let to = partner.payout.clone();
        let born_at = self.now.max(self.run.created_at);
        Payout {
            id: PayoutId::new(born_at, self.context.random()),
            account: self.run.account,
            partner: partner.id,
            run: self.run.id,
            amount: 0,
            currency,
            adjusted: 0,
            lines: 0,
            // A partner who can be paid has a destination.
            method: to.as_ref().map_or(model::affiliate::program::PayoutMethod::Other, |to| to.method),
            destination: to.map_or_else(String::new, |to| to.destination),
            state: PayoutState::Open,
            trail: None,
            transfer: None,
            asking: TransferAttempts { attempt: 1, ..TransferAttempts::default() },
            reference: None,
            failure_reason: None,
            paid_at: None,
            rev: 1,
            created_at: self.now,
            updated_at: self.now,
        }
    }

    fn add(&mut self, payout: &mut Payout, amount: i64) -> Result<()> {
        payout.amount = payout.amount.checked_add(amount).ok_or(ArithmeticError::TooLarge)?;
        Ok(self.run.add_to_total(payout.currency, amount)?)
    }

    /// True if payout and run stay within [`SUM_MAX`] with `added` added. The rest is left for the next run.
    fn fits(&self, payout: i64, currency: Currency, added: i64) -> bool {
        let run = self.run.totals.get(&currency).copied().unwrap_or(0);
        let fits = |sum: i64| sum.checked_add(added).is_some_and(|sum| sum <= SUM_MAX);
        fits(payout) && fits(run)
    }

    fn add_line(&mut self, payout: &mut Payout, line: &Commission) -> Result<()> {
        let mut drafted = line.clone();
        if drafted.enter_payout(payout.id, self.now).is_err() {
            return Ok(());
        }
        commission::update(&mut self.batch, line, &drafted);
        payout::put_item(&mut self.batch, payout.account, payout.id, line.id, line.amount);
        payout.lines = payout.lines.saturating_add(1);
        self.add(payout, line.amount)
    }

    fn net_adjustments(&mut self, payout: &mut Payout, adjustments: &[Adjustment]) -> Result<()> {
        for before in adjustments {
            let after = Adjustment { payout: Some(payout.id), ..before.clone() };
            adjustment::update(&mut self.batch, before, &after);
            payout.adjusted = payout.adjusted.checked_add(before.amount).ok_or(ArithmeticError::TooLarge)?;
            self.add(payout, before.amount)?;
        }
        Ok(())
    }

    fn write_new(&mut self, payout: &Payout) -> Result<()> {
        payout::create(&mut self.batch, payout);
        let count = |number: u32| number.checked_add(1).ok_or(ArithmeticError::TooLarge);
        (self.run.payouts, self.run.open) = (count(self.run.payouts)?, count(self.run.open)?);
        if !payout.method.is_manual() {
            self.run.transfers = count(self.run.transfers)?;
        }
        let id = EventId::new(self.now, self.context.random());
        let created_event = payout_event(&self.program, payout);
        created_event.record(&mut self.batch, EventKind::PayoutCreated, payout.id, id, self.now);
        Ok(())
    }

    /// Starts a partner with more lines than a step holds: sums up all of them before the first is drafted.
    async fn start_large_partner(mut self, partner_currency: PartnerCurrency) -> Result<Batch> {
        let (store, account) = (&self.context.store, self.account());
        let adjustments =
            adjustment::list_unassigned(store, account, partner_currency, partner_currency, ADJUSTMENTS_MAX).await?;
        let (id, currency) = partner_currency;
        let mut group = PayoutCandidate { owed: sum(&adjustments)?, ..PayoutCandidate::default() };
        let mut after = None;
        loop {
            let found = commission::list_payable_in_group(store, account, id, currency, after, LINES_AT_ONCE).await?;
            after = found.last().map(|free| free.line);
            let lines: Vec<_> = found.iter().map(|free| free.line).collect();
            for line in commission::get_each(store, account, &lines).await? {
                group.add_line(&line, self.run.cutoff);
            }
            if found.len() < LINES_AT_ONCE {
                break;
            }
        }
        let partner = partner::get(store, account, id).await?;
        let pays = match &partner {
            Some(partner) => {
                partner::check_unchanged(&mut self.batch, partner);
                self.evaluate_group(partner, currency, &group)?
            }
            None => None,
        };
        let Some(partner) = partner.filter(|_| pays.is_some()) else {
            self.run.phase = Some(PayoutRunPhase::Drafting { after: Some(partner_currency), filling: None });
            return Ok(self.into_batch(true));
        };
        let mut payout = self.new_payout(&partner, currency);
        let filling = self.fill_lines(&mut payout, id, currency, None).await?;
        self.run.phase = Some(self.phase_after(&mut payout, partner_currency, filling).await?);
        self.write_new(&payout)?;
        Ok(self.into_batch(true))
    }

    /// Continues such a partner.
    async fn continue_large_partner(mut self, cursor: PayoutFillCursor) -> Result<Batch> {
        let (store, account) = (&self.context.store, self.account());
        let before = payout::get(store, account, cursor.payout).await?;
        let Some(before) = before.filter(|payout| payout.state == PayoutState::Open) else {
            // The payout was dropped meanwhile; the partner's other lines wait for the next run.
            let after = Some((cursor.partner, cursor.currency));
            self.run.phase = Some(PayoutRunPhase::Drafting { after, filling: None });
            return Ok(self.into_batch(true));
        };
        let mut payout = before.clone();
        let (partner, currency) = (before.partner, before.currency);
        let next = self.fill_lines(&mut payout, partner, currency, Some(cursor.after)).await?;
        self.run.phase = Some(self.phase_after(&mut payout, (partner, currency), next).await?);
        payout.touch(self.now);
        payout::update(&mut self.batch, &before, &payout);
        Ok(self.into_batch(true))
    }

    /// Adds lines to a payout. Returns the cursor if there are more.
    async fn fill_lines(
        &mut self,
        payout: &mut Payout,
        partner: PartnerId,
        currency: Currency,
        after: Option<CommissionId>,
    ) -> Result<Option<PayoutFillCursor>> {
        let (store, account) = (&self.context.store, self.account());
        let found = commission::list_payable_in_group(store, account, partner, currency, after, LINES_AT_ONCE).await?;
        let lines: Vec<_> = found.iter().map(|free| free.line).collect();
        let (mut group, cutoff) = (PayoutCandidate::default(), self.run.cutoff);
        for line in commission::get_each(store, account, &lines).await? {
            if group.add_line(&line, cutoff) && self.fits(payout.amount, currency, line.amount) {
                self.add_line(payout, &line)?;
            }
        }
        let last = found.last().filter(|_| found.len() == LINES_AT_ONCE);
        Ok(last.map(|free| PayoutFillCursor { partner, currency, payout: payout.id, after: free.line }))
    }

    /// Returns the phase after a step of such a partner. The last step nets the adjustments.
    async fn phase_after(
        &mut self,
        payout: &mut Payout,
        group: PartnerCurrency,
        filling: Option<PayoutFillCursor>,
    ) -> Result<PayoutRunPhase> {
        if filling.is_some() {
            // The group is unfinished: `after` still points before it.
            let Some(PayoutRunPhase::Drafting { after, .. }) = &self.before.phase else {
                return Ok(PayoutRunPhase::Drafting { after: None, filling });
            };
            return Ok(PayoutRunPhase::Drafting { after: *after, filling });
        }
        let (store, account) = (&self.context.store, self.account());
        let adjustments = adjustment::list_unassigned(store, account, group, group, ADJUSTMENTS_MAX).await?;
        self.net_adjustments(payout, &adjustments)?;
        let minimum = self.program.settings.min_payout.get(&group.1).copied().unwrap_or(0);
        if payout.amount <= 0 || payout.amount < minimum {
            self.drop_filled(payout)?;
        }
        Ok(PayoutRunPhase::Drafting { after: Some(group), filling: None })
    }

    /// Drops a payout that fell below the minimum while it was filled.
    fn drop_filled(&mut self, payout: &mut Payout) -> Result<()> {
        let amount = payout.amount.max(0);
        let reason = SkipReason::BelowMinimum;
        self.skip_partner(&SkippedPartner { partner: payout.partner, currency: payout.currency, amount, reason });
        self.run.remove_payout(payout)?;
        (payout.state, payout.trail) = (PayoutState::Dropped, Some(LineCursor::default()));
        payout_job::schedule(&mut self.batch, payout.account, PayoutJob::Payout(payout.id), self.now);
        Ok(())
    }

    /// Ends drafting, after the last partner.
    fn finish(mut self) -> Batch {
        if self.run.payouts == 0 {
            self.run.phase = Some(PayoutRunPhase::Voiding);
            return self.into_batch(true);
        }
        let can_ask = self.program.processor.as_ref().is_some_and(PaymentProcessor::has_api_access);
        self.run.phase =
            can_ask.then(|| PayoutRunPhase::Comparing { after: ReconciliationCursor::default(), tries: 0 });
        let is_unfinished = can_ask || self.run.sifted.is_some();
        self.into_batch(is_unfinished)
    }

    fn into_batch(mut self, is_unfinished: bool) -> Batch {
        let (account, work) = (self.run.account, PayoutJob::Run(self.run.id));
        program::check_unchanged(&mut self.batch, &self.program);
        payout_run::update(&mut self.batch, &self.before, &self.run);
        if is_unfinished {
            payout_job::schedule(&mut self.batch, account, work, lease_until(self.now));
        } else {
            payout_job::delete(&mut self.batch, account, work);
        }
        self.batch
    }
}

/// Groups payable lines and unassigned adjustments by partner and currency, in key order. Each group has at most
/// [`ADJUSTMENTS_MAX`] adjustments.
fn grouped(lines: &[PayableCommission], adjustments: Vec<Adjustment>) -> BTreeMap<PartnerCurrency, PayableGroup> {
    let mut groups: BTreeMap<PartnerCurrency, PayableGroup> = BTreeMap::new();
    for free in lines {
        groups.entry((free.partner, free.currency)).or_default().lines.push(free.line);
    }
    for adjustment in adjustments {
        let group = groups.entry((adjustment.partner, adjustment.currency)).or_default();
        if group.adjustments.len() < ADJUSTMENTS_MAX {
            group.adjustments.push(adjustment);
        }
    }
    groups
}

fn sum(adjustments: &[Adjustment]) -> Result<i64> {
    let sum = adjustments.iter().try_fold(0_i64, |sum, adjustment| sum.checked_add(adjustment.amount));
    Ok(sum.ok_or(ArithmeticError::TooLarge)?)
}
