//! The policy of a grant, as the user sets it with the consent.

use std::time::Duration;

use http::{Method, StatusCode};
use model::user::UserRole;
use serde_json::{Value, json};

use crate::oauth::{Program, post_form, user_with_role};
use crate::world::World;

/// The policy of the newest grant.
async fn newest_policy(world: &World) -> Value {
    world.get("/grants").await.json()["grants"][0]["policy"].clone()
}

/// Allows a program to send, with this policy in the decision. Returns the status.
async fn allow(world: &World, program: &Program<'_>, policy: Option<Value>) -> StatusCode {
    // Ids of grants have milliseconds.
    world.services.clock.advance(Duration::from_secs(1));
    let mut decision = json!({"approve": true, "scopes": ["read", "send"]});
    if let Some(policy) = policy {
        decision["policy"] = policy;
    }
    let decided = program.decide(&program.request(), &decision).await;
    if decided.status == StatusCode::OK {
        let target = decided.json()["redirect_to"].as_str().unwrap().to_owned();
        let code = target.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
        assert_eq!(program.exchange(&code).await.status, StatusCode::OK);
    }
    decided.status
}

#[tokio::test]
async fn the_consent_sets_the_policy_of_the_grant() {
    let world = World::start().await;
    let program = Program::new(&world).await;
    assert_eq!(allow(&world, &program, Some(json!({"recipients": ["*@example.net"]}))).await, StatusCode::OK);
    assert_eq!(newest_policy(&world).await["recipients"], json!(["*@example.net"]));
    let wrong = json!({"recipient": ["x@example.net"]});
    assert_eq!(allow(&world, &program, Some(wrong)).await, StatusCode::BAD_REQUEST);
    // Without a policy in the decision the rules are kept, and null lifts them.
    assert_eq!(allow(&world, &program, None).await, StatusCode::OK);
    assert_eq!(newest_policy(&world).await["recipients"], json!(["*@example.net"]));
    assert_eq!(allow(&world, &program, Some(Value::Null)).await, StatusCode::OK);
    assert_eq!(newest_policy(&world).await, Value::Null);
    world.end().await;
}

#[tokio::test]
async fn a_client_that_registers_again_keeps_its_policy() {
    let world = World::start().await;
    let first = Program::new(&world).await;
    assert_eq!(allow(&world, &first, Some(json!({"sends_per_day": 5}))).await, StatusCode::OK);
    let again = Program::new(&world).await;
    assert_ne!(first.id, again.id);
    assert_eq!(again.ask(&again.request()).await.json()["policy"]["sends_per_day"], 5);
    assert_eq!(allow(&world, &again, None).await, StatusCode::OK);
    assert_eq!(newest_policy(&world).await["sends_per_day"], 5);
    world.end().await;
}

#[tokio::test]
async fn a_viewer_lifts_no_rules_of_the_grant() {
    let world = World::start().await;
    let (_, viewer) = user_with_role(&world, UserRole::Viewer).await;
    let program = Program::of_user(&world, viewer).await;
    let decide = async |policy: Value| {
        let decision = json!({"approve": true, "scopes": ["read"], "policy": policy});
        program.decide(&program.request(), &decision).await
    };
    let decided = decide(json!({"sends_per_day": 5})).await.json();
    let code = decided["redirect_to"].as_str().unwrap().split("code=").nth(1).unwrap().split('&').next().unwrap();
    assert_eq!(program.exchange(code).await.status, StatusCode::OK);
    assert_eq!(decide(Value::Null).await.status, StatusCode::FORBIDDEN);
    assert_eq!(decide(json!({"sends_per_day": 4})).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_device_gets_the_policy_of_its_decision() {
    let world = World::start().await;
    let user = world.session(1).await;
    let device = post_form(&world, "/oauth/device", &[("client_id", "postrider-cli"), ("scope", "send")]).await.json();
    let path = format!("/auth/device-requests/{}", device["user_code"].as_str().unwrap());
    let decision = json!({"approve": true, "scopes": ["send"], "policy": {"approve": ["send"]}});
    assert_eq!(world.call_with_session(&user, Method::POST, &path, &decision).await.status, StatusCode::OK);
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("client_id", "postrider-cli"),
        ("device_code", device["device_code"].as_str().unwrap()),
    ];
    assert_eq!(post_form(&world, "/oauth/token", &fields).await.status, StatusCode::OK);
    assert_eq!(newest_policy(&world).await["approve"], json!(["send"]));
    world.end().await;
}
