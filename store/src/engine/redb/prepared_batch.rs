//! A prepared batch: encoded and checksummed on the committer's thread, so that the single writer has little left to
//! do.
//!
//! The rows are slices of a buffer of encoded entries, which the memtable retains until the next checkpoint. A batch thus takes
//! one allocation there, and the many small ones from which it was built are freed on the thread that made them.

use bytes::Bytes;
use crc32fast::Hasher;
use tokio::sync::oneshot;

use super::memtable::BodyLocation;
use super::record::{compress_entries, encode_body, encode_row};
use crate::engine::batch::RowChange;
use crate::engine::{Batch, BatchPurpose, CommitError, Key, Value};

/// A batch in the form that the writer needs.
#[derive(Debug)]
pub(crate) struct PreparedBatch {
    pub(crate) purpose: BatchPurpose,
    pub(crate) checks: Vec<(Key, Option<Value>)>,
    pub(crate) rows: Vec<RowChange>,
    /// Size and checksum of each body; `None` deletes it.
    pub(crate) bodies: Vec<(Key, Option<(u32, u32)>)>,
    /// The batch's share of the group's row part, which may be compressed.
    pub(crate) encoded: Bytes,
    /// Size of the buffer of which the rows are slices.
    pub(crate) rows_bytes: usize,
    /// The bytes of all bodies, back to back.
    pub(crate) chunks: Vec<Bytes>,
    /// Size of its entries before compression, and of its bodies.
    pub(crate) size_bytes: u64,
}

/// A batch with the channel for its result.
#[derive(Debug)]
pub(crate) struct PendingBatch {
    pub(crate) batch: PreparedBatch,
    pub(crate) answer: Option<oneshot::Sender<Result<(), CommitError>>>,
}

/// A live body of an old segment that is written again.
#[derive(Debug)]
pub(crate) struct RelocatedBody {
    pub(crate) key: Key,
    pub(crate) from: BodyLocation,
    pub(crate) bytes: Bytes,
}

/// Maximum size of an entry's tag, sizes and checksum.
const ENTRY_BYTES_MAX: usize = 11;

impl PreparedBatch {
    pub(crate) fn new(batch: Batch) -> Result<Self, CommitError> {
        batch.check_size()?;
        let rows_bytes: usize = batch
            .rows
            .iter()
            .map(|row| row.key.len() + row.value.as_ref().map_or(0, Bytes::len) + ENTRY_BYTES_MAX)
            .sum();
        let bodies_bytes: usize = batch.bodies.iter().map(|body| body.key.len() + ENTRY_BYTES_MAX).sum();
        let mut encoded = Vec::with_capacity(rows_bytes + bodies_bytes);
        let mut ends = Vec::with_capacity(batch.rows.len());
        for row in &batch.rows {
            encode_row(&mut encoded, &row.key, row.value.as_deref());
            ends.push(encoded.len());
        }
        let mut chunks = Vec::new();
        let mut bodies = Vec::with_capacity(batch.bodies.len());
        for change in batch.bodies {
            let body = change.body.map(|body| {
                let mut checksum = Hasher::new();
                body.chunks.iter().for_each(|chunk| checksum.update(chunk));
                // At most BODY_BYTES_MAX, as checked above.
                let size_bytes = u32::try_from(body.size_bytes()).unwrap_or(u32::MAX);
                chunks.extend(body.chunks);
                (size_bytes, checksum.finalize())
            });
            encode_body(&mut encoded, &change.key, body);
            bodies.push((change.key, body));
        }
        let buffer = Bytes::from(encoded);
        let rows = batch.rows.iter().zip(ends).map(|(row, end)| slice_row(&buffer, row, end)).collect();
        let encoded = compress_entries(&buffer).map_or_else(|| buffer.clone(), Bytes::from);
        let size_bytes = buffer.len() as u64 + chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        let (purpose, checks, rows_bytes) = (batch.purpose, batch.checks, buffer.len());
        Ok(Self { purpose, checks, rows, bodies, encoded, rows_bytes, chunks, size_bytes })
    }

    /// Creates a batch that only relocates bodies. Its purpose is `Progress`, because freeing space must continue on a
    /// full disk.
    pub(crate) fn from_relocated(moved: Vec<RelocatedBody>) -> Self {
        let mut encoded = Vec::new();
        let mut bodies = Vec::with_capacity(moved.len());
        let mut chunks = Vec::with_capacity(moved.len());
        for body in moved {
            let entry = Some((body.from.size_bytes, body.from.checksum));
            encode_body(&mut encoded, &body.key, entry);
            bodies.push((body.key, entry));
            chunks.push(body.bytes);
        }
        let size_bytes = encoded.len() as u64 + chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        let (checks, rows, rows_bytes) = (Vec::new(), Vec::new(), encoded.len());
        let (purpose, encoded) = (BatchPurpose::Progress, encoded.into());
        Self { purpose, checks, rows, bodies, encoded, rows_bytes, chunks, size_bytes }
    }
}

/// Slices a row out of the encoded buffer: key and value are at the end of its entry.
fn slice_row(encoded: &Bytes, row: &RowChange, end: usize) -> RowChange {
    let value_at = end - row.value.as_ref().map_or(0, Bytes::len);
    RowChange {
        key: encoded.slice(value_at - row.key.len()..value_at),
        value: row.value.as_ref().map(|_| encoded.slice(value_at..end)),
        fresh: row.fresh,
    }
}
