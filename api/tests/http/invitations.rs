//! Invitations: the response does not depend on other accounts, and an invitation takes no address from them.

use crate::world::{Answered, Signed, World};
use http::{Method, StatusCode};
use mail::credential::ApiKeyScope;
use mail::user::User;
use serde_json::{Value, json};

async fn world() -> World {
    let world = World::with(|options| options.sandbox_sender = Some("onboarding@example.com".parse().unwrap())).await;
    world.account(2, ApiKeyScope::Full).await;
    world
}

async fn invite(world: &World, owner: &Signed, email: &str, role: &str) -> Answered {
    world.browse(owner, Method::POST, "/users", &json!({"email": email, "role": role})).await
}

/// The links mailed to an address, newest first.
async fn links(world: &World, to: &str) -> Vec<String> {
    let account = store::account::find(world.hall.store(), "owner1@example.com").await.unwrap().unwrap();
    let mut links = Vec::new();
    for found in store::email::list(world.hall.store(), account.id, None, 100).await.unwrap() {
        let raw = store::email::get_body(world.hall.store(), account.id, found.email.id).await.unwrap().unwrap();
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
    store::user::find_by_email(world.hall.store(), email).await.unwrap()
}

async fn users(world: &World, session: &Signed) -> Vec<Value> {
    let listed = world.browse(session, Method::GET, "/users", &Value::Null).await.json();
    listed["users"].as_array().unwrap().clone()
}

#[tokio::test]
async fn invitation_does_not_reveal_other_accounts() {
    let world = world().await;
    let (owner, other) = (world.session(1).await, world.session(2).await);
    let member = invite(&world, &other, "member@example.net", "member").await;
    assert_eq!(member.status, StatusCode::OK);
    let accepted = world.ask(Method::POST, &links(&world, "member@example.net").await[0], &Value::Null).await;
    assert_eq!(accepted.status, StatusCode::OK);
    let held = user(&world, "member@example.net").await.unwrap();

    let mut answers = Vec::new();
    for email in ["owner2@example.com", "member@example.net", "nobody@example.net"] {
        let answer = invite(&world, &owner, email, "member").await;
        let mut told = answer.json();
        assert_eq!(told["user"]["email"], email);
        told["user"]["id"].take();
        told["user"]["email"].take();
        told["user"]["created_at"].take();
        answers.push((answer.status, told));
    }
    assert_eq!(answers[0].1["user"]["status"], "invited");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(user(&world, "member@example.net").await, Some(held.clone()));

    // Only the owner of the mailbox learns that the address belongs to another account, and keeps that account.
    let refused = world.ask(Method::POST, &links(&world, "member@example.net").await[0], &Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::CONFLICT, "conflict"));
    let refused = world.ask(Method::POST, &links(&world, "owner2@example.com").await[0], &Value::Null).await;
    assert_eq!(refused.code(), "conflict");
    // The other account removes the user, who may now accept.
    let path = format!("/users/{}", held.id);
    assert_eq!(world.browse(&other, Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
    let accepted = world.ask(Method::POST, &links(&world, "member@example.net").await[0], &Value::Null).await;
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
        world.hall.clock().advance(std::time::Duration::from_secs(1));
    }
    assert_eq!(user(&world, "new@example.net").await, None);
    // An invited owner does not count before acceptance: the last active owner stays.
    let first = users(&world, &owners[0]).await;
    let own = first.iter().find(|user| user["status"] == "active").unwrap();
    let path = format!("/users/{}", own["id"].as_str().unwrap());
    assert_eq!(world.browse(&owners[0], Method::DELETE, &path, &Value::Null).await.code(), "conflict");

    // A second invitation reuses the user and sends another link; a requested sign-in link works too.
    let again = invite(&world, &owners[0], "new@EXAMPLE.net", "member").await.json();
    assert_eq!((&again["user"]["role"], users(&world, &owners[0]).await.len()), (&json!("member"), 2));
    let mailed = links(&world, "new@example.net").await;
    assert_eq!(mailed.len(), 3);
    assert_eq!(world.ask(Method::POST, &mailed[0], &Value::Null).await.status, StatusCode::OK);
    let account = user(&world, "new@example.net").await.unwrap().account;
    assert_eq!(again["user"]["id"], user(&world, "new@example.net").await.unwrap().id.to_string());
    assert_eq!(invite(&world, &owners[0], "new@example.net", "member").await.code(), "conflict");

    // The other account's invitation stays open and can be withdrawn without affecting the user.
    let open = users(&world, &owners[1]).await;
    let open = open.iter().find(|user| user["status"] == "invited").unwrap();
    let path = format!("/users/{}", open["id"].as_str().unwrap());
    assert_eq!(world.browse(&owners[1], Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
    assert_eq!(user(&world, "new@example.net").await.unwrap().account, account);
    let gone = world.ask(Method::POST, &mailed[1], &Value::Null).await;
    assert!([401, 409].contains(&gone.status.as_u16()), "{gone:?}");
    world.end().await;
}

#[tokio::test]
async fn lost_invitation_link_is_resent() {
    let world = world().await;
    let owner = world.session(1).await;
    invite(&world, &owner, "late@example.net", "member").await;
    world.hall.clock().advance(std::time::Duration::from_secs(4 * 24 * 3600));
    let old = links(&world, "late@example.net").await;
    assert_eq!(world.ask(Method::POST, &old[0], &Value::Null).await.status, StatusCode::UNAUTHORIZED);
    world.ask(Method::POST, "/auth/link", &json!({"email": "Late@example.net"})).await;
    // The email is sent after the response.
    while links(&world, "late@example.net").await.len() == 1 {
        tokio::task::yield_now().await;
    }
    let link = links(&world, "late@example.net").await.swap_remove(0);
    assert_eq!(world.ask(Method::POST, &link, &Value::Null).await.status, StatusCode::OK);
    // The number of emails is limited.
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
    let shown = world.get(&format!("/emails/{id}")).await.json();
    assert!(shown["email"]["text"].is_null() && shown["email"]["html"].is_null(), "{shown}");
    assert_eq!(world.get(&format!("/emails/{id}/raw")).await.status, StatusCode::NOT_FOUND);
    let resent = world.post(&format!("/emails/{id}/resend"), "").await;
    assert_eq!(resent.status, StatusCode::NOT_FOUND, "{}", resent.json());
    world.end().await;
}
