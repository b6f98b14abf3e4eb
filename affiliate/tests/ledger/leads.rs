//! Leads and their bounties.

use affiliate::context::no_extension;
use affiliate::ledger::manual_actions::ReferralDecision;
use affiliate::referrals::{PartnerSelector, ReferralDraft};
use model::affiliate::campaign::CommissionTerms;
use model::affiliate::referral::{ReferralBlock, ReviewStatus};
use serde_json::json;
use store::engine::Store;

use super::processor_objects::invoice;
use super::world::{World, terms};

fn with_bounty() -> CommissionTerms {
    CommissionTerms { lead_bounty: 500, ..terms() }
}

#[tokio::test]
async fn a_lead_earns_its_bounty_once() {
    let world = World::with_settings(Store::memory(), with_bounty(), |_| {}).await;
    let lead = world.lead("lin@example.org", None).await;
    assert_eq!(world.lead("Lin@example.org", None).await.id, lead.id);
    assert_eq!(world.outline().await, ["bounty/1 500 of 0 pending"]);
    assert_eq!(world.event_kinds(lead.id).await, ["referral.created"]);
    world.ledger.decide_referral(world.account, lead.id, ReferralDecision::Reject, None, &no_extension).await.unwrap();
    assert_eq!(world.outline().await, ["bounty/1 500 of 0 reversed fraud"]);
    // Self-referrals and existing customers earn no bounty.
    assert_eq!(world.lead("ada+me@partners.example", None).await.blocked, Some(ReferralBlock::SelfReferral));
    world.ingest_event(&world.paid("in_0", "cus_0", 1_000, -1_000)).await;
    let old = world.lead("ono@example.org", Some("cus_0")).await;
    assert_eq!(old.blocked, Some(ReferralBlock::ExistingCustomer));
    assert_eq!(world.lines().await.len(), 1);
    world.audit().await;
}

#[tokio::test]
async fn bounties_beyond_the_daily_limit_are_held_for_review() {
    let world =
        World::with_settings(Store::memory(), with_bounty(), |settings| settings.max_bounties_per_day = 2).await;
    for name in ["a", "b"] {
        assert_eq!(world.lead(&format!("{name}@example.org"), None).await.review, None);
    }
    let third = world.lead("c@example.org", None).await;
    assert_eq!(third.review.unwrap().status, ReviewStatus::Open);
    let wanted = ["bounty/1 500 of 0 pending", "bounty/1 500 of 0 pending", "bounty/1 500 of 0 pending frozen"];
    assert_eq!(world.outline().await, wanted);
    world.advance_days(31);
    assert_eq!(world.end_holds().await, 2);
    world.ledger.decide_referral(world.account, third.id, ReferralDecision::Allow, None, &no_extension).await.unwrap();
    assert_eq!(world.end_holds().await, 1);
    world.audit().await;
}

#[tokio::test]
async fn a_lapsed_lead_can_be_claimed_by_another_partner() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", None).await;
    world.advance_days(31);
    let draft = ReferralDraft {
        partner: PartnerSelector::Id(world.bob),
        email: "lin@example.org".parse().unwrap(),
        customer: None,
        sub_id: None,
    };
    let new = world.ledger.refer(world.account, &draft, &no_extension).await.unwrap();
    assert!(new.created && new.referral.partner == world.bob);
    assert_eq!(world.referral(lead.id).await.status.word(), "rejected");
    world.audit().await;
    let after = world.clock.now().as_second() - world.start + 10;
    let mut paid = invoice("in_1", "cus_1", 10_000, world.start + after);
    paid["customer_email"] = json!("lin@example.org");
    // The metadata name the lapsed referral, which accepts no customers.
    paid["metadata"] = json!({"stx_referral": lead.id});
    world.ingest_object("invoice.paid", after, paid).await;
    let lines = world.lines().await;
    assert_eq!((lines.len(), lines[0].referral), (1, new.referral.id));
    world.audit().await;
}

#[tokio::test]
async fn a_partner_that_buys_through_its_own_lead_earns_nothing() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_object("customer.created", 5, json!({"id": "cus_1", "email": "ADA+x@partners.example"})).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert_eq!(world.referral(lead.id).await.blocked, Some(ReferralBlock::SelfReferral));
    assert!(world.lines().await.is_empty());
    world.audit().await;
}

#[tokio::test]
async fn a_claim_covers_all_invoices_of_a_customer() {
    let world = World::new().await;
    for number in 1..=250 {
        world.ingest_event(&world.paid(&format!("in_{number}"), "cus_1", 1_000, 10 + number)).await;
    }
    assert!(world.lines().await.is_empty());
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    assert_eq!((lead.dealings.invoices, lead.revenue_cents), (250, 250_000));
    assert_eq!(world.lines().await.len(), 500);
    world.audit().await;
}

#[tokio::test]
async fn a_decision_covers_all_purchases_of_a_guest() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", None).await;
    for number in 1..=260 {
        let mut paid = invoice(&format!("in_{number}"), "", 1_000, world.start + 10);
        paid["customer"] = serde_json::Value::Null;
        paid["metadata"] = json!({"stx_referral": lead.id});
        world.ingest_object("invoice.paid", 10, paid).await;
    }
    assert_eq!(world.lines().await.len(), 520);
    world.ledger.decide_referral(world.account, lead.id, ReferralDecision::Reject, None, &no_extension).await.unwrap();
    assert!(world.lines().await.iter().all(|line| line.status.word() == "reversed"));
    world.audit().await;
}
