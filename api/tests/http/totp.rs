//! One-time passwords: set-up, signing in with a code, recovery codes; and re-authentication of sessions.

use std::time::Duration;

use accounts::users::UserService;
use aws_lc_rs::hmac;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use model::user::{SignInLinkKind, User};
use serde_json::{Value, json};
use store::engine::Batch;

use crate::world::{TestResponse, TestSession, World};

const PASSWORD: &str = "correct horse battery";
const EMAIL: &str = "owner1@example.com";

/// The code of a secret in base32 at the server's time (RFC 6238), computed apart from the server's code.
fn code(world: &World, secret: &str) -> String {
    let mut bits = secret.bytes().flat_map(|letter| {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|known| *known == letter).unwrap();
        (0..5).rev().map(move |bit| value >> bit & 1 == 1)
    });
    let key: Vec<u8> = (0..20).map(|_| bits.by_ref().take(8).fold(0, |byte, bit| byte << 1 | u8::from(bit))).collect();
    let step = u64::try_from(world.services.clock.now().as_second()).unwrap() / 30;
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key), &step.to_be_bytes());
    let tag = tag.as_ref();
    let offset = usize::from(tag[19] & 15);
    let word = u32::from_be_bytes(tag[offset..offset + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}

async fn post(world: &World, session: &TestSession, path: &str, body: Value) -> TestResponse {
    world.call_with_session(session, Method::POST, path, &body).await
}

async fn own_session(world: &World, session: &TestSession) -> Value {
    world.call_with_session(session, Method::GET, "/auth/session", &Value::Null).await.json()["session"].clone()
}

async fn sign_in(world: &World) -> TestResponse {
    world.call_without_key(Method::POST, "/auth/sign-in", &json!({"email": EMAIL, "password": PASSWORD})).await
}

async fn give_code(world: &World, challenge: &str, code: &str) -> TestResponse {
    world.call_without_key(Method::POST, &format!("/auth/code/{challenge}"), &json!({"code": code})).await
}

/// The owner with a password and active one-time passwords: a session, the secret and the recovery codes.
async fn set_up(world: &World) -> (TestSession, String, Vec<String>) {
    let session = world.session(1).await;
    assert_eq!(post(world, &session, "/auth/password", json!({"password": PASSWORD})).await.status, StatusCode::OK);
    let begun = post(world, &session, "/auth/totp", json!({})).await;
    assert_eq!(begun.status, StatusCode::OK, "{}", begun.json());
    let secret = begun.json()["secret"].as_str().unwrap().to_owned();
    let uri = begun.json()["otpauth_uri"].as_str().unwrap().to_owned();
    assert!(uri.starts_with("otpauth://totp/") && uri.contains(&format!("secret={secret}&")), "{uri}");
    assert!(uri.contains("owner1%40example.com"), "{uri}");
    // Until it is confirmed, sign-in asks for no code.
    assert!(sign_in(world).await.json()["session"].is_object());
    assert_eq!(own_session(world, &session).await["user"]["has_totp"], false);
    assert_eq!(post(world, &session, "/auth/totp/confirm", json!({})).await.status, StatusCode::BAD_REQUEST);
    let wrong = post(world, &session, "/auth/totp/confirm", json!({"code": "abc"})).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (StatusCode::FORBIDDEN, "forbidden"));
    let confirmed = post(world, &session, "/auth/totp/confirm", json!({"code": code(world, &secret)})).await;
    assert_eq!(confirmed.status, StatusCode::OK, "{}", confirmed.json());
    let codes: Vec<String> = serde_json::from_value(confirmed.json()["recovery_codes"].clone()).unwrap();
    assert_eq!(codes.len(), 10);
    let shown = own_session(world, &session).await;
    assert_eq!((&shown["user"]["has_totp"], &shown["recovery_codes_left"]), (&json!(true), &json!(10)));
    (session, secret, codes)
}

async fn stored_user(world: &World) -> User {
    store::user::find_by_email(&world.services.store, EMAIL).await.unwrap().unwrap()
}

