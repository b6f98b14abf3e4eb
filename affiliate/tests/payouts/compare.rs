//! Reconciliation of charges before a line is earned, and before it is paid.

use std::future::ready;
use std::time::Duration;

use affiliate::context::no_extension;
use affiliate::error::{AffiliateError, ConflictReason, LedgerError};
use affiliate::reconciliation::{ReconcileOutcome, Reconciler, Reconciliation};
use affiliate::referrals::{PartnerSelector, ReferralDraft};
use futures_util::future::BoxFuture;
use model::affiliate::commission::{Commission, CommissionState};
use model::affiliate::payout::{PayoutRun, PayoutStatus};
use model::affiliate::program::{PaymentProcessor, PayoutMethod};
use model::domain::SealedSecret;
use model::id::AccountId;
use serde_json::json;
use store::affiliate::program;
use store::engine::Batch;
use store::task::PARTITIONS;

use super::setting::{Script, cut_off, payable, payable_on};
use super::world::World;

impl World {
    /// Sets or removes the processor's API key.
    async fn set_api_key(&self, is_allowed: bool) {
        let before = program::get(self.store(), self.account).await.unwrap().unwrap();
        let mut after = before.clone();
        let key = is_allowed.then(|| SealedSecret(String::new()));
        after.processor =
            before.processor.clone().map(|processor| PaymentProcessor { restricted_key: key, ..processor });
        let mut batch = Batch::progress();
        program::update(&mut batch, &before, &after);
        self.store().commit(batch).await.unwrap();
    }

    /// Reconciles due lines and releases holds. Returns the number of earned lines.
    async fn hours_later(&self, hours: u64, processor: &Script) -> usize {
        self.clock.advance(Duration::from_secs(hours * 3_600));
        let round = Reconciliation::new(&self.ledger, processor)
            .reconcile_due(0..=PARTITIONS - 1, self.clock.now())
            .await
            .unwrap();
        assert!(round.ended.failed == 0 && !round.has_more);
        round.ended.earned + self.end_holds().await
    }
}

#[tokio::test]
pub(crate) async fn a_line_is_compared_a_day_before_it_is_earned() {
    let (world, processor) = (payable().await, Script::default());
    world.sell("in_0", 10_000, 5).await;
    world.set_api_key(true).await;
    world.sell("in_1", 10_000, 10).await;
    assert_eq!(world.hours_later(28 * 24, &processor).await, 0);
    assert_eq!(processor.compared(), [""; 0], "too early");
    assert_eq!(world.hours_later(36, &processor).await, 0);
    assert_eq!(processor.compared(), ["in_1"], "in_0 was sold before there was a key");
    assert_eq!(world.hours_later(24, &processor).await, 4, "two invoices, a partner and a recruiter");
    assert_eq!(processor.compared(), [""; 0], "only once");
    world.audit().await;
}

#[tokio::test]
pub(crate) async fn a_line_waits_for_an_answer_at_most_a_day() {
    let (world, processor) = (payable().await, Script::default());
    world.set_api_key(true).await;
    world.sell("in_1", 10_000, 10).await;
    processor.ignore(2);
    assert_eq!(world.hours_later(29 * 24 + 1, &processor).await, 0);
    assert_eq!(world.hours_later(24, &processor).await, 0, "the hold has ended, and the line waits");
    assert_eq!(world.hours_later(1, &processor).await, 2);
    assert_eq!(processor.compared(), ["in_1"; 3]);
    world.sell("in_2", 10_000, 30 * 86_400).await;
    processor.ignore(100);
    assert_eq!(world.hours_later(30 * 24, &processor).await, 0);
    assert_eq!(world.hours_later(24, &processor).await, 2, "earned without an answer after a day");
    world.audit().await;
}

/// A reconciler that never responds for one account.
struct Hangs(AccountId);

impl Reconciler for Hangs {
    fn reconcile<'a>(&'a self, account: AccountId, _: &'a str) -> BoxFuture<'a, Result<ReconcileOutcome, LedgerError>> {
        if account != self.0 {
            return Box::pin(ready(Ok(ReconcileOutcome::Reconciled)));
        }
        Box::pin(async {
            loop {
                tokio::task::yield_now().await;
            }
        })
    }
}

#[tokio::test]
pub(crate) async fn a_hanging_processor_delays_only_its_own_account() {
    let slow = payable().await;
    let other = payable_on(slow.store().clone()).await;
    assert!(slow.account < other.account, "the slow account comes first");
    other.sell("in_0", 10_000, 5).await;
    for world in [&slow, &other] {
        world.set_api_key(true).await;
        world.sell("in_1", 10_000, 10).await;
        world.clock.advance(Duration::from_secs(31 * 86_400));
    }
    assert_eq!(other.end_holds().await, 2, "lines without reconciliation are not delayed");
    let hangs = Hangs(slow.account);
    let reconciliation = Reconciliation::new(&other.ledger, &hangs);
    let comparing = reconciliation.reconcile_due(0..=PARTITIONS - 1, other.clock.now());
    assert!(cut_off(1_000, comparing).await.is_none());
    let earned = |lines: Vec<Commission>| {
        lines.iter().filter(|line| matches!(line.status, CommissionState::Earned { .. })).count()
    };
    assert_eq!((earned(slow.lines().await), earned(other.lines().await)), (0, 4));
    other.audit().await;
    slow.audit().await;
}

