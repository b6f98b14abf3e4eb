//! Log appender: appends groups to the newest segment and makes each durable with one fdatasync.
//!
//! Space is allocated ahead of the writes in steps. A full disk is thus noticed before anything is written, and a
//! group's fdatasync need not record a new file length. For small groups, zero fill (`redb/zero_fill.rs`) spares the
//! fdatasync the extent updates as well. When a segment is full, it is truncated to its length and the next one is
//! started. The new header records where the old segment ends, and is durable before the first group.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::disk::{Disk, DiskFile, is_no_space};
use super::disk_space::DiskSpace;
use super::index::LogPosition;
use super::record::{GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader, StoreId, salt};
use super::segments::Segments;
use super::zero_fill::{PIECES_MAX, ZeroFill};

/// Allocation step: a tenth of a second of writes on a fast disk.
const ALLOCATION_BYTES: u64 = 8 << 20;
/// Allocation step on a nearly full disk.
const FRUGAL_BYTES: u64 = 256 << 10;
/// Free space that the log leaves to checkpoints, because only they can free segments.
const FLOOR_BYTES: u64 = 4 << 20;
/// Free space without which the first group cannot be written.
pub(crate) const FIRST_GROUP_BYTES: u64 = FLOOR_BYTES + FRUGAL_BYTES;

/// Why a group was not written.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// The disk is full. The log is unchanged.
    Full,
    /// The disk failed: the state on disk is unknown.
    Broken(String),
}

/// A group ready to be written.
#[derive(Debug, Default)]
pub(crate) struct LogGroup<'a> {
    pub(crate) rows: Vec<&'a [u8]>,
    pub(crate) bodies: Vec<&'a Bytes>,
    pub(crate) batches: u32,
}

impl LogGroup<'_> {
    fn rows_bytes(&self) -> u64 {
        self.rows.iter().map(|part| part.len() as u64).sum()
    }

    fn bodies_bytes(&self) -> u64 {
        self.bodies.iter().map(|part| part.len() as u64).sum()
    }
}

/// Location of a written group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupLocation {
    pub(crate) segment: u64,
    pub(crate) bodies_at: u64,
    pub(crate) size_bytes: u64,
}

/// The newest segment and the position of the next group.
#[derive(Debug)]
pub(crate) struct LogAppender {
    disk: Disk,
    space: Arc<DiskSpace>,
    store: StoreId,
    segment_bytes: u64,
    file: Arc<DiskFile>,
    allocated: u64,
    ahead: ZeroFill,
    position: LogPosition,
}

fn broken(operation: &str, file: &DiskFile, error: &io::Error) -> AppendError {
    AppendError::Broken(format!("{operation} {} failed: {error}", file.path().display()))
}

impl LogAppender {
    /// Starts the segment after `after`, whose header records where the previous one ends.
    pub(crate) fn start(
        segments: &Segments,
        space: &Arc<DiskSpace>,
        store: StoreId,
        segment_bytes: u64,
        after: LogPosition,
    ) -> Result<Self, AppendError> {
        let disk = space.disk().clone();
        let (file, position) = start_segment(segments, &disk, store, after)?;
        let ahead = ZeroFill::new(file.is_overwritten_in_place());
        Ok(Self {
            disk,
            space: Arc::clone(space),
            store,
            segment_bytes,
            file,
            allocated: SEGMENT_HEADER_BYTES as u64,
            ahead,
            position,
        })
    }

    /// Position of the next group.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Appends a group and makes it durable.
    pub(crate) fn append(&mut self, segments: &Segments, group: &LogGroup<'_>) -> Result<GroupLocation, AppendError> {
        let too_large = || AppendError::Broken("the row part of a group exceeds 4 GiB".into());
        let rows_bytes = u32::try_from(group.rows_bytes()).map_err(|_| too_large())?;
        let bodies_bytes = group.bodies_bytes();
        let size_bytes = GROUP_HEADER_BYTES as u64 + u64::from(rows_bytes) + bodies_bytes;
        self.reserve_space(segments, size_bytes)?;
        let mut checksum = crc32fast::Hasher::new();
        group.rows.iter().for_each(|part| checksum.update(part));
        let header = GroupHeader {
            sequence: self.position.sequence,
            rows_checksum: checksum.finalize(),
            rows_bytes,
            bodies_bytes,
            batches: group.batches,
        };
        let LogPosition { segment, offset, .. } = self.position;
        let header = header.encode(salt(&self.store, segment, offset));
        let mut pieces = Vec::with_capacity(1 + group.rows.len() + group.bodies.len() + PIECES_MAX);
        pieces.push(IoSlice::new(&header));
        pieces.extend(group.rows.iter().map(|part| IoSlice::new(part)));
        pieces.extend(group.bodies.iter().map(|part| IoSlice::new(part)));
        for zeros in self.ahead.zeros_after(size_bytes, offset + size_bytes, self.allocated) {
            pieces.push(IoSlice::new(zeros));
        }
        if let Err(error) = self.file.write_at(offset, &mut pieces) {
            return Err(self.revert_write(&error));
        }
        self.file.sync().map_err(|error| broken("fdatasync of", &self.file, &error))?;
        self.position.offset += size_bytes;
        self.position.sequence += 1;
        let bodies_at = offset + GROUP_HEADER_BYTES as u64 + u64::from(rows_bytes);
        Ok(GroupLocation { segment, bodies_at, size_bytes })
    }

