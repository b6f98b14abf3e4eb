//! The integrity check: everything is read, and everything that is wrong is named.
//!
//! Offline ([`check`]): the index's pages and checksums (redb's own check), the log's groups in every
//! segment, every row, every body with its checksum, and whether the counts by segment are right.
//! Online ([`Redb::verify`]): every row and every body of a running store.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::index::{Base, INDEX_FILE, LiveBySegment};
use super::record::{SEGMENT_HEADER_BYTES, SegmentHeader, StoreId};
use super::segments::Segments;
use super::shared::Shared;
use super::walk::{Step, Walk};
use super::{Opening, Redb};
use crate::engine::{CommitError, KEY_BYTES_MAX, Key, OpenError, Options, Order, ReadError, Report};
use crate::key::after;

/// Rows read at a time.
const PAGE_ROWS: usize = 4096;

/// Checks a directory that no process has open.
pub(crate) fn check(options: &Options) -> Result<Report, OpenError> {
    let mut report = Report::default();
    // Looking must not make a new store.
    let index_file = options.directory.join(INDEX_FILE);
    std::fs::metadata(&index_file).map_err(|error| OpenError::io(index_file, error))?;
    let Opening { mut index, opened, segments, recovered, lock, .. } = Opening::read(options)?;
    match index.check() {
        Ok(true) => {}
        Ok(false) => report.problem("the index was not sound and has been repaired"),
        Err(what) => {
            report.problem(format!("the index is damaged: {what}"));
            return Ok(report);
        }
    }
    check_segments(&segments, opened.store, recovered.end.segment, &mut report);
    match index.base() {
        Ok(base) => {
            let shared = Arc::new(Shared::new(recovered.table, base, segments, options.in_place));
            check_rows(&shared, &mut report);
            check_bodies(&shared, Some(&opened.live), &mut report);
        }
        Err(fault) => report.problem(format!("the index cannot be read: {fault:?}")),
    }
    drop(lock);
    Ok(report)
}

impl Redb {
    /// Reads every row and body of the running store.
    pub(crate) async fn verify(&self) -> Result<Report, CommitError> {
        self.flush().await?;
        let shared = Arc::clone(&self.shared);
        let work = tokio::task::spawn_blocking(move || {
            let mut report = Report::default();
            check_rows(&shared, &mut report);
            check_bodies(&shared, None, &mut report);
            report
        });
        work.await.map_err(|_| CommitError::Closed)
    }
}

fn check_segments(segments: &Segments, store: StoreId, newest: u64, report: &mut Report) {
    let numbers = segments.numbers();
    // A later one was being made when everything stopped: replay has seen that it is empty.
    for segment in numbers.iter().filter(|segment| **segment <= newest) {
        let result = check_segment(segments, store, *segment, report);
        if let Err(what) = result {
            report.problem(format!("{}: {what}", segments.path(*segment).display()));
        }
    }
}

fn header(segments: &Segments, segment: u64) -> Result<SegmentHeader, String> {
    let file = segments.file(segment).map_err(|error| error.to_string())?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(|error| error.to_string())?;
    SegmentHeader::decode(&bytes).map_err(|fault| format!("its header is not whole ({fault:?})"))
}

fn check_segment(
    segments: &Segments,
    store: StoreId,
    segment: u64,
    report: &mut Report,
) -> Result<(), String> {
    let mut sequence = header(segments, segment)?.first_sequence;
    let file = segments.file(segment).map_err(|error| error.to_string())?;
    let start = SEGMENT_HEADER_BYTES as u64;
    let mut walk = Walk::new(&file, store, segment, start).map_err(|error| error.to_string())?;
    while let Step::Group(header) = walk.step().map_err(|error| error.to_string())? {
        if header.sequence != sequence {
            return Err(format!("at byte {} group {sequence} is missing", walk.group_at()));
        }
        sequence += 1;
        report.groups += 1;
    }
    // The next segment says where this one ends; replay has seen to the newest.
    match header(segments, segment + 1) {
        Ok(next) if next.previous_end != walk.at() => Err(format!(
            "the group at byte {} is damaged; the segment goes on to byte {}",
            walk.at(),
            next.previous_end
        )),
        _ => Ok(()),
    }
}

fn check_rows(shared: &Shared, report: &mut Report) {
    let mut range = Bytes::new()..Bytes::from(vec![0xFF; KEY_BYTES_MAX + 1]);
    loop {
        let rows = match shared.scan_blocking(&range, Order::Ascending, PAGE_ROWS) {
            Ok(rows) => rows,
            Err(error) => return report.problem(error.to_string()),
        };
        report.rows += rows.len() as u64;
        // What stands in a row is its noun's business; but who reads the queue passes over what is no task.
        rows.iter().filter_map(|(at, row)| crate::task::fault(at, row)).for_each(|what| report.problem(what));
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE_ROWS => range.start = after(last),
            _ => return,
        }
    }
}

fn check_bodies(shared: &Shared, live: Option<&LiveBySegment>, report: &mut Report) {
    let base = shared.base();
    let result = check_base_bodies(shared, &base, live, report);
    if let Err(error) = result {
        report.problem(error.to_string());
    }
    // Those that only the table in memory knows.
    let young: Vec<Key> = shared.layers().active.bodies.keys().cloned().collect();
    for key in young {
        if base.place(&key).is_ok_and(|place| place.is_none()) {
            check_body(shared, &key, report);
        }
    }
}

fn check_base_bodies(
    shared: &Shared,
    base: &Base,
    live: Option<&LiveBySegment>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let mut counted = LiveBySegment::new();
    for entry in base.places()? {
        let (key, place) = entry?;
        let counts = counted.entry(place.segment).or_default();
        counts.bodies += 1;
        counts.bytes += u64::from(place.size_bytes);
        check_body(shared, &key, report);
    }
    let Some(live) = live else { return Ok(()) };
    let segments: HashSet<&u64> = counted.keys().chain(live.keys()).collect();
    for segment in segments {
        if counted.get(segment) != live.get(segment) {
            report.problem(format!("the index counts the bodies of segment {segment} wrongly"));
        }
    }
    Ok(())
}

fn check_body(shared: &Shared, key: &Key, report: &mut Report) {
    match shared.read_body(key) {
        Ok(Some(bytes)) => {
            report.bodies += 1;
            report.body_bytes += bytes.len() as u64;
        }
        // Deleted meanwhile.
        Ok(None) => {}
        Err(error) => report.problem(format!("the body {key:02x?}: {error}")),
    }
}
