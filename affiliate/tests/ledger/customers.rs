//! A person with several customer ids at the processor: a payment link creates a customer per checkout. All of them
//! belong to one referral.

use affiliate::context::no_extension;
use affiliate::ledger::manual_actions::ReferralDecision;
use affiliate::referrals::{PartnerSelector, ReferralDraft};
use model::affiliate::referral::{CUSTOMERS_MAX, ReferralBlock, ReferralStatus};
use model::id::ReferralId;
use serde_json::json;

use super::processor_objects::{checkout, invoice, subscription};
use super::world::World;

const PERSON: &str = "lin@example.org";

/// Creates a lead whose first customer is linked and has paid once.
async fn world_with_paying_lead() -> (World, ReferralId) {
    let world = World::new().await;
    let lead = world.lead(PERSON, Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    (world, lead.id)
}

/// Checks that both customers belong to the referral, and that both of their payments earn.
async fn expect_both(world: &World, id: ReferralId) {
    let referral = world.referral(id).await;
    assert_eq!(
        (referral.customer.as_deref(), referral.later_customers.as_slice()),
        (Some("cus_1"), &["cus_2".to_owned()][..])
    );
    assert_eq!((referral.revenue_cents, referral.dealings.invoices, referral.blocked), (15_000, 2, None));
    let wanted = [
        "in_1/1 2000 of 10000 pending",
        "in_1/2 500 of 10000 pending",
        "in_2/1 1000 of 5000 pending",
        "in_2/2 250 of 5000 pending",
    ];
    assert_eq!(world.outline().await, wanted);
    assert_eq!(world.paying(world.ada).await, 1);
    world.audit().await;
}

#[tokio::test]
async fn a_second_customer_is_linked_by_its_session() {
    let (world, id) = world_with_paying_lead().await;
    // The attribution window has ended by then, but a linked referral accepts further customers.
    world.advance_days(90);
    let after = 90 * 86_400;
    let session = checkout("cs_2", Some("cus_2"), &id.to_string());
    world.ingest_object("checkout.session.completed", after, session).await;
    world.ingest_event(&world.paid("in_2", "cus_2", 5_000, after + 1)).await;
    expect_both(&world, id).await;
}

#[tokio::test]
async fn a_second_customer_of_the_same_visit_is_the_same_person() {
    let world = World::new().await;
    let visit = world.visit("ada", "browser_1").await;
    for (number, customer) in ["cus_1", "cus_2"].into_iter().enumerate() {
        let mut session = checkout(&format!("cs_{number}"), Some(customer), &visit.to_string());
        session["customer_details"]["email"] = json!(PERSON);
        world.ingest_object("checkout.session.completed", 10, session).await;
    }
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 20)).await;
    world.ingest_event(&world.paid("in_2", "cus_2", 5_000, 21)).await;
    let lines = world.lines().await;
    assert!(lines.iter().all(|line| line.referral == lines[0].referral));
    expect_both(&world, lines[0].referral).await;
}

#[tokio::test]
async fn a_second_customer_is_linked_by_metadata() {
    for kind in ["customer.created", "customer.subscription.created", "invoice.paid"] {
        let (world, id) = world_with_paying_lead().await;
        let mark = json!({"stx_referral": id.to_string()});
        let mut paid = invoice("in_2", "cus_2", 5_000, world.start + 20);
        match kind {
            "customer.created" => world.ingest_object(kind, 15, json!({"id": "cus_2", "metadata": mark})).await,
            "customer.subscription.created" => {
                let mut bought = subscription("sub_2", "cus_2", "active");
                bought["metadata"] = mark;
                world.ingest_object(kind, 15, bought).await;
            }
            _ => paid["metadata"] = mark,
        }
        world.ingest_object("invoice.paid", 20, paid).await;
        expect_both(&world, id).await;
    }
}

#[tokio::test]
async fn a_second_customer_is_linked_by_the_address_that_is_claimed() {
    let (world, id) = world_with_paying_lead().await;
    let mut paid = invoice("in_2", "cus_2", 5_000, world.start + 20);
    paid["customer_email"] = json!("Lin@example.org");
    world.ingest_object("invoice.paid", 20, paid).await;
    expect_both(&world, id).await;
    // The email may also arrive later.
    let (world, id) = world_with_paying_lead().await;
    world.ingest_event(&world.paid("in_2", "cus_2", 5_000, 20)).await;
    world.ingest_object("customer.updated", 30, json!({"id": "cus_2", "email": PERSON})).await;
    expect_both(&world, id).await;
}

