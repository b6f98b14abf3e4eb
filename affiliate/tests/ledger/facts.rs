//! Facts of the payment processor: one test per kind of event.

use affiliate::ledger::ingest::IngestOutcome;
use model::affiliate::campaign::{CommissionDuration, CommissionTerms};
use model::affiliate::referral::{ReferralBlock, ReferralStatus};
use model::id::ReferralId;
use serde_json::{Value, json};
use store::affiliate::processor_state::{self, ProcessorObjectKind, StoredProcessorObject};
use store::engine::{Batch, Store};

use super::processor_objects::{charge, checkout, dispute, invoice, refund, subscription};
use super::world::{World, terms};

const SALE: [&str; 2] = ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"];
const EXCLUDED: [&str; 2] = ["in_1/1 2000 of 10000 reversed excluded", "in_1/2 500 of 10000 reversed excluded"];

#[tokio::test]
async fn an_invoice_of_a_linked_customer_converts_and_earns() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert_eq!(world.outline().await, SALE);
    let referral = world.referral(lead.id).await;
    assert_eq!((referral.status, referral.revenue_cents), (ReferralStatus::Active, 10_000));
    assert_eq!(referral.converted_at, Some(world.second(10)));
    // The same invoice in another event type has no further effect.
    let duplicate = invoice("in_1", "cus_1", 10_000, world.start + 10);
    world.ingest_object("invoice.payment_succeeded", 11, duplicate).await;
    world.ingest_event(&world.paid("in_2", "cus_1", 1_000, 20)).await;
    assert_eq!(world.event_kinds(lead.id).await, ["referral.converted", "referral.created"]);
    for line in world.lines().await {
        assert_eq!(world.event_kinds(line.id).await, ["commission.created"]);
    }
    assert_eq!((world.lines().await.len(), world.paying(world.ada).await), (4, 1));
    assert_eq!(world.referral(lead.id).await.revenue_cents, 11_000);
    world.audit().await;
}

#[tokio::test]
async fn an_invoice_finds_its_lead_by_address_or_metadata() {
    let world = World::new().await;
    let by_email = world.lead("lin@example.org", None).await;
    let by_metadata = world.lead("ono@example.org", None).await;
    let mut first = invoice("in_1", "cus_1", 10_000, world.start + 10);
    first["customer_email"] = json!("Lin@Example.org");
    world.ingest_object("invoice.paid", 10, first).await;
    let mut second = invoice("in_2", "cus_2", 10_000, world.start + 10);
    second["metadata"] = json!({"stx_referral": by_metadata.id});
    world.ingest_object("invoice.paid", 10, second).await;
    assert_eq!(world.referral(by_email.id).await.customer.as_deref(), Some("cus_1"));
    assert_eq!(world.referral(by_metadata.id).await.customer.as_deref(), Some("cus_2"));
    assert_eq!((world.lines().await.len(), world.paying(world.ada).await), (4, 2));
    // An invoice without a referral earns nothing; its state is stored.
    world.ingest_event(&world.paid("in_3", "cus_3", 10_000, 12)).await;
    assert_eq!(world.lines().await.len(), 4);
    world.audit().await;
}

#[tokio::test]
async fn a_checkout_links_the_customer_and_earlier_invoices_earn() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", None).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert!(world.lines().await.is_empty());
    let session = checkout("cs_1", Some("cus_1"), &lead.id.to_string());
    world.ingest_object("checkout.session.completed", 11, session.clone()).await;
    assert_eq!(world.outline().await, SALE, "and the session itself wrote nothing");
    world.ingest_object("checkout.session.async_payment_succeeded", 12, session).await;
    assert_eq!(world.lines().await.len(), 2);
    assert_eq!(world.referral(lead.id).await.customer.as_deref(), Some("cus_1"));
    world.audit().await;
}

