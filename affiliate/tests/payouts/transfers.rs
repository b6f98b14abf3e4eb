//! Transfers of the processor, and how its responses settle payouts.

use std::time::Duration;

use affiliate::error::{AffiliateError, ConflictReason};
use affiliate::payouts::transfers::TransferResponse;
use model::affiliate::payout::{PayoutRun, PayoutRunStatus, PayoutStatus};
use model::affiliate::program::PayoutMethod;
use model::id::PayoutId;
use serde_json::json;

use super::setting::{Script, payable};
use super::world::World;

/// Creates an approved run with one payout of Ada's.
async fn approved() -> (World, PayoutRun) {
    let world = payable().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    world.change(world.bob, |bob| bob.payout = None).await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let run = world.draft().await;
    world.approve(&run).await;
    (world, run)
}

impl World {
    async fn work_after(&self, seconds: u64, processor: &Script) {
        self.clock.advance(Duration::from_secs(seconds));
        self.work(processor).await;
        self.check_ledger().await;
    }

    async fn adas(&self, status: PayoutStatus) -> model::affiliate::payout::Payout {
        self.payout_of(self.ada, status).await.payout
    }
}

#[tokio::test]
pub(crate) async fn a_transfer_is_made() {
    let (world, run) = approved().await;
    let processor = Script::default();
    world.work(&processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!((paid.transfer.as_deref(), processor.total()), (Some("tr_0"), 2_000));
    assert_eq!(processor.keys(), [format!("{}:1", paid.id)]);
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Completed);
    world.work_after(86_400, &processor).await;
    assert_eq!(processor.keys().len(), 1);
}

#[tokio::test]
pub(crate) async fn an_unanswered_transfer_is_retried_with_the_same_key() {
    let (world, run) = approved().await;
    let timeout = || TransferResponse::NoResponse("timeout".to_owned());
    let processor = Script::with_responses([timeout(), timeout()]);
    world.work(&processor).await;
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Processing);
    let payout = world.adas(PayoutStatus::Processing).await;
    let refused = world.fail(payout.id, "why").await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::TransferUnderWay))), "{refused:?}");
    world.work(&processor).await;
    assert_eq!(processor.keys().len(), 1, "not before the retry is due");
    world.work_after(31, &processor).await;
    world.work_after(600, &processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!(processor.keys(), [format!("{}:1", paid.id), format!("{}:1", paid.id), format!("{}:1", paid.id)]);
    assert_eq!(processor.total(), 2_000);
}

