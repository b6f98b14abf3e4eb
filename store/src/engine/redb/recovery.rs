//! Recovery at startup: replays the log after the index's last checkpoint.
//!
//! ```text
//! position in the index ─► groups, one after another, across segments ─► the first incomplete one
//! ```
//!
//! The meaning of an incomplete group depends on what follows it:
//! - Nothing valid follows: it is a torn tail. The process or the machine stopped during that write, whose fdatasync
//!   had not returned, so it was never acknowledged. It is cut off. The tail may be short, zeros, or parts of a group
//!   in any order of pages.
//! - A later group follows, or a later segment whose header records that this one continues: the damaged group was
//!   durable once, so acknowledged data is lost. Opening fails with [`OpenError::Corrupt`].
//!
//! The row part of every group is verified, but bodies only of the last group. Only that one can be torn, because each
//! group starts after the sync of the previous one. Other bodies are verified when they are read. A row part with a
//! valid checksum that cannot be decoded is never a torn tail: opening fails.
//!
//! The last group is rewritten and synced: if an earlier process was fenced because its sync failed, the group may be
//! in the page cache but not on disk.

use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;

use super::disk::{Disk, DiskFile};
use super::index::{IndexState, LiveBySegment, LogPosition};
use super::memtable::{MemTable, MemTableRow};
use super::record::{
    LOG_FORMAT, LogEntries, LogEntry, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentHeaderError, StoreId,
};
use super::segment_reader::{SegmentReader, SegmentStep};
use super::segments::Segments;
use crate::engine::OpenError;

#[derive(Debug)]
pub(crate) struct ReplayResult {
    pub(crate) table: MemTable,
    pub(crate) end: LogPosition,
    pub(crate) groups: u64,
    pub(crate) bytes: u64,
    /// The newest file, which ends with a torn tail or unused space.
    pub(crate) last: Option<Arc<DiskFile>>,
    /// Offset of the last group.
    last_group_at: Option<u64>,
}

/// Buffer size for rewriting the last group.
const PIECE_BYTES: u64 = 1 << 20;

/// Replays the log without changing anything on disk.
pub(crate) fn replay(segments: &Segments, opened: &IndexState) -> Result<ReplayResult, OpenError> {
    let numbers = segments.numbers();
    let start = opened.position;
    let mut run = Replay { segments, store: opened.store, recovered: ReplayResult::starting_at(start) };
    run.check_live(&opened.live, &numbers)?;
    if start.segment == 0 {
        if run.last_segment(&numbers)? == 0 {
            return Ok(run.recovered);
        }
        // The first start ended between creating the segment and the index: nothing was accepted yet.
        run.recovered.end = LogPosition { segment: 1, offset: SEGMENT_HEADER_BYTES as u64, sequence: 1 };
    }
    let first = run.recovered.end.segment;
    if !numbers.contains(&first) {
        return Err(run.corrupt(first, "the segment is missing, but the log continues in it"));
    }
    let last = run.last_segment(&numbers)?;
    for segment in first..=last {
        if !numbers.contains(&segment) {
            return Err(run.corrupt(segment, "the segment is missing, but later segments exist"));
        }
        run.replay_segment(segment, segment == last)?;
    }
    Ok(run.recovered)
}

impl ReplayResult {
    fn starting_at(end: LogPosition) -> Self {
        Self { table: MemTable::default(), end, groups: 0, bytes: 0, last: None, last_group_at: None }
    }

    /// Truncates what follows the end of the log, and rewrites and syncs the last group.
    pub(crate) fn repair(&self) -> io::Result<()> {
        let Some(file) = &self.last else { return Ok(()) };
        if file.size_bytes()? > self.end.offset {
            file.truncate(self.end.offset)?;
        }
        let mut at = self.last_group_at.unwrap_or(self.end.offset);
        let mut piece = vec![0; usize::try_from(PIECE_BYTES.min(self.end.offset - at)).unwrap_or(0)];
        while at < self.end.offset {
            piece.truncate(usize::try_from(self.end.offset - at).unwrap_or(usize::MAX));
            file.read_at(at, &mut piece)?;
            file.write_at(at, &mut [IoSlice::new(&piece)])?;
            at += piece.len() as u64;
        }
        file.sync()
    }
}