#[tokio::test]
async fn a_second_customer_is_linked_by_the_api_whichever_partner_is_named() {
    let (world, id) = world_with_paying_lead().await;
    world.ingest_event(&world.paid("in_2", "cus_2", 5_000, 20)).await;
    let draft = ReferralDraft {
        partner: PartnerSelector::Id(world.bob),
        email: PERSON.parse().unwrap(),
        customer: Some("cus_2".to_owned()),
        sub_id: None,
    };
    for _ in 0..2 {
        let referred = world.ledger.refer(world.account, &draft, &no_extension).await.unwrap();
        assert!(!referred.created && referred.referral.id == id);
        assert_eq!(referred.referral.later_customers, ["cus_2"]);
    }
    expect_both(&world, id).await;
    // A lead without a customer accepts the one named later.
    let lead = world.lead("ono@example.org", None).await;
    let referred = world.lead("ono@example.org", Some("cus_3")).await;
    assert_eq!((referred.id, referred.customer.as_deref()), (lead.id, Some("cus_3")));
    // A customer of another person's referral stays there.
    assert_eq!(world.lead("ono@example.org", Some("cus_1")).await.id, id);
    world.audit().await;
}

#[tokio::test]
async fn the_status_of_a_person_depends_on_all_its_customers() {
    let (world, id) = world_with_paying_lead().await;
    let session = checkout("cs_2", Some("cus_2"), &id.to_string());
    world.ingest_object("checkout.session.completed", 15, session).await;
    world.ingest_event(&world.paid("in_2", "cus_2", 5_000, 20)).await;
    for (sub, customer) in [("sub_1", "cus_1"), ("sub_2", "cus_2")] {
        let mut bought = subscription(sub, customer, "active");
        bought["start_date"] = json!(world.start + 5);
        world.ingest_object("customer.subscription.created", 21, bought).await;
    }
    let cancelled = |sub: &str, customer: &str, at: i64| {
        let mut cancelled = subscription(sub, customer, "canceled");
        cancelled["start_date"] = json!(world.start + 5);
        cancelled["ended_at"] = json!(world.start + at);
        cancelled
    };
    world.ingest_object("customer.subscription.deleted", 30, cancelled("sub_1", "cus_1", 30)).await;
    assert_eq!(world.referral(id).await.status, ReferralStatus::Active);
    world.ingest_object("customer.subscription.deleted", 40, cancelled("sub_2", "cus_2", 40)).await;
    assert_eq!(world.referral(id).await.status, ReferralStatus::Cancelled);
    // The owner's decision applies to the purchases of all customers.
    world.ledger.decide_referral(world.account, id, ReferralDecision::Reject, None, &no_extension).await.unwrap();
    assert!(world.lines().await.iter().all(|line| line.status.word() == "reversed"));
    world.audit().await;
}

#[tokio::test]
async fn a_person_who_had_paid_as_another_customer_is_an_existing_customer() {
    let (world, id) = world_with_paying_lead().await;
    world.ingest_event(&world.paid("in_0", "cus_0", 5_000, -500)).await;
    let session = checkout("cs_0", Some("cus_0"), &id.to_string());
    world.ingest_object("checkout.session.completed", 30, session).await;
    assert_eq!(world.referral(id).await.blocked, Some(ReferralBlock::ExistingCustomer));
    assert!(world.lines().await.iter().all(|line| line.status.word() == "reversed"));
    world.audit().await;
}

#[tokio::test]
async fn the_number_of_customers_of_one_person_is_limited() {
    let (world, id) = world_with_paying_lead().await;
    for number in 2..=CUSTOMERS_MAX + 1 {
        let session = checkout("cs", Some(&format!("cus_{number}")), &id.to_string());
        world.ingest_object("checkout.session.completed", 15, session).await;
    }
    assert_eq!(world.referral(id).await.customers().count(), CUSTOMERS_MAX);
    world.audit().await;
}
