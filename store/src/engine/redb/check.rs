//! Integrity check of the redb engine.
//!
//! Offline ([`check`]): pages and checksums of the index (redb's own check), the groups of every log segment, every
//! row, and every body with its checksum. The live counts by segment are compared as well.
//!
//! Online ([`RedbEngine::verify`]): every row and body of one snapshot of the running store. Writes continue; no
//! segment is removed until the check ends.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::backup::SegmentPin;
use super::caught::caught;
use super::index::{INDEX_FILE, IndexSnapshot, LiveBySegment};
use super::record::{SEGMENT_HEADER_BYTES, SegmentHeader, StoreId};
use super::segment_reader::{SegmentReader, SegmentStep};
use super::segments::{Segments, segment_file};
use super::state::EngineState;
use super::{OpenDirectory, RedbEngine};
use crate::engine::check::Check;
use crate::engine::{
    BackupProgress, CheckError, KEY_BYTES_MAX, Key, Object, OpenError, ReadError, RedbOptions, Report, ScanOrder,
};
use crate::key::successor;

/// Rows per read.
const PAGE_ROWS: usize = 4096;

/// Checks a directory that no process has open.
pub(crate) fn check(options: &RedbOptions, progress: impl FnMut(BackupProgress)) -> Result<Report, OpenError> {
    // The check must not create a new store.
    let index_file = options.directory.join(INDEX_FILE);
    std::fs::metadata(&index_file).map_err(|error| OpenError::io(&index_file, error))?;
    // Destructors of redb objects may panic as well after a panic.
    caught(|| read_all(options, progress))
        .unwrap_or_else(|panic| Err(OpenError::corrupt(&index_file, format!("its pages are inconsistent: {panic}"))))
}

fn read_all(options: &RedbOptions, mut progress: impl FnMut(BackupProgress)) -> Result<Report, OpenError> {
    let OpenDirectory { mut index, opened, segments, recovered, lock, .. } = OpenDirectory::read(options)?;
    let mut check = Check::new(move |done| {
        progress(done);
        ControlFlow::Continue(())
    });
    let report = &mut check.report;
    match index.check() {
        Ok(true) => {}
        Ok(false) => report.problem(Object::Index, INDEX_FILE, "the index was damaged and has been repaired"),
        Err(reason) => {
            report.problem(Object::Index, INDEX_FILE, format!("the index is damaged: {reason}"));
            return Ok(check.report);
        }
    }
    check_segments(&segments, opened.store, recovered.end.segment, report);
    match index.index_snapshot() {
        Ok(base) => {
            let shared = Arc::new(EngineState::new(recovered.table, base, segments, options.in_place));
            // This check is never cancelled.
            let read = check_rows(&shared, &mut check);
            if report_unreadable_index(read, &mut check.report).is_ok() {
                let _ = check_bodies(&shared, &opened.live, &mut check);
            }
            let _ = check.report_progress();
        }
        Err(fault) => {
            report.problem(Object::Index, INDEX_FILE, format!("cannot read the index: {fault:?}"));
        }
    }
    drop(lock);
    Ok(check.report)
}