#[tokio::test]
async fn many_invoices_of_a_new_customer_take_several_commits() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", None).await;
    for number in 0..230 {
        world.ingest_event(&world.paid(&format!("in_{number}"), "cus_1", 1_000, 10 + number)).await;
    }
    let session = checkout("cs_1", Some("cus_1"), &lead.id.to_string());
    world.ingest_object("checkout.session.completed", 500, session).await;
    assert_eq!(world.lines().await.len(), 460);
    let referral = world.referral(lead.id).await;
    assert_eq!((referral.revenue_cents, referral.dealings.invoices), (230_000, 230));
    assert_eq!(referral.converted_at, Some(world.second(10)));
    assert_eq!(world.event_kinds(lead.id).await, ["referral.converted", "referral.created"]);
    // A flag that excludes all of them.
    let flagged = json!({"id": "cus_1", "created": world.start + 10, "metadata": {"stx": "false"}});
    world.ingest_object("customer.created", 501, flagged).await;
    assert!(world.outline().await.iter().all(|line| line.ends_with(" reversed excluded")));
    world.audit().await;
}

#[tokio::test]
async fn a_checkout_without_an_invoice_is_a_sale_if_the_settings_allow_it() {
    for (counts, lines) in [(false, 0), (true, 2)] {
        let world = World::new().await;
        let set =
            |settings: &mut model::affiliate::program::ProgramSettings| settings.count_invoiceless_payments = true;
        let world = if counts { World::with_settings(Store::memory(), terms(), set).await } else { world };
        let lead = world.lead("lin@example.org", None).await;
        // A guest checkout counts as well.
        let session = checkout("cs_1", None, &lead.id.to_string());
        world.ingest_object("checkout.session.completed", 11, session).await;
        assert_eq!(world.lines().await.len(), lines);
        if counts {
            world.ingest_object("charge.refunded", 20, charge("cs_1", 5_000, 5_000)).await;
            let wanted = ["pi_cs_1/1 1000 of 5000 reversed refund", "pi_cs_1/2 250 of 5000 reversed refund"];
            assert_eq!(world.outline().await, wanted);
        }
        world.audit().await;
    }
}

/// A session without an invoice, the same session with its invoice, and the paid invoice, in any order and repeated:
/// only the invoice earns.
#[tokio::test]
async fn a_payment_of_a_session_and_an_invoice_counts_once() {
    let count = |settings: &mut model::affiliate::program::ProgramSettings| settings.count_invoiceless_payments = true;
    let once = CommissionTerms { duration: CommissionDuration::Once, ..terms() };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 0], [2, 0, 2]] {
        for terms in [terms(), once.clone()] {
            let world = World::with_settings(Store::memory(), terms, count).await;
            let lead = world.lead("lin@example.org", Some("cus_1")).await;
            let mut session = checkout("in_1", Some("cus_1"), &lead.id.to_string());
            session["amount_total"] = json!(10_000);
            let early = world.event("checkout.session.completed", 9, session.clone());
            session["invoice"] = json!("in_1");
            let late = world.event("checkout.session.async_payment_succeeded", 12, session);
            let events = [early, late, world.paid("in_1", "cus_1", 10_000, 10)];
            for index in order {
                world.try_ingest(&events[index]).await;
            }
            let mut outline = world.outline().await;
            outline.retain(|line| !line.contains("reversed"));
            assert_eq!(outline, ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"], "{order:?}");
            let referral = world.referral(lead.id).await;
            assert_eq!((referral.revenue_cents, referral.dealings.invoices), (10_000, 1), "{order:?}");
            assert_eq!(referral.converted_at, Some(world.second(9)), "{order:?}");
            world.ingest_object("charge.refunded", 20, charge("in_1", 10_000, 10_000)).await;
            assert!(world.outline().await.iter().all(|line| line.contains("reversed")), "{order:?}");
            assert_eq!(world.referral(lead.id).await.revenue_cents, 0, "{order:?}");
            world.audit().await;
        }
    }
}

