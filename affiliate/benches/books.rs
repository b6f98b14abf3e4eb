//! Benchmark of list pages and invoice ingestion in a large program.
//!
//! `cargo bench -p affiliate --bench books` fills a store on disk with 1,000,000 referrals and 5,000,000 commission
//! lines. The variables `REFERRALS`, `LINES`, `PAGES` and `INVOICES` change the numbers, `BENCH_DIR` the directory,
//! which needs about 30 GB. Ledgers of up to 10,000 referrals are audited at the end, larger ones with `AUDIT=1`. The
//! output is two tables. Targets: 20 ms for any page, and 2 ms of CPU per invoice including its commit.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, and prints its results"
)]

#[path = "books/copies.rs"]
mod copies;
#[path = "books/fixture.rs"]
mod fixture;
#[path = "books/gauge.rs"]
mod gauge;
#[path = "books/invoices.rs"]
mod invoices;
#[path = "books/lists.rs"]
mod lists;
#[path = "books/partners.rs"]
mod partners;
#[path = "books/payouts.rs"]
mod payouts;
#[path = "books/processor_objects.rs"]
mod processor_objects;
#[path = "books/scale.rs"]
mod scale;

use affiliate::audit::audit;
use store::engine::{RedbOptions, Store};

use self::fixture::Fixture;
use self::scale::Scale;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of referrals up to which the ledger is audited by default.
const AUDITED_MAX: u64 = 10_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn measure() {
    let directory_root = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    std::fs::create_dir_all(&directory_root).unwrap();
    let directory = tempfile::tempdir_in(directory_root).unwrap();
    let store = Store::open(&RedbOptions::new(directory.path().join("store"))).unwrap();
    let started = gauge::start();
    let fixture = Fixture::open(store).await;
    let scale = Scale::new(fixture.now, number("REFERRALS", 1_000_000), number("LINES", 5_000_000));
    let campaigns = partners::write(&fixture, &scale).await;
    let written = copies::write(&fixture, &scale).await;
    let drafted = payouts::write(&fixture, &scale, &written).await;
    fixture.service.ledger.store().flush().await.unwrap();
    println!(
        "{} partners, {} referrals, {} lines and {} payouts written in {:.0} s: {} MB on disk, at most {} MB in memory",
        scale.partners,
        scale.referrals,
        written.lines,
        drafted.payouts,
        started.elapsed().as_secs_f64(),
        gauge::disk_mb(directory.path()),
        gauge::memory_mb(),
    );
    lists::measure(&fixture, &scale, &campaigns, &drafted).await;
    invoices::measure(&fixture, &scale, number("INVOICES", 2_000)).await;
    if scale.referrals <= AUDITED_MAX || number("AUDIT", 0) == 1 {
        let started = gauge::start();
        let audit = audit(&fixture.ledger(), fixture.account).await.unwrap();
        assert!(audit.ok, "{:#?}", audit.broken.iter().take(20).collect::<Vec<_>>());
        println!("audited in {:.0} s: no violations. {:?}", started.elapsed().as_secs_f64(), audit.checked);
    }
    fixture.service.ledger.store().close().await;
}

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(measure());
}
