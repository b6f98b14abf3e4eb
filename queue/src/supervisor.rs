//! Supervisor: runs the background tasks of the queue, stops delivery after a panic, and ends all tasks at shutdown.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Additional wait for the commits of aborted attempts.
pub(crate) const COMMIT_MAX: Duration = Duration::from_secs(1);

/// Supervisor of all tasks.
#[derive(Debug, Default)]
pub(crate) struct Supervisor {
    /// Cancelled when no new work may begin.
    pub(crate) stop: CancellationToken,
    /// Cancelled when attempts must not wait for hosts any more.
    pub(crate) abort: CancellationToken,
    /// Cancelled when all remaining tasks are dropped.
    end: CancellationToken,
    tasks: TaskTracker,
    panicked: AtomicBool,
}

impl Supervisor {
    /// Spawns a task that ends at shutdown.
    ///
    /// A panic may leak what the task held, such as a connection count or memory. So delivery stops, and the process
    /// has to be restarted from the state on disk.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(self: &Arc<Self>, work: F) {
        let (end, supervisor) = (self.end.clone(), Arc::clone(self));
        // Boxed once, because every wrapper would copy the future's kilobytes.
        let work = Box::pin(work);
        self.tasks.spawn(async move {
            let result = AssertUnwindSafe(end.run_until_cancelled(work)).catch_unwind().await;
            if result.is_err() {
                tracing::error!("a queue task panicked: delivery stopped; restart the server");
                supervisor.panicked.store(true, Ordering::Release);
                supervisor.stop.cancel();
            }
        });
    }

    /// Returns whether delivery has stopped permanently because of a panic and a restart is needed.
    pub(crate) fn has_failed(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    /// Stops all tasks. Attempts that take longer than `patience` are aborted.
    pub(crate) async fn shut_down(&self, patience: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            self.abort.cancel();
            if tokio::time::timeout(COMMIT_MAX, self.tasks.wait()).await.is_err() {
                self.end.cancel();
                self.tasks.wait().await;
            }
        }
    }
}