/// The invoice's payment becomes known by an event of its own, in any order.
#[tokio::test]
async fn a_linked_invoice_replaces_the_sale_of_its_session() {
    let count = |settings: &mut model::affiliate::program::ProgramSettings| settings.count_invoiceless_payments = true;
    let once = CommissionTerms { duration: CommissionDuration::Once, ..terms() };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for terms in [terms(), once.clone()] {
            let world = World::with_settings(Store::memory(), terms, count).await;
            let lead = world.lead("lin@example.org", Some("cus_1")).await;
            let mut session = checkout("in_1", Some("cus_1"), &lead.id.to_string());
            session["amount_total"] = json!(10_000);
            let mut invoice = world.paid("in_1", "cus_1", 10_000, 10);
            invoice["data"]["object"]["payments"] = json!({"data": []});
            let link = json!({
                "id": "inpay_1", "object": "invoice_payment", "invoice": "in_1", "status": "paid",
                "payment": {"type": "payment_intent", "payment_intent": "pi_in_1"},
            });
            let events = [
                world.event("checkout.session.completed", 9, session),
                invoice,
                world.event("invoice_payment.paid", 12, link),
            ];
            for index in order {
                world.try_ingest(&events[index]).await;
            }
            let mut outline = world.outline().await;
            outline.retain(|line| !line.contains("reversed"));
            assert_eq!(outline, ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"], "{order:?}");
            assert_eq!(world.referral(lead.id).await.revenue_cents, 10_000, "{order:?}");
            world.audit().await;
        }
    }
}

/// The flag on a session without an invoice excludes the invoice of its payment, in either order, also if such sessions
/// do not count as sales.
#[tokio::test]
async fn a_flag_on_a_session_excludes_the_invoice_of_its_payment() {
    let settings: [fn(&mut model::affiliate::program::ProgramSettings); 2] =
        [|settings| settings.count_invoiceless_payments = true, |settings| settings.count_invoiceless_payments = false];
    for (set, session_first) in settings.into_iter().flat_map(|set| [(set, true), (set, false)]) {
        let world = World::with_settings(Store::memory(), terms(), set).await;
        let lead = world.lead("lin@example.org", Some("cus_1")).await;
        let mut session = checkout("in_1", Some("cus_1"), &lead.id.to_string());
        session["amount_total"] = json!(10_000);
        session["metadata"]["stx"] = json!("False");
        let session = world.event("checkout.session.completed", 9, session);
        let invoice = world.paid("in_1", "cus_1", 10_000, 10);
        let events = if session_first { [session, invoice] } else { [invoice, session] };
        let lines: &[&str] = if session_first { &[] } else { &EXCLUDED };
        for event in &events {
            world.ingest_event(event).await;
        }
        assert_eq!(world.outline().await, lines, "{session_first}");
        assert_eq!(world.referral(lead.id).await.revenue_cents, 10_000, "it converts all the same");
        world.audit().await;
    }
}

/// The processor creates customer, subscription, session, charge and invoice together, and sends them in any order.
#[tokio::test]
async fn a_flag_excludes_a_sale_before_and_after_its_invoice() {
    for kind in [
        "customer.created",
        "customer.subscription.created",
        "checkout.session.completed",
        "charge.succeeded",
        "invoice.payment_succeeded",
    ] {
        for flag_first in [true, false] {
            let world = World::new().await;
            let lead = world.lead("lin@example.org", Some("cus_1")).await;
            let mut flagged = match kind {
                "customer.created" => json!({"id": "cus_1"}),
                "customer.subscription.created" => subscription("sub_1", "cus_1", "active"),
                "checkout.session.completed" => checkout("in_1", Some("cus_1"), &lead.id.to_string()),
                "charge.succeeded" => charge("in_1", 10_000, 0),
                _ => invoice("in_1", "cus_1", 10_000, world.start + 10),
            };
            flagged["created"] = json!(world.start + 10);
            flagged["metadata"] = json!({"stx": "false"});
            if kind.starts_with("checkout") {
                flagged["invoice"] = json!("in_1");
            }
            // The event follows what it reports.
            let flagged = world.event(kind, 13, flagged);
            let mut invoice = world.paid("in_1", "cus_1", 10_000, 10);
            invoice["data"]["object"]["subscription"] = json!("sub_1");
            let events = if flag_first { [flagged, invoice] } else { [invoice, flagged] };
            let lines: &[&str] = if flag_first { &[] } else { &EXCLUDED };
            for event in &events {
                world.ingest_event(event).await;
            }
            assert_eq!(world.outline().await, lines, "{kind} {flag_first}");
            assert_eq!(world.referral(lead.id).await.revenue_cents, 10_000, "{kind}: it converts all the same");
            world.audit().await;
        }
    }
}

