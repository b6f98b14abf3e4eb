//! `/dashboard/api/affiliate-program`: setup by the owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::{BASE_URL, TestResponse, TestSession, World};

pub(crate) const PROGRAM: &str = "/dashboard/api/affiliate-program";

/// A call by the owner.
pub(crate) async fn owner(
    world: &World,
    session: &TestSession,
    method: Method,
    path: &str,
    body: Value,
) -> TestResponse {
    world.call_with_session(session, method, &format!("{PROGRAM}{path}"), &body).await
}

/// Sets up a live program for the account with this number, in webhook-only mode.
pub(crate) async fn set_up(world: &World, number: u8) -> TestSession {
    let session = world.session(number).await;
    let enable = json!({"website_url": "https://shop.example", "currency": "usd"});
    let campaign = json!({"name": "Partners", "commission_bps": 2000});
    for (method, path, body) in [
        (Method::POST, "", enable),
        (Method::PUT, "/processor", json!({"webhook_secrets": ["whsec_one"]})),
        (Method::PUT, "/campaigns/default", campaign),
        (Method::POST, "/go-live", json!({})),
    ] {
        let response = owner(world, &session, method, path, body).await;
        assert!(response.status.is_success(), "{path}: {response:?}");
    }
    session
}

#[tokio::test]
async fn a_program_is_enabled_filled_and_goes_live() {
    let world = World::start().await;
    let session = world.session(1).await;
    let call = async |method, path, body| owner(&world, &session, method, path, body).await;
    assert_eq!(call(Method::GET, "", json!({})).await.code(), "not_found");
    assert_eq!(call(Method::PATCH, "", json!({"nonsense": 1})).await.code(), "not_found");
    let invalid = call(Method::POST, "", json!({"website_url": "ftp://x", "currency": "dollar"})).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    let fields = invalid.json()["error"]["details"]["fields"].clone();
    assert!(fields["website_url"].is_string() && fields["currency"].is_string(), "{fields}");
    let unknown = call(Method::POST, "", json!({"website_url": "https://shop.example", "currency": "zzz"})).await;
    let reason = unknown.json()["error"]["details"]["fields"]["currency"].clone();
    assert_eq!(reason, "`zzz` is not a currency in use (ISO 4217)");
    let enable = json!({"website_url": "https://shop.example", "currency": "EUR", "mode": "test"});
    let made = call(Method::POST, "", enable.clone()).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let program = made.json()["program"].clone();
    assert_eq!((&program["status"], &program["currency"]), (&json!("setup"), &json!("eur")));
    assert_eq!((&program["mode"], &program["metadata_key"]), (&json!("test"), &json!("stx_referral")));
    assert_eq!((&program["min_payout"], &program["velocity_per_hour"]), (&json!({}), &json!(50)));
    assert!(program["publishable_key"].as_str().unwrap().starts_with("pk_"));
    let again = call(Method::POST, "", enable).await;
    assert_eq!((again.status, again.code()), (StatusCode::CONFLICT, "conflict".to_owned()));
    let view = call(Method::GET, "", json!({})).await.json();
    assert_eq!(view["missing"], json!(["processor", "campaign"]));
    assert_eq!(view["processor"], Value::Null);
    let early = call(Method::POST, "/go-live", json!({})).await;
    assert_eq!(early.status, StatusCode::CONFLICT);
    assert_eq!(early.json()["error"]["details"]["missing"], json!(["processor", "campaign"]));
    assert_eq!(call(Method::POST, "/pause", json!({})).await.status, StatusCode::CONFLICT);
    assert_eq!(call(Method::POST, "/processor/test", json!({})).await.status, StatusCode::CONFLICT);

    let campaign = call(Method::PUT, "/campaigns/default", json!({"commission_bps": 3000})).await;
    assert_eq!(campaign.status, StatusCode::OK, "{campaign:?}");
    assert_eq!(campaign.json()["campaign"]["is_default"], json!(true));
    let id = campaign.json()["campaign"]["id"].clone();
    let changed = call(Method::PUT, "/campaigns/default", json!({"name": "All", "hold_days": 0})).await;
    let campaign = changed.json()["campaign"].clone();
    assert_eq!((&campaign["id"], &campaign["commission_bps"]), (&id, &json!(3000)));
    assert_eq!((&campaign["name"], &campaign["hold_days"]), (&json!("All"), &json!(0)));

    let secrets = json!({"webhook_secrets": ["whsec_one", "whsec_two"], "account_id": "acct_1"});
    let connected = call(Method::PUT, "/processor", secrets).await;
    assert_eq!(connected.status, StatusCode::OK, "{connected:?}");
    let processor = connected.json()["processor"].clone();
    let url = format!("{BASE_URL}/processor/stripe/{}", program["id"].as_str().unwrap());
    assert_eq!((&processor["webhook_url"], &processor["kind"]), (&json!(url), &json!("stripe")));
    assert_eq!((&processor["last_event_at"], &processor["failed_events"]), (&Value::Null, &json!(0)));
    assert!(!connected.json().to_string().contains("whsec_"), "secrets are never returned");
    let tested = call(Method::POST, "/processor/test", json!({})).await.json();
    assert_eq!((&tested["ok"], &tested["account_id"]), (&json!(true), &json!("acct_1")));

    for path in ["/go-live", "/go-live", "/pause", "/pause", "/go-live"] {
        let moved = call(Method::POST, path, json!({})).await;
        let status = if path == "/pause" { "paused" } else { "live" };
        assert_eq!((moved.status, &moved.json()["program"]["status"]), (StatusCode::OK, &json!(status)));
    }
    assert_eq!(call(Method::GET, "", json!({})).await.json()["missing"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_webhook_secret_that_could_be_guessed_is_refused() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let call = async |method, path, body| owner(&world, &session, method, path, body).await;
    let (good, spaces) = ("whsec_0123456789abcdef", "        ");
    for secrets in [
        json!([]),
        json!([good, good, good]),
        json!(good),
        json!([1]),
        json!(["whsec_ 0123456789"]),
        json!([""]),
        json!([spaces]),
        json!(["whsec_"]),
        json!([good, "whsec_a"]),
        Value::Null,
    ] {
        let refused = call(Method::PUT, "/processor", json!({"webhook_secrets": secrets})).await;
        assert!(refused.json()["error"]["details"]["fields"]["webhook_secrets"].is_string(), "{secrets}");
    }
    world.end().await;
}

#[tokio::test]
async fn settings_are_updated_atomically() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let set = async |body| owner(&world, &session, Method::PATCH, "", body).await;
    let all = json!({
        "website_url": "https://www.shop.example/start", "attribution": "last_click",
        "new_customers_only": false, "metadata_key": "ref", "exclude_key": "no", "min_payout": {"USD": 5000, "eur": 1},
        "allowed_methods": ["wise", "paypal"], "payout_after_refund": "offset",
        "count_invoiceless_payments": true, "share_customer_email": true, "suspended_accrue": false,
        "allowed_origins": ["https://shop.example/", "http://localhost:3000"], "portal_domain": "partners.example.com",
        "terms_url": "https://shop.example/terms", "mail_from": "partners@example.com", "velocity_per_hour": 5,
        "max_bounties_per_day": 7,
    });
    let done = set(all).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    let program = done.json()["program"].clone();
    assert_eq!(program["min_payout"], json!({"usd": 5000, "eur": 1}));
    assert_eq!(program["allowed_origins"], json!(["https://shop.example", "http://localhost:3000"]));
    assert_eq!(program["mail_from"], json!("partners@example.com"));
    let (rev, etag) = (program["rev"].as_u64().unwrap(), done.headers["etag"].to_str().unwrap().to_owned());
    assert_eq!(etag, format!("\"{rev}\""));
    for (invalid, field) in [
        (json!({"attribution": "first_click", "colour": "blue"}), "colour"),
        (json!({"attribution": "first_click", "status": "setup"}), "status"),
        (json!({"attribution": "first_click", "velocity_per_hour": 0}), "velocity_per_hour"),
        (json!({"attribution": "first_click", "min_payout": {"dollars": 1}}), "min_payout"),
        (json!({"attribution": "first_click", "allowed_methods": []}), "allowed_methods"),
        (json!({"attribution": "first_click", "allowed_origins": ["https://a.example/path"]}), "allowed_origins"),
        (json!({"attribution": "first_click", "mail_from": "a@elsewhere.example"}), "mail_from"),
        (json!({"attribution": "first_click", "metadata_key": "a b"}), "metadata_key"),
        (json!({"attribution": "middle_click"}), "attribution"),
    ] {
        let refused = set(invalid.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{invalid}: {refused:?}");
        let details = refused.json()["error"]["details"].clone();
        assert!(details["fields"][field].is_string(), "{invalid}: {refused:?}");
        assert!(details["warnings"].is_null(), "no field is ignored: {refused:?}");
    }
    for settled in [json!({"currency": "eur"}), json!({"mode": "test"})] {
        assert_eq!(set(settled).await.status, StatusCode::CONFLICT);
    }
    let view = owner(&world, &session, Method::GET, "", json!({})).await.json();
    assert_eq!((&view["program"]["attribution"], &view["program"]["rev"]), (&json!("last_click"), &json!(rev)));
    let cleared = set(json!({"mail_from": null, "terms_url": null, "portal_domain": null})).await;
    assert_eq!(cleared.json()["program"]["mail_from"], Value::Null);
    world.end().await;
}

#[tokio::test]
async fn only_the_owner_sets_up_a_program() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    world.account(2, ApiKeyScope::Full).await;
    let other = world.session(2).await;
    for (method, path) in [
        (Method::POST, ""),
        (Method::GET, ""),
        (Method::PATCH, ""),
        (Method::PUT, "/processor"),
        (Method::PUT, "/campaigns/default"),
        (Method::POST, "/processor/test"),
        (Method::POST, "/go-live"),
        (Method::POST, "/pause"),
        (Method::GET, "/partners/aff_x"),
        (Method::GET, "/partners/aff_x/postbacks"),
        (Method::POST, "/partners/aff_x/reactivate"),
        (Method::PUT, "/partners/aff_x/payout-method"),
    ] {
        let path = format!("{PROGRAM}{path}");
        let nobody = world.call_without_key(method.clone(), &path, &json!({})).await;
        assert_eq!((nobody.status, nobody.code()), (StatusCode::UNAUTHORIZED, "unauthorized".to_owned()));
        let key = world.call(method.clone(), &path, &json!({})).await;
        assert_eq!((key.status, key.code()), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
        if method != Method::GET {
            let forged = world.call_with_session(&session.forged(), method.clone(), &path, &json!({})).await;
            assert_eq!((forged.status, forged.code()), (StatusCode::FORBIDDEN, "forbidden".to_owned()));
        }
        let elsewhere = world.call_with_session(&other, method.clone(), &path, &json!({})).await;
        let status =
            if path == PROGRAM && method == Method::POST { StatusCode::BAD_REQUEST } else { StatusCode::NOT_FOUND };
        assert_eq!(elsewhere.status, status, "{method} {path}");
    }
    world.end().await;
}

/// A processor that answers every request with this status and body.
async fn processor(status: Arc<AtomicU16>, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
            assert!(request.starts_with("get /v1/account http/1.1"), "{request}");
            assert!(request.contains("authorization: bearer rk_test_1"), "{request}");
            let status = status.load(Ordering::Relaxed);
            let response = format!(
                "HTTP/1.1 {status} X\r\nlocation: /elsewhere\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn processor_key_is_tested_before_it_is_stored() {
    let world = World::start().await;
    let session = world.session(1).await;
    let call = async |method, path, body| owner(&world, &session, method, path, body).await;
    call(Method::POST, "", json!({"website_url": "https://shop.example", "currency": "usd"})).await;
    let status = Arc::new(AtomicU16::new(200));
    let padded = Box::leak(json!({"id": "acct_9", "settings": "x".repeat(20_000)}).to_string().into_boxed_str());
    let base = processor(Arc::clone(&status), padded).await;
    let with = |base: &str| json!({"webhook_secrets": ["whsec_one"], "api_base": base, "restricted_key": "rk_test_1"});
    let connected = call(Method::PUT, "/processor", with(&base)).await;
    assert_eq!(connected.status, StatusCode::OK, "{connected:?}");
    let processor = connected.json()["processor"].clone();
    assert_eq!((&processor["account_id"], &processor["livemode"]), (&json!("acct_9"), &json!(false)));
    assert!(!connected.json().to_string().contains("rk_test"));
    let tested = call(Method::POST, "/processor/test", json!({})).await;
    assert_eq!(tested.json()["account_id"], json!("acct_9"), "{tested:?}");
    // A redirect is not followed and counts as a failure.
    for refused in [401, 302, 500] {
        status.store(refused, Ordering::Relaxed);
        for response in
            [call(Method::PUT, "/processor", with(&base)).await, call(Method::POST, "/processor/test", json!({})).await]
        {
            assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY, "{response:?}");
            assert_eq!(response.code(), "upstream_error");
        }
    }
    let nobody = call(Method::PUT, "/processor", with("http://127.0.0.1:9")).await;
    assert_eq!(nobody.code(), "upstream_error", "{nobody:?}");
    let invalid = call(Method::PUT, "/processor", with("https://u:p@api.example")).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    // A failed key does not replace the working one.
    let view = call(Method::GET, "", json!({})).await.json();
    assert_eq!(view["processor"]["account_id"], json!("acct_9"));
    world.end().await;
}

#[tokio::test]
async fn operator_acts_for_the_owner() {
    use api::operator::{OwnerRequest, call_as_owner};
    let world = World::start().await;
    let owner = async |email: &str| store::access::operator_tenant_as_owner(&world.services.store, email).await;
    let call_owner = async |method, target: &str, body: Value| {
        let request = OwnerRequest { method, target: format!("{PROGRAM}{target}"), body: body.to_string().into() };
        let (status, body) = call_as_owner(&world.server, owner("owner1@example.com").await.unwrap(), request).await;
        (status.as_u16(), serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, refused) = call_owner(Method::GET, "", json!({})).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_found")));
    let enable = json!({"website_url": "https://shop.example", "currency": "usd"});
    assert_eq!(call_owner(Method::POST, "", enable.clone()).await.0, 201);
    assert_eq!(call_owner(Method::POST, "", enable).await.0, 409);
    assert_eq!(call_owner(Method::PATCH, "", json!({"x": 1})).await.0, 400);
    // Only owner operations are reachable, no other path of the API.
    assert_eq!(call_owner(Method::GET, "/../../../affiliates", json!({})).await.0, 404);
    assert!(owner("nobody@example.com").await.is_err());
    world.end().await;
}

#[tokio::test]
async fn conflicting_settings_are_refused() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let own = BASE_URL.split("://").nth(1).unwrap().split([':', '/']).next().unwrap();
    for (set, field) in [
        (json!({"exclude_key": "stx_referral"}), "exclude_key"),
        (json!({"metadata_key": "k", "exclude_key": "k"}), "exclude_key"),
        (json!({"portal_domain": own}), "portal_domain"),
    ] {
        let refused = owner(&world, &session, Method::PATCH, "", set.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{set}");
        assert!(refused.json()["error"]["details"]["fields"][field].is_string(), "{refused:?}");
    }
    world.end().await;
}
