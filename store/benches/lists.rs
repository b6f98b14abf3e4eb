//! Time per page of a filtered list: `cargo bench -p store --bench lists` prints a table.
//!
//! Fills a store on disk with a million emails of one account (`BENCH_EMAILS` overrides the number) and their index
//! terms. Then it reads pages of 25 with each filter, from random positions. `BENCH_KEEP` names a directory that is not
//! deleted, so that a later run can reuse the filled store.

// A benchmark panics on errors.
#![allow(missing_docs, clippy::expect_used)]

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use message::header::HeaderSummary;
use model::email::{Category, Email, EmailStatus, Ingress, Tag};
use model::email_index::{EmailFilter, subject_words};
use model::event::{Event, EventKind};
use model::id::{AccountId, EmailId, EventId};
use model::recipient::{Recipient, RecipientKind, RecipientState};
use store::email_index::{IndexChange, search};
use store::engine::{Batch, Body, RedbOptions, Store};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOGETHER: u64 = 500;
const PAGES: u64 = 1_000;
const LIMIT: usize = 25;

fn account() -> AccountId {
    AccountId::new(Timestamp::UNIX_EPOCH, 1)
}

fn born(number: u64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + number as i64 * 10).expect("a time")
}

fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

fn id(number: u64) -> EmailId {
    EmailId::new(born(number), spread(number).into())
}

fn email(number: u64) -> Email {
    let mail = |text: String| text.parse().expect("a mailbox");
    let tag = |name: &str, value: u64| Tag { name: name.to_owned(), value: value.to_string() };
    let from = mail(format!("sender{}@example.com", number % 5));
    Email {
        domain: Some("example.com".parse().expect("a name")),
        header: HeaderSummary {
            to: vec![mail(format!("user{}@example.net", spread(number) % 100_000))],
            subject: format!("Your order {number} has been shipped"),
            message_id: format!("{}@example.com", id(number)),
            ..HeaderSummary::default()
        },
        tags: vec![tag("half", number % 2), tag("customer", spread(number) % 10_000)],
        category: [Category::Transactional, Category::Product, Category::Newsletter][(number % 3) as usize],
        size_bytes: 10_000,
        ..Email::new(id(number), account(), Ingress::Api, from, born(number))
    }
}

fn recipient(number: u64) -> Recipient {
    let state = match spread(number) % 100 {
        0 => RecipientState::Bounced,
        1 => RecipientState::Failed,
        _ => RecipientState::Delivered,
    };
    Recipient {
        index: 0,
        address: format!("user{}@example.net", spread(number) % 100_000).parse().expect("an address"),
        kind: RecipientKind::To,
        state,
        attempts: 1,
        last_response: None,
        error: None,
        mx_host: Some("mx.example.net".to_owned()),
        last_event: (EventKind::Delivered, born(number)),
        delivered_at: Some(born(number)),
        bounced_at: None,
        complained_at: None,
        next_attempt_at: None,
        notify: model::recipient::DsnOptions::default(),
    }
}

async fn fill(store: &Store, emails: u64) {
    let mut change = IndexChange::default();
    change.add_event(&Event {
        id: EventId::new(born(0), 0),
        account: account(),
        subject: id(0).into(),
        kind: EventKind::Sent,
        recipient: None,
        created_at: born(0),
        detail: serde_json::json!({}),
    });
    for first in (0..emails).step_by(TOGETHER as usize) {
        let numbers = first..(first + TOGETHER).min(emails);
        let mut batch = Batch::intake();
        for number in numbers.clone() {
            store::email::create(&mut batch, &email(number), &[recipient(number)], Body::default());
        }
        store.commit(batch).await.expect("a commit");
        let ids: Vec<_> = numbers.map(|number| (account(), id(number))).collect();
        let found = store::email::get_each(store, &ids, &|_| None).await.expect("emails");
        let changed: Vec<_> = found.iter().flatten().map(|found| (found, change)).collect();
        let mut batch = Batch::progress();
        store::email_index::update(store, &mut batch, &changed).await.expect("terms");
        store.commit(batch).await.expect("a commit");
    }
    store.flush().await.expect("a flush");
}