/// Returns an event of a customer, or of the subscription of its invoices; the object was created in second 10.
fn flag_event(world: &World, noun: &str, kind: &str, after: i64, stx: &str) -> Value {
    let mut object = if noun == "customer" { json!({"id": "cus_1"}) } else { subscription("sub_1", "cus_1", "active") };
    object["created"] = json!(world.start + 10);
    object["metadata"] = json!({"stx": stx});
    world.event(&format!("{noun}.{kind}"), after, object)
}

/// Returns the event of a paid invoice of a subscription.
fn renewal(world: &World, id: &str, after: i64) -> Value {
    let mut event = world.paid(id, "cus_1", 10_000, after);
    event["data"]["object"]["subscription"] = json!("sub_1");
    event
}

/// The flag is set at the creation in second 10 and removed in second 40.
#[tokio::test]
async fn a_flag_of_a_creation_excludes_what_is_paid_before_its_removal() {
    for noun in ["customer", "customer.subscription"] {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [1, 3, 2, 0], [2, 0, 3, 1], [0, 3, 2, 1], [0, 3, 1, 2]]
        {
            let world = World::new().await;
            let lead = world.lead("lin@example.org", Some("cus_1")).await;
            let events = [
                flag_event(&world, noun, "created", 12, "false"),
                renewal(&world, "in_1", 20),
                flag_event(&world, noun, "updated", 40, ""),
                renewal(&world, "in_2", 50),
            ];
            for index in order {
                world.ingest_event(&events[index]).await;
            }
            let (reversed, earning): (Vec<_>, Vec<_>) =
                world.outline().await.into_iter().partition(|line| line.contains("reversed"));
            assert!(reversed.is_empty() || reversed == EXCLUDED, "{noun} {order:?}: {reversed:?}");
            let names: Vec<_> = earning.iter().filter_map(|line| line.split(' ').next()).collect();
            assert_eq!(names, ["in_2/1", "in_2/2"], "{noun} {order:?}");
            assert_eq!(world.referral(lead.id).await.revenue_cents, 20_000, "{noun} {order:?}");
            world.audit().await;
        }
    }
}

/// Version 0.1.0 does not know the flags of creations, and writes customers without them.
#[tokio::test]
async fn an_excluded_sale_stays_excluded_if_the_flag_of_the_creation_is_lost() {
    for (noun, field) in [("customer", "creation_flag"), ("customer.subscription", "subscription_flags")] {
        let world = World::new().await;
        world.lead("lin@example.org", Some("cus_1")).await;
        world.ingest_event(&renewal(&world, "in_1", 20)).await;
        world.ingest_event(&flag_event(&world, noun, "created", 12, "false")).await;
        assert_eq!(world.outline().await, EXCLUDED, "{noun}");
        let (account, kind) = (world.account, ProcessorObjectKind::Customer);
        let read: StoredProcessorObject<Value> =
            processor_state::get(world.store(), account, kind, "cus_1").await.unwrap();
        let mut row = read.value.unwrap();
        assert!(row.as_object_mut().unwrap().remove(field).is_some(), "{noun}");
        let mut batch = Batch::progress();
        StoredProcessorObject::put(&mut batch, account, kind, "cus_1", &row);
        world.store().commit(batch).await.unwrap();
        // The invoice is recomputed.
        world.ingest_event(&world.event("charge.refunded", 31, charge("in_1", 10_000, 5_000))).await;
        let lines = world.outline().await;
        assert_eq!(lines.len(), 2, "{noun}");
        assert!(lines.iter().all(|line| line.ends_with("reversed excluded")), "{noun}: {lines:?}");
        world.audit().await;
    }
}

#[tokio::test]
async fn a_flag_that_is_set_later_excludes_later_sales_only() {
    for noun in ["customer", "customer.subscription"] {
        let world = World::new().await;
        world.lead("lin@example.org", Some("cus_1")).await;
        for event in [
            renewal(&world, "in_1", 20),
            flag_event(&world, noun, "updated", 30, "false"),
            // The invoice is recomputed.
            world.event("charge.refunded", 31, charge("in_1", 10_000, 5_000)),
            renewal(&world, "in_2", 40),
            flag_event(&world, noun, "updated", 50, ""),
            renewal(&world, "in_3", 60),
        ] {
            world.ingest_event(&event).await;
        }
        let lines = [
            "in_1/1 1000 of 5000 pending",
            "in_1/2 250 of 5000 pending",
            "in_3/1 2000 of 10000 pending",
            "in_3/2 500 of 10000 pending",
        ];
        assert_eq!(world.outline().await, lines, "{noun}");
        world.audit().await;
    }
}

