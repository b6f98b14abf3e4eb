//! Test suite for every engine: the guarantees of the store, independent of the implementation.
//!
//! An engine is passed as a [`Subject`], which opens empty stores and reopens one after it was closed. Each guarantee
//! is a function. [`run`] runs all of them, and then random operations compared with the model.

#![allow(dead_code, unreachable_pub)]

use bytes::Bytes;
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use store::engine::{Batch, Body, CommitError, Key, ScanOrder, Store};
use store::key::{Space, prefix_range, successor};

/// An engine under test.
pub trait Subject {
    /// Creates an empty store.
    fn fresh(&self) -> impl Future<Output = Store>;
    /// Closes a store and opens the same data again.
    fn again(&self, store: Store) -> impl Future<Output = Store>;
}

pub fn k(bytes: &[u8]) -> Key {
    Bytes::copy_from_slice(bytes)
}

/// Runs all tests on an engine.
pub fn run(subject: &impl Subject, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        reads_what_was_written(subject).await;
        a_failed_check_leaves_nothing(subject).await;
        scans_both_ways(subject).await;
        one_of_many_wins(subject).await;
        bodies_in_pieces(subject).await;
        limits_are_refused(subject).await;
        a_later_put_in_one_batch_wins(subject).await;
    });
    random_work(subject, &runtime, cases);
}

async fn reads_what_was_written(subject: &impl Subject) {
    let store = subject.fresh().await;
    let mut batch = Batch::intake();
    batch.put(k(b"a"), &b"1"[..]).put(k(b"b"), &b""[..]).put_body(k(b"a"), Bytes::from_static(b"body of a"));
    store.commit(batch).await.unwrap();
    let wanted = [Some(k(b"1")), None, Some(k(b"")), Some(k(b"1"))];
    let keys = [k(b"a"), k(b"c"), k(b"b"), k(b"a")];
    for store in [store.clone(), subject.again(store).await] {
        if store.commit(Batch::progress()).await.is_err() {
            continue;
        }
        assert_eq!(store.get_many(&keys).await.unwrap(), wanted);
        assert_eq!(store.body(&k(b"a")).await.unwrap(), Some(k(b"body of a")));
        // Rows and bodies are separate spaces.
        assert_eq!(store.body(&k(b"b")).await.unwrap(), None);
    }
}

async fn a_failed_check_leaves_nothing(subject: &impl Subject) {
    let store = subject.fresh().await;
    let mut first = Batch::intake();
    first.check(k(b"a"), None).put(k(b"a"), &b"1"[..]);
    store.commit(first.clone()).await.unwrap();
    assert!(matches!(store.commit(first).await, Err(CommitError::Conflict { key }) if key == k(b"a")));
    let mut wrong = Batch::progress();
    wrong.check(k(b"a"), Some(k(b"2"))).put(k(b"b"), &b"x"[..]).delete(k(b"a"));
    wrong.put_body(k(b"b"), Bytes::from_static(b"x"));
    assert!(matches!(store.commit(wrong).await, Err(CommitError::Conflict { .. })));
    assert_eq!(store.get_many(&[k(b"a"), k(b"b")]).await.unwrap(), [Some(k(b"1")), None]);
    assert_eq!(store.body(&k(b"b")).await.unwrap(), None);
    let mut right = Batch::progress();
    right.check(k(b"a"), Some(k(b"1"))).delete(k(b"a"));
    store.commit(right).await.unwrap();
    let mut conflicting = Batch::progress();
    conflicting.check(k(b"a"), None).check(k(b"zz"), None).put(k(b"a"), &b"3"[..]);
    store.commit(conflicting).await.unwrap();
    assert_eq!(store.get(&k(b"a")).await.unwrap(), Some(k(b"3")));
}

