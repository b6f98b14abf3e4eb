//! Domain claims over HTTP: list, withdraw, expire.

use std::time::Duration;

use accounts::subsystems::idle;
use http::{Method, StatusCode};
use model::account::Plan;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};

use crate::world::World;
use crate::zone::NameServer;

const DAY: Duration = Duration::from_secs(24 * 3_600);

async fn claim(world: &World, key: &str, name: &str) -> Value {
    let added = world.call(Method::POST, "/domains", &json!({"name": name})).await;
    assert_eq!(added.status, StatusCode::OK, "{}", added.json());
    let made = world.call_as(key, Method::POST, "/domains/claims", &json!({"name": name})).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.json());
    made.json()["claim"].clone()
}

fn path(claim: &Value, end: &str) -> String {
    format!("/domains/claims/{}{end}", claim["id"].as_str().unwrap())
}

fn names(page: &Value) -> Vec<&str> {
    page["claims"].as_array().unwrap().iter().map(|claim| claim["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn claims_are_listed_and_withdrawn() {
    let (world, names_server) = World::with_names("").await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let mut made = Vec::new();
    for number in 0..3 {
        made.push(claim(&world, &other, &format!("d{number}.test")).await);
    }
    let call = async |method: Method, path: &str| world.call_as(&other, method, path, &json!({})).await;
    let first = call(Method::GET, "/domains/claims?limit=2").await.json();
    assert_eq!((names(&first), &first["has_more"]), (vec!["d2.test", "d1.test"], &json!(true)));
    let next = format!("/domains/claims?limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    let rest = call(Method::GET, &next).await.json();
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["d0.test"], &json!(null)));
    let foreign = world.call(Method::GET, "/domains/claims", &Value::Null).await.json();
    assert_eq!(foreign["claims"], json!([]));

    let cancel = path(&made[0], "/cancel");
    assert_eq!(world.call(Method::POST, &cancel, &json!({})).await.status, StatusCode::NOT_FOUND);
    for _ in 0..2 {
        let given_up = call(Method::POST, &cancel).await;
        assert_eq!(given_up.json()["claim"]["status"], json!("cancelled"), "{}", given_up.json());
    }
    // The record no longer has an effect; a new claim needs a new record.
    let value = made[0]["record"]["value"].as_str().unwrap();
    names_server.set(&format!("_service.d0.test TXT \"{value}\"\n"));
    let verified = call(Method::POST, &path(&made[0], "/verify")).await.json();
    assert_eq!(verified["claim"]["status"], json!("cancelled"));
    let anew = world.call_as(&other, Method::POST, "/domains/claims", &json!({"name": "d0.test"})).await.json();
    assert_ne!(anew["claim"]["id"], made[0]["id"]);
    let done = call(Method::POST, &path(&anew["claim"], "/verify")).await.json();
    assert_eq!(done["claim"]["status"], json!("completed"));
    let late = call(Method::POST, &path(&anew["claim"], "/cancel")).await;
    assert_eq!((late.status, late.code().as_str()), (StatusCode::BAD_REQUEST, "validation_error"));
    assert_eq!(late.json()["error"]["details"]["status"], json!("completed"));
}

#[tokio::test]
async fn incomplete_claims_expire() {
    let (world, names_server) = World::with_names("").await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let unproven = claim(&world, &other, "a.test").await;
    let full = claim(&world, &other, "b.test").await;
    world.provisioning().change_account("owner2@example.com", |a| a.plan = Plan::Free).await.unwrap();
    let call = async |method: Method, path: &str| world.call_as(&other, method, path, &json!({})).await;
    let added = world.call_as(&other, Method::POST, "/domains", &json!({"name": "own.test"})).await;
    assert_eq!(added.status, StatusCode::OK);
    let value = full["record"]["value"].as_str().unwrap();
    names_server.set(&format!("_service.b.test TXT \"{value}\"\n"));
    let refused = call(Method::POST, &path(&full, "/verify")).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "plan_limit"));
    let status = async |claim: &Value| call(Method::GET, &path(claim, "")).await.json()["claim"].clone();
    assert_eq!(status(&full).await["status"], json!("verified"), "only the plan's quota prevents the completion");

    world.services.clock.advance(DAY * 8);
    assert_eq!(status(&unproven).await["status"], json!("expired"));
    assert_eq!(status(&full).await["status"], json!("verified"));
    world.services.clock.advance(DAY * 23);
    assert_eq!(status(&full).await["status"], json!("expired"));
    let late = call(Method::POST, &path(&full, "/cancel")).await;
    assert_eq!(late.json()["error"]["details"]["status"], json!("expired"));
    let anew = world.call_as(&other, Method::POST, "/domains/claims", &json!({"name": "b.test"})).await.json();
    assert_eq!(anew["claim"]["status"], json!("pending"));
}

/// The owner of a domain gets one email as soon as another account proves control of its DNS, whichever process sends
/// it.
#[tokio::test]
async fn claimed_domain_owner_is_notified() {
    let server = NameServer::start("").await;
    let world = World::with_worker_settings(|parts| {
        parts.sandbox_sender = Some("sandbox@example.com".parse().unwrap());
        parts.domains = idle::domains_parts(server.address);
    })
    .await;
    let other = world.account(2, ApiKeyScope::Full).await;
    let claim = claim(&world, &other, "acme.test").await;
    // The other account has verified the domain.
    world.accounts.domains.force_verify(&"acme.test".parse().unwrap()).await.unwrap();
    let value = claim["record"]["value"].as_str().unwrap();
    server.set(&format!("_service.acme.test TXT \"{value}\"\n"));
    for _ in 0..2 {
        let proven = world.call_as(&other, Method::POST, &path(&claim, "/verify"), &json!({})).await.json();
        assert_eq!(proven["claim"]["blocked_reason"], json!("grace_period"), "{proven:#}");
    }
    let notifications = async || world.get("/emails?to=owner1@example.com").await.json()["emails"].clone();
    // The process that found the record was killed before it sent the email.
    assert_eq!(notifications().await, json!([]));
    accounts::background_tasks::start_accounts(&world.queue, &world.accounts, None);
    let sent = async {
        loop {
            let notifications = notifications().await;
            if notifications != json!([]) {
                return notifications;
            }
        }
    };
    let sent = tokio::time::timeout(Duration::from_secs(30), sent).await.expect("the email");
    assert_eq!(sent.as_array().unwrap().len(), 1);
    assert_eq!(sent[0]["subject"], "Another account has claimed your domain acme.test");
    world.end().await;
}
