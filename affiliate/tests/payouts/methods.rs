//! Changes to allowed methods and payout destinations while a draft is open.

use affiliate::context::no_extension;
use affiliate::error::{AffiliateError, ConflictReason};
use affiliate::payouts::filter_methods::{filter_by_methods, mark_draft};
use model::affiliate::payout::{Payout, PayoutRun, PayoutRunStatus, PayoutStatus, SkipReason};
use model::affiliate::program::{AffiliateProgram, PayoutMethod};
use model::id::{PayoutId, PayoutRunId};
use serde_json::json;
use store::affiliate::{payout, program};
use store::engine::Batch;

use super::setting::{Script, cut_off, on_disk, payable, payable_on};
use super::world::World;

/// Number of Ada's lines: more than one step removes.
const MANY: usize = 900;

impl World {
    /// Sets the allowed methods without filtering the draft yet. Returns the run that was marked.
    async fn say_methods(&self, methods: &[PayoutMethod]) -> Option<PayoutRunId> {
        let before = program::get(self.store(), self.account).await.unwrap().unwrap();
        let mut after: AffiliateProgram = before.clone();
        after.settings.allowed_methods = methods.to_vec();
        after.rev += 1;
        let mut batch = Batch::progress();
        program::update(&mut batch, &before, &after);
        let draft = mark_draft(&self.ledger, &mut batch, &before, &after).await.unwrap();
        self.store().commit(batch).await.unwrap();
        draft
    }

    async fn allow(&self, methods: &[PayoutMethod]) -> Option<PayoutRunId> {
        let draft = self.say_methods(methods).await;
        if let Some(run) = draft {
            filter_by_methods(&self.ledger, self.account, run).await;
        }
        draft
    }

    async fn refused(&self, run: &PayoutRun, rev: u64, obstacle: ConflictReason) {
        let refused = self.ledger.approve_run(self.account, run.id, rev, &run.totals, &no_extension).await;
        assert!(matches!(&refused, Err(AffiliateError::Conflict(found)) if *found == obstacle), "{refused:?}");
    }
}

/// Ada is paid by PayPal, Bob by bank transfer.
async fn two() -> World {
    let world = payable().await;
    world.pay_by(world.bob, PayoutMethod::Bank, "DE02").await;
    world.bounties(world.ada, 3).await;
    world.bounties(world.bob, 2).await;
    world
}

