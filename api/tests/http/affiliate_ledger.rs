//! Events of the payment processor over HTTP, and their effects: commissions, reviews, the audit log.

use std::time::Duration;

use aws_lc_rs::hmac;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::affiliate_program::{owner, set_up};
use crate::affiliates::{all, partner, with_headers};
use crate::world::{TestResponse, TestSession, World};

/// The webhook secret of the program that [`set_up`] creates.
const SECRET: &str = "whsec_one";

/// The processor's signature over a body, at the current time.
fn signature(world: &World, secret: &str, body: &str) -> String {
    let now = world.services.clock.now().as_second();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{now}.{body}").as_bytes());
    format!("t={now},v1={}", message::hexadecimal::encode(tag))
}

/// Posts a body with this signature.
async fn post(world: &World, program: &str, signature: &str, body: &str) -> TestResponse {
    let path = format!("/processor/stripe/{program}");
    let request = http::Request::post(path).header("host", "test").header("stripe-signature", signature);
    world.send(request.body(Full::new(body.to_owned().into())).unwrap()).await
}

pub(crate) async fn program(world: &World, session: &TestSession) -> String {
    let view = owner(world, session, Method::GET, "", json!({})).await.json();
    view["program"]["id"].as_str().unwrap().to_owned()
}

/// Sends a signed event of the processor.
pub(crate) async fn post_event(world: &World, program: &str, event: &Value) -> TestResponse {
    let body = event.to_string();
    post(world, program, &signature(world, SECRET, &body), &body).await
}

/// A processor event with the current time.
pub(crate) fn event(world: &World, id: &str, kind: &str, object: &Value) -> Value {
    let created = world.services.clock.now().as_second();
    json!({"id": id, "object": "event", "type": kind, "created": created, "livemode": true,
           "data": {"object": object}})
}

/// A paid invoice of this customer.
pub(crate) fn invoice(world: &World, id: &str, customer: &str, cents: i64) -> Value {
    let now = world.services.clock.now().as_second();
    json!({
        "id": id, "object": "invoice", "customer": customer, "currency": "usd", "status": "paid", "created": now,
        "status_transitions": {"paid_at": now}, "amount_paid": cents, "total": cents, "subtotal": cents,
        "total_excluding_tax": cents, "charge": format!("ch_{id}"), "billing_reason": "subscription_create",
        "lines": {"object": "list", "has_more": false, "data": [
            {"id": format!("il_{id}"), "amount": cents, "currency": "usd", "price": {"id": "price_1", "product": "prod_1"}},
        ]},
    })
}

/// Creates a commission of partner `ada` and returns its id.
pub(crate) async fn commission(world: &World) -> String {
    let session = set_up(world, 1).await;
    let program = program(world, &session).await;
    partner(world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let referral = json!({"token": "ada", "email": "grace@example.net", "processor_customer_id": "cus_1"});
    assert_eq!(world.call(Method::POST, "/affiliate-referrals", &referral).await.status, StatusCode::CREATED);
    let paid = event(world, "evt_1", "invoice.paid", &invoice(world, "in_1", "cus_1", 4_900));
    assert_eq!(post_event(world, &program, &paid).await.json()["status"], "done");
    let found = all(world, "/affiliate-commissions").await;
    found[0]["id"].as_str().unwrap().to_owned()
}

/// While the processor's own account id is unknown, an event that names an account belongs to a connected account.
#[tokio::test]
async fn sales_of_connected_accounts_are_ignored() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let program = program(&world, &session).await;
    let mut anothers = event(&world, "evt_1", "invoice.paid", &invoice(&world, "in_1", "cus_1", 4_900));
    anothers["account"] = json!("acct_connected");
    assert_eq!(post_event(&world, &program, &anothers).await.json()["status"], "ignored");
    // Events about partners' accounts belong to those accounts.
    let account = json!({"id": "acct_connected", "object": "account", "capabilities": {"transfers": "active"}});
    let mut updated = event(&world, "evt_2", "account.updated", &account);
    updated["account"] = json!("acct_connected");
    let acknowledgement = post_event(&world, &program, &updated).await.json();
    assert_eq!(acknowledgement["reason"], "no partner has this account", "{acknowledgement}");
    world.end().await;
}

