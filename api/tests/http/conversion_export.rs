//! Conversion export: at least once, with the same id, until the receiver accepts it.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use events::product_events::{ConversionExportSettings, ConversionTarget};
use http::StatusCode;
use net::http_client::{HttpClient, HttpClientSettings, UrlRules};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::World;

/// Answers posts with these statuses in turn, and collects heads and bodies.
async fn start_platform(statuses: Vec<u16>) -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/conversions", listener.local_addr().unwrap());
    let received = Arc::<Mutex<Vec<(String, Value)>>>::default();
    let recorded = Arc::clone(&received);
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let (head, body) = loop {
                stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str::<Value>(body)
                {
                    break (head.to_ascii_lowercase(), body);
                }
            };
            recorded.lock().push((head, body));
            let response = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (url, received)
}

fn exporter(url: String) -> ConversionTarget {
    let settings = dns::resolver::ResolverSettings {
        servers: vec!["127.0.0.1:9".parse().unwrap()],
        ..dns::resolver::ResolverSettings::default()
    };
    let rules = UrlRules { allow_private: true, allow_http: true };
    let resolver = dns::resolver::Resolver::new(&settings).unwrap();
    let poster = HttpClient::new(resolver, HttpClientSettings { rules, ..HttpClientSettings::default() }).unwrap();
    ConversionTarget::new(ConversionExportSettings { url, token: Some("hush".into()), email_hash: true }, poster)
}

#[tokio::test]
async fn conversion_export_retries_until_accepted() {
    let (world, (url, received)) = (World::start().await, start_platform(vec![500, 429, 204, 400]).await);
    let events = &world.accounts.product_events;
    events.exporter.set_target(exporter(url));
    let send_event = async |id: &str, extra: Value| {
        let mut data = json!({"id": id});
        data.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let event = json!({"name": "user.created", "email": "Grace@example.net", "data": data});
        let response = world.post("/events", event.to_string()).await;
        assert_eq!(response.status, StatusCode::ACCEPTED);
        events.aggregator.aggregate_all().await.unwrap();
    };
    let try_after = async |seconds: u64| {
        world.services.clock.advance(Duration::from_secs(seconds));
        events.exporter.export_due().await.unwrap().0
    };
    // A conversion without a click id is not exported.
    send_event("u0", json!({})).await;
    assert_eq!(try_after(0).await, 0);
    send_event("u1", json!({"gclid": "g", "value": 5, "currency": "eur"})).await;
    send_event("u1", json!({"gclid": "h"})).await;
    // Two temporary failures, with retries after one and two minutes; then accepted.
    assert_eq!((try_after(0).await, try_after(30).await, try_after(31).await), (1, 0, 1));
    assert_eq!((try_after(90).await, try_after(31).await, try_after(100_000).await), (0, 1, 0));
    // A permanent failure.
    send_event("u2", json!({"wbraid": "w"})).await;
    assert_eq!((try_after(0).await, try_after(100_000).await), (1, 0));
    let received = received.lock().clone();
    assert_eq!(received.len(), 4);
    let (head, body) = &received[0];
    assert!(head.starts_with("post /conversions http/1.1") && head.contains("authorization: bearer hush"), "{head}");
    // printf grace@example.net | sha256sum
    assert_eq!(body["email_sha256"], "fa412966147ffb5f96d882bda59443f129f2ae48b8dfa946c74fd0131b08f36a");
    let expected = (json!("sign_up"), json!("g"), json!(5.0), json!("EUR"));
    assert_eq!(
        (&body["kind"], &body["gclid"], &body["value"], &body["currency"]),
        (&expected.0, &expected.1, &expected.2, &expected.3)
    );
    assert!(head.contains(&format!("idempotency-key: {}", body["id"].as_str().unwrap().to_ascii_lowercase())));
    assert!(body["id"].as_str().unwrap().starts_with("ae_") && body["occurred_at"].is_string());
    assert!(received[1].1 == *body && received[2].1 == *body, "the same id each time");
    assert_eq!(received[3].1["wbraid"], "w");
    world.end().await;
}
