//! Old segments: removed when nothing in them is referred to, emptied when little is.
//!
//! Only segments wholly before the last checkpoint are touched: replay needs none of them. The last
//! bodies of a mostly dead one are copied forward, a bounded slice at a time, through the writer like
//! any commit; when a later checkpoint has their new places, the segment is empty and goes. If the
//! copying is cut short (a crash, a full disk), the segment is walked again from its start: bodies that
//! have moved are simply no longer there.

use std::collections::BTreeSet;
use std::io;

use super::index::{LiveBodies, LiveBySegment, LogPosition};
use super::prepared::RelocatedBody;
use super::record::{LogEntry, SEGMENT_HEADER_BYTES, StoreId};
use super::segments::Segments;
use super::shared::EngineState;
use super::walk::{SegmentReader, SegmentStep};

/// One slice of moved bodies: a few milliseconds of the writer's time.
const SLICE_BYTES: u64 = 1 << 20;
/// What a moved body takes in the log beside its bytes, about: its key, its size, its checksum.
const ENTRY_BYTES: u64 = 64;
/// And what it is reckoned at in a slice: its place is one more page of the index to write.
const MOVED_BYTES: u64 = 1 << 10;
/// Groups looked at for one slice: a bound on the reading, too.
const SLICE_GROUPS: usize = 4096;
/// A segment is emptied when less than this part of a full one is alive.
const LIVE_PART: u64 = 4;

/// A part of a segment's walk.
#[derive(Debug, Clone, Copy)]
struct RelocationSlice {
    segment: u64,
    /// Where the walk goes on after it.
    end: u64,
    /// It reaches the segment's end.
    is_last: bool,
}

/// What was moved and what comes next.
#[derive(Debug)]
pub(crate) struct SegmentReclaimer {
    store: StoreId,
    segment_bytes: u64,
    /// The segment being emptied, and where its walk goes on.
    cursor: Option<(u64, u64)>,
    /// The slice that is at the writer.
    under_way: Option<RelocationSlice>,
    /// Emptied; removed at a later checkpoint.
    emptied: BTreeSet<u64>,
}

impl SegmentReclaimer {
    pub(crate) fn new(store: StoreId, segment_bytes: u64) -> Self {
        Self { store, segment_bytes, cursor: None, under_way: None, emptied: BTreeSet::new() }
    }

    /// Removes the files that nothing refers to.
    pub(crate) fn remove_dead(
        &mut self,
        segments: &Segments,
        live: &LiveBySegment,
        position: LogPosition,
    ) -> io::Result<()> {
        for segment in segments.numbers() {
            if segment >= position.segment {
                break;
            }
            if !live.contains_key(&segment) {
                segments.remove(segment)?;
                self.emptied.remove(&segment);
                if self.cursor.is_some_and(|(at, _)| at == segment) {
                    self.cursor = None;
                }
            }
        }
        Ok(())
    }

    /// The writer took the slice, or did not: then it comes again.
    pub(crate) fn finish_slice(&mut self, done: bool) {
        if let Some(slice) = self.under_way.take().filter(|_| done) {
            self.advance(slice);
        }
    }

    fn advance(&mut self, slice: RelocationSlice) {
        if self.cursor.is_none_or(|(segment, _)| segment != slice.segment) {
            return;
        }
        self.cursor = Some((slice.segment, slice.end));
        if slice.is_last {
            self.emptied.insert(slice.segment);
            self.cursor = None;
        }
    }

    /// The next bodies to move, if a segment is worth it and no slice is under way.
    pub(crate) fn next_slice(
        &mut self,
        shared: &EngineState,
        live: &LiveBySegment,
        position: LogPosition,
    ) -> Option<Vec<RelocatedBody>> {
        if self.under_way.is_some() {
            return None;
        }
        let (segment, at) = match self.cursor {
            Some(cursor) => cursor,
            None => {
                let worth = |segment: &u64, live: LiveBodies| {
                    *segment < position.segment
                        && is_nearly_empty(live, self.segment_bytes)
                        && !self.emptied.contains(segment)
                };
                let (segment, _) = live.iter().find(|(segment, live)| worth(segment, **live))?;
                (*segment, SEGMENT_HEADER_BYTES as u64)
            }
        };
        self.cursor = Some((segment, at));
        match self.collect_live_bodies(shared, segment, at) {
            Ok((moved, slice)) if moved.is_empty() => {
                self.advance(slice);
                None
            }
            Ok((moved, slice)) => {
                self.under_way = Some(slice);
                Some(moved)
            }
            Err(error) => {
                tracing::error!(segment, %error, "a segment could not be emptied; its bodies stay where they are");
                self.emptied.insert(segment);
                self.cursor = None;
                None
            }
        }
    }

    /// Bodies from `at` on that still lie there, up to a slice.
    fn collect_live_bodies(
        &self,
        shared: &EngineState,
        segment: u64,
        at: u64,
    ) -> Result<(Vec<RelocatedBody>, RelocationSlice), String> {
        let file = shared.segments.file(segment).map_err(|error| error.to_string())?;
        let mut walk = SegmentReader::new(&file, self.store, segment, at).map_err(|error| error.to_string())?;
        let mut moved = Vec::new();
        let mut size_bytes = 0;
        for _ in 0..SLICE_GROUPS {
            match walk.next_group().map_err(|error| error.to_string())? {
                SegmentStep::Group(_) => {}
                SegmentStep::End => {
                    return Ok((moved, RelocationSlice { segment, end: walk.at(), is_last: true }));
                }
            }
            for entry in walk.entries() {
                let Ok(LogEntry::Body { key, place: Some(place) }) = entry else { continue };
                if shared.body_location(key).map_err(|error| error.to_string())? != Some(place) {
                    continue;
                }
                let bytes = shared.segments.read(place).map_err(|fault| format!("{fault:?}"))?;
                size_bytes += u64::from(place.size_bytes) + MOVED_BYTES;
                moved.push(RelocatedBody { key: bytes::Bytes::copy_from_slice(key), from: place, bytes });
            }
            if size_bytes >= SLICE_BYTES {
                break;
            }
        }
        Ok((moved, RelocationSlice { segment, end: walk.at(), is_last: false }))
    }
}

/// Whether little of a segment is alive. Entries count: a segment full of small bodies would else be emptied
/// into another one like it, and that one again.
fn is_nearly_empty(live: LiveBodies, segment_bytes: u64) -> bool {
    let bytes = live.bodies.saturating_mul(ENTRY_BYTES).saturating_add(live.bytes);
    bytes < segment_bytes / LIVE_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_full_of_small_bodies_stays() {
        let full = 64 << 20;
        for size_bytes in [0, 1, 40, 1_000] {
            // What the writer packs into one segment when it moves bodies alone.
            let bodies = full / (ENTRY_BYTES + size_bytes);
            assert!(!is_nearly_empty(LiveBodies { bodies, bytes: bodies * size_bytes }, full));
            let bodies = bodies / 8;
            assert!(is_nearly_empty(LiveBodies { bodies, bytes: bodies * size_bytes }, full));
        }
    }
}