struct Replay<'a> {
    segments: &'a Segments,
    store: StoreId,
    recovered: ReplayResult,
}

impl Replay<'_> {
    fn corrupt(&self, segment: u64, reason: impl Into<String>) -> OpenError {
        OpenError::corrupt(self.segments.path(segment), reason)
    }

    fn io(&self, segment: u64, error: io::Error) -> OpenError {
        OpenError::io(self.segments.path(segment), error)
    }

    fn open(&self, segment: u64) -> Result<Arc<DiskFile>, OpenError> {
        self.segments.file(segment).map_err(|error| self.io(segment, error))
    }

    /// Reads a segment's header; `None` if it is incomplete.
    fn header(&self, segment: u64) -> Result<Option<SegmentHeader>, OpenError> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match self.open(segment)?.read_at(0, &mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(self.io(segment, error)),
        }
        match SegmentHeader::decode(&bytes) {
            Ok(header) if header.store != self.store => {
                Err(self.corrupt(segment, "the segment belongs to another store"))
            }
            Ok(header) if header.segment != segment => {
                Err(self.corrupt(segment, format!("the header names segment {}", header.segment)))
            }
            Ok(header) => Ok(Some(header)),
            Err(SegmentHeaderError::Newer(found)) => {
                Err(OpenError::Newer { file: self.segments.path(segment), found, known: LOG_FORMAT })
            }
            Err(SegmentHeaderError::Damaged) => Ok(None),
        }
    }

    fn has_header(&self, segment: u64) -> Result<bool, OpenError> {
        Ok(self.header(segment)?.is_some())
    }

    /// Checks that every segment with live bodies exists, and that those before the replay position have their whole
    /// length. The others are read during replay.
    fn check_live(&self, live: &LiveBySegment, numbers: &[u64]) -> Result<(), OpenError> {
        for (&segment, live) in live {
            let Some(size_bytes) = self.segments.size_bytes(segment) else {
                let reason = format!("the segment is missing, and {} live bodies are in it", live.bodies);
                return Err(self.corrupt(segment, reason));
            };
            if segment >= self.recovered.end.segment {
                continue;
            }
            let next = segment + 1;
            let next_header = if numbers.binary_search(&next).is_ok() { self.header(next)? } else { None };
            // Without the next segment, the number of live bytes is a lower bound.
            let end = next_header.map_or(SEGMENT_HEADER_BYTES as u64 + live.bytes, |header| header.previous_end);
            if size_bytes < end {
                let reason = format!(
                    "the file ends at byte {size_bytes}, but the log in it continued to byte {end}, and {} live \
                     bodies are in it",
                    live.bodies
                );
                return Err(self.corrupt(segment, reason));
            }
        }
        Ok(())
    }

    /// The last segment of the log. A newest segment without a header was being created at the crash and is ignored,
    /// unless it contains groups.
    fn last_segment(&self, numbers: &[u64]) -> Result<u64, OpenError> {
        let Some((&newest, before)) = numbers.split_last() else { return Ok(0) };
        if self.has_header(newest)? || newest == self.recovered.end.segment {
            return Ok(newest);
        }
        let file = self.open(newest)?;
        let walk = SegmentReader::new(&file, self.store, newest, 0).map_err(|error| self.io(newest, error))?;
        match walk.find_later(0, 0).map_err(|error| self.io(newest, error))? {
            Some(at) => Err(self.corrupt(newest, format!("the header is damaged, but there is a group at byte {at}"))),
            None => Ok(before.last().copied().unwrap_or(0)),
        }
    }

    fn replay_segment(&mut self, segment: u64, is_last: bool) -> Result<(), OpenError> {
        let Some(header) = self.header(segment)? else {
            return Err(self.corrupt(segment, "the header is damaged"));
        };
        let end = self.recovered.end;
        if segment != end.segment {
            if header.previous_end != end.offset || header.first_sequence != end.sequence {
                let reason = format!(
                    "the group at byte {} is damaged, but the log continued to byte {} and group {}",
                    end.offset, header.previous_end, header.first_sequence
                );
                return Err(self.corrupt(end.segment, reason));
            }
            self.recovered.end = LogPosition { segment, offset: SEGMENT_HEADER_BYTES as u64, sequence: end.sequence };
        }
        let file = self.open(segment)?;
        self.recovered.last = Some(Arc::clone(&file));
        self.recovered.last_group_at = None;
        let from = self.recovered.end.offset;
        let size_bytes = file.size_bytes().map_err(|error| self.io(segment, error))?;
        if size_bytes < from {
            let reason =
                format!("the file ends at byte {size_bytes}, but the index was written from it up to byte {from}");
            return Err(self.corrupt(segment, reason));
        }
        let mut walk = SegmentReader::new(&file, self.store, segment, from).map_err(|error| self.io(segment, error))?;
        self.replay_groups(segment, &mut walk, is_last)
    }

    /// Applies the groups of a segment. In the last segment, verifies the bodies of the last group.
    fn replay_groups(&mut self, segment: u64, walk: &mut SegmentReader<'_>, is_last: bool) -> Result<(), OpenError> {
        loop {
            let expected = self.recovered.end.sequence;
            let step = walk.next_group().map_err(|error| self.io(segment, error))?;
            let SegmentStep::Group(header) = step else { break };
            if header.sequence != expected {
                let reason =
                    format!("at byte {} there is group {} instead of {expected}", walk.group_at(), header.sequence);
                return Err(self.corrupt(segment, reason));
            }
            if is_last && self.is_torn(segment, walk)? {
                return self.check_tail(segment, walk, walk.group_at());
            }
            self.apply(segment, walk)?;
            self.recovered.last_group_at = Some(walk.group_at());
            self.recovered.groups += 1;
            self.recovered.bytes += header.size_bytes();
            self.recovered.end = LogPosition { segment, offset: walk.at(), sequence: expected + 1 };
        }
        if is_last { self.check_tail(segment, walk, walk.at()) } else { Ok(()) }
    }

    /// Returns whether the current group is the last one and has an incomplete body.
    fn is_torn(&self, segment: u64, walk: &SegmentReader<'_>) -> Result<bool, OpenError> {
        let has_content = || Ok::<_, io::Error>(walk.is_followed()? || walk.bodies_are_whole()?);
        Ok(!has_content().map_err(|error| self.io(segment, error))?)
    }

    /// Decides whether the incomplete group at `at` is a torn tail or damage.
    fn check_tail(&self, segment: u64, walk: &SegmentReader<'_>, at: u64) -> Result<(), OpenError> {
        let sequence = self.recovered.end.sequence;
        let later = walk.find_later(at, sequence).map_err(|error| self.io(segment, error))?;
        match later {
            Some(later) => Err(self.corrupt(
                segment,
                format!("the group at byte {at} is damaged, but a later one follows at byte {later}"),
            )),
            None => Ok(()),
        }
    }

    fn apply(&mut self, segment: u64, walk: &SegmentReader<'_>) -> Result<(), OpenError> {
        // One buffer for all keys and values of a group, until the next checkpoint.
        let rows = Bytes::copy_from_slice(walk.rows());
        self.recovered.table.add_bytes(rows.len());
        for entry in LogEntries::new(&rows, segment, walk.bodies_at()) {
            match entry {
                Ok(LogEntry::Row { key, value }) => {
                    let value = value.map(|value| rows.slice_ref(value));
                    self.recovered.table.set(rows.slice_ref(key), MemTableRow { value, fresh: false });
                }
                Ok(LogEntry::Body { key, location }) => self.recovered.table.set_body(rows.slice_ref(key), location),
                Err(()) => {
                    let at = walk.group_at();
                    let reason = format!("cannot decode the group at byte {at}; a newer version may have written it");
                    return Err(self.corrupt(segment, reason));
                }
            }
        }
        Ok(())
    }
}

/// Removes a newest segment without a header, left by an interrupted start.
pub(crate) fn remove_unfinished(segments: &Segments, disk: &Disk, end: LogPosition) -> Result<(), OpenError> {
    for segment in segments.numbers().into_iter().filter(|segment| *segment > end.segment) {
        segments.remove(segment).map_err(|error| OpenError::io(segments.path(segment), error))?;
    }
    disk.sync_directory(segments.directory()).map_err(|error| OpenError::io(segments.directory(), error))
}
