//! `GET /account`.

use crate::world::World;
use http::{Method, StatusCode};
use model::account::{Account, Plan};
use model::credential::ApiKeyScope;
use serde_json::{Value, json};
use store::engine::Batch;

#[tokio::test]
async fn the_account_its_limits_and_its_usage() {
    let world = World::with_options(|options| {
        options.sandbox_sender = Some("onboarding@example.net".parse().unwrap());
        options.receives_mail = true;
    })
    .await;
    let store = &world.services.store;
    let before = store::account::find(store, "owner1@example.com").await.unwrap().unwrap();
    let after = Account { plan: Plan::Free, ..before.clone() };
    let mut batch = Batch::progress();
    store::account::update(&mut batch, &before, &after);
    store.commit(batch).await.unwrap();
    let mail = json!({"from": "a@example.com", "to": ["b@example.net", "c@example.net"], "subject": "s", "text": "t"});
    assert_eq!(world.call(Method::POST, "/emails", &mail).await.status, StatusCode::OK);
    let mut account = world.get("/account").await.json();
    assert_eq!(account["account"]["email"], "owner1@example.com");
    assert_eq!(account["account"]["plan"], "free");
    assert_eq!(account["account"]["access_level"], "production");
    assert_eq!(account["account"]["sandbox_sender"], "onboarding@example.net");
    let features = json!({"inbound": true, "automations": true, "sms": false, "affiliates": false});
    assert_eq!(account["account"]["features"], features);
    let limits = json!({
        "emails_per_month": 3000, "emails_per_day": 100, "domains": 1, "requests_per_second": 10,
        "retention_days": 30,
    });
    let storage = account["limits"].as_object_mut().unwrap().remove("storage").unwrap();
    assert_eq!((&storage["templates"], &account["usage"]["storage"]["templates"]), (&json!(100), &json!(0)));
    assert_eq!(account["usage"]["storage"]["api_keys"], 1);
    assert_eq!(account["limits"], limits);
    assert_eq!(account["usage"]["domains"], 1);
    for (name, count) in [("emails_month", 2), ("emails_day", 2), ("overage", 0)] {
        assert_eq!(account["usage"][name], count, "{name}");
    }
    for time in ["period_start", "period_end", "resets_at"] {
        assert!(account["usage"][time].as_str().unwrap().ends_with("T00:00:00.000Z"), "{time}");
    }

    // An account without a domain is in the sandbox. A sending key gets 403.
    let other = world.account(2, ApiKeyScope::Full).await;
    let account = world.get_as(&other, "/account").await.json();
    assert_eq!((&account["account"]["access_level"], &account["usage"]["domains"]), (&json!("sandbox"), &json!(0)));
    let sending = world.account(3, ApiKeyScope::Sending).await;
    assert_eq!(world.get_as(&sending, "/account").await.status, StatusCode::FORBIDDEN);
    let session = world.session(2).await;
    let same = world.call_with_session(&session, Method::GET, "/api/account", &Value::Null).await.json();
    assert_eq!(same["account"], account["account"]);
    world.end().await;
}

/// Only the operator can verify the domain of the sandbox sender, so the error names the operator.
#[tokio::test]
async fn unconfigured_sandbox_is_reported() {
    let world = World::with_parts(|parts| parts.sandbox_sender = Some("hi@sandbox.test".parse().unwrap())).await;
    assert_eq!(
        world.accounts.senders.unverified_sandbox_domain().await.unwrap().map(ToString::to_string).as_deref(),
        Some("sandbox.test")
    );
    let mail = json!({"from": "hi@sandbox.test", "to": "owner1@example.com", "subject": "s", "text": "t"});
    let refused = world.call(Method::POST, "/emails", &mail).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "domain_not_verified"));
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The sandbox is not set up on this server"), "{message}");
    world.end().await;
}
