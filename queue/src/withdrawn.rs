//! Withdrawing: a task is taken out of everybody's reach, wherever it waits, for as long as it is worked on.

use std::sync::Arc;

use mail::task::Task;

use crate::flight::CheckOutResult;
use crate::worker::Worker;

/// A task that is out of everybody's reach. However the work on it ends, should it be given up midway too, it is given
/// back.
pub(crate) struct CheckedOutTask<'a> {
    worker: &'a Worker,
    task: &'a Task,
    is_deleted: bool,
}

impl Worker {
    /// Takes a task out of its line, and out of everybody's reach; none while it is being tried, or worked on.
    pub(crate) fn check_out<'a>(self: &'a Arc<Self>, task: &'a Task) -> Option<CheckedOutTask<'a>> {
        if self.in_flight.check_out(task.id) == CheckOutResult::Busy {
            return None;
        }
        let withdrawn = CheckedOutTask { worker: self, task, is_deleted: false };
        if let Some(route) = self.last_route(task)
            && let Some(site) = self.ready_queues_of(task, &route).find(|site| site.remove(task))
        {
            self.in_flight.finish(task.id);
            self.wake_parked(&site);
        }
        Some(withdrawn)
    }
}

impl CheckedOutTask<'_> {
    /// Its row is no more.
    pub(crate) fn mark_deleted(mut self) {
        self.is_deleted = true;
    }
}

impl Drop for CheckedOutTask<'_> {
    fn drop(&mut self) {
        self.worker.in_flight.check_in(self.task.id);
        if !self.is_deleted {
            // Whatever its row is by now, disk knows.
            self.worker.reload_later(self.task);
        }
        self.worker.outcome_recorded.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use store::engine::Store;

    use crate::settle::tests::task;
    use crate::worker::tests::idle;

    #[tokio::test]
    async fn what_was_withdrawn_is_given_back() {
        let (worker, task) = (idle(Store::memory()), task());
        let withdrawn = worker.check_out(&task);
        assert!(withdrawn.is_some() && worker.check_out(&task).is_none(), "it is worked on");
        drop(withdrawn);
        assert!(worker.in_flight.is_empty());
        assert_eq!(worker.due_index.len(), 1, "its queue is looked at");
        worker.check_out(&task).unwrap().mark_deleted();
        assert!(worker.in_flight.is_empty());
    }
}