/// A back-fill ingests customers and subscriptions as they are in second 100, then their invoices. Other events about
/// them may arrive before, between and after.
#[tokio::test]
async fn a_flag_that_a_backfill_finds_excludes_earlier_sales() {
    for noun in ["customer", "customer.subscription"] {
        let world = World::new().await;
        let lead = world.lead("lin@example.org", Some("cus_1")).await;
        for event in [
            flag_event(&world, noun, "updated", 30, "false"),
            flag_event(&world, noun, "updated", 100, "false"),
            flag_event(&world, noun, "updated", 50, "false"),
            renewal(&world, "in_1", 20),
            flag_event(&world, noun, "updated", 40, "false"),
            renewal(&world, "in_2", 45),
            flag_event(&world, noun, "updated", 120, "false"),
        ] {
            world.ingest_event(&event).await;
        }
        assert!(world.lines().await.is_empty(), "{noun}");
        assert_eq!(world.referral(lead.id).await.revenue_cents, 20_000, "{noun}");
        world.audit().await;
    }
}

/// The only commission stays with the first sale that wrote it, also while that sale is excluded.
#[tokio::test]
async fn an_excluded_sale_keeps_a_commission_once() {
    let once = CommissionTerms { duration: CommissionDuration::Once, ..terms() };
    let world = World::with_settings(Store::memory(), once, |_| {}).await;
    world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&renewal(&world, "in_1", 20)).await;
    world.ingest_event(&flag_event(&world, "customer", "created", 12, "false")).await;
    world.ingest_event(&flag_event(&world, "customer", "updated", 25, "")).await;
    world.ingest_event(&renewal(&world, "in_2", 30)).await;
    assert_eq!(world.outline().await, EXCLUDED);
    // The flag was removed before the first sale.
    world.ingest_event(&flag_event(&world, "customer", "updated", 15, "")).await;
    world.ingest_event(&renewal(&world, "in_3", 40)).await;
    assert_eq!(world.outline().await, SALE);
    world.audit().await;
}

/// The session of a guest names the referral; the invoice of its payment names a customer that nobody referred.
#[tokio::test]
async fn an_invoice_is_attributed_by_the_session_of_its_payment() {
    for session_first in [true, false] {
        let set =
            |settings: &mut model::affiliate::program::ProgramSettings| settings.count_invoiceless_payments = true;
        let world = World::with_settings(Store::memory(), terms(), set).await;
        let lead = world.lead("lin@example.org", None).await;
        let mut session = checkout("in_1", None, &lead.id.to_string());
        session["amount_total"] = json!(10_000);
        let session = world.event("checkout.session.completed", 11, session);
        let invoice = world.paid("in_1", "cus_new", 10_000, 12);
        let events = if session_first { [session, invoice] } else { [invoice, session] };
        for event in &events {
            world.ingest_event(event).await;
        }
        let mut outline = world.outline().await;
        outline.retain(|line| !line.contains("reversed"));
        assert_eq!(outline, ["in_1/1 2000 of 10000 pending", "in_1/2 500 of 10000 pending"], "{session_first}");
        assert_eq!(world.referral(lead.id).await.revenue_cents, 10_000, "{session_first}");
        world.audit().await;
    }
}

#[tokio::test]
async fn a_flag_on_the_charge_excludes_what_it_paid() {
    for kind in ["charge.succeeded", "charge.updated"] {
        let world = World::new().await;
        let lead = world.lead("lin@example.org", Some("cus_1")).await;
        let mut flagged = charge("in_1", 10_000, 0);
        flagged["metadata"] = json!({"stx": "False"});
        world.ingest_object(kind, 9, flagged).await;
        world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
        assert!(world.lines().await.is_empty(), "{kind}");
        assert_eq!(world.referral(lead.id).await.revenue_cents, 10_000, "it converts all the same");
        // Without the flag the event has no effect.
        let plain = world.event(kind, 11, charge("in_2", 10_000, 0));
        assert!(matches!(world.try_ingest(&plain).await, IngestOutcome::Ignored(_)));
        world.audit().await;
    }
}

