//! API keys over HTTP: scopes, allowed networks, expiry, and what is returned about them.

use std::time::Duration;

use crate::world::World;
use http::{Method, StatusCode};
use model::credential::ApiKeyScope;
use model::id::DomainId;
use serde_json::{Value, json};
use store::engine::Batch;

async fn create(world: &World, body: &Value) -> (Value, String) {
    let response = world.call(Method::POST, "/api-keys", body).await;
    assert_eq!(response.status, StatusCode::OK, "{:?}", response.json());
    let json = response.json();
    (json["api_key"].clone(), json["secret"].as_str().unwrap().to_owned())
}

fn path(key: &Value) -> String {
    format!("/api-keys/{}", key["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_key_is_shown_once_and_works_by_both_prefixes() {
    let world = World::start().await;
    let (key, secret) = create(&world, &json!({"name": " CI ", "scope": "sending"})).await;
    assert!(key["id"].as_str().unwrap().starts_with("key_"));
    assert_eq!((&key["name"], &key["scope"], &key["enabled"]), (&json!("CI"), &json!("sending"), &json!(true)));
    for null in ["domain_id", "last_used_at", "last_used_ip", "expires_at"] {
        assert_eq!(key[null], Value::Null, "{null}");
    }
    assert_eq!(key["allowed_ips"], json!([]));
    assert_eq!(secret.len(), 4 + 32 + 6);
    assert_eq!(key["hint"], format!("rnl_...{}", &secret[secret.len() - 4..]));
    for prefix in ["rnl_", "stx_"] {
        let secret = secret.replacen("rnl_", prefix, 1);
        assert_eq!(world.get_as(&secret, "/emails").await.status, StatusCode::OK, "{prefix}");
    }
    let view = world.get(&path(&key)).await;
    assert!(!String::from_utf8_lossy(&view.body).contains(&secret[4..]));
    let used = &view.json()["api_key"];
    assert!(used["last_used_at"].is_string());
    assert_eq!(used["last_used_ip"], "127.0.0.1");
    // A sending key can neither create a full key nor read keys.
    let body = json!({"name": "mine", "scope": "full"});
    let refused = world.call_as(&secret, Method::POST, "/api-keys", &body).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "forbidden"));
    assert_eq!(world.get_as(&secret, "/api-keys").await.code(), "forbidden");
    world.end().await;
}

#[tokio::test]
async fn errors_name_the_field() {
    let world = World::start().await;
    for (body, field) in [
        (json!({"scope": "full"}), "name"),
        (json!({"name": "", "scope": "full"}), "name"),
        (json!({"name": "a\nb", "scope": "full"}), "name"),
        (json!({"name": "n"}), "scope"),
        (json!({"name": "n", "scope": "all"}), "scope"),
        (json!({"name": "n", "scope": "full", "allowed_ips": "192.0.2.1"}), "allowed_ips"),
        (json!({"name": "n", "scope": "full", "allowed_ips": ["192.0.2.1/24"]}), "allowed_ips"),
        (json!({"name": "n", "scope": "full", "allowed_ips": vec!["192.0.2.1"; 51]}), "allowed_ips"),
        (json!({"name": "n", "scope": "full", "expires_at": "tomorrow"}), "expires_at"),
        (json!({"name": "n", "scope": "full", "expires_at": "2020-01-01T00:00:00Z"}), "expires_at"),
        (json!({"name": "n", "scope": "full", "domain_id": "example.com"}), "domain_id"),
    ] {
        let response = world.call(Method::POST, "/api-keys", &body).await;
        assert_eq!(response.code(), "validation_error", "{body}");
        assert!(response.json()["error"]["details"]["fields"][field].is_string(), "{body}: {}", response.json());
    }
    let body = json!({"name": "n", "scope": "full", "domain_id": "dom_01ARZ3NDEKTSV4RRFFQ69G5FAV"});
    assert_eq!(world.call(Method::POST, "/api-keys", &body).await.code(), "not_found");
    world.end().await;
}

#[tokio::test]
async fn key_networks_and_expiry_are_enforced() {
    let world = World::start().await;
    let expires_at = (world.services.clock.now() + Duration::from_secs(3600)).to_string();
    let body =
        json!({"name": "n", "scope": "full", "allowed_ips": ["127.0.0.0/8", "2001:db8::1"], "expires_at": expires_at});
    let (key, secret) = create(&world, &body).await;
    assert_eq!(key["allowed_ips"], json!(["127.0.0.0/8", "2001:db8::1"]));
    assert_eq!(world.get_as(&secret, "/emails").await.status, StatusCode::OK);
    let change = |body| world_call(&world, Method::PATCH, path(&key), body);
    let changed = change(json!({"allowed_ips": ["192.0.2.0/24"], "name": "other"})).await;
    assert_eq!(changed["api_key"]["name"], "other");
    let refused = world.get_as(&secret, "/emails").await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "ip_not_allowed"));
    assert_eq!(change(json!({"allowed_ips": null})).await["api_key"]["allowed_ips"], json!([]));
    assert_eq!(world.get_as(&secret, "/emails").await.status, StatusCode::OK);
    let reason = async || world.get_as(&secret, "/emails").await.json()["error"]["details"]["reason"].clone();
    change(json!({"enabled": false})).await;
    assert_eq!(world.get_as(&secret, "/emails").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(reason().await, "revoked");
    change(json!({"enabled": true})).await;
    assert_eq!(world.get_as(&secret, "/emails").await.status, StatusCode::OK);
    world.services.clock.advance(Duration::from_secs(3600));
    assert_eq!(world.get_as(&secret, "/emails").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(reason().await, "expired");
    world.end().await;
}

async fn world_call(world: &World, method: Method, path: String, body: Value) -> Value {
    let response = world.call(method, &path, &body).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.json());
    response.json()
}

