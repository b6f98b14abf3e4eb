//! Enrichment: data that a processor's event lacks is requested before the event is recorded.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::affiliate_backfill::{StripePages, connect_program, list};
use crate::affiliate_ledger::{event, invoice, post_event};
use crate::affiliate_program::owner;
use crate::affiliates::all;
use crate::world::{TestSession, World};

/// A program with a simulated processor.
async fn program(world: &World, pages: StripePages) -> (TestSession, String) {
    let pages = || [pages, vec![("/v1/account", json!({"id": "acct_1", "object": "account"}))]].concat();
    let (session, _) = connect_program(world, pages, 0).await;
    let view = owner(world, &session, Method::GET, "", json!({})).await.json();
    (session, view["program"]["id"].as_str().unwrap().to_owned())
}

/// An invoice in the format of 2025 and later, which does not name its payment.
fn unnamed(world: &World) -> Value {
    let mut invoice = invoice(world, "in_1", "cus_1", 10_000);
    invoice["charge"] = Value::Null;
    invoice["customer_email"] = json!("grace@example.net");
    invoice
}

#[tokio::test]
async fn a_refund_of_an_unknown_payment_finds_its_invoice() {
    let world = World::start().await;
    let payment = |id: &str, status: &str, invoice: &str| {
        json!({"id": id, "object": "invoice_payment", "invoice": invoice, "status": status,
            "payment": {"type": "payment_intent", "payment_intent": "pi_1"}})
    };
    let payments = json!([payment("inpay_1", "paid", "in_1"), payment("inpay_0", "canceled", "in_0")]);
    let path = "/v1/invoice_payments?payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D=pi_1";
    let pages = vec![(path, json!({"in_turn": [503, 403, list(payments)]}))];
    let (session, program) = program(&world, pages).await;
    let paid = event(&world, "evt_1", "invoice.paid", &unnamed(&world));
    assert_eq!(post_event(&world, &program, &paid).await.json()["status"], "done");
    let charge = json!({"id": "ch_1", "object": "charge", "payment_intent": "pi_1", "amount": 10_000,
        "amount_refunded": 10_000, "currency": "usd"});
    let refunded = event(&world, "evt_2", "charge.refunded", &charge);
    // The request failed, or the key lacks permission: the event must be sent again.
    for _ in 0..2 {
        let unheard = post_event(&world, &program, &refunded).await;
        assert_eq!(unheard.status, StatusCode::INTERNAL_SERVER_ERROR, "{unheard:?}");
    }
    let failed = owner(&world, &session, Method::GET, "/processor/events?status=failed", json!({})).await;
    let reason = failed.json()["data"][0]["error"].as_str().unwrap().to_owned();
    assert!(reason.contains("may not read invoice payments"), "{reason}");
    assert_eq!(all(&world, "/affiliate-commissions").await[0]["status"], "pending");
    let replayed = owner(&world, &session, Method::POST, "/processor/events/evt_2/replay", json!({})).await.json();
    assert_eq!(replayed["event"]["status"], "done", "{replayed}");
    let line = all(&world, "/affiliate-commissions").await[0].clone();
    assert_eq!((&line["status"], &line["reverse_reason"]), (&json!("reversed"), &json!("refund")));
    // A dispute without an invoice belongs to no partner.
    let other = json!({"id": "dp_1", "object": "dispute", "charge": "ch_9", "payment_intent": "pi_9",
        "status": "lost", "amount": 1, "currency": "usd"});
    let disputed = event(&world, "evt_3", "charge.dispute.closed", &other);
    assert_eq!(post_event(&world, &program, &disputed).await.json()["status"], "done");
    world.end().await;
}

#[tokio::test]
async fn all_lines_of_a_long_invoice_are_recorded() {
    let world = World::start().await;
    let line = |number: u32, product: &str| {
        json!({"id": format!("il_{number}"), "amount": 1_000, "currency": "usd",
            "price": {"id": "price", "product": product}})
    };
    let rest: Vec<Value> = (0..10).map(|number| line(number, "prod_1")).chain([line(10, "prod_2")]).collect();
    let pages = vec![("/v1/invoices/in_1/lines", list(json!(rest)))];
    let (session, program) = program(&world, pages).await;
    let none = json!({"product_rates": [{"product_id": "prod_2", "commission_type": "none"}]});
    let set = owner(&world, &session, Method::PUT, "/campaigns/default", none).await;
    assert_eq!(set.status, StatusCode::OK, "{set:?}");
    let long = |id: &str, cents: i64| {
        let mut long = invoice(&world, id, "cus_1", cents);
        long["customer_email"] = json!("grace@example.net");
        let ten: Vec<Value> = (0..10).map(|number| line(number, "prod_1")).collect();
        long["lines"] = json!({"object": "list", "has_more": true, "data": ten});
        long
    };
    let paid = event(&world, "evt_1", "invoice.paid", &long("in_1", 11_000));
    assert_eq!(post_event(&world, &program, &paid).await.json()["status"], "done");
    // For the other invoice the key cannot read the lines at first, and then there are none. Incomplete lines are not
    // used; the total is.
    let pages = vec![("/v1/invoices/in_2/lines", json!({"in_turn": [401, 403, 404]}))];
    let address = crate::affiliate_backfill::start_processor(
        [pages, vec![("/v1/account", json!({"id": "acct_1", "object": "account"}))]].concat(),
        0,
    )
    .await
    .0;
    let other = json!({"webhook_secrets": ["whsec_one"], "api_base": address, "restricted_key": "rk_live_1"});
    assert_eq!(owner(&world, &session, Method::PUT, "/processor", other).await.status, StatusCode::OK);
    let paid = event(&world, "evt_2", "invoice.paid", &long("in_2", 20_000));
    for _ in 0..2 {
        let unheard = post_event(&world, &program, &paid).await;
        assert_eq!(unheard.status, StatusCode::INTERNAL_SERVER_ERROR, "{unheard:?}");
        assert_eq!(all(&world, "/affiliate-commissions").await.len(), 1);
    }
    assert_eq!(post_event(&world, &program, &paid).await.json()["status"], "done");
    let lines = all(&world, "/affiliate-commissions").await;
    let amounts: Vec<_> = lines.iter().map(|line| line["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, [4_000, 2_000], "newest first");
    world.end().await;
}