#[tokio::test]
async fn a_paid_invoice_is_a_commission() {
    let world = World::start().await;
    let id = commission(&world).await;
    let path = format!("/affiliate-commissions/{id}");
    let view = world.get(&path).await;
    assert_eq!(view.status, StatusCode::OK, "{view:?}");
    let line = view.json()["commission"].clone();
    for (field, value) in [
        ("object", json!("affiliate_commission")),
        ("tier", json!(1)),
        ("status", json!("pending")),
        ("amount_cents", json!(980)),
        ("sale_amount_cents", json!(4900)),
        ("currency", json!("usd")),
        ("processor_invoice_id", json!("in_1")),
        ("processor_charge_id", json!("ch_in_1")),
        ("earned_at", Value::Null),
        ("payout_id", Value::Null),
        ("reverse_reason", Value::Null),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    let text = view.json()["formula"].as_str().unwrap().to_owned();
    assert!(text.contains("20 %") && text.contains("49.00") && text.contains("9.80"), "{text}");
    let calculation = view.json()["calculation"].clone();
    assert_eq!((&calculation["base_cents"], &calculation["remaining_base_cents"]), (&json!(4900), &json!(4900)));
    assert_eq!((&calculation["paid_cents"], &calculation["paying_customers"]), (&json!(4900), &json!(1)));
    let rate = json!({"base_cents": 4900, "commission_bps": 2000, "commission_flat_cents": null, "rule": "base",
        "product": null, "min_paid_customers": null});
    assert_eq!(calculation["rates"], json!([rate]));
    let referral = world.get("/affiliate-referrals?status=active").await.json()["data"][0].clone();
    assert_eq!(referral["id"], line["referral_id"]);
    assert_eq!((&referral["revenue_cents"], &referral["currency"]), (&json!(4900), &json!("usd")));
    for (query, found) in [
        ("status=pending,earned", 1),
        ("status=reversed", 0),
        ("currency=eur,USD", 1),
        ("currency=eur", 0),
        (&format!("referral_id={}", line["referral_id"].as_str().unwrap()), 1),
        (&format!("affiliate_id={}", line["affiliate_id"].as_str().unwrap()), 1),
        ("created_before=2001-01-01T00:00:00Z", 0),
        ("created_after=2001-01-01T00:00:00Z", 1),
    ] {
        assert_eq!(all(&world, &format!("/affiliate-commissions?{query}")).await.len(), found, "{query}");
    }
    for query in
        ["status=gone", "currency=dollar", "affiliate_id=x", "referral_id=aff_1", "payout_id=x", "created_after=soon"]
    {
        let refused = world.get(&format!("/affiliate-commissions?{query}")).await;
        assert_eq!(
            (refused.status, refused.code()),
            (StatusCode::BAD_REQUEST, "validation_error".to_owned()),
            "{query}"
        );
    }
    assert_eq!(world.get("/affiliate-commissions/com_1").await.code(), "not_found");
    world.end().await;
}

#[tokio::test]
async fn commission_is_reversed_and_restored() {
    let world = World::start().await;
    let id = commission(&world).await;
    let path = format!("/affiliate-commissions/{id}");
    let patch = async |body: Value| world.call(Method::PATCH, &path, &body).await;
    for (body, field) in [
        (json!({}), "status"),
        (json!({"status": "earned"}), "status"),
        (json!({"status": "reversed", "reason": "refund"}), "reason"),
        (json!({"status": "reversed", "note": "x".repeat(1001)}), "note"),
    ] {
        let refused = patch(body.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{body}: {refused:?}");
    }
    let (reverse, if_match) = (json!({"status": "reversed"}), [("if-match", "\"99\"")]);
    let old = with_headers(&world, Method::PATCH, &path, &if_match, &reverse).await;
    assert_eq!(old.status, StatusCode::CONFLICT);
    let reversed = patch(json!({"status": "reversed", "reason": "fraud", "note": "stolen card"})).await;
    assert_eq!(reversed.status, StatusCode::OK, "{reversed:?}");
    let line = reversed.json()["commission"].clone();
    assert_eq!((&line["status"], &line["reverse_reason"]), (&json!("reversed"), &json!("fraud")));
    assert!(line["reversed_at"].is_string() && line.get("note").is_none());
    // Reversing again changes nothing.
    assert_eq!(patch(json!({"status": "reversed"})).await.json()["commission"], line);
    let session = world.session(1).await;
    let reinstate = format!("/commissions/{id}/reinstate");
    let back = owner(&world, &session, Method::POST, &reinstate, json!({})).await;
    assert_eq!(back.json()["commission"]["status"], "pending", "{back:?}");
    let again = owner(&world, &session, Method::POST, &reinstate, json!({})).await;
    assert_eq!((again.status, again.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    world.end().await;
}

/// A deleted partner cannot be paid: the request is refused and nothing changes.
#[tokio::test]
async fn commission_of_a_deleted_partner_is_not_restored() {
    let world = World::start().await;
    let id = commission(&world).await;
    let session = world.session(1).await;
    let path = format!("/affiliate-commissions/{id}");
    let partner = world.get(&path).await.json()["commission"]["affiliate_id"].clone();
    let deleted = world.call(Method::DELETE, &format!("/affiliates/{}", partner.as_str().unwrap()), &Value::Null).await;
    assert_eq!(deleted.status, StatusCode::OK, "{deleted:?}");
    let before = world.get(&path).await;
    let line = before.json()["commission"].clone();
    assert_eq!((&line["status"], &line["reverse_reason"]), (&json!("reversed"), &json!("partner_deleted")));
    let list_events = async || world.get("/webhook-events?limit=100").await.json()["data"].clone();
    let told_before = list_events().await;
    for _ in 0..2 {
        let reinstate = format!("/commissions/{id}/reinstate");
        let refused = owner(&world, &session, Method::POST, &reinstate, json!({})).await;
        assert_eq!((refused.status, refused.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("partner was deleted"), "{message}");
        let after = world.get(&path).await;
        assert_eq!((&after.body, &after.headers["etag"]), (&before.body, &before.headers["etag"]));
    }
    assert_eq!(list_events().await, told_before);
    let audit = owner(&world, &session, Method::GET, "/audit", json!({})).await.json();
    assert_eq!((&audit["ok"], &audit["broken"]), (&json!(true), &json!([])));
    world.end().await;
}

#[tokio::test]
async fn unsigned_events_are_refused() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let program = program(&world, &session).await;
    let body = event(&world, "evt_1", "invoice.paid", &invoice(&world, "in_1", "cus_1", 100)).to_string();
    let good = signature(&world, SECRET, &body);
    for (about, signature) in [
        ("none", ""),
        ("another secret", &signature(&world, "whsec_other", &body)),
        ("another body", &signature(&world, SECRET, "{}")),
        ("no time", "v1=00"),
    ] {
        let refused = post(&world, &program, signature, &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{about}: {refused:?}");
    }
    for id in ["prog_1", "x", "prog_01ARZ3NDEKTSV4RRFFQ69G5FAV"] {
        assert_eq!(post(&world, id, &good, &body).await.status, StatusCode::NOT_FOUND, "{id}");
    }
    assert_eq!(post(&world, &program, &good, &body).await.json()["status"], "done");
    assert_eq!(post(&world, &program, &good, &body).await.json()["status"], "duplicate");
    let other_mode =
        json!({"id": "evt_2", "type": "invoice.paid", "created": 1, "livemode": false, "data": {"object": {}}});
    let ignored = post_event(&world, &program, &other_mode).await;
    assert_eq!((ignored.status, &ignored.json()["status"]), (StatusCode::OK, &json!("ignored")));
    world.services.clock.advance(Duration::from_secs(301));
    assert_eq!(post(&world, &program, &good, &body).await.status, StatusCode::BAD_REQUEST, "an old signature");
    world.end().await;
}

#[tokio::test]
async fn unreadable_events_are_stored_and_replayed() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let program = program(&world, &session).await;
    let call = async |method, path| owner(&world, &session, method, path, json!({})).await;
    let mut invalid = invoice(&world, "in_1", "cus_1", 100);
    invalid["amount_paid"] = json!("a lot");
    let failed = post_event(&world, &program, &event(&world, "evt_1", "invoice.paid", &invalid)).await;
    assert_eq!((failed.status, failed.code()), (StatusCode::INTERNAL_SERVER_ERROR, "internal_error".to_owned()));
    let garbage = post_event(&world, &program, &json!("no event")).await;
    assert_eq!(garbage.status, StatusCode::INTERNAL_SERVER_ERROR);
    let unheard = event(&world, "evt_3", "price.created", &json!({"id": "price_1"}));
    assert_eq!(post_event(&world, &program, &unheard).await.json()["status"], "ignored");
    let listed = call(Method::GET, "/processor/events?status=failed").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "{listed}");
    let first = listed["data"].as_array().unwrap().iter().find(|event| event["id"] == "evt_1").unwrap();
    assert_eq!((&first["status"], &first["type"]), (&json!("failed"), &json!("invoice.paid")));
    assert!(first["error"].as_str().unwrap().contains("amount_paid"), "{first}");
    assert_eq!(first["attempts"], 1);
    let page = call(Method::GET, "/processor/events?limit=2").await.json();
    let next = format!("/processor/events?limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(call(Method::GET, &next).await.json()["data"].as_array().unwrap().len(), 1);
    let tried = call(Method::POST, "/processor/events/evt_1/replay").await.json()["event"].clone();
    assert_eq!((&tried["status"], &tried["attempts"]), (&json!("failed"), &json!(2)));
    assert_eq!(call(Method::POST, "/processor/events/evt_9/replay").await.status, StatusCode::NOT_FOUND);
    let view = call(Method::GET, "").await.json();
    assert_eq!(view["processor"]["failed_events"], 2);
    assert!(view["processor"]["last_event_at"].is_string());
    // The corrected event with the same id is processed.
    let right = event(&world, "evt_1", "invoice.paid", &invoice(&world, "in_1", "cus_1", 100));
    assert_eq!(post_event(&world, &program, &right).await.json()["status"], "done");
    let done = call(Method::POST, "/processor/events/evt_1/replay").await.json()["event"].clone();
    assert_eq!((&done["status"], &done["error"]), (&json!("done"), &Value::Null));
    world.end().await;
}

#[tokio::test]
async fn owner_reviews_referrals() {
    let world = World::start().await;
    let id = commission(&world).await;
    let session = world.session(1).await;
    let call = async |method, path: String| owner(&world, &session, method, &path, json!({})).await;
    let referral = world.get("/affiliate-referrals").await.json()["data"][0]["id"].clone();
    let referral = referral.as_str().unwrap();
    assert_eq!(call(Method::GET, "/reviews".to_owned()).await.json()["data"], json!([]));
    assert_eq!(call(Method::GET, format!("/reviews/{referral}")).await.code(), "not_found", "it was never held");
    let rejected = call(Method::POST, format!("/reviews/{referral}/reject")).await;
    assert_eq!(rejected.status, StatusCode::OK, "{rejected:?}");
    assert_eq!(rejected.json()["review"]["status"], "rejected");
    assert_eq!(rejected.json()["referral"]["status"], "rejected");
    let line = world.get(&format!("/affiliate-commissions/{id}")).await.json()["commission"].clone();
    assert_eq!((&line["status"], &line["reverse_reason"]), (&json!("reversed"), &json!("fraud")));
    let barred = call(Method::POST, format!("/commissions/{id}/reinstate")).await;
    assert_eq!(barred.status, StatusCode::CONFLICT);
    let one = call(Method::GET, format!("/reviews/{referral}")).await.json();
    assert_eq!((&one["review"]["status"], &one["review"]["referral_id"]), (&json!("rejected"), &json!(referral)));
    assert_eq!(call(Method::GET, "/reviews/ref_x".to_owned()).await.status, StatusCode::NOT_FOUND);
    let listed = call(Method::GET, "/reviews?status=rejected".to_owned()).await.json();
    assert_eq!(listed["data"][0]["referral_id"], referral);
    let allowed = call(Method::POST, format!("/reviews/{referral}/allow")).await.json();
    assert_eq!((&allowed["referral"]["status"], &allowed["review"]["status"]), (&json!("active"), &json!("allowed")));
    let line = world.get(&format!("/affiliate-commissions/{id}")).await.json()["commission"].clone();
    assert_eq!(line["status"], "reversed", "its reversed commissions stay reversed");
    let audit = call(Method::GET, "/audit".to_owned()).await.json();
    assert_eq!((&audit["ok"], &audit["broken"]), (&json!(true), &json!([])));
    assert_eq!(audit["checked"], json!({"partners": 1, "referrals": 1, "commissions": 1, "payouts": 0}));
    let invariants = audit["invariants"].as_array().unwrap();
    let named: Vec<_> = invariants.iter().map(|one| one["invariant"].as_str().unwrap()).collect();
    assert_eq!(named, ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12"]);
    assert!(invariants.iter().all(|one| one["violations"] == 0 && one["description"].is_string()));
    assert_eq!(call(Method::POST, "/reviews/ref_x/allow".to_owned()).await.status, StatusCode::NOT_FOUND);
    // An API key has no owner permissions.
    let with_key = world.get(&format!("{}/audit", crate::affiliate_program::PROGRAM)).await;
    assert_eq!(with_key.status, StatusCode::FORBIDDEN);
    world.end().await;
}
