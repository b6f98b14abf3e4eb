//! A failing disk and a full disk: acknowledged data is retained, what cannot be stored is refused, and the store
//! recovers as documented.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod suite;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use store::engine::fault_injection::{DiskOperation, FaultInjector, INPUT_OUTPUT, InjectedFault, NO_SPACE};
use store::engine::{Batch, BatchPurpose, CommitError, OpenError, RedbOptions, Store, StoreState};
use suite::k;

fn options(directory: &Path, faults: &FaultInjector) -> RedbOptions {
    RedbOptions {
        reserve_bytes: 1 << 20,
        segment_bytes: 64 << 10,
        table_bytes: 16 << 10,
        replay_bytes: 256 << 10,
        checkpoint_interval: Duration::from_millis(20),
        tick: Duration::from_millis(5),
        cache_bytes: 1 << 20,
        faults: Some(faults.clone()),
        ..RedbOptions::new(directory)
    }
}

fn batch(purpose: BatchPurpose, number: u8) -> Batch {
    let mut batch = Batch::new(purpose);
    batch.put(k(&[200, number]), vec![number; 50]).put_body(k(&[200, number]), vec![number; 6000]);
    batch
}

async fn holds(store: &Store, number: u8) -> bool {
    let row = store.get(&k(&[200, number])).await.unwrap() == Some(Bytes::from(vec![number; 50]));
    let body = store.body(&k(&[200, number])).await.unwrap() == Some(Bytes::from(vec![number; 6000]));
    assert_eq!(row, body, "a batch is atomic");
    row
}

async fn fences(operation: DiskOperation) {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let store = Store::open(&options(directory.path(), &faults)).unwrap();
    store.commit(batch(BatchPurpose::Intake, 1)).await.unwrap();
    faults.fail(operation, 1, InjectedFault::Error(INPUT_OUTPUT));
    let mut number = 1;
    // An index operation fails in the background; eventually a commit reports it.
    let reason = loop {
        number = number % 200 + 1;
        match store.commit(batch(BatchPurpose::Intake, number)).await {
            Ok(()) => {}
            Err(CommitError::Fenced(reason)) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("failed"), "{reason}");
    assert_eq!(store.health().state, StoreState::Fenced(reason.clone()));
    for purpose in [BatchPurpose::Intake, BatchPurpose::Progress] {
        let refused = store.commit(batch(purpose, 250)).await;
        assert!(matches!(&refused, Err(CommitError::Fenced(same)) if *same == reason), "{refused:?}");
    }
    assert!(matches!(store.flush().await, Err(CommitError::Fenced(_))));
    // Durable data can still be read.
    assert!(holds(&store, 1).await);
    store.close().await;
    let store = Store::open(&options(directory.path(), &FaultInjector::new())).unwrap();
    assert!(holds(&store, 1).await);
    assert!(!holds(&store, 250).await);
    store.commit(batch(BatchPurpose::Intake, 3)).await.unwrap();
    store.close().await;
    let report = Store::check(&options(directory.path(), &FaultInjector::new())).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test]
async fn the_first_failed_sync_fences_the_store() {
    fences(DiskOperation::Sync).await;
}

#[tokio::test]
async fn the_first_failed_write_fences_the_store() {
    fences(DiskOperation::Write).await;
}

#[tokio::test]
async fn a_failed_index_write_fences_the_store() {
    fences(DiskOperation::IndexWrite).await;
}

#[tokio::test]
async fn a_failed_index_sync_fences_the_store() {
    fences(DiskOperation::IndexSync).await;
}

#[tokio::test]
async fn on_a_full_disk_delivery_continues_and_intake_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let store = Store::open(&options(directory.path(), &faults)).unwrap();
    for number in 0..20 {
        store.commit(batch(BatchPurpose::Intake, number)).await.unwrap();
    }
    faults.set_free_bytes(Some(6 << 20));
    while store.health().state != StoreState::Full {
        tokio::task::yield_now().await;
    }
    assert!(matches!(store.commit(batch(BatchPurpose::Intake, 30)).await, Err(CommitError::Full)));
    // There is some space left, and the reserve.
    for number in 31..60 {
        store.commit(batch(BatchPurpose::Progress, number)).await.unwrap();
    }
    // The last megabytes are left to checkpoints.
    faults.set_free_bytes(Some(1 << 20));
    let mut number = 0;
    while store.commit(batch(BatchPurpose::Progress, 100 + number)).await.is_ok() {
        number = (number + 1) % 50;
    }
    store.flush().await.unwrap();
    assert!(!holds(&store, 30).await);
    assert!(holds(&store, 31).await && holds(&store, 1).await);
    faults.set_free_bytes(None);
    while store.health().state != StoreState::Healthy {
        tokio::task::yield_now().await;
    }
    store.commit(batch(BatchPurpose::Intake, 30)).await.unwrap();
    assert!(holds(&store, 30).await);
    store.flush().await.unwrap();
    store.close().await;
    let report = Store::check(&options(directory.path(), &FaultInjector::new())).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test]