/// Lines that wait for reconciliation do not hide others that are due, however many there are.
#[tokio::test]
pub(crate) async fn holds_are_released_behind_lines_that_wait_for_reconciliation() {
    let world = payable().await;
    world.sell("in_plain", 10_000, 1).await;
    world.set_api_key(true).await;
    for number in 0..250 {
        world.sell(&format!("in_{number}"), 10_000, 2).await;
    }
    world.advance_days(31);
    assert_eq!(world.end_holds().await, 2);
    let round = Reconciliation::new(&world.ledger, &Script::default())
        .reconcile_due(0..=PARTITIONS - 1, world.clock.now())
        .await
        .unwrap();
    assert!(round.has_more && round.ended.earned >= 200, "{round:?}");
    world.audit().await;
}

/// Creates a draft whose charges must be reconciled.
async fn draft() -> (World, PayoutRun) {
    let world = payable().await;
    world.sell("in_1", 10_000, 10).await;
    world.sell("in_2", 30_000, 20).await;
    world.earn().await;
    world.set_api_key(true).await;
    let run = world.draft().await;
    (world, run)
}

async fn is_not_approved_yet(world: &World, run: &PayoutRun) {
    let refused = world.ledger.approve_run(world.account, run.id, run.rev, &run.totals, &no_extension).await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::RunCompared))), "{refused:?}");
}

#[tokio::test]
pub(crate) async fn a_draft_is_compared_before_it_is_approved() {
    let (world, run) = draft().await;
    is_not_approved_yet(&world, &run).await;
    let processor = Script::default();
    world.clock.advance(Duration::from_secs(61));
    world.work(&processor).await;
    assert_eq!(processor.compared(), ["in_1", "in_2"]);
    let run = world.run(&run).await;
    assert!(run.is_reconciled() && run.uncompared == 0, "{run:?}");
    world.approve(&run).await;
    world.audit().await;
}

/// An earlier answer does not show refunds made since.
#[tokio::test]
pub(crate) async fn a_run_reconciles_each_line_however_recently_it_was_reconciled() {
    let (world, processor) = (payable().await, Script::default());
    world.set_api_key(true).await;
    for number in 0..40 {
        world.sell(&format!("in_{number}"), 10_000, 10).await;
    }
    assert_eq!(world.hours_later(31 * 24, &processor).await, 80);
    assert_eq!((processor.compared().len(), processor.paced()), (40, 2), "16 and 16 and 8");
    let run = world.draft().await;
    is_not_approved_yet(&world, &run).await;
    world.clock.advance(Duration::from_secs(61));
    world.work(&processor).await;
    assert_eq!((processor.compared().len(), processor.paced()), (40, 2));
    let run = world.run(&run).await;
    assert!(run.is_reconciled() && run.uncompared == 0, "{run:?}");
    world.approve(&run).await;
    world.audit().await;
}

#[tokio::test]
pub(crate) async fn unanswered_charges_are_counted_in_the_run() {
    let (world, run) = draft().await;
    let processor = Script::default();
    processor.ignore(6);
    for _ in 0..3 {
        is_not_approved_yet(&world, &run).await;
        world.clock.advance(Duration::from_secs(61));
        world.work(&processor).await;
    }
    let run = world.run(&run).await;
    assert!(run.is_reconciled() && run.uncompared == 2, "{run:?}");
    world.approve(&run).await;
    world.audit().await;
}

#[tokio::test]
pub(crate) async fn a_draft_can_be_cancelled_while_it_is_compared() {
    let (world, run) = draft().await;
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    let second_draft = world.draft().await;
    assert_eq!(second_draft.totals, run.totals);
    let processor = Script::default();
    world.clock.advance(Duration::from_secs(61));
    world.work(&processor).await;
    assert!(world.run(&second_draft).await.is_reconciled());
    world.audit().await;
}

/// A payout that leaves the draft during reconciliation does not cause other lines to be skipped.
#[tokio::test]
pub(crate) async fn removing_a_payout_during_reconciliation_skips_no_other_lines() {
    let (mut world, processor) = (payable().await, Script::default());
    while world.ada > world.bob {
        // Partners are drafted in the order of their ids, which are random.
        world = payable().await;
    }
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    let (selector, email) = (PartnerSelector::Id(world.bob), "max@example.org".parse().unwrap());
    let of_bob = ReferralDraft { partner: selector, email, customer: Some("cus_2".to_owned()), sub_id: None };
    world.ledger.refer(world.account, &of_bob, &no_extension).await.unwrap();
    world.ingest_event(&world.paid("in_bob", "cus_2", 10_000, 10)).await;
    for number in 0..101 {
        world.sell(&format!("in_{number}"), 10_000, 20).await;
    }
    world.earn().await;
    world.set_api_key(true).await;
    let run = world.draft().await;
    let id = async |partner| world.payout_of(partner, PayoutStatus::Draft).await.payout.id;
    assert!(id(world.ada).await < id(world.bob).await);
    processor.answer(100);
    processor.ignore(16);
    world.clock.advance(Duration::from_secs(61));
    world.work(&processor).await;
    let compared = processor.compared();
    assert!(compared.len() == 116 && !compared.contains(&"in_bob".to_owned()), "{compared:?}");
    let inactive = json!({"id": "acct_ada", "object": "account", "capabilities": {"transfers": "inactive"}});
    world.ingest_object("account.updated", 30, inactive).await;
    world.clock.advance(Duration::from_secs(61));
    world.work(&processor).await;
    assert!(processor.compared().contains(&"in_bob".to_owned()));
    let run = world.run(&run).await;
    assert!(run.is_reconciled() && run.payouts == 1, "{run:?}");
    world.audit().await;
}
