//! Damaged tasks: those whose row or message cannot be read from the store. Each is counted once.

use parking_lot::Mutex;
use std::collections::HashSet;

use model::task::TaskId;
use store::engine::Key;

/// Maximum number of tasks that are counted. More of them indicate a fault of the whole store.
const DAMAGED_MAX: usize = 1_000;

/// The unreadable part of a task.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum UnreadablePart {
    /// The row at this key cannot be decoded.
    Row(Key),
    /// The message is missing, or fails its checksum or its decryption.
    Message(TaskId),
}

/// Damaged tasks found since the start.
#[derive(Debug, Default)]
pub struct DamagedTasks(Mutex<HashSet<UnreadablePart>>);

impl DamagedTasks {
    /// Counts a task. Returns false if it was counted before, or if too many were.
    pub(crate) fn record(&self, part: UnreadablePart) -> bool {
        let mut parts = self.0.lock();
        let is_new = parts.len() < DAMAGED_MAX && parts.insert(part);
        if is_new {
            metrics::counter!("postrider_tasks_damaged_total").increment(1);
        }
        is_new
    }

    /// Number of damaged tasks found since the start, up to a limit.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }
}
