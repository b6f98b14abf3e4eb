//! Checked-out tasks: a task that the operator works on and that is not attempted meanwhile.

use std::sync::Arc;

use mail::task::Task;

use crate::in_flight::CheckOutResult;
use crate::worker::Worker;

/// A checked-out task; dropping it checks the task in again.
pub(crate) struct CheckedOutTask<'a> {
    worker: &'a Worker,
    task: &'a Task,
    is_deleted: bool,
}

impl Worker {
    /// Removes a task from its ready queue and checks it out; `None` while it is attempted or checked out.
    pub(crate) fn check_out<'a>(self: &'a Arc<Self>, task: &'a Task) -> Option<CheckedOutTask<'a>> {
        if self.in_flight.check_out(task.id) == CheckOutResult::Busy {
            return None;
        }
        let checked_out = CheckedOutTask { worker: self, task, is_deleted: false };
        if let Some(route) = self.last_route(task)
            && let Some(site) = self.ready_queues_of(task, &route).find(|site| site.remove(task))
        {
            self.in_flight.finish(task.id);
            self.wake_parked(&site);
        }
        Some(checked_out)
    }
}

impl CheckedOutTask<'_> {
    /// Records that the task's row was deleted, so that it is not reloaded.
    pub(crate) fn mark_deleted(mut self) {
        self.is_deleted = true;
    }
}

impl Drop for CheckedOutTask<'_> {
    fn drop(&mut self) {
        self.worker.in_flight.check_in(self.task.id);
        if !self.is_deleted {
            // Memory may be stale; the stored row is authoritative, so reload it.
            self.worker.reload_later(self.task);
        }
        self.worker.services.outcome_recorded.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use store::engine::Store;

    use crate::outcome::tests::task;
    use crate::worker::tests::idle;

    #[tokio::test]
    async fn a_checked_out_task_is_checked_in_again() {
        let (worker, task) = (idle(Store::memory()), task());
        let checked_out = worker.check_out(&task);
        assert!(checked_out.is_some() && worker.check_out(&task).is_none(), "the task is checked out");
        drop(checked_out);
        assert!(worker.in_flight.is_empty());
        assert_eq!(worker.due_index.len(), 1, "its queue is scheduled for a scan");
        worker.check_out(&task).unwrap().mark_deleted();
        assert!(worker.in_flight.is_empty());
    }
}
