//! Benchmarks of signing: `cargo bench -p dns`. Prints microseconds per message, the median of several rounds. Compare
//! results of the same machine only.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use dns::dkim_key::DkimKeys;
use dns::sign::{Signer, dkim2};
use dns::signing_pool::SigningPool;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use tokio::time::Instant;

const ROUNDS: usize = 7;
const DOMAINS: usize = 10_000;
const POOL_JOBS: usize = 4_000;

fn main() {
    let keys = DkimKeys::generate().unwrap();
    let small = message(10_000);
    let large = message(1_000_000);
    println!("{:40} {:>12} {:>12}", "µs per message", "10 KB", "1 MB");
    for (name, rsa, ed25519) in
        [("RSA-2048", true, false), ("Ed25519", false, true), ("RSA-2048 and Ed25519", true, true)]
    {
        let signer = signer(&keys, 0, rsa, ed25519);
        let micros = |message: &[u8], count| per_call(count, |_| signer.sign(&[message], now()).unwrap());
        println!("{name:40} {:12.1} {:12.1}", micros(&small, 300), micros(&large, 50));
    }
    let micros = |message: &[u8], count| per_call(count, |_| dkim2::message_instance(&[message]).unwrap());
    println!("{:40} {:12.1} {:12.1}", "DKIM2: Message-Instance", micros(&small, 300), micros(&large, 50));
    transactions(&keys, &small);
    println!();
    println!("load a signer, both keys {:>28.1}", per_call(200, |n| signer(&keys, n, true, true)));

    let before = resident_bytes();
    let signers: Vec<Signer> = (0..DOMAINS).map(|n| signer(&keys, n, true, true)).collect();
    let in_turn = per_call(DOMAINS, |n| signers[n].sign(&[&small], now()).unwrap());
    println!("both, {DOMAINS} domains in turn {in_turn:>23.1}");
    println!("KiB per signer, used once {:>26.1}", (resident_bytes() - before) / 1024.0 / DOMAINS as f64);
    pool(&keys, &small);
}

/// The additional cost per recipient, which does not depend on the size of the message.
fn transactions(keys: &DkimKeys, message: &[u8]) {
    let instance = dkim2::message_instance(&[message]).unwrap().unwrap();
    let sender: Address = "b-01kb3yx8m0000000000000000-0-abcdefgh@rp.d0.example.com".parse().unwrap();
    let recipient: Address = "bob@example.net".parse().unwrap();
    for (name, ed25519) in [("RSA-2048", false), ("Ed25519", true)] {
        let signer = signer(keys, 0, true, ed25519);
        let sign = |_| signer.sign_transaction(&instance, Some(&sender), &recipient, now()).unwrap();
        println!("{:40} {:12.1}", format!("DKIM2: a transaction, {name}"), per_call(300, sign));
    }
}

/// The second field of statm counts the resident pages of 4 KiB.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

/// Measures all cores at once, and the overhead of a thread switch.
fn pool(keys: &DkimKeys, message: &[u8]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let content = Bytes::copy_from_slice(message);
    for (name, rsa) in [("RSA-2048 and Ed25519", true), ("Ed25519", false)] {
        let signer = Arc::new(signer(keys, 0, rsa, true));
        let (alone, together) = runtime.block_on(async {
            let pool = Arc::new(SigningPool::start(None).unwrap());
            let sign_once = || pool.sign(Arc::clone(&signer), vec![content.clone()], now());
            let start = Instant::now();
            for _ in 0..500 {
                sign_once().await.unwrap();
            }
            let alone = start.elapsed().as_secs_f64() * 1e6 / 500.0;
            let start = Instant::now();
            let tasks: Vec<_> = (0..POOL_JOBS)
                .map(|_| {
                    let (pool, signer, content) = (Arc::clone(&pool), Arc::clone(&signer), content.clone());
                    tokio::spawn(async move { pool.sign(signer, vec![content], now()).await })
                })
                .collect();
            for task in tasks {
                task.await.unwrap().unwrap();
            }
            (alone, start.elapsed().as_secs_f64() * 1e6 / POOL_JOBS as f64)
        });
        println!("pool, {name}: one at a time {alone:.1}, {POOL_JOBS} at once {together:.1}");
    }
}

fn signer(keys: &DkimKeys, n: usize, rsa: bool, ed25519: bool) -> Signer {
    let domain: DomainName = format!("d{n}.example.com").parse().unwrap();
    Signer::new(&domain, rsa.then_some(("s1", &keys.rsa)), ed25519.then_some(("s1e", &keys.ed25519))).unwrap()
}

fn message(bytes: usize) -> Vec<u8> {
    let mut message = b"Received: from client.example.com by mx1.example.net with ESMTPSA id 01ARZ3NDEKTSV4\r\n\
        From: Ada <ada@example.com>\r\nTo: Bob <bob@example.net>\r\nSubject: A benchmark of signatures\r\n\
        Date: Mon, 21 Sep 2026 10:00:00 +0000\r\nMessage-ID: <1@example.com>\r\nMIME-Version: 1.0\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\r\n"
        .to_vec();
    while message.len() < bytes {
        message.extend_from_slice(b"The quick brown fox jumps over the lazy dog, and again, until the line ends.\r\n");
    }
    message
}

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

/// Microseconds per call, the median of the rounds.
fn per_call<T>(count: usize, mut call: impl FnMut(usize) -> T) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for n in 0..count {
                black_box(call(n));
            }
            start.elapsed().as_secs_f64() * 1e6 / count as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
