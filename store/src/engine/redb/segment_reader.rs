//! Reads the groups of a segment in order: headers and row parts; bodies are skipped.

use std::borrow::Cow;
use std::io;

use super::disk::DiskFile;
use super::record::{
    GROUP_HEADER_BYTES, GROUP_MAGIC, GroupHeader, LogEntries, LogEntry, StoreId, decompress_rows, salt,
};

/// Content at an offset of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentStep {
    /// A group with valid header and row part.
    Group(GroupHeader),
    /// No valid group: the end, or damage.
    End,
}

#[derive(Debug)]
pub(crate) struct SegmentReader<'a> {
    file: &'a DiskFile,
    store: StoreId,
    segment: u64,
    file_bytes: u64,
    /// Offsets of the current group and of the next one.
    group_at: u64,
    at: u64,
    /// Offset of the current group's body part.
    bodies_at: u64,
    /// The current group's row part, decompressed.
    rows: Vec<u8>,
}

/// Buffer size for verifying a body's checksum.
const PIECE_BYTES: u64 = 1 << 20;

impl<'a> SegmentReader<'a> {
    pub(crate) fn new(file: &'a DiskFile, store: StoreId, segment: u64, at: u64) -> io::Result<Self> {
        let file_bytes = file.size_bytes()?;
        Ok(Self { file, store, segment, file_bytes, group_at: at, at, bodies_at: at, rows: Vec::new() })
    }

    /// Offset of the next group.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Offset of the current group.
    pub(crate) fn group_at(&self) -> u64 {
        self.group_at
    }

    fn header_at(&self, at: u64) -> io::Result<Option<GroupHeader>> {
        let mut bytes = [0; GROUP_HEADER_BYTES];
        if at + GROUP_HEADER_BYTES as u64 > self.file_bytes {
            return Ok(None);
        }
        self.file.read_at(at, &mut bytes)?;
        let header = GroupHeader::decode(&bytes, salt(&self.store, self.segment, at));
        Ok(header.filter(|header| at.saturating_add(header.size_bytes()) <= self.file_bytes))
    }

    pub(crate) fn next_group(&mut self) -> io::Result<SegmentStep> {
        let Some(header) = self.header_at(self.at)? else { return Ok(SegmentStep::End) };
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        rows.resize(header.rows_bytes as usize, 0);
        self.file.read_at(self.at + GROUP_HEADER_BYTES as u64, &mut rows)?;
        let is_whole = crc32fast::hash(&rows) == header.rows_checksum;
        self.rows = rows;
        if !is_whole {
            return Ok(SegmentStep::End);
        }
        // A part that cannot be decompressed remains, and its entries cannot be decoded.
        if let Some(Cow::Owned(rows)) = decompress_rows(&self.rows) {
            self.rows = rows;
        }
        self.group_at = self.at;
        self.bodies_at = self.at + GROUP_HEADER_BYTES as u64 + u64::from(header.rows_bytes);
        self.at += header.size_bytes();
        Ok(SegmentStep::Group(header))
    }

    /// Returns whether a valid header follows the current group.
    pub(crate) fn is_followed(&self) -> io::Result<bool> {
        Ok(self.header_at(self.at)?.is_some())
    }

    /// Offset of the body part of the current group.
    pub(crate) fn bodies_at(&self) -> u64 {
        self.bodies_at
    }

    /// The row part of the current group, decompressed.
    pub(crate) fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// The entries of the current group.
    pub(crate) fn entries(&self) -> LogEntries<'_> {
        LogEntries::new(&self.rows, self.segment, self.bodies_at)
    }

    /// Verifies the checksums of all bodies of the current group, up to an entry that cannot be decoded.
    pub(crate) fn bodies_are_whole(&self) -> io::Result<bool> {
        let mut piece = Vec::new();
        for entry in self.entries() {
            // The row part is whole, so this is not a torn write.
            let Ok(entry) = entry else { return Ok(true) };
            let LogEntry::Body { location: Some(location), .. } = entry else { continue };
            let mut checksum = crc32fast::Hasher::new();
            let (mut at, end) = (location.offset, location.offset + u64::from(location.size_bytes));
            while at < end {
                let size_bytes = PIECE_BYTES.min(end - at);
                piece.resize(usize::try_from(size_bytes).unwrap_or(0), 0);
                self.file.read_at(at, &mut piece)?;
                checksum.update(&piece);
                at += size_bytes;
            }
            if checksum.finalize() != location.checksum {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the offset, from `from` on, of a group with a later sequence number than `sequence`.
    pub(crate) fn find_later(&self, from: u64, sequence: u64) -> io::Result<Option<u64>> {
        let mut piece = Vec::new();
        let mut start = from;
        while start < self.file_bytes {
            let size_bytes = PIECE_BYTES.min(self.file_bytes - start);
            piece.resize(usize::try_from(size_bytes).unwrap_or(0), 0);
            self.file.read_at(start, &mut piece)?;
            for hit in memchr::memmem::find_iter(&piece, GROUP_MAGIC) {
                let at = start + hit as u64;
                if self.header_at(at)?.is_some_and(|header| header.sequence > sequence) {
                    return Ok(Some(at));
                }
            }
            if size_bytes < PIECE_BYTES {
                break;
            }
            // The buffers overlap, so that a magic at a boundary is found.
            start += PIECE_BYTES - GROUP_MAGIC.len() as u64;
        }
        Ok(None)
    }
}