#[tokio::test]
async fn a_refund_without_a_creation_time_counts_once() {
    for first in [true, false] {
        let world = World::new().await;
        world.lead("lin@example.org", Some("cus_1")).await;
        world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
        let mut undated = refund("re_1", "in_1", 5_000, "succeeded", 0);
        undated.as_object_mut().unwrap().remove("created");
        let charged = world.event("charge.refunded", 20, charge("in_1", 10_000, 5_000));
        let refunded = world.event("refund.updated", 25, undated);
        let order = if first { [&charged, &refunded] } else { [&refunded, &charged] };
        for event in order {
            world.ingest_event(event).await;
        }
        let half = ["in_1/1 1000 of 5000 pending", "in_1/2 250 of 5000 pending"];
        assert_eq!(world.outline().await, half, "{first}");
        world.audit().await;
    }
}

#[tokio::test]
async fn metadata_of_a_customer_link_it_once_and_exclude_its_sales() {
    let world = World::new().await;
    let (first, second) = (world.lead("a@example.org", None).await, world.lead("b@example.org", None).await);
    let customer =
        |referral: &str, stx: &str| json!({"id": "cus_1", "metadata": {"stx_referral": referral, "stx": stx}});
    world.ingest_object("customer.created", 5, customer(&first.id.to_string(), "")).await;
    world.ingest_object("customer.updated", 6, customer(&second.id.to_string(), "False")).await;
    assert_eq!(world.referral(first.id).await.customer.as_deref(), Some("cus_1"));
    assert_eq!(world.referral(second.id).await.customer, None);
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert!(world.lines().await.is_empty());
    let referral = world.referral(first.id).await;
    assert_eq!((referral.status, referral.revenue_cents), (ReferralStatus::Active, 10_000));
    // After the flag is removed, later invoices earn; earlier ones stay as they were.
    world.ingest_object("customer.updated", 20, customer("", "true")).await;
    world.ingest_object("charge.refunded", 21, charge("in_1", 10_000, 1_000)).await;
    assert!(world.lines().await.is_empty());
    world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 30)).await;
    assert_eq!(world.lines().await.len(), 2);
    world.audit().await;
}

#[tokio::test]
async fn subscriptions_start_a_trial_end_and_restart() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    let status = async || world.referral(lead.id).await.status;
    let send = async |kind: &str, after: i64, id: &str, now: &str| {
        let kind = format!("customer.subscription.{kind}");
        world.ingest_object(&kind, after, subscription(id, "cus_1", now)).await;
    };
    send("created", 1, "sub_1", "trialing").await;
    assert_eq!(status().await, ReferralStatus::Trialing);
    send("updated", 5, "sub_1", "active").await;
    assert_eq!(status().await, ReferralStatus::Trialing, "only money converts");
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert_eq!(status().await, ReferralStatus::Active);
    send("created", 20, "sub_2", "active").await;
    send("deleted", 30, "sub_1", "canceled").await;
    assert_eq!(status().await, ReferralStatus::Active, "another one lives");
    send("updated", 40, "sub_2", "unpaid").await;
    assert_eq!(status().await, ReferralStatus::Cancelled);
    assert_eq!((world.outline().await, world.paying(world.ada).await), (SALE.map(str::to_owned).to_vec(), 1));
    world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 50)).await;
    assert_eq!(status().await, ReferralStatus::Active);
    world.audit().await;
}

/// Creates a customer who paid in second 10, with subscriptions given by start and end.
async fn after(subscriptions: &[(i64, Option<i64>)]) -> (World, ReferralId) {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    for (number, (created, ended_at)) in subscriptions.iter().enumerate() {
        let status = if ended_at.is_some() { "canceled" } else { "active" };
        let mut object = subscription(&format!("sub_{number}"), "cus_1", status);
        object["created"] = json!(world.start + created);
        object["ended_at"] = json!(ended_at.map(|ended_at| world.start + ended_at));
        // Reported much later, as by a back-fill.
        world.ingest_object("customer.subscription.updated", 1_000 - *created, object).await;
    }
    (world, lead.id)
}

