//! Invitations: the response does not depend on other accounts, and an invitation takes no address from them.

use crate::world::{TestResponse, TestSession, World};
use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use model::user::User;
use serde_json::{Value, json};

async fn world() -> World {
    let world =
        World::with_options(|options| options.sandbox_sender = Some("onboarding@example.com".parse().unwrap())).await;
    world.account(2, ApiKeyScope::Full).await;
    world
}

async fn invite(world: &World, owner: &TestSession, email: &str, role: &str) -> TestResponse {
    world.call_with_session(owner, Method::POST, "/users", &json!({"email": email, "role": role})).await
}

/// The links mailed to an address, newest first.
async fn links(world: &World, to: &str) -> Vec<String> {
    let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    let mut links = Vec::new();
    for found in store::email::list(&world.services.store, account.id, None, 100).await.unwrap() {
        let raw = world.read_message(account.id, found.email.id).await;
        let text = String::from_utf8_lossy(&raw).replace("=\r\n", "").replace("=3D", "=");
        let is_theirs = |line: &str| line.starts_with("to:") && line.contains(to);
        if text.to_lowercase().lines().any(is_theirs) {
            let start = text.find("/auth/link/").unwrap();
            links.push(text[start..].split_whitespace().next().unwrap().to_owned());
        }
    }
    links
}

async fn user(world: &World, email: &str) -> Option<User> {
    store::user::find_by_email(&world.services.store, email).await.unwrap()
}

async fn users(world: &World, session: &TestSession) -> Vec<Value> {
    let listed = world.call_with_session(session, Method::GET, "/users", &Value::Null).await.json();
    listed["users"].as_array().unwrap().clone()
}