    /// After a failed write: truncates the file to the last valid position if the disk was only full.
    fn revert_write(&mut self, error: &io::Error) -> AppendError {
        if !is_no_space(error) {
            return broken("writing", &self.file, error);
        }
        match self.file.truncate(self.position.offset) {
            Ok(()) => {
                self.allocated = self.position.offset;
                self.ahead.cut(self.position.offset);
                AppendError::Full
            }
            Err(error) => broken("truncating", &self.file, &error),
        }
    }

    fn reserve_space(&mut self, segments: &Segments, size_bytes: u64) -> Result<(), AppendError> {
        let is_empty = self.position.offset == SEGMENT_HEADER_BYTES as u64;
        if !is_empty && self.position.offset + size_bytes > self.segment_bytes {
            self.rotate_segment(segments)?;
        }
        let end = self.position.offset + size_bytes;
        if end <= self.allocated {
            return Ok(());
        }
        let ahead = |step: u64| end.next_multiple_of(step).min(end.max(self.segment_bytes));
        let free_bytes = self.space.free_bytes();
        let fits = |new_size: &u64| free_bytes >= FLOOR_BYTES.saturating_add(new_size - self.allocated);
        let new_size = [ahead(ALLOCATION_BYTES), ahead(FRUGAL_BYTES)].into_iter().find(fits);
        let new_size = new_size.ok_or(AppendError::Full)?;
        match self.file.allocate(self.allocated, new_size - self.allocated) {
            Ok(()) => {
                self.allocated = new_size;
                segments.set_size(self.position.segment, new_size);
                Ok(())
            }
            Err(error) if is_no_space(&error) => Err(AppendError::Full),
            Err(error) => Err(broken("allocating space in", &self.file, &error)),
        }
    }

    fn rotate_segment(&mut self, segments: &Segments) -> Result<(), AppendError> {
        let (file, position) = start_segment(segments, &self.disk, self.store, self.position)?;
        // Frees the unused allocation; if that fails, only space is lost.
        if let Err(error) = self.file.truncate(self.position.offset) {
            tracing::warn!(file = %self.file.path().display(), %error, "cannot truncate a full log segment");
        }
        segments.set_size(self.position.segment, self.position.offset);
        self.file = file;
        self.allocated = position.offset;
        self.ahead.cut(position.offset);
        self.position = position;
        Ok(())
    }
}

/// Returns whether the process or the system is out of file descriptors or memory, which is temporary.
fn is_out_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// Creates the segment after `after`, durable and empty.
fn start_segment(
    segments: &Segments,
    disk: &Disk,
    store: StoreId,
    after: LogPosition,
) -> Result<(Arc<DiskFile>, LogPosition), AppendError> {
    let segment = after.segment + 1;
    let path = segments.path(segment);
    // Running out of file descriptors or memory puts no durable data in doubt, so treat it like a full disk.
    let for_now = |error: &io::Error| is_no_space(error) || is_out_of_files(error);
    let fault = |error: io::Error| match for_now(&error) {
        true => AppendError::Full,
        false => AppendError::Broken(format!("starting {} failed: {error}", path.display())),
    };
    let file = disk.create(&path).map_err(fault)?;
    let header = SegmentHeader { segment, store, first_sequence: after.sequence, previous_end: after.offset }.encode();
    let written = file.write_at(0, &mut [IoSlice::new(&header)]);
    if let Err(error) = written {
        // Remove the file, or the next attempt fails because the name exists.
        disk.remove(&path).map_err(fault)?;
        return Err(fault(error));
    }
    let synced = file.sync().and_then(|()| disk.sync_directory(segments.directory()));
    synced.map_err(|error| broken("fdatasync of", &file, &error))?;
    let file = Arc::new(file);
    segments.add(segment, Arc::clone(&file));
    segments.newest.store(segment, Ordering::Relaxed);
    Ok((file, LogPosition { segment, offset: SEGMENT_HEADER_BYTES as u64, sequence: after.sequence }))
}
