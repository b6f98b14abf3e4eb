//! Opening after any end: the log's tail replayed on top of the index's last checkpoint.
//!
//! ```text
//! position in the index ─► groups, one after the other, across segments ─► the first that is not whole
//! ```
//!
//! What a group that is not whole means depends on what follows:
//! - Nothing valid follows: a torn tail. The process or the machine stopped in the middle of that one
//!   write, and it was never acknowledged, for its fdatasync had not returned. It is cut off. The tail
//!   may be short, zeros, or half a group in any order of its pages.
//! - A later group follows, or a later segment whose header says that this one goes on: then the damaged
//!   group was durable once, and what was acknowledged is lost. [`OpenError::Corrupt`].
//!
//! Row parts are checked for every group; bodies only for the last one, which alone can be torn (each
//! group starts after the sync of the one before). Other bodies are checked when they are read.
//!
//! The last group is written once more and synced: if an earlier process was fenced because its sync
//! failed, the page cache may hold a group that the disk does not.

use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;

use super::disk::{Disk, DiskFile};
use super::index::{IndexState, LiveBySegment, LogPosition};
use super::record::{
    GROUP_HEADER_BYTES, LOG_FORMAT, LogEntries, LogEntry, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentHeaderError,
    StoreId,
};
use super::segments::Segments;
use super::table::{MemTable, MemTableRow};
use super::walk::{SegmentReader, SegmentStep};
use crate::engine::OpenError;

/// What replay found.
#[derive(Debug)]
pub(crate) struct ReplayResult {
    pub(crate) table: MemTable,
    /// Where the log ends.
    pub(crate) end: LogPosition,
    pub(crate) groups: u64,
    pub(crate) bytes: u64,
    /// The end of the file that is a torn tail or unused room.
    pub(crate) last: Option<Arc<DiskFile>>,
    /// The last group: where it starts.
    last_group_at: Option<u64>,
}

/// The last group is copied over itself in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// Replays, changing nothing on disk.
pub(crate) fn replay(segments: &Segments, opened: &IndexState) -> Result<ReplayResult, OpenError> {
    let numbers = segments.numbers();
    check_live(segments, &opened.live, &numbers)?;
    let start = opened.position;
    let mut run = Replay { segments, store: opened.store, recovered: ReplayResult::starting_at(start) };
    if start.segment == 0 {
        if run.last_segment(&numbers)? == 0 {
            return Ok(run.recovered);
        }
        // The first start ended between the segment's header and the index: nothing was taken yet.
        run.recovered.end = LogPosition { segment: 1, offset: SEGMENT_HEADER_BYTES as u64, sequence: 1 };
    }
    let first = run.recovered.end.segment;
    if !numbers.contains(&first) {
        return Err(run.corrupt(first, "it is missing, and the log goes on in it"));
    }
    let last = run.last_segment(&numbers)?;
    for segment in first..=last {
        if !numbers.contains(&segment) {
            return Err(run.corrupt(segment, "it is missing, and later segments exist"));
        }
        run.replay_segment(segment, segment == last)?;
    }
    Ok(run.recovered)
}

/// Every segment that the index refers to must be there.
fn check_live(segments: &Segments, live: &LiveBySegment, numbers: &[u64]) -> Result<(), OpenError> {
    match live.iter().find(|(segment, _)| numbers.binary_search(segment).is_err()) {
        Some((segment, live)) => Err(OpenError::corrupt(
            segments.path(*segment),
            format!("it is missing, and {} bodies are in it", live.bodies),
        )),
        None => Ok(()),
    }
}

impl ReplayResult {
    fn starting_at(end: LogPosition) -> Self {
        Self { table: MemTable::default(), end, groups: 0, bytes: 0, last: None, last_group_at: None }
    }

    /// Cuts off what follows the end, and makes sure that the last group is on the disk itself.
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
    fn corrupt(&self, segment: u64, what: impl Into<String>) -> OpenError {
        OpenError::corrupt(self.segments.path(segment), what)
    }

    fn io(&self, segment: u64, error: io::Error) -> OpenError {
        OpenError::io(self.segments.path(segment), error)
    }

    fn open(&self, segment: u64) -> Result<Arc<DiskFile>, OpenError> {
        self.segments.file(segment).map_err(|error| self.io(segment, error))
    }

