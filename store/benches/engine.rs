//! Throughput of the engine: `cargo bench -p store` prints a table.
//!
//! Measures accepting and settling with 1, 16 and 128 committers. Accepting writes an email row, a recipient row, an
//! event row, a task row and a 10 KB body. Settling does one check, three puts and one delete.
//!
//! `cargo bench -p store -- million` fills a store with a million queued emails and kills the process that did it. Then
//! it measures how long the store takes to open. It needs 12 GB of disk.
//!
//! Directories are created in the build directory unless `BENCH_DIR` names another one. `BENCH_SECONDS` sets the
//! duration of each measurement.

// A benchmark panics on errors.
#![allow(missing_docs, clippy::expect_used)]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use store::engine::{Batch, Body, RedbOptions, ScanOrder, Store};
use store::key::{KeyBuilder, Space, key, prefix_range};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 10 << 10;
const MILLION: u64 = 1_000_000;
const ACCOUNT: [u8; 16] = [7; 16];

fn text(size_bytes: usize) -> Vec<u8> {
    vec![b'x'; size_bytes]
}

fn row(space: Space, number: u64) -> KeyBuilder {
    // Time-ordered ids: the high half increases, the low half is spread.
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let id = (u128::from(number) << 64) | u128::from(spread);
    key(space).id(ACCOUNT).id(id.to_be_bytes())
}

fn task(number: u64) -> Bytes {
    let id = u128::from(number).to_be_bytes();
    key(Space::Task).u16((number % 64) as u16).u64(number / 1000).id(id).build()
}

fn accepted(number: u64, body: &Bytes) -> Batch {
    let mut batch = Batch::intake();
    batch.put_fresh(row(Space::Email, number).build(), text(700));
    batch.put_fresh(row(Space::Recipient, number).u16(0).build(), text(300));
    batch.put_fresh(row(Space::Event, number).build(), text(250));
    batch.put_fresh(task(number), text(150));
    let chunks = [Bytes::from(text(600)), body.slice(600..)];
    batch.put_body(row(Space::Body, number).build(), Body::from_iter(chunks));
    batch
}

fn settled(number: u64) -> Batch {
    let mut batch = Batch::progress();
    batch.check(task(number), Some(Bytes::from(text(150))));
    batch.put(row(Space::Recipient, number).u16(0).build(), text(300));
    batch.put_fresh(row(Space::Attempt, number).build(), text(400));
    batch.put_fresh(row(Space::Event, number + (1 << 40)).build(), text(250));
    batch.delete(task(number));
    batch
}

fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> = after_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    fields.iter().sum::<u64>() * 10_000
}

/// CPU time of each thread so far, by name; the runtime's workers are summed.
fn cpu_by_thread() -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let name = stat.split(['(', ')']).nth(1).unwrap_or_default().to_owned();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        *out.entry(name).or_insert(0) += fields.flat_map(str::parse::<u64>).sum::<u64>() * 10;
    }
    out
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn disk_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_name() != "reserve");
    files.flat_map(|entry| entry.metadata()).map(|found| found.blocks() * 512).sum()
}

struct Run {
    commits: u64,
    seconds: f64,
    cpu_us: f64,
    p50_us: u64,
    p99_us: u64,
    worst_us: u64,
}

