//! Effects of refunds, disputes and account changes on lines in payouts.

use std::collections::BTreeSet;

use affiliate::context::no_extension;
use affiliate::error::{AffiliateError, ConflictReason};
use affiliate::ledger::ingest::IngestOutcome;
use model::affiliate::payout::{PayoutRun, PayoutStatus, SkipReason};
use model::affiliate::program::{AfterPayout, PayoutMethod};
use model::id::PartnerId;
use serde_json::json;

use super::processor_objects;
use super::setting::{payable, payable_on};
use super::world::{World, fresh, terms};

const DAY: i64 = 86_400;

/// Two invoices with earned lines: 2,000 and 1,000 of Ada's, 500 and 250 of Bob's.
async fn earned(world: World) -> World {
    world.sell("in_1", 10_000, 10).await;
    world.sell("in_2", 5_000, 20).await;
    world.earn().await;
    world
}

#[tokio::test]
pub(crate) async fn a_refund_takes_a_line_out_of_its_draft() {
    let world = earned(payable().await).await;
    let run = world.draft().await;
    world.refund("in_1", 10_000, 10_000, 32 * DAY).await;
    let after = world.run(&run).await;
    assert_eq!(format!("{:?}", after.totals), "{usd: 1250}");
    assert!(after.rev > run.rev);
    let refused = world.ledger.approve_run(world.account, run.id, run.rev, &run.totals, &no_extension).await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::OtherRun))), "{refused:?}");
    let ada = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((ada.amount, ada.lines), (1_000, 1));
    world.check_ledger().await;
    // A partial refund: the line leaves the draft and is in the next run with the remaining amount.
    world.refund("in_2", 5_000, 2_500, 32 * DAY).await;
    let after = world.run(&run).await;
    assert_eq!((after.payouts, after.open, after.totals.len()), (0, 0, 0));
    assert!(world.list(&[]).await.is_empty());
    let refused = world.ledger.approve_run(world.account, run.id, after.rev, &after.totals, &no_extension).await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::NobodyInRun))), "{refused:?}");
    world.check_ledger().await;
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    assert_eq!(format!("{:?}", world.draft().await.totals), "{usd: 625}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_draft_payout_below_the_minimum_is_dropped() {
    let set_minimum = |settings: &mut model::affiliate::program::ProgramSettings| {
        settings.min_payout.insert("usd".parse().unwrap(), 700);
    };
    let world = World::with_settings(fresh().await, terms(), set_minimum).await;
    world.pay_by(world.ada, PayoutMethod::Wise, "ada@wise.example").await;
    world.pay_by(world.bob, PayoutMethod::Wise, "bob@wise.example").await;
    world.lead("lin@example.org", Some("cus_1")).await;
    let world = earned(world).await;
    let run = world.draft().await;
    assert_eq!((run.payouts, world.skipped(&run).await.len()), (2, 0));
    world.refund("in_1", 10_000, 10_000, 32 * DAY).await;
    let after = world.run(&run).await;
    assert_eq!((after.payouts, format!("{:?}", after.totals)), (1, "{usd: 1000}".to_owned()));
    let skipped = world.skipped(&after).await;
    assert_eq!(skipped.len(), 1);
    assert_eq!((skipped[0].partner, skipped[0].amount), (world.bob, 250));
    assert_eq!(skipped[0].reason, SkipReason::BelowMinimum);
    world.approve(&after).await;
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn an_inquiry_keeps_a_line_from_being_paid() {
    let world = earned(payable().await).await;
    let run = world.draft().await;
    let inquiry = processor_objects::dispute("in_1", "warning_needs_response");
    world.ingest_object("charge.dispute.created", 32 * DAY, inquiry).await;
    assert_eq!(format!("{:?}", world.run(&run).await.totals), "{usd: 1250}");
    let disputed = [(world.ada, 2_000, SkipReason::Disputed), (world.bob, 500, SkipReason::Disputed)];
    assert_eq!(world.skipped_sums(&run).await, BTreeSet::from(disputed));
    world.check_ledger().await;
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    let second_draft = world.draft().await;
    assert_eq!(format!("{:?}", second_draft.totals), "{usd: 1250}");
    let reasons: Vec<_> = world.skipped(&second_draft).await.iter().map(|skipped| skipped.reason).collect();
    assert_eq!(reasons, [SkipReason::Disputed, SkipReason::Disputed]);
    world.check_ledger().await;
}

/// Each partner's amount is the sum of both commissions. No payout of the run includes them, but the next run does.
#[tokio::test]
pub(crate) async fn commissions_that_a_refund_takes_out_of_a_draft_are_skipped() {
    let world = earned(payable().await).await;
    let run = world.draft().await;
    assert_eq!(world.skipped_sums(&run).await, BTreeSet::new());
    world.refund("in_1", 10_000, 1_000, 32 * DAY).await;
    world.refund("in_2", 5_000, 2_500, 32 * DAY).await;
    assert_eq!(world.run(&run).await.payouts, 0);
    let changed = [(world.ada, 2_300, SkipReason::AmountChanged), (world.bob, 575, SkipReason::AmountChanged)];
    assert_eq!(world.skipped_sums(&run).await, BTreeSet::from(changed));
    world.check_ledger().await;
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    assert_eq!(format!("{:?}", world.draft().await.totals), "{usd: 2875}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn an_approved_payout_is_unaffected_by_later_refunds() {
    let world = earned(payable().await).await;
    let run = world.draft().await;
    world.approve(&run).await;
    world.refund("in_1", 10_000, 10_000, 32 * DAY).await;
    assert_eq!(world.run(&run).await.totals, run.totals);
    world.check_ledger().await;
    for partner in [world.ada, world.bob] {
        let payout = world.payout_of(partner, PayoutStatus::Processing).await.payout;
        world.mark_paid(payout.id, "r").await.unwrap();
        world.check_ledger().await;
    }
    // The loss is the program's.
    world.sell("in_3", 1_000, 33 * DAY).await;
    world.advance_days(33);
    world.end_holds().await;
    assert_eq!(format!("{:?}", world.draft().await.totals), "{usd: 250}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn with_offset_a_later_refund_is_netted_in_the_next_payouts() {
    let offset = |settings: &mut model::affiliate::program::ProgramSettings| {
        settings.payout_after_refund = AfterPayout::Offset;
    };
    let world = World::with_settings(fresh().await, terms(), offset).await;
    world.pay_by(world.ada, PayoutMethod::Wise, "ada@wise.example").await;
    world.lead("lin@example.org", Some("cus_1")).await;
    let world = earned(world).await;
    let run = world.draft().await;
    world.approve(&run).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    world.mark_paid(payout.id, "r").await.unwrap();
    // 1,500 of the 3,000 paid were too much.
    world.refund("in_1", 10_000, 5_000, 32 * DAY).await;
    world.refund("in_2", 5_000, 2_500, 32 * DAY).await;
    world.check_ledger().await;
    world.sell("in_3", 5_000, 33 * DAY).await;
    world.earn().await;
    // 1,000 do not cover the adjustments, so both wait.
    let drafted = world.draft_run(None).await.unwrap();
    assert!(drafted.run.is_none(), "{drafted:?}");
    world.sell("in_4", 5_000, 70 * DAY).await;
    world.earn().await;
    world.advance_days(10);
    world.end_holds().await;
    let run = world.draft().await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((payout.amount, payout.adjusted, payout.lines), (500, -1_500, 2));
    world.check_ledger().await;
    // After cancellation the adjustments are owed as before.
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    let run = world.draft().await;
    world.approve(&run).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    assert_eq!((payout.amount, payout.adjusted), (500, -1_500));
    world.mark_paid(payout.id, "r").await.unwrap();
    world.check_ledger().await;
    // The adjustments were netted, so nothing more is owed.
    world.sell("in_5", 1_000, 120 * DAY).await;
    world.advance_days(90);
    world.end_holds().await;
    world.draft().await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((payout.amount, payout.adjusted), (200, 0));
    world.check_ledger().await;
}

/// A program that deducts refunds from later payouts, with Ada paid by Wise, and a lead of hers.
async fn offsetting() -> World {
    let offset = |settings: &mut model::affiliate::program::ProgramSettings| {
        settings.payout_after_refund = AfterPayout::Offset;
    };
    let world = World::with_settings(fresh().await, terms(), offset).await;
    world.pay_by(world.ada, PayoutMethod::Wise, "ada@wise.example").await;
    world.lead("lin@example.org", Some("cus_1")).await;
    world
}

impl World {
    /// Partners that a run skips, with amount and reason.
    async fn skipped_sums(&self, run: &PayoutRun) -> BTreeSet<(PartnerId, i64, SkipReason)> {
        self.skipped(run).await.iter().map(|skipped| (skipped.partner, skipped.amount, skipped.reason)).collect()
    }

    /// Drafts and approves a run, and returns Ada's payout as amount, adjustments and lines.
    async fn approve_all(&self) -> (model::id::PayoutId, (i64, i64, u32)) {
        let run = self.draft().await;
        let payout = self.payout_of(self.ada, PayoutStatus::Draft).await.payout;
        self.approve(&run).await;
        self.check_ledger().await;
        (payout.id, (payout.amount, payout.adjusted, payout.lines))
    }
}

#[tokio::test]
pub(crate) async fn a_deduction_that_was_undone_is_paid_without_another_sale() {
    let world = offsetting().await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let (paid, _) = world.approve_all().await;
    world.mark_paid(paid, "r1").await.unwrap();
    let disputed = |status| processor_objects::dispute("in_1", status);
    world.ingest_object("charge.dispute.created", 32 * DAY, disputed("needs_response")).await;
    world.sell("in_2", 20_000, 33 * DAY).await;
    world.advance_days(33);
    world.end_holds().await;
    let (paid, sums) = world.approve_all().await;
    assert_eq!(sums, (2_000, -2_000, 1));
    world.mark_paid(paid, "r2").await.unwrap();
    assert!(world.draft_run(None).await.unwrap().run.is_none());
    world.ingest_object("charge.dispute.closed", 70 * DAY, disputed("won")).await;
    let run = world.draft().await;
    assert_eq!(format!("{:?}", run.totals), "{usd: 2000}");
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    world.check_ledger().await;
    let (payout, sums) = world.approve_all().await;
    assert_eq!(sums, (2_000, 2_000, 0));
    world.fail(payout, "The account is closed").await.unwrap();
    world.check_ledger().await;
    let (payout, sums) = world.approve_all().await;
    assert_eq!(sums, (2_000, 2_000, 0));
    world.mark_paid(payout, "r3").await.unwrap();
    world.check_ledger().await;
    assert!(world.draft_run(None).await.unwrap().run.is_none());
}

#[tokio::test]
pub(crate) async fn a_failed_payout_pays_its_deduction_back() {
    let world = offsetting().await;
    world.sell("in_1", 5_000, 10).await;
    world.earn().await;
    let (failing, _) = world.approve_all().await;
    world.refund("in_1", 5_000, 5_000, 32 * DAY).await;
    world.sell("in_2", 7_500, 33 * DAY).await;
    world.advance_days(33);
    world.end_holds().await;
    let (paid, sums) = world.approve_all().await;
    assert_eq!(sums, (500, -1_000, 1));
    world.mark_paid(paid, "r").await.unwrap();
    world.fail(failing, "The account is closed").await.unwrap();
    // An amount below the minimum, or without a destination, is skipped with the reason.
    world.change(world.ada, |partner| partner.payout.as_mut().unwrap().is_able = false).await;
    let skipped = world.draft_run(None).await.unwrap().skipped;
    let sums: Vec<_> = skipped.iter().map(|skipped| (skipped.partner, skipped.amount, skipped.reason)).collect();
    assert!(sums.contains(&(world.ada, 1_000, SkipReason::NotReady)), "{sums:?}");
    world.change(world.ada, |partner| partner.payout.as_mut().unwrap().is_able = true).await;
    let (paid, sums) = world.approve_all().await;
    assert_eq!(sums, (1_000, 1_000, 0));
    world.mark_paid(paid, "r2").await.unwrap();
    world.check_ledger().await;
}

/// A refund known while refunds are absorbed stays absorbed, and one that was deducted stays deducted until it fails.
#[tokio::test]
pub(crate) async fn a_change_of_the_setting_applies_to_further_refunds() {
    let refund_event = |id: &str, status: &str| processor_objects::refund("re_1", id, 10_000, status, 1);
    for first in [AfterPayout::Absorb, AfterPayout::Offset] {
        let world = offsetting().await;
        world.set_after_payout(first).await;
        world.sell("in_1", 10_000, 10).await;
        world.earn().await;
        let (paid, _) = world.approve_all().await;
        world.mark_paid(paid, "r").await.unwrap();
        world.ingest_object("refund.created", 32 * DAY, refund_event("in_1", "pending")).await;
        world.sell("in_2", 20_000, 33 * DAY).await;
        world.advance_days(33);
        world.end_holds().await;
        match first {
            AfterPayout::Absorb => {
                world.set_after_payout(AfterPayout::Offset).await;
                world.check_ledger().await;
                let charge = processor_objects::charge("in_1", 10_000, 10_000);
                world.ingest_object("charge.refunded", 34 * DAY, charge).await;
            }
            AfterPayout::Offset => {
                world.set_after_payout(AfterPayout::Absorb).await;
                world.check_ledger().await;
                world.ingest_object("refund.failed", 34 * DAY, refund_event("in_1", "failed")).await;
            }
        }
        let (_, sums) = world.approve_all().await;
        assert_eq!(sums, (4_000, 0, 1), "{first:?}");
        world.check_ledger().await;
    }
}

/// The refund halved the commission before the payout. The difference is paid once, whatever the setting.
#[tokio::test]
pub(crate) async fn a_refund_from_before_the_payout_that_fails_is_paid() {
    let refund_event = |status: &str| processor_objects::refund("re_1", "in_1", 5_000, status, 1);
    for setting in [AfterPayout::Absorb, AfterPayout::Offset] {
        let world = offsetting().await;
        world.set_after_payout(setting).await;
        world.sell("in_1", 10_000, 10).await;
        world.ingest_object("refund.created", DAY, refund_event("pending")).await;
        world.earn().await;
        let (paid, sums) = world.approve_all().await;
        assert_eq!(sums, (1_000, 0, 1), "{setting:?}");
        world.mark_paid(paid, "r1").await.unwrap();
        world.ingest_object("refund.failed", 32 * DAY, refund_event("failed")).await;
        world.check_ledger().await;
        let (failing, sums) = world.approve_all().await;
        assert_eq!(sums, (1_000, 1_000, 0), "{setting:?}");
        world.fail(failing, "The account is closed").await.unwrap();
        let (paid, sums) = world.approve_all().await;
        assert_eq!(sums, (1_000, 1_000, 0), "{setting:?}");
        world.mark_paid(paid, "r2").await.unwrap();
        assert!(world.draft_run(None).await.unwrap().run.is_none());
        world.check_ledger().await;
    }
}

/// The invoice of a payment arrives after the commission of its checkout session was paid: the deduction does not
/// depend on the setting, because no customer was refunded.
#[tokio::test]
pub(crate) async fn a_commission_paid_for_a_session_is_deducted_when_its_invoice_earns() {
    let count = |settings: &mut model::affiliate::program::ProgramSettings| settings.count_invoiceless_payments = true;
    let world = World::with_settings(fresh().await, terms(), count).await;
    world.pay_by(world.ada, PayoutMethod::Wise, "ada@wise.example").await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    let session = processor_objects::checkout("in_1", Some("cus_1"), &lead.id.to_string());
    world.ingest_object("checkout.session.completed", 10, session).await;
    world.earn().await;
    let (paid, sums) = world.approve_all().await;
    assert_eq!(sums, (1_000, 0, 1));
    world.mark_paid(paid, "r").await.unwrap();
    world.sell("in_1", 5_000, 11).await;
    world.end_holds().await;
    assert!(world.draft_run(None).await.unwrap().run.is_none());
    world.check_ledger().await;
    world.sell("in_2", 5_000, 32 * DAY).await;
    world.advance_days(33);
    world.end_holds().await;
    let (_, sums) = world.approve_all().await;
    assert_eq!(sums, (1_000, -1_000, 2));
}

#[tokio::test]
pub(crate) async fn a_dropped_payout_whose_deduction_exceeds_its_lines_is_skipped() {
    let world = offsetting().await;
    world.sell("in_1", 10_000, 10).await;
    world.earn().await;
    let (paid, _) = world.approve_all().await;
    world.mark_paid(paid, "r").await.unwrap();
    world.refund("in_1", 10_000, 10_000, 32 * DAY).await;
    world.sell("in_2", 6_000, 33 * DAY).await;
    world.sell("in_3", 6_000, 33 * DAY).await;
    world.advance_days(33);
    world.end_holds().await;
    let run = world.draft().await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((payout.amount, payout.adjusted, payout.lines), (400, -2_000, 2));
    world.refund("in_2", 6_000, 6_000, 70 * DAY).await;
    let after = world.run(&run).await;
    assert_eq!(after.totals.len(), 0);
    let skipped = world.skipped(&after).await;
    let ada: Vec<_> = skipped.iter().filter(|skipped| skipped.partner == world.ada).collect();
    assert!(
        matches!(ada.as_slice(), [only] if (only.amount, only.reason) == (0, SkipReason::BelowMinimum)),
        "{skipped:?}"
    );
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn lines_of_a_failed_payout_return_with_their_current_amounts() {
    let world = earned(payable().await).await;
    let run = world.draft().await;
    world.approve(&run).await;
    world.refund("in_1", 10_000, 5_000, 32 * DAY).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    let failed = world.fail(payout.id, "The account is closed").await.unwrap();
    assert_eq!(failed.payout.failure_reason.as_deref(), Some("The account is closed"));
    assert_eq!((failed.status, failed.payout.amount), (PayoutStatus::Failed, 3_000));
    assert_eq!(world.event_kinds(payout.id).await, ["payout.created", "payout.failed"]);
    let items = store::affiliate::payout::list_items(world.store(), world.account, payout.id, None, 10).await;
    assert_eq!(items.unwrap().len(), 2, "a failed payout keeps its items");
    assert!(world.fail(payout.id, "again").await.is_err());
    world.check_ledger().await;
    let bob = world.payout_of(world.bob, PayoutStatus::Processing).await.payout;
    world.mark_paid(bob.id, "r").await.unwrap();
    assert!(world.run(&run).await.is_partial);
    let next = world.draft().await;
    // Refunds in the meantime are applied now.
    assert_eq!(format!("{:?}", next.totals), "{usd: 2000}");
    world.check_ledger().await;
    world.approve(&next).await;
    assert_eq!(world.partner(world.ada).await.payouts_failed, 1);
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    world.fail(payout.id, "once more").await.unwrap();
    let ada = world.partner(world.ada).await;
    assert_eq!((ada.payouts_failed, ada.payout.unwrap().is_able), (2, false));
    assert_eq!(world.event_kinds(world.ada).await, ["affiliate.updated"]);
    let drafted = world.draft_run(None).await.unwrap();
    assert_eq!(drafted.skipped[0].reason, SkipReason::NotReady);
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_reversed_transfer_fails_its_payout() {
    let world = payable().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    let world = earned(world).await;
    let run = world.draft().await;
    world.approve(&run).await;
    world.work(&super::setting::Script::default()).await;
    let paid = world.payout_of(world.ada, PayoutStatus::Paid).await.payout;
    let transfer = paid.transfer.clone().unwrap();
    let part = json!({"id": transfer, "amount": 3_000, "amount_reversed": 10, "reversed": false});
    let answer = world.try_ingest(&world.event("transfer.reversed", 33 * DAY, part)).await;
    assert!(matches!(answer, IngestOutcome::Ignored(_)), "{answer:?}");
    let full_reversal = json!({"id": transfer, "amount": 3_000, "amount_reversed": 3_000, "reversed": true});
    world.ingest_object("transfer.reversed", 34 * DAY, full_reversal.clone()).await;
    let failed = world.payout_of(world.ada, PayoutStatus::Failed).await.payout;
    assert_eq!(failed.transfer, Some(transfer));
    assert_eq!(world.event_kinds(failed.id).await, ["payout.created", "payout.failed", "payout.paid"]);
    let answer = world.try_ingest(&world.event("transfer.reversed", 35 * DAY, full_reversal)).await;
    assert!(matches!(answer, IngestOutcome::Ignored(_)), "{answer:?}");
    world.check_ledger().await;
    assert!(world.run(&run).await.is_partial);
    assert_eq!(format!("{:?}", world.draft().await.totals), "{usd: 3000}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn an_account_that_takes_transfers_can_be_paid() {
    let world = payable().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    let takes_transfers = async || world.partner(world.ada).await.payout.unwrap().is_able;
    let account = |state: &str| json!({"id": "acct_ada", "object": "account", "capabilities": {"transfers": state}});
    world.ingest_object("account.updated", 10, account("inactive")).await;
    assert!(!takes_transfers().await);
    world.ingest_object("account.updated", 30, account("active")).await;
    assert!(takes_transfers().await);
    // An older version of the account arrives late.
    world.ingest_object("account.updated", 20, account("inactive")).await;
    assert!(takes_transfers().await);
    assert_eq!(world.event_kinds(world.ada).await, ["affiliate.updated", "affiliate.updated"]);
    let strange = json!({"id": "acct_x", "object": "account", "capabilities": {"transfers": "active"}});
    let answer = world.try_ingest(&world.event("account.updated", 40, strange)).await;
    assert!(matches!(answer, IngestOutcome::Ignored(_)), "{answer:?}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_partner_whose_account_stops_taking_transfers_leaves_the_draft() {
    let world = payable().await;
    world.pay_by(world.ada, PayoutMethod::Stripe, "acct_ada").await;
    let world = earned(world).await;
    let run = world.draft().await;
    assert_eq!((run.payouts, run.transfers), (2, 1));
    let inactive = json!({"id": "acct_ada", "object": "account", "capabilities": {"transfers": "inactive"}});
    world.ingest_object("account.updated", 40 * DAY, inactive).await;
    let after = world.run(&run).await;
    assert_eq!((after.payouts, after.transfers, format!("{:?}", after.totals)), (1, 0, "{usd: 750}".to_owned()));
    assert!(after.rev > run.rev);
    let skipped = world.skipped(&after).await;
    assert_eq!((skipped[0].partner, skipped[0].reason), (world.ada, SkipReason::NotReady));
    world.check_ledger().await;
    world.approve(&after).await;
    // The approved payout is in progress.
    let bob = world.payout_of(world.bob, PayoutStatus::Processing).await.payout;
    world.mark_paid(bob.id, "r").await.unwrap();
    let active = json!({"id": "acct_ada", "object": "account", "capabilities": {"transfers": "active"}});
    world.ingest_object("account.updated", 41 * DAY, active).await;
    assert_eq!(format!("{:?}", world.draft().await.totals), "{usd: 3000}");
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn concurrent_operations_have_one_consistent_result() {
    let (_directory, store) = super::setting::on_disk().await;
    let world = earned(payable_on(store).await).await;
    let drafts = (world.draft_run(None), world.draft_run(None));
    let (first_draft, second_draft) = tokio::join!(drafts.0, drafts.1);
    assert!(first_draft.is_ok() != second_draft.is_ok(), "one draft at a time: {first_draft:?} {second_draft:?}");
    let run = first_draft.or(second_draft).unwrap().run.unwrap();
    // A refund concurrent with the approval: the line leaves the draft, or is approved with it.
    let refund_event = world.event("charge.refunded", 32 * DAY, processor_objects::charge("in_2", 5_000, 5_000));
    let (approved, ingested) = tokio::join!(
        world.ledger.approve_run(world.account, run.id, run.rev, &run.totals, &no_extension),
        world.try_ingest(&refund_event)
    );
    assert!(matches!(ingested, IngestOutcome::Done));
    world.check_ledger().await;
    let run = match approved {
        Ok(run) => run,
        Err(_) => world.approve(&world.run(&run).await).await,
    };
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    let (first, second, third) = tokio::join!(
        world.mark_paid(payout.id, "one"),
        world.mark_paid(payout.id, "one"),
        world.mark_paid(payout.id, "two")
    );
    let done: Vec<_> = [first, second, third].into_iter().filter_map(Result::ok).collect();
    assert!(done.iter().all(|view| *view == done[0]) && !done.is_empty(), "{done:#?}");
    let kinds = world.event_kinds(payout.id).await;
    assert_eq!(kinds, ["payout.created", "payout.paid"]);
    assert_eq!(world.run(&run).await.open, 1);
    world.check_ledger().await;
    world.store().close().await;
}
