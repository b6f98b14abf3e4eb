//! `Idempotency-Key` and `If-Match` on affiliate operations.

use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::affiliate_payouts::{draft_run, processing};
use crate::affiliate_program::{PROGRAM, owner, set_up};
use crate::affiliates::{all, partner, with_headers};
use crate::world::{TestResponse, TestSession, World};

/// A call by the owner with an additional header field.
async fn with_header(
    world: &World,
    session: &TestSession,
    method: Method,
    path: &str,
    body: Value,
    name: &str,
    value: &str,
) -> TestResponse {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("{PROGRAM}{path}"))
        .header("host", "test")
        .header("cookie", &session.cookie)
        .header("x-csrf-token", session.csrf.as_deref().unwrap_or_default())
        .header("content-type", "application/json")
        .header(name, value);
    world.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

fn is_stale(response: &TestResponse) -> bool {
    (response.status, response.code().as_str()) == (StatusCode::CONFLICT, "conflict")
}

#[tokio::test]
async fn partner_changes_honour_if_match() {
    let world = World::start().await;
    let session = set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org", "token": "ada"})).await;
    let path = format!("/affiliates/{}", ada["id"].as_str().unwrap());
    let link = json!({"token": "ada-podcast"});
    let link = world.call(Method::POST, &format!("{path}/links"), &link).await.json()["link"]["id"].clone();
    let link = format!("{path}/links/{}", link.as_str().unwrap());
    let if_match = world.get(&path).await.headers["etag"].to_str().unwrap().to_owned();
    let changed = world.call(Method::PATCH, &path, &json!({"notes": "met in June"})).await;
    let now = changed.headers["etag"].to_str().unwrap().to_owned();
    let delete = async |path: &str, version: &str| {
        with_headers(&world, Method::DELETE, path, &[("if-match", version)], &json!({})).await
    };
    assert!(is_stale(&delete(&path, &if_match).await) && is_stale(&delete(&link, &if_match).await));
    let pay = json!({"method": "wise", "destination": "ada@example.org"});
    let payout = format!("/partners/{}/payout-method", ada["id"].as_str().unwrap());
    let set = async |version: &str| {
        with_header(&world, &session, Method::PUT, &payout, pay.clone(), "if-match", version).await
    };
    assert!(is_stale(&set(&if_match).await));
    let inside = owner(&world, &session, Method::GET, payout.trim_end_matches("/payout-method"), json!({})).await;
    assert_eq!(inside.json()["payout_destination"], Value::Null);
    assert_eq!(delete(&link, &now).await.status, StatusCode::OK);
    // One matching tag in a list is enough.
    let set = set(&format!("{if_match}, {now}")).await;
    assert_eq!(set.status, StatusCode::OK, "{set:?}");
    assert!(is_stale(&delete(&path, &format!("{if_match}, {now}")).await));
    assert_eq!(delete(&path, "\"nine\"").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(delete(&path, set.headers["etag"].to_str().unwrap()).await.status, StatusCode::OK);
    // The processor settings share the program's version.
    let program = owner(&world, &session, Method::GET, "", json!({})).await;
    let other = json!({"webhook_secrets": ["whsec_two"]});
    let old = format!("\"{}\"", program.json()["program"]["rev"].as_u64().unwrap() - 1);
    let connect = async |version: &str| {
        with_header(&world, &session, Method::PUT, "/processor", other.clone(), "if-match", version).await
    };
    assert!(is_stale(&connect(&old).await));
    let rev = format!("\"{}\"", program.json()["program"]["rev"]);
    assert_eq!(connect(&rev).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn payout_changes_honour_if_match() {
    let world = World::start().await;
    let id = processing(&world).await;
    let session = world.session(1).await;
    let path = format!("/affiliate-payouts/{id}");
    let etag = world.get(&path).await.headers["etag"].to_str().unwrap().to_owned();
    let mark = async |version: &str| {
        let paid = json!({"reference": "PP-1"});
        let path = format!("{path}/mark-paid");
        with_headers(&world, Method::POST, &path, &[("if-match", version)], &paid).await
    };
    let reason = json!({"reason": "The account is closed"});
    let fail = format!("/payouts/{id}/fail");
    let failed = with_header(&world, &session, Method::POST, &fail, reason, "if-match", "\"1\"").await;
    assert!(is_stale(&mark("\"1\"").await) && is_stale(&failed), "{failed:?}");
    assert_eq!(world.get(&path).await.json()["payout"]["status"], "processing");
    assert_eq!(mark(&etag).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn run_and_program_changes_honour_if_match() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let cancel = format!("/payout-runs/{}/cancel", draft["run"]["id"].as_str().unwrap());
    for path in [cancel.as_str(), "/pause", "/go-live"] {
        let stale = with_header(&world, &session, Method::POST, path, json!({}), "if-match", "\"999\"").await;
        assert!(is_stale(&stale), "{path} {stale:?}");
    }
    let rev = format!("\"{}\"", draft["run"]["rev"]);
    let cancelled = with_header(&world, &session, Method::POST, &cancel, json!({}), "if-match", &rev).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{cancelled:?}");
    world.end().await;
}

#[tokio::test]
async fn login_link_is_idempotent() {
    let world = World::start().await;
    set_up(&world, 1).await;
    let ada = partner(&world, json!({"email": "ada@example.org"})).await;
    let bob = partner(&world, json!({"email": "bob@example.org"})).await;
    let make = async |of: &Value, body: Value| {
        let path = format!("/affiliates/{}/login-link", of["id"].as_str().unwrap());
        with_headers(&world, Method::POST, &path, &[("idempotency-key", "k")], &body).await
    };
    let made = make(&ada, json!({})).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let again = make(&ada, json!({})).await;
    assert_eq!((again.json(), &again.headers["idempotent-replayed"]), (made.json(), &"true".parse().unwrap()));
    assert_eq!(make(&bob, json!({})).await.code(), "idempotency_conflict");
    // Another link replaces this one, so the idempotent response no longer contains it.
    let path = format!("/affiliates/{}/login-link", ada["id"].as_str().unwrap());
    let made = world.call(Method::POST, &path, &json!({})).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    assert_eq!(make(&ada, json!({})).await.code(), "conflict");
    assert_eq!(make(&ada, json!({"for": "another"})).await.code(), "idempotency_conflict");
    // The link's secret must not be stored in plain text.
    let secret = made.json()["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let everything = store::engine::Key::new()..vec![0xff; 40].into();
    let rows = world.services.store.scan(everything, store::engine::ScanOrder::Ascending, 100_000).await.unwrap();
    assert!(rows.len() > 10 && rows.iter().all(|(_, row)| !String::from_utf8_lossy(row).contains(&secret)));
    world.end().await;
}

#[tokio::test]
async fn owner_operations_are_idempotent() {
    let world = World::start().await;
    let (session, drafted) = draft_run(&world).await;
    let id = drafted["run"]["id"].as_str().unwrap();
    let post = async |path: &str, body: Value| {
        with_header(&world, &session, Method::POST, path, body, "idempotency-key", "k").await
    };
    // A refused request leaves its key free.
    assert_eq!(post("/payout-runs", json!({})).await.code(), "conflict");
    let cancelled = post(&format!("/payout-runs/{id}/cancel"), json!({})).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{cancelled:?}");
    let again = post(&format!("/payout-runs/{id}/cancel"), json!({})).await;
    assert_eq!((again.json(), &again.headers["etag"]), (cancelled.json(), &cancelled.headers["etag"]));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(post("/payout-runs", json!({})).await.code(), "idempotency_conflict");
    let draft = async |body: Value| {
        with_header(&world, &session, Method::POST, "/payout-runs", body, "idempotency-key", "draft").await
    };
    let made = draft(json!({})).await;
    let again = draft(json!({})).await;
    assert_eq!((made.status, again.status), (StatusCode::CREATED, StatusCode::CREATED), "{again:?}");
    assert_eq!(again.json(), made.json());
    assert_eq!(draft(json!({"cutoff": 1})).await.code(), "idempotency_conflict");
    let payouts = all(&world, "/affiliate-payouts").await;
    assert_eq!(payouts.len(), 2, "{payouts:?}");
    world.end().await;
}

/// The stored idempotency records of owners.
async fn stored_records(world: &World) -> Vec<Value> {
    let space = store::key::prefix_range(&[store::key::Space::Idempotency as u8]);
    let rows = world.services.store.scan(space, store::engine::ScanOrder::Ascending, 1_000).await.unwrap();
    rows.iter().map(|(_, row)| serde_json::from_slice(row).unwrap()).collect()
}

#[tokio::test]
async fn owner_operations_store_their_response() {
    let world = World::start().await;
    let (session, draft) = draft_run(&world).await;
    let id = draft["run"]["id"].as_str().unwrap().to_owned();
    let payout = draft["payouts"][0]["id"].as_str().unwrap().to_owned();
    let partner = draft["payouts"][1]["affiliate_id"].as_str().unwrap().to_owned();
    let suspended = world.call(Method::POST, &format!("/affiliates/{partner}/suspend"), &json!({})).await;
    assert_eq!(suspended.status, StatusCode::OK, "{suspended:?}");
    let run =
        owner(&world, &session, Method::GET, &format!("/payout-runs/{id}"), json!({})).await.json()["run"].clone();
    let acts = [
        (format!("/payout-runs/{id}/approve"), json!({"rev": run["rev"], "totals": run["totals"]})),
        (format!("/payouts/{payout}/fail"), json!({"reason": "The account is closed"})),
        (format!("/partners/{partner}/reactivate"), json!({})),
    ];
    for (number, (path, body)) in acts.iter().enumerate() {
        let key = format!("key-{number}");
        let post =
            async || with_header(&world, &session, Method::POST, path, body.clone(), "idempotency-key", &key).await;
        let first = post().await;
        assert_eq!(first.status, StatusCode::OK, "{path}: {first:?}");
        let again = post().await;
        assert_eq!((again.json(), &again.headers["etag"]), (first.json(), &first.headers["etag"]), "{path}");
        assert_eq!(again.headers["idempotent-replayed"], "true");
        // The same operation with another key is refused, and stores no record.
        let other = with_header(&world, &session, Method::POST, path, body.clone(), "idempotency-key", "other");
        assert!(other.await.status.is_client_error(), "{path}");
        assert_eq!(stored_records(&world).await.len(), number + 1, "{path}");
    }
    // A key is bound to one operation.
    let other = with_header(&world, &session, Method::POST, "/go-live", json!({}), "idempotency-key", "key-2");
    assert_eq!(other.await.code(), "idempotency_conflict");
    world.end().await;
}

#[tokio::test]
async fn interrupted_draft_is_resumed_by_its_key() {
    let world = World::start().await;
    let (session, first) = draft_run(&world).await;
    let cancel = format!("/payout-runs/{}/cancel", first["run"]["id"].as_str().unwrap());
    assert_eq!(owner(&world, &session, Method::POST, &cancel, json!({})).await.status, StatusCode::OK);
    let draft =
        async || with_header(&world, &session, Method::POST, "/payout-runs", json!({}), "idempotency-key", "k").await;
    let runs = async || {
        let runs = owner(&world, &session, Method::GET, "/payout-runs", json!({})).await.json();
        runs["data"].as_array().unwrap().clone()
    };
    let made = draft().await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    // Simulates a crash before the response was stored: the record names only the run.
    let id = made.json()["run"]["id"].clone();
    truncate_record(&world, id.as_str().unwrap()).await;
    let cancel = format!("/payout-runs/{}/cancel", id.as_str().unwrap());
    assert_eq!(owner(&world, &session, Method::POST, &cancel, json!({})).await.status, StatusCode::OK);
    let again = draft().await;
    assert_eq!((again.status, &again.json()["run"]["id"]), (StatusCode::CREATED, &id), "{again:?}");
    assert_eq!((&again.json()["run"]["status"], runs().await.len()), (&json!("cancelled"), 2));
    // From now on that response is replayed.
    let third = draft().await;
    assert_eq!((third.json(), &third.headers["idempotent-replayed"]), (again.json(), &"true".parse().unwrap()));
    world.end().await;
}

/// Reduces the idempotency record of a draft to what its first commit stored.
async fn truncate_record(world: &World, run: &str) {
    let space = store::key::prefix_range(&[store::key::Space::Idempotency as u8]);
    let rows = world.services.store.scan(space, store::engine::ScanOrder::Ascending, 10).await.unwrap();
    let (at, row) = rows.last().unwrap().clone();
    let mut used: Value = serde_json::from_slice(&row).unwrap();
    used[1]["outcome"] = json!({"partly": {"answer": run, "open": [0]}});
    let mut batch = store::engine::Batch::progress();
    batch.put(at, used.to_string().into_bytes());
    world.services.store.commit(batch).await.unwrap();
}
