//! A batch of changes, applied atomically or refused.
//!
//! Checks are evaluated first, against everything committed before. Then puts and deletes apply in the order in which
//! they were added. A body is raw bytes in a separate space, written once and read whole.

use bytes::Bytes;
use thiserror::Error;

use super::{Key, Value};
use crate::queue_counts::TaskChange;

/// Maximum length of a key. redb stores keys in its branch pages, so long keys make the tree deep.
pub const KEY_BYTES_MAX: usize = 1024;
/// Maximum size of a row's value. Larger data must be a body.
pub const VALUE_BYTES_MAX: usize = 4 << 20;
/// Maximum size of all rows of a batch, which form the row part of a log group.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// Maximum size of a body; far above the largest message that any listener accepts.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// Purpose of a batch, which decides whether it is refused when the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchPurpose {
    /// Takes on new work, such as accepting a message: refused when the disk is full.
    Intake,
    /// Finishes work, such as settling or deleting: may use the reserve.
    Progress,
}

/// A body as chunks that are written back to back, so that header fields can precede the client's bytes without a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    pub(crate) chunks: Vec<Bytes>,
}

impl Body {
    /// Appends a chunk; empty chunks are dropped.
    pub fn push(&mut self, chunk: impl Into<Bytes>) {
        let chunk = chunk.into();
        if !chunk.is_empty() {
            self.chunks.push(chunk);
        }
    }

    /// Total size of all chunks.
    pub fn size_bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// The chunks, in order.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// Returns the body as one chunk; copies unless there is only one.
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

/// A set of checks and changes that is applied atomically.
#[derive(Debug, Clone)]
#[must_use]
pub struct Batch {
    pub(crate) purpose: BatchPurpose,
    pub(crate) checks: Vec<(Key, Option<Value>)>,
    pub(crate) rows: Vec<RowChange>,
    pub(crate) bodies: Vec<BodyChange>,
    /// Task changes among the rows, for the queue counts.
    pub(crate) tasks: Vec<TaskChange>,
}

#[derive(Debug, Clone)]
pub(crate) struct RowChange {
    pub(crate) key: Key,
    /// The new value; `None` deletes the row.
    pub(crate) value: Option<Value>,
    /// The caller guarantees that no row with this key ever existed.
    pub(crate) fresh: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct BodyChange {
    pub(crate) key: Key,
    /// The bytes; `None` deletes the body.
    pub(crate) body: Option<Body>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new(purpose: BatchPurpose) -> Self {
        Self { purpose, checks: Vec::new(), rows: Vec::new(), bodies: Vec::new(), tasks: Vec::new() }
    }

    /// Creates an empty batch that takes on new work.
    pub fn intake() -> Self {
        Self::new(BatchPurpose::Intake)
    }

    /// Creates an empty batch that finishes work.
    pub fn progress() -> Self {
        Self::new(BatchPurpose::Progress)
    }

    pub fn purpose(&self) -> BatchPurpose {
        self.purpose
    }

    /// Refuses the batch unless `key` holds exactly this value (or none) when it is applied.
    pub fn check(&mut self, key: Key, holds: Option<Value>) -> &mut Self {
        self.checks.push((key, holds));
        self
    }

    /// Writes a row, whether or not it exists.
    pub fn put(&mut self, key: Key, value: impl Into<Value>) -> &mut Self {
        self.rows.push(RowChange { key, value: Some(value.into()), fresh: false });
        self
    }

    /// Writes a row that was read as `before`. Refuses the batch if it has changed since.
    pub(crate) fn replace(&mut self, key: Key, before: Option<Value>, after: impl Into<Value>) -> &mut Self {
        self.check(key.clone(), before).put(key, after)
    }

    /// Deletes a row that was read as `before`. Refuses the batch if it has changed since.
    pub(crate) fn remove(&mut self, key: Key, before: Value) -> &mut Self {
        self.check(key.clone(), Some(before)).delete(key)
    }

    /// Writes a row whose key never existed, because it contains a new id. With this guarantee the engine can drop the
    /// row without a tombstone if it is deleted soon afterwards, as tasks of mail delivered immediately are. It is not
    /// a check: if the guarantee does not hold, an older row may reappear after a delete. The memory engine reports a
    /// violation as a conflict, so that tests find it.
    pub fn put_fresh(&mut self, key: Key, value: impl Into<Value>) -> &mut Self {
        self.rows.push(RowChange { key, value: Some(value.into()), fresh: true });
        self
    }

    /// Deletes a row. A missing row is no error.
    pub fn delete(&mut self, key: Key) -> &mut Self {
        self.rows.push(RowChange { key, value: None, fresh: false });
        self
    }

    pub fn put_body(&mut self, key: Key, body: impl Into<Body>) -> &mut Self {
        self.bodies.push(BodyChange { key, body: Some(body.into()) });
        self
    }

    /// Deletes a body. A missing body is no error.
    pub fn delete_body(&mut self, key: Key) -> &mut Self {
        self.bodies.push(BodyChange { key, body: None });
        self
    }

    /// Appends everything from another batch; the purpose does not change.
    pub fn append(&mut self, other: Batch) -> &mut Self {
        self.checks.extend(other.checks);
        self.rows.extend(other.rows);
        self.bodies.extend(other.bodies);
        self.tasks.extend(other.tasks);
        self
    }

    /// Returns whether the batch changes nothing; it may still contain checks.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bodies.is_empty()
    }

    /// Total size of keys, values and bodies, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.key.len() + row.value.as_ref().map_or(0, Bytes::len));
        let bodies = self.bodies.iter().filter_map(|change| change.body.as_ref()).map(Body::size_bytes);
        rows.chain(bodies).sum()
    }

    /// Checks that every part is within its limit.
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

/// The batch exceeds a limit. This is an error of the caller, not of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the {part} has {size_bytes} bytes; the maximum is {size_bytes_max}")]
pub struct TooLarge {
    /// Name of the part that is too large.
    pub part: &'static str,
    pub size_bytes: usize,
    pub size_bytes_max: usize,
}
