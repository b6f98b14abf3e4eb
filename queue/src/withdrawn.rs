//! Withdrawing: a task is taken out of everybody's reach, wherever it waits, for as long as it is worked on.

use std::sync::Arc;

use mail::task::Task;

use crate::flight::Withdrawal;
use crate::worker::Worker;

/// A task that is out of everybody's reach. However the work on it ends, should it be given up midway too, it is given
/// back.
pub(crate) struct Withdrawn<'a> {
    worker: &'a Worker,
    task: &'a Task,
    is_gone: bool,
}

impl Worker {
    /// Takes a task out of its line, and out of everybody's reach; none while it is being tried, or worked on.
    pub(crate) fn withdraw<'a>(self: &'a Arc<Self>, task: &'a Task) -> Option<Withdrawn<'a>> {
        if self.flights.withdraw(task.id) == Withdrawal::Busy {
            return None;
        }
        let withdrawn = Withdrawn { worker: self, task, is_gone: false };
        if let Some(route) = self.last_route_of(task)
            && let Some(site) = self.sites_of(task, &route).find(|site| site.take_out(task))
        {
            self.flights.land(task.id);
            self.unpark(&site);
        }
        Some(withdrawn)
    }
}

impl Withdrawn<'_> {
    /// Its row is no more.
    pub(crate) fn finish(mut self) {
        self.is_gone = true;
    }
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.worker.flights.give_back(self.task.id);
        if !self.is_gone {
            // Whatever its row is by now, disk knows.
            self.worker.let_lie(self.task);
        }
        self.worker.settled.notify_waiters();
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
        let withdrawn = worker.withdraw(&task);
        assert!(withdrawn.is_some() && worker.withdraw(&task).is_none(), "it is worked on");
        drop(withdrawn);
        assert!(worker.flights.is_empty());
        assert_eq!(worker.scheduled.len(), 1, "its queue is looked at");
        worker.withdraw(&task).unwrap().finish();
        assert!(worker.flights.is_empty());
    }
}