/// Runs `committers` tasks, each of which commits one batch after another.
async fn run(
    store: &Store,
    committers: usize,
    until: Until,
    next: &Arc<AtomicU64>,
    make: impl Fn(u64) -> Batch + Send + Sync + 'static,
) -> Run {
    let make = Arc::new(make);
    let stop = Arc::new(AtomicBool::new(false));
    let (started, cpu_before) = (Instant::now(), cpu_us());
    let mut workers = Vec::new();
    for _ in 0..committers {
        let (store, make, stop, next) = (store.clone(), Arc::clone(&make), Arc::clone(&stop), Arc::clone(next));
        workers.push(tokio::spawn(async move {
            let mut took = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if let Until::Number(last) = until
                    && number >= last
                {
                    break;
                }
                let batch = make(number);
                let from = Instant::now();
                store.commit(batch).await.expect("commits");
                took.push(u64::try_from(from.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            took
        }));
    }
    if let Until::Elapsed(length) = until {
        tokio::time::sleep(length).await;
        stop.store(true, Ordering::Relaxed);
    }
    let mut took = Vec::new();
    for worker in workers {
        took.extend(worker.await.expect("runs"));
    }
    let seconds = started.elapsed().as_secs_f64();
    let commits = took.len() as u64;
    took.sort_unstable();
    let at = |part: usize| took.get(took.len() * part / 1000).copied().unwrap_or(0);
    Run {
        commits,
        seconds,
        cpu_us: (cpu_us() - cpu_before) as f64 / commits.max(1) as f64,
        p50_us: at(500),
        p99_us: at(990),
        worst_us: took.last().copied().unwrap_or(0),
    }
}

#[derive(Clone, Copy)]
enum Until {
    Elapsed(Duration),
    Number(u64),
}

fn print(name: &str, committers: usize, run: &Run, disk: Option<u64>) {
    let disk = disk.map_or_else(|| "-".into(), |bytes| (bytes / run.commits.max(1)).to_string());
    println!(
        "{name:<22} {committers:>4} {:>9.0} {:>8} {:>8} {:>9} {:>8.1} {disk:>8}",
        run.commits as f64 / run.seconds,
        run.p50_us,
        run.p99_us,
        run.worst_us,
        run.cpu_us,
    );
}

fn directory(name: &str) -> PathBuf {
    let base = std::env::var_os("BENCH_DIR").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    base.join(format!("engine-{name}-{}", std::process::id()))
}

async fn table(length: Duration, only: Option<&str>) {
    println!(
        "{:<22} {:>4} {:>9} {:>8} {:>8} {:>9} {:>8} {:>8}",
        "what", "by", "commits/s", "p50 us", "p99 us", "worst us", "CPU us", "bytes"
    );
    let body = Bytes::from(text(BODY_BYTES));
    for committers in [1, 16, 128].into_iter().filter(|_| only != Some("settle")) {
        let path = directory("accept");
        let store = Store::open(&RedbOptions::new(&path)).expect("opens");
        let next = Arc::new(AtomicU64::new(0));
        let make = {
            let body = body.clone();
            move |number| accepted(number, &body)
        };
        let accepted = run(&store, committers, Until::Elapsed(length), &next, make).await;
        let (health, threads) = (store.health(), cpu_by_thread());
        store.close().await;
        print("accept 10 KB", committers, &accepted, Some(disk_bytes(&path)));
        println!(
            "{:<22} {:>4} checkpoints, last {} ms, index {} MB; {} groups; CPU ms {threads:?}",
            "",
            health.checkpoints,
            health.last_checkpoint_us / 1000,
            health.index_bytes >> 20,
            health.groups
        );
        std::fs::remove_dir_all(&path).expect("goes");
    }
    for committers in [1, 16, 128].into_iter().filter(|_| only != Some("accept")) {
        let path = directory("settle");
        let store = Store::open(&RedbOptions::new(&path)).expect("opens");
        let next = Arc::new(AtomicU64::new(0));
        let last = if committers == 1 { 20_000 } else { 400_000 };
        let fill = |number| {
            let mut batch = Batch::intake();
            batch.put_fresh(task(number), text(150));
            batch
        };
        run(&store, 256, Until::Number(last), &next, fill).await;
        let next = Arc::new(AtomicU64::new(0));
        let run = run(&store, committers, Until::Number(last), &next, settled).await;
        store.close().await;
        print("settle", committers, &run, None);
        std::fs::remove_dir_all(&path).expect("goes");
    }
}

/// Child process of `million`; the parent kills it.
async fn fill(path: &Path) {
    let store = Store::open(&RedbOptions::new(path)).expect("opens");
    let body = Bytes::from(text(BODY_BYTES));
    let next = Arc::new(AtomicU64::new(0));
    let make = {
        let body = body.clone();
        move |number| accepted(number, &body)
    };
    for part in 1..=10 {
        let filled = run(&store, 128, Until::Number(MILLION * part / 10), &next, make.clone()).await;
        print(&format!("fill {}0 %", part), 128, &filled, None);
    }
    println!("resident memory {} MB", resident_mb());
    for committers in [1, 16, 128] {
        let run = run(&store, committers, Until::Elapsed(Duration::from_secs(4)), &next, make.clone()).await;
        print("accept, a million in", committers, &run, None);
    }
    println!("{:?}; resident memory {} MB; killed now", store.health(), resident_mb());
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("dies");
}

async fn million() {
    let path = directory("million");
    let program = std::env::current_exe().expect("is a program");
    let status = std::process::Command::new(program).arg("fill").arg(&path).status().expect("runs");
    println!("the filling process: {status}");
    let from = Instant::now();
    let store = Store::open(&RedbOptions::new(&path)).expect("opens");
    let opened = from.elapsed();
    let first = store.scan(prefix_range(&[Space::Task as u8]), ScanOrder::Ascending, 100).await.expect("reads");
    println!("opened after the kill in {opened:?}; {} tasks read after {:?}", first.len(), from.elapsed());
    let from = Instant::now();
    store.flush().await.expect("flushes");
    println!("replayed rows checkpointed {:?} later; resident memory {} MB", from.elapsed(), resident_mb());
    let from = Instant::now();
    let mut range = prefix_range(&[Space::Task as u8]);
    let mut count = 0;
    while let Some((last, _)) = {
        let page = store.scan(range.clone(), ScanOrder::Ascending, 10_000).await.expect("reads");
        count += page.len();
        page.into_iter().next_back()
    } {
        range.start = store::key::successor(&last);
    }
    println!("{count} tasks scanned in {:?}; resident memory {} MB", from.elapsed(), resident_mb());
    store.close().await;
    let from = Instant::now();
    let store = Store::open(&RedbOptions::new(&path)).expect("opens");
    println!("opened after a clean end in {:?}", from.elapsed());
    store.close().await;
    println!("bytes on disk {} MB", disk_bytes(&path) >> 20);
    std::fs::remove_dir_all(&path).expect("goes");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let seconds = std::env::var("BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let runtime = tokio::runtime::Runtime::new().expect("starts");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["fill", path] => runtime.block_on(fill(Path::new(path))),
        ["million"] => runtime.block_on(million()),
        [] => runtime.block_on(table(Duration::from_secs(seconds), None)),
        [only, ..] => runtime.block_on(table(Duration::from_secs(seconds), Some(only))),
    }
}