async fn scans_both_ways(subject: &impl Subject) {
    let store = subject.fresh().await;
    let mut batch = Batch::intake();
    for number in 0..10u8 {
        batch.put(k(&[1, number]), vec![number]);
    }
    batch.put(k(&[0]), &b"before"[..]).put(k(&[2]), &b"after"[..]);
    store.commit(batch).await.unwrap();
    store.flush().await.unwrap();
    let mut batch = Batch::progress();
    batch.delete(k(&[1, 0])).delete(k(&[1, 9])).delete(k(&[1, 5])).put(k(&[1, 3]), &b"new"[..]);
    store.commit(batch).await.unwrap();
    let numbers = async |range, order, limit| {
        let rows = store.scan(range, order, limit).await.unwrap();
        rows.into_iter().map(|(key, _)| key[1]).collect::<Vec<u8>>()
    };
    assert_eq!(numbers(prefix_range(&[1]), ScanOrder::Ascending, 99).await, [1, 2, 3, 4, 6, 7, 8]);
    assert_eq!(numbers(prefix_range(&[1]), ScanOrder::Descending, 99).await, [8, 7, 6, 4, 3, 2, 1]);
    assert_eq!(numbers(prefix_range(&[1]), ScanOrder::Ascending, 2).await, [1, 2]);
    assert_eq!(numbers(prefix_range(&[1]), ScanOrder::Descending, 3).await, [8, 7, 6]);
    assert_eq!(numbers(k(&[1, 3])..k(&[1, 7]), ScanOrder::Ascending, 99).await, [3, 4, 6]);
    assert_eq!(numbers(successor(&[1, 3])..k(&[1, 7]), ScanOrder::Descending, 99).await, [6, 4]);
    assert!(numbers(k(&[1, 7])..k(&[1, 3]), ScanOrder::Ascending, 99).await.is_empty());
    assert!(numbers(prefix_range(&[1]), ScanOrder::Ascending, 0).await.is_empty());
    assert_eq!(store.get(&k(&[1, 3])).await.unwrap(), Some(k(b"new")));
}

async fn one_of_many_wins(subject: &impl Subject) {
    let store = subject.fresh().await;
    let claims = (0..50u8).map(|number| {
        let mut batch = Batch::progress();
        batch.check(k(b"lease"), None).put(k(b"lease"), vec![number]).put(k(&[7, number]), vec![number]);
        store.commit(batch)
    });
    let results = join_all(claims).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let won = results.iter().position(Result::is_ok).unwrap() as u8;
    assert_eq!(store.get(&k(b"lease")).await.unwrap(), Some(k(&[won])));
    assert_eq!(store.scan(prefix_range(&[7]), ScanOrder::Ascending, 99).await.unwrap(), [(k(&[7, won]), k(&[won]))]);
}

async fn bodies_in_pieces(subject: &impl Subject) {
    let store = subject.fresh().await;
    let large = Bytes::from(vec![b'x'; 300_000]);
    let body: Body = [k(b"head"), Bytes::new(), large.clone(), k(b"tail")].into_iter().collect();
    let whole = body.to_bytes();
    let mut batch = Batch::intake();
    batch.put_body(k(b"1"), body).put_body(k(b"2"), Body::default()).put_body(k(b"3"), large.clone());
    store.commit(batch).await.unwrap();
    assert_eq!(store.body(&k(b"1")).await.unwrap(), Some(whole));
    assert_eq!(store.body(&k(b"2")).await.unwrap(), Some(Bytes::new()));
    assert_eq!(store.body(&k(b"3")).await.unwrap(), Some(large));
    let mut batch = Batch::progress();
    batch.delete_body(k(b"1")).put_body(k(b"3"), k(b"other")).delete_body(k(b"4"));
    store.commit(batch).await.unwrap();
    assert_eq!(store.body(&k(b"1")).await.unwrap(), None);
    assert_eq!(store.body(&k(b"3")).await.unwrap(), Some(k(b"other")));
}

async fn limits_are_refused(subject: &impl Subject) {
    let store = subject.fresh().await;
    let mut batch = Batch::intake();
    batch.put(k(&[1; 1025]), &b""[..]);
    assert!(matches!(store.commit(batch).await, Err(CommitError::TooLarge(_))));
    let mut batch = Batch::intake();
    batch.put(k(&[1; 1024]), &b"fits"[..]);
    store.commit(batch).await.unwrap();
    let mut batch = Batch::intake();
    batch.put(k(b"v"), vec![0; (4 << 20) + 1]);
    assert!(matches!(store.commit(batch).await, Err(CommitError::TooLarge(_))));
    assert_eq!(store.get(&k(b"v")).await.unwrap(), None);
}