#[tokio::test]
pub(crate) async fn payouts_by_a_disallowed_method_leave_the_draft() {
    let world = two().await;
    assert_eq!(world.allow(&PayoutMethod::ALL).await, None, "there is no draft");
    let run = world.draft().await;
    assert_eq!((run.payouts, run.totals.values().sum::<i64>()), (2, 303 + 201));
    // Removing an unused method, and allowing all again.
    let allowed: Vec<_> = PayoutMethod::ALL.into_iter().filter(|method| *method != PayoutMethod::Wise).collect();
    assert_eq!(world.allow(&allowed).await, Some(run.id));
    assert_eq!(world.allow(&PayoutMethod::ALL).await, None, "nothing is taken away");
    let unchanged = world.run(&run).await;
    assert_eq!((unchanged.rev, &unchanged.totals, unchanged.sifted), (run.rev, &run.totals, None));
    world.allow(&[PayoutMethod::Bank, PayoutMethod::Wise]).await;
    let after = world.run(&run).await;
    assert_eq!((after.rev, after.payouts, after.totals.values().sum::<i64>()), (run.rev + 1, 1, 201));
    let skipped = world.skipped(&run).await;
    assert_eq!((skipped.len(), skipped[0].partner, skipped[0].amount), (1, world.ada, 303));
    assert_eq!(skipped[0].reason, SkipReason::NotReady);
    assert_eq!(world.list(&[PayoutStatus::Draft]).await.len(), 1);
    let lines = world.lines().await;
    let free = lines.iter().filter(|line| line.status.payout().is_none() && line.status.word() == "earned");
    assert_eq!(free.count(), 3);
    world.check_ledger().await;
    world.refused(&run, run.rev, ConflictReason::OtherRun).await;
    world.approve(&after).await;
    // Approved payouts stay, and removed lines are in the next run once the method is allowed again.
    assert_eq!(world.allow(&[]).await, None);
    assert_eq!(world.list(&[PayoutStatus::Processing]).await.len(), 1);
    assert!(world.draft_run(None).await.unwrap().run.is_none());
    world.allow(&PayoutMethod::ALL).await;
    assert_eq!(world.draft().await.totals.values().sum::<i64>(), 303);
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_run_with_disallowed_methods_cannot_be_approved() {
    for helper in ["approves", "works", "cancels"] {
        let world = two().await;
        let run = world.draft().await;
        assert_eq!(world.say_methods(&[PayoutMethod::Bank]).await, Some(run.id));
        world.check_ledger().await;
        match helper {
            "approves" => world.refused(&run, run.rev, ConflictReason::OtherRun).await,
            "works" => world.recover(&Script::default()).await,
            _ => {
                let cancelled = world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
                assert_eq!((cancelled.status, cancelled.sifted), (PayoutRunStatus::Cancelled, None));
                assert_eq!(world.draft().await.payouts, 1);
                continue;
            }
        }
        let after = world.run(&run).await;
        assert_eq!((after.payouts, after.sifted, after.rev), (1, None, run.rev + 1), "{helper}");
        world.check_ledger().await;
        world.approve(&after).await;
    }
}

#[tokio::test]
pub(crate) async fn an_interrupted_method_filter_is_completed() {
    for polls in [1, 2, 3, 5, 8] {
        let (_directory, store) = on_disk().await;
        let world = payable_on(store).await;
        world.pay_by(world.bob, PayoutMethod::Bank, "DE02").await;
        world.bounties(world.ada, MANY).await;
        world.bounties(world.bob, 2).await;
        let run = if polls % 2 == 0 {
            // The methods change while the run is drafted.
            cut_off(polls, world.draft_run(None)).await;
            None
        } else {
            Some(world.draft().await)
        };
        let marked = world.say_methods(&[PayoutMethod::Bank]).await;
        if let (Some(_), Some(id)) = (&run, marked) {
            cut_off(polls, filter_by_methods(&world.ledger, world.account, id)).await;
        }
        world.check_ledger().await;
        // First drafting is completed, then the filter.
        for _ in 0..2 {
            world.recover(&Script::default()).await;
            world.check_ledger().await;
        }
        let open = store::affiliate::payout_run::find_open(world.store(), world.account).await.unwrap();
        let run = match open {
            Some(open) => open,
            None => world.draft().await,
        };
        assert_eq!((run.payouts, run.sifted, run.totals.values().sum::<i64>()), (1, None, 201), "{polls}");
        // All removed lines are released.
        world.recover(&Script::default()).await;
        let free = world.lines().await.iter().filter(|line| line.status.payout().is_none()).count();
        assert_eq!(free, MANY);
        world.check_ledger().await;
        world.store().close().await;
    }
}

#[tokio::test]
pub(crate) async fn open_payouts_of_earlier_runs_do_not_hide_draft_payouts() {
    let world = two().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    world.approve(&world.draft().await).await;
    let first = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    // As many open payouts as many unpaid runs would have.
    let mut batch = Batch::progress();
    for number in 1..=450 {
        let id = PayoutId::new(first.id.born_at(), number);
        payout::create(&mut batch, &Payout { id, ..first.clone() });
    }
    world.store().commit(batch).await.unwrap();
    world.bounties(world.ada, 1).await;
    let run = world.draft().await;
    assert_eq!((run.payouts, run.transfers), (1, 1));
    let inactive = json!({"id": "acct_ada", "object": "account", "capabilities": {"transfers": "inactive"}});
    world.ingest_object("account.updated", 10, inactive).await;
    let after = world.run(&run).await;
    assert_eq!((after.payouts, after.rev), (0, run.rev + 1));
    assert_eq!(world.list(&[PayoutStatus::Processing]).await.len(), 452, "those are approved");
}
