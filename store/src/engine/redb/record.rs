//! Encoding of the log. All numbers are little-endian; checksums are CRC-32 (IEEE).
//!
//! ```text
//! segment file  log-0000000000000001.seg
//!   header, 64 bytes
//!     0  8  magic "postrlog"
//!     8  4  format (1, or 2: with compressed entries)
//!    12  4  zero
//!    16  8  segment number, the one in the file's name
//!    24 16  store id
//!    40  8  sequence of the first group in it
//!    48  8  end of the groups of the previous segment
//!    56  4  zero
//!    60  4  checksum of bytes 0..60
//!   groups, back to back; what follows the last one is preallocated space or a torn tail
//!
//! group
//!   header, 40 bytes
//!     0  4  magic "grp1"
//!     4  4  checksum of bytes 8..40, seeded with the salt
//!     8  8  sequence: one more than the group before, across segments
//!    16  4  checksum of the row part
//!    20  4  size of the row part
//!    24  8  size of the body part
//!    32  4  number of batches
//!    36  4  zero
//!   row part: entries, back to back
//!     put          01, key size u16, value size u32, key, value
//!     delete       02, key size u16, key
//!     body         03, key size u16, body size u32, body checksum u32, key
//!     delete body  04, key size u16, key
//!     compressed   05, dictionary u8, block size u32, size of the entries u32, block: entries of the four other kinds
//!                  (row_compression.rs)
//!   body part: the bodies of the row part's body entries, in their order, back to back
//! ```
//!
//! The salt is the checksum of store id, segment number and the group's offset. Bytes that look like a group by
//! accident (in a body, or in a segment of another store or position) therefore fail the checksum. A group is one write
//! and one fdatasync, and the next one starts only after that. A group with a valid header and a later sequence number
//! thus proves that all groups before it were durable.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crc32fast::Hasher;

use super::memtable::BodyLocation;
use super::row_compression::{self, DICTIONARY};

/// The format that this version writes, and the newest that it reads. It reads the earlier ones, too.
pub(crate) const LOG_FORMAT: u32 = 2;
pub(crate) const LOG_FORMAT_OLDEST: u32 = 1;
/// Offset of a segment's first group.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
pub(crate) const GROUP_HEADER_BYTES: usize = 40;

const SEGMENT_MAGIC: &[u8; 8] = b"postrlog";
/// Magic of a group. Replay searches for it after a damaged group.
pub(crate) const GROUP_MAGIC: &[u8; 4] = b"grp1";

const PUT: u8 = 1;
const DELETE: u8 = 2;
const BODY: u8 = 3;
const DELETE_BODY: u8 = 4;
const COMPRESSED: u8 = 5;

/// Entries outside this range are not compressed: smaller ones hardly gain anything, and the limit bounds the memory
/// that a damaged block can take.
const COMPRESSED_BYTES: RangeInclusive<usize> = 64..=1 << 20;

/// Random-looking id of a store; distinguishes its log files from those of other stores.
pub(crate) type StoreId = [u8; 16];

/// Header of a segment; see the file's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) segment: u64,
    pub(crate) store: StoreId,
    pub(crate) first_sequence: u64,
    pub(crate) previous_end: u64,
}