/// Waits until the log that the filling wrote is checkpointed, so that this cost is not measured as a page's.
async fn calm(store: &Store) {
    let mut before = u64::MAX;
    while store.health().segments != before {
        before = store.health().segments;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

fn filters(emails: u64) -> Vec<(&'static str, EmailFilter)> {
    let none = EmailFilter::default;
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let to = |text: &str| vec![text.parse().expect("an address")];
    vec![
        ("to", EmailFilter { to: to("user77@example.net"), ..none() }),
        ("to nobody", EmailFilter { to: to("nobody@example.net"), ..none() }),
        ("from", EmailFilter { from: to("sender3@example.com"), ..none() }),
        ("tag of half", EmailFilter { tags: tags(&["half:1"]), ..none() }),
        ("tag of few", EmailFilter { tags: tags(&["customer:77"]), ..none() }),
        ("tag of few and of half", EmailFilter { tags: tags(&["customer:77", "half:1"]), ..none() }),
        ("two tags never together", EmailFilter { tags: tags(&["half:0", "half:1"]), ..none() }),
        ("q, two common words", EmailFilter { words: subject_words("order shipped"), ..none() }),
        ("q, one email's", EmailFilter { words: subject_words(&format!("order {}", emails / 2)), ..none() }),
        ("status delivered", EmailFilter { statuses: vec![EmailStatus::Delivered], ..none() }),
        ("status bounced", EmailFilter { statuses: vec![EmailStatus::Bounced], ..none() }),
        ("status cancelled", EmailFilter { statuses: vec![EmailStatus::Cancelled], ..none() }),
        (
            "status bounced, newsletter, from",
            EmailFilter {
                statuses: vec![EmailStatus::Bounced],
                categories: vec![Category::Newsletter],
                from: to("sender2@example.com"),
                ..none()
            },
        ),
        ("category transactional", EmailFilter { categories: vec![Category::Transactional], ..none() }),
        ("created between", EmailFilter { after: Some(born(emails / 4)), before: Some(born(emails / 2)), ..none() }),
    ]
}

fn report(name: &str, mut times: Vec<Duration>, short: u64) {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{name:<34} {:>8.3} {:>8.3} {:>8.3}   {short:>5}",
        ms(at(0.5)),
        ms(at(0.99)),
        times.last().copied().map_or(0.0, ms)
    );
}

async fn measure(emails: u64) {
    let directory_root = std::env::var_os("BENCH_DIR").map_or_else(|| "target/tmp".into(), PathBuf::from);
    std::fs::create_dir_all(&directory_root).expect("a directory");
    let passing = tempfile::tempdir_in(directory_root).expect("a directory");
    let persistent = std::env::var_os("BENCH_KEEP").map(PathBuf::from);
    let directory = persistent.as_deref().unwrap_or(passing.path()).join(emails.to_string());
    let filled = directory.with_extension("filled");
    std::fs::create_dir_all(&directory).expect("a directory");
    let store = Store::open(&RedbOptions::new(&directory)).expect("a store");
    if !filled.exists() {
        let began = Instant::now();
        fill(&store, emails).await;
        std::fs::write(&filled, []).expect("a file");
        println!("{emails} emails and their index terms written in {:.0} s", began.elapsed().as_secs_f64());
    }
    calm(&store).await;
    println!("{:<34} {:>8} {:>8} {:>8}   {:>5}", "ms per page", "p50", "p99", "max", "short");
    let befores = || (0..PAGES).map(|n| Some(id(spread(n * 7 + 1) % emails)));
    let mut times = Vec::new();
    for before in befores() {
        let began = Instant::now();
        store::email::list(&store, account(), before, LIMIT + 1).await.expect("a page");
        times.push(began.elapsed());
    }
    report("no filter", times, 0);
    for (name, filter) in filters(emails) {
        let (mut times, mut short) = (Vec::new(), 0);
        for before in befores() {
            let began = Instant::now();
            let page = search::search(&store, account(), &filter, before, LIMIT).await.expect("a page");
            times.push(began.elapsed());
            short += u64::from(page.emails.len() < LIMIT && page.next.is_some());
        }
        report(name, times, short);
    }
    store.close().await;
}

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let emails = std::env::var("BENCH_EMAILS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(emails));
}
