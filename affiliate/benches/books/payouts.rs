//! Payout runs: paid ones, an approved one, and a draft of the rest.

use affiliate::context::no_extension;
use std::collections::BTreeMap;

use jiff::Timestamp;
use model::affiliate::payout::{Payout, PayoutRun, PayoutRunStatus, PayoutState, TransferAttempts};
use model::affiliate::program::PayoutMethod;
use model::id::PayoutId;
use store::affiliate::{payout, payout_run};
use store::engine::Batch;

use super::copies::{PayoutKey, Sum, Written, payout_id};
use super::fixture::Fixture;
use super::partners::email;
use super::scale::{PAID_RUNS, Scale, days};

/// Payouts per commit.
const AT_ONCE: usize = 500;

/// The draft run and the period of its payouts.
pub(crate) struct Drafted {
    /// Payouts of all runs.
    pub(crate) payouts: usize,
    pub(crate) run: PayoutRun,
    pub(crate) until: Timestamp,
}

/// One partner in a hundred has a failed payout in each run; its lines are in another payout.
fn fails(partner: u64) -> bool {
    partner % 100 == 7
}

fn payout_of(fixture: &Fixture, scale: &Scale, id: PayoutId, key: PayoutKey, sum: Sum, state: PayoutState) -> Payout {
    let (run, partner, currency) = key;
    let (at, is_paid) = (scale.run_at(run), state == PayoutState::Paid);
    Payout {
        id,
        account: fixture.account,
        partner: scale.partner_id(partner),
        run: scale.run_id(run),
        amount: sum.amount,
        currency,
        adjusted: 0,
        lines: sum.lines,
        method: PayoutMethod::Paypal,
        destination: email(partner),
        state,
        trail: None,
        transfer: None,
        asking: TransferAttempts::default(),
        reference: is_paid.then(|| format!("BATCH-{run}")),
        failure_reason: (state == PayoutState::Failed).then(|| "The account is closed".to_owned()),
        paid_at: is_paid.then(|| at + days(1)),
        rev: 1,
        created_at: at,
        updated_at: at,
    }
}

async fn write_run(fixture: &Fixture, scale: &Scale, number: u32, payouts_of_run: &[(PayoutKey, Sum)]) -> usize {
    let (at, is_paid) = (scale.run_at(number), number < PAID_RUNS);
    let state = if is_paid { PayoutState::Paid } else { PayoutState::Open };
    let to_payout =
        |(key, sum): &(PayoutKey, Sum)| payout_of(fixture, scale, payout_id(scale, *key), *key, *sum, state);
    let mut payouts: Vec<Payout> = payouts_of_run.iter().map(to_payout).collect();
    let open = if is_paid { 0 } else { payouts.len() };
    for partner in (0..scale.partners).filter(|partner| fails(*partner)) {
        let key = (number, partner, "usd".parse().unwrap());
        let (id, sum) = (scale.payout_id(number, partner, 2), Sum { amount: 500, lines: 1 });
        payouts.push(payout_of(fixture, scale, id, key, sum, PayoutState::Failed));
    }
    let mut run = PayoutRun {
        id: scale.run_id(number),
        account: fixture.account,
        status: if is_paid { PayoutRunStatus::Completed } else { PayoutRunStatus::Processing },
        phase: None,
        sifted: None,
        is_partial: true,
        cutoff: at,
        totals: BTreeMap::new(),
        payouts: u32::try_from(payouts.len()).unwrap(),
        open: u32::try_from(open).unwrap(),
        transfers: 0,
        uncompared: 0,
        rev: 1,
        created_at: at,
        approved_at: Some(at),
        completed_at: is_paid.then(|| at + days(1)),
    };
    for payout in &payouts {
        run.add_to_total(payout.currency, payout.amount).unwrap();
    }
    for chunk in payouts.chunks(AT_ONCE) {
        let mut batch = Batch::intake();
        chunk.iter().for_each(|payout| payout::create(&mut batch, payout));
        fixture.store().commit(batch).await.unwrap();
    }
    let mut batch = Batch::intake();
    payout_run::create(&mut batch, &run);
    fixture.store().commit(batch).await.unwrap();
    let mut batch = Batch::progress();
    payout_run::close(&mut batch, &run);
    fixture.store().commit(batch).await.unwrap();
    payouts.len()
}

/// Writes the runs, and drafts the last one.
pub(crate) async fn write(fixture: &Fixture, scale: &Scale, written: &Written) -> Drafted {
    let mut payouts = 0;
    for number in 0..=PAID_RUNS {
        let in_run = written.payouts.iter().filter(|((run, ..), _)| *run == number);
        let in_run: Vec<_> = in_run.map(|(key, sum)| (*key, *sum)).collect();
        payouts += write_run(fixture, scale, number, &in_run).await;
    }
    let ledger = fixture.ledger();
    let run = ledger.begin_run(fixture.account, None, &no_extension).await.unwrap();
    let drafted = ledger.finish_draft(fixture.account, run).await.unwrap();
    let reasons = drafted.skipped.iter().take(5).collect::<Vec<_>>();
    let run = drafted.run.unwrap_or_else(|| panic!("the run has no payouts: {reasons:?}"));
    payouts += usize::try_from(run.payouts).unwrap();
    let until = net::clock::Clock::default().now();
    Drafted { payouts, run, until }
}
