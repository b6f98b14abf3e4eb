//! Checked-out tasks: a task that the operator works on and that is not attempted meanwhile.

use model::task::Task;

use crate::scheduler::destination_queues::DestinationQueues;
use crate::scheduler::in_flight::CheckOutResult;

/// A checked-out task; dropping it checks the task in again.
pub(crate) struct CheckedOutTask<'a> {
    queues: &'a DestinationQueues,
    task: &'a Task,
    is_deleted: bool,
}

impl<'a> CheckedOutTask<'a> {
    /// Removes a task from its ready queue and checks it out; `None` while it is attempted or checked out.
    pub(crate) fn check_out(queues: &'a DestinationQueues, task: &'a Task) -> Option<Self> {
        let scheduler = &queues.scheduler;
        if scheduler.in_flight.check_out(task.id) == CheckOutResult::Busy {
            return None;
        }
        let checked_out = Self { queues, task, is_deleted: false };
        if let Some(route) = queues.routes.last_route(task)
            && let Some(site) = queues.ready_queues_of(task, &route).find(|site| site.remove(task))
        {
            scheduler.in_flight.finish(task.id);
            scheduler.wake_parked(&site);
        }
        Some(checked_out)
    }

    /// Records that the task's row was deleted, so that it is not reloaded.
    pub(crate) fn mark_deleted(mut self) {
        self.is_deleted = true;
    }
}

impl Drop for CheckedOutTask<'_> {
    fn drop(&mut self) {
        let scheduler = &self.queues.scheduler;
        scheduler.in_flight.check_in(self.task.id);
        if !self.is_deleted {
            // Memory may be stale; the stored row is authoritative, so reload it.
            scheduler.reload_later(self.task);
        }
        self.queues.services.outcome_recorded.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use store::engine::Store;

    use super::*;

    use crate::delivery::outcome::tests::task;
    use crate::subsystems::tests::idle;

    #[tokio::test]
    async fn a_checked_out_task_is_checked_in_again() {
        let (queue, task) = (idle(Store::memory()), task());
        let checked_out = CheckedOutTask::check_out(&queue.delivery.queues, &task);
        assert!(
            checked_out.is_some() && CheckedOutTask::check_out(&queue.delivery.queues, &task).is_none(),
            "the task is checked out"
        );
        drop(checked_out);
        assert!(queue.delivery.scheduler.in_flight.is_empty());
        assert_eq!(queue.delivery.scheduler.due_index.len(), 1, "its queue is scheduled for a scan");
        CheckedOutTask::check_out(&queue.delivery.queues, &task).unwrap().mark_deleted();
        assert!(queue.delivery.scheduler.in_flight.is_empty());
    }
}
