//! Roles: every operation of a session with every role, and the management of the team by admins.

use std::collections::BTreeMap;

use accounts::users::UserService;
use api::auth::cookie;
use api::operation::{Operation, OperationHandler, SessionSubject};
use api::operations::operation_table;
use api::sdk::Risk;
use http::{Method, StatusCode};
use model::user::UserRole;
use serde_json::{Value, json};
use store::engine::Batch;

use crate::world::{TestSession, World};

/// Creates a user of the first account with this role, and signs in.
async fn session_with_role(world: &World, role: UserRole) -> TestSession {
    let users = UserService::new(&world.services);
    let owner = users.by_email(&"owner1@example.com".parse().unwrap()).await.unwrap().unwrap();
    let email = format!("{}-{:x}@example.net", role.word(), world.services.entropy.u128());
    let user = users.new_user(owner.account, email.parse().unwrap(), role);
    let mut batch = Batch::progress();
    store::user::create(&mut batch, &user);
    users.store.commit(batch).await.unwrap();
    let (token, _) = users.sign_in(&user).await.unwrap();
    TestSession { cookie: cookie::cookie_pair(&token), csrf: Some(token.csrf()) }
}

/// The least role that may call an operation, written independently of the role table.
fn expected_least_role(operation: &Operation) -> UserRole {
    if matches!(operation.handler, OperationHandler::Session(SessionSubject::Own, _)) {
        return UserRole::Viewer;
    }
    match operation.risk {
        Risk::Payout => UserRole::Owner,
        Risk::Money | Risk::Team => UserRole::Admin,
        Risk::Read if operation.method == Method::GET => UserRole::Viewer,
        _ => UserRole::Developer,
    }
}

#[tokio::test]
async fn the_role_table_holds_for_every_operation() {
    let world = World::start().await;
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for role in UserRole::ALL {
        // These end the session that calls them.
        let ends_session = |operation: &Operation| ["sign_out", "end_other_sessions"].contains(&operation.id);
        let session = session_with_role(&world, role).await;
        for operation in operation_table().iter().filter(|operation| operation.accepts_sessions()) {
            let other_session;
            let caller = if ends_session(operation) {
                other_session = session_with_role(&world, role).await;
                &other_session
            } else {
                &session
            };
            let prefix = match operation.handler {
                OperationHandler::ApiKeyOrSession(..) => "/api",
                _ => "",
            };
            let path = format!("{prefix}{}", operation.path.replace("{id}", "msg_00000000000000000000000000"));
            let response = world.call_with_session(caller, operation.method.clone(), &path, &json!({})).await;
            let is_refused = response.status == StatusCode::FORBIDDEN
                && response.json()["error"]["message"].as_str().unwrap().contains("The role `");
            assert_ne!(response.status, StatusCode::UNAUTHORIZED, "{} {}", role.word(), operation.id);
            assert_eq!(is_refused, role < expected_least_role(operation), "{} {}", role.word(), operation.id);
            *refused.entry(role.word()).or_default() += usize::from(is_refused);
        }
    }
    assert_eq!(refused["owner"], 0);
    assert!(refused["viewer"] > refused["developer"] && refused["developer"] > refused["admin"], "{refused:?}");
    world.end().await;
}

#[tokio::test]
async fn admins_manage_developers_and_viewers_only() {
    let world = World::start().await;
    let (owner, admin) = (world.session(1).await, session_with_role(&world, UserRole::Admin).await);
    let invite = async |session: &TestSession, email: &str, role: &str| {
        world.call_with_session(session, Method::POST, "/users", &json!({"email": email, "role": role})).await
    };
    for role in ["owner", "admin"] {
        let response = invite(&admin, "a@example.net", role).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::FORBIDDEN, "forbidden"), "{role}");
    }
    let viewer = invite(&admin, "v@example.net", "viewer").await.json();
    assert_eq!(viewer["user"]["role"], "viewer");
    let second_admin = invite(&owner, "b@example.net", "admin").await.json();
    let path = |invited: &Value| format!("/users/{}", invited["user"]["id"].as_str().unwrap());
    let (viewer, second_admin) = (path(&viewer), path(&second_admin));
    let patch = async |session: &TestSession, path: &str, role: &str| {
        world.call_with_session(session, Method::PATCH, path, &json!({"role": role})).await
    };
    // An earlier name of `developer`.
    assert_eq!(patch(&admin, &viewer, "member").await.json()["user"]["role"], "developer");
    assert_eq!(patch(&admin, &viewer, "admin").await.status, StatusCode::FORBIDDEN);
    assert_eq!(patch(&admin, &second_admin, "viewer").await.status, StatusCode::FORBIDDEN);
    // An invitation of an admin cannot be renewed with another role.
    assert_eq!(invite(&admin, "b@example.net", "viewer").await.status, StatusCode::FORBIDDEN);
    let delete = async |session: &TestSession, path: &str| {
        world.call_with_session(session, Method::DELETE, path, &Value::Null).await.status
    };
    assert_eq!(delete(&admin, &second_admin).await, StatusCode::FORBIDDEN);
    assert_eq!(delete(&admin, &viewer).await, StatusCode::OK);
    assert_eq!(delete(&owner, &second_admin).await, StatusCode::OK);
    let unknown = invite(&owner, "c@example.net", "root").await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test]
async fn the_last_owner_keeps_the_role_and_a_removed_user_the_session_no_longer() {
    let world = World::start().await;
    let owner = world.session(1).await;
    let own = world.call_with_session(&owner, Method::GET, "/auth/session", &Value::Null).await.json();
    let own = format!("/users/{}", own["session"]["user"]["id"].as_str().unwrap());
    session_with_role(&world, UserRole::Admin).await;
    for role in ["admin", "developer", "viewer", "member"] {
        let response = world.call_with_session(&owner, Method::PATCH, &own, &json!({"role": role})).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::CONFLICT, "conflict"), "{role}");
    }
    assert_eq!(world.call_with_session(&owner, Method::DELETE, &own, &Value::Null).await.status, StatusCode::CONFLICT);
    for role in UserRole::ALL {
        let session = session_with_role(&world, role).await;
        let user = world.call_with_session(&session, Method::GET, "/auth/session", &Value::Null).await.json();
        assert_eq!(user["session"]["user"]["role"], role.word());
        let path = format!("/users/{}", user["session"]["user"]["id"].as_str().unwrap());
        assert_eq!(world.call_with_session(&owner, Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
        let ended = world.call_with_session(&session, Method::GET, "/auth/session", &Value::Null).await;
        assert_eq!(ended.status, StatusCode::UNAUTHORIZED, "{}", role.word());
    }
    world.end().await;
}
