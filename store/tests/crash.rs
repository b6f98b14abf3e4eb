//! Crash tests: the directory is copied at any operation, and ranges that no sync had covered are preserved, truncated,
//! zeroed or garbled. The copy must open with everything that was acknowledged, and at most the one group that was
//! being written.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod suite;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redb::ReadableTable as _;
use store::engine::fault_injection::{DiskOperation, FaultInjector, UnsyncedRange};
use store::engine::{Batch, CommitError, OpenError, RedbOptions, ScanOrder, Store};
use store::key::Space;
use suite::{any_commit, batch_of, dump, k};

fn small(directory: &Path, faults: Option<FaultInjector>) -> RedbOptions {
    RedbOptions {
        reserve_bytes: 0,
        segment_bytes: 8 << 10,
        table_bytes: 8 << 10,
        replay_bytes: 32 << 10,
        checkpoint_interval: Duration::from_millis(50),
        tick: Duration::from_millis(5),
        cache_bytes: 1 << 20,
        faults,
        ..RedbOptions::new(directory)
    }
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    /// The process was killed: the page cache still reaches the disk.
    None,
    Cut,
    Zero,
    Garble,
    /// The first bytes of each range did not reach the disk.
    FrontZero(usize),
    /// Only the first bytes of each range reached the disk.
    RearZero(usize),
}

/// Applies the effect of a power loss to ranges that were never synced.
fn damage(image: &Path, unsynced: &[UnsyncedRange], damage: Damage) {
    for range in unsynced {
        let Ok(file) = OpenOptions::new().write(true).open(image.join(&range.file)) else { continue };
        let is_log = range.file.extension().is_some_and(|extension| extension == "seg");
        // redb relies on an atomic write of the index's header page, so leave that intact.
        if !is_log && range.offset == 0 {
            continue;
        }
        let size = usize::try_from(range.size_bytes).unwrap();
        let garbage: Vec<u8> = (0..size).map(|at| (at as u8).wrapping_mul(37) ^ 0xA5).collect();
        match damage {
            Damage::None => {}
            Damage::Cut if is_log => file.set_len(range.offset).unwrap(),
            Damage::Cut | Damage::Zero => file.write_all_at(&vec![0; size], range.offset).unwrap(),
            Damage::Garble => file.write_all_at(&garbage, range.offset).unwrap(),
            Damage::FrontZero(bytes) => {
                file.write_all_at(&vec![0; bytes.min(size)], range.offset).unwrap();
            }
            Damage::RearZero(bytes) => {
                let from = bytes.min(size);
                file.write_all_at(&vec![0; size - from], range.offset + from as u64).unwrap();
            }
        }
    }
}

fn any_operation() -> impl Strategy<Value = (DiskOperation, u64)> {
    prop_oneof![
        4 => (Just(DiskOperation::Sync), 1u64..40),
        4 => (Just(DiskOperation::Write), 1u64..40),
        1 => (Just(DiskOperation::Create), 1u64..4),
        1 => (Just(DiskOperation::Allocate), 1u64..4),
        1 => (Just(DiskOperation::Truncate), 1u64..4),
        1 => (Just(DiskOperation::Remove), 1u64..4),
        2 => (Just(DiskOperation::IndexWrite), 1u64..200),
        2 => (Just(DiskOperation::IndexSync), 1u64..40),
    ]
}

fn any_damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        Just(Damage::None),
        Just(Damage::Cut),
        Just(Damage::Zero),
        Just(Damage::Garble),
        some_bytes().prop_map(Damage::FrontZero),
        some_bytes().prop_map(Damage::RearZero),
    ]
}

/// Within a group's header, within a group, or within the zeros after it.
fn some_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![1usize..40, 40usize..600, 600usize..100_000]
}