#[tokio::test]
async fn a_cancelled_customer_becomes_active_only_by_paying() {
    for (subscriptions, expected) in [
        (&[(1, Some(20)), (30, None)][..], ReferralStatus::Cancelled),
        (&[(30, None), (1, Some(20))], ReferralStatus::Cancelled),
        (&[(1, Some(20)), (15, None)], ReferralStatus::Active),
        (&[(1, Some(20)), (20, None)], ReferralStatus::Active),
        (&[(1, Some(20)), (15, Some(25)), (30, None)], ReferralStatus::Cancelled),
        (&[(1, Some(20)), (30, Some(50)), (40, None)], ReferralStatus::Cancelled),
        (&[(1, Some(5)), (30, None)], ReferralStatus::Active),
    ] {
        let (world, lead) = after(subscriptions).await;
        assert_eq!(world.referral(lead).await.status, expected, "{subscriptions:?}");
        world.ingest_event(&world.paid("in_2", "cus_1", 10_000, 60)).await;
        assert_eq!(world.referral(lead).await.status, ReferralStatus::Active, "{subscriptions:?}");
        world.audit().await;
    }
    // A second trial does not change the status.
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    for (id, kind, after, now) in [
        ("sub_1", "created", 1, "trialing"),
        ("sub_1", "deleted", 20, "canceled"),
        ("sub_2", "created", 30, "trialing"),
    ] {
        let mut object = subscription(id, "cus_1", now);
        object["created"] = json!(world.start + if id == "sub_1" { 1 } else { 30 });
        world.ingest_object(&format!("customer.subscription.{kind}"), after, object).await;
    }
    assert_eq!(world.referral(lead.id).await.status, ReferralStatus::Cancelled);
    world.audit().await;
}

#[tokio::test]
async fn refunds_reduce_and_reverse_a_commission_and_a_failed_refund_restores_it() {
    let world = World::new().await;
    let lead = world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    world.ingest_object("charge.refunded", 20, charge("in_1", 10_000, 2_500)).await;
    assert_eq!(world.outline().await, ["in_1/1 1500 of 7500 pending", "in_1/2 375 of 7500 pending"]);
    assert_eq!(world.referral(lead.id).await.revenue_cents, 7_500);
    world.ingest_object("refund.created", 30, refund("re_2", "in_1", 7_500, "succeeded", world.start + 30)).await;
    let reversed = ["in_1/1 1500 of 7500 reversed refund", "in_1/2 375 of 7500 reversed refund"];
    assert_eq!(world.outline().await, reversed);
    let referral = world.referral(lead.id).await;
    assert_eq!((referral.status, referral.revenue_cents), (ReferralStatus::Refunded, 0));
    assert_eq!(world.paying(world.ada).await, 0);
    world.ingest_object("refund.failed", 40, refund("re_2", "in_1", 7_500, "failed", world.start + 30)).await;
    assert_eq!(world.outline().await, ["in_1/1 1500 of 7500 pending", "in_1/2 375 of 7500 pending"]);
    assert_eq!(world.referral(lead.id).await.status, ReferralStatus::Active);
    assert_eq!(world.paying(world.ada).await, 1);
    let line = world.lines().await.into_iter().find(|line| line.amount == 1_500).unwrap();
    assert_eq!(world.event_kinds(line.id).await, ["commission.created", "commission.reversed"]);
    assert_eq!(line.sold_invoice().unwrap().charge.as_deref(), Some("ch_in_1"));
    world.audit().await;
}

#[tokio::test]
async fn a_refund_that_arrives_before_its_invoice_counts() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_object("charge.refunded", 20, charge("in_1", 10_000, 10_000)).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    let reversed = ["in_1/1 2000 of 10000 reversed refund", "in_1/2 500 of 10000 reversed refund"];
    assert_eq!(world.outline().await, reversed);
    world.audit().await;
}