impl RedbEngine {
    /// Reads every row and body of one snapshot of the running store.
    pub(crate) async fn verify(
        &self,
        progress: impl FnMut(BackupProgress) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Report, CheckError> {
        let pin = SegmentPin::new(&self.shared);
        self.flush().await?;
        let work = tokio::task::spawn_blocking(move || {
            let mut check = Check::new(progress);
            let base = pin.0.index_snapshot();
            check_snapshot(&base, &pin.0.segments, &mut check)?;
            Ok(check.report)
        });
        work.await.map_err(ReadError::io)?
    }
}

/// Continues with the bodies if the rows cannot be read: an unreadable index is reported as one problem.
fn check_snapshot(
    base: &IndexSnapshot,
    segments: &Segments,
    check: &mut Check<impl FnMut(BackupProgress) -> ControlFlow<()>>,
) -> Result<(), CheckError> {
    let all = Bytes::new()..Bytes::from(vec![0xFF; KEY_BYTES_MAX + 1]);
    let mut read_rows = || -> Result<(), CheckError> {
        for row in base.rows(&all, ScanOrder::Ascending)? {
            let (at, row) = row?;
            check.row(&at, &row)?;
        }
        Ok(())
    };
    let read = read_rows();
    report_unreadable_index(read, &mut check.report)?;
    let mut read_bodies = || -> Result<(), CheckError> {
        for entry in base.body_locations()? {
            let (at, location) = entry?;
            check.body(&at, segments.read(location).map_err(ReadError::from))?;
        }
        Ok(())
    };
    let read = read_bodies();
    report_unreadable_index(read, &mut check.report)?;
    check.report_progress()
}

/// Reports a read error as a problem of the index.
fn report_unreadable_index(read: Result<(), CheckError>, report: &mut Report) -> Result<(), CheckError> {
    match read {
        Err(CheckError::Read(error)) => {
            report.problem(Object::Index, INDEX_FILE, error.to_string());
            Ok(())
        }
        read => read,
    }
}

fn check_segments(segments: &Segments, store: StoreId, newest: u64, report: &mut Report) {
    let numbers = segments.numbers();
    // A later segment was being created at the crash; replay found that it is empty.
    for segment in numbers.iter().filter(|segment| **segment <= newest) {
        let result = check_segment(segments, store, *segment, report);
        if let Err(reason) = result {
            report.problem(Object::Segment, segment_file(*segment), reason);
        }
    }
}

fn header(segments: &Segments, segment: u64) -> Result<SegmentHeader, String> {
    let file = segments.file(segment).map_err(|error| error.to_string())?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(|error| error.to_string())?;
    SegmentHeader::decode(&bytes).map_err(|fault| format!("invalid segment header ({fault:?})"))
}

fn check_segment(segments: &Segments, store: StoreId, segment: u64, report: &mut Report) -> Result<(), String> {
    let mut sequence = header(segments, segment)?.first_sequence;
    let file = segments.file(segment).map_err(|error| error.to_string())?;
    let start = SEGMENT_HEADER_BYTES as u64;
    let mut walk = SegmentReader::new(&file, store, segment, start).map_err(|error| error.to_string())?;
    while let SegmentStep::Group(header) = walk.next_group().map_err(|error| error.to_string())? {
        if header.sequence != sequence {
            return Err(format!("group {sequence} is missing at byte {}", walk.group_at()));
        }
        sequence += 1;
        report.groups += 1;
    }
    // The next segment's header records where this one ends. Replay has checked the newest segment.
    match header(segments, segment + 1) {
        Ok(next) if next.previous_end != walk.at() => Err(format!(
            "the group at byte {} is damaged; the segment continues to byte {}",
            walk.at(),
            next.previous_end
        )),
        _ => Ok(()),
    }
}

fn check_rows(
    shared: &EngineState,
    check: &mut Check<impl FnMut(BackupProgress) -> ControlFlow<()>>,
) -> Result<(), CheckError> {
    let mut range = Bytes::new()..Bytes::from(vec![0xFF; KEY_BYTES_MAX + 1]);
    loop {
        let rows = shared.scan_blocking(&range, ScanOrder::Ascending, PAGE_ROWS)?;
        for (at, row) in &rows {
            check.row(at, row)?;
        }
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE_ROWS => range.start = successor(last),
            _ => return Ok(()),
        }
    }
}

fn check_bodies(
    shared: &EngineState,
    live: &LiveBySegment,
    check: &mut Check<impl FnMut(BackupProgress) -> ControlFlow<()>>,
) -> Result<(), CheckError> {
    let base = shared.index_snapshot();
    let read = check_base_bodies(shared, &base, live, check);
    report_unreadable_index(read, &mut check.report)?;
    // Bodies that are only in the memtable.
    let young: Vec<Key> = shared.layers().active.bodies.keys().cloned().collect();
    for key in young {
        if base.body_location(&key).is_ok_and(|location| location.is_none()) {
            check_body(shared, &key, check)?;
        }
    }
    Ok(())
}

fn check_base_bodies(
    shared: &EngineState,
    base: &IndexSnapshot,
    live: &LiveBySegment,
    check: &mut Check<impl FnMut(BackupProgress) -> ControlFlow<()>>,
) -> Result<(), CheckError> {
    let mut counted = LiveBySegment::new();
    for entry in base.body_locations()? {
        let (key, location) = entry?;
        let counts = counted.entry(location.segment).or_default();
        counts.bodies += 1;
        counts.bytes += u64::from(location.size_bytes);
        check_body(shared, &key, check)?;
    }
    let segments: HashSet<&u64> = counted.keys().chain(live.keys()).collect();
    for segment in segments {
        if counted.get(segment) != live.get(segment) {
            let fault = "the index has a wrong count of live bodies in this segment";
            check.report.problem(Object::Segment, segment_file(*segment), fault);
        }
    }
    Ok(())
}

fn check_body(
    shared: &EngineState,
    key: &Key,
    check: &mut Check<impl FnMut(BackupProgress) -> ControlFlow<()>>,
) -> Result<(), CheckError> {
    match shared.read_body(key) {
        Ok(Some(bytes)) => check.body(key, Ok(bytes)),
        // Deleted in the replayed log.
        Ok(None) => Ok(()),
        Err(error) => check.body(key, Err(error)),
    }
}
