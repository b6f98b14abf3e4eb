//! The processor's transfers: what it says, and what becomes of payouts by it.

use std::time::Duration;

use affiliate::payouts::transfers::TransferResponse;
use affiliate::refusal::{AffiliateError, ConflictReason};
use mail::affiliate::payout::{PayoutRun, PayoutRunStatus, PayoutStatus};
use mail::affiliate::program::PayoutMethod;
use mail::id::PayoutId;
use serde_json::json;

use super::setting::{Script, payable};
use super::world::World;

/// A run of one payout of Ada's, approved.
async fn approved() -> (World, PayoutRun) {
    let world = payable().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    world.change(world.bob, |bob| bob.payout = None).await;
    world.sell("in_1", (10_000, 10)).await;
    world.earn().await;
    let run = world.draft().await;
    world.approve(&run).await;
    (world, run)
}

impl World {
    async fn later(&self, seconds: u64, processor: &Script) {
        self.clock.advance(Duration::from_secs(seconds));
        self.work(processor).await;
        self.books().await;
    }

    async fn adas(&self, status: PayoutStatus) -> mail::affiliate::payout::Payout {
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
    world.later(86_400, &processor).await;
    assert_eq!(processor.keys().len(), 1);
}

#[tokio::test]
pub(crate) async fn what_is_not_answered_is_asked_again_with_the_same_key() {
    let (world, run) = approved().await;
    let lost = || TransferResponse::NoResponse("timeout".to_owned());
    let processor = Script::of([lost(), lost()]);
    world.work(&processor).await;
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Processing);
    let payout = world.adas(PayoutStatus::Processing).await;
    let refused = world.fail(payout.id, "why").await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::TransferUnderWay))), "{refused:?}");
    world.work(&processor).await;
    assert_eq!(processor.keys().len(), 1, "not before its time");
    world.later(31, &processor).await;
    world.later(600, &processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!(processor.keys(), [format!("{}:1", paid.id), format!("{}:1", paid.id), format!("{}:1", paid.id)]);
    assert_eq!(processor.total(), 2_000);
}

#[tokio::test]
pub(crate) async fn what_was_never_asked_may_be_failed_by_hand() {
    let (world, _) = approved().await;
    let processor =
        Script::of([TransferResponse::NotSent("no key".to_owned()), TransferResponse::NotSent("no key".to_owned())]);
    world.work(&processor).await;
    world.later(601, &processor).await;
    let payout = world.adas(PayoutStatus::Processing).await;
    assert_eq!((payout.asking.since, payout.asking.attempt), (None, 1));
    world.fail(payout.id, "paid otherwise").await.unwrap();
    world.books().await;
}

#[tokio::test]
pub(crate) async fn what_is_refused_for_good_has_failed() {
    let (world, run) = approved().await;
    let processor = Script::of([TransferResponse::Rejected("No such destination".to_owned())]);
    world.work(&processor).await;
    let failed = world.adas(PayoutStatus::Failed).await;
    assert_eq!(failed.failure_reason.as_deref(), Some("No such destination"));
    let after = world.run(&run).await;
    assert_eq!((after.status, after.is_partial), (PayoutRunStatus::Completed, true));
    world.books().await;
    // Its line is in the next one, which is another payout: another key.
    let next = world.draft().await;
    world.approve(&next).await;
    world.work(&processor).await;
    let keys = processor.keys();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    assert_eq!(processor.total(), 2_000);
    world.books().await;
}

#[tokio::test]
pub(crate) async fn money_that_is_missing_is_waited_for() {
    let (world, _) = approved().await;
    let processor = Script::of([TransferResponse::InsufficientFunds, TransferResponse::InsufficientFunds]);
    world.work(&processor).await;
    let id = world.adas(PayoutStatus::Processing).await.id;
    world.later(3_600, &processor).await;
    assert_eq!(processor.keys().len(), 1, "once a day");
    world.later(86_400, &processor).await;
    world.later(86_400, &processor).await;
    world.adas(PayoutStatus::Paid).await;
    // Each was refused for good: no key is used twice.
    assert_eq!(processor.keys(), [format!("{id}:1"), format!("{id}:2"), format!("{id}:3")]);
}

