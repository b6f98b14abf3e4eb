//! Size of queued messages on disk, and CPU time to accept them: `cargo bench -p store --bench queued` prints both.
//!
//! Writes 100,000 messages (`BENCH_EMAILS` overrides the number) of 2 KB as intake does: the rows of email, recipient,
//! task, deadline, event and outbox entry, and the body, one commit each by 32 committers. The outbox entries are
//! deleted as the dispatcher does. `BENCH_DIR` names another directory.

// A benchmark panics on errors.
#![allow(missing_docs, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use message::header::HeaderSummary;
use model::email::{Category, Email, Ingress, Tag};
use model::event::{Event, EventKind};
use model::id::{AccountId, EmailId, EventId};
use model::recipient::{DsnOptions, Recipient, RecipientKind, RecipientState};
use model::task::{Task, TaskClass, TaskId};
use store::engine::{Batch, RedbOptions, ScanOrder, Store};
use store::key::{Space, prefix_range};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 2 << 10;
const COMMITTERS: u64 = 32;
const DOMAINS: u64 = 300;
const PARTITIONS: u64 = 64;

/// The bits of an id that are random in production.
fn spread(number: u64) -> u128 {
    let half = |seed: u64| {
        let mixed = (number ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        u128::from((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9))
    };
    (half(1) << 64 | half(2)) >> 48
}

/// A message as intake has prepared it.
struct Queued {
    email: Email,
    recipient: Recipient,
    task: Task,
    event: Event,
}

fn queued(number: u64) -> Queued {
    let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
    let now = Timestamp::from_millisecond(1_700_000_000_000 + number as i64 / 8).expect("a time");
    let id = EmailId::new(now, spread(number));
    let domain = spread(number) as u64 % DOMAINS;
    let address = format!("user{}@destination{domain}.example", spread(number) % 10_000_000);
    let mail = |text: &str| text.parse().expect("a mailbox");
    let email = Email {
        id,
        account,
        ingress: Ingress::Api,
        from: mail("Shop <orders@bench.example>"),
        reverse_path: None,
        domain: Some("bench.example".parse().expect("a name")),
        header: HeaderSummary {
            to: vec![mail(&address)],
            subject: format!("Your order {number} has been shipped"),
            message_id: format!("{}@bench.example", id.to_string()[4..].to_ascii_lowercase()),
            ..HeaderSummary::default()
        },
        tags: vec![Tag { name: "kind".to_owned(), value: "order".to_owned() }],
        category: Category::Transactional,
        size_bytes: BODY_BYTES as u64,
        envelope_id: None,
        return_full: false,
        require_tls: false,
        unsubscribe: false,
        has_secret_link: false,
        scheduled: false,
        expires_in: None,
        late_in_s: None,
        priority: None,
        resent_from: None,
        run: None,
        template: None,
        sent_by: None,
        created_at: now,
    };
    let recipient = Recipient {
        index: 0,
        address: address.parse().expect("an address"),
        kind: RecipientKind::To,
        state: RecipientState::Queued,
        attempts: 0,
        last_response: None,
        error: None,
        mx_host: None,
        last_event: (EventKind::Sent, now),
        delivered_at: None,
        bounced_at: None,
        complained_at: None,
        next_attempt_at: Some(now),
        notify: DsnOptions::default(),
    };
    let task = task_of(&email, &recipient, domain);
    let event = Event {
        id: EventId::new(now, spread(number + (1 << 40))),
        account,
        subject: id.into(),
        kind: EventKind::Sent,
        recipient: None,
        created_at: now,
        detail: serde_json::json!({"recipients_count": 1}),
    };
    Queued { email, recipient, task, event }
}

fn task_of(email: &Email, recipient: &Recipient, domain: u64) -> Task {
    Task {
        id: TaskId { email: email.id, recipient: 0 },
        partition: (domain % PARTITIONS) as u16,
        account: email.account,
        class: TaskClass::Transactional,
        due: email.created_at,
        address: recipient.address.clone(),
        kind: RecipientKind::To,
        domain: email.domain.clone(),
        attempts: 0,
        replies: 0,
        accepted_at: email.created_at,
        expires_at: email.created_at + Duration::from_secs(48 * 3600),
        has_deadline: false,
        size_bytes: BODY_BYTES as u64,
        smtputf8: false,
        require_tls: false,
        tls_enforced: false,
        tls_optional: false,
        eight_bit: false,
        notify: DsnOptions::default(),
        envelope_id: None,
        return_full: false,
        deliver_by: None,
        priority: None,
        held: false,
        route: None,
        plan: None,
    }
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("statistics");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum();
    Duration::from_millis(ticks * 10)
}

/// Bytes of the index and of the log segments.
fn disk_bytes(directory: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let (mut index, mut log) = (0, 0);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let bytes = entry.metadata().map_or(0, |found| found.blocks() * 512);
        match entry.file_name().to_string_lossy() {
            name if name == "index.redb" => index += bytes,
            name if name.starts_with("log-") => log += bytes,
            _ => {}
        }
    }
    (index, log)
}

async fn measure(emails: u64) {
    let base = std::env::var_os("BENCH_DIR").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let directory = base.join(format!("queued-{}", std::process::id()));
    let store = Store::open(&RedbOptions::new(&directory)).expect("opens");
    let body: Bytes = (0..BODY_BYTES).map(|at| b"The order has been shipped. "[at % 28]).collect();
    let next = Arc::new(AtomicU64::new(0));
    let before = cpu();
    let workers = (0..COMMITTERS).map(|_| {
        let (store, next, body) = (store.clone(), Arc::clone(&next), body.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= emails {
                    return;
                }
                let Queued { email, recipient, task, event } = queued(number);
                let mut batch = Batch::intake();
                store::email::create(&mut batch, &email, &[recipient], body.clone().into());
                store::task::put_new(&mut batch, &task);
                store::event::record(&mut batch, &event, task.partition);
                store.commit(batch).await.expect("commits");
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("runs");
    }
    let accepted = cpu() - before;
    let range = prefix_range(&[Space::Outbox as u8]);
    loop {
        let entries = store.scan(range.clone(), ScanOrder::Ascending, 1_000).await.expect("reads");
        if entries.is_empty() {
            break;
        }
        let mut batch = Batch::progress();
        entries.into_iter().for_each(|(key, _)| _ = batch.delete(key));
        store.commit(batch).await.expect("commits");
    }
    store.flush().await.expect("flushes");
    let health = store.health();
    store.close().await;
    let each = |bytes: u64| bytes / emails.max(1);
    let (index, log) = disk_bytes(&directory);
    println!(
        "a queued message takes {} bytes: log {}, index {}; CPU time to accept it {:.1} us; {} checkpoints",
        each(index + log),
        each(log),
        each(index),
        accepted.as_secs_f64() * 1e6 / emails.max(1) as f64,
        health.checkpoints,
    );
    std::fs::remove_dir_all(&directory).expect("goes");
}

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let emails = std::env::var("BENCH_EMAILS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(emails));
}
