//! `Idempotency-Key`: sent once, answered the same, on one node and on two.

use std::time::Duration;

use crate::world::{Answered, World};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

fn mail() -> Value {
    json!({"from": "Ada <ada@example.com>", "to": ["b@example.net"], "subject": "s", "text": "t",
           "attachments": [{"name": "a.txt", "data": "aGk="}]})
}

async fn post(world: &World, key: &str, body: impl ToString) -> Answered {
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
    let first = post(&world, "k1", mail()).await;
    assert_eq!(first.status, StatusCode::OK, "{:?}", first.body);
    assert!(first.headers.get("idempotent-replayed").is_none());
    // The same said in other words: another order, aliases, a null, other white space.
    let same = r#"{ "text":"t", "subject" : "s", "cc": null, "to":["b@example.net"], "from":"Ada <ada@example.com>",
        "attachments":[{"content":"aGk=","filename":"a.txt"}] }"#;
    for body in [mail().to_string(), same.to_owned()] {
        let again = post(&world, "k1", body).await;
        assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
    }
    let other = post(&world, "k1", same.replace("\"t\"", "\"u\"")).await;
    assert_eq!((other.status, other.code().as_str()), (StatusCode::CONFLICT, "idempotency_conflict"));
    let another = post(&world, "k2", mail()).await;
    assert_ne!(another.json()["id"], first.json()["id"]);
    assert_eq!(count(&world).await, 2);
    // After a day the key is free again.
    world.hall.clock().advance(Duration::from_secs(24 * 3600 + 1));
    let next_day = post(&world, "k1", same.replace("\"t\"", "\"u\"")).await;
    assert_eq!(next_day.status, StatusCode::OK, "{:?}", next_day.body);
    assert_eq!(post(&world, "k1", mail()).await.status, StatusCode::CONFLICT);
    assert_eq!(count(&world).await, 3);
    world.end().await;
}

/// What is said counts, not how: and what reads alike but says something else is another request.
#[tokio::test]
async fn the_same_request_is_known_again_however_it_is_written() {
    let world = World::start().await;
    let publish = json!({"name": "T", "alias": "t", "subject": "s", "text": "{{data}} {{content}}"});
    assert_eq!(world.post("/templates", publish.to_string()).await.status, StatusCode::OK);
    assert_eq!(world.post("/templates/t/publish", "{}").await.status, StatusCode::OK);
    let plain = |more: Value| {
        let mut mail = json!({"from": "Ada <ada@example.com>", "to": "b@example.net", "subject": "s", "text": "t"});
        mail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
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
        // Names of ours mean nothing among the variables.
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
async fn what_was_refused_leaves_the_key_free() {
    let world = World::start().await;
    let bad = post(&world, "k", r#"{"from": "ada@example.com"}"#).await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let foreign = post(&world, "k", mail().to_string().replace("ada@example.com", "ada@example.org")).await;
    assert_eq!(foreign.code(), "domain_not_verified");
    assert_eq!(post(&world, "k", mail()).await.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn keys_that_are_none() {
    let world = World::start().await;
    for key in ["", "   ", &"x".repeat(257)] {
        let answer = post(&world, key, mail()).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::BAD_REQUEST, "invalid_idempotency_key"));
    }
    assert_eq!(post(&world, &"x".repeat(256), mail()).await.status, StatusCode::OK);
    let request = world.request(Method::POST, "/emails").header("content-type", "application/json");
    let request = request.header("idempotency-key", "a").header("idempotency-key", "b");
    let answer = world.send(request.body(Full::new(mail().to_string().into())).unwrap()).await;
    assert_eq!(answer.code(), "invalid_idempotency_key");
    assert_eq!(count(&world).await, 1);
    world.end().await;
}

#[tokio::test]
async fn a_key_is_its_accounts() {
    let mut world = World::start().await;
    assert_eq!(post(&world, "k", mail()).await.status, StatusCode::OK);
    world.key = world.account(2, mail::credential::ApiKeyScope::Full).await;
    assert_eq!(post(&world, "k", mail()).await.code(), "domain_not_verified", "it is not replayed to others");
    world.end().await;
}

/// Twenty at once, on two nodes that share a store: one email, and everybody hears of it or that it is at work.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_sends() {
    let worlds = World::pair().await;
    for round in 0..10 {
        let key = format!("round {round}");
        let answers = join_all((0..20).map(|n| post(&worlds[n % 2], &key, mail()))).await;
        let mut ids: Vec<String> = Vec::new();
        for answer in answers {
            match answer.status {
                StatusCode::OK => ids.push(answer.json()["id"].to_string()),
                StatusCode::CONFLICT => {
                    assert_eq!(answer.code(), "idempotency_in_progress");
                    assert_eq!(answer.headers["retry-after"], "1");
                }
                other => panic!("{other}: {:?}", answer.body),
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