#[tokio::test]
async fn sign_in_asks_for_a_code_that_is_accepted_once() {
    let world = World::start().await;
    let (_, secret, _) = set_up(&world).await;
    world.services.clock.advance(Duration::from_secs(60));
    let first_step = sign_in(&world).await;
    assert_eq!((first_step.status, &first_step.json()["totp_required"]), (StatusCode::OK, &json!(true)));
    assert!(first_step.json()["session"].is_null() && !first_step.headers.contains_key("set-cookie"));
    let challenge = first_step.json()["challenge"].as_str().unwrap().to_owned();
    // The challenge is no link: it does not sign in without a code.
    let as_link = world.call_without_key(Method::POST, &format!("/auth/link/{challenge}"), &Value::Null).await;
    assert_eq!(as_link.status, StatusCode::UNAUTHORIZED);
    let wrong = give_code(&world, &challenge, "000000").await;
    assert_eq!((wrong.status, wrong.code().as_str()), (StatusCode::UNAUTHORIZED, "unauthorized"));
    let used = code(&world, &secret);
    let right = give_code(&world, &challenge, &used).await;
    assert_eq!(right.status, StatusCode::OK, "{}", right.json());
    let session = TestSession::from_response(&right);
    let listed = world.call_with_session(&session, Method::GET, "/auth/sessions", &Value::Null).await.json();
    assert_eq!(listed["sessions"][0]["method"], "password");
    // Neither the challenge nor the code works again, nor does a code of an earlier step.
    assert_eq!(give_code(&world, &challenge, &used).await.status, StatusCode::UNAUTHORIZED);
    let second = sign_in(&world).await.json()["challenge"].as_str().unwrap().to_owned();
    assert_eq!(give_code(&world, &second, &used).await.status, StatusCode::UNAUTHORIZED);
    world.services.clock.advance(Duration::from_secs(30));
    assert_eq!(give_code(&world, &second, &used).await.status, StatusCode::UNAUTHORIZED);
    let next = code(&world, &secret);
    // One step of skew: the client's clock is ahead or behind.
    world.services.clock.advance(Duration::from_secs(30));
    assert_eq!(give_code(&world, &second, &next).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_challenge_expires_and_ends_with_the_password() {
    let world = World::start().await;
    let (session, secret, _) = set_up(&world).await;
    let challenge = async || sign_in(&world).await.json()["challenge"].as_str().unwrap().to_owned();
    let late = challenge().await;
    world.services.clock.advance(Duration::from_secs(5 * 60));
    assert_eq!(give_code(&world, &late, &code(&world, &secret)).await.status, StatusCode::UNAUTHORIZED);
    let stolen = challenge().await;
    let body = json!({"password": "another password", "current_password": PASSWORD});
    assert_eq!(post(&world, &session, "/auth/password", body).await.status, StatusCode::OK);
    assert_eq!(give_code(&world, &stolen, &code(&world, &secret)).await.status, StatusCode::UNAUTHORIZED);
    world.end().await;
}

#[tokio::test]
async fn a_recovery_code_works_once_and_can_be_replaced() {
    let world = World::start().await;
    let (session, _, codes) = set_up(&world).await;
    let challenge = async || sign_in(&world).await.json()["challenge"].as_str().unwrap().to_owned();
    let typed = codes[3].to_lowercase().replace('-', " ");
    let signed_in = give_code(&world, &challenge().await, &typed).await;
    assert_eq!(signed_in.json()["session"]["recovery_codes_left"], 9);
    assert_eq!(give_code(&world, &challenge().await, &codes[3]).await.status, StatusCode::UNAUTHORIZED);
    let replaced = post(&world, &session, "/auth/totp/recovery-codes", json!({})).await.json();
    assert_eq!(replaced["recovery_codes"].as_array().unwrap().len(), 10);
    assert_eq!(give_code(&world, &challenge().await, &codes[4]).await.status, StatusCode::UNAUTHORIZED);
    let fresh = replaced["recovery_codes"][0].as_str().unwrap();
    assert_eq!(give_code(&world, &challenge().await, fresh).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn wrong_codes_are_limited() {
    let world = World::start().await;
    let (_, secret, _) = set_up(&world).await;
    world.services.clock.advance(Duration::from_secs(60));
    let challenge = sign_in(&world).await.json()["challenge"].as_str().unwrap().to_owned();
    let mut wrong = 0;
    while give_code(&world, &challenge, "000000").await.status == StatusCode::UNAUTHORIZED {
        wrong += 1;
    }
    assert!((5..=10).contains(&wrong), "{wrong}");
    let refused = give_code(&world, &challenge, &code(&world, &secret)).await;
    assert_eq!(refused.code(), "rate_limit_exceeded");
    world.end().await;
}

#[tokio::test]
async fn one_time_passwords_are_removed_with_the_password_or_a_code() {
    let world = World::start().await;
    let (session, secret, codes) = set_up(&world).await;
    let disable = async |body: Value| post(&world, &session, "/auth/totp/disable", body).await;
    assert_eq!(disable(json!({})).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(disable(json!({"password": "wrong horse battery"})).await.status, StatusCode::FORBIDDEN);
    assert_eq!(disable(json!({"code": "000000"})).await.status, StatusCode::FORBIDDEN);
    // An active secret is not replaced.
    assert_eq!(post(&world, &session, "/auth/totp", json!({})).await.code(), "conflict");
    assert_eq!(disable(json!({"password": PASSWORD})).await.json(), json!({"ok": true}));
    assert!(sign_in(&world).await.json()["session"].is_object());
    assert_eq!(
        post(&world, &session, "/auth/totp/confirm", json!({"code": code(&world, &secret)})).await.code(),
        "conflict"
    );
    assert_eq!(disable(json!({"code": codes[0]})).await.status, StatusCode::FORBIDDEN);
    world.end().await;
}

#[tokio::test]
async fn the_secret_is_stored_sealed_and_the_recovery_codes_hashed() {
    let world = World::start().await;
    let (_, secret, codes) = set_up(&world).await;
    let stored = serde_json::to_string(&stored_user(&world).await.totp).unwrap();
    assert!(!stored.contains(&secret), "{stored}");
    for code in &codes {
        assert!(!stored.contains(code.as_str()) && !stored.contains(&code.replace('-', "")), "{stored}");
    }
    world.end().await;
}

#[tokio::test]
async fn the_operator_resets_a_lost_authenticator_app() {
    let world = World::start().await;
    set_up(&world).await;
    let users = UserService::new(&world.services);
    let (token, _) = users.reset_password(&EMAIL.parse().unwrap(), Duration::from_secs(3_600)).await.unwrap();
    let path = format!("/auth/link/{}", token.text());
    let signed_in = world.call_without_key(Method::POST, &path, &Value::Null).await;
    assert_eq!(signed_in.json()["session"]["user"]["has_totp"], false);
    world.end().await;
}

/// A request of a browser.
async fn browse(world: &World, method: Method, path: &str, form: &'static str) -> TestResponse {
    let request = Request::builder().method(method).uri(path).header("host", "test");
    let request = request.header("accept", "text/html").header("content-type", "application/x-www-form-urlencoded");
    world.send(request.body(Full::from(form)).unwrap()).await
}

#[tokio::test]
async fn a_browser_gives_the_code_after_a_link_and_is_led_to_the_dashboard() {
    let world = World::start().await;
    let (_, secret, _) = set_up(&world).await;
    world.services.clock.advance(Duration::from_secs(60));
    let users = UserService::new(&world.services);
    let mut batch = Batch::progress();
    let user = stored_user(&world).await;
    let token = users.create_link(&mut batch, &user, SignInLinkKind::SignIn, Duration::from_secs(60));
    users.store.commit(batch).await.unwrap();
    let link = format!("/auth/link/{}", token.text());
    let used = browse(&world, Method::POST, &link, "").await;
    assert_eq!(used.status, StatusCode::SEE_OTHER);
    assert!(!used.headers.contains_key("set-cookie"));
    let page_path = used.headers["location"].to_str().unwrap().to_owned();
    assert!(page_path.starts_with("/auth/code/"), "{page_path}");
    let again = browse(&world, Method::POST, &link, "").await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
    assert!(String::from_utf8_lossy(&again.body).contains("The link has been used or has expired"));
    let page = browse(&world, Method::GET, &page_path, "").await;
    let text = String::from_utf8_lossy(&page.body).into_owned();
    assert!(text.contains("name=\"code\"") && !text.contains("<script"), "{text}");
    let wrong = browse(&world, Method::POST, &page_path, "code=000000").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(String::from_utf8_lossy(&wrong.body).contains("The code is wrong"));
    let form: &'static str = format!("code={}", code(&world, &secret)).leak();
    let signed_in = browse(&world, Method::POST, &page_path, form).await;
    assert_eq!(
        (signed_in.status, &signed_in.headers["location"]),
        (StatusCode::SEE_OTHER, &"/dashboard".parse().unwrap())
    );
    assert!(signed_in.headers["set-cookie"].to_str().unwrap().contains("HttpOnly"));
    let again = browse(&world, Method::POST, &page_path, form).await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
    assert!(String::from_utf8_lossy(&again.body).contains("Sign in again"));
    world.end().await;
}

#[tokio::test]
async fn an_old_session_sets_no_first_password_and_changes_no_team() {
    let world = World::start().await;
    let session = world.session(1).await;
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    let password = post(&world, &session, "/auth/password", json!({"password": PASSWORD})).await;
    assert_eq!((password.status, password.code().as_str()), (StatusCode::FORBIDDEN, "reauthentication_required"));
    let invited = post(&world, &session, "/users", json!({"email": "new@example.net", "role": "owner"})).await;
    assert_eq!((invited.status, invited.code().as_str()), (StatusCode::FORBIDDEN, "reauthentication_required"));
    world.end().await;
}

#[tokio::test]
async fn secrets_need_a_recent_proof_of_identity() {
    let world = World::start().await;
    let (session, secret, codes) = set_up(&world).await;
    let create_key = async || post(&world, &session, "/api/api-keys", json!({"name": "a", "scope": "sending"})).await;
    assert_eq!(create_key().await.status, StatusCode::OK);
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    let stale = create_key().await;
    assert_eq!((stale.status, stale.code().as_str()), (StatusCode::FORBIDDEN, "reauthentication_required"));
    for path in ["/auth/totp", "/auth/totp/recovery-codes"] {
        assert_eq!(post(&world, &session, path, json!({})).await.code(), "reauthentication_required", "{path}");
    }
    // An API key is a secret itself, and reading needs no proof.
    assert_eq!(
        world.call(Method::POST, "/api-keys", &json!({"name": "b", "scope": "sending"})).await.status,
        StatusCode::OK
    );
    let read = world.call_with_session(&session, Method::GET, "/api/api-keys", &Value::Null).await;
    assert_eq!(read.status, StatusCode::OK);
    let prove = async |body: Value| post(&world, &session, "/auth/reauthenticate", body).await;
    for (body, status) in [
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({"password": PASSWORD, "code": "000000"}), StatusCode::BAD_REQUEST),
        (json!({"password": "wrong horse battery"}), StatusCode::FORBIDDEN),
        (json!({"code": "000000"}), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(prove(body.clone()).await.status, status, "{body}");
    }
    assert_eq!(create_key().await.code(), "reauthentication_required");
    let proven = prove(json!({"password": PASSWORD})).await;
    let times = proven.json()["session"].clone();
    assert!(times["authenticated_at"].as_str() > times["created_at"].as_str(), "{times}");
    assert_eq!(create_key().await.status, StatusCode::OK);
    // A one-time password and a recovery code prove it too, once each.
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    let used = code(&world, &secret);
    assert_eq!(prove(json!({"code": used})).await.status, StatusCode::OK);
    assert_eq!(create_key().await.status, StatusCode::OK);
    assert_eq!(prove(json!({"code": used})).await.status, StatusCode::FORBIDDEN);
    let recovered = prove(json!({"code": codes[0]})).await.json();
    assert_eq!(recovered["session"]["recovery_codes_left"], 9);
    // Hours later, the request that proves it also extends the session.
    world.services.clock.advance(Duration::from_secs(2 * 3600));
    assert_eq!(prove(json!({"password": PASSWORD})).await.status, StatusCode::OK);
    assert_eq!(create_key().await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn a_user_without_a_password_signs_in_again() {
    let world = World::start().await;
    let session = world.session(1).await;
    let refused = post(&world, &session, "/auth/reauthenticate", json!({"password": PASSWORD})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("mailed link"));
    world.services.clock.advance(Duration::from_secs(15 * 60 + 1));
    assert_eq!(
        post(&world, &session, "/api/api-keys", json!({"name": "a", "scope": "sending"})).await.code(),
        "reauthentication_required"
    );
    let again = world.session(1).await;
    assert_eq!(
        post(&world, &again, "/api/api-keys", json!({"name": "a", "scope": "sending"})).await.status,
        StatusCode::OK
    );
    world.end().await;
}

#[tokio::test]
async fn the_operators_link_begins_a_session_that_ends_with_the_link() {
    let world = World::start().await;
    let (_, _, _) = set_up(&world).await;
    let users = UserService::new(&world.services);
    let mut batch = Batch::progress();
    let token =
        users.create_link(&mut batch, &stored_user(&world).await, SignInLinkKind::Operator, Duration::from_secs(900));
    users.store.commit(batch).await.unwrap();
    world.services.clock.advance(Duration::from_secs(600));
    // No code is asked for: who can open the admin socket can read the store.
    let used = browse(&world, Method::POST, &format!("/auth/link/{}", token.text()), "").await;
    assert_eq!(used.headers["location"], "/dashboard");
    let cookie = used.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let session = TestSession { cookie, csrf: None };
    let shown = own_session(&world, &session).await;
    assert_eq!(shown["user"]["role"], "owner");
    world.services.clock.advance(Duration::from_secs(301));
    let ended = world.call_with_session(&session, Method::GET, "/auth/session", &Value::Null).await;
    assert_eq!(ended.status, StatusCode::UNAUTHORIZED);
    world.end().await;
}