/// Why a segment's header cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentHeaderError {
    /// Not a header, or a damaged one.
    Damaged,
    Newer(u32),
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|part| u32::from_le_bytes(*part))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|part| u64::from_le_bytes(*part))
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        out.extend_from_slice(SEGMENT_MAGIC);
        out.extend_from_slice(&LOG_FORMAT.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.extend_from_slice(&self.store);
        out.extend_from_slice(&self.first_sequence.to_le_bytes());
        out.extend_from_slice(&self.previous_end.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Returns the format that a header names, if this version reads it.
    pub(crate) fn decode_format(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<u32, SegmentHeaderError> {
        let (content, checksum) = bytes.split_at(SEGMENT_HEADER_BYTES - 4);
        let whole = u32_at(checksum, 0) == Some(crc32fast::hash(content));
        if !whole || !bytes.starts_with(SEGMENT_MAGIC) {
            return Err(SegmentHeaderError::Damaged);
        }
        match u32_at(bytes, 8) {
            Some(format @ LOG_FORMAT_OLDEST..=LOG_FORMAT) => Ok(format),
            Some(newer) => Err(SegmentHeaderError::Newer(newer)),
            None => Err(SegmentHeaderError::Damaged),
        }
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, SegmentHeaderError> {
        Self::decode_format(bytes)?;
        let read = || {
            Some(Self {
                segment: u64_at(bytes, 16)?,
                store: *bytes.get(24..)?.first_chunk()?,
                first_sequence: u64_at(bytes, 40)?,
                previous_end: u64_at(bytes, 48)?,
            })
        };
        read().ok_or(SegmentHeaderError::Damaged)
    }
}

/// Seed of a group header's checksum.
pub(crate) fn salt(store: &StoreId, segment: u64, offset: u64) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(store);
    hasher.update(&segment.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.finalize()
}

/// Header of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) sequence: u64,
    pub(crate) rows_checksum: u32,
    pub(crate) rows_bytes: u32,
    pub(crate) bodies_bytes: u64,
    pub(crate) batches: u32,
}

impl GroupHeader {
    pub(crate) fn encode(&self, salt: u32) -> [u8; GROUP_HEADER_BYTES] {
        let mut content = Vec::with_capacity(GROUP_HEADER_BYTES);
        content.extend_from_slice(GROUP_MAGIC);
        content.extend_from_slice(&[0; 4]);
        content.extend_from_slice(&self.sequence.to_le_bytes());
        content.extend_from_slice(&self.rows_checksum.to_le_bytes());
        content.extend_from_slice(&self.rows_bytes.to_le_bytes());
        content.extend_from_slice(&self.bodies_bytes.to_le_bytes());
        content.extend_from_slice(&self.batches.to_le_bytes());
        let mut out = [0; GROUP_HEADER_BYTES];
        for (to, from) in out.iter_mut().zip(content) {
            *to = from;
        }
        let checksum = header_checksum(&out, salt).to_le_bytes();
        for (to, from) in out.iter_mut().skip(4).zip(checksum) {
            *to = from;
        }
        out
    }

    /// Decodes a header; `None` if no group starts here.
    pub(crate) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes: &[u8; GROUP_HEADER_BYTES] = bytes.first_chunk()?;
        if !bytes.starts_with(GROUP_MAGIC) || u32_at(bytes, 4)? != header_checksum(bytes, salt) {
            return None;
        }
        Some(Self {
            sequence: u64_at(bytes, 8)?,
            rows_checksum: u32_at(bytes, 16)?,
            rows_bytes: u32_at(bytes, 20)?,
            bodies_bytes: u64_at(bytes, 24)?,
            batches: u32_at(bytes, 32)?,
        })
    }

    /// Size of the whole group including the header.
    pub(crate) fn size_bytes(&self) -> u64 {
        (GROUP_HEADER_BYTES as u64).saturating_add(u64::from(self.rows_bytes)).saturating_add(self.bodies_bytes)
    }
}

fn header_checksum(bytes: &[u8; GROUP_HEADER_BYTES], salt: u32) -> u32 {
    let mut hasher = Hasher::new_with_initial(salt);
    hasher.update(bytes.get(8..).unwrap_or_default());
    hasher.finalize()
}

fn key_part(out: &mut Vec<u8>, tag: u8, key: &[u8]) {
    out.push(tag);
    // Key lengths are checked before encoding, so they fit.
    out.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes());
}

/// Appends the entry of a row: a value or a delete. Key and value must be last: prepared_batch.rs slices them out.
pub(crate) fn encode_row(out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => {
            key_part(out, PUT, key);
            out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
        None => {
            key_part(out, DELETE, key);
            out.extend_from_slice(key);
        }
    }
}

