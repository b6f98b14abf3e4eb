//! Benchmarks of the HTTP API without the network: parsing a 10 KB send request, rejecting an invalid one, and
//! dispatching a request (route, authentication, body, handler task, response) without hyper and message intake.

#![allow(missing_docs, clippy::unwrap_used, reason = "criterion's macros; a bench that cannot go on fails")]

#[path = "../tests/http/documented.rs"]
mod documented;
#[path = "../tests/http/world.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod world;
#[path = "../../tests/world/zone.rs"]
mod zone;

use std::hint::black_box;
use std::sync::Arc;

use api::emails::send::SendRequest;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http_body_util::Full;
use serde_json::json;

/// A receipt with 10 KB of text and HTML together; the HTML has quotes that JSON must escape.
fn receipt() -> Vec<u8> {
    let html = "<p class=\"line\">One \u{fc}nit of \"something\"</p>\n".repeat(160);
    let text = "One unit of something, and another line of it.\n".repeat(40);
    json!({
        "from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": "Your receipt",
        "html": html, "text": text, "reply_to": "help@example.com",
        "headers": {"X-Order": "4711"}, "tags": [{"name": "kind", "value": "receipt"}],
    })
    .to_string()
    .into_bytes()
}

fn send(criterion: &mut Criterion) {
    let body = receipt();
    let mut group = criterion.benchmark_group("api/send");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("read 10 KB", |bench| {
        bench.iter(|| SendRequest::from_json(black_box(&body)).map(drop));
    });
    let bad = br#"{"from":"x","to":["y"],"HtmlBody":"z"}"#;
    group.bench_function("refuse", |bench| bench.iter(|| SendRequest::from_json(black_box(bad)).map(drop)));
    group.finish();
}

fn dispatch(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(world::World::start());
    let authorization = format!("Bearer {}", world.key);
    // A 10 KB body that the parser rejects at its last field: measures everything but message intake.
    let mut body = receipt();
    body.truncate(body.len() - 1);
    body.extend_from_slice(b",\"category\":\"none\"}");
    let body = Bytes::from(body);
    criterion.bench_function("api/dispatch", |bench| {
        bench.to_async(&runtime).iter(|| {
            let request = http::Request::post("/emails")
                .header("authorization", &authorization)
                .header("content-type", "application/json")
                .header("content-length", body.len())
                .body(Full::new(body.clone()))
                .unwrap();
            api::dispatch::dispatch(Arc::clone(&world.server), request)
        });
    });
}

criterion_group!(benches, send, dispatch);
criterion_main!(benches);