async fn a_later_put_in_one_batch_wins(subject: &impl Subject) {
    let store = subject.fresh().await;
    let mut batch = Batch::intake();
    batch.put_fresh(k(b"a"), &b"1"[..]).delete(k(b"a")).put(k(b"a"), &b"2"[..]);
    batch.put_fresh(k(b"b"), &b"1"[..]).delete(k(b"b"));
    batch.put_body(k(b"c"), k(b"1")).put_body(k(b"c"), k(b"22"));
    store.commit(batch).await.unwrap();
    let store = subject.again(store).await;
    assert_eq!(store.get_many(&[k(b"a"), k(b"b")]).await.unwrap(), [Some(k(b"2")), None]);
    assert_eq!(store.body(&k(b"c")).await.unwrap(), Some(k(b"22")));
}

/// One change of a random batch.
#[derive(Debug, Clone)]
pub enum Change {
    Check(Key, bool),
    Put(Key, Vec<u8>),
    Fresh(Vec<u8>),
    Delete(Key),
    DeleteFresh(usize),
    Body(Key, Vec<u8>),
    DeleteBody(Key),
}

/// One random operation.
#[derive(Debug, Clone)]
pub enum Work {
    /// Batches committed concurrently, which may share a group.
    Commit(Vec<Vec<Change>>),
    Get(Vec<Key>),
    Scan(Key, Key, bool, usize),
    ReadBody(Key),
    Flush,
    Again,
}

/// Few different keys, so that operations overlap.
pub fn any_key() -> impl Strategy<Value = Key> {
    // Rows of the space of emails may be compressed.
    let byte = prop_oneof![Just(0u8), Just(1), Just(Space::Email as u8), Just(0xFE), Just(0xFF)];
    proptest::collection::vec(byte, 0..4).prop_map(Bytes::from)
}

