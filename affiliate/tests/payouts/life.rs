//! Life cycle of a run, from draft to completion.

use affiliate::context::no_extension;
use affiliate::error::{AffiliateError, ConflictReason, ForbiddenReason};
use affiliate::if_match::IfMatch;
use model::affiliate::partner::PartnerStatus;
use model::affiliate::payout::{Payout, PayoutRun, PayoutRunPhase, PayoutRunStatus, PayoutStatus, SkipReason};
use model::affiliate::program::PayoutMethod;
use model::id::PayoutId;
use store::affiliate::{payout, payout_run};
use store::engine::Batch;

use super::setting::payable;

fn is(refused: Result<impl std::fmt::Debug, AffiliateError>, obstacle: ConflictReason) {
    assert!(matches!(&refused, Err(AffiliateError::Conflict(found)) if *found == obstacle), "{refused:?}");
}

#[tokio::test]
pub(crate) async fn a_run_is_drafted_approved_and_paid() {
    let world = payable().await;
    world.sell("in_1", 10_000, 10).await;
    world.sell("in_2", 5_000, 20).await;
    // No line is earned yet.
    let drafted = world.draft_run(None).await.unwrap();
    assert!(drafted.run.is_none() && drafted.skipped.is_empty());
    world.earn().await;
    let run = world.draft().await;
    let totals = format!("{:?}", run.totals);
    assert_eq!((run.status, run.payouts, run.open, totals.as_str()), (PayoutRunStatus::Draft, 2, 2, "{usd: 3750}"));
    is(world.draft_run(None).await, ConflictReason::DraftOpen);
    let ada = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((ada.amount, ada.lines, ada.destination.as_str()), (3_000, 2, "ada@paypal.example"));
    assert_eq!(world.event_kinds(ada.id).await, ["payout.created"]);
    is(world.mark_paid(ada.id, "r").await, ConflictReason::RunNotApproved);
    is(world.fail(ada.id, "why").await, ConflictReason::PayoutSettled);
    world.check_ledger().await;

    let approve = async |rev, totals| world.ledger.approve_run(world.account, run.id, rev, totals, &no_extension).await;
    is(approve(run.rev + 1, &run.totals).await, ConflictReason::OtherRun);
    let mut other_totals = run.totals.clone();
    other_totals.insert("eur".parse().unwrap(), 1);
    is(approve(run.rev, &other_totals).await, ConflictReason::OtherRun);
    let approved = world.approve(&run).await;
    assert!(approved.status == PayoutRunStatus::Approved && approved.approved_at.is_some());
    is(approve(approved.rev, &run.totals).await, ConflictReason::NoDraft);
    is(world.ledger.cancel_run(world.account, run.id, None, &no_extension).await, ConflictReason::NoDraft);
    assert_eq!(world.list(&[PayoutStatus::Processing]).await.len(), 2);
    assert!(world.list(&[PayoutStatus::Draft]).await.is_empty());
    world.check_ledger().await;

    let paid = world.mark_paid(ada.id, "PP-1").await.unwrap();
    assert_eq!((paid.status, paid.payout.reference.as_deref()), (PayoutStatus::Paid, Some("PP-1")));
    assert_eq!(world.mark_paid(ada.id, "PP-1").await.unwrap(), paid);
    is(world.mark_paid(ada.id, "PP-2").await, ConflictReason::PaidOtherwise);
    is(world.fail(ada.id, "why").await, ConflictReason::PayoutSettled);
    assert_eq!(world.event_kinds(ada.id).await, ["payout.created", "payout.paid"]);
    assert!(world.partner(world.ada).await.was_paid && !world.partner(world.bob).await.was_paid);
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Processing);
    let bob = world.payout_of(world.bob, PayoutStatus::Processing).await.payout;
    world.mark_paid(bob.id, "PP-1").await.unwrap();
    let done = world.run(&run).await;
    assert_eq!((done.status, done.is_partial, done.open), (PayoutRunStatus::Completed, false, 0));
    assert!(done.completed_at.is_some());
    for line in world.lines().await {
        assert_eq!(line.status.word(), "paid");
        let kinds = world.event_kinds(line.id).await;
        assert_eq!(kinds, ["commission.created", "commission.earned", "commission.paid"]);
    }
    assert_eq!(world.check_ledger().await, 2);
}