/// Appends the entry of a body: size and checksum, or a delete.
pub(crate) fn encode_body(out: &mut Vec<u8>, key: &[u8], body: Option<(u32, u32)>) {
    match body {
        Some((size_bytes, checksum)) => {
            key_part(out, BODY, key);
            out.extend_from_slice(&size_bytes.to_le_bytes());
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        None => key_part(out, DELETE_BODY, key),
    }
    out.extend_from_slice(key);
}

/// Returns the entries of a batch as they are written: compressed, if that saves space.
pub(crate) fn compress_entries(entries: &[u8]) -> Option<Vec<u8>> {
    if !COMPRESSED_BYTES.contains(&entries.len()) {
        return None;
    }
    let mut out = Vec::new();
    let write = |block: &[u8]| {
        out.reserve_exact(block.len() + 10);
        out.extend_from_slice(&[COMPRESSED, DICTIONARY]);
        // Both sizes are at most 1 MiB.
        out.extend_from_slice(&(block.len() as u32).to_le_bytes());
        out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        out.extend_from_slice(block);
    };
    (row_compression::compress_entries(entries, write) && out.len() < entries.len()).then_some(out)
}

/// Returns a row part with its compressed entries decompressed. `None` if it is damaged.
pub(crate) fn decompress_rows(rows: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut out = Vec::new();
    let mut entries = LogEntries::new(rows, 0, 0);
    // Bytes that were read and are not in `out` yet.
    let mut pending = rows;
    while let Some(tag) = entries.rest.first() {
        let before = pending.len() - entries.rest.len();
        if *tag == COMPRESSED {
            out.extend_from_slice(pending.get(..before)?);
            entries.decompress_into(&mut out)?;
            pending = entries.rest;
        } else {
            entries.entry()?;
        }
    }
    if pending.len() == rows.len() {
        return Some(Cow::Borrowed(rows));
    }
    out.extend_from_slice(pending);
    Some(Cow::Owned(out))
}

/// One decoded entry of a row part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogEntry<'a> {
    Row { key: &'a [u8], value: Option<&'a [u8]> },
    Body { key: &'a [u8], location: Option<BodyLocation> },
}

/// Decodes a row part without compressed entries. `bodies_at` is the offset of the body part.
pub(crate) struct LogEntries<'a> {
    rest: &'a [u8],
    segment: u64,
    bodies_at: u64,
}

impl<'a> LogEntries<'a> {
    pub(crate) fn new(rows: &'a [u8], segment: u64, bodies_at: u64) -> Self {
        Self { rest: rows, segment, bodies_at }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(part)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4).and_then(|part| u32_at(part, 0))
    }

    /// Takes a compressed entry and appends what it contains.
    fn decompress_into(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let [_, dictionary] = *self.take(2)?.first_chunk()?;
        let (block_bytes, size_bytes) = (self.number()? as usize, self.number()? as usize);
        let block = self.take(block_bytes)?;
        if !COMPRESSED_BYTES.contains(&size_bytes) {
            return None;
        }
        out.extend_from_slice(&row_compression::decompress_entries(dictionary, block, size_bytes)?);
        Some(())
    }

    fn entry(&mut self) -> Option<LogEntry<'a>> {
        let tag = *self.take(1)?.first()?;
        let key_bytes = usize::from(u16::from_le_bytes(*self.take(2)?.first_chunk()?));
        match tag {
            PUT => {
                let value_bytes = self.number()? as usize;
                let key = self.take(key_bytes)?;
                Some(LogEntry::Row { key, value: Some(self.take(value_bytes)?) })
            }
            DELETE => Some(LogEntry::Row { key: self.take(key_bytes)?, value: None }),
            BODY => {
                let size_bytes = self.number()?;
                let checksum = self.number()?;
                let location = BodyLocation { segment: self.segment, offset: self.bodies_at, size_bytes, checksum };
                self.bodies_at = self.bodies_at.checked_add(u64::from(size_bytes))?;
                Some(LogEntry::Body { key: self.take(key_bytes)?, location: Some(location) })
            }
            DELETE_BODY => Some(LogEntry::Body { key: self.take(key_bytes)?, location: None }),
            _ => None,
        }
    }
}