#[tokio::test]
async fn rotation_has_a_grace() {
    let world = World::start().await;
    let (key, first) = create(&world, &json!({"name": "n", "scope": "full"})).await;
    let rotate = |body| world_call(&world, Method::POST, format!("{}/rotate", path(&key)), body);
    let second = rotate(json!({"grace_hours": 2})).await;
    assert_eq!(second["api_key"]["id"], key["id"]);
    assert_ne!(second["api_key"]["hint"], key["hint"]);
    let second = second["secret"].as_str().unwrap().to_owned();
    let status = async |secret: &str| world.get_as(secret, "/emails").await.status.as_u16();
    assert_eq!((status(&first).await, status(&second).await), (200, 200));
    world.services.clock.advance(Duration::from_secs(2 * 3600));
    assert_eq!((status(&first).await, status(&second).await), (401, 200));
    // A fraction of zero is none, as in JSON Schema.
    let third = rotate(json!({"grace_hours": 0.0})).await["secret"].as_str().unwrap().to_owned();
    assert_eq!((status(&second).await, status(&third).await), (401, 200));
    for invalid in [json!({"grace_hours": -1}), json!({"grace_hours": 1.5}), json!({"grace_hours": 100_000})] {
        let response = world.call(Method::POST, &format!("{}/rotate", path(&key)), &invalid).await;
        assert_eq!(response.code(), "validation_error", "{invalid}");
    }
    let request = world.request(Method::POST, &format!("{}/rotate", path(&key)));
    let bare = world.send(request.body(http_body_util::Full::default()).unwrap()).await;
    assert_eq!((bare.status, status(&third).await), (StatusCode::OK, 200));
    world.end().await;
}

#[tokio::test]
async fn domain_bound_key_sees_only_its_domain() {
    let world = World::start().await;
    let account = store::account::find(&world.services.store, "owner1@example.com").await.unwrap().unwrap();
    let domain = world.domain(account.id).await.id;
    let body = json!({"name": "bound", "scope": "full", "domain_id": domain});
    let (key, secret) = create(&world, &body).await;
    assert_eq!(key["domain_id"], json!(domain));
    let tenant = world.accounts.credentials.authenticate_api_key(&secret, None).await.unwrap();
    assert_eq!(tenant.bound_to(), Some(domain));
    let mail = |from: &str| json!({"from": from, "to": "b@example.net", "subject": "s", "text": "t"});
    let sent = world.call_as(&secret, Method::POST, "/emails", &mail("a@example.com")).await;
    assert_eq!(sent.status, StatusCode::OK, "{}", sent.json());
    let mut other = world.domain(account.id).await;
    (other.id, other.name) = (DomainId::from_bytes([9; 16]), "example.org".parse().unwrap());
    let mut batch = Batch::progress();
    let count = store::domain::count(&world.services.store, account.id).await.unwrap();
    store::domain::create(&mut batch, &other, &count);
    world.services.store.commit(batch).await.unwrap();
    let mail = mail("a@example.org");
    assert_eq!(world.call(Method::POST, "/emails", &mail).await.status, StatusCode::OK);
    let refused = world.call_as(&secret, Method::POST, "/emails", &mail).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "forbidden"));
    // Email of other domains is not visible to the key, and it cannot create keys.
    let listed = world.get_as(&secret, "/emails").await.json()["emails"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    for path in ["/api-keys", "/smtp-credentials"] {
        assert_eq!(world.call_as(&secret, Method::POST, path, &body).await.code(), "forbidden");
    }
    world.end().await;
}

#[tokio::test]
async fn lists_are_paged_and_isolated() {
    let world = World::start().await;
    for n in 0..4 {
        create(&world, &json!({"name": n.to_string(), "scope": "sending"})).await;
    }
    let (mut names, mut next) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/api-keys?limit=2{next}")).await.json();
        names.extend(page["api_keys"].as_array().unwrap().iter().map(|key| key["name"].clone()));
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["3", "2", "1", "0", "test"]);
    let other = world.account(2, ApiKeyScope::Full).await;
    let own = world.get("/api-keys").await.json()["api_keys"][0].clone();
    for (method, path) in [
        (Method::GET, path(&own)),
        (Method::PATCH, path(&own)),
        (Method::DELETE, path(&own)),
        (Method::POST, format!("{}/rotate", path(&own))),
        (Method::GET, "/api-keys/key_".to_owned()),
    ] {
        let response = world.call_as(&other, method, &path, &json!({})).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::NOT_FOUND, "not_found"), "{path}");
    }
    assert_eq!(world.get_as(&other, "/api-keys").await.json()["api_keys"].as_array().unwrap().len(), 1);
    world.end().await;
}

#[tokio::test]
async fn last_full_key_can_be_deleted() {
    let world = World::start().await;
    let key = world.get("/api-keys").await.json()["api_keys"][0].clone();
    let response = world.call(Method::DELETE, &path(&key), &json!({})).await;
    assert_eq!((response.status, response.json()), (StatusCode::OK, json!({"ok": true})));
    assert_eq!(world.get("/api-keys").await.status, StatusCode::UNAUTHORIZED);
    world.end().await;
}
