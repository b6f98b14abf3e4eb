//! Payouts, runs and adjustments in a unit of work.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::affiliate::arithmetic::ArithmeticError;
use model::affiliate::commission::{Commission, CommissionState};
use model::affiliate::payout::{Adjustment, Payout, PayoutRun, PayoutRunPhase, PayoutState, SkippedPartner};
use model::affiliate::recompute::AdjustmentDue;
use model::id::{AdjustmentId, CommissionId, PartnerId, PayoutId, PayoutRunId};
use store::affiliate::adjustment::{self, AdjustmentTotal};
use store::affiliate::payout_job::{self, PayoutJob};
use store::affiliate::{payout, payout_run};
use store::engine::{Batch, ReadError};

use super::tracked_rows::{RowSource, TrackedRow, TrackedRows};

/// Maximum adjustments that one payout nets; the rest is netted in the next payout.
pub(crate) const ADJUSTMENTS_MAX: usize = 500;
/// Page size when a partner's open payouts are listed.
const PAYOUTS_AT_ONCE: usize = 200;

/// Tracked rows of payouts, runs and adjustments.
pub(crate) struct PayoutRows {
    source: RowSource,
    payouts: TrackedRows<PayoutId, Payout>,
    runs: TrackedRows<PayoutRunId, PayoutRun>,
    /// The open run or its absence, as read; checked at commit. `None` if it was not read.
    open: Option<Option<PayoutRun>>,
    /// Totals of existing adjustments, by line.
    sums: BTreeMap<CommissionId, AdjustmentTotal>,
    /// New adjustments, at most one per line.
    pub(super) new_adjustments: BTreeMap<CommissionId, Adjustment>,
    released_adjustments: Vec<Adjustment>,
    /// Lines to remove from the items of a payout.
    pub(crate) removed_items: Vec<(PayoutId, CommissionId)>,
    /// Partners that runs skip, each with the whole amount for its reason.
    skipped: Vec<(PayoutRunId, SkippedPartner)>,
    /// Jobs to schedule, or to delete (`None`).
    jobs: BTreeMap<PayoutJob, Option<Timestamp>>,
}