#[tokio::test]
async fn invitation_does_not_reveal_other_accounts() {
    let world = world().await;
    let (owner, other) = (world.session(1).await, world.session(2).await);
    let member = invite(&world, &other, "member@example.net", "member").await;
    assert_eq!(member.status, StatusCode::OK);
    let accepted =
        world.call_without_key(Method::POST, &links(&world, "member@example.net").await[0], &Value::Null).await;
    assert_eq!(accepted.status, StatusCode::OK);
    let invited = user(&world, "member@example.net").await.unwrap();

    let mut responses = Vec::new();
    for email in ["owner2@example.com", "member@example.net", "nobody@example.net"] {
        let response = invite(&world, &owner, email, "member").await;
        let mut body = response.json();
        assert_eq!(body["user"]["email"], email);
        body["user"]["id"].take();
        body["user"]["email"].take();
        body["user"]["created_at"].take();
        responses.push((response.status, body));
    }
    assert_eq!(responses[0].1["user"]["status"], "invited");
    assert!(responses.iter().all(|response| *response == responses[0]), "{responses:?}");
    assert_eq!(user(&world, "member@example.net").await, Some(invited.clone()));

    // Only the owner of the mailbox learns that the address belongs to another account, and keeps that account.
    let refused =
        world.call_without_key(Method::POST, &links(&world, "member@example.net").await[0], &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::CONFLICT, "conflict"));
    let refused =
        world.call_without_key(Method::POST, &links(&world, "owner2@example.com").await[0], &Value::Null).await;
    assert_eq!(refused.code(), "conflict");
    // The other account removes the user, who may now accept.
    let path = format!("/users/{}", invited.id);
    assert_eq!(world.call_with_session(&other, Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
    let accepted =
        world.call_without_key(Method::POST, &links(&world, "member@example.net").await[0], &Value::Null).await;
    assert_eq!(accepted.status, StatusCode::OK, "{}", accepted.json());
    assert_eq!(accepted.json()["session"]["user"]["status"], "active");
    world.end().await;
}

#[tokio::test]
async fn first_accepted_invitation_wins() {
    let world = world().await;
    let owners = [world.session(1).await, world.session(2).await];
    for owner in &owners {
        assert_eq!(invite(&world, owner, "New@example.net", "owner").await.status, StatusCode::OK);
        world.services.clock.advance(std::time::Duration::from_secs(1));
    }
    assert_eq!(user(&world, "new@example.net").await, None);
    // An invited owner does not count before acceptance: the last active owner stays.
    let first = users(&world, &owners[0]).await;
    let own = first.iter().find(|user| user["status"] == "active").unwrap();
    let path = format!("/users/{}", own["id"].as_str().unwrap());
    assert_eq!(world.call_with_session(&owners[0], Method::DELETE, &path, &Value::Null).await.code(), "conflict");

    // A second invitation reuses the user and sends another link; a requested sign-in link works too.
    let again = invite(&world, &owners[0], "new@EXAMPLE.net", "member").await.json();
    assert_eq!((&again["user"]["role"], users(&world, &owners[0]).await.len()), (&json!("developer"), 2));
    let mailed = links(&world, "new@example.net").await;
    assert_eq!(mailed.len(), 3);
    assert_eq!(world.call_without_key(Method::POST, &mailed[0], &Value::Null).await.status, StatusCode::OK);
    let account = user(&world, "new@example.net").await.unwrap().account;
    assert_eq!(again["user"]["id"], user(&world, "new@example.net").await.unwrap().id.to_string());
    assert_eq!(invite(&world, &owners[0], "new@example.net", "member").await.code(), "conflict");

    // The other account's invitation stays open and can be withdrawn without affecting the user.
    let open = users(&world, &owners[1]).await;
    let open = open.iter().find(|user| user["status"] == "invited").unwrap();
    let path = format!("/users/{}", open["id"].as_str().unwrap());
    assert_eq!(world.call_with_session(&owners[1], Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(user(&world, "new@example.net").await.unwrap().account, account);
    let deleted = world.call_without_key(Method::POST, &mailed[1], &Value::Null).await;
    assert!([401, 409].contains(&deleted.status.as_u16()), "{deleted:?}");
    world.end().await;
}

#[tokio::test]
async fn lost_invitation_link_is_resent() {
    let world = world().await;
    let owner = world.session(1).await;
    invite(&world, &owner, "late@example.net", "member").await;
    world.services.clock.advance(std::time::Duration::from_secs(4 * 24 * 3600));
    let old = links(&world, "late@example.net").await;
    assert_eq!(world.call_without_key(Method::POST, &old[0], &Value::Null).await.status, StatusCode::UNAUTHORIZED);
    world.call_without_key(Method::POST, "/auth/link", &json!({"email": "Late@example.net"})).await;
    // The email is sent after the response.
    while links(&world, "late@example.net").await.len() == 1 {
        tokio::task::yield_now().await;
    }
    let link = links(&world, "late@example.net").await.swap_remove(0);
    assert_eq!(world.call_without_key(Method::POST, &link, &Value::Null).await.status, StatusCode::OK);
    // The number of emails is limited. The first session is too old for changes of the team.
    let owner = world.session(2).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(invite(&world, &owner, "often@example.net", "member").await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    world.end().await;
}

#[tokio::test]
async fn sending_account_cannot_read_login_links() {
    let world = world().await;
    let owner = world.session(2).await;
    assert_eq!(invite(&world, &owner, "new@example.net", "owner").await.status, StatusCode::OK);
    let listed = world.get("/emails").await.json();
    let id = listed["emails"][0]["id"].as_str().unwrap().to_owned();
    let view = world.get(&format!("/emails/{id}")).await.json();
    assert!(listed["emails"][0]["confidential"] == true && view["email"]["confidential"] == true, "{view}");
    assert!(view["email"]["text"].is_null() && view["email"]["html"].is_null(), "{view}");
    assert_eq!(world.get(&format!("/emails/{id}/raw")).await.status, StatusCode::NOT_FOUND);
    let resent = world.post(&format!("/emails/{id}/resend"), "").await;
    assert_eq!(resent.status, StatusCode::NOT_FOUND, "{}", resent.json());
    world.end().await;
}
