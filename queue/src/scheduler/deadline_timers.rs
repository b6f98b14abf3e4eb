//! Next scan of each partition for expired mail.

use std::time::Duration;

use jiff::Timestamp;
use model::task::{LAST_ATTEMPT_GRACE, Task};

use crate::scheduler::partition_timers::PartitionTimers;

/// Timers of the partitions with deadlines.
#[derive(Debug, Default)]
pub(crate) struct DeadlineTimers(pub(crate) PartitionTimers);

impl DeadlineTimers {
    /// Schedules the deadline of a stored task.
    pub(crate) fn schedule(&self, task: &Task) {
        let at = task.delay_report_at().unwrap_or(task.expires_at);
        self.0.schedule(task.partition, last_moment(at));
    }
}

/// First moment after the last at which a task with this deadline may still be tried.
pub(crate) fn last_moment(deadline: Timestamp) -> Timestamp {
    deadline.checked_add(LAST_ATTEMPT_GRACE + Duration::from_millis(1)).unwrap_or(Timestamp::MAX)
}
