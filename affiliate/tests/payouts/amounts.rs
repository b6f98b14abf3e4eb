//! Amounts up to the maximum, and beyond it.

use affiliate::error::LedgerError;
use affiliate::ledger::ingest::IngestOutcome;
use affiliate::processor::{AMOUNT_MAX, FieldProblem};
use model::affiliate::payout::PayoutStatus;
use store::affiliate::commission;
use store::engine::Batch;

use super::setting::payable;

#[tokio::test]
async fn the_largest_sales_are_booked_and_paid_out() {
    let world = payable().await;
    for nth in 0..12 {
        world.sell(&format!("in_{nth}"), AMOUNT_MAX, 10 + nth).await;
    }
    let larger = world.paid("in_larger", "cus_1", AMOUNT_MAX + 1, 30);
    let IngestOutcome::Failed(LedgerError::Unreadable(reason)) = world.try_ingest(&larger).await else {
        panic!("the invoice was booked")
    };
    assert_eq!(reason.problem, FieldProblem::AmountTooLarge);
    assert!(reason.field.starts_with("data.object."), "{reason}");
    world.check_ledger().await;
    world.earn().await;
    let run = world.draft().await;
    world.approve(&run).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    assert_eq!(payout.amount, 12 * AMOUNT_MAX / 5);
    world.check_ledger().await;
}

/// Lines written under a higher limit on amounts: those that exceed a payout's maximum are left for the next run.
#[tokio::test]
async fn lines_that_exceed_a_payout_wait_for_the_next_run() {
    let world = payable().await;
    for nth in 0..6 {
        world.sell(&format!("in_{nth}"), 10_000, 10 + nth).await;
    }
    world.earn().await;
    for nth in 0..6 {
        let lines = commission::list_by_invoice(world.store(), world.account, &format!("in_{nth}")).await.unwrap();
        for before in lines.iter().filter(|line| line.partner == world.ada) {
            let mut after = before.clone();
            after.amount = i64::MAX / 5;
            after.rev += 1;
            let mut batch = Batch::progress();
            commission::update(&mut batch, before, &after);
            world.store().commit(batch).await.unwrap();
        }
    }
    let run = world.draft().await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((payout.lines, payout.amount), (1, i64::MAX / 5));
    world.approve(&run).await;
}