#[tokio::test]
pub(crate) async fn money_that_is_missing_for_long_fails_the_payout() {
    let (world, _) = approved().await;
    let processor = Script::of([
        TransferResponse::InsufficientFunds,
        TransferResponse::InsufficientFunds,
        TransferResponse::InsufficientFunds,
        TransferResponse::InsufficientFunds,
    ]);
    world.work(&processor).await;
    for _ in 0..4 {
        world.later(86_401, &processor).await;
    }
    assert_eq!(processor.keys().len(), 4);
    world.adas(PayoutStatus::Failed).await;
}

#[tokio::test]
pub(crate) async fn a_key_that_is_forgotten_by_now_is_not_asked_with() {
    // The transfer was made, and nobody heard so; and it was not.
    for was_made in [true, false] {
        let (world, _) = approved().await;
        let processor = if was_made {
            Script::of([TransferResponse::NoResponse("timeout".to_owned())])
        } else {
            // It never came to the processor: the script makes nothing of a refusal.
            Script::of([TransferResponse::InsufficientFunds])
        };
        world.work(&processor).await;
        if !was_made {
            // As if the answer had been lost.
            let before = world.adas(PayoutStatus::Processing).await;
            let mut lost = before.clone();
            lost.asking.since = Some(world.clock.now());
            lost.asking.not_before = None;
            let mut batch = store::engine::Batch::progress();
            store::affiliate::payout::update(&mut batch, &before, &lost);
            world.store().commit(batch).await.unwrap();
        }
        world.later(30 * 3_600, &processor).await;
        assert_eq!(processor.looked_for(), 1);
        if !was_made {
            world.later(60, &processor).await;
        }
        world.adas(PayoutStatus::Paid).await;
        assert_eq!(processor.total(), 2_000, "made once");
    }
}

#[tokio::test]
pub(crate) async fn a_transfer_that_came_back_before_it_was_heard_of_names_its_payout() {
    let (world, _) = approved().await;
    let processor = Script::of([TransferResponse::NoResponse("timeout".to_owned())]);
    world.work(&processor).await;
    let payout = world.adas(PayoutStatus::Processing).await;
    let back = json!({
        "id": "tr_0", "amount": 2_000, "amount_reversed": 2_000, "reversed": true,
        "metadata": {"payout_id": payout.id},
    });
    world.tell("transfer.reversed", 40 * 86_400, back).await;
    assert_eq!(world.adas(PayoutStatus::Failed).await.transfer.as_deref(), Some("tr_0"));
    world.later(86_400, &processor).await;
    assert_eq!(processor.keys().len(), 1, "it is settled");
}

/// A key that was used already says nothing of the payout: were it failed, its lines would be paid once more.
#[tokio::test]
pub(crate) async fn a_key_that_was_used_is_looked_for() {
    let used = || TransferResponse::IdempotencyKeyReused("Keys can only be used once".to_owned());
    // The transfer was made, and the answer lost.
    let (world, run) = approved().await;
    let processor = Script::of([TransferResponse::NoResponse("timeout".to_owned()), used()]);
    world.work(&processor).await;
    world.later(31, &processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!((paid.transfer.as_deref(), processor.total(), processor.looked_for()), (Some("tr_0"), 2_000, 1));
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Completed);
    // None is found: it waits, is not failed, and is not asked for with that key again.
    let (world, _) = approved().await;
    let processor = Script::of([used()]);
    world.work(&processor).await;
    processor.silence_list(true);
    world.later(601, &processor).await;
    let waiting = world.adas(PayoutStatus::Processing).await;
    assert_eq!((waiting.asking.attempt, processor.total(), processor.looked_for()), (1, 0, 2));
    assert_eq!(waiting.failure_or_obstacle(), Some("timeout"), "the owner sees why");
    processor.silence_list(false);
    world.later(7_201, &processor).await;
    assert_eq!((processor.keys().len(), processor.looked_for()), (1, 3), "only looked up");
    // When that key can be forgotten, and the list has no transfer still, it is asked for with another.
    world.later(20 * 3_600, &processor).await;
    world.later(60, &processor).await;
    let paid = world.adas(PayoutStatus::Paid).await;
    assert_eq!(processor.keys(), [format!("{}:1", paid.id), format!("{}:2", paid.id)]);
    assert_eq!(processor.total(), 2_000, "made once");
}

