//! Manual operations of the owner and the API.

use affiliate::context::no_extension;
use affiliate::error::{AffiliateError, ConflictReason};
use affiliate::ledger::manual_actions::ReferralDecision;
use model::affiliate::commission::{Commission, ReversalReason};
use model::affiliate::referral::{ReferralStatus, ReviewStatus};
use model::event::{Event, EventKind};
use model::id::{CommissionId, EventId, ReferralId};

use serde_json::json;
use store::engine::Batch;

use super::processor_objects::{charge, dispute};
use super::world::World;

async fn world_with_sale() -> (World, ReferralId) {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    (world, lead.id)
}

impl World {
    async fn line_of(&self, amount: i64) -> CommissionId {
        self.lines().await.iter().find(|line| line.amount == amount).unwrap().id
    }

    async fn reverse(&self, id: CommissionId, reason: ReversalReason) -> Result<Commission, AffiliateError> {
        self.ledger.reverse_commission(self.account, id, &reason.into(), &no_extension).await
    }

    async fn reinstate(&self, id: CommissionId) -> Result<Commission, AffiliateError> {
        self.ledger.reinstate_commission(self.account, id, None, &no_extension).await
    }

    async fn decide(&self, id: ReferralId, verdict: ReferralDecision) -> model::affiliate::referral::Referral {
        self.ledger.decide_referral(self.account, id, verdict, None, &no_extension).await.unwrap()
    }
}

#[tokio::test]
async fn a_manual_reversal_keeps_the_recruiters_share_and_a_fraud_reversal_does_not() {
    let (world, _) = world_with_sale().await;
    let line = world.line_of(2_000).await;
    assert_eq!(world.reverse(line, ReversalReason::Manual).await.unwrap().status.word(), "reversed");
    let manual = ["in_1/1 2000 of 10000 reversed manual", "in_1/2 500 of 10000 pending"];
    assert_eq!(world.outline().await, manual);
    // A second reversal changes nothing, whatever its reason.
    world.reverse(line, ReversalReason::Fraud).await.unwrap();
    assert_eq!(world.outline().await, manual);
    assert_eq!(world.reinstate(line).await.unwrap().status.word(), "pending");
    world.reverse(line, ReversalReason::Fraud).await.unwrap();
    let fraud = ["in_1/1 2000 of 10000 reversed fraud", "in_1/2 500 of 10000 reversed fraud"];
    assert_eq!(world.outline().await, fraud);
    assert_eq!(world.event_kinds(line).await, ["commission.created", "commission.reversed", "commission.reversed"]);
    world.audit().await;
}

#[tokio::test]
async fn a_commission_that_is_not_reversed_cannot_be_reinstated() {
    let (world, _) = world_with_sale().await;
    let line = world.line_of(2_000).await;
    let refused = world.reinstate(line).await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::NotReversed))), "{refused:?}");
    let nobody = CommissionId::new(world.second(0), 1);
    assert!(matches!(world.reverse(nobody, ReversalReason::Manual).await, Err(AffiliateError::NotFound(_))));
}

#[tokio::test]
async fn a_rejected_referral_earns_nothing_until_it_is_allowed() {
    let (world, referral) = world_with_sale().await;
    let rejected = world.decide(referral, ReferralDecision::Reject).await;
    assert_eq!(rejected.status, ReferralStatus::Rejected);
    assert_eq!(rejected.review.unwrap().status, ReviewStatus::Rejected);
    let fraud = ["in_1/1 2000 of 10000 reversed fraud", "in_1/2 500 of 10000 reversed fraud"];
    assert_eq!((world.outline().await, world.paying(world.ada).await), (fraud.map(str::to_owned).to_vec(), 0));
    let line = world.line_of(2_000).await;
    let refused = world.reinstate(line).await;
    assert!(matches!(refused, Err(AffiliateError::Conflict(ConflictReason::ReferralBarred))), "{refused:?}");
    world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 20)).await;
    assert_eq!(world.lines().await.len(), 2);
    world.audit().await;
    let allowed = world.decide(referral, ReferralDecision::Allow).await;
    assert_eq!((allowed.status, allowed.rejection), (ReferralStatus::Active, None));
    assert_eq!(world.paying(world.ada).await, 1);
    world.ingest_event(&world.paid("in_3", "cus_1", 10_000, 30)).await;
    let outline = world.outline().await;
    assert!(outline.contains(&fraud[0].to_owned()), "its reversed lines stay so");
    assert!(outline.contains(&"in_3/1 2000 of 10000 pending".to_owned()));
    world.decide(referral, ReferralDecision::Allow).await;
    assert_eq!(world.outline().await, outline);
    world.audit().await;
}