impl PayoutRows {
    pub(super) fn new(source: RowSource) -> Self {
        Self {
            source,
            payouts: TrackedRows::default(),
            runs: TrackedRows::default(),
            open: None,
            sums: BTreeMap::new(),
            new_adjustments: BTreeMap::new(),
            released_adjustments: Vec::new(),
            removed_items: Vec::new(),
            skipped: Vec::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// Returns a payout for reading and changing.
    pub(crate) async fn load(&mut self, id: PayoutId) -> Result<Option<&mut Payout>, ReadError> {
        self.payouts.load(id, payout::get(&self.source.store, self.source.account, id)).await
    }

    /// Returns a copy of a payout.
    pub(crate) async fn get(&mut self, id: PayoutId) -> Result<Option<Payout>, ReadError> {
        Ok(self.load(id).await?.map(|found| found.clone()))
    }

    /// Returns the payout with its changes, if it was loaded.
    pub(super) fn loaded(&self, id: PayoutId) -> Option<&Payout> {
        self.payouts.get(&id)
    }

    /// Returns a run for reading and changing.
    pub(crate) async fn run(&mut self, id: PayoutRunId) -> Result<Option<&mut PayoutRun>, ReadError> {
        self.runs.load(id, payout_run::get(&self.source.store, self.source.account, id)).await
    }

    /// Makes the commit depend on the open run being unchanged, so that no payout is added to a draft concurrently.
    pub(crate) async fn require_no_drafting(&mut self) -> Result<Option<&PayoutRun>, ReadError> {
        if self.open.is_none() {
            self.open = Some(payout_run::find_open(&self.source.store, self.source.account).await?);
        }
        Ok(self.open.iter().flatten().next())
    }

    /// Schedules a job, or deletes it (`None`).
    pub(crate) fn schedule_job(&mut self, work: PayoutJob, due: Option<Timestamp>) {
        self.jobs.insert(work, due);
    }

    /// True if a payout has released its lines, though their rows may not be updated yet.
    pub(super) async fn has_released_lines(&mut self, id: PayoutId) -> Result<bool, ReadError> {
        let Some(payout) = self.load(id).await? else { return Ok(true) };
        let (state, run) = (payout.state, payout.run);
        Ok(match state {
            PayoutState::Failed | PayoutState::Dropped => true,
            PayoutState::Paid => false,
            PayoutState::Open => self.run(run).await?.is_none_or(|run| run.phase == Some(PayoutRunPhase::Sweeping)),
        })
    }

    /// Returns the lines that cannot leave their payouts, because these are paid or their runs approved.
    pub(crate) async fn locked_lines(&mut self, lines: &[Commission]) -> Result<BTreeSet<CommissionId>, ReadError> {
        let mut locked = BTreeSet::new();
        for line in lines {
            let CommissionState::InPayout { payout, .. } = line.status else { continue };
            let Some(payout) = self.load(payout).await? else { continue };
            let (state, run) = (payout.state, payout.run);
            if state == PayoutState::Paid || self.run(run).await?.is_some_and(|run| run.is_approved()) {
                locked.insert(line.id);
            }
        }
        Ok(locked)
    }

    /// Returns the payout if it is open and its run neither approved nor cancelled.
    pub(crate) async fn payout_in_draft(&mut self, id: PayoutId) -> Result<Option<Payout>, ReadError> {
        let Some(payout) = self.get(id).await? else { return Ok(None) };
        let Some(run) = self.run(payout.run).await? else { return Ok(None) };
        let is_in_draft =
            payout.state == PayoutState::Open && !run.is_approved() && run.phase != Some(PayoutRunPhase::Sweeping);
        Ok(is_in_draft.then_some(payout))
    }

    /// Returns a partner's payouts in the draft, one per currency. Payouts of earlier runs are older than the draft run
    /// and are skipped by their id.
    pub(crate) async fn draft_payouts_of(&mut self, partner: PartnerId) -> Result<Vec<PayoutId>, ReadError> {
        let Some(run) = self.require_no_drafting().await? else { return Ok(Vec::new()) };
        let (mut payouts, mut after) = (Vec::new(), Some(PayoutId::new(run.created_at, 0)));
        let RowSource { store, account } = &self.source;
        while let Some(last) = after {
            let found = payout::list_open_by_partner(store, *account, partner, Some(last), PAYOUTS_AT_ONCE).await?;
            after = found.last().map(|last| last.id).filter(|_| found.len() == PAYOUTS_AT_ONCE);
            payouts.extend(found.into_iter().map(|open| open.id));
        }
        Ok(payouts)
    }

    /// Returns the sum of each line's adjustments, including new ones.
    pub(crate) async fn adjustment_totals(
        &mut self,
        lines: &[Commission],
    ) -> Result<BTreeMap<CommissionId, i64>, ReadError> {
        let unread = lines.iter().map(|line| line.id).filter(|id| !self.sums.contains_key(id));
        let unread: Vec<CommissionId> = unread.collect();
        let found = adjustment::line_totals(&self.source.store, self.source.account, &unread).await?;
        self.sums.extend(unread.into_iter().zip(found));
        let total = |line: &Commission| {
            let before = self.sums.get(&line.id).map_or(0, |sum| sum.amount);
            let new = self.new_adjustments.get(&line.id).map_or(0, |adjustment| adjustment.amount);
            (line.id, before.saturating_add(new))
        };
        Ok(lines.iter().map(total).collect())
    }

    /// Changes what a partner is owed; `id` is that of a new adjustment. All adjustments of one line in one commit are
    /// merged into one.
    pub(crate) fn add_adjustment(
        &mut self,
        wanted: &AdjustmentDue,
        id: AdjustmentId,
        created_at: Timestamp,
    ) -> Result<(), ArithmeticError> {
        let AdjustmentDue { line, partner, amount, currency } = *wanted;
        let account = self.source.account;
        let new = Adjustment { id, account, partner, line, amount: 0, currency, payout: None, created_at };
        let adjustment = self.new_adjustments.entry(line).or_insert(new);
        adjustment.amount = adjustment.amount.checked_add(amount).ok_or(ArithmeticError::TooLarge)?;
        if adjustment.amount == 0 {
            self.new_adjustments.remove(&line);
        }
        Ok(())
    }

    /// Releases the adjustments of a payout, so that another payout nets them.
    pub(crate) async fn release_adjustments(&mut self, id: PayoutId) -> Result<(), ReadError> {
        let found = adjustment::list_by_payout(&self.source.store, self.source.account, id, ADJUSTMENTS_MAX).await?;
        for adjustment in found {
            if !self.released_adjustments.iter().any(|released| released.id == adjustment.id) {
                self.released_adjustments.push(adjustment);
            }
        }
        Ok(())
    }

    /// Adds an amount to what a run skips of a partner for the same reason. The caller also changes the run's row, so
    /// that a concurrent addition conflicts.
    pub(crate) async fn add_skipped(&mut self, run: PayoutRunId, added: SkippedPartner) -> Result<(), ReadError> {
        let key = (run, added.partner, added.currency, added.reason);
        let is_known =
            |run: PayoutRunId, other: &SkippedPartner| key == (run, other.partner, other.currency, other.reason);
        if let Some((_, known)) = self.skipped.iter_mut().find(|(run, other)| is_known(*run, other)) {
            known.amount = known.amount.saturating_add(added.amount);
            return Ok(());
        }
        let stored = payout_run::get_skipped(&self.source.store, self.source.account, run, &added).await?;
        let amount = stored.map_or(0, |stored| stored.amount).saturating_add(added.amount);
        self.skipped.push((run, SkippedPartner { amount, ..added }));
        Ok(())
    }

    /// Writes changed rows, and makes the commit depend on every loaded row being unchanged.
    pub(super) fn write(&self, batch: &mut Batch) {
        let account = self.source.account;
        for TrackedRow { before, now } in self.payouts.rows() {
            let Some(before) = before else { continue };
            if before == now {
                payout::check_unchanged(batch, before);
            } else if now.state == PayoutState::Dropped && now.trail.is_none() {
                payout::delete(batch, before);
            } else {
                payout::update(batch, before, now);
            }
        }
        for TrackedRow { before, now } in self.runs.rows() {
            let Some(before) = before else { continue };
            if before != now {
                payout_run::update(batch, before, now);
            } else if !before.is_approved() {
                // An approved run never becomes a draft again; its other changes do not matter here.
                payout_run::check_unchanged(batch, before);
            }
        }
        if let Some(open) = &self.open {
            payout_run::check_open(batch, account, open.as_ref().map(|open| open.id));
            open.iter().for_each(|open| payout_run::check_unchanged(batch, open));
        }
        for (line, sum) in &self.sums {
            match self.new_adjustments.get(line) {
                Some(adjustment) => adjustment::create(batch, adjustment, sum),
                None => adjustment::check_total(batch, account, *line, sum),
            }
        }
        for before in &self.released_adjustments {
            adjustment::update(batch, before, &Adjustment { payout: None, ..before.clone() });
        }
        for (payout, line) in &self.removed_items {
            payout::delete_item(batch, account, *payout, *line);
        }
        for (run, skipped) in &self.skipped {
            payout_run::put_skipped(batch, account, *run, skipped);
        }
        for (work, due) in &self.jobs {
            match due {
                Some(due) => payout_job::schedule(batch, account, *work, *due),
                None => payout_job::delete(batch, account, *work),
            }
        }
    }
}
