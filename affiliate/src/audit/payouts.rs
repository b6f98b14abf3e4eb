//! Payouts: I2, I3 and what of I4 is theirs. What is under way with a payout's lines, its row says: of one whose lines
//! follow it still, those that do not yet are not broken.

use std::collections::BTreeMap;

use mail::affiliate::commission::{Commission, Status};
use mail::affiliate::money::Currency;
use mail::affiliate::payout::{Payout, PayoutRun, PayoutState, Phase, RunStatus};
use store::affiliate::{adjustment, commission, payout, payout_run};

use super::{Auditor, Invariant, PAGE_ROWS, wanted};
use crate::ledger::{ADJUSTMENTS_MAX, Fault};

/// What the payouts of a run come to.
#[derive(Default)]
struct Sums {
    totals: BTreeMap<Currency, i128>,
    payouts: u32,
    open: u32,
    transfers: u32,
}

impl Auditor<'_> {
    pub(super) async fn payouts(&mut self) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let mut page = None;
        while let Some(wanted) = wanted(page.as_ref()) {
            let next = payout_run::every(store, account, wanted).await?;
            for run in &next.rows {
                self.run(run).await?;
            }
            page = Some(next);
        }
        Ok(())
    }

    async fn run(&mut self, run: &PayoutRun) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let (mut sums, mut after) = (Sums::default(), None);
        loop {
            let found = payout::of_run(store, (account, run.id), after, PAGE_ROWS).await?;
            after = found.last().map(|last| last.id);
            for one in &found {
                self.checked.payouts += 1;
                sums.count(one);
                self.payout(one, run).await?;
                self.told_of_payout(one).await?;
            }
            if found.len() < PAGE_ROWS {
                break;
            }
        }
        if run.status == RunStatus::Cancelled {
            let is_empty = sums.payouts == 0 || run.phase == Some(Phase::Sweeping);
            self.expect(is_empty, Invariant::I2, run.id, || "is cancelled and has payouts".to_owned());
            return Ok(());
        }
        let totals: BTreeMap<Currency, i128> =
            run.totals.iter().map(|(currency, total)| (*currency, i128::from(*total))).collect();
        self.expect(totals == sums.totals, Invariant::I2, run.id, || {
            format!("says that it comes to {totals:?}, and its payouts to {:?}", sums.totals)
        });
        let counts = (run.payouts, run.open);
        self.expect(counts == (sums.payouts, sums.open), Invariant::I2, run.id, || {
            format!("says {counts:?} payouts and open ones, and has {:?}", (sums.payouts, sums.open))
        });
        let is_counted = run.is_approved() || run.transfers == sums.transfers;
        self.expect(is_counted, Invariant::I2, run.id, || "counts other transfers than it has".to_owned());
        let is_over = run.status == RunStatus::Completed;
        let fits = !run.is_approved() || is_over == (sums.open == 0);
        self.expect(fits, Invariant::I3, run.id, || {
            format!("is {} with {} open payouts", run.status, sums.open)
        });
        Ok(())
    }

    /// A payout comes to its lines and its adjustments, and these follow it.
    async fn payout(&mut self, one: &Payout, run: &PayoutRun) -> Result<(), Fault> {
        let (store, account) = (self.ledger.store(), self.account());
        let (mut amount, mut lines, mut after) = (0_i128, 0_u32, None);
        loop {
            let found = commission::of_payout(store, (account, one.id), after, PAGE_ROWS).await?;
            after = found.last().map(|last| last.id);
            for line in &found {
                amount += i128::from(line.amount);
                lines = lines.saturating_add(1);
                let is_its = line.partner == one.partner && line.currency == one.currency;
                self.expect(is_its, Invariant::I2, one.id, || {
                    format!("has {}, which is another partner's or of another currency", line.id)
                });
                self.expect(follows(line, one), Invariant::I3, line.id, || {
                    format!("is {}, and its payout {} is {}", line.status.word(), one.id, one.state)
                });
            }
            if found.len() < PAGE_ROWS {
                break;
            }
        }
        let theirs = adjustment::of_payout(store, (account, one.id), ADJUSTMENTS_MAX).await?;
        let adjusted: i128 = theirs.iter().map(|adjustment| i128::from(adjustment.amount)).sum();
        let is_let_go = matches!(one.state, PayoutState::Failed | PayoutState::Dropped)
            || run.phase == Some(Phase::Sweeping);
        if is_let_go {
            let is_free = lines == 0 || one.trail.is_some() || run.phase.is_some();
            self.expect(is_free, Invariant::I3, one.id, || format!("is {}, and has lines", one.state));
            return Ok(());
        }
        let sum = amount + adjusted;
        self.expect(sum == i128::from(one.amount) && lines == one.lines, Invariant::I2, one.id, || {
            format!("is {} by {} lines, which are {lines} and come to {sum}", one.amount, one.lines)
        });
        let is_adjusted = adjusted == i128::from(one.adjusted);
        self.expect(is_adjusted, Invariant::I2, one.id, || {
            format!("nets {}, and its adjustments come to {adjusted}", one.adjusted)
        });
        let is_filling = matches!(run.phase, Some(Phase::Drafting { .. }));
        self.expect(one.amount > 0 || is_filling, Invariant::I2, one.id, || {
            format!("comes to {}", one.amount)
        });
        Ok(())
    }

    /// What a line says of its payout is so.
    pub(super) async fn payout_of(&mut self, line: &Commission) -> Result<(), Fault> {
        let Some(id) = line.status.payout() else { return Ok(()) };
        let found = payout::get(self.ledger.store(), self.account(), id).await?;
        self.expect(found.is_some(), Invariant::I3, line.id, || format!("is in {id}, which there is not"));
        Ok(())
    }
}

/// Whether a line stands as its payout does, or is to follow it.
fn follows(line: &Commission, payout: &Payout) -> bool {
    let is_paid = matches!(line.status, Status::Paid { .. });
    match payout.state {
        PayoutState::Open => !is_paid,
        PayoutState::Paid => is_paid || payout.trail.is_some(),
        PayoutState::Failed | PayoutState::Dropped => payout.trail.is_some(),
    }
}

impl Sums {
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