#[tokio::test]
pub(crate) async fn a_transfer_never_sent_can_be_failed_by_hand() {
    let (world, _) = approved().await;
    let processor = Script::with_responses([
        TransferResponse::NotSent("no key".to_owned()),
        TransferResponse::NotSent("no key".to_owned()),
    ]);
    world.work(&processor).await;
    world.work_after(601, &processor).await;
    let payout = world.adas(PayoutStatus::Processing).await;
    assert_eq!((payout.asking.since, payout.asking.attempt), (None, 1));
    world.fail(payout.id, "paid otherwise").await.unwrap();
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_rejected_transfer_fails_the_payout() {
    let (world, run) = approved().await;
    let processor = Script::with_responses([TransferResponse::Rejected("No such destination".to_owned())]);
    world.work(&processor).await;
    let failed = world.adas(PayoutStatus::Failed).await;
    assert_eq!(failed.failure_reason.as_deref(), Some("No such destination"));
    let after = world.run(&run).await;
    assert_eq!((after.status, after.is_partial), (PayoutRunStatus::Completed, true));
    world.check_ledger().await;
    // The line is in the next run with a new payout and a new key.
    let next = world.draft().await;
    world.approve(&next).await;
    world.work(&processor).await;
    let keys = processor.keys();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    assert_eq!(processor.total(), 2_000);
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn insufficient_funds_are_retried_daily_with_new_keys() {
    let (world, _) = approved().await;
    let processor = Script::with_responses([TransferResponse::InsufficientFunds, TransferResponse::InsufficientFunds]);
    world.work(&processor).await;
    let id = world.adas(PayoutStatus::Processing).await.id;
    world.work_after(3_600, &processor).await;
    assert_eq!(processor.keys().len(), 1, "once a day");
    world.work_after(86_400, &processor).await;
    world.work_after(86_400, &processor).await;
    world.adas(PayoutStatus::Paid).await;
    // Each was a definite refusal, so no key is used twice.
    assert_eq!(processor.keys(), [format!("{id}:1"), format!("{id}:2"), format!("{id}:3")]);
}

#[tokio::test]
pub(crate) async fn lasting_insufficient_funds_fail_the_payout() {
    let (world, _) = approved().await;
    let processor = Script::with_responses([
        TransferResponse::InsufficientFunds,
        TransferResponse::InsufficientFunds,
        TransferResponse::InsufficientFunds,
        TransferResponse::InsufficientFunds,
    ]);
    world.work(&processor).await;
    for _ in 0..4 {
        world.work_after(86_401, &processor).await;
    }
    assert_eq!(processor.keys().len(), 4);
    world.adas(PayoutStatus::Failed).await;
}

#[tokio::test]
pub(crate) async fn a_transfer_with_an_old_key_is_looked_up_first() {
    // The transfer was created but the response lost; or the request was lost.
    for was_made in [true, false] {
        let (world, _) = approved().await;
        let processor = if was_made {
            Script::with_responses([TransferResponse::NoResponse("timeout".to_owned())])
        } else {
            // The request never arrived: the script creates nothing for this response.
            Script::with_responses([TransferResponse::InsufficientFunds])
        };
        world.work(&processor).await;
        if !was_made {
            // As if the response had been lost.
            let before = world.adas(PayoutStatus::Processing).await;
            let mut changed = before.clone();
            changed.asking.since = Some(world.clock.now());
            changed.asking.not_before = None;
            let mut batch = store::engine::Batch::progress();
            store::affiliate::payout::update(&mut batch, &before, &changed);
            world.store().commit(batch).await.unwrap();
        }
        world.work_after(30 * 3_600, &processor).await;
        assert_eq!(processor.lookups(), 1);
        if !was_made {
            world.work_after(60, &processor).await;
        }
        world.adas(PayoutStatus::Paid).await;
        assert_eq!(processor.total(), 2_000, "created once");
    }
}

#[tokio::test]
pub(crate) async fn a_transfer_reversed_before_its_response_fails_its_payout() {
    let (world, _) = approved().await;
    let processor = Script::with_responses([TransferResponse::NoResponse("timeout".to_owned())]);
    world.work(&processor).await;
    let payout = world.adas(PayoutStatus::Processing).await;
    let back = json!({
        "id": "tr_0", "amount": 2_000, "amount_reversed": 2_000, "reversed": true,
        "metadata": {"payout_id": payout.id},
    });
    world.ingest_object("transfer.reversed", 40 * 86_400, back).await;
    assert_eq!(world.adas(PayoutStatus::Failed).await.transfer.as_deref(), Some("tr_0"));
    world.work_after(86_400, &processor).await;
    assert_eq!(processor.keys().len(), 1, "the payout is settled");
}

/// A reused key proves nothing about the payout. If the payout were failed, its lines could be paid twice.
#[tokio::test]
pub(crate) async fn a_reused_key_is_looked_up() {
    let used = || TransferResponse::IdempotencyKeyReused("Keys can only be used once".to_owned());
    // The transfer was created, and its response lost.
    let (world, run) = approved().await;
    let processor = Script::with_responses([TransferResponse::NoResponse("timeout".to_owned()), used()]);
    world.work(&processor).await;
    world.work_after(31, &processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!((paid.transfer.as_deref(), processor.total(), processor.lookups()), (Some("tr_0"), 2_000, 1));
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Completed);
    // No transfer is found: the payout waits, is not failed, and is not requested with that key again.
    let (world, _) = approved().await;
    let processor = Script::with_responses([used()]);
    world.work(&processor).await;
    processor.silence_list(true);
    world.work_after(601, &processor).await;
    let waiting = world.adas(PayoutStatus::Processing).await;
    assert_eq!((waiting.asking.attempt, processor.total(), processor.lookups()), (1, 0, 2));
    assert_eq!(waiting.failure_or_obstacle(), Some("timeout"), "the owner sees why");
    processor.silence_list(false);
    world.work_after(7_201, &processor).await;
    assert_eq!((processor.keys().len(), processor.lookups()), (1, 3), "only a lookup");
    // Once the key is old enough to be forgotten and there is still no transfer, a new key is used.
    world.work_after(20 * 3_600, &processor).await;
    world.work_after(60, &processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!(processor.keys(), [format!("{}:1", paid.id), format!("{}:2", paid.id)]);
    assert_eq!(processor.total(), 2_000, "created once");
}

/// The processor has forgotten the key, so a new request would pay twice.
#[tokio::test]
pub(crate) async fn a_payout_of_a_restored_store_is_looked_up_first() {
    for was_made in [true, false] {
        let (world, _) = approved().await;
        let backup = world.adas(PayoutStatus::Processing).await;
        let processor = Script::default();
        if was_made {
            // Created after the backup, so it is not in the restored store.
            let order =
                affiliate::payouts::transfers::TransferRequest { key: format!("{}:1", backup.id), payout: backup };
            affiliate::payouts::transfers::PayoutGateway::transfer(&processor, &order).await;
            processor.forget_keys();
        }
        world.clock.advance(Duration::from_secs(3_600));
        let hold = store::queue_hold::restore_batch(world.clock.now(), true);
        world.store().commit(hold).await.unwrap();
        let request_count = processor.keys().len();
        world.work_after(3_600, &processor).await;
        assert_eq!((processor.keys().len(), processor.lookups()), (request_count, 0), "the queue is held");
        let hold_release = store::queue_hold::restore_batch(world.clock.now(), false);
        world.store().commit(hold_release).await.unwrap();
        processor.silence_list(true);
        world.work_after(61, &processor).await;
        world.work_after(601, &processor).await;
        assert_eq!(
            (processor.keys().len(), processor.lookups()),
            (request_count, 2),
            "it is unknown whether the transfer exists"
        );
        processor.silence_list(false);
        world.work_after(7_201, &processor).await;
        world.adas(PayoutStatus::Paid).await;
        assert_eq!(processor.total(), 2_000, "created once");
        assert_eq!(processor.keys().len(), 1);
    }
}

/// A run drafted in a restored store must not repeat transfers made after the backup.
#[tokio::test]
pub(crate) async fn transfers_made_after_the_backup_are_not_repeated() {
    for (amount, is_paid) in [(2_000, true), (1_500, false)] {
        let world = payable().await;
        world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
        world.change(world.bob, |bob| bob.payout = None).await;
        world.sell("in_1", 10_000, 10).await;
        world.earn().await;
        let processor = Script::default();
        // The transfer's payout is not in the backup.
        processor.add_unknown_transfer(PayoutId::new(world.clock.now(), 77), amount);
        world.clock.advance(Duration::from_secs(3_600));
        let restored = store::queue_hold::restore_batch(world.clock.now(), false);
        world.store().commit(restored).await.unwrap();
        let run = world.draft().await;
        world.approve(&run).await;
        world.work_after(61, &processor).await;
        assert_eq!((processor.keys().len(), processor.total()), (0, amount), "no transfer is requested");
        if is_paid {
            assert_eq!(world.adas(PayoutStatus::Paid).await.transfer.as_deref(), Some("tr_before"));
            // Later earnings are paid normally.
            world.sell("in_2", 10_000, 10).await;
            world.earn().await;
            let next = world.draft().await;
            world.approve(&next).await;
            world.work_after(61, &processor).await;
            assert_eq!(processor.total(), amount + 2_000);
        } else {
            let reason = world.adas(PayoutStatus::Failed).await.failure_reason.unwrap();
            assert!(reason.contains("tr_before of 1500 usd") && reason.contains("reverse it"), "{reason}");
        }
        world.check_ledger().await;
    }
}
