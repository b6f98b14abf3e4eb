//! `Idempotency-Key`: sent once and answered the same, on one node and on two.

use std::time::Duration;

use crate::world::{TestResponse, World};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

fn email_body() -> Value {
    json!({"from": "Ada <ada@example.com>", "to": ["b@example.net"], "subject": "s", "text": "t",
           "attachments": [{"name": "a.txt", "data": "aGk="}]})
}

async fn post(world: &World, key: &str, body: impl ToString) -> TestResponse {
    let request = world.request(Method::POST, "/emails").header("content-type", "application/json");
    let body = Full::new(body.to_string().into());
    world.send(request.header("idempotency-key", key).body(body).unwrap()).await
}

async fn count(world: &World) -> usize {
    world.get("/emails?limit=100").await.json()["emails"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_key_sends_once() {
    let world = World::start().await;
    let first = post(&world, "k1", email_body()).await;
    assert_eq!(first.status, StatusCode::OK, "{:?}", first.body);
    assert!(first.headers.get("idempotent-replayed").is_none());
    // The same request written differently: order, aliases, a null, white space.
    let same = r#"{ "text":"t", "subject" : "s", "cc": null, "to":["b@example.net"], "from":"Ada <ada@example.com>",
        "attachments":[{"content":"aGk=","filename":"a.txt"}] }"#;
    for body in [email_body().to_string(), same.to_owned()] {
        let again = post(&world, "k1", body).await;
        assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
    }
    let other = post(&world, "k1", same.replace("\"t\"", "\"u\"")).await;
    assert_eq!((other.status, other.code().as_str()), (StatusCode::CONFLICT, "idempotency_conflict"));
    let other_key = post(&world, "k2", email_body()).await;
    assert_ne!(other_key.json()["id"], first.json()["id"]);
    assert_eq!(count(&world).await, 2);
    // After a day the key is free.
    world.services.clock.advance(Duration::from_secs(24 * 3600 + 1));
    let next_day = post(&world, "k1", same.replace("\"t\"", "\"u\"")).await;
    assert_eq!(next_day.status, StatusCode::OK, "{:?}", next_day.body);
    assert_eq!(post(&world, "k1", email_body()).await.status, StatusCode::CONFLICT);
    assert_eq!(count(&world).await, 3);
    world.end().await;
}

/// The meaning of a request counts, not its notation; a similar text with another meaning is another request.
#[tokio::test]
async fn fingerprint_ignores_notation() {
    let world = World::start().await;
    let publish = json!({"name": "T", "alias": "t", "subject": "s", "text": "{{data}} {{content}}"});
    assert_eq!(world.post("/templates", publish.to_string()).await.status, StatusCode::OK);
    assert_eq!(world.post("/templates/t/publish", "{}").await.status, StatusCode::OK);
    let plain = |extra: Value| {
        let mut mail = json!({"from": "Ada <ada@example.com>", "to": "b@example.net", "subject": "s", "text": "t"});
        mail.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        mail
    };
    let of_template = |variables: Value| json!({"from": "ada@example.com", "to": "b@example.net", "template": "t", "variables": variables});
    let (same, other) = (true, false);
    for (n, (one, two, alike)) in [
        (plain(json!({})), plain(json!({"to": ["b@example.net"]})), same),
        (plain(json!({})), plain(json!({"from": {"email": "ada@example.com", "name": "Ada"}})), same),
        (plain(json!({})), plain(json!({"cc": [], "category": null})), same),
        (
            plain(json!({"tags": {"a": "1", "b": "2"}})),
            plain(json!({"tags": [{"value": "2", "name": "b"}, {"name": "a", "value": "1"}]})),
            same,
        ),
        (
            plain(json!({"headers": {"X-A": "1", "X-B": "2"}})),
            plain(json!({"headers": {"X-B": "2", "X-A": "1"}})),
            same,
        ),
        (plain(json!({"text": "a\nb"})), plain(json!({"text": "a\r\nb"})), same),
        (plain(json!({"unsubscribe": true})), plain(json!({"unsubscribe": false})), other),
        (plain(json!({"headers": {"X-A": "1"}})), plain(json!({"tags": {"X-A": "1"}})), other),
        (plain(json!({"cc": "c@example.net"})), plain(json!({"bcc": "c@example.net"})), other),
        (plain(json!({})), plain(json!({"colour": "blue"})), other),
        (
            plain(json!({"attachments": [{"name": "a.txt", "data": "aGk="}]})),
            plain(json!({"attachments": [{"content": "aGk", "filename": "a.txt"}]})),
            same,
        ),
        (of_template(json!({"data": "x", "content": 1})), of_template(json!({"content": 1, "data": "x"})), same),
        // Field aliases do not apply inside `variables`.
        (of_template(json!({"data": "x", "content": "y"})), of_template(json!({"data": "y", "content": "x"})), other),
        (of_template(json!({"data": "1", "content": 1})), of_template(json!({"data": 1, "content": 1})), other),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key {n}");
        let first = post(&world, &key, &one).await;
        assert_eq!(first.status, StatusCode::OK, "{one}: {:?}", first.body);
        let second = post(&world, &key, &two).await;
        match alike {
            true => assert_eq!(second.body, first.body, "{one} {two}"),
            false => assert_eq!(second.code(), "idempotency_conflict", "{one} {two}"),
        }
    }
    world.end().await;
}

#[tokio::test]
async fn refused_request_leaves_the_key_free() {
    let world = World::start().await;
    let bad = post(&world, "k", r#"{"from": "ada@example.com"}"#).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let foreign = post(&world, "k", email_body().to_string().replace("ada@example.com", "ada@example.org")).await;
    assert_eq!(foreign.code(), "domain_not_verified");
    assert_eq!(post(&world, "k", email_body()).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn invalid_keys_are_refused() {
    let world = World::start().await;
    for key in ["", "   ", &"x".repeat(257)] {
        let response = post(&world, key, email_body()).await;
        assert_eq!((response.status, response.code().as_str()), (StatusCode::BAD_REQUEST, "invalid_idempotency_key"));
    }
    assert_eq!(post(&world, &"x".repeat(256), email_body()).await.status, StatusCode::OK);
    let request = world.request(Method::POST, "/emails").header("content-type", "application/json");
    let request = request.header("idempotency-key", "a").header("idempotency-key", "b");
    let response = world.send(request.body(Full::new(email_body().to_string().into())).unwrap()).await;
    assert_eq!(response.code(), "invalid_idempotency_key");
    assert_eq!(count(&world).await, 1);
    world.end().await;
}

#[tokio::test]
async fn keys_are_scoped_to_the_account() {
    let mut world = World::start().await;
    assert_eq!(post(&world, "k", email_body()).await.status, StatusCode::OK);
    world.key = world.account(2, model::credential::ApiKeyScope::Full).await;
    assert_eq!(
        post(&world, "k", email_body()).await.code(),
        "domain_not_verified",
        "the response is not replayed to other accounts"
    );
    world.end().await;
}

/// Twenty concurrent requests on two nodes with one store: one email is sent; the others replay it or get 409.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_send_once() {
    let worlds = World::start_pair().await;
    for round in 0..10 {
        let key = format!("round {round}");
        let responses = join_all((0..20).map(|n| post(&worlds[n % 2], &key, email_body()))).await;
        let mut ids: Vec<String> = Vec::new();
        for response in responses {
            match response.status {
                StatusCode::OK => ids.push(response.json()["id"].to_string()),
                StatusCode::CONFLICT => {
                    assert_eq!(response.code(), "idempotency_in_progress");
                    assert_eq!(response.headers["retry-after"], "1");
                }
                other => panic!("{other}: {:?}", response.body),
            }
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        assert_eq!(count(&worlds[0]).await, round + 1);
    }
    for world in worlds {
        world.end().await;
    }
}
