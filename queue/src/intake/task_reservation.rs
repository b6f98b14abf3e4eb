//! Task reservation: capacity in memory, taken before the commit that makes the tasks' rows visible. So no scan of the
//! store loads a fresh task a second time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::task::Task;
use net::limit::body_budget::BufferedBody;

use crate::scheduler::dispatch::Dispatcher;
use crate::scheduler::ready_queue::ReadyTask;

/// Reserved memory for tasks that are being committed. Dropping it releases the memory.
pub(crate) struct TaskReservation {
    dispatcher: Arc<Dispatcher>,
    tasks: Vec<Task>,
    reserved: usize,
}

impl TaskReservation {
    /// Reserves memory for tasks that are about to be committed. Tasks that do not fit are delivered from disk.
    pub(crate) fn reserve(dispatcher: &Arc<Dispatcher>, tasks: Vec<Task>) -> Self {
        let reserved = if dispatcher.pause.is_stopped_or_paused() {
            0
        } else {
            tasks.iter().take_while(|task| dispatcher.scheduler.in_flight.reserve(task.id)).count()
        };
        Self { dispatcher: Arc::clone(dispatcher), tasks, reserved }
    }

    /// The tasks are committed: dispatches those with reserved memory, schedules the others from disk.
    pub(crate) fn confirm(mut self, body: &[Bytes]) {
        let held: Option<Arc<BufferedBody>> =
            (self.reserved > 0).then(|| self.dispatcher.agent.bodies.try_buffer(body)).flatten();
        let placed = std::mem::take(&mut self.reserved);
        for (n, task) in std::mem::take(&mut self.tasks).into_iter().enumerate() {
            self.dispatcher.deadlines.schedule(&task);
            if n < placed {
                self.dispatcher.dispatch(ReadyTask { task, row: None, body: held.clone() });
            } else {
                self.dispatcher.scheduler.schedule_task(&task);
            }
        }
    }
}

/// Delays at which tasks of an unconfirmed commit are searched on disk: the commit may complete long after.
const IN_DOUBT_CHECKS: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];

impl TaskReservation {
    /// The result of the commit is unknown: releases the memory and schedules later scans for the tasks.
    pub(crate) fn mark_in_doubt(self) {
        let (dispatcher, tasks) = (Arc::clone(&self.dispatcher), self.tasks.clone());
        drop(self);
        let checker = Arc::clone(&dispatcher);
        dispatcher.services.spawn(async move {
            for wait in IN_DOUBT_CHECKS {
                tokio::select! {
                    () = checker.services.clock.sleep(wait) => {}
                    () = checker.services.stop.cancelled() => return,
                }
                tasks.iter().for_each(|task| checker.scheduler.schedule_task(task));
                tasks.iter().for_each(|task| checker.deadlines.schedule(task));
            }
        });
    }
}

impl Drop for TaskReservation {
    fn drop(&mut self) {
        self.tasks.iter().take(self.reserved).for_each(|task| self.dispatcher.scheduler.in_flight.finish(task.id));
    }
}
