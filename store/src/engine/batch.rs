//! What is to be written: a batch, applied whole or refused whole.
//!
//! Checks are read first, against everything committed before; then deletes and puts apply in the
//! order they were added. A body is raw bytes in a space of its own, written once and read whole.

use bytes::Bytes;
use thiserror::Error;

use super::{Key, Value};
use crate::queue_counts::TaskChange;

/// Longest key: redb keeps keys in its branch pages, and a long one makes the tree deep.
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest value of a row. What is larger is a body.
pub const VALUE_BYTES_MAX: usize = 4 << 20;
/// All rows of one batch together: what a commit may hold in the log's row part.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// One body. The largest message that any door takes stays far below it.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// Why this batch is written, which decides what happens when the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchPurpose {
    /// Takes on new work (accepting a message): refused when the disk is full.
    Intake,
    /// Gets on with work that was taken on (settling, deleting): may use the reserve.
    Progress,
}

/// A body in pieces that are written back to back: headers put before the client's own bytes, uncopied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    pub(crate) chunks: Vec<Bytes>,
}

impl Body {
    /// Adds a piece at the end.
    pub fn push(&mut self, chunk: impl Into<Bytes>) {
        let chunk = chunk.into();
        if !chunk.is_empty() {
            self.chunks.push(chunk);
        }
    }

    /// How many bytes in all.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// The pieces, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// All in one piece (copied unless it is one already).
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self.chunks.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => Bytes::from(many.concat()),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        let mut body = Self::default();
        body.push(bytes);
        body
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl FromIterator<Bytes> for Body {
    fn from_iter<I: IntoIterator<Item = Bytes>>(chunks: I) -> Self {
        let mut body = Self::default();
        chunks.into_iter().for_each(|chunk| body.push(chunk));
        body
    }
}

/// A set of changes that happens whole or not at all.
#[derive(Debug, Clone)]
#[must_use]
pub struct Batch {
    pub(crate) purpose: BatchPurpose,
    pub(crate) checks: Vec<(Key, Option<Value>)>,
    pub(crate) rows: Vec<RowChange>,
    pub(crate) bodies: Vec<BodyChange>,
    /// The tasks among the rows, to be counted.
    pub(crate) tasks: Vec<TaskChange>,
}

/// One row's change.
#[derive(Debug, Clone)]
pub(crate) struct RowChange {
    pub(crate) key: Key,
    /// The new value, or none: deleted.
    pub(crate) value: Option<Value>,
    /// The caller's word that no row of this key ever was.
    pub(crate) fresh: bool,
}

/// One body's change.
#[derive(Debug, Clone)]
pub(crate) struct BodyChange {
    pub(crate) key: Key,
    /// The bytes, or none: deleted.
    pub(crate) body: Option<Body>,
}

impl Batch {
    /// An empty batch.
    pub fn new(purpose: BatchPurpose) -> Self {
        Self { purpose, checks: Vec::new(), rows: Vec::new(), bodies: Vec::new(), tasks: Vec::new() }
    }

    /// An empty batch that takes on new work.
    pub fn intake() -> Self {
        Self::new(BatchPurpose::Intake)
    }

    /// An empty batch that gets on with work.
    pub fn progress() -> Self {
        Self::new(BatchPurpose::Progress)
    }

    /// Why it is written.
    #[must_use]
    pub fn purpose(&self) -> BatchPurpose {
        self.purpose
    }

    /// The batch is refused unless `key` holds exactly this value (or nothing) when it is applied.
    pub fn check(&mut self, key: Key, holds: Option<Value>) -> &mut Self {
        self.checks.push((key, holds));
        self
    }

    /// Writes a row, whether there was one or not.
    pub fn put(&mut self, key: Key, value: impl Into<Value>) -> &mut Self {
        self.rows.push(RowChange { key, value: Some(value.into()), fresh: false });
        self
    }

    /// Writes a row of a key that never was, made of an id just born. That word lets the engine forget
    /// the row without a trace when it is deleted soon after (tasks of mail delivered at once). It is
    /// not a check: a wrong word may bring the older row back after a delete. The model in memory
    /// refuses it as a conflict, so that tests find it.
    pub fn put_fresh(&mut self, key: Key, value: impl Into<Value>) -> &mut Self {
        self.rows.push(RowChange { key, value: Some(value.into()), fresh: true });
        self
    }

    /// Deletes a row; no row is no error.
    pub fn delete(&mut self, key: Key) -> &mut Self {
        self.rows.push(RowChange { key, value: None, fresh: false });
        self
    }

    /// Writes a body.
    pub fn put_body(&mut self, key: Key, body: impl Into<Body>) -> &mut Self {
        self.bodies.push(BodyChange { key, body: Some(body.into()) });
        self
    }

    /// Deletes a body; none is no error.
    pub fn delete_body(&mut self, key: Key) -> &mut Self {
        self.bodies.push(BodyChange { key, body: None });
        self
    }

    /// Adds all that another batch holds, after this one's; the purpose stays this one's.
    pub fn append(&mut self, other: Batch) -> &mut Self {
        self.checks.extend(other.checks);
        self.rows.extend(other.rows);
        self.bodies.extend(other.bodies);
        self.tasks.extend(other.tasks);
        self
    }

    /// Does it change nothing (it may still check)?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bodies.is_empty()
    }

    /// What is to be written, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.key.len() + row.value.as_ref().map_or(0, Bytes::len));
        let bodies = self.bodies.iter().filter_map(|change| change.body.as_ref()).map(Body::size_bytes);
        rows.chain(bodies).sum()
    }

    /// Is every part within its limit?
    pub(crate) fn check_size(&self) -> Result<(), TooLarge> {
        let keys = self.rows.iter().map(|row| &row.key).chain(self.bodies.iter().map(|body| &body.key));
        if let Some(key) = keys.into_iter().find(|key| key.len() > KEY_BYTES_MAX) {
            return Err(TooLarge { part: "key", size_bytes: key.len(), size_bytes_max: KEY_BYTES_MAX });
        }
        let mut total = 0;
        for row in &self.rows {
            let size_bytes = row.value.as_ref().map_or(0, Bytes::len);
            if size_bytes > VALUE_BYTES_MAX {
                return Err(TooLarge { part: "value", size_bytes, size_bytes_max: VALUE_BYTES_MAX });
            }
            total += row.key.len() + size_bytes;
        }
        if total > BATCH_BYTES_MAX {
            return Err(TooLarge { part: "batch", size_bytes: total, size_bytes_max: BATCH_BYTES_MAX });
        }
        let bodies: usize = self.bodies.iter().filter_map(|b| b.body.as_ref()).map(Body::size_bytes).sum();
        if bodies > BODY_BYTES_MAX {
            return Err(TooLarge { part: "body", size_bytes: bodies, size_bytes_max: BODY_BYTES_MAX });
        }
        Ok(())
    }
}

/// A batch beyond the limits: a mistake of the caller, not of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the {part} has {size_bytes} bytes; the most is {size_bytes_max}")]
pub struct TooLarge {
    /// Which part.
    pub part: &'static str,
    /// Its size.
    pub size_bytes: usize,
    /// The most it may have.
    pub size_bytes_max: usize,
}
