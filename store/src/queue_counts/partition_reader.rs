//! Reads the tasks of the partitions that are not counted completely, slice by slice.

use jiff::Timestamp;

use super::{CountedTask, QueueCounts};
use crate::engine::{Result, Store};
use crate::task;

/// Tasks per read.
const SLICE_TASKS: usize = 1_000;

impl QueueCounts {
    /// Reads the next slice of a partition that is not counted completely. Returns false if there is none, or if a
    /// partition's last read is not due yet.
    ///
    /// # Errors
    /// The store cannot be read; the slice is retried.
    pub async fn read(&self, store: &Store, now: Timestamp) -> Result<bool> {
        let Some((partition, from)) = self.slice_begins(now, store.is_away()) else { return Ok(false) };
        let slice = task::list_partition(store, partition, from, SLICE_TASKS).await?;
        let next = slice.next.clone();
        let tasks = slice.tasks.iter().map(|(task, _)| (task::key_of(task), CountedTask::from_task(task)));
        self.slice_read(partition, now, tasks.collect(), next);
        Ok(true)
    }
}
