//! `POST /billing/stripe`: an account with a payment method on file gets production access.

use affiliate::processor::signature::sign;
use http::{Method, StatusCode};
use http_body_util::Full;
use model::account::Account;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::world::{TestResponse, World};

const SECRET: &str = "whsec_operator";

/// An API with billing configured; its account can only send to itself.
async fn world() -> World {
    let world = World::with_options(|options| {
        options.billing_secrets = vec!["whsec_before".to_owned(), SECRET.to_owned()];
        options.upgrade_url = Some("https://pay.example.com/upgrade".to_owned());
    })
    .await;
    let before = account(&world).await;
    let after = Account { production: false, ..before.clone() };
    let mut batch = Batch::progress();
    store::account::update(&mut batch, &before, &after);
    world.services.store.commit(batch).await.unwrap();
    world
}

async fn account(world: &World) -> Account {
    store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap()
}

async fn post(world: &World, secret: &str, body: &str) -> TestResponse {
    let signature = sign(secret, world.services.clock.now(), body.as_bytes());
    let request = http::Request::post("/billing/stripe").header("host", "test").header("stripe-signature", signature);
    world.send(request.body(Full::new(body.to_owned().into())).unwrap()).await
}

/// Sends an event of the processor, and returns its status.
async fn post_event(world: &World, kind: &str, object: Value, before: Value) -> Value {
    let created = world.services.clock.now().as_second();
    let event = json!({"id": "evt_1", "type": kind, "created": created,
                       "data": {"object": object, "previous_attributes": before}});
    let answered = post(world, SECRET, &event.to_string()).await;
    assert_eq!(answered.status, StatusCode::OK);
    answered.json()["status"].clone()
}

/// Sends an email to another address.
async fn send(world: &World) -> TestResponse {
    let mail = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
    world.call(Method::POST, "/emails", &mail).await
}

async fn can_send(world: &World) -> bool {
    let answered = send(world).await;
    match answered.status {
        StatusCode::OK => true,
        StatusCode::FORBIDDEN => {
            let error = &answered.json()["error"];
            assert_eq!(error["code"], "production_access_required");
            assert_eq!(error["upgrade_url"], "https://pay.example.com/upgrade");
            false
        }
        other => panic!("{other}"),
    }
}

fn card(id: &str, customer: &str) -> Value {
    json!({"id": id, "object": "payment_method", "customer": customer})
}

#[tokio::test]
async fn payment_method_grants_production_access() {
    let world = world().await;
    assert!(!can_send(&world).await);
    // The card is attached before its customer is known.
    let attached = post_event(&world, "payment_method.attached", card("pm_1", "cus_1"), json!(null)).await;
    assert_eq!(attached, "ignored");
    assert!(!can_send(&world).await);
    let session = json!({"object": "checkout.session", "customer": "cus_1",
                         "client_reference_id": account(&world).await.id});
    assert_eq!(post_event(&world, "checkout.session.completed", session, json!(null)).await, "done");
    assert!(can_send(&world).await);
    assert_eq!(world.get("/account").await.json()["account"]["access_level"], "production");

    let deleted = || json!({"id": "pm_1", "object": "payment_method", "customer": null});
    post_event(&world, "payment_method.detached", deleted(), json!({"customer": "cus_1"})).await;
    assert!(!can_send(&world).await);
    // The same event again, late: production access stays off.
    post_event(&world, "payment_method.attached", card("pm_1", "cus_1"), json!(null)).await;
    assert!(!can_send(&world).await);
    world.end().await;
}

#[tokio::test]
async fn a_customer_with_the_owners_address_pays_for_the_account() {
    let world = world().await;
    let customer = |id: &str, method: Value| {
        json!({"id": id, "object": "customer", "email": "Owner1@example.com",
               "invoice_settings": {"default_payment_method": method}})
    };
    post_event(&world, "customer.created", customer("cus_1", json!(null)), json!(null)).await;
    assert!(!can_send(&world).await);
    post_event(&world, "customer.updated", customer("cus_1", json!("pm_1")), json!(null)).await;
    assert!(can_send(&world).await);
    // One of two paying customers is deleted.
    post_event(&world, "customer.created", customer("cus_2", json!("pm_2")), json!(null)).await;
    post_event(&world, "customer.deleted", json!({"id": "cus_1", "object": "customer"}), json!(null)).await;
    assert!(can_send(&world).await);
    // The metadata of the other one name another account.
    world.account(2, model::credential::ApiKeyScope::Full).await;
    let other = store::account::find(&world.services.store, "owner2@example.com").await.unwrap().unwrap();
    let mut moved = customer("cus_2", json!("pm_2"));
    moved["metadata"] = json!({"account_id": other.id});
    post_event(&world, "customer.updated", moved, json!(null)).await;
    assert!(!can_send(&world).await);
    let other = store::account::get(&world.services.store, other.id).await.unwrap().unwrap();
    assert!(other.payment_method);
    world.end().await;
}

#[tokio::test]
async fn operator_setting_overrides_the_processor() {
    let world = World::with_options(|options| options.billing_secrets = vec![SECRET.to_owned()]).await;
    let customer = json!({"id": "cus_1", "object": "customer", "email": "owner1@example.com"});
    post_event(&world, "customer.created", customer, json!(null)).await;
    post_event(&world, "payment_method.attached", card("pm_1", "cus_1"), json!(null)).await;
    post_event(&world, "customer.deleted", json!({"id": "cus_1"}), json!(null)).await;
    assert!(!account(&world).await.payment_method && can_send(&world).await);
    world.end().await;
}

#[tokio::test]
async fn unsigned_billing_events_are_refused() {
    let world = world().await;
    let body = json!({"type": "customer.deleted", "data": {"object": {"id": "cus_1"}}}).to_string();
    assert_eq!(post(&world, "whsec_before", &body).await.status, StatusCode::OK);
    let refused = post(&world, "whsec_other", &body).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("signature"));
    for body in ["", "{", "[]", "null", "{\"type\": 7}", "{\"data\": {\"object\": 7}, \"created\": \"x\"}"] {
        assert_eq!(post(&world, SECRET, body).await.status, StatusCode::BAD_REQUEST, "{body}");
    }
    let many = "x".repeat(300);
    let event = json!({"type": "customer.deleted", "data": {"object": {"id": many}}}).to_string();
    assert_eq!(post(&world, SECRET, &event).await.json()["status"], "ignored");
    world.end().await;

    let deaf = World::start().await;
    assert_eq!(post(&deaf, "", &body).await.status, StatusCode::NOT_FOUND);
    deaf.end().await;
}
