//! Measures the deadline scan while a million tasks wait: `cargo bench -p store --bench deadlines` prints a table.
//!
//! Fills a store on disk with a million tasks (`BENCH_TASKS` overrides the number) in one partition. Then it lists the
//! overdue tasks, first while none is overdue, then while the oldest few are. Both should cost the same regardless of
//! the number of tasks.

// A benchmark panics on errors.
#![allow(missing_docs, clippy::expect_used)]

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use message::address::DomainName;
use model::id::{AccountId, EmailId};
use model::recipient::{DsnOptions, RecipientKind};
use model::task::{Task, TaskClass, TaskId};
use store::engine::{Batch, RedbOptions, Store};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PARTITION: u16 = 7;
const TASKS_IN_A_COMMIT: u64 = 500;
const LOOKS: usize = 1_000;
/// The page size that the worker uses.
const LIMIT: usize = 500;
/// Interval between the expiry times of consecutive tasks.
const BETWEEN_MS: i64 = 100;

fn accepted(number: u64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + number as i64 * BETWEEN_MS).expect("a time")
}

fn expires(number: u64) -> Timestamp {
    accepted(number) + Duration::from_secs(2 * 24 * 3600)
}

fn task(number: u64) -> Task {
    let domain: DomainName = format!("d{}.example", number % 1_000).parse().expect("a domain");
    Task {
        id: TaskId { email: EmailId::new(accepted(number), number.into()), recipient: 0 },
        partition: PARTITION,
        account: AccountId::new(Timestamp::UNIX_EPOCH, 1),
        class: TaskClass::Transactional,
        due: accepted(number),
        address: format!("user@{domain}").parse().expect("an address"),
        kind: RecipientKind::To,
        domain: Some("example.com".parse().expect("a domain")),
        attempts: 0,
        replies: 0,
        accepted_at: accepted(number),
        expires_at: expires(number),
        has_deadline: false,
        size_bytes: 2_048,
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
        held: false,
        route: None,
        plan: None,
    }
}

async fn fill(store: &Store, numbers: std::ops::Range<u64>) {
    for first in numbers.clone().step_by(TASKS_IN_A_COMMIT as usize) {
        let mut batch = Batch::intake();
        for number in first..(first + TASKS_IN_A_COMMIT).min(numbers.end) {
            store::task::put_new(&mut batch, &task(number));
        }
        store.commit(batch).await.expect("a commit");
    }
    store.flush().await.expect("a flush");
}

async fn list_repeatedly(store: &Store, now: Timestamp, expected: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        let began = Instant::now();
        let past = store::deadline::list_overdue(store, PARTITION, None, now, LIMIT).await.expect("a page");
        times.push(began.elapsed());
        assert_eq!((past.tasks.len(), past.orphans.len()), (expected, 0));
    }
    times.sort_unstable();
    times
}

async fn measure(tasks: u64) {
    let directory_root = std::env::var_os("BENCH_DIR").map_or_else(|| "target/tmp".into(), PathBuf::from);
    std::fs::create_dir_all(&directory_root).expect("a directory");
    let directory = tempfile::tempdir_in(directory_root).expect("a directory");
    let store = Store::open(&RedbOptions::new(directory.path())).expect("a store");
    println!("{:<40} {:>9} {:>9} {:>9}", "us per scan", "p50", "p99", "max");
    let mut filled = 0;
    for size in [tasks / 1_000, tasks] {
        let began = Instant::now();
        fill(&store, filled..size).await;
        filled = size;
        println!("{size} tasks, written in {:.0} s", began.elapsed().as_secs_f64());
        for (name, now, expected) in [
            ("  no task is overdue", expires(0), 0),
            ("  ten have", expires(10), 10),
            ("  one page of tasks is overdue", expires(LIMIT as u64), LIMIT),
        ] {
            let times = list_repeatedly(&store, now, expected.min(size as usize)).await;
            let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e6;
            println!("{name:<40} {:>9.1} {:>9.1} {:>9.1}", at(50), at(99), at(100));
        }
    }
    store.close().await;
}

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let tasks = std::env::var("BENCH_TASKS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(tasks));
}