/// Random bytes, or a row as JSON. None begins with F5, like a row that cannot be decompressed.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_map(|byte| if byte == 0xF5 { 0 } else { byte });
    let field = prop_oneof![
        any::<u64>().prop_map(|id| format!(r#""id":"msg_{id}","account":"acct_01","#)),
        any::<u8>().prop_map(|second| format!(r#""created_at":"2026-11-2{second}","state":"queued","#)),
    ];
    prop_oneof![
        2 => proptest::collection::vec(byte, 0..40),
        2 => proptest::collection::vec(field, 0..12).prop_map(|fields| format!("[1,{{{}}}]", fields.concat()).into()),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => (any_key(), proptest::bool::weighted(0.8)).prop_map(|(key, right)| Change::Check(key, right)),
        4 => (any_key(), any_value()).prop_map(|(key, value)| Change::Put(key, value)),
        2 => any_value().prop_map(Change::Fresh),
        2 => any_key().prop_map(Change::Delete),
        2 => (0usize..40).prop_map(Change::DeleteFresh),
        2 => (any_key(), proptest::collection::vec(any::<u8>(), 0..3000)).prop_map(|(k, b)| Change::Body(k, b)),
        1 => any_key().prop_map(Change::DeleteBody),
    ]
}

/// Several concurrent batches.
pub fn any_commit() -> impl Strategy<Value = Vec<Vec<Change>>> {
    proptest::collection::vec(proptest::collection::vec(any_change(), 0..6), 1..5)
}

fn any_work() -> impl Strategy<Value = Work> {
    prop_oneof![
        8 => any_commit().prop_map(Work::Commit),
        2 => proptest::collection::vec(any_key(), 0..6).prop_map(Work::Get),
        4 => (any_key(), any_key(), any::<bool>(), 0usize..8).prop_map(|(a, b, up, n)| Work::Scan(a, b, up, n)),
        2 => any_key().prop_map(Work::ReadBody),
        1 => Just(Work::Flush),
        1 => Just(Work::Again),
    ]
}

/// Fresh keys start with a byte that no other key has.
fn fresh_key(number: usize) -> Key {
    Bytes::from([vec![9], number.to_be_bytes().to_vec()].concat())
}

/// Builds a batch of these changes, with correct checks taken from the model.
pub async fn batch_of(changes: &[Change], model: &Store, fresh: &mut usize) -> Batch {
    let mut batch = Batch::progress();
    for change in changes {
        match change {
            Change::Check(key, true) => batch.check(key.clone(), model.get(key).await.unwrap()),
            Change::Check(key, false) => batch.check(key.clone(), Some(k(b"never written"))),
            Change::Put(key, value) => batch.put(key.clone(), value.clone()),
            Change::Fresh(value) => {
                *fresh += 1;
                batch.put_fresh(fresh_key(*fresh), value.clone())
            }
            Change::Delete(key) => batch.delete(key.clone()),
            Change::DeleteFresh(back) => batch.delete(fresh_key(fresh.saturating_sub(*back))),
            Change::Body(key, body) => batch.put_body(key.clone(), body.clone()),
            Change::DeleteBody(key) => batch.delete_body(key.clone()),
        };
    }
    batch
}

/// All rows and bodies of a store.
pub async fn dump(store: &Store) -> (Vec<(Key, Bytes)>, Vec<(Key, Bytes)>) {
    let all = k(b"")..k(&[0xFF; 1025]);
    let rows = store.scan(all, ScanOrder::Ascending, usize::MAX).await.unwrap();
    let mut bodies = Vec::new();
    for length in 0..4u32 {
        for number in 0..4u32.pow(length) {
            let digit = |place| [0u8, 1, 0xFE, 0xFF][(number / 4u32.pow(place) % 4) as usize];
            let key: Key = (0..length).map(digit).collect();
            if let Some(body) = store.body(&key).await.unwrap() {
                bodies.push((key, body));
            }
        }
    }
    (rows, bodies)
}

fn random_work(subject: &impl Subject, runtime: &tokio::runtime::Runtime, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let work = proptest::collection::vec(any_work(), 1..40);
    let result = TestRunner::new(config).run(&work, |work| {
        runtime.block_on(async {
            let (mut store, model) = (subject.fresh().await, Store::memory());
            let mut fresh = 0;
            for step in work {
                match step {
                    Work::Commit(changes) => {
                        let mut batches = Vec::new();
                        for changes in &changes {
                            batches.push(batch_of(changes, &model, &mut fresh).await);
                        }
                        let wanted = join_all(batches.iter().map(|batch| model.commit(batch.clone()))).await;
                        let found = join_all(batches.into_iter().map(|batch| store.commit(batch))).await;
                        assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
                    }
                    Work::Get(keys) => {
                        assert_eq!(store.get_many(&keys).await.unwrap(), model.get_many(&keys).await.unwrap());
                    }
                    Work::Scan(from, to, up, limit) => {
                        let order = if up { ScanOrder::Ascending } else { ScanOrder::Descending };
                        let found = store.scan(from.clone()..to.clone(), order, limit).await.unwrap();
                        assert_eq!(found, model.scan(from.clone()..to.clone(), order, limit).await.unwrap());
                        // Several ranges at once, including empty and overlapping ones.
                        let ranges = [from.clone()..to.clone(), to.clone()..from.clone(), prefix_range(&from)];
                        let found = store.scan_each(&ranges, order, limit).await.unwrap();
                        for (range, found) in ranges.into_iter().zip(found) {
                            assert_eq!(found, model.scan(range, order, limit).await.unwrap());
                        }
                    }
                    Work::ReadBody(key) => {
                        assert_eq!(store.body(&key).await.unwrap(), model.body(&key).await.unwrap());
                    }
                    Work::Flush => store.flush().await.unwrap(),
                    Work::Again => store = subject.again(store).await,
                }
            }
            assert_eq!(dump(&store).await, dump(&model).await);
            store.close().await;
        });
        Ok(())
    });
    result.unwrap();
}
