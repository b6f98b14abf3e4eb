//! Runs work on large texts on a blocking thread, so that it does not delay other requests.

use std::future::pending;

use tokio::task::JoinHandle;

/// Smaller texts are handled inline, which is faster than moving them to another thread.
pub(crate) const INLINE_BYTES_MAX: usize = 64 << 10;

/// Runs `work` inline or on a blocking thread, depending on the size of its text.
pub(crate) async fn offload<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= INLINE_BYTES_MAX {
        return work();
    }
    join(tokio::task::spawn_blocking(work)).await
}

/// Waits for the end of a task, and passes on its panic.
pub(crate) async fn join<T>(task: JoinHandle<T>) -> T {
    match task.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, so this future is dropped as well.
            Err(_) => pending().await,
        },
    }
}
