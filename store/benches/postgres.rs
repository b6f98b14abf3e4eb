//! The PostgreSQL engine compared with the bare database: the cost of checks, locks and version marks.
//!
//! `cargo bench -p store --bench postgres` starts Debian's server in a private directory, with fsync on. It prints the
//! messages per second that the engine accepts: email, recipient, event, task, a 10 KB body and one fencing check each.
//! It also prints the rate of the same rows and bytes inserted directly, pipelined, in groups of the same size. Both
//! share the machine with the server, so compare the ratio.
//!
//! `-- SECONDS` sets the duration of each measurement (default 3).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

#[path = "../tests/database/mod.rs"]
mod database;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use database::Server;
use store::engine::{Batch, PostgresOptions, Store};
use store::key::{Space, key};
use tokio_postgres::NoTls;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 10_240;
/// Rows of an accepted message: key space and size in bytes.
const ROWS: [(Space, usize); 4] =
    [(Space::Email, 700), (Space::Recipient, 300), (Space::Event, 250), (Space::Task, 350)];

fn id(number: u64) -> [u8; 16] {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(number) << 64) | u128::from(spread)).to_be_bytes()
}

fn row_key(space: Space, number: u64) -> Bytes {
    key(space).id([7; 16]).id(id(number)).build()
}

fn fence() -> (Bytes, Bytes) {
    (key(Space::Partition).u16(1).build(), Bytes::from_static(b"[1,{\"epoch\":1,\"node\":\"bench\"}]"))
}

fn accepted(number: u64) -> Batch {
    let mut batch = Batch::intake();
    let (at, holds) = fence();
    batch.check(at, Some(holds));
    for (space, size_bytes) in ROWS {
        batch.put_fresh(row_key(space, number), vec![b'x'; size_bytes]);
    }
    batch.put_body(row_key(Space::Body, number), vec![b'x'; BODY_BYTES]);
    batch
}

struct Measured {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

fn measured(mut took: Vec<Duration>, seconds: f64) -> Measured {
    took.sort_unstable();
    let quantile = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    Measured { per_second: took.len() as f64 / seconds, p50_ms: quantile(50), p99_ms: quantile(99) }
}

async fn engine(url: &str, nodes: usize, sessions: usize, time: Duration) -> Measured {
    let mut stores = Vec::new();
    for _ in 0..nodes {
        stores.push(Store::connect(&PostgresOptions::new(url, "bench")).await.unwrap());
    }
    let (at, holds) = fence();
    let mut batch = Batch::progress();
    batch.put(at, holds);
    stores[0].commit(batch).await.unwrap();
    let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let started = Instant::now();
    let sessions: Vec<_> = (0..sessions)
        .map(|n| {
            let (store, stop, next) = (stores[n % nodes].clone(), Arc::clone(&stop), Arc::clone(&next));
            tokio::spawn(async move {
                let mut took = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let batch = accepted(next.fetch_add(1, Ordering::Relaxed));
                    let began = Instant::now();
                    store.commit(batch).await.unwrap();
                    took.push(began.elapsed());
                }
                took
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for session in sessions {
        took.extend(session.await.unwrap());
    }
    let seconds = started.elapsed().as_secs_f64();
    for store in stores {
        store.close().await;
    }
    measured(took, seconds)
}

/// Two connections. Each sends one transaction per group: one statement for the rows and one for the bodies, pipelined.
async fn bare(url: &str, group: usize, time: Duration) -> Measured {
    let numbers = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let lanes = (0..2).map(|_| {
        let (url, numbers) = (url.to_owned(), Arc::clone(&numbers));
        tokio::spawn(async move {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            let insert = |table| format!("INSERT INTO {table} SELECT * FROM unnest($1::bytea[], $2::bytea[])");
            let rows = client.prepare(&insert("postrider_rows")).await.unwrap();
            let bodies = client.prepare(&insert("postrider_bodies")).await.unwrap();
            let mut took = Vec::new();
            let body = vec![b'x'; BODY_BYTES];
            while started.elapsed() < time {
                let first = numbers.fetch_add(group as u64, Ordering::Relaxed);
                let mut keys = Vec::with_capacity(group * ROWS.len());
                let mut values = Vec::with_capacity(group * ROWS.len());
                let mut body_keys = Vec::with_capacity(group);
                for number in first..first + group as u64 {
                    for (space, size_bytes) in ROWS {
                        keys.push(row_key(space, number).to_vec());
                        values.push(vec![b'x'; size_bytes]);
                    }
                    body_keys.push(row_key(Space::Body, number).to_vec());
                }
                let contents = vec![&body[..]; group];
                let began = Instant::now();
                let (begin, rows, bodies, committed) = futures_util::future::join4(
                    client.batch_execute("BEGIN"),
                    client.execute(&rows, &[&keys, &values]),
                    client.execute(&bodies, &[&body_keys, &contents]),
                    client.batch_execute("COMMIT"),
                )
                .await;
                begin.and(rows.map(drop)).and(bodies.map(drop)).and(committed).unwrap();
                took.extend(std::iter::repeat_n(began.elapsed(), group));
            }
            took
        })
    });
    let mut took = Vec::new();
    for lane in lanes.collect::<Vec<_>>() {
        took.extend(lane.await.unwrap());
    }
    measured(took, started.elapsed().as_secs_f64())
}

fn main() {
    let seconds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(3.0);
    let time = Duration::from_secs_f64(seconds);
    let server = Server::start(&["fsync=on", "full_page_writes=on", "max_wal_size=4GB", "shared_buffers=512MB"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("messages of 10 KB accepted             per second    p50 ms    p99 ms");
    let show = |name: &str, m: &Measured| {
        println!("{name:36} {:12.0} {:9.1} {:9.1}", m.per_second, m.p50_ms, m.p99_ms);
    };
    for sessions in [1, 20, 100] {
        let found = runtime.block_on(async {
            let url = server.database();
            engine(&url, 1, sessions, time).await
        });
        show(&format!("engine, 1 node, {sessions} sessions"), &found);
    }
    for nodes in [2, 3] {
        let found = runtime.block_on(async { engine(&server.database(), nodes, 100, time).await });
        show(&format!("engine, {nodes} nodes, 100 sessions"), &found);
    }
    for group in [50, 100] {
        let found = runtime.block_on(async {
            let url = server.database();
            Store::connect(&PostgresOptions::new(&*url, "bench")).await.unwrap().close().await;
            bare(&url, group, time).await
        });
        show(&format!("bare, 2 connections, groups of {group}"), &found);
    }
}
