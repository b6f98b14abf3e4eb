//! A batch made ready by its committer: encoded and checksummed on the committer's own thread, so that
//! the one writer has little left to do.
//!
//! Its rows lie in what was encoded, which the table in memory keeps until the next checkpoint: one piece of memory
//! for a batch, and the many small ones that it was put together from are free again where they were made.

use bytes::Bytes;
use crc32fast::Hasher;
use tokio::sync::oneshot;

use super::record::{encode_body, encode_row};
use super::table::BodyLocation;
use crate::engine::batch::RowChange;
use crate::engine::{Batch, BatchPurpose, CommitError, Key, Value};

/// A batch as the writer takes it.
#[derive(Debug)]
pub(crate) struct PreparedBatch {
    pub(crate) purpose: BatchPurpose,
    pub(crate) checks: Vec<(Key, Option<Value>)>,
    pub(crate) rows: Vec<RowChange>,
    /// Size and checksum of each body, or none: deleted.
    pub(crate) bodies: Vec<(Key, Option<(u32, u32)>)>,
    /// The batch's part of the group's row part.
    pub(crate) encoded: Bytes,
    /// The bodies' bytes, back to back.
    pub(crate) chunks: Vec<Bytes>,
    /// What it adds to a group.
    pub(crate) size_bytes: u64,
}

/// A batch and who waits for it.
#[derive(Debug)]
pub(crate) struct PendingBatch {
    pub(crate) batch: PreparedBatch,
    pub(crate) answer: Option<oneshot::Sender<Result<(), CommitError>>>,
}

/// A body read from an old segment, to be written again.
#[derive(Debug)]
pub(crate) struct RelocatedBody {
    pub(crate) key: Key,
    pub(crate) from: BodyLocation,
    pub(crate) bytes: Bytes,
}

/// Tag, sizes, checksum of one entry.
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
                // At most BODY_BYTES_MAX: measured above.
                let size_bytes = u32::try_from(body.size_bytes()).unwrap_or(u32::MAX);
                chunks.extend(body.chunks);
                (size_bytes, checksum.finalize())
            });
            encode_body(&mut encoded, &change.key, body);
            bodies.push((change.key, body));
        }
        let size_bytes = encoded.len() as u64 + chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        let encoded = Bytes::from(encoded);
        let rows = batch.rows.iter().zip(ends).map(|(row, end)| slice_row(&encoded, row, end)).collect();
        Ok(Self { purpose: batch.purpose, checks: batch.checks, rows, bodies, encoded, chunks, size_bytes })
    }

    /// Bodies that only change their place. (Freeing disk goes on when the disk is full.)
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
        let (checks, rows, encoded) = (Vec::new(), Vec::new(), encoded.into());
        Self { purpose: BatchPurpose::Progress, checks, rows, bodies, encoded, chunks, size_bytes }
    }
}

/// The row as it lies in what was encoded: key and value are the last of its entry, which ends there.
fn slice_row(encoded: &Bytes, row: &RowChange, end: usize) -> RowChange {
    let value_at = end - row.value.as_ref().map_or(0, Bytes::len);
    RowChange {
        key: encoded.slice(value_at - row.key.len()..value_at),
        value: row.value.as_ref().map(|_| encoded.slice(value_at..end)),
        fresh: row.fresh,
    }
}
