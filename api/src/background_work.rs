//! Work that goes on after its response or for as long as a client reads: its tasks, and the signal of the shutdown.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of handlers. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackgroundWork {
    pub(crate) tasks: TaskTracker,
    /// Cancelled at shutdown; ends streams that have no end of their own.
    pub(crate) shutdown: CancellationToken,
}
