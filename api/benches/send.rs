//! What the door costs beside the hall: reading a send request of 10 KB, listing, refusing.

use std::hint::black_box;

use api::emails::send::SendRequest;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

/// A receipt: text and HTML of 10 KB together, with the escapes that HTML in JSON has.
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

criterion_group!(benches, send);
criterion_main!(benches);
