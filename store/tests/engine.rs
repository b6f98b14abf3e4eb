//! Runs the tests of `suite/` on the engines, and tests of the redb engine only: one process per directory, backup and
//! restore, integrity checks, segment reclaim.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod suite;

use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use store::engine::{BackupError, Batch, CheckError, Object, OpenError, RedbOptions, ScanOrder, Store};
use store::key::prefix_range;
use suite::{Subject, k};
use tempfile::TempDir;

struct Model;

impl Subject for Model {
    async fn fresh(&self) -> Store {
        Store::memory()
    }

    async fn again(&self, store: Store) -> Store {
        store
    }
}

struct Redb {
    directory: Mutex<Option<TempDir>>,
}

fn small(directory: &Path) -> RedbOptions {
    RedbOptions {
        reserve_bytes: 0,
        segment_bytes: 16 << 10,
        table_bytes: 16 << 10,
        replay_bytes: 64 << 10,
        checkpoint_interval: Duration::from_millis(20),
        tick: Duration::from_millis(5),
        cache_bytes: 1 << 20,
        // Every read moves to a blocking thread at its first step, like one that waits for the disk.
        in_place: Duration::ZERO,
        ..RedbOptions::new(directory)
    }
}

impl Redb {
    fn path(&self) -> PathBuf {
        self.directory.lock().as_ref().unwrap().path().to_owned()
    }
}

impl Subject for Redb {
    async fn fresh(&self) -> Store {
        *self.directory.lock() = Some(tempfile::tempdir().unwrap());
        Store::open(&small(&self.path())).unwrap()
    }

    async fn again(&self, store: Store) -> Store {
        store.close().await;
        Store::open(&small(&self.path())).unwrap()
    }
}

#[test]
fn memory_engine_passes_the_suite() {
    suite::run(&Model, 32);
}

#[test]
fn redb_engine_passes_the_suite() {
    suite::run(&Redb { directory: Mutex::new(None) }, 64);
}

#[tokio::test]
async fn a_directory_belongs_to_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&small(directory.path())).unwrap();
    let second = Store::open(&small(directory.path()));
    assert!(matches!(&second, Err(OpenError::InUse { .. })), "{second:?}");
    assert!(second.unwrap_err().to_string().contains("in use by another process"));
    store.close().await;
    assert!(matches!(store.commit(Batch::intake()).await, Err(store::engine::CommitError::Closed)));
    Store::open(&small(directory.path())).unwrap().close().await;
}

async fn filled(directory: &Path, count: u8) -> Store {
    let store = Store::open(&small(directory)).unwrap();
    for number in 0..count {
        let mut batch = Batch::intake();
        batch.put(k(&[1, number]), vec![number; 300]).put_body(k(&[1, number]), vec![number; 2000]);
        store.commit(batch).await.unwrap();
    }
    store
}

#[tokio::test]
async fn a_backup_restores_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(&directory.path().join("a"), 100).await;
    let file = directory.path().join("backup");
    let done = store.backup(&file, |_| {}).await.unwrap();
    assert_eq!((done.rows, done.bodies), (100, 100));
    assert_eq!(done.bytes, std::fs::metadata(&file).unwrap().len());
    let error = store.backup(&file, |_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{} exists already; choose another name", file.display()));
    // Later commits are not in the backup.
    let mut batch = Batch::intake();
    batch.put(k(&[1, 200]), &b"later"[..]).delete(k(&[1, 3]));
    store.commit(batch).await.unwrap();
    assert!(store.verify().await.unwrap().is_sound());
    store.close().await;

    let target = small(&directory.path().join("b"));
    assert_eq!(Store::restore(&file, &target, |_| {}).unwrap(), done);
    let again = Store::restore(&file, &target, |_| {});
    assert!(matches!(again, Err(BackupError::NotEmpty { .. })), "{again:?}");
    let report = Store::check(&target).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.rows, report.bodies, report.body_bytes), (100, 100, 200_000));
    let restored = Store::open(&target).unwrap();
    assert_eq!(restored.scan(prefix_range(&[1]), ScanOrder::Ascending, 999).await.unwrap().len(), 100);
    assert_eq!(restored.body(&k(&[1, 3])).await.unwrap(), Some(Bytes::from(vec![3; 2000])));
    restored.close().await;

    let from_memory = directory.path().join("memory");
    let model = Store::memory();
    let mut batch = Batch::intake();
    batch.put(k(b"a"), &b"1"[..]).put_body(k(b"b"), k(b"2"));
    model.commit(batch).await.unwrap();
    model.backup(&from_memory, |_| {}).await.unwrap();
    Store::restore(&from_memory, &small(&directory.path().join("c")), |_| {}).unwrap();
}

