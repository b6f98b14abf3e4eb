//! Payouts: I2, I3 and their part of I4. A payout's `trail` or a run's `phase` shows that lines are still being updated
//! in batches; lines that do not yet match are then no violation.

use std::collections::BTreeMap;

use model::affiliate::commission::{Commission, CommissionState};
use model::affiliate::money::Currency;
use model::affiliate::payout::{Payout, PayoutRun, PayoutRunPhase, PayoutRunStatus, PayoutState};
use store::affiliate::{adjustment, commission, payout, payout_run};

use super::auditor::{Auditor, PAGE_ROWS, REMEMBERED_MAX, next_page};
use super::events::check_payout_events;
use super::report::Invariant;
use crate::error::LedgerResult as Result;
use crate::ledger::unit_of_work::ADJUSTMENTS_MAX;

/// Sums over the payouts of a run.
#[derive(Default)]
struct RunTotals {
    totals: BTreeMap<Currency, i128>,
    payouts: u32,
    open: u32,
    transfers: u32,
}

pub(super) async fn payouts(audit: &mut Auditor<'_>) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let mut page = None;
    while let Some(wanted) = next_page(page.as_ref()) {
        let next = payout_run::list_all(store, account, wanted).await?;
        for run in &next.rows {
            if audit.is_over() {
                return Ok(());
            }
            check_run(audit, run).await?;
        }
        page = Some(next);
    }
    Ok(())
}

async fn check_run(audit: &mut Auditor<'_>, run: &PayoutRun) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let (mut sums, mut after) = (RunTotals::default(), None);
    loop {
        let found = payout::list_by_run(store, account, run.id, after, PAGE_ROWS).await?;
        after = found.last().map(|last| last.id);
        for payout in &found {
            if audit.is_over() {
                return Ok(());
            }
            audit.checked.payouts += 1;
            sums.count(payout);
            check_payout(audit, payout, run).await?;
            check_payout_events(audit, payout).await?;
        }
        if found.len() < PAGE_ROWS {
            break;
        }
        tokio::task::yield_now().await;
    }
    if run.status == PayoutRunStatus::Cancelled {
        let is_empty = sums.payouts == 0 || run.phase == Some(PayoutRunPhase::Sweeping);
        audit.check(is_empty, Invariant::I2, run.id, || "is cancelled but has payouts".to_owned());
        return Ok(());
    }
    let totals: BTreeMap<Currency, i128> =
        run.totals.iter().map(|(currency, total)| (*currency, i128::from(*total))).collect();
    audit.check(totals == sums.totals, Invariant::I2, run.id, || {
        format!("stores the totals {totals:?}, but its payouts sum to {:?}", sums.totals)
    });
    let counts = (run.payouts, run.open);
    audit.check(counts == (sums.payouts, sums.open), Invariant::I2, run.id, || {
        format!("stores {counts:?} payouts and open payouts, but has {:?}", (sums.payouts, sums.open))
    });
    let is_counted = run.is_approved() || run.transfers == sums.transfers;
    audit.check(is_counted, Invariant::I2, run.id, || "stores a wrong number of transfers".to_owned());
    let is_over = run.status == PayoutRunStatus::Completed;
    let fits = !run.is_approved() || is_over == (sums.open == 0);
    audit.check(fits, Invariant::I3, run.id, || format!("is {} with {} open payouts", run.status, sums.open));
    Ok(())
}

/// The payout equals the sum of its lines and adjustments, and the lines have its state.
async fn check_payout(audit: &mut Auditor<'_>, payout: &Payout, run: &PayoutRun) -> Result<()> {
    let (store, account) = (&audit.context.store, audit.account());
    let (mut amount, mut lines, mut after) = (0_i128, 0_u32, None);
    loop {
        let found = commission::list_by_payout(store, account, payout.id, after, PAGE_ROWS).await?;
        after = found.last().map(|last| last.id);
        if audit.is_over() {
            return Ok(());
        }
        for line in &found {
            amount += i128::from(line.amount);
            lines = lines.saturating_add(1);
            let is_same_partner = line.partner == payout.partner && line.currency == payout.currency;
            audit.check(is_same_partner, Invariant::I2, payout.id, || {
                format!("has {}, which belongs to another partner or currency", line.id)
            });
            audit.check(has_followed(line, payout), Invariant::I3, line.id, || {
                format!("is {}, but its payout {} is {}", line.status.word(), payout.id, payout.state)
            });
        }
        if found.len() < PAGE_ROWS {
            break;
        }
    }
    let adjustments = adjustment::list_by_payout(store, account, payout.id, ADJUSTMENTS_MAX).await?;
    let adjusted: i128 = adjustments.iter().map(|adjustment| i128::from(adjustment.amount)).sum();
    let is_released = matches!(payout.state, PayoutState::Failed | PayoutState::Dropped)
        || run.phase == Some(PayoutRunPhase::Sweeping);
    if is_released {
        let may_be_empty = lines == 0 || payout.trail.is_some() || run.phase.is_some();
        audit.check(may_be_empty, Invariant::I3, payout.id, || format!("is {} but has lines", payout.state));
        return Ok(());
    }
    let sum = amount + adjusted;
    audit.check(sum == i128::from(payout.amount) && lines == payout.lines, Invariant::I2, payout.id, || {
        format!("stores {} from {} lines, but has {lines} lines that sum to {sum}", payout.amount, payout.lines)
    });
    let is_adjusted = adjusted == i128::from(payout.adjusted);
    audit.check(is_adjusted, Invariant::I2, payout.id, || {
        format!("stores the adjustment {}, but its adjustments sum to {adjusted}", payout.adjusted)
    });
    let is_filling = matches!(run.phase, Some(PayoutRunPhase::Drafting { .. }));
    audit.check(payout.amount > 0 || is_filling, Invariant::I2, payout.id, || {
        format!("has the amount {}", payout.amount)
    });
    Ok(())
}

/// The payout that the line refers to exists.
pub(super) async fn check_payout_of_line(audit: &mut Auditor<'_>, line: &Commission) -> Result<()> {
    let Some(id) = line.status.payout() else { return Ok(()) };
    if audit.existing_payouts.contains(&id) {
        return Ok(());
    }
    let found = payout::get(&audit.context.store, audit.account(), id).await?;
    if found.is_some() && audit.existing_payouts.len() < REMEMBERED_MAX {
        audit.existing_payouts.insert(id);
    }
    audit.check(found.is_some(), Invariant::I3, line.id, || format!("is in {id}, which does not exist"));
    Ok(())
}

/// True if the line's state matches its payout's, or is about to be updated.
fn has_followed(line: &Commission, payout: &Payout) -> bool {
    let is_paid = matches!(line.status, CommissionState::Paid { .. });
    match payout.state {
        PayoutState::Open => !is_paid,
        PayoutState::Paid => is_paid || payout.trail.is_some(),
        PayoutState::Failed | PayoutState::Dropped => payout.trail.is_some(),
    }
}

impl RunTotals {
    fn count(&mut self, payout: &Payout) {
        if payout.state == PayoutState::Dropped {
            return;
        }
        let total = self.totals.entry(payout.currency).or_default();
        *total += i128::from(payout.amount);
        self.payouts = self.payouts.saturating_add(1);
        if payout.state == PayoutState::Open {
            self.open = self.open.saturating_add(1);
            self.transfers = self.transfers.saturating_add(u32::from(!payout.method.is_manual()));
        }
    }
}
