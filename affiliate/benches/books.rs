//! How long a page of each list takes in a large program, and what an invoice costs in it.
//!
//! `cargo bench -p affiliate --bench books` fills a store on disk with the books of 1,000,000 referrals and 5,000,000
//! commission lines; `REFERRALS`, `LINES`, `PAGES` and `INVOICES` say other numbers, and `BENCH_DIR` another place, where
//! there must be some 30 GB. Books of 10,000 referrals or fewer are audited at the end, larger ones with `AUDIT=1`. It
//! prints two tables. The bars are 20 ms for any page, and 2 ms of CPU for an invoice, all that is committed with it
//! included.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on fails, and says what it saw"
)]

#[path = "books/copies.rs"]
mod copies;
#[path = "books/gauge.rs"]
mod gauge;
#[path = "books/house.rs"]
mod house;
#[path = "books/invoices.rs"]
mod invoices;
#[path = "books/lists.rs"]
mod lists;
#[path = "books/partners.rs"]
mod partners;
#[path = "books/payouts.rs"]
mod payouts;
#[path = "books/scale.rs"]
mod scale;
#[path = "books/told.rs"]
mod told;

use affiliate::audit::audit;
use store::engine::{RedbOptions, Store};

use self::house::House;
use self::scale::Scale;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Books of so many referrals are audited without being asked.
const AUDITED_MAX: u64 = 10_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn measure() {
    let place = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    std::fs::create_dir_all(&place).unwrap();
    let directory = tempfile::tempdir_in(place).unwrap();
    let store = Store::open(&RedbOptions::new(directory.path().join("store"))).unwrap();
    let began = gauge::start();
    let house = House::open(store).await;
    let scale = Scale::new(house.now, (number("REFERRALS", 1_000_000), number("LINES", 5_000_000)));
    let campaigns = partners::write(&house, &scale).await;
    let written = copies::write(&house, &scale).await;
    let drafted = payouts::write(&house, &scale, &written).await;
    house.office.store().flush().await.unwrap();
    println!(
        "{} partners, {} referrals, {} lines and {} payouts written in {:.0} s: {} MB on disk, at most {} MB in memory",
        scale.partners,
        scale.referrals,
        written.lines,
        drafted.payouts,
        began.elapsed().as_secs_f64(),
        gauge::disk_mb(directory.path()),
        gauge::memory_mb(),
    );
    lists::measure(&house, &scale, (&campaigns, &drafted)).await;
    invoices::measure(&house, &scale, number("INVOICES", 2_000)).await;
    if scale.referrals <= AUDITED_MAX || number("AUDIT", 0) == 1 {
        let began = gauge::start();
        let audit = audit(&house.ledger(), house.account).await.unwrap();
        assert!(audit.ok, "{:#?}", audit.broken.iter().take(20).collect::<Vec<_>>());
        println!("audited in {:.0} s: nothing is broken. {:?}", began.elapsed().as_secs_f64(), audit.checked);
    }
    house.office.store().close().await;
}

fn main() {
    // `cargo test --benches` only wants to see that it runs.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(measure());
}
