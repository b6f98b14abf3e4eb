//! A reservation: places in memory, taken before the commit that makes the tasks' rows visible, so that
//! no scan of the store finds a fresh task that is in memory too.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mail::task::Task;

use crate::bodies::HeldBody;
use crate::site::Ready;
use crate::worker::Worker;

impl Worker {
    /// Takes places in memory for tasks that are about to be committed. What finds none is delivered
    /// from disk.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, tasks: Vec<Task>) -> Reservation {
        let placed = if self.is_paused() || self.stop.is_cancelled() {
            0
        } else {
            tasks.iter().take_while(|task| self.flights.reserve(task.id)).count()
        };
        Reservation { worker: Arc::clone(self), tasks, placed }
    }
}

/// Places in memory for tasks that are being committed. Dropped, it gives them back.
pub struct Reservation {
    worker: Arc<Worker>,
    tasks: Vec<Task>,
    placed: usize,
}

impl Reservation {
    /// The tasks are on disk: those with a place go out, the others wait there.
    pub fn committed(mut self, body: &[Bytes]) {
        let held: Option<Arc<HeldBody>> = (self.placed > 0).then(|| self.worker.bodies.hold(body)).flatten();
        let placed = std::mem::take(&mut self.placed);
        for (n, task) in std::mem::take(&mut self.tasks).into_iter().enumerate() {
            self.worker.note_deadline(&task);
            if n < placed {
                self.worker.dispatch(Ready { task, row: None, body: held.clone() });
            } else {
                self.worker.note(&task);
            }
        }
    }
}

/// When tasks whose commit is in doubt are looked for: it may come to its end long after nobody could say.
const DOUBTS: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];

impl Reservation {
    /// Nobody knows whether the tasks are on disk: those that are there after all are found later.
    pub fn in_doubt(self) {
        let (worker, tasks) = (Arc::clone(&self.worker), self.tasks.clone());
        drop(self);
        let looking = Arc::clone(&worker);
        worker.spawn(async move {
            for wait in DOUBTS {
                tokio::select! {
                    () = looking.clock.sleep_until(looking.later(wait)) => {}
                    () = looking.stop.cancelled() => return,
                }
                tasks.iter().for_each(|task| looking.note(task));
                tasks.iter().for_each(|task| looking.note_deadline(task));
            }
        });
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tasks.iter().take(self.placed).for_each(|task| self.worker.flights.land(task.id));
    }
}