    /// The header, none if it is not whole.
    fn header(&self, segment: u64) -> Result<Option<SegmentHeader>, OpenError> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match self.open(segment)?.read_at(0, &mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(self.io(segment, error)),
        }
        match SegmentHeader::decode(&bytes) {
            Ok(header) if header.store != self.store => Err(self.corrupt(segment, "it belongs to another store")),
            Ok(header) if header.segment != segment => {
                Err(self.corrupt(segment, format!("its header says it is segment {}", header.segment)))
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

    /// The last segment that counts. A newest one without a header was being made when everything
    /// stopped, unless there are groups in it.
    fn last_segment(&self, numbers: &[u64]) -> Result<u64, OpenError> {
        let Some((&newest, before)) = numbers.split_last() else { return Ok(0) };
        if self.has_header(newest)? || newest == self.recovered.end.segment {
            return Ok(newest);
        }
        let file = self.open(newest)?;
        let walk = SegmentReader::new(&file, self.store, newest, 0).map_err(|error| self.io(newest, error))?;
        match walk.find_later(0, 0).map_err(|error| self.io(newest, error))? {
            Some(at) => Err(self.corrupt(newest, format!("its header is damaged, and a group stands at byte {at}"))),
            None => Ok(before.last().copied().unwrap_or(0)),
        }
    }

    fn replay_segment(&mut self, segment: u64, is_last: bool) -> Result<(), OpenError> {
        let Some(header) = self.header(segment)? else {
            return Err(self.corrupt(segment, "its header is damaged"));
        };
        let end = self.recovered.end;
        if segment != end.segment {
            if header.previous_end != end.offset || header.first_sequence != end.sequence {
                let what = format!(
                    "the group at byte {} is damaged, and the log went on to byte {} and group {}",
                    end.offset, header.previous_end, header.first_sequence
                );
                return Err(self.corrupt(end.segment, what));
            }
            self.recovered.end = LogPosition { segment, offset: SEGMENT_HEADER_BYTES as u64, sequence: end.sequence };
        }
        let file = self.open(segment)?;
        self.recovered.last = Some(Arc::clone(&file));
        self.recovered.last_group_at = None;
        let from = self.recovered.end.offset;
        let size_bytes = file.size_bytes().map_err(|error| self.io(segment, error))?;
        if size_bytes < from {
            let what = format!("it ends at byte {size_bytes}, and the index counts on it up to byte {from}");
            return Err(self.corrupt(segment, what));
        }
        let mut walk = SegmentReader::new(&file, self.store, segment, from).map_err(|error| self.io(segment, error))?;
        self.replay_groups(segment, &mut walk, is_last)
    }

    /// Applies each group when the next one proves it whole; the last one is looked at body by body.
    fn replay_groups(&mut self, segment: u64, walk: &mut SegmentReader<'_>, is_last: bool) -> Result<(), OpenError> {
        loop {
            let expected = self.recovered.end.sequence;
            let step = walk.next_group().map_err(|error| self.io(segment, error))?;
            let SegmentStep::Group(header) = step else { break };
            if header.sequence != expected {
                let what =
                    format!("at byte {} stands group {}, where {expected} belongs", walk.group_at(), header.sequence);
                return Err(self.corrupt(segment, what));
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

    /// Is the group stepped on the last one, with a body that is not whole?
    fn is_torn(&self, segment: u64, walk: &SegmentReader<'_>) -> Result<bool, OpenError> {
        let look = || Ok::<_, io::Error>(walk.is_followed()? || walk.bodies_are_whole()?);
        Ok(!look().map_err(|error| self.io(segment, error))?)
    }

    /// The group at `at` is not whole: was it ever?
    fn check_tail(&self, segment: u64, walk: &SegmentReader<'_>, at: u64) -> Result<(), OpenError> {
        let sequence = self.recovered.end.sequence;
        let later = walk.find_later(at, sequence).map_err(|error| self.io(segment, error))?;
        match later {
            Some(later) => Err(self.corrupt(
                segment,
                format!("the group at byte {at} is damaged, and at byte {later} a later one stands"),
            )),
            None => Ok(()),
        }
    }

    fn apply(&mut self, segment: u64, walk: &SegmentReader<'_>) -> Result<(), OpenError> {
        // One buffer for a group's keys and values: as long as the next checkpoint takes.
        let rows = Bytes::copy_from_slice(walk.rows());
        self.recovered.table.add_bytes(rows.len());
        let bodies_at = walk.group_at() + (GROUP_HEADER_BYTES + rows.len()) as u64;
        for entry in LogEntries::new(&rows, segment, bodies_at) {
            match entry {
                Ok(LogEntry::Row { key, value }) => {
                    let value = value.map(|value| rows.slice_ref(value));
                    self.recovered.table.set(rows.slice_ref(key), MemTableRow { value, fresh: false });
                }
                Ok(LogEntry::Body { key, place }) => self.recovered.table.set_body(rows.slice_ref(key), place),
                Err(()) => {
                    let what = format!("the group at byte {} makes no sense", walk.group_at());
                    return Err(self.corrupt(segment, what));
                }
            }
        }
        Ok(())
    }
}

/// Removes what a start that was cut short left behind: a newest segment without a header.
pub(crate) fn remove_unfinished(segments: &Segments, disk: &Disk, end: LogPosition) -> Result<(), OpenError> {
    for segment in segments.numbers().into_iter().filter(|segment| *segment > end.segment) {
        segments.remove(segment).map_err(|error| OpenError::io(segments.path(segment), error))?;
    }
    disk.sync_directory(segments.directory()).map_err(|error| OpenError::io(segments.directory(), error))
}