/// The key is known by nobody any more: were the payout asked for, it would be paid twice.
#[tokio::test]
pub(crate) async fn a_payout_of_a_restored_store_is_looked_up_first() {
    for was_made in [true, false] {
        let (world, _) = approved().await;
        let backup = world.adas(PayoutStatus::Processing).await;
        let processor = Script::default();
        if was_made {
            // After the backup, of which the restored store knows nothing.
            let order =
                affiliate::payouts::transfers::TransferRequest { key: format!("{}:1", backup.id), payout: backup };
            affiliate::payouts::transfers::PayoutGateway::transfer(&processor, &order).await;
            processor.forget_keys();
        }
        world.clock.advance(Duration::from_secs(3_600));
        let hold = store::queue_hold::restore_batch(world.clock.now(), true);
        world.store().commit(hold).await.unwrap();
        let asked = processor.keys().len();
        world.later(3_600, &processor).await;
        assert_eq!((processor.keys().len(), processor.looked_for()), (asked, 0), "the queue is held");
        let lifted = store::queue_hold::restore_batch(world.clock.now(), false);
        world.store().commit(lifted).await.unwrap();
        processor.silence_list(true);
        world.later(61, &processor).await;
        world.later(601, &processor).await;
        assert_eq!((processor.keys().len(), processor.looked_for()), (asked, 2), "nobody knows whether it was made");
        processor.silence_list(false);
        world.later(7_201, &processor).await;
        world.adas(PayoutStatus::Paid).await;
        assert_eq!(processor.total(), 2_000, "made once");
        assert_eq!(processor.keys().len(), 1);
    }
}

/// A restored store knows nothing of transfers after its backup: a run that was drafted since then would pay them again.
#[tokio::test]
pub(crate) async fn what_was_transferred_after_the_backup_is_not_transferred_again() {
    for (made, is_paid) in [(2_000, true), (1_500, false)] {
        let world = payable().await;
        world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
        world.change(world.bob, |bob| bob.payout = None).await;
        world.sell("in_1", (10_000, 10)).await;
        world.earn().await;
        let processor = Script::default();
        // The transfer's payout is not in the backup.
        processor.made_before(PayoutId::new(world.clock.now(), 77), made);
        world.clock.advance(Duration::from_secs(3_600));
        let restored = store::queue_hold::restore_batch(world.clock.now(), false);
        world.store().commit(restored).await.unwrap();
        let run = world.draft().await;
        world.approve(&run).await;
        world.later(61, &processor).await;
        assert_eq!((processor.keys().len(), processor.total()), (0, made), "nothing is asked for");
        if is_paid {
            assert_eq!(world.adas(PayoutStatus::Paid).await.transfer.as_deref(), Some("tr_before"));
            // Later earnings are paid as ever.
            world.sell("in_2", (10_000, 10)).await;
            world.earn().await;
            let next = world.draft().await;
            world.approve(&next).await;
            world.later(61, &processor).await;
            assert_eq!(processor.total(), made + 2_000);
        } else {
            let why = world.adas(PayoutStatus::Failed).await.failure_reason.unwrap();
            assert!(why.contains("tr_before of 1500 usd") && why.contains("reverse it"), "{why}");
        }
        world.books().await;
    }
}
