//! Sign-in and sign-out, users and roles, and the operations that a session can call.

use std::time::Duration;

use crate::world::{TestSession, World};
use accounts::users::UserService;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use model::credential::ApiKeyScope;
use serde_json::{Value, json};
use store::engine::Batch;

const PASSWORD: &str = "correct horse battery";

async fn linked_world() -> World {
    World::with_options(|options| options.sandbox_sender = Some("onboarding@example.com".parse().unwrap())).await
}

async fn set_password(world: &World, session: &TestSession, password: &str, current: Option<&str>) -> StatusCode {
    let body = json!({"password": password, "current_password": current});
    world.call_with_session(session, Method::POST, "/auth/password", &body).await.status
}

async fn sign_in(world: &World, email: &str, password: &str) -> crate::world::TestResponse {
    world.call_without_key(Method::POST, "/auth/sign-in", &json!({"email": email, "password": password})).await
}

#[tokio::test]
async fn password_sign_in() {
    let world = World::start().await;
    let before = world.session(1).await;
    assert_eq!(set_password(&world, &before, "short", None).await, StatusCode::BAD_REQUEST);
    assert_eq!(set_password(&world, &before, PASSWORD, None).await, StatusCode::OK);
    let unknown = sign_in(&world, "nobody@example.com", PASSWORD).await;
    let invalid = sign_in(&world, "owner1@example.com", "wrong horse battery").await;
    assert_eq!((unknown.status, unknown.json()["error"]["message"].clone()), {
        (StatusCode::UNAUTHORIZED, invalid.json()["error"]["message"].clone())
    });
    let right = sign_in(&world, "Owner1@Example.com", PASSWORD).await;
    assert_eq!(right.status, StatusCode::OK, "{}", right.json());
    let cookie = right.headers["set-cookie"].to_str().unwrap();
    for part in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(&format!("; {part}")), "{cookie}");
    }
    let session = TestSession::from_response(&right);
    let session_response =
        world.call_with_session(&session.forged(), Method::GET, "/auth/session", &Value::Null).await.json();
    assert_eq!(session_response["session"]["csrf_token"].as_str(), session.csrf.as_deref());
    assert_eq!(session_response["session"]["user"]["role"], "owner");
    assert_eq!(session_response["session"]["user"]["email"], "owner1@example.com");
    // A new password ends the other sessions, and requires the current one.
    assert_eq!(set_password(&world, &session, "another password", None).await, StatusCode::FORBIDDEN);
    let done = set_password(&world, &session, "another password", Some(PASSWORD)).await;
    assert_eq!(done, StatusCode::OK);
    let ended = world.call_with_session(&before, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&world, "owner1@example.com", PASSWORD).await.status, StatusCode::UNAUTHORIZED);
    let out = world.call_with_session(&session, Method::POST, "/auth/sign-out", &Value::Null).await;
    assert!(out.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    let ended = world.call_with_session(&session, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
    world.end().await;
}

#[tokio::test]
async fn failed_sign_ins_are_counted() {
    let world = World::start().await;
    let mut statuses = Vec::new();
    for _ in 0..11 {
        statuses.push(sign_in(&world, "owner1@example.com", "wrong").await);
    }
    let last = statuses.pop().unwrap();
    assert!(statuses.iter().all(|response| response.status == StatusCode::UNAUTHORIZED));
    assert_eq!((last.status.as_u16(), last.code().as_str()), (429, "rate_limit_exceeded"));
    assert!(last.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
    world.end().await;
}

/// The path of the link in the last email.
async fn mailed_link(world: &World) -> String {
    let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    loop {
        let found = store::email::list(&world.services.store, account.id, None, 1).await.unwrap();
        let Some(found) = found.first() else {
            // The email is sent after the response.
            tokio::task::yield_now().await;
            continue;
        };
        let raw = world.read_message(account.id, found.email.id).await;
        let text = String::from_utf8_lossy(&raw).replace("=\r\n", "").replace("=3D", "=");
        let start = text.find("/auth/link/").unwrap();
        let link = text[start..].split_whitespace().next().unwrap().to_owned();
        assert!(text[..start].ends_with(crate::world::BASE_URL), "{text}");
        return link;
    }
}

#[tokio::test]
async fn mailed_link_signs_in_once() {
    let world = linked_world().await;
    let response = world.call_without_key(Method::POST, "/auth/link", &json!({"email": "nobody@example.com"})).await;
    assert_eq!(response.json(), json!({"ok": true}));
    let response = world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    assert_eq!((response.status, response.json()), (StatusCode::OK, json!({"ok": true})));
    let link = mailed_link(&world).await;
    // Opening the link changes nothing.
    for _ in 0..2 {
        let page = world.call_without_key(Method::GET, &link, &Value::Null).await;
        assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/html"));
        assert_eq!(page.headers["referrer-policy"], "same-origin");
        assert!(String::from_utf8_lossy(&page.body).contains("<form method=\"post\">"));
    }
    let signed = world.call_without_key(Method::POST, &link, &Value::Null).await;
    assert_eq!(signed.status, StatusCode::OK, "{}", signed.json());
    let session = TestSession::from_response(&signed);
    let session_response = world.call_with_session(&session, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(session_response.json()["session"]["user"]["email"], "owner1@example.com");
    for path in [link.as_str(), "/auth/link/x"] {
        let again = world.call_without_key(Method::POST, path, &Value::Null).await;
        assert_eq!((again.status, again.code().as_str()), (StatusCode::UNAUTHORIZED, "unauthorized"));
    }
    world.end().await;
}

#[tokio::test]
async fn a_browser_is_led_to_the_dashboard_and_an_expired_link_is_refused() {
    let world = linked_world().await;
    world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    let link = mailed_link(&world).await;
    let request = Request::post(&link).header("host", "t").header("accept", "text/html,*/*;q=0.8");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let signed_in = world.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(
        (signed_in.status, &signed_in.headers["location"]),
        (StatusCode::SEE_OTHER, &"/dashboard".parse().unwrap())
    );
    assert!(signed_in.headers.contains_key("set-cookie"));

    let world = linked_world().await;
    world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    let link = mailed_link(&world).await;
    world.services.clock.advance(Duration::from_secs(15 * 60));
    assert_eq!(world.call_without_key(Method::POST, &link, &Value::Null).await.status, StatusCode::UNAUTHORIZED);
    let mut batch = Batch::progress();
    let now = world.services.clock.now();
    assert_eq!(store::sign_in_link::purge_expired(&world.services.store, &mut batch, now, 9).await.unwrap(), 1);
    world.end().await;
}

#[tokio::test]
async fn no_links_without_a_service_sender() {
    let world = World::start().await;
    let response = world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    assert_eq!((response.status, response.code().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable"));
    assert!(response.json()["error"]["message"].as_str().unwrap().contains("sandbox_sender"));
    world.end().await;
}

#[tokio::test]
async fn changes_need_the_csrf_token() {
    let world = World::start().await;
    let session = world.session(1).await;
    let other = {
        world.account(2, ApiKeyScope::Full).await;
        world.session(2).await
    };
    let key = json!({"name": "by hand", "scope": "sending"});
    let foreign = TestSession { csrf: other.csrf.clone(), ..session.clone() };
    for forged in [session.forged(), foreign] {
        for (method, path) in [
            (Method::POST, "/api/api-keys"),
            (Method::DELETE, "/api/api-keys/x"),
            (Method::PATCH, "/api/api-keys/x"),
            (Method::POST, "/auth/sign-out"),
        ] {
            let response = world.call_with_session(&forged, method, path, &key).await;
            assert_eq!((response.status, response.code().as_str()), (StatusCode::FORBIDDEN, "forbidden"), "{path}");
        }
        let read = world.call_with_session(&forged, Method::GET, "/api/api-keys", &Value::Null).await;
        assert_eq!(read.status, StatusCode::OK);
    }
    let made = world.call_with_session(&session, Method::POST, "/api/api-keys", &key).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.json());
    // The path without the browser prefix is for keys; sending is for programs.
    let plain = world.call_with_session(&session, Method::GET, "/api-keys", &Value::Null).await;
    assert_eq!(plain.status, StatusCode::UNAUTHORIZED);
    let send = world.call_with_session(&session, Method::POST, "/api/emails", &json!({})).await;
    assert_eq!(send.status, StatusCode::METHOD_NOT_ALLOWED);
    let health = world.call_with_session(&session, Method::GET, "/api/healthz", &Value::Null).await;
    assert_eq!(health.status, StatusCode::NOT_FOUND);
    // A session cannot see another account.
    let id = made.json()["api_key"]["id"].as_str().unwrap().to_owned();
    let hidden = world.call_with_session(&other, Method::GET, &format!("/api/api-keys/{id}"), &Value::Null).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn sessions_are_extended_and_expire() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let world = World::start().await;
    let (used, unused) = (world.session(1).await, world.session(1).await);
    let status = async |session: &TestSession| {
        let status = world.call_with_session(session, Method::GET, "/auth/session", &Value::Null).await.status.as_u16();
        // The session is extended after the response.
        while !world.server.state().is_idle() {
            tokio::task::yield_now().await;
        }
        status
    };
    for _ in 0..10 {
        world.services.clock.advance(10 * DAY - Duration::from_secs(60));
        if status(&used).await != 200 {
            break;
        }
    }
    assert_eq!((status(&used).await, status(&unused).await), (401, 401));
    let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    let (mut batch, now) = (Batch::progress(), world.services.clock.now());
    store::session::purge_expired(&world.services.store, &mut batch, account.id, None, now, 10).await.unwrap();
    world.services.store.commit(batch).await.unwrap();
    let user = store::user::find_by_email(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    let remaining = store::session::list_by_user(&world.services.store, account.id, user.id).await.unwrap();
    assert!(remaining.is_empty());
    for cookie in ["", "__Host-postrider_session=", "__Host-postrider_session=AAAA", "x"] {
        assert_eq!(status(&TestSession { cookie: cookie.to_owned(), csrf: None }).await, 401, "{cookie}");
    }
    world.end().await;
}

#[tokio::test]
async fn owners_invite_and_remove_but_one_remains() {
    let world = linked_world().await;
    let owner = world.session(1).await;
    let invited =
        world.call_with_session(&owner, Method::POST, "/users", &json!({"email": "member@example.net"})).await.json();
    assert_eq!(invited["user"]["role"], "developer");
    assert_eq!(invited["link_mailed"], true);
    let member = TestSession::from_response(
        &world.call_without_key(Method::POST, &mailed_link(&world).await, &Value::Null).await,
    );
    let again = world.call_with_session(&owner, Method::POST, "/users", &json!({"email": "Member@example.net"})).await;
    assert_eq!((again.status, again.code().as_str()), (StatusCode::CONFLICT, "conflict"));
    world.account(2, ApiKeyScope::Full).await;

    // A member can list users but not change them.
    let users = world.call_with_session(&member, Method::GET, "/users", &Value::Null).await.json()["users"].clone();
    assert_eq!(users.as_array().unwrap().len(), 2);
    let id = |email: &str| {
        let user = users.as_array().unwrap().iter().find(|user| user["email"] == email).unwrap();
        format!("/users/{}", user["id"].as_str().unwrap())
    };
    let (first, second) = (id("owner1@example.com"), id("member@example.net"));
    for (method, path) in [(Method::POST, "/users"), (Method::DELETE, &first), (Method::PATCH, &second)] {
        let response = world.call_with_session(&member, method, path, &json!({"role": "owner"})).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::FORBIDDEN, "forbidden"), "{path}");
    }
    assert_eq!(
        world.call_with_session(&member, Method::GET, "/api/api-keys", &Value::Null).await.status,
        StatusCode::OK
    );

    // The last owner cannot be removed; with a second owner the first can.
    for (method, body) in [(Method::DELETE, Value::Null), (Method::PATCH, json!({"role": "member"}))] {
        assert_eq!(world.call_with_session(&owner, method, &first, &body).await.code(), "conflict");
    }
    let promoted = world.call_with_session(&owner, Method::PATCH, &second, &json!({"role": "owner"})).await;
    assert_eq!(promoted.json()["user"]["role"], "owner");
    let removed = world.call_with_session(&member, Method::DELETE, &first, &Value::Null).await;
    assert_eq!(removed.json(), json!({"ok": true}));
    let deleted = world.call_with_session(&owner, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(deleted.status, StatusCode::UNAUTHORIZED);
    let other_session = world.session(2).await;
    let hidden = world.call_with_session(&other_session, Method::DELETE, &second, &Value::Null).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test]
async fn a_forgotten_password_is_replaced_after_a_mailed_link() {
    let world = linked_world().await;
    let stolen = world.session(1).await;
    assert_eq!(set_password(&world, &stolen, PASSWORD, None).await, StatusCode::OK);
    let late = |status| status == StatusCode::FORBIDDEN;
    assert!(late(set_password(&world, &stolen, "another password", None).await));
    while !world.server.state().is_idle() {
        tokio::task::yield_now().await;
    }
    world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    while !world.server.state().is_idle() {
        tokio::task::yield_now().await;
    }
    let link = mailed_link(&world).await;
    let session = TestSession::from_response(&world.call_without_key(Method::POST, &link, &Value::Null).await);
    let listed = world.call_with_session(&session, Method::GET, "/auth/sessions", &Value::Null).await.json();
    let methods: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|entry| &entry["method"]).collect();
    assert_eq!(methods, ["link", "password"]);
    assert_eq!((&listed["sessions"][0]["current"], &listed["sessions"][1]["current"]), (&json!(true), &json!(false)));
    let body = json!({"password": "another password"});
    let done = world.call_with_session(&session, Method::POST, "/auth/password", &body).await;
    assert_eq!(done.json(), json!({"ok": true, "sessions_ended": 1}));
    let ended = world.call_with_session(&stolen, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
    // After 15 minutes the session cannot set a password without the current one.
    world.services.clock.advance(Duration::from_secs(15 * 60));
    assert!(late(set_password(&world, &session, "a third password", None).await));
    world.end().await;
}

#[tokio::test]
async fn only_the_user_ends_their_sessions() {
    let world = World::start().await;
    let [own, other] = [world.session(1).await, world.session(1).await];
    let listed = world.call_with_session(&own, Method::GET, "/auth/sessions", &Value::Null).await.json();
    let sessions = listed["sessions"].as_array().unwrap();
    let id = sessions.iter().find(|entry| entry["current"] == false).unwrap()["id"].as_str().unwrap().to_owned();
    world.account(2, ApiKeyScope::Full).await;
    let other_session = world.session(2).await;
    let path = format!("/auth/sessions/{id}");
    let refused = world.call_with_session(&other_session, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(world.call_with_session(&own, Method::DELETE, &path, &Value::Null).await.status, StatusCode::OK);
    let ended = world.call_with_session(&other, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
    world.session(1).await;
    let all = world.call_with_session(&own, Method::DELETE, "/auth/sessions", &Value::Null).await;
    assert_eq!(all.json()["sessions_ended"], 1);
    world.end().await;
}

#[tokio::test]
async fn no_other_site_signs_a_visitor_in() {
    let world = World::start().await;
    let table = api::operations::operation_table();
    let all: Vec<_> = table.iter().filter(|operation| operation.changes_session()).collect();
    for id in ["sign_in", "use_sign_in_link", "sign_out", "send_portal_form", "use_portal_link"] {
        assert!(all.iter().any(|operation| operation.id == id), "{id}");
    }
    for operation in all {
        let path = operation.path.replace("{token}", "x").replace("{page}", "sign-in");
        let status = async |name: &str, value: &str| {
            let request = Request::builder().method(operation.method.clone()).uri(&path).header("host", "t");
            let request = request.header(name, value).header("content-type", "application/x-www-form-urlencoded");
            world.send(request.body(Full::from("{}")).unwrap()).await.status
        };
        let foreign = [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")];
        for (name, value) in foreign {
            assert_eq!(status(name, value).await, StatusCode::FORBIDDEN, "{} {name} {value}", operation.id);
        }
        for (name, value) in [("origin", "https://t"), ("origin", crate::world::BASE_URL), ("sec-fetch-site", "none")] {
            assert_ne!(status(name, value).await, StatusCode::FORBIDDEN, "{} {name} {value}", operation.id);
        }
    }
    world.end().await;
}

#[tokio::test]
async fn the_operator_resets_a_user() {
    let world = World::start().await;
    let session = world.session(1).await;
    assert_eq!(set_password(&world, &session, PASSWORD, None).await, StatusCode::OK);
    let users = UserService::new(&world.services);
    let address = "owner1@example.com".parse().unwrap();
    let (token, ended) = users.reset_password(&address, Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(ended, 1);
    let over = world.call_with_session(&session, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(over.status, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&world, "owner1@example.com", PASSWORD).await.status, StatusCode::UNAUTHORIZED);
    let path = format!("/auth/link/{}", token.text());
    let session = TestSession::from_response(&world.call_without_key(Method::POST, &path, &Value::Null).await);
    assert_eq!(set_password(&world, &session, "another password", None).await, StatusCode::OK);
    let unknown = users.reset_password(&"nobody@example.com".parse().unwrap(), Duration::from_secs(3_600)).await;
    assert!(unknown.is_err());
    world.end().await;
}

/// Links mailed before a password reset or change are invalid.
#[tokio::test]
async fn password_change_invalidates_links() {
    let world = linked_world().await;
    let users = UserService::new(&world.services);
    let address = "owner1@example.com".parse().unwrap();
    let reset = async || {
        let (token, _) = users.reset_password(&address, Duration::from_secs(3_600)).await.unwrap();
        format!("/auth/link/{}", token.text())
    };
    world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    let stolen = mailed_link(&world).await;
    let handed_over = reset().await;
    let refused = async |path: &str| {
        let response = world.call_without_key(Method::POST, path, &Value::Null).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::UNAUTHORIZED, "unauthorized"));
    };
    refused(&stolen).await;
    let session = TestSession::from_response(&world.call_without_key(Method::POST, &handed_over, &Value::Null).await);
    world.services.clock.advance(Duration::from_secs(60));
    world.call_without_key(Method::POST, "/auth/link", &json!({"email": "owner1@example.com"})).await;
    while !world.server.state().is_idle() {
        tokio::task::yield_now().await;
    }
    let stolen = mailed_link(&world).await;
    assert_eq!(set_password(&world, &session, PASSWORD, None).await, StatusCode::OK);
    refused(&stolen).await;
    world.end().await;
}

/// All emails of the service, newest first, once background work is done.
async fn mailed(world: &World) -> Vec<String> {
    while !world.server.state().is_idle() {
        tokio::task::yield_now().await;
    }
    let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    let mut texts = Vec::new();
    for mail in store::email::list(&world.services.store, account.id, None, 100).await.unwrap() {
        let raw = world.read_message(account.id, mail.email.id).await;
        texts.push(String::from_utf8_lossy(&raw).replace("=\r\n", ""));
    }
    texts
}

/// A key outlives the session that created it, so the account's owners are notified.
#[tokio::test]
async fn owners_are_notified_of_a_new_key() {
    let world = linked_world().await;
    let session = world.session(1).await;
    let made =
        world.call_with_session(&session, Method::POST, "/api/api-keys", &json!({"name": "x", "scope": "full"})).await;
    let id = made.json()["api_key"]["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    let mails = mailed(&world).await;
    let [text] = mails.as_slice() else { panic!("{mails:?}") };
    assert!(text.contains("An API key was created") && text.contains(&id), "{text}");
    assert!(text.contains("To: <owner1@example.com>"), "{text}");
    world.end().await;
}

/// Owners are also notified of a rotated secret and of a new owner.
#[tokio::test]
async fn owners_are_notified_of_rotation_and_new_owners() {
    let world = linked_world().await;
    let session = world.session(1).await;
    let post = async |path: &str, body: Value| {
        let response = world.call_with_session(&session, Method::POST, path, &body).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.json());
        response.json()
    };
    for (path, one, noun) in
        [("/api/api-keys", "api_key", "API key"), ("/api/smtp-credentials", "smtp_credential", "SMTP credential")]
    {
        let made = post(path, json!({"name": "x", "scope": "full"})).await;
        let id = made[one]["id"].as_str().unwrap().to_owned();
        let before = mailed(&world).await.len();
        post(&format!("{path}/{id}/rotate"), json!({"grace_hours": 1})).await;
        let mails = mailed(&world).await;
        assert_eq!(mails.len(), before + 1);
        let is_notice = |text: &&String| text.contains(&format!("An {noun} has a new secret")) && text.contains(&id);
        assert_eq!(mails.iter().filter(is_notice).count(), 1, "{mails:?}");
    }
    let is_mailed = |mails: &[String], subject: &str, to: &str| {
        let is_it = |text: &&String| text.contains(subject) && text.contains(&format!("To: <{to}>"));
        mails.iter().filter(is_it).count()
    };
    post("/users", json!({"email": "second@example.net", "role": "owner"})).await;
    let member = post("/users", json!({"email": "third@example.net", "role": "member"})).await;
    let mails = mailed(&world).await;
    assert_eq!(is_mailed(&mails, "A user was invited to be an owner", "owner1@example.com"), 1, "{mails:?}");
    assert!(mails.iter().any(|text| text.contains("second@example.net was invited to be an owner")));
    let invited = store::user::list_invitations(&world.services.store, "third@example.net", 1).await.unwrap();
    UserService::new(&world.services).accept_invitation(&invited[0]).await.unwrap();
    let path = format!("/users/{}", member["user"]["id"].as_str().unwrap());
    let changed = world.call_with_session(&session, Method::PATCH, &path, &json!({"role": "owner"})).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.json());
    assert_eq!(is_mailed(&mailed(&world).await, "A user was made an owner", "owner1@example.com"), 1);
    world.end().await;
}
