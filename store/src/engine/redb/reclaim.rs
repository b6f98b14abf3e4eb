//! Segment reclaim (log compaction): removes dead segments and moves the last live bodies out of mostly dead ones.
//!
//! Only segments entirely before the last checkpoint are considered, because replay needs none of them. The live bodies
//! of a mostly dead segment are copied to the newest one in bounded slices, committed by the writer like any batch.
//! When a later checkpoint has recorded their new locations, the segment is dead and is removed. If relocation is
//! interrupted by a crash or a full disk, it starts again at the segment's beginning; bodies that were moved are no
//! longer found there.

use std::collections::BTreeSet;
use std::io;

use super::index::{LiveBodies, LiveBySegment, LogPosition};
use super::prepared_batch::RelocatedBody;
use super::record::{LogEntry, SEGMENT_HEADER_BYTES, StoreId};
use super::segment_reader::{SegmentReader, SegmentStep};
use super::segments::Segments;
use super::state::EngineState;

/// Size of a relocation slice: a few milliseconds of the writer's time.
const SLICE_BYTES: u64 = 1 << 20;
/// Approximate log overhead of a relocated body: key, size and checksum.
const ENTRY_BYTES: u64 = 64;
/// Cost of a relocated body within a slice, besides its bytes: one more index page to write.
const MOVED_BYTES: u64 = 1 << 10;
/// Maximum number of groups scanned for one slice.
const SLICE_GROUPS: usize = 4096;
/// A segment is emptied when less than 1/4 of a full one is live.
const LIVE_PART: u64 = 4;

/// A slice of a segment's relocation.
#[derive(Debug, Clone, Copy)]
struct RelocationSlice {
    segment: u64,
    /// Offset at which the next slice starts.
    end: u64,
    /// The slice reaches the segment's end.
    is_last: bool,
}

/// State of segment reclaim.
#[derive(Debug)]
pub(crate) struct SegmentReclaimer {
    store: StoreId,
    segment_bytes: u64,
    /// The segment being emptied, and the offset of its next slice.
    cursor: Option<(u64, u64)>,
    /// The slice that the writer is committing.
    under_way: Option<RelocationSlice>,
    /// Emptied segments, to be removed after a later checkpoint.
    emptied: BTreeSet<u64>,
}

impl SegmentReclaimer {
    pub(crate) fn new(store: StoreId, segment_bytes: u64) -> Self {
        Self { store, segment_bytes, cursor: None, under_way: None, emptied: BTreeSet::new() }
    }

    /// Removes the files of dead segments.
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

    /// Ends the current slice. If it was not committed, it is repeated.
    pub(crate) fn finish_slice(&mut self, is_relocated: bool) {
        if let Some(slice) = self.under_way.take().filter(|_| is_relocated) {
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

    /// Returns the next bodies to relocate, if a segment is worth emptying and no slice is in progress.
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
                let is_reclaimable = |segment: &u64, live: LiveBodies| {
                    *segment < position.segment
                        && is_nearly_empty(live, self.segment_bytes)
                        && !self.emptied.contains(segment)
                };
                let (segment, _) = live.iter().find(|(segment, live)| is_reclaimable(segment, **live))?;
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
                tracing::error!(segment, %error, "cannot relocate the bodies of a log segment; they remain in it");
                self.emptied.insert(segment);
                self.cursor = None;
                None
            }
        }
    }

    /// Collects live bodies of a segment from `at` on, up to the size of a slice.
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
                let Ok(LogEntry::Body { key, location: Some(location) }) = entry else { continue };
                if shared.body_location(key).map_err(|error| error.to_string())? != Some(location) {
                    continue;
                }
                let bytes = shared.segments.read(location).map_err(|fault| format!("{fault:?}"))?;
                size_bytes += u64::from(location.size_bytes) + MOVED_BYTES;
                moved.push(RelocatedBody { key: bytes::Bytes::copy_from_slice(key), from: location, bytes });
            }
            if size_bytes >= SLICE_BYTES {
                break;
            }
        }
        Ok((moved, RelocationSlice { segment, end: walk.at(), is_last: false }))
    }
}

/// Returns whether little of a segment is live. Entry overhead counts: otherwise a segment full of small bodies would
/// be copied into another one like it, again and again.
fn is_nearly_empty(live: LiveBodies, segment_bytes: u64) -> bool {
    let bytes = live.bodies.saturating_mul(ENTRY_BYTES).saturating_add(live.bytes);
    bytes < segment_bytes / LIVE_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_full_of_small_bodies_is_not_emptied() {
        let full = 64 << 20;
        for size_bytes in [0, 1, 40, 1_000] {
            // The number of bodies that relocation alone packs into one segment.
            let bodies = full / (ENTRY_BYTES + size_bytes);
            assert!(!is_nearly_empty(LiveBodies { bodies, bytes: bodies * size_bytes }, full));
            let bodies = bodies / 8;
            assert!(is_nearly_empty(LiveBodies { bodies, bytes: bodies * size_bytes }, full));
        }
    }
}