impl<'a> Iterator for LogEntries<'a> {
    /// An error if the row part is invalid although its checksum matches.
    type Item = Result<LogEntry<'a>, ()>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_none() {
            self.rest = &[];
        }
        Some(entry.ok_or(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_detect_a_changed_byte() {
        let header = SegmentHeader { segment: 7, store: [9; 16], first_sequence: 3, previous_end: 64 };
        let bytes: [u8; SEGMENT_HEADER_BYTES] = header.encode().try_into().unwrap();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(SegmentHeader::decode(&changed), Err(SegmentHeaderError::Damaged));
        }
        let group = GroupHeader { sequence: 5, rows_checksum: 1, rows_bytes: 2, bodies_bytes: 3, batches: 4 };
        let bytes = group.encode(salt(&[9; 16], 7, 64));
        assert_eq!(GroupHeader::decode(&bytes, salt(&[9; 16], 7, 64)), Some(group));
        assert_eq!(GroupHeader::decode(&bytes, salt(&[9; 16], 7, 65)), None);
        assert_eq!(GroupHeader::decode(&bytes, salt(&[9; 16], 8, 64)), None);
        assert_eq!(GroupHeader::decode(&bytes, salt(&[8; 16], 7, 64)), None);
    }

    #[test]
    fn a_newer_format_is_reported() {
        let mut bytes = SegmentHeader { segment: 1, store: [0; 16], first_sequence: 1, previous_end: 0 }.encode();
        bytes[8] = 3;
        let checksum = crc32fast::hash(&bytes[..60]).to_le_bytes();
        bytes[60..].copy_from_slice(&checksum);
        let bytes: [u8; SEGMENT_HEADER_BYTES] = bytes.try_into().unwrap();
        assert_eq!(SegmentHeader::decode(&bytes), Err(SegmentHeaderError::Newer(3)));
    }

    #[test]
    fn entries_round_trip_with_their_locations() {
        let mut rows = Vec::new();
        encode_row(&mut rows, b"a", Some(b"value"));
        encode_body(&mut rows, b"b", Some((10, 77)));
        encode_row(&mut rows, b"c", None);
        encode_body(&mut rows, b"d", Some((5, 78)));
        encode_body(&mut rows, b"b", None);
        let location = |offset, size_bytes, checksum| BodyLocation { segment: 3, offset, size_bytes, checksum };
        let entries: Vec<_> = LogEntries::new(&rows, 3, 1000).map(Result::unwrap).collect();
        assert_eq!(
            entries,
            [
                LogEntry::Row { key: b"a", value: Some(b"value") },
                LogEntry::Body { key: b"b", location: Some(location(1000, 10, 77)) },
                LogEntry::Row { key: b"c", value: None },
                LogEntry::Body { key: b"d", location: Some(location(1010, 5, 78)) },
                LogEntry::Body { key: b"b", location: None },
            ]
        );
        assert!(LogEntries::new(&rows[..rows.len() - 1], 3, 0).any(|entry| entry.is_err()));
    }

    #[test]
    fn compressed_entries_are_read_among_others() {
        let mut entries = Vec::new();
        for number in 0..9_u8 {
            encode_row(&mut entries, &[number], Some(br#"[1,{"created_at":"2026-11-25T19:11:40.442Z"}]"#));
            encode_body(&mut entries, &[number], Some((10, 77)));
        }
        let compressed = compress_entries(&entries).unwrap();
        assert!(compressed.len() < entries.len() / 3);
        let mut plain = Vec::new();
        encode_row(&mut plain, b"key", None);
        let rows = [&plain[..], &compressed, &compressed, &plain, &plain, &compressed].concat();
        let expected = [&plain[..], &entries, &entries, &plain, &plain, &entries].concat();
        assert_eq!(decompress_rows(&rows).as_deref(), Some(&expected[..]));
        assert!(matches!(decompress_rows(&plain), Some(Cow::Borrowed(_))));
        assert_eq!(decompress_rows(b"").as_deref(), Some(&b""[..]));
        for end in [1, 2, 9, compressed.len() - 1] {
            assert_eq!(decompress_rows(&compressed[..end]), None);
        }
        let with = |at: usize, byte: u8| {
            let mut changed = compressed.clone();
            changed[at] = byte;
            decompress_rows(&changed).map(Cow::into_owned)
        };
        assert_eq!(with(1, DICTIONARY + 1), None, "a newer dictionary");
        assert_eq!(with(9, 0xFF), None, "a size that is too large");
        assert_eq!(compress_entries(&vec![0; (1 << 20) + 1]), None);
        assert_eq!(compress_entries(&[0; 63]), None);
    }
}