#[test]
fn every_crash_image_opens_with_all_acknowledged_data() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let work = (proptest::collection::vec(any_commit(), 5..40), any_operation(), any_damage());
    let result = TestRunner::new(config).run(&work, |(commits, (operation, nth), kind)| {
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let (live, image) = (directory.path().join("live"), directory.path().join("image"));
            let faults = FaultInjector::new();
            let store = Store::open(&small(&live, Some(faults.clone()))).unwrap();
            faults.snapshot_before(operation, nth, &image);
            let model = Store::memory();
            let mut fresh = 0;
            // Allowed results: the state before the commit during which the snapshot was taken, or any state within
            // that commit, whose batches may be several groups.
            let mut allowed = vec![dump(&model).await];
            for changes in commits {
                allowed = vec![dump(&model).await];
                let mut batches = Vec::new();
                for changes in &changes {
                    batches.push(batch_of(changes, &model, &mut fresh).await);
                }
                let mut wanted = Vec::new();
                for batch in &batches {
                    wanted.push(model.commit(batch.clone()).await);
                    allowed.push(dump(&model).await);
                }
                let found = join_all(batches.into_iter().map(|batch| store.commit(batch))).await;
                assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
                if faults.unsynced_in_snapshot().is_some() {
                    break;
                }
            }
            if faults.unsynced_in_snapshot().is_none() {
                // The end of the work is a crash at the latest.
                faults.snapshot_before(DiskOperation::Sync, 1, &image);
                let mut last = Batch::progress();
                last.put(k(b"last"), &b"1"[..]);
                allowed = vec![dump(&model).await];
                model.commit(last.clone()).await.unwrap();
                allowed.push(dump(&model).await);
                store.commit(last).await.unwrap();
            }
            damage(&image, &faults.unsynced_in_snapshot().unwrap(), kind);
            let report = Store::check(&small(&image, None)).unwrap();
            assert!(report.is_sound(), "{operation:?} {nth} {kind:?}: {:?}", report.problems);
            let opened = Store::open(&small(&image, None)).unwrap();
            let found = dump(&opened).await;
            assert!(allowed.contains(&found), "{operation:?} {nth} {kind:?}");
            // The store works, and what it acknowledges now is there after the next opening.
            let mut next = Batch::intake();
            next.put(k(b"next"), &b"1"[..]).put_body(k(&[1, 1, 1]), k(b"next"));
            opened.commit(next).await.unwrap();
            let wanted = dump(&opened).await;
            opened.close().await;
            let report = Store::check(&small(&image, None)).unwrap();
            assert!(report.is_sound(), "{:?}", report.problems);
            let again = Store::open(&small(&image, None)).unwrap();
            assert_eq!(dump(&again).await, wanted);
            again.close().await;
            store.close().await;
        });
        Ok(())
    });
    result.unwrap();
}

/// A store with some commits in its first segment, as a killed process leaves it.
async fn killed(directory: &Path) -> std::path::PathBuf {
    let faults = FaultInjector::new();
    let options = RedbOptions {
        replay_bytes: 1 << 30,
        segment_bytes: 1 << 20,
        table_bytes: 1 << 20,
        checkpoint_interval: Duration::from_secs(3600),
        ..small(&directory.join("live"), Some(faults.clone()))
    };
    let store = Store::open(&options).unwrap();
    for number in 0..10u8 {
        let mut batch = Batch::intake();
        batch.put(k(&[number]), vec![number; 100]).put_body(k(&[number]), vec![number; 5000]);
        store.commit(batch).await.unwrap();
    }
    let image = directory.join("image");
    faults.snapshot_before(DiskOperation::Write, 1, &image);
    let mut batch = Batch::intake();
    batch.put(k(&[10]), &b"not written"[..]);
    store.commit(batch).await.unwrap();
    store.close().await;
    image
}

fn segment(image: &Path) -> std::path::PathBuf {
    image.join("log-0000000000000001.seg")
}

/// Offsets of all groups.
fn groups(bytes: &[u8]) -> Vec<usize> {
    bytes.windows(4).enumerate().filter(|(_, four)| four == b"grp1").map(|(at, _)| at).collect()
}