#[tokio::test]
pub(crate) async fn a_cancelled_run_releases_its_lines() {
    let world = payable().await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let run = world.draft().await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    // A run has no `updated_at`, so no time is a version of it.
    for stale in [IfMatch::At(run.created_at), IfMatch::Rev(run.rev + 1)] {
        is(world.ledger.cancel_run(world.account, run.id, Some(&stale), &no_extension).await, ConflictReason::Changed);
    }
    let cancelled = world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    assert_eq!((cancelled.status, &cancelled.totals), (PayoutRunStatus::Cancelled, &run.totals));
    assert!(matches!(world.ledger.get_payout(world.account, payout.id).await, Err(AffiliateError::NotFound(_))));
    assert!(world.list(&[]).await.is_empty());
    assert!(world.lines().await.iter().all(|line| line.status.payout().is_none()));
    is(world.ledger.cancel_run(world.account, run.id, None, &no_extension).await, ConflictReason::NoDraft);
    is(
        world.ledger.approve_run(world.account, run.id, cancelled.rev, &run.totals, &no_extension).await,
        ConflictReason::NoDraft,
    );
    world.check_ledger().await;
    // Another run contains the same lines.
    let second_draft = world.draft().await;
    assert_eq!(second_draft.totals, run.totals);
    world.check_ledger().await;
}

/// A cancelled run releases its lines in several commits.
#[tokio::test]
pub(crate) async fn commissions_in_an_unapproved_run_count_as_earned() {
    let world = payable().await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let run = world.run(&world.draft().await).await;
    let ada = world.partner(world.ada).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    let shown = async || {
        let sums = world.ledger.partner_balances(&ada).await.unwrap();
        sums.balances.values().map(|balance| (balance.earned, balance.in_payout)).collect::<Vec<_>>()
    };
    assert_eq!(shown().await, [(2_000, 0)]);
    let cancelled = PayoutRun {
        status: PayoutRunStatus::Cancelled,
        phase: Some(PayoutRunPhase::Sweeping),
        rev: run.rev + 1,
        ..run.clone()
    };
    let mut batch = Batch::progress();
    payout_run::update(&mut batch, &run, &cancelled);
    world.store().commit(batch).await.unwrap();
    assert_eq!(shown().await, [(2_000, 0)]);
    // Its lines were released after the payout was read.
    let mut batch = Batch::progress();
    payout::create(&mut batch, &Payout { id: PayoutId::new(payout.id.born_at(), u128::MAX), ..payout });
    world.store().commit(batch).await.unwrap();
    assert_eq!(shown().await, [(2_000, 0)]);
}

#[tokio::test]
pub(crate) async fn partners_who_cannot_be_paid_are_skipped() {
    let world = payable().await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    world.change(world.bob, |bob| bob.payout = None).await;
    let run = world.draft().await;
    let skipped = world.skipped(&run).await;
    assert_eq!(skipped.len(), 1);
    assert_eq!((skipped[0].partner, skipped[0].amount, skipped[0].reason), (world.bob, 500, SkipReason::NotReady));
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    world.change(world.ada, |ada| ada.status = PartnerStatus::Suspended).await;
    let drafted = world.draft_run(None).await.unwrap();
    assert!(drafted.run.is_none());
    let mut reasons: Vec<_> = drafted.skipped.iter().map(|one| one.reason.word()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["not_active", "not_ready"]);
    // The attempt leaves no open run.
    assert!(store::affiliate::payout_run::find_open(world.store(), world.account).await.unwrap().is_none());
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_run_contains_lines_earned_by_its_cutoff() {
    let world = payable().await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let between = world.clock.now();
    world.sell("in_2", 20_000, 40 * 86_400).await;
    world.advance_days(45);
    world.end_holds().await;
    let drafted = world.draft_run(Some(between)).await.unwrap().run.unwrap();
    assert_eq!(format!("{:?}", drafted.totals), "{usd: 2500}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn payouts_by_transfer_cannot_be_marked_paid() {
    let world = payable().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let run = world.draft().await;
    assert_eq!(run.transfers, 1);
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    let refused = world.mark_paid(payout.id, "r").await;
    assert!(matches!(refused, Err(AffiliateError::Forbidden(ForbiddenReason::ProcessorPays))), "{refused:?}");
    world.approve(&run).await;
    let refused = world.mark_paid(payout.id, "r").await;
    assert!(matches!(refused, Err(AffiliateError::Forbidden(ForbiddenReason::ProcessorPays))), "{refused:?}");
}

#[tokio::test]
pub(crate) async fn the_audit_reports_members_of_a_cycle_of_recruiters_only() {
    let world = payable().await;
    let reported = async || {
        let audit = affiliate::audit::audit(&world.ledger, world.account).await.unwrap();
        audit.broken.into_iter().map(|broken| (broken.subject, broken.message)).collect::<Vec<_>>()
    };
    assert_eq!(reported().await, []);
    // Bob recruited Ada.
    world.change(world.bob, |bob| bob.parent = Some(bob.id)).await;
    assert_eq!(reported().await, [(world.bob.to_string(), "recruits itself".to_owned())]);
    world.change(world.bob, |bob| bob.parent = Some(world.ada)).await;
    assert_eq!(reported().await.len(), 2);
}