/// All permutations of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[tokio::test]
async fn reinstating_waives_only_the_known_disputes() {
    let named = |id: &str, status: &str| {
        let mut dispute = dispute("in_1", status);
        dispute["id"] = json!(id);
        dispute
    };
    for order in ORDERS {
        let (world, _) = world_with_sale().await;
        world.ingest_object("charge.dispute.created", 20, named("dp_1", "needs_response")).await;
        world.ingest_object("charge.dispute.closed", 30, named("dp_1", "lost")).await;
        let line = world.line_of(2_000).await;
        world.reinstate(line).await.unwrap();
        // Repeated events of the waived dispute.
        world.ingest_object("charge.dispute.updated", 40, named("dp_1", "lost")).await;
        assert_eq!(world.outline().await[0], "in_1/1 2000 of 10000 pending");
        let facts = [
            world.event("charge.dispute.created", 50, named("dp_2", "needs_response")),
            world.event("charge.dispute.closed", 60, named("dp_1", "won")),
            world.event("charge.dispute.closed", 70, named("dp_2", "won")),
        ];
        for index in order {
            world.ingest_event(&facts[index]).await;
        }
        assert_eq!(world.outline().await[0], "in_1/1 2000 of 10000 reversed dispute", "{order:?}");
        world.reinstate(line).await.unwrap();
        assert_eq!(world.outline().await[0], "in_1/1 2000 of 10000 pending");
        world.audit().await;
    }
}

#[tokio::test]
async fn reinstating_waives_only_the_known_refunds() {
    for order in ORDERS {
        let (world, _) = world_with_sale().await;
        world.ingest_object("charge.refunded", 20, charge("in_1", 10_000, 10_000)).await;
        let line = world.line_of(2_000).await;
        world.reinstate(line).await.unwrap();
        // A late event about the time before the waiver does not count as a new refund.
        world.ingest_object("charge.refunded", 15, charge("in_1", 10_000, 2_000)).await;
        let expected = "in_1/1 1600 of 8000 pending";
        assert_eq!(world.outline().await[0], expected);
        // Neither does a repeated event.
        world.ingest_object("charge.refunded", 25, charge("in_1", 10_000, 10_000)).await;
        assert_eq!(world.outline().await[0], expected);
        let facts = [
            world.event("charge.refunded", 30, charge("in_1", 10_000, 10_000)),
            world.event("charge.refunded", 40, charge("in_1", 10_000, 0)),
            world.event("charge.refunded", 50, charge("in_1", 10_000, 10_000)),
        ];
        for index in order {
            world.ingest_event(&facts[index]).await;
        }
        assert_eq!(world.outline().await[0], "in_1/1 2000 of 10000 reversed refund", "{order:?}");
        world.audit().await;
    }
}

#[tokio::test]
async fn a_partial_and_a_full_refund_within_one_second() {
    let (world, _) = world_with_sale().await;
    world.ingest_object("charge.refunded", 20, charge("in_1", 10_000, 2_500)).await;
    assert_eq!(world.outline().await[0], "in_1/1 1500 of 7500 pending");
    world.ingest_object("charge.refunded", 20, charge("in_1", 10_000, 10_000)).await;
    assert_eq!(world.outline().await[0], "in_1/1 1500 of 7500 reversed refund");
    world.audit().await;
}

#[tokio::test]
async fn the_audit_finds_missing_and_duplicate_events() {
    let (world, referral) = world_with_sale().await;
    world.audit().await;
    let line = world.line_of(2_000).await;
    let events = store::event::list(world.store(), world.account, line, 10).await.unwrap();
    let broken = async || {
        let audit = affiliate::audit::audit(&world.ledger, world.account).await.unwrap();
        audit.broken.into_iter().map(|broken| (broken.invariant.word(), broken.subject)).collect::<Vec<_>>()
    };
    let mut batch = Batch::progress();
    store::event::delete(&mut batch, world.account, line.into(), events[0].id);
    world.store().commit(batch).await.unwrap();
    assert_eq!(broken().await, [("I10", line.to_string())]);
    // A duplicate event is a violation as well.
    let mut batch = Batch::progress();
    let converted = store::event::list(world.store(), world.account, referral, 10).await.unwrap();
    let converted = converted.into_iter().find(|event| event.kind == EventKind::ReferralConverted).unwrap();
    let [first, second] = [1, 2].map(|number| EventId::new(world.second(20), number));
    for event in [Event { id: first, ..events[0].clone() }, Event { id: second, ..converted }] {
        store::event::record_in_any_partition(&mut batch, &event);
    }
    world.store().commit(batch).await.unwrap();
    assert_eq!(broken().await, [("I10", referral.to_string())]);
    // Beyond the event retention, a missing event is no violation.
    let mut batch = Batch::progress();
    store::event::delete(&mut batch, world.account, referral.into(), second);
    store::event::delete(&mut batch, world.account, line.into(), first);
    world.store().commit(batch).await.unwrap();
    world.advance_days(31);
    assert_eq!(broken().await, []);
}