#[tokio::test]
async fn credit_notes_reduce_the_base_until_they_are_voided() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    let note = |status: &str| {
        json!({
            "id": "cn_1", "invoice": "in_1", "currency": "usd", "status": status,
            "post_payment_amount": 4_000, "out_of_band_amount": 4_000,
        })
    };
    world.ingest_object("credit_note.created", 20, note("issued")).await;
    assert_eq!(world.outline().await, ["in_1/1 1200 of 6000 pending", "in_1/2 300 of 6000 pending"]);
    world.ingest_object("credit_note.voided", 30, note("void")).await;
    assert_eq!(world.outline().await, SALE);
    world.audit().await;
}

#[tokio::test]
async fn an_inquiry_freezes_and_a_dispute_reverses_permanently() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    for id in ["in_1", "in_2"] {
        world.ingest_event(&world.paid(id, "cus_1", 10_000, 10)).await;
    }
    // This event links the charge to the invoice.
    world.ingest_object("charge.dispute.created", 20, dispute("in_1", "warning_needs_response")).await;
    let line = async |name: &str| {
        let outline = world.outline().await;
        outline.into_iter().find(|line| line.starts_with(name)).unwrap()
    };
    assert_eq!(line("in_1/1").await, "in_1/1 2000 of 10000 pending frozen");
    world.advance_days(31);
    assert_eq!(world.end_holds().await, 2, "those of the other one");
    world.ingest_object("charge.dispute.closed", 30, dispute("in_1", "warning_closed")).await;
    assert_eq!(world.end_holds().await, 2);
    // The closing event alone shows that there was a dispute. After a won dispute only the owner can reinstate the
    // line.
    world.ingest_object("charge.dispute.closed", 40, dispute("in_2", "won")).await;
    assert_eq!(line("in_2/1").await, "in_2/1 2000 of 10000 reversed dispute");
    world.ingest_object("charge.dispute.created", 35, dispute("in_2", "needs_response")).await;
    assert_eq!(line("in_2/2").await, "in_2/2 500 of 10000 reversed dispute");
    world.audit().await;
}

#[tokio::test]
async fn an_existing_customer_is_blocked_whenever_an_older_payment_becomes_known() {
    let world = World::new().await;
    world.ingest_event(&world.paid("in_0", "cus_1", 10_000, -1_000)).await;
    let old = world.lead("lin@example.org", Some("cus_1")).await;
    assert_eq!(old.blocked, Some(ReferralBlock::ExistingCustomer));
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert!(world.lines().await.is_empty());
    assert_eq!(world.referral(old.id).await.status, ReferralStatus::Active, "it converts all the same");
    // An earlier invoice arrives late.
    let late_lead = world.lead("ono@example.org", Some("cus_2")).await;
    world.ingest_event(&world.paid("in_2", "cus_2", 10_000, 10)).await;
    assert_eq!((world.lines().await.len(), world.paying(world.ada).await), (2, 1));
    world.ingest_event(&world.paid("in_3", "cus_2", 10_000, -5_000)).await;
    assert_eq!(world.referral(late_lead.id).await.blocked, Some(ReferralBlock::ExistingCustomer));
    let reversed = ["in_2/1 2000 of 10000 reversed blocked", "in_2/2 500 of 10000 reversed blocked"];
    assert_eq!((world.outline().await, world.paying(world.ada).await), (reversed.map(str::to_owned).to_vec(), 0));
    world.audit().await;
}

#[tokio::test]
async fn each_hold_is_released_once() {
    let world = World::new().await;
    world.lead("lin@example.org", Some("cus_1")).await;
    world.ingest_event(&world.paid("in_1", "cus_1", 10_000, 10)).await;
    assert_eq!(world.end_holds().await, 0);
    world.advance_days(31);
    let (first, second) = (world.ledger.clone(), world.other_node());
    let (now, all) = (world.clock.now(), 0..=store::task::PARTITIONS - 1);
    let (first, second) = tokio::join!(first.release_holds(all.clone(), now), second.release_holds(all, now));
    assert_eq!(first.unwrap().earned + second.unwrap().earned, 2);
    assert_eq!(world.end_holds().await, 0);
    for line in world.lines().await {
        assert_eq!(world.event_kinds(line.id).await, ["commission.created", "commission.earned"]);
    }
    world.audit().await;
}
