//! Reads of a long queue by the operator's console and commands: how long each takes, and for how long it keeps the
//! runtime's only thread from other work.
//!
//! `cargo bench -p queue --bench queue_reads`; `ROWS` sets the number of queued recipients (1,000,000).

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use model::id::{AccountId, EmailId};
use model::recipient::{DsnOptions, RecipientKind};
use model::task::{Task, TaskClass, TaskId};
use model::task_filter::TaskFilter;
use net::clock::Clock;
use queue::subsystems::idle::{self, IdleQueue};
use store::engine::{Batch, RedbOptions, Store};
use store::queue_walk::QueueWalk;
use tokio::time::Instant;

const DOMAINS: u64 = 20_000;
const ACCOUNTS: u64 = 50;
const BATCH_ROWS: u64 = 1_000;

fn main() {
    // `cargo test` runs benches without this argument: nothing to test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let rows: u64 = std::env::var("ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    // One thread: a read that keeps it delays everything else.
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(rows));
}

async fn run(rows: u64) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&RedbOptions::new(directory.path().join("store"))).unwrap();
    let queue = IdleQueue::new(store.clone(), idle::settings());
    queue.cluster.join().await.unwrap();
    // Begins to count the partitions in memory.
    queue.cluster.poll().await.unwrap();
    let started = Instant::now();
    for start in (0..rows).step_by(usize::try_from(BATCH_ROWS).unwrap()) {
        let mut batch = Batch::intake();
        (start..rows.min(start + BATCH_ROWS)).for_each(|number| store::task::put_new(&mut batch, &task(number)));
        store.commit(batch).await.unwrap();
    }
    store.flush().await.unwrap();
    while store.queue_counts().read(&store, Clock::default().now()).await.unwrap() {}
    println!("{rows} recipients of {DOMAINS} domains stored in {:.1} s", started.elapsed().as_secs_f64());

    measure("all counted in memory, 20 longest domains", async {
        let summary = store.queue_counts().summary(20);
        summary.recipients.iter().map(|(.., count)| count).sum()
    })
    .await;
    measure("queue top, 100 destinations", async {
        queue.delivery.admin.top_destinations(100, |_| {}).await.unwrap().tasks
    })
    .await;
    measure("mail of a held queue", async { queue.delivery.queues.count_held_mail(None).await.unwrap().recipients })
        .await;
    let account = Some(account(1));
    measure("mail of an account", async { queue.delivery.queues.count_held_mail(account).await.unwrap().recipients })
        .await;
    let nothing = TaskFilter { attempts_min: Some(9), ..TaskFilter::default() };
    measure("a page of a list without a match", walk(&store, nothing.clone(), 100_000)).await;
    let of_domain = TaskFilter { to: Some(domain(7).parse().unwrap()), ..TaskFilter::default() };
    measure("the count of a domain", walk(&store, of_domain, 100_000)).await;
    measure("for comparison: all rows", walk(&store, nothing, usize::MAX)).await;
}

async fn walk(store: &Store, filter: TaskFilter, rows_max: usize) -> u64 {
    let mut walk = QueueWalk::new(store, filter, rows_max);
    while walk.next_page().await.unwrap().is_some() {}
    walk.rows_read() as u64
}

/// Prints the time of a read, and the longest time for which another task of the thread had to wait.
async fn measure(name: &str, read: impl Future<Output = u64>) {
    let waited = Arc::new(AtomicU64::new(0));
    let longest = Arc::clone(&waited);
    let other = tokio::spawn(async move {
        loop {
            let before = Instant::now();
            tokio::task::yield_now().await;
            let micros = u64::try_from(before.elapsed().as_micros()).unwrap_or(u64::MAX);
            longest.fetch_max(micros, Ordering::Relaxed);
        }
    });
    tokio::task::yield_now().await;
    let started = Instant::now();
    let found = read.await;
    let took = started.elapsed();
    tokio::task::yield_now().await;
    other.abort();
    let waited = Duration::from_micros(waited.load(Ordering::Relaxed));
    println!("{name}: {found} in {:.1} ms, others waited up to {:.1} ms", millis(took), millis(waited));
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn domain(number: u64) -> String {
    format!("d{number}.example")
}

fn account(number: u64) -> AccountId {
    AccountId::new(Timestamp::UNIX_EPOCH, u128::from(number))
}

/// A half of the tasks is due, a quarter was attempted, one of a hundred is held. Small numbers of domains are more
/// frequent.
fn task(number: u64) -> Task {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let of_domain = (chance % DOMAINS).min(chance / 7 % DOMAINS);
    Task {
        id: TaskId { email: EmailId::new(now, u128::from(number)), recipient: 0 },
        partition: u16::try_from(of_domain % 64).unwrap(),
        account: account(number % ACCOUNTS),
        class: TaskClass::Transactional,
        due: Timestamp::from_second(if number.is_multiple_of(2) { 1_800_000_000 } else { 4_000_000_000 }).unwrap(),
        address: format!("user{number}@{}", domain(of_domain)).parse().unwrap(),
        kind: RecipientKind::To,
        domain: Some("sender.example".parse().unwrap()),
        attempts: u32::from(number % 4 == 1),
        replies: 0,
        accepted_at: now,
        expires_at: Timestamp::from_second(4_100_000_000).unwrap(),
        has_deadline: false,
        size_bytes: 20_000,
        smtputf8: false,
        require_tls: false,
        tls_optional: false,
        tls_enforced: false,
        eight_bit: false,
        notify: DsnOptions::default(),
        envelope_id: None,
        return_full: false,
        deliver_by: None,
        priority: None,
        held: number.is_multiple_of(100),
        route: None,
        plan: None,
    }
}