async fn a_write_on_a_full_disk_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let store = Store::open(&options(directory.path(), &faults)).unwrap();
    store.commit(batch(BatchPurpose::Intake, 1)).await.unwrap();
    for (number, fault) in
        [(2, InjectedFault::Short(0)), (3, InjectedFault::Short(3000)), (4, InjectedFault::Error(NO_SPACE))]
    {
        faults.fail(DiskOperation::Write, 1, fault);
        assert!(matches!(store.commit(batch(BatchPurpose::Intake, number)).await, Err(CommitError::Full)));
        // The reserve is released for progress batches.
        faults.fail(DiskOperation::Write, 1, fault);
        let progress = store.commit(batch(BatchPurpose::Progress, number + 10)).await;
        assert!(matches!(progress, Ok(()) | Err(CommitError::Full)), "{progress:?}");
        while store.health().state != StoreState::Healthy {
            tokio::task::yield_now().await;
        }
        store.commit(batch(BatchPurpose::Intake, number + 20)).await.unwrap();
        assert!(!holds(&store, number).await);
        assert_eq!(holds(&store, number + 10).await, progress.is_ok());
    }
    store.close().await;
    let store = Store::open(&options(directory.path(), &FaultInjector::new())).unwrap();
    for number in [1, 22, 23, 24] {
        assert!(holds(&store, number).await);
    }
    assert!(!holds(&store, 2).await);
    store.close().await;
    let report = Store::check(&options(directory.path(), &FaultInjector::new())).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test]
async fn a_checkpoint_on_a_full_disk_is_retried() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let store = Store::open(&options(directory.path(), &faults)).unwrap();
    store.commit(batch(BatchPurpose::Intake, 1)).await.unwrap();
    store.flush().await.unwrap();
    // The index's own write finds the disk full: redb must be reopened.
    faults.fail(DiskOperation::IndexWrite, 1, InjectedFault::Error(NO_SPACE));
    store.commit(batch(BatchPurpose::Progress, 2)).await.unwrap();
    assert!(matches!(store.flush().await, Ok(()) | Err(CommitError::Full)));
    assert!(holds(&store, 1).await && holds(&store, 2).await);
    let mut number = 2;
    loop {
        number = number % 100 + 1;
        let row = store.commit(batch(BatchPurpose::Progress, number)).await;
        assert!(matches!(row, Ok(()) | Err(CommitError::Full)), "{row:?}");
        if store.flush().await.is_ok() && store.health().state == StoreState::Healthy {
            break;
        }
    }
    store.commit(batch(BatchPurpose::Intake, 200)).await.unwrap();
    store.close().await;
    let report = Store::check(&options(directory.path(), &FaultInjector::new())).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

#[tokio::test]
async fn a_start_on_a_full_disk_releases_the_reserve() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let store = Store::open(&options(directory.path(), &faults)).unwrap();
    store.commit(batch(BatchPurpose::Intake, 1)).await.unwrap();
    store.close().await;
    faults.fail(DiskOperation::Create, 1, InjectedFault::Error(NO_SPACE));
    let store = Store::open(&options(directory.path(), &faults)).unwrap();
    assert!(holds(&store, 1).await);
    store.commit(batch(BatchPurpose::Progress, 2)).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_start_without_space_names_the_directory_and_creates_no_segment() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    let options = options(directory.path(), &faults);
    let store = Store::open_writable(&options).unwrap();
    store.commit(batch(BatchPurpose::Intake, 1)).await.unwrap();
    store.close().await;
    let segments = || {
        let names = std::fs::read_dir(directory.path()).unwrap().map(|found| found.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("log-")).count()
    };
    let before = segments();
    faults.set_free_bytes(Some(1 << 20));
    for _ in 0..2 {
        let error = Store::open_writable(&options).unwrap_err();
        assert!(matches!(error, OpenError::DiskFull { free_bytes: 0x10_0000, .. }), "{error:?}");
        assert!(error.to_string().starts_with(&directory.path().display().to_string()), "{error}");
        assert_eq!(segments(), before);
    }
    // Its content can still be read, for example to copy it to another disk.
    let store = Store::open(&options).unwrap();
    assert!(holds(&store, 1).await);
    store.close().await;
    faults.set_free_bytes(None);
    let store = Store::open_writable(&options).unwrap();
    store.commit(batch(BatchPurpose::Intake, 2)).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_start_without_the_reserve_accepts_mail_only_when_it_is_allocated() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultInjector::new();
    // Enough for the log and for a disk that is not full, but not for the reserve too.
    faults.set_free_bytes(Some(8 << 20));
    let store = Store::open_writable(&options(directory.path(), &faults)).unwrap();
    assert_eq!(store.health().state, StoreState::Full);
    assert!(matches!(store.commit(batch(BatchPurpose::Intake, 1)).await, Err(CommitError::Full)));
    store.commit(batch(BatchPurpose::Progress, 2)).await.unwrap();
    assert!(!directory.path().join("reserve").exists());
    faults.set_free_bytes(None);
    while store.health().state != StoreState::Healthy {
        tokio::task::yield_now().await;
    }
    assert!(directory.path().join("reserve").exists());
    store.commit(batch(BatchPurpose::Intake, 1)).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_removed_directory_is_named_as_the_cause_of_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&options(directory.path(), &FaultInjector::new())).unwrap();
    assert_eq!(store.health().space_error, None);
    std::fs::remove_dir_all(directory.path()).unwrap();
    while store.health().state != StoreState::Full {
        tokio::task::yield_now().await;
    }
    let error = store.health().space_error.unwrap();
    assert!(error.contains(&directory.path().display().to_string()), "{error}");
    store.close().await;
}