#[tokio::test]
async fn damage_before_the_last_group_is_reported_and_prevents_opening() {
    let directory = tempfile::tempdir().unwrap();
    let image = killed(directory.path()).await;
    let whole = std::fs::read(segment(&image)).unwrap();
    let starts = groups(&whole);
    assert_eq!(starts.len(), 10);
    for (number, &start) in starts.iter().enumerate() {
        for at in [start, start + 4, start + 9, start + 45] {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(segment(&image), &changed).unwrap();
            let opened = Store::open(&small(&image, None));
            if number == starts.len() - 1 {
                // Damage of the last group looks like a torn tail: it is cut off.
                let store = opened.unwrap();
                assert_eq!(store.get(&k(&[9])).await.unwrap(), None);
                assert_eq!(store.get(&k(&[8])).await.unwrap(), Some(Bytes::from(vec![8; 100])));
                store.close().await;
                return;
            }
            let error = opened.unwrap_err();
            assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("restore a backup") && text.contains(&format!("byte {start}")), "{text}");
            assert_eq!(std::fs::read(segment(&image)).unwrap(), changed, "the file is not modified");
        }
    }
}

#[tokio::test]
async fn a_body_that_looks_like_a_group_is_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let image = killed(directory.path()).await;
    let whole = std::fs::read(segment(&image)).unwrap();
    let starts = groups(&whole);
    // A valid later group copied to a place behind the end, as a body with foreign content could contain it.
    let last = *starts.last().unwrap();
    let end = last + 40 + (starts[1] - starts[0] - 40);
    let mut changed = whole.clone();
    changed.truncate(end);
    changed[last + 60] ^= 1;
    changed.extend_from_slice(&whole[starts[8]..end]);
    std::fs::write(segment(&image), &changed).unwrap();
    let store = Store::open(&small(&image, None)).unwrap();
    assert_eq!(store.get(&k(&[8])).await.unwrap(), Some(Bytes::from(vec![8; 100])));
    assert_eq!(store.get(&k(&[9])).await.unwrap(), None);
    store.close().await;
}

#[tokio::test]
async fn a_missing_segment_or_index_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let image = killed(directory.path()).await;
    std::fs::rename(segment(&image), directory.path().join("aside")).unwrap();
    let error = Store::open(&small(&image, None)).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
    std::fs::rename(directory.path().join("aside"), segment(&image)).unwrap();
    Store::open(&small(&image, None)).unwrap().close().await;

    std::fs::remove_file(image.join("index.redb")).unwrap();
    let error = Store::open(&small(&image, None)).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    std::fs::write(image.join("index.redb"), b"").unwrap();
    assert!(matches!(Store::open(&small(&image, None)), Err(OpenError::Corrupt { .. })));
    std::fs::write(image.join("index.redb"), vec![b'x'; 100_000]).unwrap();
    let error = Store::open(&small(&image, None)).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_segment_of_live_bodies_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let options = small(directory.path(), None);
    let store = Store::open(&options).unwrap();
    for number in 0..20u8 {
        let mut batch = Batch::intake();
        batch.put_body(k(&[number]), vec![number; 4000]);
        store.commit(batch).await.unwrap();
    }
    store.close().await;
    std::fs::remove_file(segment(directory.path())).unwrap();
    let error = Store::open(&options).unwrap_err();
    assert!(error.to_string().contains("bodies are in it"), "{error}");
}

#[tokio::test]
async fn a_truncated_segment_of_live_bodies_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let options = small(directory.path(), None);
    let store = Store::open(&options).unwrap();
    for number in 0..20u8 {
        let mut batch = Batch::intake();
        batch.put_body(k(&[number]), vec![number; 4000]);
        store.commit(batch).await.unwrap();
    }
    store.close().await;
    let whole = std::fs::read(segment(directory.path())).unwrap();
    let following = directory.path().join("log-0000000000000002.seg");
    let cut = |size_bytes: usize| {
        std::fs::write(segment(directory.path()), &whole[..size_bytes]).unwrap();
        Store::open(&options)
    };
    for size_bytes in [0, 600, whole.len() - 1] {
        let error = cut(size_bytes).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("ends at byte {size_bytes}")) && text.contains("bodies are in it"), "{text}");
    }
    cut(whole.len()).unwrap().close().await;
    // Without the header of the next segment, the number of live bytes shows the truncation.
    assert!(following.exists());
    std::fs::rename(&following, directory.path().join("aside")).unwrap();
    assert!(cut(600).unwrap_err().to_string().contains("bodies are in it"));
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let image = killed(directory.path()).await;
    let mut bytes = std::fs::read(segment(&image)).unwrap();
    bytes[8] = 9;
    let checksum = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&checksum);
    std::fs::write(segment(&image), &bytes).unwrap();
    let error = Store::open(&small(&image, None)).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 9, known: 2, .. }), "{error}");
}