#[tokio::test]
async fn a_damaged_backup_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(&directory.path().join("a"), 5).await;
    let file = directory.path().join("backup");
    store.backup(&file, |_| {}).await.unwrap();
    store.close().await;
    let whole = std::fs::read(&file).unwrap();
    let target = small(&directory.path().join("b"));
    for at in (0..whole.len()).step_by(97) {
        let mut changed = whole.clone();
        changed[at] ^= 0x40;
        std::fs::write(&file, &changed).unwrap();
        let refused = Store::restore(&file, &target, |_| {});
        assert!(matches!(refused, Err(BackupError::Damaged { .. })), "byte {at}: {refused:?}");
    }
    for length in [0, 15, 16, 1000, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(matches!(Store::restore(&file, &target, |_| {}), Err(BackupError::Damaged { .. })));
    }
    assert_eq!(std::fs::read_dir(&target.directory).unwrap().count(), 0);
    std::fs::write(target.directory.join("restoring"), b"").unwrap();
    assert!(matches!(Store::open(&target), Err(OpenError::HalfRestored { .. })));
}

#[tokio::test]
async fn dead_segments_are_removed_and_live_bodies_relocated() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path(), 200).await;
    let full = store.health().segments;
    assert!(full > 20, "{full} segments");
    for number in (0..200u8).filter(|number| number % 50 != 0) {
        let mut batch = Batch::progress();
        batch.delete(k(&[1, number])).delete_body(k(&[1, number]));
        store.commit(batch).await.unwrap();
    }
    // Four bodies of 2,000 bytes remain: they are relocated to the newest segments, and the other segments are removed.
    let mut tries = 0;
    while store.health().segments > 4 {
        store.flush().await.unwrap();
        tokio::task::yield_now().await;
        tries += 1;
        assert!(tries < 100_000, "{:?}", store.health());
    }
    for number in (0..200u8).step_by(50) {
        assert_eq!(store.body(&k(&[1, number])).await.unwrap(), Some(Bytes::from(vec![number; 2000])));
    }
    store.close().await;
    let report = Store::check(&small(directory.path())).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.rows, report.bodies), (4, 4));
}

#[tokio::test]
async fn a_corrupt_body_is_not_returned() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path(), 1).await;
    store.close().await;
    let segment = directory.path().join("log-0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    // After the segment header, group header and rows, before the preallocated space.
    bytes[1000] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let report = Store::check(&small(directory.path())).unwrap();
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    let store = Store::open(&small(directory.path())).unwrap();
    let read = store.body(&k(&[1, 0])).await;
    assert!(matches!(read, Err(store::engine::ReadError::Corrupt(_))), "{read:?}");
    store.close().await;
}

/// A check of the running store reads one snapshot while writers continue, and its caller can cancel it.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_store_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path(), 10).await;
    store.flush().await.unwrap();
    let (sender, mut steps) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, wait) = std::sync::mpsc::channel::<ControlFlow<()>>();
    let watched = move |done| {
        sender.send(done).unwrap();
        wait.recv().unwrap_or(ControlFlow::Continue(()))
    };
    let check = tokio::spawn({
        let store = store.clone();
        async move { store.verify_watched(watched).await }
    });
    assert_eq!(steps.recv().await.unwrap().bodies, 1);
    // The check is blocked in the middle; the writers continue.
    for number in 10..60 {
        let mut batch = Batch::intake();
        batch.put(k(&[1, number]), vec![number; 300]).put_body(k(&[1, number]), vec![number; 2000]);
        batch.delete(k(&[1, number - 10])).delete_body(k(&[1, number - 10]));
        store.commit(batch).await.unwrap();
    }
    store.flush().await.unwrap();
    drop(go_on);
    let report = check.await.unwrap().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.rows, report.bodies, report.body_bytes), (10, 10, 20_000), "the snapshot at its start");
    let ended = store.verify_watched(|_| ControlFlow::Break(())).await;
    assert!(matches!(ended, Err(CheckError::Stopped)), "{ended:?}");
    store.close().await;
}

#[tokio::test]
async fn damage_is_reported_by_object_and_id() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&small(directory.path())).unwrap();
    let (account, email) = (model::id::AccountId::from_bytes([3; 16]), model::id::EmailId::from_bytes([5; 16]));
    let mut batch = Batch::intake();
    batch.put_body(store::email::body_key(account, email), vec![b'x'; 2000]);
    store.commit(batch).await.unwrap();
    store.flush().await.unwrap();
    let segment = directory.path().join("log-0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let online = store.verify().await.unwrap();
    store.close().await;
    for report in [online, Store::check(&small(directory.path())).unwrap()] {
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        let found = &report.problems[0];
        assert_eq!((found.object, &found.id), (Object::Email, &email.to_string()), "{found}");
        assert!(found.fault.contains("checksum"), "{found}");
    }
}
