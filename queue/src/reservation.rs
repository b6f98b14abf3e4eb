//! A reservation: places in memory, taken before the commit that makes the tasks' rows visible, so that
//! no scan of the store finds a fresh task that is in memory too.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mail::task::Task;

use crate::bodies::BufferedBody;
use crate::site::ReadyTask;
use crate::worker::Worker;

impl Worker {
    /// Takes places in memory for tasks that are about to be committed. What finds none is delivered
    /// from disk.
    #[must_use]
    pub fn reserve_tasks(self: &Arc<Self>, tasks: Vec<Task>) -> TaskReservation {
        let placed = if self.is_paused() || self.stop.is_cancelled() {
            0
        } else {
            tasks.iter().take_while(|task| self.in_flight.reserve(task.id)).count()
        };
        TaskReservation { worker: Arc::clone(self), tasks, reserved: placed }
    }
}

/// Places in memory for tasks that are being committed. Dropped, it gives them back.
pub struct TaskReservation {
    worker: Arc<Worker>,
    tasks: Vec<Task>,
    reserved: usize,
}

impl TaskReservation {
    /// The tasks are on disk: those with a place go out, the others wait there.
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

/// When tasks whose commit is in doubt are looked for: it may come to its end long after nobody could say.
const IN_DOUBT_CHECKS: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];

impl TaskReservation {
    /// Nobody knows whether the tasks are on disk: those that are there after all are found later.
    pub fn mark_in_doubt(self) {
        let (worker, tasks) = (Arc::clone(&self.worker), self.tasks.clone());
        drop(self);
        let looking = Arc::clone(&worker);
        worker.spawn(async move {
            for wait in IN_DOUBT_CHECKS {
                tokio::select! {
                    () = looking.clock.sleep_until(looking.after(wait)) => {}
                    () = looking.stop.cancelled() => return,
                }
                tasks.iter().for_each(|task| looking.schedule_task(task));
                tasks.iter().for_each(|task| looking.schedule_deadline(task));
            }
        });
    }
}

impl Drop for TaskReservation {
    fn drop(&mut self) {
        self.tasks.iter().take(self.reserved).for_each(|task| self.worker.in_flight.finish(task.id));
    }
}