/// A whole group that this version cannot decode was acknowledged: it is not a torn tail, and nothing is cut off.
#[tokio::test]
async fn a_last_group_with_an_unknown_dictionary_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let image = killed(directory.path()).await;
    let mut bytes = std::fs::read(segment(&image)).unwrap();
    let start = *groups(&bytes).last().unwrap();
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let rows = start + 40..start + 40 + number(&bytes, start + 20) as usize;
    assert_eq!(bytes[rows.start..rows.start + 2], [5, 1], "the batch is compressed with dictionary 1");
    bytes[rows.start + 1] = 2;
    let checksum = crc32fast::hash(&bytes[rows]);
    bytes[start + 16..start + 20].copy_from_slice(&checksum.to_le_bytes());
    let salt = [&bytes[24..40], &bytes[16..24], &(start as u64).to_le_bytes()].concat();
    let mut checksum = crc32fast::Hasher::new_with_initial(crc32fast::hash(&salt));
    checksum.update(&bytes[start + 8..start + 40]);
    bytes[start + 4..start + 8].copy_from_slice(&checksum.finalize().to_le_bytes());
    std::fs::write(segment(&image), &bytes).unwrap();
    let error = Store::open(&small(&image, None)).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(std::fs::read(segment(&image)).unwrap(), bytes, "the file is not modified");
}

/// Cuts the stored form of a row in the index.
fn damage_row(directory: &Path, row: &[u8]) {
    let rows = redb::TableDefinition::<&[u8], &[u8]>::new("rows");
    let database = redb::Database::open(directory.join("index.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(rows).unwrap();
        let stored = rows.get(row).unwrap().unwrap().value().to_vec();
        assert_eq!(stored[..2], [0xF5, 1], "the row is compressed with dictionary 1");
        rows.insert(row, &stored[..stored.len() - 1]).unwrap();
    }
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_damaged_row_affects_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let (live, file) = (directory.path().join("live"), directory.path().join("backup"));
    let at = |number: u8| k(&[Space::Email as u8, number]);
    let row = Bytes::from(br#"[1,{"id":"msg_01","account":"acct_01","created_at":"2026-11-2"}]"#.repeat(3));
    let store = Store::open(&small(&live, None)).unwrap();
    let mut batch = Batch::intake();
    (0..4).for_each(|number| _ = batch.put(at(number), row.clone()));
    store.commit(batch).await.unwrap();
    store.close().await;
    damage_row(&live, &at(1));
    damage_row(&live, &at(2));
    let report = Store::check(&small(&live, None)).unwrap();
    let ids: Vec<_> = report.problems.iter().map(|problem| problem.id.as_str()).collect();
    assert_eq!((report.rows, &ids[..]), (4, &["1001", "1002"][..]));

    let store = Store::open(&small(&live, None)).unwrap();
    assert_eq!(store.verify().await.unwrap().problems, report.problems);
    let rows = store.scan(at(0)..at(9), ScanOrder::Ascending, 9).await.unwrap();
    assert_eq!(rows.iter().map(|(_, found)| *found == row).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(store.get(&at(1)).await.unwrap().as_ref(), Some(&rows[1].1));
    store.backup(&file, |_| ()).await.unwrap();
    // A commit that checks a damaged row conflicts, or replaces the row. It does not stop the store.
    let checked = |number, value: &Bytes| {
        let mut batch = Batch::progress();
        batch.check(at(number), Some(value.clone())).delete(at(number));
        batch
    };
    let error = store.commit(checked(1, &row)).await.unwrap_err();
    assert!(matches!(error, CommitError::Conflict { .. }), "{error}");
    store.commit(checked(1, &rows[1].1)).await.unwrap();
    assert_eq!(store.scan(at(0)..at(9), ScanOrder::Ascending, 9).await.unwrap().len(), 3);
    store.close().await;

    let restored = small(&directory.path().join("restored"), None);
    Store::restore(&file, &restored, |_| ()).unwrap();
    assert_eq!(Store::check(&restored).unwrap().problems, report.problems);
}
