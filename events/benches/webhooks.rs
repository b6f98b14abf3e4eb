//! Webhooks end to end in one process: an outbox event is dispatched, signed, posted to a receiver on loopback, and
//! recorded. Measures the latency at 500 events a second, then the throughput of a backlog.
//!
//! `cargo bench -p events --bench webhooks`; set `EVENTS=20000` for more.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dns::secrets::Vault;
use events::subsystems::EventSubsystems;
use events::subsystems::idle::{vault, webhooks};
use jiff::Timestamp;
use model::domain::SealedSecret;
use model::event::{Event, EventKind};
use model::id::{AccountId, EventId, SuppressionId, WebhookId};
use model::webhook::{RetryPolicy, Webhook};
use net::clock::Clock;
use net::entropy::Entropy;
use queue::services::Services;
use queue::subsystems::idle::{self, IdleQueue};
use store::engine::{Batch, RedbOptions, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const RATE: u64 = 500;
const PARTITIONS: u16 = 64;

fn main() {
    // `cargo test` runs benches without this argument: nothing to test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let events: u64 = std::env::var("EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run(events));
}

async fn run(events: u64) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&RedbOptions::new(directory.path().join("store"))).unwrap();
    let (url, mut delays_received) = receiver().await;
    let services = Services::new(store.clone(), Clock::default(), Entropy::default());
    let subsystems = EventSubsystems::new(&services, webhooks());
    let queue = IdleQueue::with_listener(services, idle::settings(), Arc::new(subsystems.clone()));
    let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
    subscribe(&store, &vault(), account, url).await;
    queue.cluster.join().await.unwrap();
    events::background_tasks::start(&queue.services, &subsystems);

    // The first event opens connections, and the backlog dispatcher may deliver it; after the second the subscriber is
    // known.
    for number in 0..2 {
        record(&store, account, number..number + 1).await;
        queue.services.outbox_wakeup.notify_one();
        delays_received.recv().await.unwrap();
    }

    let mut delays = Vec::new();
    let started = tokio::time::Instant::now();
    let mut every = tokio::time::interval(Duration::from_millis(1_000 / RATE));
    let sending = async {
        for number in 0..events / 5 {
            every.tick().await;
            record(&store, account, number..number + 1).await;
            queue.services.outbox_wakeup.notify_one();
        }
    };
    let receiving = async {
        for _ in 0..events / 5 {
            delays.push(delays_received.recv().await.unwrap());
        }
    };
    tokio::join!(sending, receiving);
    delays.sort_unstable();
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    println!(
        "event to POST at {RATE}/s: p50 {} ms, p99 {} ms, most {} ms ({} events in {:.1} s)",
        at(0.5),
        at(0.99),
        at(1.0),
        delays.len(),
        started.elapsed().as_secs_f64()
    );

    for start in (0..events).step_by(500) {
        record(&store, account, start..(start + 500).min(events)).await;
    }
    let started = tokio::time::Instant::now();
    queue.services.outbox_wakeup.notify_one();
    for _ in 0..events {
        delays_received.recv().await.unwrap();
    }
    let rate = events as f64 / started.elapsed().as_secs_f64();
    println!("{events} queued events dispatched, signed and posted: {rate:.0}/s");
    queue.delivery.shut_down(&queue.services, &queue.cluster, Duration::from_secs(8)).await;
}

/// Writes events into the outbox, each with its creation time in the detail.
async fn record(store: &Store, account: AccountId, numbers: std::ops::Range<u64>) {
    let mut batch = Batch::progress();
    for number in numbers {
        let (now, chance) = (Clock::default().now(), Entropy::default().u128());
        let event = Event {
            id: EventId::new(now, chance),
            account,
            subject: SuppressionId::new(now, chance).into(),
            kind: EventKind::SuppressionCreated,
            recipient: None,
            created_at: now,
            detail: serde_json::json!({"at_ms": now.as_millisecond(), "text": "x".repeat(400)}),
        };
        store::event::record(&mut batch, &event, u16::try_from(number % u64::from(PARTITIONS)).unwrap());
    }
    store.commit(batch).await.unwrap();
}

async fn subscribe(store: &Store, vault: &Vault, account: AccountId, url: String) {
    use base64::Engine as _;
    let id = WebhookId::new(Timestamp::UNIX_EPOCH, 1);
    let sealed = vault.seal(&id.to_bytes(), model::webhook::format_secret(&[7; 32]).as_bytes()).unwrap();
    let webhook = Webhook {
        id,
        account,
        url,
        events: vec!["suppression.created".to_owned()],
        enabled: true,
        description: None,
        domains: Vec::new(),
        addresses: Vec::new(),
        retry: RetryPolicy::Default,
        secret: SealedSecret(base64::engine::general_purpose::STANDARD.encode(sealed)),
        former_secrets: Vec::new(),
        failing_since: None,
        disabled_reason: None,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    };
    let mut batch = Batch::intake();
    store::webhook::create(&mut batch, &webhook, &store::webhook::WebhookSetVersion::default());
    store.commit(batch).await.unwrap();
}

/// A receiver that responds at once, and reports the age of each posted event in milliseconds.
async fn receiver() -> (String, mpsc::UnboundedReceiver<i64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    let count = Arc::new(AtomicU64::new(0));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (sender, count) = (sender.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let mut buffer = Vec::new();
                while stream.read_buf(&mut buffer).await.is_ok_and(|n| n > 0) {
                    // Only the end of the body is `}}`.
                    if !buffer.ends_with(b"}}") {
                        continue;
                    }
                    let now = Clock::default().now().as_millisecond();
                    let text = String::from_utf8_lossy(&buffer);
                    let sent = text.split("\"at_ms\":").nth(1).and_then(|rest| rest.split(',').next());
                    let _ = sender.send(now - sent.and_then(|sent| sent.parse().ok()).unwrap_or(now));
                    count.fetch_add(1, Ordering::Relaxed);
                    buffer.clear();
                    if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, receiver)
}
