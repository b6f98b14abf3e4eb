//! The memory budget: announced bytes cost nothing, slow clients time out, unauthenticated clients have their own
//! pool.

use std::time::Duration;

use crate::world::World;
use api::operation::OperationHandler;
use api::operations::operation_table;
use api::state::BYTES_IN_FLIGHT_MAX;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::{HeaderMap, StatusCode};
use http_body_util::{Full, StreamBody};
use httpd::body;
use httpd::problem::{ErrorCode, Problem};
use httpd::request::{Media, SEND_BYTES_MAX, SMALL_BYTES_MAX};
use hyper::body::Frame;
use model::id::AccountId;
use net::limit::memory_budget::{MemoryBudget, MemoryHolder, MemoryShare};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

const MAIL: &str = r#"{"from":"a@example.com","to":"b@example.net","subject":"s","text":"t"}"#;

/// Announces a body and sends none of it.
async fn announce_body(world: &World, path: &str, bytes: usize, key: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\nContent-Length: {bytes}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = vec![0; 25];
    stream.read_exact(&mut response).await.unwrap();
    (stream, String::from_utf8(response).unwrap())
}

#[tokio::test]
async fn announced_bytes_cost_no_memory() {
    let world = World::with_options(|options| options.bytes_in_flight_max = 1 << 20).await;
    let other = world.account(2, model::credential::ApiKeyScope::Full).await;
    let mut silent = Vec::new();
    for (path, bytes) in [("/emails", 100 << 20), ("/emails", 200 << 10), ("/auth/sign-in", 60 << 10)] {
        for _ in 0..40 {
            let (stream, response) = announce_body(&world, path, bytes, &world.key).await;
            assert_eq!(response, "HTTP/1.1 100 Continue\r\n\r\n");
            silent.push(stream);
        }
    }
    for key in [&world.key, &other] {
        let large =
            json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "a".repeat(2 << 20)});
        let response = world.call_as(key, http::Method::POST, "/emails", &large).await;
        assert_ne!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{response:?}");
    }
    assert_eq!(world.post("/emails", MAIL).await.status, StatusCode::OK);
    let signing = json!({"email": "owner1@example.com", "password": "wrong"});
    let response = world.call_without_key(http::Method::POST, "/auth/sign-in", &signing).await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    drop(silent);
    world.end().await;
}

#[tokio::test]
async fn unauthenticated_body_is_not_read() {
    let world = World::start().await;
    let (_stream, response) = announce_body(&world, "/emails", 1 << 20, "rnl_nobody").await;
    assert_eq!(response, "HTTP/1.1 401 Unauthorized");
    world.end().await;
}

#[test]
fn public_bodies_are_small() {
    for operation in operation_table() {
        if let (OperationHandler::Public(_), Some(bytes_max)) = (&operation.handler, operation.body_bytes_max) {
            // Events of the payment processor are as large as its objects.
            let is_large = ["/processor/", "/billing/"].iter().any(|prefix| operation.path.starts_with(prefix));
            assert!(bytes_max <= SMALL_BYTES_MAX << if is_large { 4 } else { 0 }, "{}", operation.path);
        }
    }
}

fn account() -> MemoryHolder {
    MemoryHolder::Account(AccountId::from_bytes([1; 16]))
}

type Outcome = (Result<Bytes, Problem>, Duration);

/// Reads a body whose chunks arrive at these intervals; then it ends or stalls.
async fn read_slowly(budget: &MemoryBudget, holder: MemoryHolder, chunks: &[(u64, usize)], ends: bool) -> Outcome {
    let coming = stream::iter(chunks.to_vec()).then(async |(after_s, bytes)| {
        tokio::time::sleep(Duration::from_secs(after_s)).await;
        Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![b' '; bytes])))
    });
    let rest = stream::pending().take(usize::from(!ends));
    let body = StreamBody::new(Box::pin(coming.chain(rest)));
    let (started_at, allowance) = (Instant::now(), budget.allowance(holder));
    let read = body::read_body(body, &HeaderMap::new(), 1 << 20, Media::Json, &allowance).await;
    (read.map(|(bytes, _)| bytes), started_at.elapsed())
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_time_out() {
    let budget = MemoryBudget::new(10 << 20, 0);
    // One body stops; the other continues with a byte a second.
    let (stopped, after) = read_slowly(&budget, account(), &[(0, 10)], false).await;
    assert_eq!((stopped.unwrap_err().code(), after.as_secs()), (ErrorCode::REQUEST_TIMEOUT, 20));
    let (trickled, after) = read_slowly(&budget, account(), &[(1, 1); 600], true).await;
    assert_eq!((trickled.unwrap_err().code(), after.as_secs()), (ErrorCode::REQUEST_TIMEOUT, 30));
    // A slow mobile uplink is fast enough.
    let (read, _) = read_slowly(&budget, account(), &[(1, 128 << 10); 8], true).await;
    assert_eq!(read.unwrap().len(), 1 << 20);
    assert_eq!(budget.available_bytes(), 10 << 20);
}

#[tokio::test(start_paused = true)]
async fn refused_body_releases_its_memory() {
    let budget = MemoryBudget::new(10 << 20, 0);
    let mut shares = Vec::new();
    // An account's quota of the ordinary pool is one megabyte.
    for _ in 0..4 {
        let mut share = MemoryShare::default();
        assert!(budget.allowance(account()).try_grow(&mut share, 225 << 10));
        shares.push(share);
    }
    let (refused, after) = read_slowly(&budget, account(), &[(0, 100 << 10), (0, 100 << 10)], true).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.code(), after.as_secs()), (ErrorCode::SERVICE_UNAVAILABLE, 5));
    assert!(refused.headers().iter().any(|(name, _)| name == "retry-after"));
    // Another account is not affected, and neither is this one once memory is free.
    let other = MemoryHolder::Account(AccountId::from_bytes([2; 16]));
    assert!(read_slowly(&budget, other, &[(0, 100 << 10); 2], true).await.0.is_ok());
    drop(shares);
    assert!(read_slowly(&budget, account(), &[(0, 100 << 10); 2], true).await.0.is_ok());
    assert_eq!(budget.available_bytes(), 10 << 20);
}

#[tokio::test(start_paused = true)]
async fn half_read_bodies_do_not_deadlock() {
    let budget = MemoryBudget::new(BYTES_IN_FLIGHT_MAX, SEND_BYTES_MAX);
    // All bodies are half read at the same time, with and without Content-Length.
    let bytes = (1 << 20) - 1;
    let chunks = [(0, 200 << 10), (1, 200 << 10), (1, 200 << 10), (1, 200 << 10), (1, bytes - (800 << 10))];
    let reading = (0..50).map(|_| read_slowly(&budget, account(), &chunks, true));
    for (read, _) in futures_util::future::join_all(reading).await {
        assert_eq!(read.unwrap().len(), bytes);
    }
}

#[tokio::test]
async fn wrong_content_length_is_still_bounded() {
    let budget = MemoryBudget::new(10 << 20, 0);
    let body = Full::new(Bytes::from(vec![b' '; 5000]));
    let allowance = budget.allowance(account());
    let problem = body::read_body(body, &HeaderMap::new(), 4096, Media::Json, &allowance).await.unwrap_err();
    assert_eq!(problem.code(), ErrorCode::PAYLOAD_TOO_LARGE);
    assert_eq!(budget.available_bytes(), 10 << 20);
}
