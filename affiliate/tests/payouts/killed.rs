//! Interrupted operations are completed by jobs with the same result.

use std::time::Duration;

use affiliate::context::no_extension;
use model::affiliate::payout::{PayoutRunStatus, PayoutStatus};
use model::affiliate::program::PayoutMethod;
use store::affiliate::payout_run;

use super::setting::{Script, cut_off, on_disk, payable_on};
use super::world::World;

/// Number of Ada's lines: more than one step handles. Bob has a few.
const MANY: usize = 900;

async fn much() -> (tempfile::TempDir, World, i64) {
    let (directory, store) = on_disk().await;
    let world = payable_on(store).await;
    world.bounties(world.ada, MANY).await;
    world.bounties(world.bob, 5).await;
    let sum = (0..i64::try_from(MANY).unwrap()).map(|n| 100 + n).sum::<i64>() + 510;
    (directory, world, sum)
}

impl World {
    /// Runs due jobs as after a restart: the lease of the interrupted worker has expired.
    pub(crate) async fn recover(&self, processor: &Script) {
        self.clock.advance(Duration::from_secs(61));
        self.work(processor).await;
    }
}

#[tokio::test]
pub(crate) async fn an_interrupted_draft_is_completed() {
    for polls in [1, 2, 3, 4, 5, 7, 9] {
        let (_directory, world, sum) = much().await;
        let cut = cut_off(polls, world.draft_run(None)).await;
        world.check_ledger().await;
        world.recover(&Script::default()).await;
        let run = match payout_run::find_open(world.store(), world.account).await.unwrap() {
            Some(run) => run,
            // Interrupted before anything was committed.
            None => world.draft().await,
        };
        assert!(run.is_drafted(), "{cut:?} {run:?}");
        assert_eq!((run.payouts, run.totals.values().sum::<i64>()), (2, sum), "{polls}");
        world.check_ledger().await;
        world.approve(&run).await;
        world.store().close().await;
    }
}

#[tokio::test]
pub(crate) async fn an_interrupted_cancellation_is_completed() {
    for polls in [1, 2, 3, 4] {
        let (_directory, world, sum) = much().await;
        let run = world.draft().await;
        cut_off(polls, world.ledger.cancel_run(world.account, run.id, None, &no_extension)).await;
        world.check_ledger().await;
        let is_cancelled = world.run(&run).await.status == PayoutRunStatus::Cancelled;
        assert_eq!(world.list(&[]).await.is_empty(), is_cancelled, "its payouts are gone at once");
        if polls % 2 == 0 {
            world.recover(&Script::default()).await;
        }
        if !is_cancelled {
            world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
        }
        // Drafting the next run completes the cancellation.
        let next = world.draft().await;
        assert_eq!(next.totals.values().sum::<i64>(), sum, "{polls}");
        world.check_ledger().await;
        world.store().close().await;
    }
}

#[tokio::test]
pub(crate) async fn lines_are_updated_after_an_interrupted_settlement() {
    for polls in [1, 2, 3, 5, 8] {
        let (_directory, world, _) = much().await;
        let run = world.draft().await;
        world.approve(&run).await;
        let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
        let paid = polls % 2 == 1;
        if paid {
            cut_off(polls, world.ledger.mark_payout_paid(world.account, payout.id, "r", None, &no_extension)).await;
        } else {
            cut_off(polls, world.ledger.fail_payout(world.account, payout.id, "why", None, &no_extension)).await;
        }
        world.check_ledger().await;
        world.recover(&Script::default()).await;
        world.check_ledger().await;
        // Repeating the operation returns the same result.
        if paid {
            assert_eq!(world.mark_paid(payout.id, "r").await.unwrap().status, PayoutStatus::Paid);
        }
        let status = if paid { "paid" } else { "earned" };
        let lines = world.lines().await;
        assert_eq!(lines.iter().filter(|line| line.status.word() == status).count(), if paid { MANY } else { 905 });
        world.store().close().await;
    }
}

#[tokio::test]
pub(crate) async fn an_interrupted_transfer_is_made_once() {
    for polls in 1..12 {
        let (_directory, world, sum) = much().await;
        world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
        world.pay_by(world.bob, PayoutMethod::Stripe, "acct_bob").await;
        let run = world.draft().await;
        world.approve(&run).await;
        let processor = Script::default();
        cut_off(polls, world.work(&processor)).await;
        world.check_ledger().await;
        for _ in 0..3 {
            world.recover(&processor).await;
        }
        assert_eq!(processor.total(), sum, "{polls}: {:?}", processor.keys());
        assert_eq!(world.run(&run).await.status, PayoutRunStatus::Completed, "{polls}");
        assert_eq!(world.list(&[PayoutStatus::Paid]).await.len(), 2);
        world.check_ledger().await;
        world.store().close().await;
    }
}
