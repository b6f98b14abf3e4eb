//! Task reservation: capacity in memory, taken before the commit that makes the tasks' rows visible. So no scan of the
//! store loads a fresh task a second time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mail::task::Task;

use crate::body_budget::BufferedBody;
use crate::ready_queue::ReadyTask;
use crate::worker::Worker;

impl Worker {
    /// Reserves memory for tasks that are about to be committed. Tasks that do not fit are delivered from disk.
    #[must_use]
    pub fn reserve_tasks(self: &Arc<Self>, tasks: Vec<Task>) -> TaskReservation {
        let placed = if self.is_paused() || self.services.stop.is_cancelled() {
            0
        } else {
            tasks.iter().take_while(|task| self.in_flight.reserve(task.id)).count()
        };
        TaskReservation { worker: Arc::clone(self), tasks, reserved: placed }
    }
}

/// Reserved memory for tasks that are being committed. Dropping it releases the memory.
pub struct TaskReservation {
    worker: Arc<Worker>,
    tasks: Vec<Task>,
    reserved: usize,
}

impl TaskReservation {
    /// The tasks are committed: dispatches those with reserved memory, schedules the others from disk.
    pub fn confirm(mut self, body: &[Bytes]) {
        let held: Option<Arc<BufferedBody>> =
            (self.reserved > 0).then(|| self.worker.bodies.try_buffer(body)).flatten();
        let placed = std::mem::take(&mut self.reserved);
        for (n, task) in std::mem::take(&mut self.tasks).into_iter().enumerate() {
            self.worker.schedule_deadline(&task);
            if n < placed {
                self.worker.dispatch(ReadyTask { task, row: None, body: held.clone() });
            } else {
                self.worker.schedule_task(&task);
            }
        }
    }
}

/// Delays at which tasks of an unconfirmed commit are searched on disk: the commit may complete long after.
const IN_DOUBT_CHECKS: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];

impl TaskReservation {
    /// The result of the commit is unknown: releases the memory and schedules later scans for the tasks.
    pub fn mark_in_doubt(self) {
        let (worker, tasks) = (Arc::clone(&self.worker), self.tasks.clone());
        drop(self);
        let checker = Arc::clone(&worker);
        worker.services.spawn(async move {
            for wait in IN_DOUBT_CHECKS {
                tokio::select! {
                    () = checker.services.clock.sleep_until(checker.services.clock.after(wait)) => {}
                    () = checker.services.stop.cancelled() => return,
                }
                tasks.iter().for_each(|task| checker.schedule_task(task));
                tasks.iter().for_each(|task| checker.schedule_deadline(task));
            }
        });
    }
}

impl Drop for TaskReservation {
    fn drop(&mut self) {
        self.tasks.iter().take(self.reserved).for_each(|task| self.worker.in_flight.finish(task.id));
    }
}
